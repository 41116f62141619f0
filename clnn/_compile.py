"""``clnn.compile``: run a function once, keep the launches it made, and replay them.

The recording is valid for inputs of the same shapes, dtypes, devices and flags, and for the same modes; each such combination gets a recording of
its own. What lived before the call (parameters, buffers, optimizer state) keeps its memory, so replays and ordinary code can alternate.
"""
from __future__ import annotations

import functools
import gc
import sys
import warnings
import weakref
from collections import Counter

from ._results import keeps_tensors, map_tensors
from ._tensor import tape
from ._tensor.backward import grad as grad_of
from ._tensor.device import resolve
from ._tensor.grad_mode import state
from ._tensor.tensor import Tensor, edge, make, make_view
from .compiler import _inside, _now
from .graph.node import Storage, constants, held
from .runtime.capture import Recording

_refcount = sys.getrefcount
WARMUP = 2              # ordinary runs first: they build kernels, fill caches and create optimizer state
MAX_RECORDINGS = 32


def _flatten(value, leaves):
    """Tensors go to ``leaves``; the returned key describes everything else."""
    if isinstance(value, Tensor):
        leaves.append(value)
        return ("T", value.shape, value.dtype, id(value._storage.device), value._rg)
    if isinstance(value, (list, tuple)):
        return (type(value).__name__, *[_flatten(v, leaves) for v in value])
    if isinstance(value, dict):
        return ("dict", *[(k, _flatten(v, leaves)) for k, v in value.items()])
    try:
        hash(value)
    except TypeError:
        return ("object", id(value), keeps_tensors(value))
    return ("V", type(value), value, keeps_tensors(value))


def _hidden(key):
    """Whether a key of :func:`_flatten` tells of an object that keeps tensors: a recording would go on with those it found there."""
    if key.__class__ is not tuple or not key:
        return False
    return key[0] in ("object", "V") and key[-1] is True or key[0] not in ("T", "V", "object") and any(map(_hidden, key))


def _swap(value, swapped):
    """``value`` with tensors exchanged by identity."""
    if isinstance(value, Tensor):
        return swapped.get(id(value), value)
    if isinstance(value, (list, tuple)):
        items = [_swap(v, swapped) for v in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return map_tensors(lambda t: swapped.get(id(t), t), value) if isinstance(value, dict) else value


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
    """One recording with its inputs, its outputs and the memory that it found.

    ``fn`` is called on ``args`` whose tensors are ``inputs``. When outputs require gradients, the tape of the recorded run is kept: its backward is
    recorded at its first use and replayed like the forward pass.
    """

    def __init__(self, fn, args, kwargs, inputs, device, follows=None):
        self.device, self.recording = device, Recording(device, follows)
        for t in inputs:
            t._storage.buffer()
        for st in _live_storages(device):
            if st.node is not None:
                st.buffer()
        self._separate(device)
        self.addresses = [t._storage.buf.int_ptr for t in inputs]
        self.inputs = inputs                                       # kept: their addresses must not come to mean other memory
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
            if self.recording.failed is None:
                self._finish(homes)
        finally:
            held.clear()

    @staticmethod
    def _separate(device):
        """Storages that share a buffer by value get their own, so that each has a home that only it writes."""
        seen = set(map(id, constants.values()))
        for st in _live_storages(device):
            if st.buf is None:
                continue
            if id(st.buf) in seen:
                fresh = device.alloc(st.nbytes)
                device.copy(st.buf, fresh, st.nbytes)
                st.buf = fresh
            seen.add(id(st.buf))

    @staticmethod
    def _settle(device, homes):
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
        self.outs = []
        outs = []
        map_tensors(lambda t: outs.append(t) or t, self.result)
        moving, kept = self._moving(outs), {id(ref()) for ref, _ in self.homes}
        given = {id(t._storage): k for k, t in enumerate(self.inputs)}
        for t in outs:
            st = t._storage
            self.outs.append((t, given[id(st)] if id(st) in given else None if id(st) in kept else self.recording.handle(st.buf)))
        self.moving = {id(t): (handle.int_ptr, handle.size) for t, handle in self.outs if id(t) in moving}
        # a graph that backward() already walked is finished business; another one can be walked later
        self.tracked = [t for t in outs if t._grad_fn is not None and not getattr(t._grad_fn, "freed", False)]
        self.backward, self.walk = None, None
        if self.tracked:
            self.leaves = _leaves(self.tracked)
        self.recording.finish()
        self.memory = self.recording.memory

    def _moving(self, outs):
        """The ids of the outputs that replays write to fresh memory at once: those that nothing but the result refers to."""
        times = Counter([t._storage.buf.int_ptr for t in outs])
        launches = self.recording.launches_by_address()
        found = set()
        for t in outs:
            st, address = t._storage, t._storage.buf.int_ptr
            # the result, the list, the loop and the call; the tensor, the loop and the call; the storage and the call
            alone = _refcount(t) <= 4 and _refcount(st) <= 3 and _refcount(st.buf) <= 2
            # binding a kernel to other memory takes less than a copy does, unless many kernels use it
            if alone and times[address] == 1 and address not in self.addresses and 0 < launches.get(address, 0) <= 8 + (st.nbytes >> 14):
                found.add(id(t))
        return found

    def busy(self):
        """True while a forward replay waits for its backward: its saved values must not be overwritten."""
        walk = self.walk() if self.walk is not None else None
        return walk is not None and not walk.freed

    def replay(self, inputs, refresh=True):
        """Run the recording on new inputs; outputs are fresh tensors."""
        device, recording = self.device, self.recording
        for ref, home in self.homes:
            st = ref()
            if st is not None and (st.node is not None or st.buf is not home):
                device.copy(st.buffer(), home, st.nbytes)          # somebody replaced the value meanwhile: bring it home
                st.buf = home
        self.last = [t._storage.buffer() for t in inputs]
        for address, buf in zip(self.addresses, self.last):
            recording.bind(address, buf)
        fresh = {key: device.alloc(nbytes) for key, (_, nbytes) in self.moving.items()}
        recording.replay(refresh, [(address, fresh[key]) for key, (address, _) in self.moving.items()])
        walk = None
        if self.tracked:
            walk = Replayed(self, inputs)
            self.walk = weakref.ref(walk)
        outs = iter(self.outs)
        return map_tensors(lambda t: self._renewed(*next(outs), walk, fresh, inputs), self.result)

    def _renewed(self, t, where, walk, fresh, inputs):
        """What stands for the recorded output ``t`` after a replay. ``where`` its value is: None in ``t`` itself, the number of an input, or a handle of
        the recorded memory, for which there may be a buffer in ``fresh``."""
        if where is None:
            return t
        if where.__class__ is int:
            got = _part(inputs[where], t)
        else:
            buf = fresh.get(id(t))
            if buf is None:
                buf = self.device.alloc(t._storage.nbytes)
                self.device.copy(where, buf, t._storage.nbytes)
            got = _on(buf, t)
        for nr, tracked in enumerate(self.tracked):
            if tracked is t:
                got._grad_fn, got._out_nr, got._rg = walk, nr, True
        return got

    def gradients(self, grads):
        """Gradients of the leaves for output gradients ``grads``, by the recorded backward pass."""
        seeds = [g.contiguous() if g is not None else t.detach().new_zeros(t.shape) for g, t in zip(grads, self.tracked)]
        if self.backward is None:
            def walk(*seeds):
                return grad_of(self.tracked, self.leaves, list(seeds), retain_graph=True, allow_unused=True)
            seeds = [s + 0 for s in seeds]                          # memory of its own: it is rebound at every replay
            self.backward = Captured(walk, seeds, {}, seeds, self.device, self.recording)
            if self.backward.recording.failed is not None:
                raise RuntimeError(f"clnn.compile: the backward pass cannot be recorded: {self.backward.recording.failed}")
        for address, buf in zip(self.addresses, self.last):         # inputs that were saved for backward
            self.backward.recording.bind(address, buf)
        return self.backward.replay(seeds, refresh=False)


def _on(buf, t):
    """A tensor like ``t`` on memory of its own."""
    st = t._storage
    got = make(Storage(st.device, st.nbytes, buf), t.shape, t.dtype, t._numel)
    if not t._dense:
        got._strides, got._offset, got._dense = t._strides, t._offset, False
    return got


def _part(given, t):
    """The input ``given``, or the part of its memory that ``t`` is of the recorded one's."""
    if (given.shape, given._strides, given._offset, given.dtype) == (t.shape, t._strides, t._offset, t.dtype):
        return given
    return make_view(given, t.shape, t._strides, t._offset, t.dtype)


def _leaves(outputs):
    """Every leaf that the graph of ``outputs`` ends in."""
    found, seen, stack = [], set(), [t._grad_fn for t in outputs]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if isinstance(node, tape.AccumulateGrad):
            found.append(node.variable)
        stack.extend(e[0] for e in node.edges if e is not None)
    return found


class Replayed(tape.Node):
    """The tape entry of one replayed forward pass."""

    __slots__ = ("captured", "freed")

    def __init__(self, captured, inputs):
        proxies = {id(p): t for p, t in zip(captured.proxies, inputs)}
        super().__init__([edge(proxies.get(id(leaf), leaf)) for leaf in captured.leaves], len(captured.tracked))
        self.captured, self.freed = captured, False

    def name(self):
        return "CompiledFunctionBackward"

    def release(self):
        self.freed = True

    def apply(self, grads, needed):
        if self.freed:
            raise RuntimeError("Trying to backward through a compiled function a second time; its saved values may have been overwritten")
        return self.captured.gradients(grads)


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
        return (state.grad, state.inference, state.autocast and (state.autocast.low, state.autocast.kind), tuple([m.training for m in self._watched]))

    def __call__(self, *args, **kwargs):
        stance = _now["stance"]
        if stance == "force_eager":
            return self._fn(*args, **kwargs)
        inputs = []
        try:
            key = (_flatten(args, inputs), _flatten(kwargs, inputs) if kwargs else (), self._modes())
        except RecursionError:
            key = None
        got = self._recordings.get(key)
        if got is not None and not (got.tracked and got.busy()):
            return got.replay(inputs)
        with _inside():
            return self._fn(*args, **kwargs) if key is None or got is not None else self._unrecorded(args, kwargs, stance, key, inputs)

    def _unrecorded(self, args, kwargs, stance, key, inputs):
        """A call that no recording serves yet."""
        if stance.endswith("on_recompile") and key not in self._runs:
            return self._unseen(stance, args, kwargs)
        if key in self.fallbacks:
            return self._fn(*args, **kwargs)
        runs = self._runs[key] = self._runs.get(key, 0) + 1
        device = inputs[0]._storage.device if inputs else resolve(None)
        if runs <= WARMUP:
            return self._fn(*args, **kwargs)
        if len(self._recordings) >= MAX_RECORDINGS:
            return self._fall_back(key, "too many different inputs were seen", args, kwargs)
        if _hidden(key[:2]):
            return self._fall_back(key, "an argument is an object that keeps tensors", args, kwargs)
        if device.kind == "meta" or any(t._storage.device is not device or not t._dense or t._base is not None and t._base._rg
                                        for t in inputs):                   # a view of a variable; detached ones have no history
            return self._fall_back(key, "inputs lie on several devices or are views", args, kwargs)
        proxies = [t.detach().requires_grad_() if t._rg else t for t in inputs]
        swapped = {id(t): p for t, p in zip(inputs, proxies)}
        captured = Captured(self._fn, _swap(args, swapped), _swap(kwargs, swapped), proxies, device)
        captured.proxies = proxies
        if captured.recording.failed is not None:
            self.fallbacks[key] = captured.recording.failed
            warnings.warn(f"clnn.compile: {getattr(self._fn, '__name__', self._fn)} runs without a recording: {captured.recording.failed}",
                          stacklevel=2)
            return captured.result if not any(t._rg for t in inputs) else self._fn(*args, **kwargs)
        self._recordings[key] = captured
        return captured.replay(inputs, refresh=False)

    def _unseen(self, stance, args, kwargs):
        if stance == "fail_on_recompile":
            raise RuntimeError(f"Detected recompile of {getattr(self._fn, '__name__', self._fn)} while the stance is 'fail_on_recompile': no call before had "
                               "inputs of these shapes, dtypes and modes")
        with _inside(-1):
            return self._fn(*args, **kwargs)

    def _fall_back(self, key, reason, args, kwargs):
        self.fallbacks[key] = reason
        return self._fn(*args, **kwargs)

    def __get__(self, obj, cls=None):
        return self if obj is None else functools.partial(self, obj)


def compile(model=None, *, fullgraph=False, dynamic=None, backend="replay", mode=None, options=None, disable=False):
    """Record the launches of a function, Module or training step, and replay them at later calls with equal shapes and modes.

    Args:
        model: a function, a Module, or None to use it as a decorator with arguments.
        backend: a name of PyTorch's or a function: all mean the recorder. RuntimeError for a name that PyTorch does not know, and for such a ``mode``.
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
    _check_options(backend, mode, options)
    if model is None:
        return functools.partial(compile, disable=disable)
    if disable:
        return model
    from .nn import Module
    if isinstance(model, Module):
        return optimized_module()(model)
    if not callable(model):
        raise AssertionError(f"A callable function is expected, but {type(model)} is provided.")
    return Compiled(model)


class InvalidBackend(RuntimeError):
    """The name of a backend that does not exist."""

    def __init__(self, name):
        super().__init__(f"Invalid backend: {name!r}, see `torch._dynamo.list_backends()` for available backends.".replace("torch.", "clnn."))


BACKENDS = frozenset("""replay inductor cudagraphs openxla tvm eager eager_noexcept eager_debug pre_dispatch_eager aot_eager aot_eager_decomp_partition
                        aot_eager_default_partitioner aot_ts torchxla_trace_once onnxrt ts""".split())
MODES = ("default", "lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")


def _check_options(backend, mode, options):
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    if isinstance(backend, str) and backend not in BACKENDS:
        raise InvalidBackend(backend)
    if mode is not None and mode not in MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(MODES)}")


@functools.cache
def optimized_module():
    """The class of compiled modules."""
    from .nn import Module

    class OptimizedModule(Module):
        """The module with a recorded forward pass."""

        def __init__(self, module, dynamo_ctx=None):
            super().__init__()
            self._orig_mod, self.dynamo_ctx = module, dynamo_ctx
            object.__setattr__(self, "_compiled", Compiled(module))

        def forward(self, *args, **kwargs):
            return self._compiled(*args, **kwargs)

        def __getattr__(self, name):
            try:
                return super().__getattr__(name)
            except AttributeError:
                return getattr(self.__dict__["_modules"]["_orig_mod"], name)

        def __setattr__(self, name, value):
            """A program that keeps something in a compiled module finds it in the module."""
            if "_compiled" not in self.__dict__ or name in self.__dict__ or name == "_orig_mod" or hasattr(type(self), name):
                super().__setattr__(name, value)
            else:
                setattr(self._orig_mod, name, value)

        def __delattr__(self, name):
            super().__delattr__(name) if name in self.__dict__ else delattr(self._orig_mod, name)

        def train(self, mode=True):
            self._orig_mod.train(mode)
            return super().train(mode)
    return OptimizedModule
