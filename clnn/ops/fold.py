"""Sliding blocks as columns and back, and the pixel and channel shuffles."""
from __future__ import annotations

import numpy as np

from .._tensor.declare import composite, kernel
from .._tensor.dispatch import run
from .._tensor.tensor import empty
from ..core import dtype as dt
from ..core.shape import whole
from ._scatter import width
from .complexes import complex_
from .views import arranged


def _pair(value):
    return tuple([whole(v) for v in value]) * (2 // len(value)) if isinstance(value, (tuple, list)) else (whole(value),) * 2


def _numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(0, 1, shape)


# -- sliding blocks -----------------------------------------------------------------------------------------------------------------
class Blocks:
    """Sizes of one call: image, kernel, dilation, padding and stride (pairs), and the number of block positions per axis."""

    __slots__ = ("image", "kernel", "dilation", "padding", "stride", "counts")

    def __init__(self, name, image, kernel, dilation, padding, stride):
        self.image = tuple(whole(v) for v in image)
        self.kernel, self.dilation, self.padding, self.stride = (_pair(v) for v in (kernel, dilation, padding, stride))
        for what in ("kernel", "dilation", "stride"):
            if min(getattr(self, what)) <= 0:
                raise RuntimeError(f"{what} size should be greater than zero, but got {what}={getattr(self, what)} ({name})")
        if min(self.padding) < 0:
            raise RuntimeError(f"padding should be non-negative, but got padding={self.padding} ({name})")
        self.counts = tuple((i + 2 * p - d * (k - 1) - 1) // s + 1 for i, k, d, p, s in
                            zip(self.image, self.kernel, self.dilation, self.padding, self.stride))
        if min(self.counts) <= 0:
            raise RuntimeError(f"Given image size {self.image}, kernel_size={self.kernel}, dilation={self.dilation}, padding={self.padding}, "
                               f"stride={self.stride}, calculated shape of the array of sliding blocks as {self.counts}, but its components must be "
                               f"at least one ({name})")

    @property
    def taps(self):
        return self.kernel[0] * self.kernel[1]

    @property
    def places(self):
        return self.counts[0] * self.counts[1]


def _launch(x, out, blocks, back, wide, rows):
    device = x._storage.device
    loop = device.is_cpu
    chunk = max(1, min(-(-rows // (8 * device.compute_units)), -(-4096 // wide))) if loop else 1
    run(device, "resample/fold", dict(T=x.dtype if back else width(x.dtype), BACK=back, LOOP=loop, ONE=loop and blocks.stride[1] == 1),
        (1, -(-rows // chunk)) if loop else (wide, rows), (1, 1) if loop else (64 if wide >= 64 else 16, 1),
        x.contiguous(), out, rows, *blocks.image, *blocks.counts, *blocks.kernel, *blocks.stride, *blocks.padding, *blocks.dilation, chunk)
    return out


@kernel("_columns", method=False, vjp=dict(input=lambda g, blocks: _image(g, blocks)))
def _columns(input, blocks):
    n, c = input.shape[:2]
    out = empty((n, c * blocks.taps, blocks.places), input.dtype, input._storage.device)
    if not out._numel:
        return out
    return _launch(input, out, blocks, 0, blocks.counts[1], n * c * blocks.taps * blocks.counts[0])


@kernel("_image", method=False, vjp=dict(input=lambda g, blocks: _columns(g, blocks)))
def _image(input, blocks):
    n, c = input.shape[0], input.shape[1] // blocks.taps
    out = empty((n, c, *blocks.image), input.dtype, input._storage.device)
    if not out._numel:
        return out
    return _launch(input, out, blocks, 1, blocks.image[1], n * c * blocks.image[0])


_columns.op.grad_name, _image.op.grad_name = "Im2ColBackward0", "Col2ImBackward0"


@composite("_im2col", repeat="ready small", complex=True, method=False, torch="nn.functional.unfold", dtypes=dt.FLOATS, samples=lambda: [
    ((_numbers(2, 3, 6, 5), 2), {}), ((_numbers(2, 3, 6, 7), (3, 2)), dict(dilation=2, padding=1, stride=(2, 1))), ((_numbers(3, 4, 4), 3), {})])
def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    """The sliding blocks of images as columns.

    Args:
        input: ``(N, C, H, W)`` or ``(C, H, W)``.
        kernel_size, dilation, padding, stride: of the blocks, one number or two.

    Returns:
        ``(N, C * kernel elements, L)`` with one column per block position, row by row.

    Raises:
        RuntimeError: wrong number of dimensions, or no block fits.

    Example:
        >>> clnn.nn.functional.unfold(clnn.arange(9.0).reshape(1, 1, 3, 3), 2).shape
        clnn.Size([1, 4, 4])
    """
    if input.ndim not in (3, 4):
        raise RuntimeError(f"Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but got: "
                           f"{list(input.shape)}")
    if input.dtype.is_complex:
        return complex_(*[unfold(part, kernel_size, dilation, padding, stride) for part in (input.real, input.imag)])
    blocks = Blocks("unfold", input.shape[-2:], kernel_size, dilation, padding, stride)
    return _columns(input, blocks) if input.ndim == 4 else _columns(input.unsqueeze(0), blocks).squeeze(0)


@composite("fold", repeat="ready small", complex=True, method=False, torch="nn.functional.fold", dtypes=dt.FLOATS, samples=lambda: [
    ((_numbers(2, 12, 20), (6, 5), 2), {}), ((_numbers(2, 18, 14), (6, 7), (3, 2)), dict(dilation=2, padding=1, stride=(2, 1))),
    ((_numbers(9, 4), 4, 3), {})], errors=[((np.zeros((1, 5, 4)), (3, 3), 2), {}, RuntimeError, "divisible by the product of kernel_size")])
def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """Columns added up into images, the transpose of :func:`unfold`: overlapping elements are summed.

    Args:
        input: ``(N, C * kernel elements, L)`` or without N.
        output_size: ``(H, W)`` of the images.
        kernel_size, dilation, padding, stride: as in :func:`unfold`.

    Returns:
        ``(N, C, H, W)`` or ``(C, H, W)``.
    """
    if input.ndim not in (2, 3):
        raise RuntimeError("Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for input, but got: "
                           f"{list(input.shape)}")
    if input.dtype.is_complex:
        return complex_(*[fold(part, output_size, kernel_size, dilation, padding, stride) for part in (input.real, input.imag)])
    blocks = Blocks("fold", _pair(output_size), kernel_size, dilation, padding, stride)
    x = input if input.ndim == 3 else input.unsqueeze(0)
    if x.shape[1] % blocks.taps:
        raise RuntimeError("Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got input.size(1)="
                           f"{x.shape[1]} and kernel_size={blocks.kernel}.")
    if x.shape[2] != blocks.places:
        raise RuntimeError(f"Given output_size={blocks.image}, kernel_size={blocks.kernel}, dilation={blocks.dilation}, padding={blocks.padding}, "
                           f"stride={blocks.stride}, expected size of input's dimension 2 to match the calculated number of sliding blocks "
                           f"{blocks.counts[0]} * {blocks.counts[1]} = {blocks.places}, but got input.size(2)={x.shape[2]}.")
    out = _image(x, blocks)
    return out if input.ndim == 3 else out.squeeze(0)


# -- shuffles -----------------------------------------------------------------------------------------------------------------------
@composite("pixel_shuffle", splice=True, repeat="ready small", complex=True, method=False, errors=[
    ((np.zeros((1, 3, 2, 2)), 2), {}, RuntimeError, "divisible by the square")],
           samples=lambda: [((_numbers(2, 8, 3, 4), 2), {}), ((_numbers(9, 2, 2), 3), {})])
def pixel_shuffle(input, upscale_factor):
    """Channels moved into space: ``(*, C r^2, H, W)`` to ``(*, C, H r, W r)``.

    Raises:
        RuntimeError: fewer than 3 dimensions, or channels that ``r^2`` does not divide.
    """
    r = whole(upscale_factor)
    if input.ndim < 3:
        raise RuntimeError(f"pixel_shuffle expects input to have at least 3 dimensions, but got input with {input.ndim} dimension(s)")
    if r <= 0:
        raise RuntimeError(f"pixel_shuffle expects a positive upscale_factor, but got {r}")
    *lead, c, h, w = input.shape
    if c % (r * r):
        raise RuntimeError("pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, but "
                           f"input.size(-3)={c} is not divisible by {r * r}")
    k = len(lead)
    parts = input.reshape(*lead, c // (r * r), r, r, h, w)
    return arranged(parts.permute(*range(k), k, k + 3, k + 1, k + 4, k + 2).reshape(*lead, c // (r * r), h * r, w * r), input)


@composite("pixel_unshuffle", splice=True, repeat="ready small", complex=True, method=False,
           samples=lambda: [((_numbers(2, 2, 6, 4), 2), {}), ((_numbers(1, 3, 6), 3), {})])
def pixel_unshuffle(input, downscale_factor):
    """Space moved into channels, the inverse of :func:`pixel_shuffle`: ``(*, C, H r, W r)`` to ``(*, C r^2, H, W)``.

    Raises:
        RuntimeError: fewer than 3 dimensions, or sizes that ``r`` does not divide.
    """
    r = whole(downscale_factor)
    if input.ndim < 3:
        raise RuntimeError(f"pixel_unshuffle expects input to have at least 3 dimensions, but got input with {input.ndim} dimension(s)")
    if r <= 0:
        raise RuntimeError(f"pixel_unshuffle expects a positive downscale_factor, but got {r}")
    *lead, c, h, w = input.shape
    for what, at, size in (("height", -2, h), ("width", -1, w)):
        if size % r:
            raise RuntimeError(f"pixel_unshuffle expects {what} to be divisible by downscale_factor, but input.size({at})={size} is not divisible by "
                               f"{r}")
    if not input._numel:                                         # as PyTorch does
        return input.clone()
    k = len(lead)
    parts = input.reshape(*lead, c, h // r, r, w // r, r)
    return arranged(parts.permute(*range(k), k, k + 2, k + 4, k + 1, k + 3).reshape(*lead, c * r * r, h // r, w // r), input)


@composite("channel_shuffle", repeat="ready small", complex=True, aliases=("native_channel_shuffle",), method=False, samples=lambda: [
    ((_numbers(2, 6, 3), 2), {}), ((_numbers(2, 6, 3, 2), 3), {})], errors=[((np.zeros((1, 3, 2, 2)), 2), {}, RuntimeError, "divisible by groups")])
def channel_shuffle(input, groups):
    """Channels of ``groups`` groups interleaved: channel ``g C / groups + c`` moves to ``c groups + g``. ``input`` is ``(N, C, *)``.

    Raises:
        RuntimeError: fewer than 3 dimensions, or channels that ``groups`` does not divide.
    """
    if input.ndim < 3:
        raise RuntimeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(input.shape)}")
    if groups <= 0:
        raise RuntimeError(f"Number of groups to divide channels in must be positive. Value of groups:{groups}")
    c = input.shape[1]
    if c % groups:
        raise RuntimeError(f"Number of channels must be divisible by groups. Got {c} channels and {groups} groups.")
    return arranged(input.reshape(input.shape[0], groups, c // groups, *input.shape[2:]).transpose(1, 2).reshape(input.shape), input)
