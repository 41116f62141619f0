"""``clnn.compile``: run a function once, keep the launches it made, and replay them.

The recording is valid for inputs of the same shapes, dtypes, devices and flags, and for the same modes; each such combination gets a recording of
its own. What lived before the call (parameters, buffers, optimizer state) keeps its memory, so replays and ordinary code can alternate.
"""
from __future__ import annotations

import functools
import gc
import warnings
import weakref

from ._tensor.device import resolve
from ._tensor.grad_mode import state
from ._tensor.tensor import Tensor, make
from .graph import fuse
from .graph.node import Storage, held
from .runtime.capture import Recording

WARMUP = 2              # ordinary runs first: they build kernels, fill caches and create optimizer state
MAX_RECORDINGS = 32


class Fallback(Exception):
    """Why a function cannot be replayed."""


def _flatten(value, leaves):
    """Tensors go to ``leaves``; the returned key describes everything else."""
    if isinstance(value, Tensor):
        leaves.append(value)
        return ("T", tuple(value.shape), value.dtype, id(value._storage.device), value._rg)
    if isinstance(value, (list, tuple)):
        return (type(value).__name__, *[_flatten(v, leaves) for v in value])
    if isinstance(value, dict):
        return ("dict", *[(k, _flatten(v, leaves)) for k, v in value.items()])
    try:
        hash(value)
    except TypeError:
        return ("object", id(value))
    return ("V", type(value), value)


def _modules_of(fn):
    """Modules whose train/eval flags the recording depends on: arguments' owner, closure and default globals by name."""
    from .nn import Module
    found, seen = [], set()

    def add(value):
        if isinstance(value, Module) and id(value) not in seen:
            seen.add(id(value))
            found.append(value)
    target = getattr(fn, "__self__", None)
    add(target)
    add(fn)
    code = getattr(fn, "__code__", None)
    for cell in getattr(fn, "__closure__", None) or ():
        try:
            add(cell.cell_contents)
        except ValueError:
            pass
    names = code.co_names if code is not None else ()
    for name in names:
        add(getattr(fn, "__globals__", {}).get(name))
    return found


def _live_storages(device):
    return [o for o in gc.get_objects() if type(o) is Storage and o.device is device]


class Captured:
    """One recording with its inputs, its outputs and the memory that it found."""

    def __init__(self, fn, args, kwargs, inputs, device):
        self.device, self.recording = device, Recording(device)
        self.inputs = [self._input(t) for t in inputs]
        for st in _live_storages(device):
            if st.node is not None:
                st.buffer()
        self._separate(device)
        before = [(weakref.ref(st), st.buf) for st in _live_storages(device) if st.buf is not None]
        held.clear()
        held.update({id(buf): buf for _, buf in before})
        homes = [(ref, id(buf)) for ref, buf in before]
        del before
        try:
            with self.recording:
                self.result = fn(*args, **kwargs)
                if self.recording.failed is None:
                    self._settle(device, homes)
            if self.recording.failed is not None:
                return
            self._finish(homes)
        finally:
            held.clear()

    @staticmethod
    def _input(t):
        t._storage.buffer()
        return t._storage.buf.int_ptr, t._storage.buf

    def _separate(self, device):
        """Storages that share a buffer by value get their own, so that each has a home that only it writes."""
        seen = set()
        for st in _live_storages(device):
            if st.buf is None:
                continue
            if id(st.buf) in seen:
                fresh = device.alloc(st.nbytes)
                device.copy(st.buf, fresh, st.nbytes)
                st.buf = fresh
            seen.add(id(st.buf))

    def _settle(self, device, homes):
        """Compute what is pending, and bring values that moved back to where they lived before."""
        for st in _live_storages(device):
            if st.node is not None:
                st.buffer()
        for ref, home in homes:
            st = ref()
            if st is not None and id(st.buf) != home:
                device.copy(st.buf, held[home], st.nbytes)
                st.buf = held[home]

    def _finish(self, homes):
        self.homes = [(ref, held[home]) for ref, home in homes if ref() is not None and held[home].int_ptr in self.recording.raw]
        outs = []
        self.spec = _flatten(self.result, outs)
        self.outs = []
        for t in outs:
            if t._grad_fn is not None and not getattr(t._grad_fn, "freed", False):      # freed: backward already went through it
                self.recording.failed = "an output requires gradients: compile the whole step with backward(), or call it under no_grad()"
                break
            kept = any(ref() is t._storage for ref, _ in self.homes)
            self.outs.append((t, None if kept else self.recording.handle(t._storage.buf)))
        self.recording.finish()
        self.memory = self.recording.memory

    def replay(self, inputs, refresh=True):
        """Run the recording on new inputs; outputs are fresh tensors."""
        device, recording = self.device, self.recording
        for ref, home in self.homes:
            st = ref()
            if st is not None and (st.node is not None or st.buf is not home):
                device.copy(st.buffer(), home, st.nbytes)          # somebody replaced the value meanwhile: bring it home
                st.buf = home
        for (address, _), t in zip(self.inputs, inputs):
            recording.bind(address, t._storage.buffer())
        recording.replay(refresh)
        return self._rebuild(self.result, iter(self.outs))

    def _rebuild(self, value, outs):
        if isinstance(value, Tensor):
            t, handle = next(outs)
            if handle is None:
                return t
            st = t._storage
            buf = self.device.alloc(st.nbytes)
            self.device.copy(handle, buf, st.nbytes)
            got = make(Storage(self.device, st.nbytes, buf), t.shape, t.dtype, t._numel)
            if not t._dense:
                got._strides, got._offset, got._dense = t._strides, t._offset, False
            return got
        if isinstance(value, (list, tuple)):
            items = [self._rebuild(v, outs) for v in value]
            return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
        if isinstance(value, dict):
            return {k: self._rebuild(v, outs) for k, v in value.items()}
        return value


class Compiled:
    """A callable that records ``fn`` per combination of inputs and modes, and replays.

    ``fallbacks`` maps each combination that runs ordinarily to the reason.
    """

    def __init__(self, fn, name=None):
        self._fn = fn
        self._runs, self._recordings, self.fallbacks = {}, {}, {}
        self._watched = None
        functools.update_wrapper(self, fn, updated=()) if hasattr(fn, "__name__") else None

    def _modes(self):
        if self._watched is None:
            self._watched = [m for root in _modules_of(self._fn) for m in root.modules()]
        return (state.grad, state.inference, state.autocast is not None, tuple([m.training for m in self._watched]))

    def __call__(self, *args, **kwargs):
        inputs = []
        try:
            key = (_flatten(args, inputs), _flatten(kwargs, inputs), self._modes())
        except RecursionError:
            return self._fn(*args, **kwargs)
        got = self._recordings.get(key)
        if got is not None:
            return got.replay([t if t._dense else t.contiguous() for t in inputs])
        if key in self.fallbacks:
            return self._fn(*args, **kwargs)
        runs = self._runs[key] = self._runs.get(key, 0) + 1
        device = inputs[0]._storage.device if inputs else resolve(None)
        if runs <= WARMUP:
            return self._fn(*args, **kwargs)
        if len(self._recordings) >= MAX_RECORDINGS:
            return self._fall_back(key, "too many different inputs were seen", args, kwargs)
        if device.kind == "meta" or any(t._storage.device is not device or not t._dense or t._base is not None and t._base._rg for t in inputs):
            return self._fall_back(key, "inputs lie on several devices or are views", args, kwargs)
        captured = Captured(self._fn, args, kwargs, inputs, device)
        if captured.recording.failed is not None:
            self.fallbacks[key] = captured.recording.failed
            warnings.warn(f"clnn.compile: {getattr(self._fn, '__name__', self._fn)} runs without a recording: {captured.recording.failed}",
                          stacklevel=2)
            if captured.recording.failed.startswith("an output requires"):
                captured.recording.replay(refresh=False)
            return captured.result
        self._recordings[key] = captured
        return captured.replay(inputs, refresh=False)

    def _fall_back(self, key, reason, args, kwargs):
        self.fallbacks[key] = reason
        return self._fn(*args, **kwargs)

    def __get__(self, obj, cls=None):
        return self if obj is None else functools.partial(self, obj)


def compile(model=None, *, fullgraph=False, dynamic=None, backend="replay", mode=None, options=None, disable=False):
    """Record the launches of a function, Module or training step, and replay them at later calls with equal shapes and modes.

    Args:
        model: a function, a Module, or None to use it as a decorator with arguments.
        disable: return ``model`` unchanged. The other arguments are accepted for PyTorch's sake.

    Random numbers, learning rates and optimizer step counts advance at every replay as they would without. A function that reads a value on the
    host (``item()``, ``print``, ``if tensor``) cannot be replayed; it runs as usual, and a warning gives the reason.

    Example:
        >>> @clnn.compile
        ... def step(x):
        ...     return (x * 2 + 1).sum()
        >>> [float(step(clnn.ones(3))) for _ in range(4)]
        [9.0, 9.0, 9.0, 9.0]
    """
    if model is None:
        return functools.partial(compile, disable=disable)
    if disable:
        return model
    from .nn import Module
    if isinstance(model, Module):
        return _compiled_module(model)
    return Compiled(model)


def _compiled_module(module):
    from .nn import Module

    class OptimizedModule(Module):
        """The module with a recorded forward pass."""

        def __init__(self):
            super().__init__()
            self._orig_mod = module
            object.__setattr__(self, "_compiled", Compiled(module))

        def forward(self, *args, **kwargs):
            return self._compiled(*args, **kwargs)

        def __getattr__(self, name):
            try:
                return super().__getattr__(name)
            except AttributeError:
                return getattr(self.__dict__["_modules"]["_orig_mod"], name)

        def train(self, mode=True):
            self._orig_mod.train(mode)
            return super().train(mode)
    return OptimizedModule()
