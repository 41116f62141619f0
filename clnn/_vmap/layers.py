"""The forms of layers: convolutions, normalisation, embedding, attention, images, and reading and writing by index."""
from __future__ import annotations

import math

from .._tensor.grad_mode import no_grad
from ..ops import creation
from .forms import fn
from .rules import form_of


# -- images: the samples join the batch -------------------------------------------------------------------------------------------------
def _joined(x):
    """Samples and batch as one dimension."""
    return x.reshape(-1, *x.shape[2:])


def _parted(x, size):
    return x.reshape(size, -1, *x.shape[1:])


def _in_batch(name, count=1):
    """The form of an operator on batches whose first ``count`` arguments are such, and which treats their items alike."""
    call = fn(name)

    @form_of(name)
    def rule(samples, *values):
        batches = [_joined(samples.all(t)) for t in values[:count]]
        return _parted(call(*batches, *values[count:]), samples.size)


for _name, _count in (("_resample", 1), ("_columns", 1), ("_image", 1), ("_grid_sample", 2)):
    _in_batch(_name, _count)


# -- convolutions -----------------------------------------------------------------------------------------------------------------------
def _as_groups(x):
    """(samples, batch, channels, ...) as (batch, samples * channels, ...): each sample a group of its own."""
    return x.transpose(0, 1).reshape(x.shape[1], -1, *x.shape[3:])


def _from_groups(x, size):
    return x.reshape(x.shape[0], size, -1, *x.shape[2:]).transpose(0, 1)


@form_of("convolution")
def _convolution(samples, input, weight, bias, *geometry):
    *geometry, groups = geometry
    call, size = fn("convolution"), samples.size
    if samples.has(bias):
        return call(input, weight, None, *geometry, groups) + bias.reshape(-1, *(1,) * (weight.ndim - 2))
    if not samples.has(weight):
        return _parted(call(_joined(samples.of(input)), weight, bias, *geometry, groups), size)
    if not samples.has(input) and groups == 1:                  # one image, kernels of all samples
        many = None if bias is None else bias.repeat(size)
        return _from_groups(call(input, _joined(weight.part), many, *geometry, 1), size)
    many = None if bias is None else bias.repeat(size)
    return _from_groups(call(_as_groups(samples.all(input)), _joined(weight.part), many, *geometry, groups * size), size)


@form_of("conv_input_grad")
def _conv_input_grad(samples, input, weight, bias, shape, *geometry):
    *geometry, groups = geometry
    call, size = fn("conv_input_grad"), samples.size
    if samples.has(bias):
        return call(input, weight, None, shape, *geometry, groups) + bias.reshape(-1, *(1,) * (weight.ndim - 2))
    if not samples.has(weight):
        g = samples.of(input)
        return _parted(call(_joined(g), weight, bias, (g.shape[0] * shape[0], *shape[1:]), *geometry, groups), size)
    many = None if bias is None else bias.repeat(size)
    whole = (shape[0], size * shape[1], *shape[2:])
    return _from_groups(call(_as_groups(samples.all(input)), _joined(weight.part), many, whole, *geometry, groups * size), size)


@form_of("conv_weight_grad")
def _conv_weight_grad(samples, grad, input, shape, *geometry):
    *geometry, groups = geometry
    size = samples.size
    g, x = _as_groups(samples.all(grad)), _as_groups(samples.all(input))
    return fn("conv_weight_grad")(g, x, (size * shape[0], *shape[1:]), *geometry, groups * size).reshape(size, *shape)


# -- normalisation ----------------------------------------------------------------------------------------------------------------------
@form_of("_layer_norm")
def _layer_norm(samples, input, shape, weight, bias, eps, rms):
    call, x = fn("_layer_norm"), samples.all(input)
    if not samples.has(weight) and not samples.has(bias):
        return call(x, shape, weight, bias, eps, rms)
    r = samples.wrapped(call(x, shape, None, None, eps, rms))
    r = r if weight is None else r * weight
    return r if bias is None else r + bias


@form_of("_group_norm")
def _group_norm(samples, input, groups, weight, bias, eps):
    x = _joined(samples.all(input))
    call = fn("_group_norm")
    if not samples.has(weight) and not samples.has(bias):
        return _parted(call(x, groups, weight, bias, eps), samples.size)
    r = samples.wrapped(_parted(call(x, groups, None, None, eps), samples.size))
    place = (-1, *(1,) * (input.ndim - 2))
    r = r if weight is None else r * weight.reshape(place)
    return r if bias is None else r + bias.reshape(place)


@form_of("_batch_norm")
def _batch_norm(samples, input, weight, bias, running_mean, running_var, momentum, eps):
    """Each sample's channels as channels of their own."""
    x = _as_groups(samples.all(input))
    scales = [None if t is None else samples.all(t).reshape(-1) for t in (weight, bias)]
    kept = running_mean, running_var
    if running_mean is None:
        return _from_groups(fn("_batch_norm")(x, *scales, *kept, momentum, eps), samples.size)
    for t in kept:
        if not samples.has(t):
            raise RuntimeError("vmap: batch_norm would write the statistics of each sample into running_mean and running_var, which are not vmapped over. "
                               "Map over them, or use clnn.func.replace_all_batch_norm_modules_ to do without them.")
    with no_grad():
        flat = [t.part.reshape(-1).clone() for t in kept]
    got = fn("_batch_norm")(x, *scales, *flat, momentum, eps)
    with no_grad():
        for t, new in zip(kept, flat):
            t.part.copy_(new.reshape(t.part.shape))
    return _from_groups(got, samples.size)


# -- tables and attention ---------------------------------------------------------------------------------------------------------------
def _first_rows(samples, rows, rank, device):
    """The number of each sample's first row when the tables of all lie one after the other, to add to indices of ``rank`` dimensions."""
    return (creation.arange(samples.size, device=device) * rows).reshape(samples.size, *(1,) * rank)


@form_of("_embedding")
def _embedding(samples, weight, input, padding_idx, by_frequency, shape, sparse):
    call = fn("_embedding")
    if not samples.has(weight):
        return call(weight, samples.of(input), padding_idx, by_frequency, shape, sparse)
    rows, width = shape
    if padding_idx >= 0:
        kept = creation.arange(rows, device=weight.device).reshape(rows, 1) != padding_idx
        weight = fn("where")(kept, weight, weight.detach())      # that row gets no gradient
    at = samples.of(input) + _first_rows(samples, rows, input.ndim, weight.device)
    return call(_joined(samples.of(weight)), at, -1, by_frequency, (samples.size * rows, width), sparse)


@form_of("_attention")
def _attention(samples, query, key, value, mask, dropout_p, causal, scale, groups, seed, first):
    q, k, v = (_joined(samples.all(t)) for t in (query, key, value))
    return _parted(fn("_attention")(q, k, v, _batch_mask(samples, mask, query.shape[0]), dropout_p, causal, scale, groups, seed, first), samples.size)


@form_of("_attention_backward")
def _attention_backward(samples, grad, query, key, value, out, lse, mask, *rest):
    batches = [_joined(samples.all(t)) for t in (grad, query, key, value, out, lse)]
    got = fn("_attention_backward")(*batches, _batch_mask(samples, mask, query.shape[0]), *rest)
    return tuple([_parted(g, samples.size) for g in got])


def _batch_mask(samples, mask, batch):
    """The mask for samples and batch as one dimension."""
    if mask is None or not samples.has(mask) and (mask.ndim < 4 or mask.shape[0] == 1):
        return mask
    if not samples.has(mask):
        return mask.repeat(samples.size, 1, 1, 1)
    shape = (*(1,) * (4 - mask.ndim), *mask.shape)
    return _joined(mask.part.reshape(samples.size, *shape).expand(samples.size, batch, *shape[1:]))


# -- by index ---------------------------------------------------------------------------------------------------------------------------
def _rows_first(samples, t, first, count):
    """(samples * rows, before, behind): the dimensions ``first .. first + count - 1`` of each sample as rows."""
    x = samples.all(t)
    before, rows, behind = x.shape[1:first + 1], x.shape[first + 1:first + 1 + count], x.shape[first + 1 + count:]
    x = x.reshape(samples.size, math.prod(before), math.prod(rows), math.prod(behind)).transpose(1, 2)
    return x.reshape(samples.size * math.prod(rows), math.prod(before), math.prod(behind))


def _rows_back(samples, x, before, rows, behind):
    """The inverse: (samples, before, rows, behind)."""
    x = x.reshape(samples.size, math.prod(rows), math.prod(before), math.prod(behind)).transpose(1, 2)
    return x.reshape(samples.size, *before, *rows, *behind)


def _places(samples, index, rows, wrap):
    """Numbers of rows among those of all samples."""
    at = samples.all(index)
    if wrap:
        at = fn("where")(at < 0, at + rows, at)
    return at + _first_rows(samples, rows, index.ndim, at.device)


def _sizes_around(shape, first, count):
    return tuple(shape[:first]), tuple(shape[first:first + count]), tuple(shape[first + count:])


@form_of("_index_rows")
def _index_rows(samples, input, index, shape, first, count, wrap, what):
    call = fn("_index_rows")
    if not samples.has(index):
        return call(samples.of(input), index, (samples.size, *shape), first + 1, count, wrap, what)
    if not samples.has(input):
        return call(input, index.part, shape, first, count, wrap, what).movedim(first, 0)
    before, rows, behind = _sizes_around(shape, first, count)
    n = math.prod(rows)
    x = _rows_first(samples, input, first, count)
    got = call(x, _places(samples, index, n, wrap), x.shape, 0, 1, False, what)
    return _rows_back(samples, got, before, tuple(index.shape), behind)


@form_of("_add_rows")
def _add_rows(samples, g, index, shape, first, count, wrap):
    call = fn("_add_rows")
    if not samples.has(index):
        return call(samples.of(g), index, (samples.size, *shape), first + 1, count, wrap)
    before, rows, behind = _sizes_around(shape, first, count)
    n = math.prod(rows)
    got = call(_rows_first(samples, g, first, index.ndim).reshape(samples.size, *index.shape, math.prod(before), math.prod(behind)),
               _places(samples, index, n, wrap), (samples.size * n, math.prod(before), math.prod(behind)), 0, 1, False)
    return _rows_back(samples, got, before, rows, behind)


@form_of("_put_rows")
def _put_rows(samples, input, index, values, shape, values_shape, first, count, wrap, op, what):
    call = fn("_put_rows")
    if not samples.has(index):
        return call(samples.all(input), index, samples.all(values), (samples.size, *shape), (samples.size, *values_shape), first + 1, count, wrap, op, what)
    before, rows, behind = _sizes_around(shape, first, count)
    n = math.prod(rows)
    x = _rows_first(samples, input, first, count)
    v = _rows_first(samples, values, first, index.ndim).reshape(samples.size, *index.shape, math.prod(before), math.prod(behind))
    got = call(x, _places(samples, index, n, wrap), v, x.shape, v.shape, 0, 1, False, op, what)
    return _rows_back(samples, got, before, rows, behind)


@form_of("_index_put_into")
def _index_put_into(samples, base, indices, values):
    base._become(fn("index_put")(base, indices, values), "index_put")
    return base


# -- losses -----------------------------------------------------------------------------------------------------------------------------
@form_of("_cross_entropy")
def _cross_entropy(samples, input, target, weight, ignore_index, smoothing, reduction):
    call, size = fn("_cross_entropy"), samples.size
    if samples.has(weight):
        return call.op.decompose(input, target, weight, ignore_index, smoothing, reduction)
    x, t = samples.all(input), samples.all(target)
    x, t = (x, t) if input.ndim == 1 else (_joined(x), _joined(t))
    loss = call(x, t, weight, ignore_index, smoothing, "none").reshape(size, *target.shape)
    if reduction == "none":
        return loss
    loss = loss.reshape(size, -1).sum(1)
    if reduction == "sum":
        return loss
    counted = t != ignore_index
    counted = counted.to(input.dtype) if weight is None else weight[t.clamp(min=0)] * counted
    return loss / counted.reshape(size, -1).sum(1)


@form_of("_nll")
def _nll(samples, input, target, weight, ignore_index, reduction):
    axis = 1 if input.ndim > 1 else 0
    known = target != ignore_index
    safe = fn("where")(known, target, 0)
    loss = -input.gather(axis, safe.unsqueeze(axis)).squeeze(axis)
    scale = known.to(input.dtype)
    if weight is not None:
        scale = scale * weight[safe]
    loss = fn("where")(known, loss * scale, 0.0)
    if reduction == "none":
        return loss
    return loss.sum() if reduction == "sum" else loss.sum() / scale.sum()
