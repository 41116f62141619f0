"""Custom differentiable functions with a forward and a backward of their own."""
from __future__ import annotations

import copy
import functools
import inspect
import traceback
import warnings

from .._tensor import foreign, tape
from .._tensor.entries import FREED, _Packed, inference_saved
from .._tensor.grad_mode import no_grad, state
from .._tensor.inplace import take_history
from .._tensor.tensor import Tensor, edge
from .._tensor.writing import bump
from .._vmap.calls import as_they_are, by_rule
from .._vmap.forms import has_batched
from ..core.errors import overwritten
from ..ops import creation


_OF_NODE = {"next_functions", "name", "metadata", "register_hook", "register_prehook", "_sequence_nr"}


class FunctionCtx:
    """What ``forward`` hands to ``backward``; any attribute may be set on it."""

    def __getattr__(self, name):
        """In PyTorch the context is the node, which has a few more attributes."""
        node = self._node() if name in _OF_NODE and self._node is not None else None
        if node is None:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        return getattr(node, name)

    def __init__(self, needs=(), node=None):
        self.needs_input_grad = needs
        self._to_save, self._dirty, self._constant, self._materialize = (), (), (), True
        self._saved, self._node, self._for_forward = None, node, None
        self._materialize_non_diff_grads = True

    def save_for_backward(self, *tensors):
        """Keep tensors (inputs, outputs or others) for ``backward``; in-place changes to them are noticed."""
        for i, t in enumerate(tensors):
            if t is not None and not isinstance(t, Tensor):
                raise TypeError(f"save_for_backward can only save variables, but argument {i} is of type {type(t).__name__}")
        self._to_save = tensors

    def save_for_forward(self, *tensors):
        """Keep tensors for ``jvp``, which finds them in ``saved_tensors``."""
        if any(t is not None and not isinstance(t, Tensor) for t in tensors):
            raise AssertionError("save_for_forward expects all arguments to be tensors; you should save non-tensors as attributes on ctx.")
        self._for_forward = tensors

    def _for_jvp(self):
        """The context that ``jvp`` gets, a copy, as it may be called more than once and may drop what it was given."""
        other = copy.copy(self)
        if self._for_forward is not None:
            other._saved, other._node, other._to_save = None, None, self._for_forward
        return other

    def mark_dirty(self, *tensors):
        """Say that these inputs were changed in place."""
        self._dirty = _tensors_alone(tensors, "mark_dirty can only accept variables, but argument {} is of type {}")

    def mark_shared_storage(self, *pairs):
        """Nothing: views are known without it."""
        warnings.warn("`mark_shared_storage` is deprecated. Tensors with shared storages are automatically tracked. Note that calls to `set_()` are not "
                      "tracked", FutureWarning, stacklevel=2)

    def mark_non_differentiable(self, *tensors):
        """Say that these outputs have no gradient."""
        self._constant = _tensors_alone(tensors, "mark_non_differentiable only accepts variable arguments, but got {1}")

    def set_materialize_grads(self, value):
        """False: gradients of unused outputs come as None, not as zeros."""
        self._materialize = bool(value)

    @property
    def saved_tensors(self):
        """What ``save_for_backward`` kept."""
        if self._saved is None:
            node = self._node() if self._node is not None else None
            if node is not None and node.freed:
                raise RuntimeError(FREED)
            return tuple(self._to_save)
        return tuple(s.get() if s is not None else None for s in self._saved)

    @property
    def saved_variables(self):
        """The old name of ``saved_tensors``."""
        warnings.warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2)
        return self.saved_tensors


def _tensors_alone(values, words):
    for i, value in enumerate(values):
        if not isinstance(value, Tensor):
            raise RuntimeError(words.format(i, type(value).__name__))
    return values


class _Saved:
    """One kept tensor with its version. Outputs are kept without their history, which would make a reference cycle."""

    __slots__ = ("value", "version", "nr", "node")

    def __init__(self, t, nr, node):
        self.nr, self.node = nr, node if nr is not None else None
        if t.is_inference():
            raise inference_saved()
        self.version = t._version
        value = t._alias() if nr is not None else t
        if nr is not None:
            value._ver = t._ver or t._storage
        self.value = _Packed(*state.saved_hooks[-1], value) if state.saved_hooks else value

    def get(self):
        t = self.value
        if type(t) is _Packed:
            t = t.unpack()
        elif t._version != self.version:
            raise overwritten(t, t._version, self.version, self.node() if self.nr is not None else t._grad_fn, t._out_nr)
        if self.nr is not None and self.node() is not None:
            t = t._alias()
            t._grad_fn, t._out_nr, t._rg = self.node(), self.nr, True
        return t


_ContextMethodMixin = FunctionCtx


class FunctionNode(tape.Node):
    """Tape entry of one ``apply``."""

    __slots__ = ("cls", "ctx", "metas", "inputs", "freed", "constant")
    fills = True

    def name(self):
        return self.cls.__name__ + "Backward"

    def __repr__(self):
        return f"<{__name__}.{self.name()} object at {hex(id(self))}>"

    def __getattr__(self, name):
        """In PyTorch the node is the ``ctx`` of its function: what ``forward`` put there is found here, too."""
        if name.startswith("__") or name in FunctionNode.__slots__:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        return self.cls if name == "_forward_cls" else getattr(self.ctx, name)

    @property
    def next_functions(self):
        edges = [e for e, meta in zip(self.edges, self.inputs) if meta is not None]
        return tuple((e[0].shown(e[1]), e[1]) if e is not None else (None, 0) for e in edges)

    @property
    def operands(self):
        return [i for i, meta in enumerate(self.inputs) if meta is not None]

    def release(self):
        self.freed = True
        self.ctx._saved, self.ctx._to_save = None, ()

    @property
    def saved_tensors(self):
        return self.ctx.saved_tensors

    def apply(self, grads, needed):
        ctx, name = self.ctx, self.name()
        if state.pushing and self.cls.jvp is not Function.jvp:
            from .forward_ad import Transposed
            return Transposed(self, grads).results()
        if ctx._materialize:
            skip = () if ctx._materialize_non_diff_grads else self.constant
            grads = [creation.filled(m[0], 0, m[1], m[2]) if g is None and m is not None and i not in skip else g
                     for i, (g, m) in enumerate(zip(grads, self.metas))]
        backward = _backward_of(self.cls)
        got = backward(ctx, *grads)
        got = tuple(got) if isinstance(got, (tuple, list)) else (got,)
        count = len(self.inputs)
        if len(got) < count or any(g is not None for g in got[count:]):
            raise RuntimeError(f"function {name} returned an incorrect number of gradients (expected {count}, got {len(got)})")
        return [self._checked(i, g, name) if g is not None else None for i, g in enumerate(got[:count])]

    def _checked(self, i, g, name):
        meta = self.inputs[i]
        if meta is None:
            raise RuntimeError(f"function {name} returned a gradient different than None at position {i + 1}, but the corresponding forward "
                               "input was not a Variable")
        if self.edges[i] is None:
            return None
        if not isinstance(g, Tensor):
            raise RuntimeError(f"expected Variable or None (got {type(g).__name__})")
        shape, dtype = meta
        if g.dtype.is_complex and not dtype.is_complex:
            raise RuntimeError("Expected isFloatingType(grad.scalar_type()) || (input_is_complex == grad_is_complex) to be true, but got false.")
        if g.shape != shape:
            lead = len(g.shape) - len(shape)
            if lead < 0 or any(s not in (1, n) for s, n in zip(shape, g.shape[lead:])):
                raise RuntimeError(f"Function {name} returned an invalid gradient at index {i} - got {list(g.shape)} but expected shape "
                                   f"compatible with {list(shape)}")
            g = g.sum_to_size(shape)
        return g if g.dtype is dtype else g.to(dtype)


def _backward_of(cls):
    """The gradient rule of a function: its ``backward``, or its ``vjp``."""
    if cls.vjp is not Function.vjp and cls.backward is not Function.backward:
        raise RuntimeError("Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only implement one of them.")
    return cls.vjp if cls.backward is Function.backward else cls.backward


class _NodeClass:
    """``_backward_cls``: what ``type(result.grad_fn)`` is."""

    def __get__(self, instance, cls):
        return tape.called(FunctionNode, cls.__name__ + "Backward")


class Function:
    """A differentiable function with its own gradient. Subclass it, write the static methods, and call ``apply``.

    ``forward(ctx, *args)`` computes without recording; or ``forward(*args)`` together with ``setup_context(ctx, inputs, output)``.
    ``backward(ctx, *grad_outputs)`` returns one gradient (or None) per argument of ``forward``, ``jvp(ctx, *grad_inputs)`` one tangent per output; where
    that is missing, forward-mode differentiation takes the derivative of ``backward``.

    Example:
        >>> class Exp(clnn.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         y = x.exp()
        ...         ctx.save_for_backward(y)
        ...         return y
        ...     @staticmethod
        ...     def backward(ctx, g):
        ...         y, = ctx.saved_tensors
        ...         return g * y
        >>> x = clnn.tensor(0.0, requires_grad=True)
        >>> Exp.apply(x).backward()
        >>> x.grad
        tensor(1.)
    """

    generate_vmap_rule = False
    _backward_cls = _NodeClass()

    def __init__(self, *args, **kwargs):
        warnings.warn(f"{type(self)} should not be instantiated. Methods on autograd functions are all static, so you should invoke them on the class "
                      "itself. Instantiating an autograd function will raise an error in a future version of PyTorch.", DeprecationWarning, stacklevel=2)

    def __call__(self, *args, **kwargs):
        raise RuntimeError("Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd function with static "
                           "forward method. (Example: https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)")

    @staticmethod
    def vmap(info, in_dims, *args):
        """A rule for :func:`clnn.vmap`: gives the outputs of all samples, and the dimension of the samples in each (or None).

        Args:
            info: ``batch_size``, the number of samples, and ``randomness``.
            in_dims: the dimension of the samples in each argument, or None.
            *args: what ``forward`` takes, all samples of it. Without such a rule ``forward`` gets tensors that stand for one sample and hold all of them.
        """
        raise NotImplementedError("To use autograd.Function with vmap, you must either override the vmap staticmethod or set generate_vmap_rule=True.")

    @staticmethod
    def forward(*args, **kwargs):
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx, inputs, output):
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx, *grad_outputs):
        raise NotImplementedError("You must implement either the backward or vjp method for your custom autograd.Function to use it with "
                                  "backward mode AD.")

    vjp = backward

    @classmethod
    def apply(cls, *args, **kwargs):
        """Compute ``forward`` and put this function on the tape."""
        if foreign.early is not None and has_batched(args):
            return as_they_are(cls._apply, args, kwargs) if cls.vmap is Function.vmap else by_rule(cls.vmap, args, kwargs)
        return cls._apply(*args, **kwargs)

    @classmethod
    def _apply(cls, *args, **kwargs):
        import weakref
        both = cls.setup_context is not Function.setup_context
        if both:                                                # which is given all parameters of ``forward``
            args, kwargs = _bound(cls.forward, args, kwargs), {}
        needs = tuple(isinstance(a, Tensor) and a._rg for a in args)
        tracked = state.grad and any(needs)
        node = FunctionNode([edge(a) if tracked and n else None for a, n in zip(args, needs)])
        node.cls, node.freed, ctx = cls, False, FunctionCtx(needs, weakref.ref(node))
        node.ctx = ctx
        with no_grad():
            if both:
                output = cls.forward(*args)
                cls.setup_context(ctx, args, output)
            else:
                output = cls.forward(ctx, *args, **kwargs)
        outs = output if isinstance(output, tuple) else (output,)
        wrapped = _wrap(node, ctx, args, outs, tracked)
        return wrapped if isinstance(output, tuple) else wrapped[0]


def _bound(forward, args, kwargs):
    """The arguments of ``forward`` in their order, with the defaults of those that were left out."""
    bound = _signature(forward).bind(*args, **kwargs)
    bound.apply_defaults()
    return bound.args


_signature = functools.lru_cache(1024)(inspect.signature)


def _wrap(node, ctx, args, outs, tracked):
    """Give the outputs their place on the tape and settle what is saved."""
    import weakref
    node.outs = len(outs)
    node.metas = [(o.shape, o.dtype, o._home) if isinstance(o, Tensor) else None for o in outs]
    node.inputs = [(a.shape, a.dtype) if isinstance(a, Tensor) else None for a in args]
    if state.anomaly:
        node.trace = "".join(traceback.format_stack()[:-3])
    if any(not any(d is o for o in outs) for d in ctx._dirty):
        raise RuntimeError("Some elements marked as dirty during the forward method were not returned as output. The inputs that are modified inplace must "
                           "all be outputs of the Function.")
    result, ours, node.constant = [], {}, set()
    for nr, o in enumerate(outs):
        if not isinstance(o, Tensor):
            result.append(o)
            continue
        dirty = any(o is d for d in ctx._dirty)
        if dirty:
            bump(o)                         # it may have been written by NumPy or another library
        constant = any(o is c for c in ctx._constant) or not o.dtype.differentiable
        if constant:
            node.constant.add(nr)
        given = any(o is a for a in args)
        if not (dirty or given or tracked) and o._base is not None:             # a view made without recording: a write would bypass ``backward``
            fresh, o._origin = o, "function"
        elif not dirty and (o._rg or given):
            fresh = o._alias()
        else:
            fresh = o
        if tracked and not constant:
            ours[id(o)] = nr
            if dirty:
                if o._rg and o._grad_fn is None and o._base is None:
                    raise RuntimeError("a leaf Variable that requires grad has been used in an in-place operation.")
                mark = o._alias()
                mark._grad_fn, mark._out_nr, mark._rg = node, nr, True
                if o._base is not None and o._base._rg and sum(isinstance(other, Tensor) for other in outs) > 1:
                    raise RuntimeError(_MANY_FROM_VIEW)
                take_history(o, mark)
            else:
                fresh._origin = _origin(o, args, outs)
                fresh._base, fresh._view_version = None, 0
                fresh._grad_fn, fresh._out_nr, fresh._rg = node, nr, True
        result.append(fresh)
    if tracked:
        ref = weakref.ref(node)
        ctx._saved = [None if t is None else _Saved(t, ours.get(id(t)), ref) for t in ctx._to_save]
    ctx._to_save = () if tracked else ctx._to_save
    return tuple(result)


_MANY_FROM_VIEW = (
    "If your Function modifies inplace an input that is a view of another Tensor, your Function cannot return more than one Tensor. This is not supported by "
    "the current autograd engine. You should either make sure the input is not a view (using .clone() for example) or make your Function only return one "
    "Tensor (potentially splitting it into two Functions: one doing the inplace that returns a single Tensor and a second one that does the other operations). "
    "You can ask on the forum https://discuss.pytorch.org/ if you need help to do this change.")


def _origin(output, args, outs):
    """How an output of a function came to be, where it is a view: a write would bypass ``backward``."""
    if output._base is None and not any(output is a for a in args):
        return None
    return "multiple" if sum(isinstance(o, Tensor) for o in outs) > 1 else "function"


class _Twice(tape.Node):
    """Stands behind gradients that cannot be differentiated again."""

    __slots__ = ()

    def name(self):
        return "Error"

    def apply(self, grads, needed):
        raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")


def once_differentiable(fn):
    """Decorator for a ``backward`` that does not support being differentiated itself.

    Example:
        >>> class Double(clnn.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         return x * 2
        ...     @staticmethod
        ...     @clnn.autograd.function.once_differentiable
        ...     def backward(ctx, g):
        ...         return g * 2
        >>> x = clnn.ones(2, requires_grad=True)
        >>> Double.apply(x).sum().backward()
        >>> x.grad
        tensor([2., 2.])
    """
    @functools.wraps(fn)
    def wrapper(ctx, *grads):
        with no_grad():
            got = fn(ctx, *grads)
        if not state.grad or not any(isinstance(g, Tensor) and g._rg for g in grads):
            return got
        outs = got if isinstance(got, tuple) else (got,)
        node = _Twice([edge(g) for g in grads if isinstance(g, Tensor) and g._rg], len(outs))
        marked = []
        for nr, o in enumerate(outs):
            if isinstance(o, Tensor):
                o = o._alias()
                o._grad_fn, o._out_nr, o._rg = node, nr, True
            marked.append(o)
        return tuple(marked) if isinstance(got, tuple) else marked[0]
    return wrapper


def _no_jvp(ctx, *grad_inputs):
    """The tangents of the outputs from those of the inputs; in a subclass, for forward-mode differentiation."""
    raise NotImplementedError("You must implement the jvp function for custom autograd.Function to use it with forward mode AD.")


Function.jvp = staticmethod(_no_jvp)


class NestedIOFunction(Function):
    """A :class:`Function` of nested lists and tuples, from the time before those could be given to any: deprecated."""


class InplaceFunction(Function):
    """A :class:`Function` that may change its inputs; ``ctx.mark_dirty`` says which."""

    def __init__(self, inplace=False):
        super().__init__()
        self.inplace = inplace
