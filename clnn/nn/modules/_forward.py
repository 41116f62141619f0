"""Forward methods of a program's own modules that only call layers and functions of tensors: such a call is one entry of the tape, as runs of layers are.

A method is read once, instruction by instruction. It may use its arguments and local names, attributes of the module that are layers, parameters, buffers or
plain values, functions and constants of this package (by names that are global or of the function around the class), methods of tensors and a few builtins; it
may branch and loop over these. Whatever else it does (keep something, print, call a function of the program's) makes it a method that is called as it is. What
a result depends on is told again at each call: see :func:`told`. A value that is read from a device, or memory of an operand that is written, is noticed when
a call is observed (``clnn._tensor.splice``).
"""
import builtins
import dis
import types
import weakref

from clnn._tensor.splice import FEW
from clnn._tensor.tensor import Tensor
from clnn.core import dtype as dt
from clnn.core.shape import Size
from clnn.graph.op import REGISTRY

__all__ = ["PLAIN", "Form", "form_of", "small", "told"]

_PACKAGE = __name__.partition(".")[0]
PLAIN = frozenset((int, float, str, bool, type(None), dt.dtype, Size))
_BUILTINS = frozenset((len, range, zip, enumerate, reversed, tuple, list, int, float, bool, abs, min, max, isinstance))
_STEPS = frozenset("""
    RESUME NOP CACHE EXTENDED_ARG COPY_FREE_VARS PRECALL CALL CALL_FUNCTION CALL_FUNCTION_KW CALL_METHOD CALL_KW KW_NAMES PUSH_NULL POP_TOP COPY SWAP DUP_TOP
    DUP_TOP_TWO ROT_TWO ROT_THREE ROT_FOUR LOAD_CONST LOAD_SMALL_INT RETURN_VALUE RETURN_CONST STORE_FAST STORE_FAST_STORE_FAST STORE_FAST_MAYBE_NULL DELETE_FAST
    UNPACK_SEQUENCE BUILD_TUPLE BUILD_LIST BUILD_SLICE LIST_EXTEND LIST_APPEND LIST_TO_TUPLE BINARY_SLICE BINARY_SUBSCR BINARY_OP BINARY_ADD BINARY_SUBTRACT
    BINARY_MULTIPLY BINARY_TRUE_DIVIDE BINARY_FLOOR_DIVIDE BINARY_MODULO BINARY_POWER BINARY_MATRIX_MULTIPLY INPLACE_ADD INPLACE_SUBTRACT INPLACE_MULTIPLY
    INPLACE_TRUE_DIVIDE UNARY_NEGATIVE UNARY_NOT UNARY_POSITIVE TO_BOOL COMPARE_OP IS_OP CONTAINS_OP GET_ITER FOR_ITER END_FOR POP_ITER JUMP_FORWARD JUMP_BACKWARD
    JUMP_ABSOLUTE JUMP_BACKWARD_NO_INTERRUPT POP_JUMP_IF_FALSE POP_JUMP_IF_TRUE POP_JUMP_FORWARD_IF_FALSE POP_JUMP_FORWARD_IF_TRUE POP_JUMP_FORWARD_IF_NONE
    POP_JUMP_FORWARD_IF_NOT_NONE POP_JUMP_BACKWARD_IF_FALSE POP_JUMP_BACKWARD_IF_TRUE POP_JUMP_IF_NONE POP_JUMP_IF_NOT_NONE JUMP_IF_FALSE_OR_POP JUMP_IF_TRUE_OR_POP
    LOAD_ASSERTION_ERROR RAISE_VARARGS FORMAT_VALUE FORMAT_SIMPLE CONVERT_VALUE BUILD_STRING NOT_TAKEN""".split())
_LOCAL = frozenset(("LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW", "LOAD_FAST_AND_CLEAR"))
_PAIRS = frozenset(("LOAD_FAST_LOAD_FAST", "LOAD_FAST_BORROW_LOAD_FAST_BORROW", "STORE_FAST_LOAD_FAST"))
_ATTRIBUTE = frozenset(("LOAD_ATTR", "LOAD_METHOD"))
_NOT_METHODS = frozenset("""grad data numpy tolist item backward register_hook retain_grad register_post_accumulate_grad_hook requires_grad is_leaf grad_fn
    untyped_storage storage data_ptr names cpu cuda pin_memory set_ apply_ map_ resize_ requires_grad_ detach_ share_memory_ retains_grad""".split())
_METHODS = frozenset(name for name in dir(Tensor) if not name.startswith("_")) - _NOT_METHODS | {"append"}
_FACTORIES = frozenset("zeros ones full eye arange linspace zeros_like ones_like full_like rand randn rand_like randn_like".split())
_DEPTH = 4              # methods that call methods


class Form:
    """What a class's forward method depends on: ``names`` of attributes that it reads, ``methods`` that it calls, and ``fixed``, (namespace, name, value) of
    what must be what it was."""

    def __init__(self):
        self.names, self.methods, self.fixed = {}, {}, []

    def holds(self) -> bool:
        """Whether all names still mean what they did when the method was read."""
        for scope, name, value in self.fixed:
            if (scope.get(name, value) if scope.__class__ is dict else getattr(scope, name, None)) is not value:
                return False
        return True


_forms = weakref.WeakKeyDictionary()        # class -> Form, None for one whose forward method does more
_large = weakref.WeakKeyDictionary()        # module -> whether it has too many parameters


def form_of(cls):
    """The Form of a class, or None."""
    found = _forms.get(cls, 0)
    if found == 0:
        form, forward = Form(), getattr(cls, "forward", None)
        own = (getattr(forward, "__module__", None) or "").partition(".")[0] != _PACKAGE
        form.fixed.append((cls, "forward", forward))
        found = _forms[cls] = form if own and _reads(forward, cls, form, 0) else None
    return found


def small(module) -> bool:
    """Whether a module has few enough parameters."""
    try:
        found = _large.get(module)
    except TypeError:                                           # a class with an equality of its own
        return False
    if found is None:
        sizes = [getattr(p, "_numel", None) for p in module.parameters()]
        if None in sizes:                                       # not made yet
            return False
        found = _large[module] = sum(sizes) > FEW
    return not found


def _reads(function, cls, form, depth) -> bool:
    """Whether a method could be read to its end; ``form`` has what it depends on."""
    if not isinstance(function, types.FunctionType) or depth > _DEPTH:
        return False
    code = function.__code__
    if not all([v.__class__ in PLAIN for v in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())]):
        return False
    if code.co_cellvars or code.co_flags & (0x04 | 0x08 | 0x20 | 0x80 | 0x100) or not code.co_argcount:     # *args, **kwargs, generators
        return False
    cells = dict(zip(code.co_freevars, function.__closure__ or ()))
    own, before, value = code.co_varnames[0], "", None         # the module; what the last instruction loaded: "self", "value" (known), or something else
    for step in dis.get_instructions(code):
        name, arg = step.opname, step.argval
        if name in _ATTRIBUTE:
            if before == "self":
                if not _attribute(cls, arg, form, depth):
                    return False
                before = ""
            elif before == "value" and isinstance(value, types.ModuleType):
                before, value = _known(value, arg, getattr(value, arg, None), form)
                if not before:
                    return False
            elif arg not in _METHODS:
                return False
            else:
                before = ""
        elif before == "self":                                  # used otherwise than for its attributes
            return False
        elif name in _LOCAL:
            before = "self" if arg == own else ""
        elif name in _PAIRS:
            if own in (arg if name.startswith("LOAD") else arg[:1]):
                return False
            before = "self" if own in arg else ""
        elif name == "LOAD_GLOBAL":
            scope = function.__globals__
            before, value = _known(scope, arg, scope.get(arg, getattr(builtins, arg, None)), form)
            if not before:
                return False
        elif name == "LOAD_DEREF":
            before, value = _known(cells.get(arg), "cell_contents", getattr(cells.get(arg), "cell_contents", None), form)
            if not before:
                return False
        elif name in _STEPS:
            if name.startswith("STORE_FAST") and (arg == own or own in arg and arg.__class__ is tuple):
                return False
            if name not in ("PUSH_NULL", "CACHE", "EXTENDED_ARG", "NOP", "RESUME", "COPY_FREE_VARS"):
                before = ""
        else:
            return False
    return True


def _known(scope, name, value, form):
    """("value", value) of a name that means a module, function or constant of this package or a builtin; else ("", None)."""
    if isinstance(value, types.ModuleType):
        good = value.__name__.partition(".")[0] in (_PACKAGE, "math")
    elif value.__class__ in PLAIN:
        good = True
    else:
        good = getattr(value, "__module__", None) == "math" or value in _BUILTINS if isinstance(value, (types.BuiltinFunctionType, type)) else pure(value)
    if good:
        form.fixed.append((scope, name, value))
    return ("value", value) if good else ("", None)


_functions = set()


def pure(value) -> bool:
    """Whether a function is one of this package's operators."""
    if not _functions:
        from clnn.nn import functional
        from clnn.ops import creation, random
        _functions.update([op.fn for op in REGISTRY.values()])
        _functions.update([f for scope in (creation, random) for name, f in vars(scope).items() if name in _FACTORIES])
        _functions.update([f for name, f in vars(functional).items() if isinstance(f, types.FunctionType) and not name.endswith("_")])
    return isinstance(value, types.FunctionType) and value in _functions


def _attribute(cls, name, form, depth) -> bool:
    """Note an attribute of the module that is read; a method of the class is read on."""
    of_class = getattr(cls, name, None)
    if isinstance(of_class, types.FunctionType) and not pure(of_class):
        if of_class.__module__.partition(".")[0] == _PACKAGE or not _reads(of_class, cls, form, depth + 1):
            return False
        form.methods[name] = None
        form.fixed.append((cls, name, of_class))
        return True
    if isinstance(of_class, (property, classmethod)):
        return False
    form.names[name] = None
    return True


def told(module, form, operands, key) -> bool:
    """Add what the result of a module's forward method depends on, besides the layers in it, to ``operands`` and ``key``; False where that cannot be told."""
    own = module.__dict__
    if not form.holds() or not form.methods.keys().isdisjoint(own):
        return False
    layers, parameters, buffers = own["_modules"], own["_parameters"], own["_buffers"]
    key += (module.__class__, own["training"], *layers, *parameters, *buffers)
    for name in form.names:
        if name in layers or name in parameters or name in buffers:
            continue
        value = own[name] if name in own else getattr(module.__class__, name, form)
        kind = value.__class__
        if isinstance(value, Tensor):
            operands.append(value)
        elif kind in PLAIN or kind is tuple and all([v.__class__ in PLAIN for v in value]) or pure(value):
            key += (value if kind is not tuple and kind is not float else repr(value), kind)     # 0.0 equals -0.0, (1,) equals (True,)
        else:
            return False
    operands += parameters.values()
    operands += buffers.values()
    return True
