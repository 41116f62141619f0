"""``clnn.compile``: run a function once, keep the launches it made, and replay them.

The recording is valid for inputs of the same shapes, dtypes, devices and flags, and for the same modes and values that ``_guards`` watches; each such
combination gets a recording of its own. What lived before the call (parameters, buffers, optimizer state) keeps its memory, so replays and ordinary code can alternate.
"""
from __future__ import annotations

import functools
import gc
import sys
import warnings
import weakref
from collections import Counter

from ._guards import Watch, flatten, hidden
from ._results import map_tensors
from ._tensor import tape
from ._tensor.backward import grad as grad_of
from ._tensor.device import resolve
from ._tensor.tensor import Tensor, edge, make, make_view
from .compiler import _inside, _now
from .core.layout import contiguous_format
from .graph.node import Storage, constants, held
from .runtime.capture import Recording

_refcount = sys.getrefcount
WARMUP = 2              # ordinary runs first: they build kernels, fill caches and create optimizer state
MAX_RECORDINGS = 32
MAX_KINDS = 4096        # kinds of call that are remembered


def _swap(value, swapped):
    """``value`` with tensors exchanged by identity."""
    if isinstance(value, Tensor):
        return swapped.get(id(value), value)
    if isinstance(value, (list, tuple)):
        items = [_swap(v, swapped) for v in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return map_tensors(lambda t: swapped.get(id(t), t), value) if isinstance(value, dict) else value


def _live_storages(device):
    return [o for o in gc.get_objects() if type(o) is Storage and o.device is device]


class Stale(Exception):
    """A tensor that a recording works on is gone: the program has replaced it by another one."""


class Captured:
    """One recording with its inputs, its outputs and the memory that it found.

    ``fn`` is called on ``args`` whose tensors are ``inputs``. When outputs require gradients, the tape of the recorded run is kept: its backward is
    recorded at its first use and replayed like the forward pass.
    """

    def __init__(self, fn, args, kwargs, inputs, device, forward=None):
        self.device, self.recording = device, Recording(device, forward and forward.recording)
        for t in inputs:
            t._storage.buffer()
        for st in _live_storages(device):
            if st.node is not None:
                st.buffer()
        self._separate(device, forward.made() if forward else ())
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
                    if any(ref() is None and held[home].int_ptr in self.recording.raw for ref, home in homes):
                        self.recording.abandon("it replaces a tensor that it reads by another one")
            if self.recording.failed is None:
                self._finish(homes)
        finally:
            held.clear()

    @staticmethod
    def _separate(device, shared):
        """Storages that share a buffer by value get their own, so that each has a home that only it writes. ``shared``: addresses of what stays as it is."""
        seen = set(map(id, constants.values()))
        for st in _live_storages(device):
            if st.buf is None:
                continue
            if id(st.buf) in seen and st.buf.int_ptr not in shared:
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
        self.tracked = [t for t in outs if t._grad_fn is not None and not _walked(t)]
        self.backward, self.walk = None, None
        if self.tracked:
            self.leaves = [node.variable for node in _graph(self.tracked) if isinstance(node, tape.AccumulateGrad)]
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

    def made(self):
        """Addresses of the memory that the recording itself fills, where its backward pass finds what was saved."""
        return self.recording.raw.keys() - {home.int_ptr for _, home in self.homes} - set(self.addresses)

    def busy(self):
        """True while a forward replay waits for its backward: its saved values must not be overwritten."""
        if not self.tracked:
            return False
        walk = self.walk() if self.walk is not None else None
        return walk is not None and not walk.freed

    def replay(self, inputs, refresh=True):
        """Run the recording on new inputs; outputs are fresh tensors."""
        device, recording = self.device, self.recording
        if refresh and not all(check() for check in recording.checks):
            raise Stale
        for ref, home in self.homes:
            st = ref()
            if st is None:
                raise Stale
            if st.node is not None or st.buf is not home:
                device.copy(st.buffer(), home, st.nbytes)          # somebody replaced the value meanwhile: bring it home
                st.buf = home
        self.last = [_whole(t)._storage.buffer() for t in inputs]
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
            self.backward = Captured(walk, seeds, {}, seeds, self.device, self)
            if self.backward.recording.failed is not None:
                self.refused(f"in its backward pass, {self.backward.recording.failed}")
                grads, self.backward = self.backward.result, None
                there = all(t._storage.buf is buf for t, buf in zip(self.inputs, self.last))     # then the run that failed as a recording did it
                return grads if there else self._unrecorded(walk, seeds)
        for address, buf in zip(self.addresses, self.last):         # inputs that were saved for backward
            self.backward.recording.bind(address, buf)
        try:
            return self.backward.replay(seeds, refresh=False)
        except Stale:
            self.backward = None
            return self.gradients(grads)


    def _unrecorded(self, walk, seeds):
        """The backward pass of the last call where it cannot be recorded: the inputs of that call lie where the recorded ones do meanwhile."""
        storages = [t._storage for t in self.inputs]
        own = [st.buffer() for st in storages]
        try:
            for st, buf in zip(storages, self.last):
                st.buf = buf
            grads = walk(*seeds)
            for g in grads:
                if g is not None:
                    g._storage.buffer()
            return grads
        finally:
            for st, buf in zip(storages, own):
                st.buf = buf


def _on(buf, t):
    """A tensor like ``t`` on memory of its own."""
    st = t._storage
    got = make(Storage(st.device, st.nbytes, buf), t.shape, t.dtype, t._numel)
    if not t._dense:
        got._strides, got._offset, got._dense = t._strides, t._offset, False
    return got


def _whole(t):
    """The input, or a copy on memory of its own of one that is a part of other memory."""
    return t if t._dense else t.detach().clone(memory_format=contiguous_format)


def _stand_in(t):
    """What a recording takes for an input: a variable of its own where gradients are wanted, to the gradient that there is."""
    whole = _whole(t)
    if not t._rg:
        return whole
    proxy = whole.detach().requires_grad_()
    proxy._grad = t._grad
    return proxy


def _without_recording(result, proxies, inputs):
    """The result of a run that cannot be replayed, with the inputs in the place of what stood for them, in its graph, too."""
    result, grads = result
    original = {id(p): t for p, t in zip(proxies, inputs)}
    outs = []
    result = map_tensors(lambda t: outs.append(t) or original.get(id(t), t), result)
    for node in _graph([t for t in outs if t._grad_fn is not None]):
        node.edges = [edge(original.get(id(e[0].variable), e[0].variable)) if e is not None and isinstance(e[0], tape.AccumulateGrad) else e
                      for e in node.edges]
    for t, grad in zip(inputs, grads):
        if grad is not None:
            t._grad = grad
    return result


def _obstacle(inputs, versions, result):
    """Why a run cannot be recorded that found the inputs at these versions, or None. Recordings work on copies of inputs that are parts of other
    memory, and on stand-ins without a history of those that gradients are wanted of."""
    outs = set()
    map_tensors(lambda t: outs.add(t._storage) or t, result)
    for t, version in zip(inputs, versions):
        if not t._dense and ((t._ver or t._storage).version != version or t._storage in outs):
            return "it writes to or returns an input that is a part of other memory"
        if t._rg and _walked(t):
            return "its backward pass goes on beyond an input"
    return None


def _part(given, t):
    """The input ``given``, or the part of its memory that ``t`` is of the recorded one's."""
    if (given.shape, given._strides, given._offset, given.dtype) == (t.shape, t._strides, t._offset, t.dtype):
        return given
    return make_view(given, t.shape, t._strides, t._offset, t.dtype)


def _walked(t):
    """Whether a backward pass has used up the graph of ``t``, in part at least."""
    return t._grad_fn is not None and any(getattr(node, "freed", False) for node in _graph([t]))


def _graph(outputs):
    """Every entry of the tape that the graph of ``outputs`` has."""
    seen, stack = {}, [t._grad_fn for t in outputs]
    while stack:
        node = stack.pop()
        if node not in seen:
            seen[node] = None
            stack.extend(e[0] for e in node.edges if e is not None)
    return seen


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
        self._runs, self._recordings, self._dropped, self.fallbacks = {}, {}, {}, {}
        self._watch = Watch(fn)
        functools.update_wrapper(self, fn, updated=()) if hasattr(fn, "__name__") else None

    def __call__(self, *args, **kwargs):
        stance = _now["stance"]
        if stance == "force_eager" or _now["whole"]:            # a part of another compiled function belongs to the recording of that
            return self._fn(*args, **kwargs)
        inputs = []
        try:
            modes = self._watch.modes()
            names = self._watch.names
            key = (flatten(args, inputs, names), flatten(kwargs, inputs, names) if kwargs else (), modes)
        except RecursionError:
            key = None
        for got in self._recordings.get(key, ()):
            if not got.busy():
                try:
                    return self._replay(got, inputs)
                except Stale:
                    self._drop(key)
                    break
        recordings = self._recordings.get(key)
        with _inside():
            if recordings and len(recordings) < MAX_RECORDINGS and key not in self.fallbacks:
                return self._record(args, kwargs, key, inputs, recordings[0].device)
            return self._fn(*args, **kwargs) if key is None or recordings else self._unrecorded(args, kwargs, stance, key, inputs)

    def _unrecorded(self, args, kwargs, stance, key, inputs):
        """A call that no recording serves yet."""
        if stance.endswith("on_recompile") and key not in self._runs:
            return self._unseen(stance, args, kwargs)
        if key in self.fallbacks:
            return self._fn(*args, **kwargs)
        if len(self._runs) > MAX_KINDS:         # a program that gives ever new values must not fill the memory
            self._runs.clear()
            self.fallbacks.clear()
        runs = self._runs[key] = self._runs.get(key, 0) + 1
        device = inputs[0]._storage.device if inputs else resolve(None)
        if runs <= WARMUP:
            return self._ordinarily(args, kwargs, key, inputs)
        if len(self._recordings) >= MAX_RECORDINGS:
            return self._fall_back(key, "too many different inputs were seen", args, kwargs)
        if hidden(key[:2]):
            return self._fall_back(key, "an argument is an object that keeps tensors", args, kwargs)
        if device.kind == "meta" or any(t._storage.device is not device or t._base is not None and t._base._rg for t in inputs):
            return self._fall_back(key, "inputs lie on several devices or are views of a variable", args, kwargs)
        return self._record(args, kwargs, key, inputs, device)

    def _ordinarily(self, args, kwargs, key, inputs):
        """A run without a recording, which shows what one would have to watch and whether there can be one."""
        versions = [(t._ver or t._storage).version for t in inputs]
        from .nn.modules._hooks import called
        with called() as found, _inside(what="whole"):
            result = self._fn(*args, **kwargs)
        why = _obstacle(inputs, versions, result)
        if self._watch.modes() != key[2]:
            why = "it switches modules between training and evaluation, or another mode"
        if self._watch.hooked():
            why = "hooks of its modules are Python code"
        if why:
            self.fallbacks[key] = why
        if self._watch.add(found.values()):                        # calls are told apart by the flags of these, too
            self._runs[(*key[:2], self._watch.modes())] = self._runs.pop(key, 1)
        return result

    def _record(self, args, kwargs, key, inputs, device):
        """A call that is recorded: the first of its kind that is, or one while the results of earlier ones wait for their backward passes."""
        proxies = list(map(_stand_in, inputs))
        swapped = {id(t): p for t, p in zip(inputs, proxies)}

        def run(*args, **kwargs):
            result = self._fn(*args, **kwargs)
            return result, [p._grad if p._rg and t._grad is None else None for p, t in zip(proxies, inputs)]
        with _inside(what="whole"):
            captured = Captured(run, _swap(args, swapped), _swap(kwargs, swapped), proxies, device)
        captured.proxies, captured.refused = proxies, functools.partial(self._refuse, key)
        if captured.recording.failed is not None:
            self._refuse(key, captured.recording.failed)
            return _without_recording(captured.result, proxies, inputs)
        self._recordings.setdefault(key, []).append(captured)
        return self._replay(captured, inputs, refresh=False)

    def _refuse(self, key, why):
        """Calls of this kind run without a recording from now on."""
        self._recordings.pop(key, None)
        self.fallbacks[key] = why
        warnings.warn(f"clnn.compile: {getattr(self._fn, '__name__', self._fn)} runs without a recording: {why}", stacklevel=3)

    def _drop(self, key):
        """Forget the recordings of a kind of call; a program that goes on to replace what they work on does without."""
        self._dropped[key] = self._dropped.get(key, 0) + 1
        self._recordings.pop(key)
        if self._dropped[key] >= WARMUP:
            self.fallbacks[key] = "tensors that it works on are replaced between the calls"

    @staticmethod
    def _replay(captured, inputs, refresh=True):
        result, grads = captured.replay(inputs, refresh)
        for t, grad in zip(inputs, grads):
            if grad is not None:                                   # the first that the input gets
                t._grad = grad
        return result

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
        backend: a name of PyTorch's: all mean the recorder. Or a function that gets the traced graph (a ``clnn.fx.GraphModule`` of the tensors among the
            arguments, which returns a tuple) and example inputs, and returns what runs in its place. RuntimeError for an unknown name or ``mode``.
        disable: return ``model`` unchanged. The other arguments are accepted for PyTorch's sake.

    Random numbers, learning rates and optimizer step counts advance at every replay as they would without. Calls are told apart by the shapes and
    dtypes of tensors, the values of other arguments, the modes and plain attributes of modules, and plain values of closures and globals; each kind
    gets a recording of its own. A function that reads a value on the host (``item()``, ``print``, ``if tensor``) cannot be replayed; it runs as usual,
    and a warning gives the reason. So do functions whose modules have hooks, and those that replace the tensors they work on (``fallbacks`` tells why).
    Other things that Python does, such as appending to a list, happen in ordinary runs and while recording only.

    Example:
        >>> @clnn.compile
        ... def step(x):
        ...     return (x * 2 + 1).sum()
        >>> [float(step(clnn.ones(3))) for _ in range(4)]
        [9.0, 9.0, 9.0, 9.0]
    """
    _check_options(backend, mode, options)
    if model is None:
        return functools.partial(compile, backend=backend, disable=disable)
    if disable:
        return model
    from .nn import Module
    if not callable(model):
        raise AssertionError(f"A callable function is expected, but {type(model)} is provided.")
    kind = Compiled
    if callable(backend):
        from ._graph_backends import Backed
        kind = functools.partial(Backed, backend=backend)
    return optimized_module()(model, kind=kind) if isinstance(model, Module) else kind(model)


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

        def __init__(self, module, dynamo_ctx=None, kind=Compiled):
            super().__init__()
            self._orig_mod, self.dynamo_ctx, self._kind = module, dynamo_ctx, None if kind is Compiled else kind
            object.__setattr__(self, "_compiled", kind(module))

        def __getstate__(self):
            return {name: value for name, value in vars(self).items() if name != "_compiled"}

        def __setstate__(self, state):
            super().__setstate__(state)
            object.__setattr__(self, "_compiled", (self._kind or Compiled)(self._orig_mod))     # what was recorded is recorded again

        def __len__(self):
            return len(self._orig_mod)

        def __bool__(self):
            return True

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
    OptimizedModule.__qualname__ = "OptimizedModule"
    return OptimizedModule


def __getattr__(name):
    """Pickles find the class here, which needs modules and is not made before one is compiled."""
    if name == "OptimizedModule":
        return optimized_module()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
