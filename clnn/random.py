"""Seeds and states of random numbers. One stream serves all devices; on those that are CPUs equal seeds give the numbers that they give in PyTorch."""
from __future__ import annotations

import contextlib

import numpy as np

from ._tensor.device import device as _device
from ._tensor.tensor import Tensor
from .core import dtype as dt
from .core import rng
from .core.twister import PACKED


def thread_safe_generator():
    """The generator of this thread where it is a worker of a data loader, else None."""
    own = rng.current()
    return own if own is not default_generator else None


_FIRST = 67280421310721         # the seed of a new generator, as in PyTorch


class Generator(rng.Stream):
    """A stream of random numbers of its own, for the ``generator=`` argument; a new one has always the same seed.

    Example:
        >>> g = clnn.Generator().manual_seed(1)
        >>> a = clnn.rand(3, generator=g)
        >>> clnn.equal(a, clnn.rand(3, generator=g.manual_seed(1)))
        True
    """

    def __init__(self, device="cpu"):
        super().__init__(_FIRST)
        if isinstance(device, str):
            _device(device)                                          # raises for what is none
        self._device = device

    @property
    def device(self):
        return _device(self._device)

    def manual_seed(self, seed):
        """Start the stream of ``seed`` (64 bits; negative ones count from 2^64)."""
        if not hasattr(seed, "__index__") and not isinstance(seed, float):
            raise RuntimeError(f"manual_seed expected a long, but got {type(seed).__name__}")
        if not -(1 << 63) <= int(seed) < 1 << 64:
            raise ValueError("Overflow when unpacking long long")
        self.restart(int(seed))
        return self

    def seed(self):
        """Start a stream from the system's entropy and return its seed."""
        self.restart(rng._entropy())
        return self.key

    def initial_seed(self):
        """The seed of the present stream."""
        return self.key

    def get_state(self):
        """Seed and position as a tensor of 5056 bytes, in PyTorch's layout."""
        from ._tensor.interop import from_numpy
        return from_numpy(np.frombuffer(self.packed(), np.uint8).copy())

    def set_state(self, new_state):
        """Return to a state that ``get_state`` gave, here or in PyTorch."""
        if not isinstance(new_state, Tensor):
            raise TypeError(f"expected a torch.ByteTensor, but got {type(new_state).__name__}")
        if new_state.dtype is not dt.uint8:
            raise TypeError("RNG state must be a torch.ByteTensor")
        raw = np.asarray(new_state.tolist(), np.uint8).tobytes()
        if len(raw) != PACKED:
            raise RuntimeError(f"Expected a CPUGeneratorImplState of size {PACKED} but found the input RNG state size to be {len(raw)}")
        self.unpack(raw)
        return self

    def get_offset(self):
        """The position in the stream, of a generator of a GPU; PyTorch's of the processor have none."""
        self._of_gpu()
        return self.offset

    def set_offset(self, offset):
        """Go to a position that ``get_offset`` gave."""
        self._of_gpu()
        self.offset = int(offset)

    def _of_gpu(self):
        if self.device.type == "cpu":
            raise RuntimeError("CPU Generator does not use offset")

    def clone_state(self):
        """Another generator in the same state."""
        other = Generator(self._device)
        other.unpack(self.packed())
        return other

    def __getstate__(self):
        return self.packed(), str(self._device)

    def __setstate__(self, state):
        raw, self._device = state
        self.unpack(raw)


rng.default = default_generator = Generator()
default_generator.seed()


def manual_seed(seed):
    """Seed the default generator, which every device uses; returns it. What CPU devices draw then are PyTorch's numbers for this seed.

    Example:
        >>> _ = clnn.manual_seed(3)
        >>> a = clnn.randn(2)
        >>> _ = clnn.manual_seed(3)
        >>> clnn.equal(a, clnn.randn(2))
        True
    """
    return rng.current().manual_seed(int(seed))


def seed():
    """Seed the default generator from the system's entropy; returns the seed."""
    return rng.current().seed()


def initial_seed():
    """The seed of the default generator.

    Example:
        >>> _ = clnn.manual_seed(3)
        >>> clnn.initial_seed()
        3
    """
    return rng.current().initial_seed()


def get_rng_state(device=None):
    """State of the default generator, for :func:`set_rng_state`.

    Example:
        >>> state = clnn.get_rng_state()
        >>> a = clnn.randn(2)
        >>> clnn.set_rng_state(state)
        >>> clnn.equal(a, clnn.randn(2))
        True
    """
    return rng.current().get_state()


def set_rng_state(new_state, device=None):
    """Return the default generator to a state that :func:`get_rng_state` gave.

    Example:
        >>> state = clnn.get_rng_state()
        >>> a = clnn.randn(2)
        >>> clnn.set_rng_state(state)
        >>> clnn.equal(a, clnn.randn(2))
        True
    """
    rng.current().set_state(new_state)


def get_rng_state_all():
    """States of all devices: one, as they share the stream."""
    return [get_rng_state()]


def set_rng_state_all(new_states):
    """Undo to what :func:`get_rng_state_all` gave; no states of no devices change nothing."""
    for state in list(new_states)[:1]:
        set_rng_state(state)


@contextlib.contextmanager
def fork_rng(devices=None, enabled=True, device_type=None):
    """The stream continues after the block as if nothing had been drawn inside."""
    stream = rng.current()
    before = stream.mark() if enabled else None
    try:
        yield
    finally:
        if enabled:
            stream.back(before)
