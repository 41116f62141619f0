"""Sizes that may differ between calls of an exported program, and the ways to say which."""
from __future__ import annotations

from clnn._tensor.tensor import Tensor
from clnn.utils._pytree import tree_flatten, tree_map


class _NoBound(float):
    """The bound of sizes without one."""

    __slots__ = ()

    def __repr__(self):
        return "int_oo"

    __str__ = __repr__


int_oo = _NoBound("inf")
_ONLY = "(Only increasing linear operations with integer coefficients are supported.)"


class _DimHint:
    """A size without a name: ``Dim.AUTO``, ``Dim.DYNAMIC``, ``Dim.STATIC``; called with bounds it gives one that has them."""

    def __init__(self, type, min=None, max=None, factory=True):
        self.type, self.min, self.max, self._factory = type, min, max, factory

    def __call__(self, min=None, max=None):
        if not self._factory:
            raise TypeError(f"'{type(self)}' object is not callable")
        for name, bound in (("min", min), ("max", max)):
            if bound is not None and bound < 0:
                raise AssertionError(f"{name} must be non-negative, got {bound}")
        if min is not None and max is not None and min > max:
            raise AssertionError(f"min must be <= max, got min={min}, max={max}")
        return _DimHint(self.type, min, max, False)

    def __eq__(self, other):
        return isinstance(other, _DimHint) and vars(self) == vars(other)

    __hash__ = None

    def __repr__(self):
        bounds = [f"{name}={bound}" for name, bound in (("min", self.min), ("max", self.max)) if bound is not None]
        return f"DimHint({', '.join([self.type, *bounds])})"


class Dim:
    """A size that may differ between calls: ``Dim("batch", min=1)``. Sizes that follow from it are ``dim + 1``, ``dim - 1`` and ``2 * dim``.

    Example:
        >>> rows = clnn.export.Dim("rows", max=8)
        >>> rows, 2 * rows + 1, (2 * rows + 1).max
        (Dim('rows', min=0, max=8), 2*rows + 1, 17)
    """

    AUTO, DYNAMIC, STATIC = map(_DimHint, ("AUTO", "DYNAMIC", "STATIC"))

    def __init__(self, name, *, min=None, max=None):
        self.min, self.max = 0 if min is None else min, int_oo if max is None else max
        if not self.max > self.min:
            raise AssertionError(f"Cannot create Dim with inconsistent min={min}, max={max}")
        if not name.isidentifier():
            raise AssertionError(f"Dim name must be a valid identifier, got {name}")
        self.__name__ = name

    def __repr__(self):
        bounds = [f"min={self.min}"] * (self.min != 2) + [f"max={self.max}"] * (self.max is not int_oo)
        return f"Dim({', '.join([repr(self.__name__), *bounds])})"

    def _line(self):
        """The size as ``scale * root + offset``."""
        return self, 1, 0

    def __add__(self, other):
        if type(other) is not int:
            raise NotImplementedError(f"Attempted to add {other} to {self.__name__}, where an integer was expected. {_ONLY}")
        root, scale, offset = self._line()
        return _DerivedDim(root, scale, offset + other)

    def __sub__(self, other):
        if type(other) is not int:
            raise NotImplementedError(f"Attempted to subtract {other} from {self.__name__}, where an integer was expected. {_ONLY}")
        return self + -other

    def __rsub__(self, other):
        raise NotImplementedError(f"Attempted to negate {self.__name__}. {_ONLY}")

    def __mul__(self, other):
        if type(other) is not int or other <= 0:
            raise NotImplementedError(f"Attempted to multiply {other} with {self.__name__}, where a positive integer was expected. {_ONLY}")
        root, scale, offset = self._line()
        return _DerivedDim(root, scale * other, offset * other)

    __radd__, __rmul__ = __add__, __mul__


class _DerivedDim(Dim):
    """``scale * root + offset``, with the bounds that follow."""

    def __init__(self, root, scale, offset):
        self.root, self.scale, self.offset = root, scale, offset
        name = root.__name__ if scale == 1 else f"{scale}*{root.__name__}"
        self.__name__ = name if not offset else f"{name} {'+-'[offset < 0]} {abs(offset)}"

    def fn(self, size):
        """This size where the root has ``size``."""
        return size if size is int_oo else self.scale * size + self.offset

    @property
    def min(self):
        least = self.fn(self.root.min)
        if least < 0:
            raise AssertionError(f"Expected derived min value of {self.__name__} to be >= 0. Please specify an appropriate min value for {self.root.__name__} "
                                 f"(currently {self.root.min}).")
        return least

    max = property(lambda self: self.fn(self.root.max))

    def _line(self):
        return self.root, self.scale, self.offset

    def __repr__(self):
        return self.__name__


def _by_argument(m, args, kwargs):
    """The arguments of ``forward`` by name."""
    import inspect
    forward = m.forward if hasattr(m, "forward") else m
    return dict(inspect.signature(forward).bind(*args, **(kwargs or {})).arguments)


class ShapesCollection:
    """Which sizes of which tensors may differ: ``shapes[x] = (dim, None)``; given to :func:`clnn.export.export` as ``dynamic_shapes``.

    Example:
        >>> x, shapes = clnn.ones(2, 3), clnn.export.ShapesCollection()
        >>> shapes[x] = {0: clnn.export.Dim.DYNAMIC}
        >>> clnn.export.export(clnn.nn.ReLU(), (x,), dynamic_shapes=shapes).module()(clnn.ones(5, 3)).shape
        clnn.Size([5, 3])
    """

    def __init__(self):
        self._shapes, self._kept = {}, []

    def __setitem__(self, t, shape):
        if not isinstance(t, Tensor):
            raise AssertionError(f"Cannot assign shape to non-tensor or non-_IntWrapper type {type(t)}")
        if self._shapes.setdefault(id(t), shape) != shape:
            raise AssertionError(f"Shapes assigned to input is a mismatch: expected {self._shapes[id(t)]}, got {shape}")
        self._kept.append(t)

    def __getitem__(self, t):
        return self._shapes.setdefault(id(t), {})

    def __len__(self):
        return len(self._shapes)

    def dynamic_shapes(self, m, args, kwargs=None):
        """What :func:`clnn.export.export` takes: the shapes at the places of their tensors among the arguments."""
        given = _by_argument(m, args, kwargs)
        if set(self._shapes) - {id(leaf) for leaf in tree_flatten(given)[0]}:
            raise ValueError("Some tensors that were assigned shapes were not found in args. Maybe such tensors were copied when passing them as args? "
                             "Maybe such tensors are contained in classes that were not registered with pytree?")
        return tree_map(lambda t: self._shapes.get(id(t)), given)


class AdditionalInputs:
    """Further arguments of a program: what differs between them and those of the export may differ between calls.

    Example:
        >>> more = clnn.export.AdditionalInputs()
        >>> more.add((clnn.ones(5, 3),))
        >>> clnn.export.export(clnn.nn.ReLU(), (clnn.ones(2, 3),), dynamic_shapes=more).module()(clnn.ones(7, 3)).shape
        clnn.Size([7, 3])
    """

    def __init__(self):
        self._examples = []

    def add(self, args, kwargs=None):
        """One more call."""
        if type(args) is not tuple or kwargs is not None and type(kwargs) is not dict:
            raise AssertionError(f"Representative args {args} must be a tuple" if type(args) is not tuple else f"Representative kwargs {kwargs} must be None or a dict")
        self._examples.append((args, kwargs))

    def dynamic_shapes(self, m, args, kwargs=None):
        """A size that differs among the calls is ``Dim.DYNAMIC``."""
        calls = [_by_argument(m, *call) for call in [(args, kwargs), *self._examples]]
        others = [tree_flatten(call)[0] for call in calls]
        places = iter(range(len(others[0])))

        def differing(leaf):
            found = [leaves[i] for leaves in others] if (i := next(places)) is not None else []
            return tuple([Dim.DYNAMIC if len({t.shape[d] for t in found}) > 1 else None for d in range(leaf.ndim)]) if isinstance(leaf, Tensor) else None
        return tree_map(differing, calls[0])

    def verify(self, ep):
        """Call the program with each of the arguments."""
        module = ep.module()
        for args, kwargs in self._examples:
            module(*args, **(kwargs or {}))
