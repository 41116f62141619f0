"""In-place operators: the out-of-place result is written into the target's memory and takes over its place on the tape."""
from __future__ import annotations

import contextlib
import math
import sys

from ..core import dtype as dt
from ..core import native
from ..core.shape import Size, is_contiguous
from ..core.warn import warn
from ..graph import fuse, store
from ..graph.node import held
from ..graph.op import REGISTRY
from . import foreign, tape
from .dispatch import memory_order, plain
from .entries import frozen
from .foreign import NoStrides
from .grad_mode import state
from .return_types import _Named, written
from .tensor import Tensor, edge
from .writing import bump, kept_beside, rebind, write
from .views import refuse, wake


_refcount = sys.getrefcount


def mark() -> int:
    """A number that all tape entries made from now on exceed."""
    return next(tape._counter)


@contextlib.contextmanager
def overwriting(target: Tensor):
    """In the block, hooks on saved tensors are given the present value of ``target``, which is about to be written, as something of its own."""
    before = state.overwritten
    try:
        state.overwritten = target._storage
    except NoStrides:
        pass
    try:
        yield
    finally:
        state.overwritten = before


def part_of_memory(t) -> bool:
    """Whether ``t`` is some, but not all, of what its storage holds, each element once."""
    return t.__class__ is Tensor and 0 < t._numel and t._numel * t.dtype.itemsize < t._storage.nbytes and 0 not in t._strides \
        and t._storage.device.kind != "meta"


def put(t, shape, strides, offset, numel, value, gone=False) -> bool:
    """Put ``value``, a number or a tensor of the same dtype, into a region of the memory of ``t`` where nobody keeps a history of either, or looks at the
    memory as it was. False, with nothing done, where that is not so. ``gone``: nobody has the tensor any more when this returns."""
    st, number = t._storage, value.__class__ is not Tensor
    if st.version < 0 or st.mirrored or st.pinned or state.watched or foreign.early is not None or foreign.dispatched is not None or st.device.kind == "meta":
        return False
    if state.grad and (t._rg or t._base is not None and t._base._rg or not number and value._rg):
        return False
    if st.node is not None and (number or value.dtype is t.dtype):
        fuse.realize(st)
    if number:
        return _store(t, shape, strides, offset, numel, value)
    src, node = value._storage, value._storage.node
    if st.node is not None or value.dtype is not t.dtype or src.mirrored or src.pinned or src.device is not st.device:
        return False
    if node is None:
        return _put_values(t, shape, strides, offset, numel, value)
    if node.buf is not None or node.reduce is not None or value.shape != shape or node.shape != shape or node.dtype is not t.dtype or not value._dense:
        return False
    if not gone and any([r.__class__ is tuple and r[0] is st.buf and r[2] == offset and r[3] == strides for r in node.args]):
        return False                                    # whoever holds ``value`` still wants what was there
    if kept_beside(st, node, (shape, strides, offset), t.dtype):
        st.buf = st.device.duplicate(st.buf, st.nbytes)             # what others see stays as it was
    store.store_into(st.device, node, st.buf, offset, shape, strides, t.dtype)
    bump(t)
    return True


native.give(put=put, store=vars(store))
put = native.form("put", put)


def _put_values(t, shape, strides, offset, numel, value) -> bool:
    """:func:`put` of a tensor that is not pending."""
    st, src, steps = t._storage, value._storage, value._strides
    if value.shape != shape:
        if value.shape:
            return False
        steps = (0,) * len(shape)
    if src is st:
        if value._offset == offset and steps == strides:
            return bump(t) is None                      # ``x[i] += 1`` ends with this
        last, end = [o + sum([(n - 1) * s for n, s in zip(shape, w)]) for o, w in ((offset, strides), (value._offset, steps))]
        if offset <= end and value._offset <= last:
            return False
    return _store(t, shape, strides, offset, numel, (src.buf, value.dtype, value._offset, steps))


def _store(t, shape, strides, offset, numel, value) -> bool:
    st = t._storage
    if _refcount(st.buf) > 2 + (id(st.buf) in held) + (value.__class__ is tuple and value[0] is st.buf):
        st.buf = st.device.duplicate(st.buf, st.nbytes)             # as above
    store.store(st.device, value, t.dtype, shape, numel, st.buf, offset, strides)
    bump(t)
    return True


def freeze(target: Tensor, result: Tensor, since: int | None) -> None:
    """Entries of ``result`` that kept ``target`` for their gradient keep its present value instead, which costs nothing until it is written.

    Looks at the entries made after ``since``, or at the last one only.
    """
    stack, seen = [result._grad_fn], set()
    while stack:
        node = stack.pop()
        if node is None or node in seen or (since is not None and node.seq <= since):
            continue
        seen.add(node)
        if node.unfolds:
            node.unfold()
        values = getattr(node, "values", None)
        for i, v in enumerate(values or ()):
            if isinstance(v, Tensor) and v._storage is target._storage:
                values[i] = frozen(v)
                if node.versions is not None:
                    node.versions[i] = values[i]._storage.version
        if since is not None:
            stack.extend(e[0] for e in node.edges if e is not None)


def _replaced(target, result) -> bool:
    """:func:`apply_inplace` of what most calls give: a pending result for all of the target's memory, without a history. False, with nothing done, elsewhere."""
    if state.grad and (target._rg or result._rg) or target.__class__ not in plain or result.__class__ is not Tensor or result.shape != target.shape \
            or not rebind(target, result):
        return False
    owner = target._base if target._base is not None else target
    if owner._rg and owner._views is not None:
        wake(owner)
    return True


native.give(wake=wake, replaced=_replaced)
_replaced = native.form("replaced", _replaced)


def applied(target, result):
    """Let ``target`` hold ``result``, which only the caller's expression refers to: None; ``result`` where that takes :func:`apply_inplace`."""
    if result.__class__ is Tensor and _replaced(target, result):
        return None
    return result


applied = native.form("applied", applied)


_UNSEEN = ("logical_not", "logical_and", "logical_or", "logical_xor")            # writes that PyTorch's graph does not know of


def apply_inplace(target: Tensor, result: Tensor, name: str, since: int | None = None) -> Tensor:
    """Make ``target`` hold ``result``.

    Args:
        since: what :func:`mark` gave before ``result`` was computed, when that took several operators.

    Raises RuntimeError when the shape would change, the dtype cannot hold the result, or a leaf that requires grad would lose its value.
    """
    if result.__class__ is not Tensor:
        result._check_fits(target, name)
    elif _replaced(target, result):
        return target
    elif result._storage.node is not None and part_of_memory(target) and result.dtype is target.dtype and result.shape == target.shape:
        box = [result]
        del result                                                   # which may be another's reference (since Python 3.14) or one more
        gone, result = _refcount(box[0]) <= 2 and _refcount(box[0]._storage) <= 2, box.pop()
        if put(target, target.shape, target._strides, target._offset, target._numel, result, gone):
            return target
    if result.shape != target.shape:
        if target._numel < 2 or len(result.shape) > len(target.shape) or result._numel != target._numel:
            if name in ("addmm", "addmv", "baddbmm"):
                raise RuntimeError(f"Bad in-place call: input tensor size {list(target.shape)} and output tensor size {list(result.shape)} should match")
            raise RuntimeError(f"output with shape {list(target.shape)} doesn't match the broadcast shape {list(result.shape)} ({name}_)")
    if result.dtype is not target.dtype:
        if result.dtype.category > target.dtype.category:
            raise RuntimeError(f"result type {type_name(result.dtype)} can't be cast to the desired output type {type_name(target.dtype)}")
        if name == "abs":
            raise RuntimeError("In-place abs is not supported for complex tensors.")
        computed = result._grad_fn
        result = result.to(target.dtype)
        if computed is not None and result._grad_fn is not None:
            result._grad_fn.label = computed.name()                  # PyTorch has one entry for both
    try:
        strides = target._strides
    except NoStrides:
        return target._become(result, name)
    if 0 in strides and target._numel and any(s == 0 and n > 1 for s, n in zip(strides, target.shape)):
        if name in ("fill", "zero"):                                 # one value for all of them
            once = tuple([slice(0, 1) if s == 0 else slice(None) for s in strides])
            apply_inplace(target[once], result[once], name)
            return target
        if name in _SOME:
            _write_changed(target, result, name)
            return target
        raise RuntimeError("unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
                           "Please clone() the tensor before performing the operation.")
    if state.grad and (target._rg or result._rg) and name not in _UNSEEN:
        if target._origin is not None:
            refuse(target)
        if target._grad_fn is not None and target._base is None and (not result._rg or name in ("copy", "fill")):
            result = _overwritten(target, result, name)
        freeze(target, result, since)
        take_history(target, result)
    node = result._grad_fn
    box = [result]
    del result                                                       # as above
    gone, result = _refcount(box[0]) <= 2 and _refcount(box[0]._storage) <= 2, box.pop()
    write(target, result, gone)
    owner = target._base if target._base is not None else target
    if owner._rg and owner._views is not None:
        wake(owner)
    if node is not None and node is target._grad_fn and getattr(node, "result", None):
        owner = target._ver or target._storage
        node.result = [r if r is None or type(r) is not tuple else (r[0], owner, owner.version) for r in node.result]
    return target


_SOME = dict(masked_fill="mask] = scalar", index_fill="mask] = scalar", index_put="indices] = tensor")       # these may write some elements of expanded tensors


def _write_changed(target, result, name):
    """Write ``result`` into memory of which several elements of ``target`` are one: where they differ, what was changed counts."""
    warn(f"Use of {name}_ on expanded tensors is deprecated. Please clone() the tensor before performing this operation. This also applies to advanced "
         f"indexing e.g. tensor[{_SOME[name]}")
    for d, (size, stride) in enumerate(zip(target.shape, target._strides)):
        if stride == 0 and size > 1:
            changed = (result != target).to(dt.uint8).argmax(d, keepdim=True)
            result, target = result.gather(d, changed), target.narrow(d, 0, 1)
    apply_inplace(target, result, name)


def draw_into(target, make, name) -> Tensor:
    """Make ``target`` hold the numbers that ``make`` draws for a shape, in the order of memory. It is also told the order, None for their own."""
    if state.grad and target._rg:
        refuse_leaf(target)                                          # no number is drawn for an error
    order = None if target.is_contiguous() else memory_order(target)
    if order is None:
        return apply_inplace(target, make(target.shape, None), name)
    drawn = make(Size([target.shape[d] for d in order]), order)
    return apply_inplace(target, drawn.permute([order.index(d) for d in range(len(order))]), name)


_WRITTEN = dict(copy="torch::autograd::CopyBackwards", fill="FillBackward2", random="RandomBackward2", bernoulli="BernoulliBackward2")


def written_name(name):
    """What PyTorch calls the entry of the in-place operator ``name`` that leaves nothing of what the tensor was."""
    return _WRITTEN.get(name) or "".join([part.capitalize() for part in name.split("_")]) + "Backward0"


class Overwritten(tape.Node):
    """A tensor of the graph that holds values from elsewhere now: what it was gets no gradient, but stays part of the graph."""

    def __init__(self, target, name, result):
        source = []
        if result._rg:
            made = result._grad_fn
            source = made.edges[:1] if getattr(made, "label", None) == _WRITTEN["copy"] else [edge(result)]     # a copy that was made to be written
        super().__init__([edge(target), *source])
        self.label, self.meta = "FillBackward3" if source and name == "fill" else written_name(name), (target.shape, target.dtype)

    def name(self):
        return self.label

    def traits(self):
        return (Overwritten, self.meta, len(self.edges)), ()

    def apply(self, grads, needed):
        shape, dtype = self.meta
        return [grads[0].new_zeros(shape, dtype=dtype), grads[0]][:len(self.edges)]


def _overwritten(target, result, name):
    node = Overwritten(target, name, result)
    result = result._alias()
    result._grad_fn, result._out_nr, result._rg = node, 0, True
    return result


def type_name(dtype) -> str:
    return dt.SPOKEN[dtype.name]


def take_history(target, result) -> None:
    """Record that ``target`` is now ``result``; a view also rewrites the history of its base."""
    refuse_leaf(target)
    base = target._base
    owner = base if base is not None else target
    if base is not None:
        if owner._rg or result._rg:
            before = edge(owner)
            seen = owner._grad_fn, owner._out_nr
            owner._grad_fn, owner._out_nr, owner._rg = WriteRegion(before, edge(result), target), 0, True
            owner._rewritten = (owner._ver or owner._storage).version + 1
            if owner._retain:
                tape.move_retained(owner, *seen)
        return
    seen = target._grad_fn, target._out_nr
    target._grad_fn, target._out_nr, target._rg = result._grad_fn, result._out_nr, result._rg
    target._rewritten = (target._ver or target._storage).version + 1
    if target._retain:
        tape.move_retained(target, *seen)


def refuse_leaf(target) -> None:
    """Raise where ``target`` is a leaf that requires a gradient, or a view of one, or a view that may not be written."""
    base = target._base
    if base is None:
        if target._rg and target._grad_fn is None:
            raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
        if target._rg and target._origin is not None:
            refuse(target)
        return
    if base._grad_fn is None and (base._rg or target._rg):
        raise RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation.")
    if target._rg and target._origin is not None:
        refuse(target)


def _reinterpreted(base, view, shape):
    """For a view in another dtype than its base's, the parts of complex numbers or pairs as such: functions that take an image of the base of ``shape``
    to the dtype of the view and back, flat. (None, None) for views in the same dtype."""
    if base.dtype is view.dtype:
        return None, None
    apart, together = REGISTRY["view_as_real"].fn, REGISTRY["view_as_complex"].fn
    if base.dtype.is_complex and view.dtype is base.dtype.to_real():
        return (lambda g: apart(g).reshape(-1)), (lambda g: together(g.reshape(*shape, 2)))
    if view.dtype.is_complex and base.dtype is view.dtype.to_real():
        return (lambda g: together(g.reshape(-1, 2))), (lambda g: apart(g).reshape(shape))
    raise RuntimeError(f"a view in dtype {view.dtype} of a tensor of {base.dtype} cannot be written in place while gradients are recorded")


def _cut(image, size, stride, offset):
    """A region of a dense image, which may itself lie anywhere."""
    return REGISTRY["as_strided"].fn(image, size, stride, offset + image._offset)


def _image(base, view):
    """How gradients of ``base`` are laid out as its memory is, so that the strides of ``view`` hold for them: (shape, first element, forth, back)."""
    shape, strides, rank = tuple(base.shape), tuple(base._strides), len(base.shape)
    order = list(range(rank)) if is_contiguous(shape, strides) else memory_order(base, dense=True)
    old, new = base.dtype.itemsize, view.dtype.itemsize
    first, end = base._offset * old // new, view._offset + 1 + sum([(n - 1) * s for n, s in zip(view.shape, view._strides)])
    if order is None or view._offset < first or end > first + base._numel * old // new:      # gaps, or a view that reaches further: all of the memory
        whole = (base._storage.nbytes // old,)
        return whole, 0, lambda g: REGISTRY["embed_strided"].fn(g, whole, shape, strides, base._offset), lambda m: _cut(m, shape, strides, base._offset)
    if order == list(range(rank)):
        return shape, first, lambda g: g.contiguous(), lambda m: m
    inverse = [order.index(d) for d in range(rank)]
    return tuple([shape[d] for d in order]), first, lambda g: g.permute(order).contiguous(), lambda m: m.permute(inverse)


class _Region(tape.Node):
    """A region of the memory of a base: shape, strides and offset, in elements of the view's dtype."""

    def __init__(self, edges, view):
        super().__init__(edges, 1)
        self.shape, first, forth, back = _image(view._base, view)
        into, out = _reinterpreted(view._base, view, self.shape)
        self.geometry = (tuple(view.shape), tuple(view._strides), view._offset - first)
        self.forth, self.back = forth, back
        base = view._base
        self.about = (type(self), view.dtype, *self.geometry, base.shape, base._strides, base._offset, base.dtype)
        if into is not None:
            self.shape = (math.prod(self.shape) * view._base.dtype.itemsize // view.dtype.itemsize,)
            self.forth, self.back = (lambda g: into(forth(g))), (lambda m: back(out(m)))

    def traits(self):
        return self.about, ()


class WriteRegion(_Region):
    """base' = base with a region replaced: the region's gradient goes to the value, the rest to the old base."""

    def __init__(self, base_edge, value_edge, view):
        super().__init__([base_edge, value_edge], view)

    label = "torch::autograd::CopySlices"

    def name(self):
        return self.label

    def apply(self, grads, needed):
        image = self.forth(grads[0])
        region = _cut(image, *self.geometry)
        rest = None
        if needed[0]:
            mask = REGISTRY["embed_strided"].fn(region.detach().new_ones(region.shape), self.shape, *self.geometry)
            rest = self.back(REGISTRY["where"].fn(mask != 0, 0.0, image))
        return [rest, region]


class ReadRegion(_Region):
    """view = region of the rewritten base."""

    label = "AsStridedBackward0"

    def name(self):
        return self.label

    def apply(self, grads, needed):
        return [self.back(REGISTRY["embed_strided"].fn(grads[0], self.shape, *self.geometry))]


def region_node(base, view):
    return ReadRegion([edge(base)], view)


def _span(t):
    """(first byte, end) of a tensor that fills a block of memory; None of one with gaps or repetitions."""
    if not t._numel:
        return None
    if not is_contiguous(t.shape, t._strides):
        order = sorted(range(len(t.shape)), key=lambda d: -t._strides[d])
        if not is_contiguous(tuple([t.shape[d] for d in order]), tuple([t._strides[d] for d in order])):
            return None
    size = t.dtype.itemsize
    return t._offset * size, (t._offset + t._numel) * size


def refuse_overlap(target: Tensor, inputs, whole=False) -> None:
    """Raise when one of ``inputs`` shares a part of the memory of ``target``, which is written: the same region in the same order is no harm.

    ``whole``: it is, as what is written does not lie where it was read.
    """
    for t in inputs:
        if t.__class__ is list or t.__class__ is tuple:
            refuse_overlap(target, t, whole)
        elif isinstance(t, Tensor) and (whole or t is not target):
            try:
                if t._storage is not target._storage:
                    continue
                mine, theirs = _span(target), _span(t)
            except NoStrides:
                continue
            if mine and theirs and mine[0] < theirs[1] and theirs[0] < mine[1] and (whole or mine != theirs or t._strides != target._strides):
                raise RuntimeError("unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. "
                                   "Please clone() the tensor before performing the operation.")


native.give(refuse_overlap=refuse_overlap)
refuse_overlap = native.form("refuse_overlap", refuse_overlap)


def own_results(results, given) -> None:
    """Views of memory that none of the tensors ``given`` has are results like any others: nobody else sees a write to them."""
    for r in results if results.__class__ is tuple else (results,):
        try:
            if getattr(r, "_base", None) is not None and not _has(given, r._storage):
                r._base = r._origin = None
        except NoStrides:
            pass


def _has(given, storage):
    for t in given:
        if t.__class__ is list or t.__class__ is tuple:
            if _has(t, storage):
                return True
        elif getattr(t, "_storage", None) is storage:
            return True
    return False


def within(out, result, inputs) -> None:
    """Raise where ``out``, which the elementwise ``result`` is written to, is of another shape and one of ``inputs``: these are not resized."""
    if any([t is out for t in inputs]) and out.shape != result.shape:
        raise RuntimeError(f"output with shape {list(out.shape)} doesn't match the broadcast shape {list(result.shape)}")


def refuse_dtype(target, dtype) -> None:
    """Raise where an in-place form is to compute in another ``dtype`` than that of ``target``."""
    row = dt.as_dtype(dtype)
    if row is not None and row is not target.dtype:
        raise RuntimeError(f"Bad in-place call: input tensor dtype {dt.IN_C.get(target.dtype.name, target.dtype.name)} and output tensor dtype "
                           f"{dt.IN_C.get(row.name, row.name)} should match")


def set_out(out, result, inputs=(), quiet=False, name=""):
    """Deliver ``result`` into the tensor given as ``out=``: resized when the shape differs, with a warning unless ``quiet``, never tracked. ``inputs``: what
    it was computed from; ``name``: of the function, for what it refuses."""
    if out is None:
        return result
    if isinstance(out, (tuple, list)):
        if isinstance(result, Tensor):
            raise TypeError(f"{name}{'()' * bool(name)}: argument 'out' must be Tensor, not {type(out).__name__}")
        if len(out) != len(result):
            raise TypeError(f"expected tuple of {len(result)} elements but got {len(out)}")
        for i, (o, r) in enumerate(zip(out, result)):
            if not isinstance(o, Tensor):
                raise TypeError(f"expected Tensor as element {i} in argument 'out', but got {type(o).__name__}")
            if r.dtype is dt.int64 is not o.dtype:
                raise RuntimeError(f"Expected out tensor to have dtype long int, but got {dt.IN_C.get(o.dtype.name, o.dtype.name)} instead")
        placed = [set_out(o, r, inputs) for o, r in zip(out, result)]
        return written(result, placed) if isinstance(result, _Named) else type(out)(placed)
    if not isinstance(out, Tensor):
        raise TypeError(f"{name}{'()' * bool(name)}: argument 'out' must be Tensor, not {type(out).__name__}")
    if inputs:
        refuse_overlap(out, inputs)
    if state.grad and (out._rg or result._rg):
        raise RuntimeError("functions with out=... arguments don't support automatic differentiation, but one of the arguments requires grad.")
    if result.dtype.category > out.dtype.category:
        raise RuntimeError(f"result type {type_name(result.dtype)} can't be cast to the desired output type {type_name(out.dtype)}")
    result = result.to(out.dtype)
    if 0 in out._strides and out._numel and any(s == 0 and n > 1 for s, n in zip(out._strides, out.shape)):
        raise RuntimeError("unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
                           "Please clone() the tensor before performing the operation.")
    if out.shape != result.shape:
        if out._numel and not quiet:
            warn(f"An output with one or more elements was resized since it had shape {list(out.shape)}, which does not match the required output shape "
                 f"{list(result.shape)}. This behavior is deprecated, and in a future PyTorch release outputs will not be resized unless they have zero "
                 "elements. You can explicitly reuse an out tensor t by resizing it, inplace, to zero elements with t.resize_(0).")
        _resize(out, result.shape)
    write(out, result)
    return out


def _resize(out, shape) -> None:
    """Give a target of ``out=``, which is written next, another shape. Its memory stays the one that others look into, and grows where it is too small."""
    counter = out._ver or out._storage
    before = counter.version
    out.resize_(shape)
    counter.version = before                  # the write is what counts
