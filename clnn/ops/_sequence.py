"""Random numbers in the sequence that PyTorch draws on a processor, number for number (``clnn.core.twister``).

Few words are drawn by the host and sent as values. Many are drawn on the device, where a state follows the sequence, and become values in the expression
that reads them.
"""
from __future__ import annotations

import math
from math import prod

import numpy as np

from .._tensor import foreign, splice
from .._tensor.declare import elementwise
from .._tensor.dispatch import run
from .._tensor.interop import from_array, from_bytes, read
from .._tensor.repeat import repeated
from .._tensor.tensor import Tensor, empty, make
from ..core import dtype as dt
from ..core import native, rng, symbols, twister
from ..core.config import config
from ..core.shape import Size
from ..graph import mirror
from ..graph.op import REGISTRY
from ..runtime import launch as launcher
from ..runtime.device import Device

_HOST = 1 << 13         # words up to this cost the host less than two launches do, if it stands where the sequence does
_IN_A_ROW = 4           # short draws by a device in a row, with which a state that it has taken is not yet worth the host's while
_ORDERED = _HOST if native.built else 1 << 8      # numbers that the host puts in order sooner, which Python does one by one
_COINS = 1 << 8         # words that become ones and zeros, which takes one launch
_FEW = 16               # fewer normal numbers than these PyTorch draws in doubles, pair by pair
_NORMALS = 1 << 9       # normal numbers up to this the host makes sooner than a launch does
_BLOCKS = 1 << 10       # blocks of 16 normal numbers per work-item
_plain = dict(method=False, inplace=False, gradcheck=False)


def followed(device) -> bool:
    """Whether draws on ``device`` take the sequence: on CPUs, unless what draws is compiled, recorded or stands for many samples."""
    recording = launcher.recording
    if device.__class__ is not Device or rng.here.counted or foreign.here.maps or recording is not None and recording.counts and recording.mine():
        return False
    return device.is_cpu if config.random == "auto" else config.random == "pytorch"


class _Mirror:
    """The state on a device, as a tensor."""

    def __init__(self, state):
        self.state = state

    def read(self):
        return read(self.state).view(np.uint32)

    def copy(self):
        device, nbytes = self.state._storage.device, self.state._storage.nbytes
        made = empty(self.state.shape, dt.int32, device)
        device.copy(self.state._storage.buffer(), made._storage.buffer(), nbytes)
        return _Mirror(made)


def _by_host(sequence, words, limit=_HOST) -> bool:
    """Whether the host draws so many words."""
    if words > limit or not words:
        return not words
    if not sequence.on_host:
        sequence.short += 1
        if sequence.short <= _IN_A_ROW:
            return False
        sequence.short = 0                                  # the host goes where the device stands, and stays until much is drawn
    return True


def _words(sequence, n, device):
    """``n`` words in memory of the device, as a Storage."""
    if _by_host(sequence, n):
        return from_array(sequence.words(n).view(np.int32), device)._storage
    return _on_device(sequence, device, n, _next_words, n)._storage


def _on_device(sequence, device, words, draw, *args):
    """What ``draw`` makes of the next ``words`` words, from the state on the device."""
    with sequence.lock:
        sequence.settle()
        if words > _HOST:
            sequence.short = 0
        mirror = sequence.mirror
        if mirror is None or sequence.there != sequence.count or mirror.state._storage.device is not device:
            state, place = sequence.state()
            mirror = sequence.mirror = _Mirror(from_array(np.append(state, np.uint32(place)).view(np.int32), device))
        drawn = draw(mirror.state, *args)
        sequence.count = sequence.there = sequence.count + words
    twister.drawn.words += words
    return drawn


@repeated
def _next_words(state, n):
    device = state._storage.device
    out = empty((n,), dt.int32, device)
    run(device, "random/twister", {}, (1,), (1,), state, out, n)
    return out


@repeated
def _next_coins(state, n, limit):
    device = state._storage.device
    out = empty((n,), dt.bool_, device)
    run(device, "random/twister:twister_coins", {}, (1,), (1,), state, out, n, limit)
    return out


def _as(storage, shape, row) -> Tensor:
    return make(storage, shape, row, shape.numel())


_unit24 = elementwise("_unit24", "words", "clnn_unit24(words)", dtypes=(dt.float32,), doc="Words as numbers from [0, 1).", **_plain)
_unit53 = elementwise("_unit53", "words", "clnn_unit53(words)", dtypes=(dt.float64,), doc="Pairs of words as numbers from [0, 1).", **_plain)
_spread = elementwise("_spread", "drawn, range, low", "fma(drawn, range, low)", dtypes=(dt.float32, dt.float64), doc="Numbers from [0, 1) in another range.", **_plain)
_modulo32 = elementwise("_modulo32", "words, low, range", "(low + clnn_modulo32(words, range))", dtypes=(dt.int64,), doc="Words as whole numbers.", **_plain)
_modulo64 = elementwise("_modulo64", "words, low, range", "(low + clnn_modulo64(words, range))", dtypes=(dt.int64,), doc="Pairs of words as whole numbers.", **_plain)


def _moved(drawn, mean, std):
    return drawn if mean == 0 and std == 1 else drawn * std + mean


def _sent(values, device, row):
    """An array as a tensor of dtype ``row``: float32, which most are, without a look for numbers beyond."""
    return from_array(values.astype(np.float32), device) if row is dt.float32 else from_array(values, device, row)


def _told(values, shape, row, device):
    """A tensor of a device that is followed, of the bytes of numbers of dtype ``row``."""
    return from_bytes(values, shape, row, device) if values else empty(shape, row, device)


def singles(sequence, shape, device) -> Tensor:
    """Uniform numbers from [0, 1) in steps of 2^-24."""
    n = shape.numel()
    if _by_host(sequence, n):
        return _told(sequence.uniforms(n), shape, dt.float32, device)
    return _unit24(_as(_words(sequence, n, device), shape, dt.float32))


def doubles(sequence, shape, device) -> Tensor:
    """Uniform numbers from [0, 1) in steps of 2^-53; of a device without doubles the floats next to them."""
    n = shape.numel()
    if _by_host(sequence, 2 * n) or not device.has_fp64:
        drawn = sequence.doubles(n).reshape(shape)
        return from_array(drawn if device.has_fp64 else np.minimum(drawn, 1.0 - 2.0 ** -24), device, dt.float64 if device.has_fp64 else dt.float32)
    return _unit53(_as(_words(sequence, 2 * n, device), shape, dt.float64))


def uniform(sequence, shape, row, device, low=0.0, high=1.0) -> Tensor:
    """Uniform numbers from [low, high)."""
    n = shape.numel()
    if row is dt.float32 and _by_host(sequence, n):
        return _told(sequence.uniforms(n, low, high), shape, row, device)
    drawn = doubles(sequence, shape, device) if row is dt.float64 else singles(sequence, shape, device)
    if row.itemsize > 2:
        if low != 0 or high != 1:
            low, high = drawn.dtype.np.type(low), drawn.dtype.np.type(high)
            drawn = _spread(drawn, float(high - low), float(low))
        return drawn
    if (low, high) != (0.0, 1.0):
        drawn = drawn * (high - low) + low
    drawn = drawn.to(row)
    return REGISTRY["where"].fn(drawn < high, drawn, low)       # what is rounded up to the end starts again, as in PyTorch


def normal(sequence, shape, row, device, mean=0.0, std=1.0) -> Tensor:
    """Normal numbers: pair by pair where there are few, else in blocks of 16, the last of which ends with the last number and is drawn by itself."""
    n = shape.numel()
    if n < _FEW:
        return _sent(_moved(sequence.normals(n), mean, std).reshape(shape), device, row)
    if row is dt.float32 and _by_host(sequence, n, _NORMALS):
        return _told(sequence.blocks(n, mean, std), shape, row, device)
    if row is dt.float64:
        drawn = _blocks64(doubles(sequence, Size((n + 16 * (n % 16 > 0),)), device), n) * std + mean
    elif row is dt.float32:
        drawn = _blocks(_floats(_words(sequence, n + 16 * (n % 16 > 0), device)), n, float(mean), float(std), n)
    else:
        whole = n // 16 * 16
        drawn = _blocks(_floats(_words(sequence, -(-n // 16) * 16, device)), n, float(mean), float(std), whole).to(row)
    return _as(drawn._storage, shape, row)


def _floats(words):
    return _as(words, Size((words.nbytes // 4,)), dt.float32)


@repeated
def _blocks(words, n, mean, std, tail):
    """``tail``: where the words of the last block lie if it is drawn by itself."""
    device = words._storage.device
    out, blocks = empty((n,), dt.float32, device), n // 16
    run(device, "random/normals", {}, (-(-blocks // _BLOCKS),), (1,), words, out, blocks, _BLOCKS, mean, std)
    if n % 16:
        run(device, "random/normals", {}, (1,), (1,), words[tail:], out[n - 16:], 1, 1, mean, std)
    return out


def _blocks64(drawn, n):
    def pairs(u):
        u = u.view(-1, 2, 8)
        radius, angle = (-2.0 * (1.0 - u[:, 0]).log()).sqrt(), 2.0 * math.pi * u[:, 1]
        return REGISTRY["stack"].fn([radius * angle.cos(), radius * angle.sin()], 1).view(-1)
    if n % 16 == 0:
        return pairs(drawn)
    return REGISTRY["cat"].fn([pairs(drawn[:n // 16 * 16])[:n - 16], pairs(drawn[n:])])


def normal_pairs(sequence, shape, device) -> Tensor:
    """Normal numbers one after the other, in doubles where the device has them."""
    return from_array(sequence.normals(shape.numel()).reshape(shape), device, dt.float64 if device.has_fp64 else dt.float32)


def integers(sequence, low, span, shape, row, device, wide=None) -> Tensor:
    """Whole numbers from ``low`` on, ``span`` of them."""
    n = shape.numel()
    wide = span >= twister.WIDE if wide is None else wide
    if _by_host(sequence, n << wide):
        drawn = sequence.integers(low, span, n, wide)
        return _told(drawn, shape, row, device) if row is dt.int64 else from_array(np.frombuffer(drawn, np.int64).reshape(shape), device, row)
    words = _words(sequence, n << wide, device)
    draw, words = (_modulo64, _as(words, shape, dt.int64)) if wide else (_modulo32, _as(words, shape, dt.int32).to(dt.int64))
    return draw(words, rng.signed(low & rng.MASK), rng.signed(span & rng.MASK)).to(row)


# -- a few numbers --------------------------------------------------------------------------------------------------------------------------

def _sequence_now(n, device, generator):
    """The sequence, where the host is the one to draw ``n`` numbers of it for ``device`` and nobody else has a say, as mostly; else None."""
    if (generator is not None or not n or n > _NORMALS or device.__class__ is not Device or not device.is_cpu or config.random == "philox" or rng.here.counted
            or foreign.here.maps or launcher.recording is not None or splice._listening is not None or symbols.tracing is not None):
        return None
    sequence = rng.current().sequence
    return sequence if sequence.on_host else None


def _few_uniforms(shape, row, device, generator, low=0.0, high=1.0):
    n = prod(shape)
    sequence = _sequence_now(n, device, generator) if row is dt.float32 else None
    return None if sequence is None else make(mirror.unsent(device, sequence.uniforms(n, low, high)), shape, row, n)


def _few_normals(shape, row, device, generator, mean=0.0, std=1.0):
    n = prod(shape)
    sequence = _sequence_now(n, device, generator) if row is dt.float32 and n >= _FEW else None
    return None if sequence is None else make(mirror.unsent(device, sequence.blocks(n, mean, std)), shape, row, n)


def _few_integers(shape, low, high, row, device, generator, wide=None):
    n = prod(shape)
    sequence = _sequence_now(n, device, generator) if row is dt.int64 and wide is None and 0 < high - low < twister.WIDE else None
    return None if sequence is None else make(mirror.unsent(device, sequence.integers(low, high - low, n, False)), shape, row, n)


_few = dict(_uniform=_few_uniforms, _normal=_few_normals, _integers=_few_integers)


def shortly(name):
    """``splice.drawn`` for the draw of that name, in fewer steps where it makes a few numbers."""
    few = _few.get(name)
    if few is None:
        return splice.drawn

    def drawn(draw, shape, args, kwargs):
        made = None if kwargs else few(shape, *args)
        return splice.drawn(draw, shape, args, kwargs) if made is None else made
    return drawn


def coins(sequence, shape, p, row, device) -> Tensor:
    """1 with probability ``p``, else 0."""
    n = shape.numel()
    if _by_host(sequence, 2 * n, _COINS):
        return _sent((sequence.doubles(n) < p).reshape(shape), device, row)
    return _as(_on_device(sequence, device, 2 * n, _next_coins, n, math.ceil(p * 2.0 ** 53))._storage, shape, dt.bool_).to(row)


def bernoulli(sequence, input) -> Tensor:
    """1 with the probability that each element of ``input`` gives, else 0."""
    device = input._storage.device
    draw = doubles if input.dtype is dt.float64 else singles
    return (draw(sequence, input.shape, device) < input.detach()).to(input.dtype)


def exponential(sequence, shape, device) -> Tensor:
    """Waiting times of rate 1."""
    return -(-doubles(sequence, shape, device)).log1p()


def permutation(sequence, n, device):
    """The numbers below ``n`` in random order."""
    if _by_host(sequence, n, _ORDERED):
        return _told(sequence.order(n), Size((n,)), dt.int64, device)
    order = empty((n,), dt.int64, device)
    run(device, "random/permutation", {}, (1,), (1,), _as(_words(sequence, n - 1, device), Size((n - 1,)), dt.int32), order, n)
    return order
