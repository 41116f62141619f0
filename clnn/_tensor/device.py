"""``clnn.device``: the name of a device, as PyTorch has it, and the meta device that computes shapes only."""
from __future__ import annotations

import contextlib

from ..core import native
from ..core.errors import DeviceError
from ..core.layout import strided
from ..runtime import device as physical


class MetaDevice:
    """Allocates nothing and launches nothing: shapes and dtypes of results come out, values do not."""

    kind = flavour = name = vendor = "meta"
    index = 0
    is_cpu = loops = vectors = False
    has_fp16 = has_fp64 = True
    compute_units = max_work_group = 1
    local_mem, registers, wide = 32768, 0, False
    max_alloc = global_mem = max_parameter = 1 << 62
    lock = contextlib.nullcontext()
    error_buffer, err_dirty, default_local, inline, waiting, transfers, recording = None, False, 1, None, False, 0, None

    lanes, duplicate, manner = physical.Device.lanes, physical.Device.duplicate, physical.Device.manner

    def alloc(self, nbytes):
        return _Nothing()

    def kernel(self, path, **params):
        return None

    def kernel_from_source(self, source, name):
        return None

    def records(self):
        return False

    def write(self, buf, array, offset_bytes=0):
        """Nothing is stored."""

    def copy(self, *args):
        """Nothing is copied."""

    def fill(self, *args):
        """Nothing is filled."""

    def read(self, buf, nbytes, offset_bytes=0):
        raise NotImplementedError("Cannot copy out of meta tensor; no data! Use a real device, or to_empty() and load values first.")

    def synchronize(self):
        """Nothing to wait for."""

    def error_code(self, *args):
        return 0

    def __deepcopy__(self, memo):
        return self

    def __str__(self):
        return "meta"


class _Nothing:
    __slots__ = ("__weakref__",)


META = MetaDevice()
_context: list = []         # devices of the enclosing ``with clnn.device(...)`` blocks
_public: dict = {}
_ELSEWHERE = frozenset("mps xpu hpu xla npu mlu musa mtia ipu hip vulkan privateuseone maia lazy".split())  # PyTorch's: named, to compare with; used, an error

_TYPES = ("cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, maia, xla, lazy, vulkan, mps, meta, hpu, mtia, privateuseone")


class device:
    """A device: ``clnn.device("gpu", 0)``, ``clnn.device("cpu:1")``, ``clnn.device("meta")`` or a part of a device's name.

    In a ``with`` block it is where new tensors are made. A bare ``"cpu"`` or ``"gpu"`` means the default device when that is of this kind,
    else the first of its kind; ``"cuda"`` stands for ``"gpu"``.

    Example:
        >>> clnn.zeros(2, device=clnn.device("cpu")).device.type
        'cpu'
    """

    __slots__ = ("type", "index", "_physical")

    def __init__(self, type=None, index=None):
        if isinstance(type, device):
            self.type, self.index, self._physical = type.type, type.index, type._physical
            return
        if isinstance(type, int) and index is None:
            type, index = ("gpu" if any(d.kind == "gpu" for d in physical.list_devices()) else "cpu"), type
        if not isinstance(type, str):
            raise TypeError(f"device(): expected a name like 'cpu', 'gpu:0' or 'meta', got {type!r}")
        if not type:
            raise RuntimeError("Device string must not be empty")
        name = type
        kind, _, number = name.partition(":")
        if index is not None:
            if not hasattr(index, "__index__"):
                raise TypeError(f"device(): argument 'index' (position 2) must be int, not {index.__class__.__name__}")
            if number:
                raise RuntimeError(f"type (string) must not include an index because index was passed explicitly: {name}")
            if index < 0:
                raise RuntimeError("Device index must not be negative")
            name, number = f"{name}:{index}", str(index)
        kind = "gpu" if kind == "cuda" else kind
        self._physical = None
        if kind in ("cpu", "gpu", "meta") or kind in _ELSEWHERE:
            if name.endswith(":") or number and (not number.isdigit() or number != str(int(number))):
                raise RuntimeError(f"Invalid device string: '{name}'")
            self.type, self.index = kind, int(number) if number else None
        else:
            self._physical = _by_name(name)
            self.type, self.index = self._physical.kind, self._physical.index

    @property
    def physical(self):
        """The Device object that computes. Raises DeviceError when there is none of that name."""
        if self._physical is None:
            self._physical = _find(self.type, self.index)
            if self.index is None and self.type != "meta":
                found, self._physical = self._physical, None         # a bare kind follows the default device
                return found
        return self._physical

    def __enter__(self):
        _context.append(self)
        return self

    def __exit__(self, *exc):
        _context.pop()

    def __call__(self, fn):
        import functools

        @functools.wraps(fn)
        def wrapper(*args, **kwargs):
            with self:
                return fn(*args, **kwargs)
        return wrapper

    def __eq__(self, other):
        if not isinstance(other, device):
            return NotImplemented
        if self.type != other.type:
            return False
        if self.index == other.index or self.type == "meta":
            return True
        try:
            return self.physical is other.physical
        except DeviceError:                             # names may be compared where there is no such device
            return False

    def __hash__(self):
        return hash(self.type)

    def __repr__(self):
        return f"device(type={self.type!r}{'' if self.index is None else f', index={self.index}'})"

    def __str__(self):
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __reduce__(self):
        return (device, (str(self),))


def _by_name(name):
    """The device that a driver calls so. What names none is refused in PyTorch's words, and with those that there are."""
    try:
        if name.strip() != name or name.partition(":")[0].lower() in ("cpu", "gpu", "cuda", "meta"):
            raise DeviceError(f"names are without spaces and capitals; got {name!r}")
        return physical.get_device(name)
    except DeviceError as exc:
        if not physical.list_devices() or name.startswith("cl:"):
            raise
        raise DeviceError(f"Expected one of {_TYPES} device type at start of device string: {name.partition(':')[0]}\n{exc}") from None


native.give(context=_context, strided=strided, device=device)


def _find(kind, index):
    if kind == "meta":
        return META
    if index is None:
        default = physical.default_device()
        return default if default.kind == kind else physical.get_device(kind)
    return physical.get_device(f"{kind}:{index}")


def public(dev) -> device:
    """The name of a physical device: a CPU that is the default is just ``cpu``, as in PyTorch."""
    got = _public.get(dev)
    if got is None:
        got = device.__new__(device)
        got.type, got._physical = dev.kind, dev
        got.index = None if dev.kind == "meta" or (dev.kind == "cpu" and _find("cpu", None) is dev) else dev.index
        _public[dev] = got
    return got


def resolve(spec):
    """The physical device that a ``device=`` argument means; None is the innermost ``with`` block's, else the default."""
    if spec is None:
        return _context[-1].physical if _context else physical.default_device()
    if spec.__class__ is str:
        return _named(spec).physical
    if isinstance(spec, device):
        return spec.physical
    if isinstance(spec, (physical.Device, MetaDevice)):
        return spec
    return _named(spec).physical


def holding(spec):
    """As :func:`resolve`, for PyTorch's old constructors: they make tensors that hold values, also in a block of the device meta."""
    found = resolve(spec)
    return found if spec is not None or found is not META else physical.default_device()


_names: dict = {}


def _named(spec):
    got = _names.get(spec)
    if got is None:
        got = _names[spec] = device(spec)
    return got


def set_default_device(device):
    """Make ``device`` the device of new tensors; None returns to CLNN_DEVICE or the best ranked one.

    Example:
        >>> clnn.set_default_device("meta")
        >>> clnn.ones(2).device
        device(type='meta')
        >>> clnn.set_default_device(None)
    """
    _public.clear()
    if device is not None and resolve(device) is META:
        _context[:] = [public(META)]
        return
    _context[:] = []
    physical.set_default_device(None if device is None else resolve(device))


def get_default_device() -> device:
    """The device on which tensors are made when none is named."""
    return public(resolve(None))


def devices() -> list:
    """The usable devices, best first.

    Example:
        >>> len(clnn.devices()) > 0
        True
    """
    return [public(d) for d in physical.list_devices()]


def synchronize(spec=None) -> None:
    """Launch what is still only recorded, wait until a device (default: all opened ones) has finished, and raise errors that kernels reported."""
    from ..graph.node import realize_all
    from ..runtime import drivers
    wanted = list(drivers.opened) if spec is None else [resolve(spec)]
    for d in wanted:
        realize_all(d)
        d.synchronize()
