"""``clnn.compile``: run a function once, keep the launches it made, and replay them.

The recording is valid for inputs of the same shapes, dtypes, devices and flags, and for the same modes and values that ``_guards`` watches; each such
combination gets a recording of its own. What lived before the call (parameters, buffers, optimizer state) keeps its memory, so replays and ordinary code can alternate.
"""
from __future__ import annotations

import functools
import warnings

from ._captured import Busy, Captured, Stale, graph_of, walked, whole
from ._fullgraph import refusing
from ._guards import Watch, flatten, hidden
from ._results import map_tensors
from ._tensor import tape
from ._tensor.device import resolve
from ._tensor.tensor import Tensor, edge
from .compiler import _here, _inside, _now

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


def _stand_in(t):
    """What a recording takes for an input: a variable of its own where gradients are wanted, to the gradient that there is."""
    dense = whole(t)
    if not t._rg:
        return dense
    proxy = dense.detach().requires_grad_()
    proxy._grad = t._grad
    return proxy


def _without_recording(result, proxies, inputs):
    """The result of a run that cannot be replayed, with the inputs in the place of what stood for them, in its graph, too."""
    result, grads = result
    original = {id(p): t for p, t in zip(proxies, inputs)}
    outs = []
    result = map_tensors(lambda t: outs.append(t) or original.get(id(t), t), result)
    for node in graph_of([t for t in outs if t._grad_fn is not None]):
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
        if t._rg and walked(t):
            return "its backward pass goes on beyond an input"
    return None


class Compiled:
    """A callable that records ``fn`` per combination of inputs and modes, and replays.

    ``fallbacks`` maps each combination that runs ordinarily to the reason.
    """

    def __init__(self, fn, fullgraph=False):
        self._fn = refusing(fn) if fullgraph else fn
        self._runs, self._recordings, self._dropped, self.fallbacks = {}, {}, {}, {}
        self._watch = Watch(fn)
        functools.update_wrapper(self, fn, updated=()) if hasattr(fn, "__name__") else None

    def __call__(self, *args, **kwargs):
        stance = _now["stance"]
        if stance == "force_eager" or _here.whole:            # a part of another compiled function belongs to the recording of that
            return self._fn(*args, **kwargs)
        inputs = []
        try:
            modes = self._watch.modes()
            names = self._watch.names
            key = (flatten(args, inputs, names), flatten(kwargs, inputs, names) if kwargs else (), modes)
        except RecursionError:
            key = None
        for got in self._recordings.get(key, ()):
            try:
                with got.device.lock:                           # one thread has it until its backward pass
                    if not got.busy() and got.fits():
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
        versions, homes = [(t._ver or t._storage).version for t in inputs], [t._storage for t in inputs]
        from .nn.modules._hooks import called
        with called() as found, _inside(what="whole"):
            result = self._fn(*args, **kwargs)
        why = _obstacle(inputs, versions, result)
        if any(t._storage is not home for t, home in zip(inputs, homes)):
            why = "it gives an input other memory"
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
        try:
            return self._captured(args, kwargs, key, inputs, device)
        except Busy:
            return self._fn(*args, **kwargs)

    def _captured(self, args, kwargs, key, inputs, device):
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
        with device.lock:
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
        self._recordings.pop(key, None)                        # another thread may have found out, too
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
        fullgraph: raise ``clnn._dynamo.exc.Unsupported`` or ``UserError`` where the way through the function's Python depends on values of tensors.
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
    _check_options(backend, mode, options, dynamic)
    if model is None:
        return functools.partial(compile, fullgraph=fullgraph, backend=backend, disable=disable)
    if disable:
        return model
    from .nn import Module
    if not callable(model):
        raise AssertionError(f"A callable function is expected, but {type(model)} is provided.")
    kind = functools.partial(Compiled, fullgraph=True) if fullgraph else Compiled
    if callable(backend):
        from ._graph_backends import Backed
        kind = functools.partial(Backed, backend=backend, fullgraph=fullgraph)
    return optimized_module()(model, kind=kind) if isinstance(model, Module) else kind(model)


BACKENDS = frozenset("""replay inductor cudagraphs openxla tvm eager eager_noexcept eager_debug pre_dispatch_eager aot_eager aot_eager_decomp_partition
                        aot_eager_default_partitioner aot_ts torchxla_trace_once onnxrt ts""".split())
MODES = ("default", "lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")


def _check_options(backend, mode, options, dynamic):
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    if isinstance(backend, str) and backend not in BACKENDS:
        from ._dynamo_exc import InvalidBackend
        raise InvalidBackend(backend)
    if dynamic is not None and not isinstance(dynamic, bool):
        raise AssertionError(f"Expected enable to be a bool, got {type(dynamic)}")
    if backend not in ("replay", "inductor"):                  # the others have neither, and do not mind
        return
    if options is not None:
        from ._inductor import check_options
        check_options(options)
    if mode and mode not in MODES:
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
