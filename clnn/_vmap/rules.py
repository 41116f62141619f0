"""The forms of views, reductions, products, and of all that works along some dimensions whatever lies before them."""
from __future__ import annotations

import math

from .._tensor.tensor import Tensor
from ..core import dtype as dt
from ..core.shape import infer_size, wrap_dim
from ..ops import creation
from .batched import BatchedTensor, wrap
from .forms import FORMS, fn, _signature


def form_of(*names):
    """Make the decorated function the form of the operators ``names``: it takes the samples and then the operator's arguments."""
    def decorate(rule):
        for name in names:
            FORMS[name] = rule
        return rule
    return decorate


# -- operators along dimensions -------------------------------------------------------------------------------------------------------
# Their parameters mean the same everywhere: these name dimensions of the operand, those sizes of all dimensions.
_DIMS = frozenset(("dim", "dims", "dim0", "dim1", "dim2", "dimension"))
_SHAPES = frozenset(("shape", "out_shape", "old"))
_ALONG = """_sum _mean _nansum _prod _var _std _amax _amin _aminmax _max_dim _min_dim _vector_norm _logsumexp _softmax _log_softmax _softmax_backward
    _log_softmax_backward _cumsum _cumprod _logcumsumexp _cummax _cummin _recurrence _flip _roll _sort _topk _order _mode _fft_c2c _fft_r2c _fft_c2r _gather _scatter
    _scatter_fold _inv_ex _solve_ex _solve_triangular _cholesky_ex _cholesky_solve _det _slogdet _qr _svd _svdvals _eigh _eigvalsh _lu_factor
    _cholesky_inverse _real _imag view_as_real view_as_complex _squeeze _max_pool _max_pool_backward _avg_pool _avg_pool_backward diagonal
    transpose _move""".split()


def _next(dims, rank):
    """Dimensions of a sample as those of all samples."""
    if isinstance(dims, (tuple, list)):
        return type(dims)([wrap_dim(d, rank) + 1 for d in dims])
    return None if dims is None else wrap_dim(dims, rank) + 1


def _along(name):
    call, names = fn(name), tuple(_signature(name).parameters)

    def rule(samples, *values):
        rank = max([v.ndim for v in values if isinstance(v, Tensor)])
        flat = not rank and not _DIMS.isdisjoint(names)         # a number as a vector of one
        out = []
        for n, v in zip(names, values):
            if isinstance(v, Tensor):
                v = samples.all(v)
                v = v.unsqueeze(1) if flat else v
            elif n in _DIMS:
                v = (1,) if flat and v == () else _next(v, rank or 1)
            elif n in _SHAPES:
                v = (samples.size, *v, *((1,) if flat else ()))
            out.append(v)
        result = call(*out)
        if not flat:
            return result
        parts = result if isinstance(result, tuple) else (result,)
        parts = [p.reshape(samples.size) if p is not None and p.ndim == 2 and p.shape[1] == 1 else p for p in parts]
        return (type(result)(parts) if type(result) is tuple else type(result)(*parts)) if isinstance(result, tuple) else parts[0]
    FORMS[name] = rule


for _name in _ALONG:
    _along(_name)


def _of_all(name, along):
    """A reduction over all dimensions as one over those of a sample."""
    @form_of(name)
    def rule(samples, input, dims, keepdim, *rest):
        x = samples.all(input)
        return _reduced(samples, fn(along), x, dims, keepdim, rest)


def _reduced(samples, call, x, dims, keepdim, rest):
    return call(x, _next(dims, x.ndim - 1), keepdim, *[(samples.size, *r) if isinstance(r, tuple) else r for r in rest])


for _name, _other in (("_sum_all", "_sum"), ("_mean_all", "_mean"), ("_max_all", "_amax"), ("_min_all", "_amin")):
    _of_all(_name, _other)


@form_of("_prod_all")
def _prod_all(samples, input, dims, keepdim):
    return fn("_prod")(samples.all(input).reshape(samples.size, -1), (1,), False).reshape(samples.size, *(1,) * (input.ndim if keepdim else 0))


def _place_of(name):
    @form_of(name)
    def rule(samples, input, dim=None, keepdim=False):
        x = samples.all(input)
        if dim is None or not input.ndim:
            return fn(name)(x.reshape(samples.size, -1), 1).reshape(samples.size, *(1,) * (input.ndim if keepdim else 0))
        return fn(name)(x, _next(dim, input.ndim), keepdim)


def _truth_of(name):
    @form_of(name)
    def rule(samples, input, dim=None, keepdim=False, out=None):
        dims = tuple(range(input.ndim)) if dim is None or isinstance(dim, (list, tuple)) and not dim else dim
        x = samples.of(input)
        return fn(name)(x, _next(dims, input.ndim), keepdim) if input.ndim else fn(name)(x.unsqueeze(1), 1)


_truth_of("any")
_truth_of("all")
_place_of("argmax")
_place_of("argmin")


@form_of("_median_all")
def _median_all(samples, input, what):
    return fn(what)(samples.all(input).reshape(samples.size, -1), 1)[0]


# -- views ----------------------------------------------------------------------------------------------------------------------------
def _sizes(size):
    return tuple(size[0]) if len(size) == 1 and isinstance(size[0], (tuple, list)) else size


@form_of("reshape")
def _reshape(samples, input, *shape):
    return samples.of(input).reshape(samples.size, *infer_size(_sizes(shape), input._numel))


@form_of("view")
def _view(samples, input, *size):
    *size, dtype = size
    if dtype is not None or len(size) == 1 and not isinstance(size[0], (int, tuple, list)):
        return samples.of(input).view(dtype or size[0])
    return samples.of(input).view(samples.size, *infer_size(_sizes(size), input._numel))


@form_of("_reshape_view")
def _reshape_view(samples, input, size, strides):
    return samples.of(input).reshape(samples.size, *size)


@form_of("contiguous")
def _contiguous(samples, input):
    return samples.of(input).contiguous()


@form_of("unfold")
def _unfold(samples, input, dimension, size, step):
    x = samples.of(input)
    return x.unfold(_next(dimension, input.ndim), size, step) if input.ndim else x.unsqueeze(1).unfold(1, size, step).squeeze(2)


@form_of("permute")
def _permute(samples, input, dims):
    return samples.of(input).permute(0, *_next(tuple(dims), input.ndim))


@form_of("t")
def _t(samples, input):
    if input.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {input.ndim}D")
    return samples.of(input).transpose(1, 2) if input.ndim == 2 else samples.of(input).view_as(samples.of(input))


@form_of("_expand")
def _expand(samples, input, size):
    missing = len(size) - input.ndim
    if missing < 0:
        raise RuntimeError(f"expand: the number of sizes provided ({len(size)}) must be greater or equal to the number of dimensions in the tensor ({input.ndim})")
    x = samples.of(input)
    return x.reshape(samples.size, *(1,) * missing, *input.shape).expand(samples.size, *size)


@form_of("unsqueeze")
def _unsqueeze(samples, input, dim):
    return samples.of(input).unsqueeze(wrap_dim(dim, input.ndim + 1) + 1)


@form_of("_basic_index")
def _basic_index(samples, input, spec, shape):
    return fn("_basic_index")(samples.of(input), ((0, 1, samples.size), *spec), (samples.size, *shape))


@form_of("embed_strided")
def _embed_strided(samples, input, base_shape, size, stride, offset):
    return fn("embed_strided")(samples.of(input), (samples.size, *base_shape), (samples.size, *size), (math.prod(base_shape), *stride), offset)


@form_of("as_strided")
def _as_strided(samples, input, size, stride, storage_offset=None):
    x = samples.of(input)
    return x.as_strided((samples.size, *size), (x.stride(0), *stride), x.storage_offset() + (storage_offset or 0))


@form_of("split_with_sizes", "split")
def _split(samples, input, sizes, dim=0):
    return fn("split")(samples.of(input), sizes, _next(dim, input.ndim))


@form_of("unbind")
def _unbind(samples, input, dim=0):
    return fn("unbind")(samples.of(input), _next(dim, input.ndim))


@form_of("_fill_into")
def _fill_into(samples, target, value):
    samples.of(target).fill_(value)


# -- tensors side by side ---------------------------------------------------------------------------------------------------------------
@form_of("_cat")
def _cat(samples, tensors, dim, sizes, dtype):
    return fn("_cat")([samples.all(t) for t in tensors], dim + 1, sizes, dtype)


@form_of("_stack")
def _stack(samples, tensors, dim, dtype):
    return fn("_stack")([samples.all(t) for t in tensors], dim + 1, dtype)


@form_of("_constant_pad")
def _constant_pad(samples, input, before, after, value, shape):
    return fn("_constant_pad")(samples.of(input), (0, *before), (0, *after), value, (samples.size, *shape))


@form_of("_mode_pad")
def _mode_pad(samples, input, mode, before, after, shape, rank):
    return fn("_mode_pad")(samples.of(input), mode, (0, *before), (0, *after), (samples.size, *shape), rank)


@form_of("_mode_pad_backward")
def _mode_pad_backward(samples, grad, mode, before, after, shape, rank):
    return fn("_mode_pad_backward")(samples.of(grad), mode, (0, *before), (0, *after), (samples.size, *shape), rank)


# -- products ---------------------------------------------------------------------------------------------------------------------------
@form_of("mm")
def _mm(samples, input, mat2):
    if input.ndim != 2 or mat2.ndim != 2:
        raise RuntimeError(f"Shape mismatch: Got incorrect dims for mm(a, b). a has dim {input.ndim}and b has dim {mat2.ndim}but expected them to have dim 2 and dim 2")
    a, b = samples.of(input), samples.of(mat2)
    if b.ndim == 3 or not samples.has(input):
        return fn("matmul")(a, b)
    return fn("mm")(a.reshape(a.shape[0] * a.shape[1], a.shape[2]), b).reshape(*a.shape[:2], b.shape[1])


@form_of("_bmm")
def _bmm(samples, input, mat2):
    return fn("matmul")(*samples.aligned(input, mat2))


@form_of("_mv")
def _mv(samples, input, vec):
    a, v = samples.of(input), samples.of(vec)
    if not samples.has(input):
        return fn("matmul")(v, a.t())
    return fn("matmul")(a, v) if not samples.has(vec) else fn("matmul")(a, v.unsqueeze(2)).squeeze(2)


@form_of("_dot")
def _dot(samples, input, tensor):
    return (samples.of(input) * samples.of(tensor)).sum(1)


@form_of("_linear2d")
def _linear2d(samples, input, weight, bias):
    x, w, b = samples.of(input), samples.of(weight), samples.of(bias)
    if not samples.has(weight) and not samples.has(bias):
        return fn("linear")(x, w, b)
    r = fn("matmul")(x, w.transpose(-2, -1))
    return r if b is None else r + (b.unsqueeze(1) if samples.has(bias) else b)


@form_of("matrix_exp")
def _matrix_exp(samples, input):
    return fn("matrix_exp")(samples.of(input))


@form_of("searchsorted")
def _searchsorted(samples, sorted_sequence, input, out_int32=False, right=False, side=None, sorter=None, out=None):
    how, call = dict(out_int32=out_int32, right=right, side=side), fn("searchsorted")
    if sorter is not None:
        return call(sorted_sequence.gather(-1, sorter), input, **how)
    if not samples.has(sorted_sequence) and sorted_sequence.ndim == 1:
        return call(sorted_sequence, samples.of(input), **how)
    values = samples.all(input if isinstance(input, Tensor) else sorted_sequence.new_tensor(input))
    if sorted_sequence.ndim > 1:
        return call(samples.all(sorted_sequence), values, **how)
    return call(sorted_sequence.part, values.reshape(samples.size, -1), **how).reshape(values.shape)


@form_of("_pinv")
def _pinv(samples, A, atol, rtol, hermitian):
    atol, rtol = (v.part.reshape(samples.size, *(1,) * (A.ndim - 2 - v.ndim), *v.shape) if samples.has(v) else v for v in (atol, rtol))
    return fn("_pinv")(samples.all(A), atol, rtol, hermitian)


# -- written into another -----------------------------------------------------------------------------------------------------------------
def _into_samples(name):
    """Operators that write into a copy of their first operand: where it is the same for all samples, it gets samples of its own first."""
    @form_of(name)
    def rule(samples, input, *rest):
        if isinstance(input, BatchedTensor):
            return NotImplemented
        names = list(_signature(name).parameters)[1:]
        return fn(name)(wrap(samples.all(input).clone(), samples.level), **dict(zip(names, rest)))


for _name in ("index_put", "scatter", "scatter_add", "scatter_reduce", "select_scatter", "slice_scatter", "diagonal_scatter", "as_strided_scatter", "masked_scatter"):
    _into_samples(_name)


@form_of("tensor_split")
def _tensor_split(samples, input, indices_or_sections, dim=0):
    return fn("tensor_split")(samples.of(input), indices_or_sections, _next(dim, input.ndim))


# -- like another tensor ------------------------------------------------------------------------------------------------------------------
def _like(name):
    @form_of(name)
    def rule(samples, input, *args, **kwargs):
        return getattr(creation, name)(samples.of(input), *args, **kwargs)


for _name in ("empty_like", "zeros_like", "ones_like", "full_like"):
    _like(_name)


# -- results whose shape the values tell --------------------------------------------------------------------------------------------------
_MASK = "vmap: We do not support batching operators that can support dynamic shape. Attempting to batch over indexing with a boolean mask."
_SELECT = ("vmap: Attempted to vmap over `mask` in torch.masked_select(self, mask) We cannot support this because for each batch this would return a differently "
           "shaped Tensor. Please file an issue at https://github.com/pytorch/pytorch/issues if you need this feature.")


def _dynamic(name, known=lambda samples, *args: False, text=None):
    """Refused, as in PyTorch, also where all samples happen to give one shape; but not where ``known`` says that they must."""
    @form_of(name)
    def rule(samples, *args):
        if known(samples, *args):
            return NotImplemented
        raise RuntimeError(text or "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over "
                           f"aten::{name.lstrip('_')}. Please file an issue at https://github.com/pytorch/pytorch/issues if you need this feature.")


for _name in ("nonzero", "unique", "unique_consecutive"):
    _dynamic(_name)
_dynamic("masked_select", lambda samples, input, mask, *_: not samples.has(mask), _SELECT)
_dynamic("_index", lambda samples, base, indices: not any(samples.has(t) and t.dtype is dt.bool_ for t in indices if isinstance(t, Tensor)), _MASK)
