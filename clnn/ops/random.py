"""Random numbers: factory functions, in-place fills and sampling.

On CPU devices draws follow PyTorch's sequence (``_sequence``). Elsewhere, in recordings and under ``vmap`` a draw is an elementwise expression of the element
number, the seed and a block count (see ``clnn.core.rng``), so it is recorded lazily and fuses with what uses it. Both give equal bits for equal
seeds on every device that draws that way (but for doubles, which use the driver's functions).
"""
from __future__ import annotations

import functools
import math

import numpy as np

from .._tensor import foreign, formats
from .._tensor.declare import composite, elementwise
from .._tensor.device import resolve
from .._tensor.dispatch import broadcast
from .._tensor.inplace import draw_into, type_name
from .._tensor.interop import from_array, read
from .._tensor.splice import counted
from .._tensor.tensor import Tensor, from_node, make
from .._tensor.worded import looked
from ..core import dtype as dt, rng, symbols, twister
from ..core.limits import ends, reached, whole_to, within
from ..core.shape import Size, is_contiguous, whole
from ..graph.node import Expr
from ..graph.op import REGISTRY
from . import _sequence, _shuffle
from .creation import _alike, _done, _empty, _float_default, _like, _like_another, as_size, factory, sizes
from .functions import _nothing

_STREAM = ("seed", "first")
_SHORT = 256                # orders of so many numbers are made by the host


def _draw(name, text, *operands, longs=()):
    return Expr(name, (*_STREAM, *operands), text, longs=(*_STREAM, *longs))


_UNIFORM = _draw("uniform", "(clnn_uniform(clnn_word(ACC, seed, first, IDX), bits) * (high - low) + low)", "bits", "low", "high", longs=("bits",))
_NORMAL = _draw("normal", "(clnn_normal(ACC, seed, first, IDX) * std + mean)", "mean", "std")
_EXPONENTIAL = _draw("exponential", "(clnn_exponential(clnn_word(ACC, seed, first, IDX)) * scale)", "scale")
_GEOMETRIC = _draw("geometric", "(fmax((ACC)1, ceil(clnn_exponential(clnn_word(ACC, seed, first, IDX)) * scale)))", "scale")
_LOG_NORMAL = _draw("log_normal", "clnn_log_normal(ACC, seed, first, IDX, mean, std)", "mean", "std")
_CAUCHY = _draw("cauchy", "(clnn_cauchy(ACC, seed, first, IDX) * sigma + median)", "median", "sigma")
_INTEGER = _draw("integer", "(low + clnn_scaled(clnn_random_word(seed, first, IDX), range))", "low", "range")
_WIDE_INTEGER = _draw("wide_integer", "(low + (long)(range ? clnn_random_wide(seed, first, IDX) % (ulong)range : "
                      "clnn_random_wide(seed, first, IDX)))", "low", "range")
_COIN = _draw("coin", "clnn_coin(clnn_random_word(seed, first, IDX), limit)", "limit", longs=("limit",))
_BITS = {dt.float16: 11, dt.bfloat16: 8, dt.float32: 24, dt.float64: 53}


def _stream(generator, numel, per_block=4):
    blocks = -(-numel // per_block)
    return counted(blocks) if generator is None else _chosen(generator).take(blocks)


def _chosen(generator):
    if generator is None:
        return rng.current()
    if not isinstance(generator, rng.Stream):
        raise TypeError(f"argument 'generator' must be a Generator or None, not {type(generator).__name__}")
    return generator


def _followed(generator, device):
    """The sequence that a draw takes, None where it takes the other kind of numbers."""
    symbols.plain_only("random numbers")
    return _chosen(generator).sequence if _sequence.followed(device) else None


def in_sequence(tensor, generator=None) -> bool:
    """Whether draws into ``tensor`` follow PyTorch's sequence."""
    return _chosen(generator) is not None and _sequence.followed(tensor._storage.device)


def _sample(expr, args, shape, row, device, generator, compute=None, wide=None) -> Tensor:
    """Record a draw of ``shape``; results are computed in ``compute`` and stored as ``row``."""
    if foreign.here.maps:
        return foreign.fresh(lambda whole: _sampled(expr, args, whole, row, device, generator, compute, wide), shape)
    return _sampled(expr, args, shape, row, device, generator, compute, wide)


def _sampled(expr, args, shape, row, device, generator, compute, wide):
    if row.needs_fp64 and not device.has_fp64:
        return _empty(shape, row, device)                            # raises with the reason
    numel, compute = shape.numel(), compute or row
    wide = compute.acc == "double" if wide is None else wide
    seed, first = _stream(generator, numel, 2 if wide else 4)
    return from_node(expr, (seed, first, *args), compute, row, shape, numel, device, 1, 0, True)


def _float_only(name, row):
    if not row.is_floating_point:
        raise NotImplementedError(f'"{name}" not implemented for \'{type_name(row)}\'; expected a float dtype')
    return row


def _parts(draw, shape, row, *rest) -> Tensor:
    """Complex numbers whose real and imaginary parts are drawn independently."""
    pairs = draw(Size((*shape, 2)), row.to_real(), *rest)
    return make(pairs._storage, shape, dt.noticed(row), shape.numel()) if pairs.__class__ is Tensor else REGISTRY["view_as_complex"].fn(pairs)


def _per_sample(draw):
    """``draw`` for each sample of the maps that are under way: one draw for all of them, in their order. A function that is repeated draws again."""
    drawn = _sequence.shortly(draw.__name__)

    @functools.wraps(draw)
    def call(shape, *args, **kwargs):
        return foreign.fresh(lambda whole: draw(whole, *args, **kwargs), shape) if foreign.here.maps else drawn(draw, shape, args, kwargs)
    return call


@_per_sample
def _uniform(shape, row, device, generator, low=0.0, high=1.0):
    if row.is_complex:
        return _parts(_uniform, shape, row, device, generator, low, high)
    row = _float_only("uniform", row)
    sequence = _followed(generator, device)
    if sequence is not None and not (row.needs_fp64 and not device.has_fp64):
        return _sequence.uniform(sequence, shape, row, device, low, high)
    return _sample(_UNIFORM, (_BITS[row], low, high), shape, row, device, generator)


@_per_sample
def _normal(shape, row, device, generator, mean=0.0, std=1.0):
    if row.is_complex:                                      # the variance is that of both parts together, the mean is that of each
        return _parts(_normal, shape, row, device, generator, mean, std * math.sqrt(0.5))
    row = _float_only("normal", row)
    sequence = _followed(generator, device)
    if sequence is not None and not (row.needs_fp64 and not device.has_fp64):
        return _sequence.normal(sequence, shape, row, device, mean, std)
    return _sample(_NORMAL, (mean, std), shape, row, device, generator)


@_per_sample
def _integers(shape, low, high, row, device, generator, wide=None):
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    span = high - low
    sequence = _followed(generator, device)
    if sequence is not None:
        return _sequence.integers(sequence, low, span, shape, row, device, wide)
    wide = span >= 1 << 32
    args = (rng.signed(low & rng.MASK), rng.signed(span & rng.MASK))
    return _sample(_WIDE_INTEGER if wide else _INTEGER, args, shape, row, device, generator, dt.int64, wide)


# -- factory functions ------------------------------------------------------------------------------------------------------------
@factory
def rand(*size, generator=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """Uniform numbers from [0, 1).

    Example:
        >>> clnn.manual_seed(0).initial_seed()
        0
        >>> clnn.rand(2, 3).shape
        clnn.Size([2, 3])
    """
    return _done(_uniform(as_size(size), _float_default(dtype), resolve(device), generator), requires_grad)


@factory
def randn(*size, generator=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """Normal numbers of mean 0 and variance 1 (Box & Muller, 1958).

    Example:
        >>> clnn.randn(2, 3).shape
        clnn.Size([2, 3])
    """
    return _done(_normal(as_size(size), _float_default(dtype), resolve(device), generator), requires_grad)


@factory
def randint(low=0, high=None, size=None, *, generator=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """Whole numbers from ``low`` (0 when only one bound is given) to ``high`` exclusive.

    Example:
        >>> int(clnn.randint(3, (100,)).max()) < 3
        True
    """
    if isinstance(high, (tuple, list)):
        low, high, size = 0, low, high
    elif high is None:
        low, high = 0, low
    shape, low, high = sizes("randint", size), whole(low), whole(high)
    row = dt.noticed(dt.as_dtype(dtype) or dt.int64)
    if row.is_complex:
        raise RuntimeError("check_random_bounds handles only integral, floating-point and boolean types")
    reached(row, low, high)
    return _done(_integers(shape, low, high, row, resolve(device), generator), requires_grad)


def _kind_of(input, dtype, device):
    """dtype and device of what is drawn like ``input``, which may stand for many samples."""
    if foreign.here.maps and hasattr(input, "level"):
        return dt.as_dtype(dtype) or input.dtype, input._storage.device if device is None else resolve(device)
    return _like(input, dtype, device)


@_like_another
def rand_like(input, *, generator=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False, memory_format=None):
    """Uniform numbers in the shape, dtype and device of ``input``.

    Example:
        >>> clnn.rand_like(clnn.ones(2, 3)).shape
        clnn.Size([2, 3])
    """
    return _done(_alike(_uniform(input.shape, *_kind_of(input, dtype, device), generator), input, memory_format), requires_grad)


@_like_another
def randn_like(input, *, generator=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False, memory_format=None):
    """Normal numbers in the shape, dtype and device of ``input``.

    Example:
        >>> clnn.randn_like(clnn.ones(2, 3)).shape
        clnn.Size([2, 3])
    """
    kind = _kind_of(input, dtype, device)
    order = None if foreign.here.maps else formats.like(input, memory_format)     # PyTorch draws for memory that is not row-major as for one that has gaps
    draw = _normal if order is None or is_contiguous(input.shape, order) else _normal_apart
    return _done(_alike(draw(input.shape, *kind, generator), input, memory_format), requires_grad)


@_like_another
def randint_like(input, low=None, high=None, *, generator=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False, memory_format=None):
    """Whole numbers in the shape, dtype and device of ``input``.

    Example:
        >>> x = clnn.randint_like(clnn.ones(2, 3), 5, 8)
        >>> ((x >= 5) & (x < 8)).all()
        tensor(True)
    """
    if low is None and high is None:
        raise TypeError("randint_like() missing 1 required positional arguments: \"high\"")
    low, high = (0, low) if high is None else (low or 0, high)
    return _done(_alike(_integers(input.shape, whole(low), whole(high), *_kind_of(input, dtype, device), generator), input, memory_format), requires_grad)


@factory
def randperm(n, *, generator=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """A random order of ``0 .. n - 1``.

    Example:
        >>> clnn.randperm(5).sort().values
        tensor([0, 1, 2, 3, 4])
    """
    n = whole(n)
    if n < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    row = dt.as_dtype(dtype) or dt.int64
    if row is dt.bool_:
        raise NotImplementedError("\"randperm\" not implemented for 'Bool'")
    if row.is_floating_point and row is not dt.bfloat16 and n > whole_to(row) + 1:
        raise RuntimeError(f"n cannot be greater than {whole_to(row) + 1} for {dt.SPOKEN[row.name]} type.")
    if row.category == dt.INT and n > np.iinfo(row.np).max:
        raise RuntimeError(f"value cannot be converted to type {row.np.name}_t without overflow")
    sequence = _followed(generator, resolve(device))
    if sequence is not None:
        return _done(_sequence.permutation(sequence, int(n), resolve(device)).to(row), requires_grad)
    home = resolve(device)
    if _SHORT < n < 2 ** 31 and not home.is_cpu and home.kind != "meta" and not foreign.here.maps:
        return _done(_shuffle.order_of(_integers(Size((n,)), -2 ** 31, 2 ** 31 - 1, dt.int32, home, generator)).to(row), requires_grad)
    return _done(from_array(_shuffle.by_host(_host_bits(generator, int(n)), int(n)), home, row), requires_grad)


_placed = elementwise("_placed", "mean, std, noise", "mean + std * noise", method=False, inplace=False, gradcheck=False,
                      vjp=dict(mean=_nothing, std=_nothing), doc="Noise with a mean and a deviation. As in PyTorch, no gradient reaches them.")
_placed.op.grad_name = "NormalBackward3"


@factory
def normal(mean, std=1.0, size=None, *, generator=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """Normal numbers with the given means and standard deviations (numbers or tensors).

    Example:
        >>> clnn.normal(0.0, clnn.ones(2, 3)).shape
        clnn.Size([2, 3])
    """
    if size is not None:
        mean, std = [v.item() if isinstance(v, Tensor) and not v.dim() and not v.requires_grad else v for v in (mean, std)]
    tensors = [t for t in (mean, std) if isinstance(t, Tensor)]
    if bool(tensors) is (size is not None):
        raise TypeError("normal(): argument 'size' is needed where mean and std are numbers or 0-d tensors without a gradient, and only there")
    if not isinstance(std, Tensor) and std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    if isinstance(std, Tensor) and std.dtype.is_complex:
        raise RuntimeError("normal expects standard deviation to be non-complex")
    if not tensors:
        return _done(_normal(as_size((tuple(size),)), _float_default(dtype), resolve(device), generator, mean, std), requires_grad)
    mean, std = [t.contiguous() if isinstance(t, Tensor) else t for t in (mean, _not_negative(std) if isinstance(std, Tensor) else std)]
    noise = _normal(broadcast("normal", *tensors), tensors[0].dtype, tensors[0]._storage.device, generator)
    result = mean + std * noise if noise.dtype.is_complex else _placed(mean, std, noise)
    if result._rg and len(tensors) == 1 and not noise.dtype.is_complex:
        result._grad_fn.label = f"NormalBackward{1 if isinstance(mean, Tensor) else 2}"
    return result


_not_negative = elementwise("_not_negative", "input", "input", checked=dict(bool="0", int="(input < 0)", float="(input < 0)"), method=False, inplace=False,
                            failure=(RuntimeError, "normal expects all elements of std >= 0.0"), vjp=dict(input=lambda g: g))


# -- sampling ---------------------------------------------------------------------------------------------------------------------
_bernoulli = elementwise("_bernoulli", "seed, first, input", "clnn_less(clnn_uniform(clnn_random_word(seed, first, IDX), 24), input)", method=False, inplace=False,
                         vjp=dict(input=_nothing))
_bernoulli.op.expr.longs = frozenset((0, 1))
_drawn_from = elementwise("_drawn_from", "input, draws", "draws", method=False, inplace=False, gradcheck=False, vjp=dict(input=_nothing),
                          doc="``draws``, which the history shows as drawn with the probabilities ``input``.")
_probability = elementwise("_probability", "input", "input", checked="!(input >= 0 && input <= 1)", method=False, inplace=False, vjp=dict(input=lambda g: g),
                           failure=(RuntimeError, "Expected p_in >= 0 && p_in <= 1 to be true, but got false."))
_probability.op.expr.name, _not_negative.op.expr.name = "bernoulli", "normal"      # whose errors these are
_bernoulli.op.grad_name = _drawn_from.op.grad_name = "BernoulliBackward0"


def _checked_probabilities(p):
    """``p``, of which a value beyond [0, 1] is an error: looked for by the kernel that draws, or, where that would be too slow a form, before it."""
    if p._numel <= 1 << 14:
        return _probability(p)
    _probability((p.detach() - 0.5).abs().amax() + 0.5)._storage.buffer()
    return p


@composite("bernoulli")
def bernoulli(input, p=None, *, generator=None, out=None):
    """1 with the probability that each element gives (or ``p`` for all), else 0."""
    if out is not None:                                             # of any dtype: zeros and ones fit
        out.resize_(input.shape)
        return out.copy_(bernoulli(input, p, generator=generator))
    device = input._storage.device
    if p is not None:
        return _coins(input.shape, float(p), input.dtype, device, generator)
    if not input.dtype.is_floating_point:
        raise NotImplementedError(f"\"bernoulli_tensor_cpu_p_\" not implemented for '{dt.SPOKEN[input.dtype.name]}'")
    if foreign.here.maps:
        return (_uniform(input.shape, dt.float32, device, generator) < input.detach()).to(input.dtype)
    input = _checked_probabilities(input)
    sequence = _followed(generator, device)
    if sequence is not None:
        return _drawn_from(input, _sequence.bernoulli(sequence, input)).contiguous()
    return _bernoulli(*_stream(generator, input._numel), input.float() if input.dtype is not dt.float32 else input).to(input.dtype)


def _limit(p):
    if not 0.0 <= p <= 1.0:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
    return round(p * 2.0 ** 32)


@_per_sample
def _coins(shape, p, row, device, generator=None) -> Tensor:
    """1 with probability ``p``, else 0."""
    limit, sequence = _limit(p), _followed(generator, device)
    if sequence is not None:
        return _sequence.coins(sequence, shape, p, row, device)
    return _sample(_COIN, (limit,), shape, row, device, generator, dt.int32, False)


_FEW = 4096              # elements


@composite("multinomial")
def multinomial(input, num_samples, replacement=False, *, generator=None):
    """Indices drawn with probabilities proportional to the rows of ``input``.

    One draw, or several without replacement, are the first of exponential waiting times ``q / weight`` (Efraimidis & Spirakis, 2006); several with
    replacement are looked for among the running sums. Waits for the device to check the weights.

    Args:
        input: weights, shape (C) or (N, C), not negative; rows need not sum to one.
        num_samples: draws per row.
        replacement: whether an index may be drawn again.
    """
    if len(input.shape) not in (1, 2):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if not input.dtype.is_floating_point:
        raise RuntimeError(f"multinomial only supports floating-point dtypes for input, got: {type_name(input.dtype)}")
    if num_samples <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and num_samples > input.shape[-1]:
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    if not input._numel:                                # no rows
        return input.new_zeros((*input.shape[:-1], num_samples), dtype=dt.int64)
    weights = input.detach() if input.dtype.needs_fp64 else input.detach().float()
    if weights._numel > _FEW:
        fault = int(~((weights >= 0) & (weights < math.inf)).all() + 2 * (weights.sum(-1) <= 0).any())
    else:                                               # few are sooner read than looked through
        array = read(weights)
        fault = twister.faults(array)
    if fault:
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0" if fault & 1 else
                           "invalid multinomial distribution (sum of probabilities <= 0)")
    if weights._numel <= _FEW and weights._numel // weights.shape[-1] * num_samples <= _FEW and foreign.fresh is None:
        return from_array(_picked(array, num_samples, replacement, generator, weights._storage.device), weights._storage.device)
    if replacement and num_samples > 1:
        return _from_sums(weights, num_samples, generator)
    draws = _exponential_(weights.shape, weights.dtype, weights._storage.device, generator)
    waits = (draws + 2.0 ** -100) / weights             # a draw of 0 must not win where the weight is 0, too
    return waits.argmin(-1, True) if num_samples == 1 else waits.topk(num_samples, -1, False)[1]


def _picked(weights, count, replacement, generator, device):
    """The draws of :func:`multinomial` for a few weights, on the host, in the same two ways."""
    sequence = _followed(generator, device)
    if sequence is not None:
        return twister.multinomial(sequence, weights.reshape(-1, weights.shape[-1]), count, replacement).astype(np.int64).reshape(*weights.shape[:-1], count)
    rows = weights.astype(np.float64).reshape(-1, weights.shape[-1])
    many = replacement and count > 1
    draw = _host_generator(generator, rows.shape[0] * count if many else rows.size)
    if many:
        ends = rows.cumsum(1)
        whole = ends[:, -1:]
        number = np.arange(rows.shape[0])[:, None]
        ends = (ends / whole + number).reshape(-1)              # one sorted sequence of all rows
        last = rows.shape[1] - 1 - (rows[:, ::-1] > 0).argmax(1)[:, None]
        found = np.searchsorted(ends, draw.random((rows.shape[0], count)) + number, "right").reshape(-1, count) - number * rows.shape[1]
        got = np.minimum(found, last)                           # beyond the last positive weight only by rounding
    else:
        with np.errstate(divide="ignore"):
            waits = (draw.exponential(size=rows.shape) + 2.0 ** -100) / rows
        got = waits.argmin(1)[:, None] if count == 1 else waits.argsort(1)[:, :count]
    return got.astype(np.int64).reshape(*weights.shape[:-1], count)


def _from_sums(weights, count, generator):
    """``count`` independent draws per row: where a uniform share of the row's sum falls among its running sums."""
    device = weights._storage.device
    wide = dt.float64 if device.has_fp64 else dt.float32
    ends = weights.to(wide).cumsum(-1)
    whole = ends.narrow(-1, weights.shape[-1] - 1, 1)
    find = REGISTRY["searchsorted"].fn
    found = find(ends, _uniform(Size((*weights.shape[:-1], count)), wide, device, generator) * whole, right=True)
    return found.minimum(find(ends, whole.contiguous()))             # beyond the last positive weight only by rounding


def _host_bits(generator, blocks):
    """NumPy's generator of the same family, on ``blocks`` blocks of the stream; its raw numbers are part of its interface."""
    seed, first = _chosen(generator).take(blocks)
    return np.random.Philox(key=seed & rng.MASK, counter=[first & rng.MASK, 0, 0, 1])


def _host_generator(generator, count):
    return np.random.Generator(_host_bits(generator, count))


@composite("poisson")
def poisson(input, generator=None):
    """Poisson numbers with the rate that each element gives (drawn on the host)."""
    if not input.dtype.is_floating_point:
        raise NotImplementedError(f'"poisson_cpu" not implemented for \'{type_name(input.dtype)}\'')
    rates = read(input.detach()).astype(np.float64)
    if not (rates >= 0).all():
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
    drawn = by_rejection("poisson", generator, input._storage.device, rates)
    drawn = np.asarray(_host_generator(generator, rates.size).poisson(rates), np.float64) if drawn is None else drawn
    return _drawn_from(input.contiguous(), from_array(drawn, input._storage.device, input.dtype))


@composite("binomial", method=False)
def binomial(count, prob, generator=None):
    """Numbers of successes in ``count`` trials of probability ``prob`` (drawn on the host)."""
    n, p = np.broadcast_arrays(np.maximum(read(count.detach()).astype(np.int64), 0), read(prob.detach()).astype(np.float64))
    drawn = by_rejection("binomial", generator, count._storage.device, n, p)
    return from_array(np.asarray(_host_generator(generator, n.size).binomial(n, p), np.float64) if drawn is None else drawn, count._storage.device, count.dtype)


def by_rejection(kind, generator, device, *parameters):
    """A number of that ``kind`` for each element of the arrays, in PyTorch's sequence; None where that is not followed."""
    sequence = _followed(generator, device)
    return None if sequence is None else sequence.rejected(kind, *[np.asarray(p, np.float64, "C") for p in parameters])


# -- in place ---------------------------------------------------------------------------------------------------------------------
def _fill(name, apart=None):
    """Make a Tensor method ``name`` of a function that draws values for ``self``; ``apart`` draws them for memory that is not contiguous."""
    def decorate(draw, look=looked(name, method=True, outer=True)):
        def method(self, *args, generator=None, **kwargs):
            look((self, *args), kwargs)
            chosen = draw if apart is None or self.is_contiguous() else apart
            return draw_into(self, lambda shape, order: chosen(shape, self.dtype, self._storage.device, generator, *args, **kwargs), name[:-1])
        method.__name__, method.__doc__ = name, draw.__doc__
        setattr(Tensor, name, method)
        return draw
    return decorate


@_fill("uniform_")
def _uniform_(shape, row, device, generator, from_=0.0, to=1.0, **kw):
    """Overwrite with uniform numbers from [from, to)."""
    from_ = kw.pop("from", from_)
    if from_ > to:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={from_} > to={to}")
    if row.is_floating_point:
        within(row, "from", from_)
        within(row, "to", to)
        if to - from_ > ends(row)[1]:
            raise RuntimeError(f"uniform_ expects to-from <= std::numeric_limits<{dt.SPOKEN[row.name]}>::max(), but found to={to:g} and from={from_:g} which "
                               "result in to-from to exceed the limit")
    return _uniform(shape, row, device, generator, from_, to)


def _normal_apart(shape, row, device, generator, mean=0.0, std=1.0):
    sequence = None if row.is_complex or std < 0 else _followed(generator, device)
    if sequence is None:
        return _normal_(shape, row, device, generator, mean, std)
    return (_sequence.normal_pairs(sequence, shape, device) * std + mean).to(_float_only("normal", row))


@_fill("normal_", _normal_apart)
def _normal_(shape, row, device, generator, mean=0.0, std=1.0):
    """Overwrite with normal numbers."""
    if std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    return _normal(shape, row, device, generator, mean, std)


@_fill("exponential_")
@_per_sample
def _exponential_(shape, row, device, generator, lambd=1.0):
    """Overwrite with exponential numbers of rate ``lambd``."""
    if lambd <= 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd:g}")
    row, sequence = _float_only("exponential", row), _followed(generator, device)
    if sequence is not None:
        return (_sequence.exponential(sequence, shape, device) * (1.0 / lambd)).to(row)
    return _sample(_EXPONENTIAL, (1.0 / lambd,), shape, row, device, generator)


def exponential_like(input) -> Tensor:
    """Waiting times of rate 1 in the shape, dtype and device of ``input``."""
    return _exponential_(input.shape, input.dtype, input._storage.device, None)


def slopes(input, low, high) -> Tensor:
    """1 where ``input`` is positive, else uniform numbers from [low, high); PyTorch's sequence takes one only there, so their number is waited for."""
    sequence = _followed(None, input._storage.device)
    if sequence is None:
        return REGISTRY["where"].fn(input > 0, 1.0, rand_like(input) * (high - low) + low)
    drawn = input <= 0
    some = _sequence.doubles(sequence, Size((int(drawn.sum()),)), input._storage.device) * (high - low) + low
    return (input > 0).to(input.dtype).masked_scatter(drawn, some.to(input.dtype))


@_fill("geometric_")
@_per_sample
def _geometric_(shape, row, device, generator, p):
    """Overwrite with the number of trials of probability ``p`` up to the first success."""
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p:g}")
    sequence = _followed(generator, device)
    if sequence is not None:
        return (_sequence.doubles(sequence, shape, device).log() * (1.0 / math.log1p(-p))).ceil().clamp_(min=1.0).to(row)
    return _sample(_GEOMETRIC, (-1.0 / math.log1p(-p),), shape, row, device, generator, row if row.is_floating_point else dt.float32)


@_fill("log_normal_")
@_per_sample
def _log_normal_(shape, row, device, generator, mean=1.0, std=2.0):
    """Overwrite with exponentials of normal numbers."""
    if std <= 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std:g}")
    row, sequence = _float_only("log_normal", row), _followed(generator, device)
    if sequence is not None:
        return (_sequence.normal_pairs(sequence, shape, device) * std + mean).exp().to(row)
    return _sample(_LOG_NORMAL, (mean, std), shape, row, device, generator)


@_fill("cauchy_")
@_per_sample
def _cauchy_(shape, row, device, generator, median=0.0, sigma=1.0):
    """Overwrite with Cauchy numbers."""
    if sigma <= 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")
    row, sequence = _float_only("cauchy", row), _followed(generator, device)
    if sequence is not None:
        return (((_sequence.doubles(sequence, shape, device) - 0.5) * math.pi).tan() * sigma + median).to(row)
    return _sample(_CAUCHY, (median, sigma), shape, row, device, generator)


@_fill("random_")
def _random_(shape, row, device, generator, *ends, **kw):
    """Overwrite with whole numbers from [from, to); by default all that the dtype holds exactly."""
    given = [*ends, *[kw[k] for k in ("from", "to") if k in kw]]
    low, high = ([0] * (len(given) < 2) + given + [None])[:2]
    most = 2 if row is dt.bool_ else 2 ** (_BITS[row]) + 1 if row.is_floating_point else int(np.iinfo(row.np).max) + 1
    if given and low < (high or most):
        reached(row, low, high or most - 1)
    return _integers(shape, int(low), most if high is None else int(high), row, device, generator, *[row.itemsize == 8] * (not given))


def bernoulli_(self, p=0.5, *, generator=None):
    """Overwrite with 1 (probability ``p``, a number or a tensor) and 0."""
    if isinstance(p, Tensor):
        p = p.expand(self.shape)                                    # each element is drawn, also where one number stands for all
        return draw_into(self, lambda shape, order: bernoulli(p.permute(order) if order else p, generator=generator).to(self.dtype), "bernoulli")
    return draw_into(self, lambda shape, order: _coins(shape, float(p), self.dtype, self._storage.device, generator), "bernoulli")


Tensor.bernoulli_ = bernoulli_
