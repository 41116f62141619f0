"""Calling an operator: promotion, broadcasting and recording, done once here for all operators.

Elementwise calls record a lazy node; kernel calls run their body; either way ``attach`` puts the operator on the tape when an input
requires gradients.
"""
from __future__ import annotations

import traceback


from ..core import dtype as dt
from ..core.errors import overwritten
from ..core.shape import Size, broadcast_shapes, broadcast_strides, contiguous_strides, is_contiguous
from ..graph import fuse
from ..graph import node as lazy
from ..graph.node import Storage
from . import later, tape
from .foreign import NoStrides
from .grad_mode import state
from .tensor import Tensor, accumulator, edge, make
from .views import refresh

_MAX_NODES, _MAX_LEAVES = lazy.MAX_NODES, lazy.MAX_LEAVES
_FEW = 1024                 # elements
_new = object.__new__
_next_number = tape._counter.__next__
_shapes: dict = {}          # (shape, shape) -> broadcast Size
_promoted: dict = {}        # (op index, operand kinds) -> (compute dtype, result dtype)
dt.default_listeners.append(_promoted.clear)


class config:
    """Switches of the recorder; ``eager`` realises every operator at once (CLNN_EAGER=1)."""

    eager = False


def broadcast(name, *tensors):
    """The common Size of tensors; RuntimeError in PyTorch's words, with both shapes."""
    shapes = tuple([t.shape for t in tensors])
    got = _shapes.get(shapes)
    if got is None:
        try:
            got = Size(broadcast_shapes(*shapes))
        except ValueError as exc:
            raise RuntimeError(f"{exc} ({name.lstrip('_')}: shapes {', '.join(str(tuple(s)) for s in shapes)})") from None
        if len(_shapes) > 100000:
            _shapes.clear()
        _shapes[shapes] = got
    return got


def record_elementwise(expr, compute, result, shape, numel, operands) -> Tensor:
    """Record one elementwise operator over ``shape``; operands are Tensors or Python numbers already checked."""
    count, leaves, linear, refs, device = 1, 0, True, [], None
    for t in operands:
        if not isinstance(t, Tensor):
            refs.append(t)
            continue
        st = t._storage
        device = st.device
        node = st.node
        strides = t._strides
        if node is not None:
            if node.buf is not None:
                st.buf, st.node = node.buf, None
            elif (node.reduce is None and t._dense and t._numel == node.numel == numel and t.dtype is node.dtype
                  and (node.shape == shape or node.linear)):
                count += node.count
                leaves += node.leaves
                if not node.linear:
                    linear = False
                refs.append((node, t.dtype, 0, strides))
                continue
            else:
                fuse.realize(st)
        leaves += 1
        if t.shape != shape:
            strides = broadcast_strides(t.shape, strides, shape)
            linear = linear and (not any(strides) or is_contiguous(shape, strides))
        elif not t._dense and linear:
            linear = is_contiguous(shape, strides) or not any(strides)
        refs.append((st.buf, t.dtype, t._offset, strides))
    if count > _MAX_NODES or leaves > _MAX_LEAVES:
        pending = [t for t in operands if isinstance(t, Tensor) and t._storage.node is not None]
        if pending:
            for t in pending:
                fuse.realize(t._storage)
            return record_elementwise(expr, compute, result, shape, numel, operands)
    out = make(lazy.record(expr, tuple(refs), compute, result, shape, numel, device, count, leaves, linear), shape, result, numel)
    if config.eager or expr.failing and _shows_at_once(expr, compute, numel, device, refs):
        fuse.realize(out._storage)
    return out


def _shows_at_once(expr, compute, numel, device, refs):
    """Whether a division of few integers is computed now, so that a zero shows where it is divided by."""
    return (expr.failure is None and numel <= _FEW and compute.category in expr.failing and device.is_cpu
            and (refs[1].__class__ is tuple or not refs[1]))


plain = {Tensor}            # classes whose instances are no more than tensors: the short way serves them


def record_briefly(expr, compute, result, a, b, place):
    """``record_elementwise`` for the operands that most calls have: a dense tensor ``a``, and beside it nothing (``place`` 0), a number ``b`` (1) or a dense
    tensor ``b`` of the same shape on the same device (2). The same in fewer steps; None where it is not that simple."""
    st, shape, numel = a._storage, a.shape, a._numel
    node = st.node
    if node is None:
        ref, count, leaves, linear = (st.buf, a.dtype, a._offset, a._strides), 1, 1, True
    elif node.buf is None and node.reduce is None and numel == node.numel and a.dtype is node.dtype and (node.shape == shape or node.linear):
        ref, count, leaves, linear = (node, a.dtype, 0, a._strides), node.count + 1, node.leaves, node.linear
    else:
        return None
    if place == 2:
        other = b._storage
        node = other.node
        if node is None:
            refs, leaves = (ref, (other.buf, b.dtype, b._offset, b._strides)), leaves + 1
        elif node.buf is None and node.reduce is None and numel == node.numel and b.dtype is node.dtype and (node.shape == shape or node.linear):
            refs, count, leaves = (ref, (node, b.dtype, 0, b._strides)), count + node.count, leaves + node.leaves
            linear = linear and node.linear
        else:
            return None
    else:
        refs = (ref, b) if place else (ref,)
    if count > _MAX_NODES or leaves > _MAX_LEAVES or config.eager or expr.failing and _shows_at_once(expr, compute, numel, st.device, refs):
        return None
    t = _new(Tensor)
    t._storage = lazy.record(expr, refs, compute, result, shape, numel, st.device, count, leaves, linear)
    t.shape, t._strides, t._offset, t.dtype, t._numel, t._dense = shape, contiguous_strides(shape), 0, result, numel, True
    return t


def record_in_layout(expr, compute, result, shape, numel, operands) -> Tensor:
    """``record_elementwise`` with PyTorch's layout rule: the first operand of full shape passes the order of its dimensions on."""
    order = None
    for t in () if expr.uses_index else operands:                # element numbers are those of the shape, not of the memory
        if isinstance(t, Tensor) and t.shape == shape:
            order = memory_order(t)
            break
    if order is None:
        return record_elementwise(expr, compute, result, shape, numel, operands)
    moved = [_permuted(t, shape, order) if isinstance(t, Tensor) else t for t in operands]
    r = record_elementwise(expr, compute, result, Size(shape[d] for d in order), numel, moved)
    back = [0] * len(order)
    for i, d in enumerate(order):
        back[d] = i
    strides = r._strides
    r.shape, r._strides = shape, tuple([strides[i] for i in back])
    r._dense = is_contiguous(r.shape, r._strides)
    return r


def memory_order(t, dense=False):
    """The dimensions of ``t`` by falling stride, when that is not their own order (``dense``: and the block has no gaps); else None."""
    if t._dense or not t._numel or len(t.shape) < 2:
        return None
    strides = t._strides
    if 0 in strides:
        return None
    order = sorted(range(len(strides)), key=lambda d: (-strides[d], d))
    if order == list(range(len(strides))):
        return None
    if dense and not is_contiguous(tuple([t.shape[d] for d in order]), tuple([strides[d] for d in order])):
        return None
    return order


def in_order_of(result, order, name) -> Tensor:
    """``result``, computed with the dimensions in ``order``, with them where they were; its history shows as that of the operator ``name``."""
    back = result.permute([order.index(d) for d in range(len(order))])
    if back._grad_fn is not None:
        back._grad_fn.label = name
    return back


def _permuted(t, shape, order):
    """The operand broadcast to ``shape`` with its dimensions in ``order``."""
    v = t._alias()
    strides = broadcast_strides(t.shape, t._strides, shape) if t.shape != shape else t._strides
    if not t.shape:
        return v
    v.shape, v._strides = Size(shape[d] for d in order), tuple([strides[d] for d in order])
    v._dense = v._offset == 0 and is_contiguous(v.shape, v._strides)
    v._numel = v.shape.numel()
    return v


_INTEGER = dt.int64.index * 3                                # a Python number


def kind_of(x):
    """What promotion needs to know of an operand: dtype index, and whether it has dimensions, is 0-d or a Python number."""
    if isinstance(x, Tensor):
        return x.dtype.index * 3 + (2 if x.shape else 1)
    return dt.scalar_dtype(x).index * 3


def promote(op, kinds):
    """(compute dtype, result dtype) of ``op`` for operand kinds, by its result rule."""
    first = getattr(op.rule, "first", 0)
    common = dt.result_type(*[(dt.ALL[k // 3], k % 3) for k in (kinds[first:] if first else kinds)])
    if common not in op.dtypes:
        from .elementwise import unsupported
        op.rule(common, kinds)                                  # a number where a tensor belongs is the error to report first
        raise unsupported(op, common)
    got = op.rule(common, kinds)
    dt.noticed(got[1])
    _promoted[op.number, kinds] = got
    return got


def align(name, operands):
    """Operands on one device: a 0-d tensor on another device becomes a number, as PyTorch allows for CPU scalars."""
    tensors = [t for t in operands if isinstance(t, Tensor)]
    devices = {id(t._storage.device): t for t in tensors}
    if len(devices) == 1:
        return operands
    main = [t for t in tensors if t.shape] or tensors[:1]
    if len({id(t._storage.device) for t in main}) > 1:
        names = " and ".join(sorted({str(t.device) for t in main}))
        raise RuntimeError(f"Expected all tensors to be on the same device, but found at least two devices, {names}! ({name.lstrip('_')})")
    home = main[0].device
    return tuple(t.to(home) if isinstance(t, Tensor) and t.device != home else t for t in operands)


FREED = ("Trying to backward through the graph a second time (or directly access saved tensors after they have already been freed). Saved "
         "intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to "
         "backward through the graph a second time or if you need to access saved tensors after calling backward.")


# Of these PyTorch keeps a number as a tensor, too. A composite of them is used up with them, which few programs see: they ask for retain_graph.
_FACTORS = frozenset(("mul", "true_divide", "_dropout"))


class OpNode(tape.Node):
    """The tape entry of one operator call: its values that the gradient rules name, with their versions."""

    __slots__ = ("op", "values", "versions", "metas", "keeps")
    result, freed, lasts, label = None, False, False, ""    # label: the name of the composite whose last operator this is, where that is shown

    def __init__(self, op, edges, outs, values, versions, metas, keeps):
        self.seq, self.edges, self.outs = _next_number(), edges, outs
        self.op, self.values, self.versions, self.metas, self.keeps = op, values, versions, metas, keeps

    def name(self):
        return self.label or self.op.grad_name

    def __repr__(self):
        return f"<{self.name()} object at {hex(id(self))}>"

    @property
    def operands(self):
        return [i for i, _ in self.op.masks]

    @property
    def next_functions(self):
        edges = [self.edges[i] for i in self.operands]
        return tuple((e[0].shown(), e[1]) if e is not None else (None, 0) for e in edges)

    def __getattr__(self, name):
        """``_saved_other``, ``_saved_result``: what was kept for backward, ``_saved_self`` being the first operand; ``_raw_saved_other`` takes hooks for it."""
        kind, _, what = name.partition("_saved_")
        what = "input" if what == "self" else what
        if kind == "_raw" and what in (*self.op.position, "result", *self.op.outputs):
            return _Kept(self, what)
        if kind or not what or what not in self.op.position and what not in ("result", *self.op.outputs):
            raise AttributeError(f"'{self.name()}' object has no attribute '{name}'")
        if self.freed:
            raise RuntimeError(FREED)
        return self.lookup(what) if what in self.op.position or self.result is not None else None

    def __dir__(self):
        """Tools that draw graphs look here for what was kept."""
        kept = [name for name, i in self.op.position.items() if self.values is not None and self.values[i] is not None] + ["result"] * bool(self.result)
        return [*super().__dir__(), *[f"{kind}_saved_{'self' if name == 'input' else name}" for name in kept for kind in ("", "_raw")]]

    def release(self):
        """Only an entry that kept tensors is used up by a backward pass, or a factor, which PyTorch keeps as a tensor. A part of a composite ``lasts``
        where the whole keeps nothing in PyTorch."""
        if self.lasts:
            return
        if self.keeps or self.result is not None or self.op.name in _FACTORS:
            self.values = self.result = self.versions = None
            self.freed = True

    def lookup(self, name):
        """A value by the name that a rule uses: parameter, ``out``/``result`` or a hidden output."""
        op = self.op
        i = op.position.get(name)
        if i is None:
            return self._output(op.outputs.index(name) if name in op.outputs else 0 if name == "result" else None, name)
        return self.input(i, name)

    def input(self, i, name):
        """The value of parameter ``i``, checked to be what it was."""
        value = self.values[i]
        if isinstance(value, Tensor):
            now = (value._ver or value._storage).version
            if self.versions[i] != now:
                raise overwritten(value, now, self.versions[i], value._grad_fn, value._out_nr)
        elif type(value) is _Packed:
            return value.unpack()
        return value

    def _output(self, nr, name):
        got = self.result[nr]
        if type(got) is _Packed:
            got = got.unpack()
        if got is None:                                          # an output that this call did not make
            return None
        t, owner, version = got
        if owner is not None and owner.version != version:
            raise overwritten(t, owner.version, version, self, nr)
        if state.grad and nr < self.outs and t._grad_fn is None:
            t = t._alias()
            t._grad_fn, t._out_nr, t._rg = self, nr, True
        return t

    def apply(self, grads, needed):
        if self.freed:
            raise RuntimeError(FREED)
        op = self.op
        if state.grad and op.decompose is not None:
            return self._through_decomposition(grads, needed)
        g = grads[0] if self.outs == 1 else tuple(grads)
        out, metas = [None] * len(self.edges), self.metas
        turn = self.outs == 1 and op.holomorphic and g.dtype.is_complex
        if op.together is not None and not turn and not state.grad and state.autocast is None \
                and not any([e is not None and not flag for e, flag in zip(self.edges, needed)]):
            try:
                for i, grad in zip(op.together.targets, op.together.call(self, g, needed)):
                    if grad is not None:
                        out[i] = self._fit(i, grad)
                return out
            except NoStrides:                                    # one rule after another is made of operators
                pass
        for rule in op.rules:
            if not rule.joint:
                i = rule.target
                if needed[i]:
                    got = rule.call(self, g, needed) if not turn else self._turned(rule, g, needed)
                    if got is not None:
                        meta = metas[i]
                        fits = got.__class__ is Tensor and meta is not None and got.dtype is meta[1] and got.shape == meta[0]
                        out[i] = got if fits else self._fit(i, got)
            elif any([needed[i] for i in rule.targets]):
                for i, grad in zip(rule.targets, rule.call(self, g, needed) if not turn else self._turned(rule, g, needed)):
                    if needed[i] and grad is not None:
                        out[i] = self._fit(i, grad)
        return out

    def _turned(self, rule, g, needed):
        """The rule's result for complex numbers. PyTorch's gradient of a real L is dL/d(conjugate of z): through f it is g * conj(f'(z)) =
        conj(conj(g) * f'(z)), whose inner part is the rule for real numbers. A rule that multiplies by no value needs no turn."""
        for i in rule.saves:
            if i < 0 or self.values[i].__class__ is complex or isinstance(self.values[i], (Tensor, _Packed)):
                return _conjugated(rule.call(self, g.conj(), needed))
        return rule.call(self, g, needed)

    def _fit(self, i, grad):
        """The gradient in its input's shape and dtype: sums over what broadcasting repeated."""
        if isinstance(grad, (list, tuple)):
            return grad
        meta = self.metas[i]
        if meta is None:
            return grad
        shape, dtype = meta
        if grad.dtype.is_complex and not dtype.is_complex:
            grad = grad.real                                     # an imaginary part of a real input would have no effect
        if grad.shape != shape:
            grad = grad.sum_to_size(shape)
        if grad.dtype is not dtype:
            grad = grad.to(dtype)
        return grad

    def _through_decomposition(self, grads, needed):
        """Gradients of a fused kernel through its decomposition, so that they can be differentiated again."""
        from .backward import grad as grad_of
        op = self.op
        values = {n: (self.lookup(n) if v is not None else None) for n, v in zip(op.params, self.values)}
        inputs = [i for i, flag in enumerate(needed) if flag]
        proxies = {op.params[i]: values[op.params[i]] for i in inputs}
        with_views = {k: (v.view_as(v) if v is not None else None) for k, v in proxies.items()}
        outs = op.decompose(**{**values, **with_views})
        outs = outs if isinstance(outs, tuple) else (outs,)
        pairs = [(o, g) for o, g in zip(outs, grads) if g is not None and o is not None and o._rg]
        got = grad_of([o for o, _ in pairs], [with_views[op.params[i]] for i in inputs], [g for _, g in pairs],
                      create_graph=True, allow_unused=True)
        out = [None] * len(self.edges)
        for i, g in zip(inputs, got):
            out[i] = g
        return out


def _conjugated(grads):
    """The conjugates of a rule's results."""
    if isinstance(grads, tuple):
        return tuple(None if g is None else g.conj() for g in grads)
    return None if grads is None else grads.conj()


class _Packed:
    """A saved tensor that went through saved_tensors_hooks."""

    __slots__ = ("value", "fn", "rest", "edge")

    def __init__(self, pack, unpack, value, rest=None):
        self.edge = edge(value)
        owner = value._ver or value._storage
        before = owner.version
        self.value, self.fn, self.rest = pack(value), unpack, rest
        if owner.version != before:
            raise RuntimeError("A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook can not be modified by "
                               "in-place operations as this can lead to unexpected side-effects.")

    def unpack(self):
        got = self.fn(self.value)
        if not isinstance(got, Tensor):
            raise TypeError(f"Output of saved tensor unpack_hook expected to be a Tensor but got result of type {type(got).__name__}")
        if self.edge is not None:                # what comes back has the history of what was saved: it is differentiated for second gradients
            got = got._alias()
            (got._grad_fn, got._out_nr), got._rg = self.edge, True
        return got if self.rest is None else (got, *self.rest)


class _Kept:
    """One value that a node keeps, as the place to register hooks for it."""

    def __init__(self, node, name):
        self.node, self.name = node, name

    def register_hooks(self, pack_hook, unpack_hook):
        """Keep ``pack_hook(value)`` instead of the value, and call ``unpack_hook`` when it is needed."""
        node, op = self.node, self.node.op
        if node.freed:
            raise RuntimeError(FREED)
        i, kept = op.position.get(self.name), node.values
        if i is None:
            i, kept = op.outputs.index(self.name) if self.name in op.outputs else 0, node.result
        value = kept[i] if kept else None
        if type(value) is _Packed:
            raise RuntimeError("Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair of hooks is allowed at a time.")
        if value is None:
            raise RuntimeError("Calling register_hooks on a saved tensor with value None is forbidden")
        kept[i] = _Packed(pack_hook, unpack_hook, value) if kept is node.values else _Packed(pack_hook, unpack_hook, value[0], (None, 0))


def attach(op, out, values) -> None:
    """Put this call on the tape. ``values`` holds every parameter of ``op`` in order; ``out`` is a Tensor or a tuple of them."""
    count = len(values)
    edges, metas, save, found = [None] * count, [None] * count, 0, False
    for i, mask in op.masks:
        v = values[i]
        if (v.__class__ is Tensor or isinstance(v, Tensor)) and v._rg:
            if v._base is not None:
                refresh(v)
            fn = v._grad_fn
            edges[i] = (fn, v._out_nr) if fn is not None else (accumulator(v), 0)
            metas[i] = (v.shape, v.dtype)
            save |= mask
            found = True
    if not found:
        return
    if op.decompose is not None:
        save |= op.all_inputs
    kept, versions, keeps, bit = list(values), [0] * count, False, 1
    for i, v in enumerate(values):
        if v.__class__ is Tensor or isinstance(v, Tensor):
            if save & bit:
                owner = v._storage
                if owner.version < 0:
                    raise inference_saved()
                versions[i], keeps = (v._ver or owner).version, True
            else:
                kept[i] = None
        bit += bit
    first = out[0] if out.__class__ is tuple else out
    if first.__class__ is not Tensor and first is not None:
        edges = first._edges_of(edges, values)
    node = OpNode(op, edges, op.public, kept, versions, metas, keeps)
    save >>= len(op.params)
    if save:
        _save_results(node, out if out.__class__ is tuple else (out,), save)
    if state.saved_hooks:
        _pack(node)
    if state.anomaly:
        node.trace = "".join(traceback.format_stack()[:-2])
    if out.__class__ is not tuple:
        if out.dtype.differentiable:
            out._grad_fn, out._out_nr, out._rg = node, 0, True
        return
    for nr in range(op.public):
        o = out[nr]
        if o is not None and o.dtype.differentiable:
            o._grad_fn, o._out_nr, o._rg = node, nr, True


def inference_saved():
    return RuntimeError("Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in computation tracked by "
                        "autograd. To work around this, you can make a clone to get a normal tensor and use it in autograd, or use `torch.no_grad()` "
                        "instead of `torch.inference_mode()`.")


def _save_results(node, outs, save):
    """Keep the outputs in the bit set ``save``: without history, or node and output would hold each other."""
    result = [None] * len(outs)
    for nr, o in enumerate(outs):
        if save >> nr & 1 and o is not None:
            owner = o._ver or o._storage
            result[nr] = (o._alias(), owner, owner.version)
    node.result = result


def _pack(node):
    pack, unpack = state.saved_hooks[-1]
    node.values = [_Packed(pack, unpack, v) if isinstance(v, Tensor) else v for v in node.values]
    if node.result:
        # without the owner, whose memory the hooks may want to let go
        node.result = [None if r is None else _Packed(pack, unpack, r[0], (None, 0)) for r in node.result]


def elementwise_call(op, operands):
    """The general path of an elementwise operator; ``declare`` has faster ones for one and two operands."""
    kinds, first, tracked = [], None, False
    for x in operands:                                          # dense tensors of one shape on one device, and numbers: what most calls are
        if x.__class__ in plain and x._dense and (first is None or x.shape == first.shape and x._storage.device is first._storage.device):
            if first is None:
                first = x
            kinds.append(x.dtype.index * 3 + (2 if x.shape else 1))
            tracked = tracked or x._rg
        elif x.__class__ is float:
            kinds.append(dt._default_float.index * 3)
        elif x.__class__ is int:
            kinds.append(_INTEGER)
        else:
            break
    else:
        got = _promoted.get((op.number, tuple(kinds)))
        if got is not None and first is not None:
            out = record_elementwise(op.expr, got[0], got[1], first.shape, first._numel, operands)
            if tracked and state.grad:
                attach(op, out, operands)
            return out
    return _elementwise_call(op, operands)


def _elementwise_call(op, operands):
    kinds = tuple([kind_of(x) for x in operands])
    got = _promoted.get((op.number, kinds)) or promote(op, kinds)
    tensors = [t for t in operands if isinstance(t, Tensor)]
    first = tensors[0]
    for t in tensors:
        if t._storage.device is not first._storage.device:
            operands = align(op.name, operands)
            tensors = [t for t in operands if isinstance(t, Tensor)]
            first = tensors[0]
            break
    shape, numel = first.shape, first._numel
    for t in tensors:
        if t.shape != shape:
            shape = broadcast(op.name, *tensors)
            numel = shape.numel()
            break
    out = record_in_layout(op.expr, got[0], got[1], shape, numel, operands)
    if state.grad:
        for t in tensors:
            if t._rg:
                attach(op, out, operands)
                break
    return out


def run(device, path, params, global_size, local_size, *args):
    """Launch ``kernels/<path>.cl.mako``. A Tensor argument passes its buffer and its element offset."""
    kernel = device.kernel(path, **params)
    flat = []
    for a in args:
        if isinstance(a, Tensor):
            st = a._storage
            if st.node is not None:
                fuse.realize(st)
            flat.append(st.buf)
            flat.append(a._offset)
        elif isinstance(a, Storage):
            flat.append(a.buffer())
        else:
            flat.append(a)
    fuse._launch(device, kernel, global_size, local_size, *flat)


later.memory_order, later.record_elementwise, later.record_in_layout = memory_order, record_elementwise, record_in_layout
