"""Operators of a program's own, as in PyTorch's module of this name: kernels by device type, gradients, and what the results look like.

Example::

    >>> from clnn import library
    >>> @library.custom_op("mylib::scale", mutates_args=())
    ... def scale(x: clnn.Tensor, factor: float = 2.0) -> clnn.Tensor:
    ...     return clnn.from_numpy(x.numpy() * factor)
    >>> scale.register_autograd(lambda ctx, g: (g * ctx.factor, None), setup_context=lambda ctx, inputs, output: setattr(ctx, "factor", inputs[1]))
    >>> x = clnn.ones(2, requires_grad=True)
    >>> clnn.ops.mylib.scale(x, 3.0).sum().backward()
    >>> x.grad
    tensor([3., 3.])
"""
from __future__ import annotations

import collections.abc
import contextlib
import inspect
import types
import typing

import clnn
from clnn._custom import FunctionSchema, OpOverload, device_kind, enter, expected, find, forget, known
from clnn._tensor.tensor import Tensor
from clnn.amp.autocast_mode import _kind as _autocast_kind

__all__ = ["CustomOpDef", "Library", "OpCheckError", "custom_op", "define", "fallthrough_kernel", "get_ctx", "impl", "infer_schema", "opcheck", "register_autocast",
           "register_autograd", "register_fake", "register_kernel", "register_torch_dispatch", "register_vmap", "triton_op"]

_NAME = __name__.rpartition(".")[2]      # the same in PyTorch

# -- schemas from signatures ------------------------------------------------------------------------------------------------------------

_TYPES = {Tensor: "Tensor", int: "SymInt", float: "float", bool: "bool", str: "str", complex: "Scalar", clnn.dtype: "ScalarType", clnn.device: "Device",
          typing.Union[int, float, bool]: "Scalar", typing.Union[int, float, complex]: "Scalar"}


def _type_name(hint):
    """PyTorch's notation of a type hint, or None."""
    if hint in _TYPES:
        return _TYPES[hint]
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType) and type(None) in args:
        rest = [a for a in args if a is not type(None)]
        inner = _type_name(rest[0] if len(rest) == 1 else typing.Union[tuple(rest)])
        return None if inner is None else inner + "?"
    if origin in (list, collections.abc.Sequence) and len(args) == 1:
        inner = _type_name(args[0])
        return None if inner is None else inner + "[]"
    return None


def _result_name(hint, name):
    if hint is inspect.Signature.empty:
        raise ValueError("infer_schema(func): No return type annotation was provided. Please add one.")
    if hint is None or hint is type(None):
        return "()"
    if typing.get_origin(hint) is tuple:
        parts = [_type_name(a) for a in typing.get_args(hint)]
        known = None if None in parts else f"({', '.join(parts)})"
    else:
        known = _type_name(hint)
    if known is None or "?" in known:
        raise ValueError(f"infer_schema(func): Return has unsupported type {hint} ({name}).")
    return known


def infer_schema(prototype_function, /, *, mutates_args, op_name=None):
    """The schema of a function with type hints, in PyTorch's notation.

    Args:
        mutates_args: names of the arguments that it changes, or ``"unknown"`` for all tensors.

    Raises:
        ValueError: a hint is missing or has no notation.

    Example::

        >>> import typing
        >>> def crop(x: clnn.Tensor, box: typing.Sequence[int], *, fill: float = 0.0) -> clnn.Tensor: ...
        >>> from clnn import library
        >>> library.infer_schema(crop, mutates_args=())
        '(Tensor x, SymInt[] box, *, float fill=0.0) -> Tensor'
    """
    sig = inspect.signature(prototype_function)
    hints = typing.get_type_hints(prototype_function)
    unknown = [] if mutates_args == "unknown" else [n for n in mutates_args if n not in sig.parameters]
    if unknown:
        raise ValueError(f"infer_schema(func): {set(unknown)} in mutates_args were not found in the function's signature: {list(sig.parameters)}")
    parts, count, starred = [], 0, False
    for name, p in sig.parameters.items():
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            raise ValueError(f"infer_schema(func): We do not support positional-only args, varargs, or varkwargs. Got {p}")
        if name not in hints:
            raise ValueError(f"infer_schema(func): Parameter {name} must have a type annotation.")
        kind = _type_name(hints[name])
        if kind is None:
            raise ValueError(f"infer_schema(func): Parameter {name} has unsupported type {hints[name]}.")
        if kind.startswith("Tensor") and (mutates_args == "unknown" or name in mutates_args):
            kind = kind.replace("Tensor", f"Tensor(a{count}!)", 1)
        elif mutates_args != "unknown" and name in mutates_args:
            raise ValueError(f"infer_schema(func): Parameter {name} is in mutable_args but only Tensors or collections of Tensors can be mutated")
        count += 1
        if p.kind is p.KEYWORD_ONLY and not starred:
            parts.append("*")
            starred = True
        default = "" if p.default is p.empty else f"={p.default!r}" if not isinstance(p.default, str) else f'="{p.default}"'
        parts.append(f"{kind} {name}{default}")
    return f"{op_name or ''}({', '.join(parts)}) -> {_result_name(hints.get('return', sig.return_annotation), prototype_function.__name__)}"


# -- one operator -----------------------------------------------------------------------------------------------------------------------

def _check_name(qualname):
    space, found, name = qualname.partition("::")
    if not found or not space or not name:
        raise ValueError(f"Expected `name` to be of the form `namespace::name`, got {qualname!r}")
    if "." in name:
        raise ValueError(f"The torch.{_NAME}.custom_op APIs do not handle overloads, i.e. operator names with '.' in them. Got {qualname!r}")
    return space, name


class CustomOpDef:
    """What :func:`custom_op` returns: the operator, callable, with methods that register the rest."""

    def __init__(self, op, fn):
        self._opoverload, self._init_fn = op, fn
        self._qualname, self._name, self._namespace = op._qualname, op._opname, op.namespace
        self.__doc__, self.__name__ = getattr(fn, "__doc__", None), op._opname

    def __call__(self, *args, **kwargs):
        return self._opoverload(*args, **kwargs)

    def __repr__(self):
        return f"<CustomOpDef({self._qualname})>"

    def register_kernel(self, device_types, fn=None, /):
        """The kernel for a device type (``"cpu"``, ``"cuda"`` or ``"gpu"``), several of them, or all (None); also as a decorator."""
        def register(fn):
            names = [device_types] if isinstance(device_types, str) or device_types is None else device_types
            for name in names:
                self._opoverload.kernels["any" if name is None else device_kind(name)] = fn
            return fn
        return register if fn is None else register(fn)

    def register_fake(self, fn, /):
        """``fn`` takes the same arguments and returns empty tensors like the results: it computes for tensors on the meta device."""
        self._opoverload.fake = fn
        return fn

    def register_autograd(self, backward, /, *, setup_context=None):
        """The gradient.

        Args:
            backward: ``backward(ctx, *grads)`` gives a gradient or None per argument, and a list of them for a list of tensors.
            setup_context: ``setup_context(ctx, inputs, output)`` keeps what it needs; operators with keyword-only arguments get them as
                ``keyword_only_inputs``.
        """
        if self._opoverload._schema.is_mutable:
            raise RuntimeError(f"Cannot register autograd formula for non-functional operator {self._opoverload} with schema {self._opoverload._schema}. "
                               "Please create a functional operator and register an autograd formula for that.")
        self._opoverload.backward, self._opoverload.setup_context = backward, setup_context

    def register_autocast(self, device_type, cast_inputs):
        """Under autocast for ``device_type``, cast float arguments to ``cast_inputs``."""
        self._opoverload.low[_autocast_kind(device_type)] = cast_inputs

    def register_vmap(self, func=None):
        """The rule for :func:`clnn.vmap`, also as a decorator: ``func(info, in_dims, *args)`` takes all samples and returns outputs and their ``out_dims``.

        Without one the operator is called for each sample.
        """
        def register(func):
            self._opoverload.batched = func
            return func
        return register if func is None else register(func)

    def register_torch_dispatch(self, torch_dispatch_class, fn=None, /):
        """What a class of tensors, ``fn(func, types, args, kwargs)``, or a mode, ``fn(mode, func, types, args, kwargs)``, makes of the operator, in
        place of its ``__torch_dispatch__``; also as a decorator."""
        def register(fn):
            self._opoverload.rules[torch_dispatch_class] = fn
            return fn
        return register if fn is None else register(fn)

    @contextlib.contextmanager
    def set_kernel_enabled(self, device_type, enabled=True):
        """A block in which the kernel of a device type is used or not; without it the kernel for all devices serves."""
        off, kind = self._opoverload.off, device_kind(device_type)
        before = set(off)
        (off.discard if enabled else off.add)(kind)
        try:
            yield
        finally:
            off.clear()
            off.update(before)


def custom_op(name, fn=None, /, *, mutates_args, device_types=None, schema=None, tags=None):
    """Make a Python function an operator (decorator).

    Its kernel may leave clnn: it runs without recording. Tensors on the host (``x.numpy()``) are copies, so results must be returned, not written there.

    Args:
        name: ``"namespace::operator"``; it is then also ``clnn.ops.namespace.operator``.
        mutates_args: names of the arguments that the function changes in place, or ``"unknown"``.
        device_types: which devices ``fn`` serves: a name, several, or None for all.
        schema: in PyTorch's notation; read from the type hints when left out.

    Raises:
        ValueError: the name has no namespace, or a type hint is missing.
        RuntimeError: in a call: an argument is returned as the result, or the arguments do not fit the schema.

    Example:
        >>> from clnn import library
        >>> @library.custom_op("example::double", mutates_args=())
        ... def double(x: clnn.Tensor) -> clnn.Tensor:
        ...     return x * 2
        >>> double(clnn.ones(2))
        tensor([2., 2.])
    """
    def decorate(fn):
        space, opname = _check_name(name)
        text = schema if schema is not None else infer_schema(fn, mutates_args=mutates_args)
        op = enter(OpOverload(space, FunctionSchema(f"{space}::{opname}{text[text.index('('):]}")))
        op.strict = True
        made = CustomOpDef(op, fn)
        made.register_kernel(device_types, fn)
        return made
    return decorate if fn is None else decorate(fn)


triton_op = custom_op


# -- functions over operators --------------------------------------------------------------------------------------------------------------

def _definition(op):
    return op if isinstance(op, CustomOpDef) else CustomOpDef(find(op), None)


def register_kernel(op, device_types, func=None, /, *, lib=None):
    """:meth:`CustomOpDef.register_kernel` of an operator given by name or object."""
    return _definition(op).register_kernel(device_types, *(() if func is None else (func,)))


def register_fake(op, func=None, /, *, lib=None, _stacklevel=1, allow_override=False):
    """:meth:`CustomOpDef.register_fake` of an operator given by name or object; also as a decorator. One that is yet to be declared gets it then."""
    def register(func):
        if isinstance(op, str) and not known(op):
            expected[op] = func
            return func
        return _definition(op).register_fake(func)
    return register if func is None else register(func)


impl_abstract = register_fake


def get_ctx():
    """Raises: sizes that depend on values are not known to a function that computes for the meta device.

    Raises:
        RuntimeError: always.
    """
    raise RuntimeError("get_ctx(): called where a result's shape depends on values; tensors on the meta device have none, so there is no such result")


def register_autograd(op, backward, /, *, setup_context=None, lib=None):
    """:meth:`CustomOpDef.register_autograd` of an operator given by name or object.

    Example:
        >>> from clnn import library
        >>> @library.custom_op("example::twice", mutates_args=())
        ... def twice(x: clnn.Tensor) -> clnn.Tensor:
        ...     return x * 2
        >>> library.register_autograd("example::twice", lambda ctx, g: g * 2)
        >>> x = clnn.ones(2, requires_grad=True)
        >>> twice(x).sum().backward()
        >>> x.grad
        tensor([2., 2.])
    """
    _definition(op).register_autograd(backward, setup_context=setup_context)


def register_autocast(op, device_type, cast_inputs, /, *, lib=None):
    """:meth:`CustomOpDef.register_autocast` of an operator given by name or object."""
    _definition(op).register_autocast(device_type, cast_inputs)


def register_vmap(op, func=None, /, *, lib=None):
    """:meth:`CustomOpDef.register_vmap` of an operator given by name or object.

    Example:
        >>> from clnn import library
        >>> @library.custom_op("example::third", mutates_args=())
        ... def third(x: clnn.Tensor) -> clnn.Tensor:
        ...     return x / 3
        >>> _ = library.register_vmap("example::third", lambda info, in_dims, x: (x / 3, in_dims[0]))
        >>> clnn.vmap(third)(clnn.tensor([3.0, 6.0]))
        tensor([1., 2.])
    """
    return _definition(op).register_vmap(func)


def register_torch_dispatch(op, torch_dispatch_class, func=None, /, *, lib=None, allow_override=False):
    """:meth:`CustomOpDef.register_torch_dispatch` of an operator given by name or object."""
    return _definition(op).register_torch_dispatch(torch_dispatch_class, *(() if func is None else (func,)))


def define(qualname, schema, *, lib=None, tags=()):
    """Declare an operator by its schema; :func:`impl` gives it kernels.

    Example::

        >>> from clnn import library
        >>> library.define("mylib::twice", "(Tensor x) -> Tensor")
        >>> @library.impl("mylib::twice", "default")
        ... def twice(x):
        ...     return x * 2
        >>> clnn.ops.mylib.twice(clnn.ones(1))
        tensor([2.])
    """
    if isinstance(qualname, Library):               # the older form: a decorator over the implementation
        library = qualname
        name = library.define(schema)
        return lambda fn: library.impl(name, fn, "CompositeImplicitAutograd") or fn
    space, name = _check_name(qualname)
    enter(OpOverload(space, FunctionSchema(f"{space}::{name}{schema[schema.index('('):]}")))


def impl(qualname, types, func=None, *, lib=None):
    """A kernel of a declared operator, by device type (``"cpu"``, ``"cuda"``, ``"default"``); also as a decorator. The older form is
    ``impl(library, name, dispatch_key)``.

    Example:
        >>> from clnn import library
        >>> own = library.Library("example", "DEF")
        >>> _ = own.define("plus_one(Tensor x) -> Tensor")
        >>> @library.impl(own, "plus_one", "CPU")
        ... def plus_one(x):
        ...     return x + 1
        >>> clnn.ops.example.plus_one(clnn.ones(2))
        tensor([2., 2.])
    """
    if isinstance(qualname, Library):
        return lambda f: qualname.impl(types, f, func or "") or f

    def register(fn):
        for name in [types] if isinstance(types, str) else types:
            find(qualname).kernels[device_kind(name)] = fn
        return fn
    return register if func is None else register(func)


def fallthrough_kernel():
    """A kernel that stands for 'nothing here'."""
    raise NotImplementedError("fallthrough_kernel() should never be called.")


class Library:
    """A namespace to declare operators in: ``define`` with a schema, ``impl`` with a dispatch key.

    Args:
        ns: the namespace.
        kind: ``"DEF"``, ``"FRAGMENT"`` or ``"IMPL"``: all allow both.

    Example::

        >>> from clnn import library
        >>> lib = library.Library("mine", "DEF")
        >>> lib.define("negate(Tensor x) -> Tensor")
        'negate'
        >>> lib.impl("negate", lambda x: -x, "CompositeExplicitAutograd")
        >>> clnn.ops.mine.negate(clnn.ones(1))
        tensor([-1.])
    """

    def __init__(self, ns, kind, dispatch_key=""):
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError(f"Unsupported library type: {kind}")
        self.ns, self.kind, self.dispatch_key, self._made = ns, kind, dispatch_key, []

    def __repr__(self):
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def define(self, schema, alias_analysis="", *, tags=()):
        """Declare ``name(arguments) -> results``; returns the name."""
        parsed = FunctionSchema(schema)
        if "::" in parsed.name:
            raise RuntimeError(f"Explicitly provided namespace ({parsed.name.partition('::')[0]}) in schema string does not match namespace of enclosing "
                               f"TORCH_LIBRARY block ({self.ns}).")
        op = enter(OpOverload(self.ns, FunctionSchema(f"{self.ns}::{schema.strip()}")))
        self._made.append(op._qualname)
        return parsed.name

    def impl(self, op_name, fn, dispatch_key="", *, with_keyset=False, allow_override=False):
        """The kernel of an operator for a dispatch key: ``"CPU"``, ``"CUDA"``, ``"CompositeExplicitAutograd"``, ``"Autograd"``, ``"Meta"`` ..."""
        name = op_name if isinstance(op_name, str) else op_name.__name__.partition(".")[0]
        if fn is not fallthrough_kernel:
            find(f"{self.ns}::{name.rpartition('::')[2].partition('.')[0]}").kernels[device_kind(dispatch_key or self.dispatch_key or "default")] = fn

    def _register_fake(self, op_name, fn, _stacklevel=1):
        register_fake(f"{self.ns}::{op_name.rpartition('::')[2]}", fn)

    def _destroy(self):
        for qualname in self._made:
            forget(qualname)


@contextlib.contextmanager
def _scoped_library(*args, **kwargs):
    """A library whose operators are gone after the block."""
    lib = Library(*args, **kwargs)
    try:
        yield lib
    finally:
        lib._destroy()


class OpCheckError(Exception):
    """What :func:`opcheck` raises when a test fails."""


def opcheck(op, args, kwargs=None, *, test_utils=("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic"),
            raise_exception=True, atol=None, rtol=None):
    """Check that an operator is registered right for one set of arguments.

    ``test_schema``: it changes what it says it changes, and returns fresh tensors. ``test_autograd_registration``: it has a gradient where it is asked for
    one. ``test_faketensor``: ``register_fake`` gives results of the right shape and dtype. ``test_aot_dispatch_dynamic``: results and gradients are the same
    twice.

    Returns:
        ``{test: "SUCCESS" or the exception}``.

    Raises:
        OpCheckError: a test fails, with ``raise_exception``.

    Example:
        >>> from clnn import library
        >>> @library.custom_op("example::half", mutates_args=())
        ... def half(x: clnn.Tensor) -> clnn.Tensor:
        ...     return x / 2
        >>> _ = half.register_fake(lambda x: clnn.empty_like(x))
        >>> sorted(set(library.opcheck(half, (clnn.ones(2),)).values()))
        ['SUCCESS']
    """
    from clnn import _opcheck
    names = [test_utils] if isinstance(test_utils, str) else list(test_utils)
    results = {}
    for name in names:
        test = _opcheck.TESTS.get(name)
        if test is None:
            raise ValueError(f"opcheck: test_utils are among {sorted(_opcheck.TESTS)}, got {name!r}")
        try:
            test(_definition(op)._opoverload, tuple(args), dict(kwargs or {}), rtol=rtol, atol=atol)
            results[name] = "SUCCESS"
        except Exception as exc:
            if raise_exception:
                raise OpCheckError(f"opcheck(op, ...): {name} failed with {exc} (scroll up for stack trace)") from exc
            results[name] = exc
    return results
