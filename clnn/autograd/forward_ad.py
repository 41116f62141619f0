"""Forward-mode differentiation: tensors that carry a tangent, in a block ``dual_level()``.

Operators have rules for the backward pass only. The product of vectors with the Jacobian, ``u -> J' u``, is linear in ``u``, and its own derivative is
``t -> J t``: the tangent of a result comes from two walks over the tape when it is asked for (:func:`unpack_dual`), whatever the number of operators. So
operators must be recorded: within ``no_grad`` results have no tangent; a level that begins there records for itself, and what it unpacks has no history.
A :class:`clnn.autograd.Function` with a ``jvp`` of its own is asked for that.
"""
from __future__ import annotations

from collections import namedtuple

from .._tensor import display, tape
from .._tensor.grad_mode import enable_grad, state
from .._tensor.tensor import Tensor, edge
from ..ops import creation

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]

UnpackedDualTensor = namedtuple("UnpackedDualTensor", "primal tangent")
UnpackedDualTensor.__doc__ = "What :func:`unpack_dual` returns: ``primal`` and ``tangent``, which is None where there is none."
_current_level = -1
_quiet = False                  # whether the level began within no_grad
_duals: list = []               # the tape entries of the duals of this level


class _Dual(tape.Node):
    """Where a dual tensor stands on the tape: the primal's gradient is that of the dual."""

    __slots__ = ("primal", "tangent")

    def __init__(self, primal, tangent):
        at = edge(primal)
        super().__init__([] if at is None else [at], 1)
        self.primal, self.tangent = primal, tangent

    def name(self):
        return "DualBackward0"

    def apply(self, grads, needed):
        return grads[:len(self.edges)]


class _Unpacked(tape.Node):
    """Where a tangent that was taken out stands: what follows from it has no tangent of its own."""

    __slots__ = ()

    def name(self):
        return self.edges[0][0].name()

    def apply(self, grads, needed):
        return grads


def _taken_out(tangent):
    """``tangent`` behind an :class:`_Unpacked` entry."""
    out = tangent._alias()
    out._grad_fn, out._out_nr, out._rg = _Unpacked([edge(tangent)], 1), 0, True
    return out


def enter_dual_level():
    """Begin a level of forward differentiation; returns its number. There is one at a time."""
    global _current_level, _quiet
    if _current_level >= 0:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    _current_level, display.dual_of = 0, unpack_dual
    _quiet = not state.grad and not state.inference
    if _quiet:
        state.grad = True
    return _current_level


def exit_dual_level(*, level=None):
    """End a level: all tangents made in it are gone."""
    global _current_level, _quiet
    level = _current_level if level is None else level
    if level < 0:
        raise RuntimeError("Dual level must be a positive number.")
    if level != _current_level:
        raise RuntimeError("Trying to exit a forward AD level that was not the last one that was created. This is not supported.")
    _current_level, display.dual_of = -1, None
    if _quiet:
        state.grad, _quiet = False, False
    for node in _duals:
        node.tangent = None
    _duals.clear()


class dual_level:
    """The block in which tensors made by :func:`make_dual` have tangents.

    Example::

        >>> from clnn.autograd import forward_ad
        >>> with forward_ad.dual_level():
        ...     x = forward_ad.make_dual(clnn.tensor([1., 2.]), clnn.tensor([1., 0.]))
        ...     forward_ad.unpack_dual((x * x).sum()).tangent
        tensor(2.)
    """

    def __enter__(self):
        return enter_dual_level()

    def __exit__(self, *exc):
        exit_dual_level()


def make_dual(tensor, tangent, *, level=None):
    """``tensor`` with the tangent ``tangent``: another handle on its memory, for use within the level.

    Raises:
        ValueError: one of them is neither float nor complex.
        RuntimeError: outside of a level, or the shapes differ.

    Example:
        >>> import clnn.autograd.forward_ad as fwad
        >>> with fwad.dual_level():
        ...     x = fwad.make_dual(clnn.tensor([2.0]), clnn.tensor([1.0]))
        ...     print(fwad.unpack_dual(x ** 3).tangent)
        tensor([12.])
    """
    if (_current_level if level is None else level) < 0:
        raise RuntimeError("Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first.")
    if level not in (None, _current_level):
        raise RuntimeError("Invalid level given to _make_dual")
    for what, t in (("primal", tensor), ("tangent", tangent)):
        if not t.dtype.differentiable:
            raise ValueError(f"Expected {what} to be floating point or complex, but got: {t.dtype}")
    if tensor.shape != tangent.shape:
        raise RuntimeError("Trying to set a forward gradient that has a different size than that of the original Tensor, this is not supported. Tensor is of "
                           f"size {list(tensor.shape)} while the given forward gradient is of size {list(tangent.shape)}.")
    if any(type(d) is _Dual and d.tangent is not None for d in (tensor._grad_fn, tangent._grad_fn)):
        raise RuntimeError("Making a dual Tensor based on a Tensor that already has a forward gradient at the same level 0 is not supported."
                           if type(tensor._grad_fn) is _Dual else "Setting a forward grad that itself has a forward gradient at the same level0 is not supported.")
    node = _Dual(tensor, tangent)
    _duals.append(node)
    dual = tensor._alias()
    dual._grad_fn, dual._out_nr, dual._rg = node, 0, True
    return dual


def unpack_dual(tensor, *, level=None):
    """The value and the tangent of ``tensor``: ``UnpackedDualTensor(primal, tangent)``.

    The tangent is None outside of a level, and where ``tensor`` depends on no dual. Primal and tangent have a history where other tensors that require
    gradients took part, so that they can be differentiated backward in turn.

    Example:
        >>> import clnn.autograd.forward_ad as fwad
        >>> with fwad.dual_level():
        ...     x = fwad.make_dual(clnn.tensor([2.0]), clnn.tensor([1.0]))
        ...     print(fwad.unpack_dual(x ** 3))
        UnpackedDualTensor(primal=tensor([8.]), tangent=tensor([12.]))
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"_unpack_dual(): argument 'dual' (position 1) must be Tensor, not {type(tensor).__name__}")
    if level is not None and level not in (-1, _current_level):
        raise RuntimeError("Invalid level given to _fw_primal")
    at = edge(tensor) if (_current_level if level is None else level) >= 0 and _duals else None
    if at is None:
        return UnpackedDualTensor(tensor, None)
    if type(at[0]) is _Dual and at[0].tangent is not None:
        return UnpackedDualTensor(at[0].primal, at[0].tangent)
    kinds = _reached(at[0])
    if _Dual not in kinds:
        return UnpackedDualTensor(tensor, None)
    linked = not _quiet and (tape.AccumulateGrad in kinds or any(d.tangent._rg for d in _duals))
    push = pushforward([tensor], [(d, 0) for d in _duals])
    tangent, = push([d.tangent for d in _duals], linked)                # zeros where it does not follow from them, as of ``floor``
    if linked:
        return UnpackedDualTensor(tensor, _taken_out(tangent) if tangent._grad_fn is not None else tangent)
    return UnpackedDualTensor(tensor.detach(), tangent.detach())


def _reached(root):
    """The kinds of entries in the graph behind ``root``, up to tangents that were taken out."""
    seen, stack = {root}, [root]
    while stack:
        node = stack.pop()
        for e in node.edges if node.__class__ is not _Unpacked else ():
            if e is not None and e[0] not in seen:
                seen.add(e[0])
                stack.append(e[0])
    return {node.__class__ for node in seen}


def pushforward(outputs, places):
    """A function from tangents at ``places`` on the tape to those of the tensors ``outputs``: the derivative of ``u -> vjp(u)``."""
    flags = [o._rg for o in outputs]                                  # indices and truth values do not move
    dummies = [creation.zeros_like(o.detach()).requires_grad_() for o in outputs if o._rg]
    live = [(edge(o), u) for o, u in zip([o for o in outputs if o._rg], dummies)]
    with enable_grad():
        before, state.pushing = state.pushing, True
        try:
            back = tape.run([at for at, _ in live], [u.view_as(u) for _, u in live], True, True, places, accumulate=False) if live else [None] * len(places)
        finally:
            state.pushing = before

    def push(tangents, create, missing=creation.zeros_like):
        """``missing``: makes the tangents of outputs that depend on nothing; None leaves them None."""
        pairs = [(edge(b), t) for b, t in zip(back, tangents) if b is not None and b._rg]
        if pairs:
            got = iter(tape.run([at for at, _ in pairs], [t for _, t in pairs], True, create, [edge(u) for u in dummies], accumulate=False))
        else:
            got = iter([None] * len(dummies))
        moved = [next(got) if flag else None for flag in flags]
        return [missing(o.detach()) if g is None and missing is not None else g for g, o in zip(moved, outputs)]
    return push


class Transposed(tape.Node):
    """The vector-Jacobian product of a custom function that has a ``jvp``: only its derivative exists, and that is the ``jvp``."""

    __slots__ = ("of",)

    def __init__(self, of, grads):
        super().__init__([edge(u) if u is not None else None for u in grads], len(of.inputs))
        self.of = of

    def apply(self, tangents, needed):
        of = self.of
        device = next(m[2] for m in of.metas if m is not None)
        full = [t if t is not None or meta is None or not of.ctx._materialize else creation.filled(meta[0], 0, meta[1], device)
                for t, meta in zip(tangents, of.inputs)]
        got = of.cls.jvp(of.ctx._for_jvp(), *full)
        got = got if isinstance(got, tuple) else (got,)
        if len(got) != len(self.edges):
            raise RuntimeError(f"Function's jvp returned an invalid number of forward gradients (expected {len(self.edges)} but got {len(got)})")
        for i, (g, meta) in enumerate(zip(got, of.metas)):
            if g is not None and not isinstance(g, Tensor):
                raise RuntimeError(f"expected Variable or None (got {type(g).__name__}) for grad output {i}.")
            if g is not None and meta is not None and g.shape != meta[0]:
                raise RuntimeError("Trying to set a forward gradient that has a different size than that of the original Tensor, this is not supported. Tensor "
                                   f"is of size {list(meta[0])} while the given forward gradient is of size {list(g.shape)}.")
        return [g if isinstance(g, Tensor) and flag else None for g, flag in zip(got, needed)]

    def results(self):
        """Stand-ins for the products, whose values nobody reads."""
        out, device = [], next(m[2] for m in self.of.metas if m is not None)
        for nr, (meta, at) in enumerate(zip(self.of.inputs, self.of.edges)):
            t = None
            if meta is not None and at is not None:
                t = creation.filled(meta[0], 0, meta[1], device)
                t._grad_fn, t._out_nr, t._rg = self, nr, True
            out.append(t)
        return out
