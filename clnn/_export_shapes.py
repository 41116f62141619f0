"""Sizes that may differ between calls of an exported program, and the ways to say which."""
from __future__ import annotations

from clnn._tensor.tensor import Tensor
from clnn.utils._pytree import tree_flatten, tree_map


class Dim:
    """A size that may differ between calls: ``Dim("batch", min=1)``. Sizes that follow from it are ``dim + 1``, ``dim - 1`` and ``2 * dim``."""

    AUTO = DYNAMIC = STATIC = None

    def __init__(self, name, *, min=None, max=None):
        if not isinstance(name, str) or not name.isidentifier():
            raise (AssertionError if isinstance(name, str) else AttributeError)(f"Dim name must be a valid identifier, got {name}")
        self.__name__, self.min, self.max, self.root = name, min, max, self

    def __repr__(self):
        if self in (Dim.AUTO, Dim.DYNAMIC, Dim.STATIC):
            return f"DimHint({self.__name__})"
        if self.root is not self:
            return f"Dim('{self.__name__}')"
        bounds = [f"min={self.min}"] * (self.min is not None and self.min > 2) + [f"max={self.max}"] * (self.max is not None)
        return f"Dim({', '.join([repr(self.__name__), *bounds])})"

    def _derived(self, name):
        made = object.__new__(Dim)
        made.__name__, made.min, made.max, made.root = name, None, None, self.root
        return made

    def __add__(self, other):
        _whole(other, "+")
        return self._derived(f"{self.__name__} + {other}")

    def __sub__(self, other):
        _whole(other, "-")
        return self._derived(f"{self.__name__} - {other}")

    def __mul__(self, other):
        _whole(other, "*")
        if other <= 0:
            raise NotImplementedError(f"Attempted to multiply {other} with {self.__name__}, where a positive integer was expected. (Only increasing linear operations "
                                      "with integer coefficients are supported.)")
        return self._derived(f"{other}*{self.__name__}")

    __radd__, __rmul__ = __add__, __mul__


def _whole(other, sign):
    if type(other) is not int:
        raise NotImplementedError(f"Attempted to compute a size by {sign} with {other}, where an integer was expected. (Only increasing linear operations with integer "
                                  "coefficients are supported.)")


Dim.AUTO, Dim.DYNAMIC, Dim.STATIC = Dim("AUTO"), Dim("DYNAMIC"), Dim("STATIC")


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
