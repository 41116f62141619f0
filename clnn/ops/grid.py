"""Sampling of images and volumes at the points of a grid: ``grid_sample`` and ``affine_grid``.

The gradient of the points gathers; that of the image is added up by owners of planes on CPUs, and by sorted elements elsewhere: no atomics.
"""
from __future__ import annotations

import math

import numpy as np

from .._tensor.backward import grad as grad_of
from .._tensor.declare import composite, kernel
from .._tensor.dispatch import run
from .._tensor.grad_mode import enable_grad
from .._tensor.inplace import type_name
from .._tensor.refusals import spoken
from .._tensor.tensor import empty
from ..core import dtype as dt
from ..core.warn import warn
from ._scatter import on_cpu
from .creation import linspace, shared, tensor
from .joining import stack
from .resample import _images
from .selection import where

_OWNED = 1 << 18            # bytes of planes that a work-item adds to at a time: they stay in cache
_GROUP = 4096               # points of a group on CPUs: drivers go through groups of all images in turn, which leaves the caches between small ones


def _clipped(x, n):
    """Into [0, n - 1]; no gradient from what lies on or beyond the edge."""
    return where((x > 0) & (x < n - 1), x, x.detach().clamp(0, n - 1))


def _inside(x, n, padding, align):
    """Coordinates of elements for points outside of the image, as far as ``padding`` says."""
    if padding == "reflection":
        low, span = (0.0, n - 1.0) if align else (-0.5, float(n))
        if span == 0:
            return x * 0
        a = x - low
        a = where(a < 0, -a, a)
        flips = (a / span).floor().detach()
        rest = a - flips * span
        x = low + where(flips % 2 == 0, rest, span - rest)
    return x if padding == "zeros" else _clipped(x, n)


def _axis_taps(c, n, mode, padding, align):
    """[(element, weight)] of one axis for coordinates ``c``; taps outside have weight 0 and element 0."""
    x = (c + 1) * (0.5 * (n - 1)) if align else ((c + 1) * n - 1) * 0.5
    if mode != "bicubic":
        x = _inside(x, n, padding, align)
    x = where(x.abs() < 1e9 if mode == "bicubic" and padding != "zeros" else (x > -4) & (x < n + 4), x, -100.0)
    if mode == "nearest":
        found = [(x.detach().round(), x.detach() * 0 + 1)]
    else:
        down = x.detach().floor()
        t = x - down
        if mode == "bilinear":
            found = [(down, 1 - t), (down + 1, t)]
        else:
            found = [(_inside(down + (k - 1), n, padding, align), _cubic_weight(t, k)) for k in range(4)]
    kept = []
    for at, w in found:
        valid = (at >= 0) & (at < n)
        kept.append((where(valid, at, 0.0).to(dt.int64), where(valid, w, 0.0)))
    return kept


def _cubic_weight(t, k, a=-0.75):
    d = (t + 1, t, 1 - t, 2 - t)[k]
    return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a if k in (0, 3) else ((a + 2) * d - (a + 3)) * d * d + 1


def _sampled(input, grid, mode, padding, align):
    """``_grid_sample`` of differentiable operators: the rows of all taps, weighted and added."""
    rank, lead = input.ndim - 2, tuple(input.shape[:2])
    sizes, wide = tuple(input.shape[2:]), input.dtype.acc_dtype
    points = grid.reshape(lead[0], -1, rank).to(wide)
    taps = [(None, None)]
    for k, n in enumerate(sizes):
        axis = _axis_taps(points[..., rank - 1 - k], n, mode, padding, align)
        taps = [(i if at is None else at * n + i, w if got is None else got * w) for at, got in taps for i, w in axis]
    area = math.prod(sizes)
    base = tensor(np.arange(lead[0]) * area, dtype=dt.int64, device=input.device).reshape(-1, 1)
    index = stack([at + base for at, _ in taps]).reshape(-1)
    weights = stack([w for _, w in taps]).reshape(len(taps), -1, 1)
    rows = input.reshape(*lead, area).transpose(1, 2).reshape(lead[0] * area, lead[1]).index_select(0, index)
    out = (rows.reshape(len(taps), -1, lead[1]) * weights).sum(0).to(input.dtype)
    return out.reshape(lead[0], -1, lead[1]).transpose(1, 2).reshape(*lead, *grid.shape[1:-1])


def _by_decomposition(g, which, tensors, options):
    """The gradient of ``_sampled`` by one of (input, grid)."""
    with enable_grad():
        both = [t.detach().requires_grad_(k == which) for k, t in enumerate(tensors)]
        out = _sampled(*both, *options)
    return grad_of([out], [both[which]], [g])[0]


def _geometry(device, points, planes):
    """(points of a work-item, local size)."""
    if device.loops:
        return 64, (1, 1)
    local = min(_GROUP, device.max_work_group) if device.is_cpu else 64
    while local > 64 and (local >= 2 * points or points * planes < 8 * local * device.compute_units):
        local //= 2
    return 1, (local, 1)


@kernel("_grid_image", method=False)
def _grid_image(g, input, grid, mode, padding, align):
    """The gradient of ``_grid_sample`` by its input."""
    device, rank, (count, channels), area = input._storage.device, input.ndim - 2, input.shape[:2], math.prod(input.shape[2:])
    if not on_cpu(device):                                       # planes are too few for a GPU: taps are sorted by their elements
        return _by_decomposition(g, 0, (input, grid), (mode, padding, align))
    out = empty(input.shape, input.dtype.acc_dtype, device)
    if out._numel:
        chunk = max(1, min(_OWNED // (area * out.dtype.itemsize), -(-channels * count // (2 * device.compute_units)), channels))
        groups = -(-channels // chunk)
        params = dict(T=input.dtype, RANK=rank, MODE=mode, PAD=padding, ALIGN=int(align), POINTS=64, TAPWISE=not device.loops)
        run(device, "resample/grid_image", params, (1, count * groups), (1, 1), g.contiguous(), grid.contiguous(), out,
            g._numel // (count * channels), channels, groups, chunk, *(1,) * (3 - rank), *input.shape[2:])
    return out.to(input.dtype)


@kernel("_grid_points", method=False)
def _grid_points(g, input, grid, mode, padding, align):
    """The gradient of ``_grid_sample`` by its grid."""
    device, rank, (count, channels) = input._storage.device, input.ndim - 2, input.shape[:2]
    if mode == "nearest" or not g._numel:
        return grid.new_zeros(grid.shape)
    out, points = empty(grid.shape, grid.dtype, device), grid._numel // (count * rank)
    each, local = _geometry(device, points, count)
    params = dict(T=input.dtype, RANK=rank, MODE=mode, PAD=padding, ALIGN=int(align), POINTS=each)
    run(device, "resample/grid_points", params, (-(-points // each), count), local, g.contiguous(), input.contiguous(), grid.contiguous(), out,
        points, channels, *(1,) * (3 - rank), *input.shape[2:])
    return out


@kernel("_grid_sample", method=False, decompose=_sampled, vjp=dict(
    input=lambda g, input, grid, mode, padding, align: _grid_image(g, input, grid, mode, padding, align),
    grid=lambda g, input, grid, mode, padding, align: _grid_points(g, input, grid, mode, padding, align)))
def _grid_sample(input, grid, mode, padding, align):
    device, rank = input._storage.device, input.ndim - 2
    out = empty((*input.shape[:2], *grid.shape[1:-1]), input.dtype, device)
    if not out._numel:
        return out
    count, channels = input.shape[:2]
    points, chunk = out._numel // (count * channels), min(channels, 16)
    groups = -(-channels // chunk)
    each, local = _geometry(device, points, count * groups)
    params = dict(T=input.dtype, RANK=rank, MODE=mode, PAD=padding, ALIGN=int(align), POINTS=each)
    run(device, "resample/grid", params, (-(-points // each), count * groups), local,
        input.contiguous(), grid.contiguous(), out, points, channels, groups, chunk, *(1,) * (3 - rank), *input.shape[2:])
    return out


_grid_sample.op.grad_name = "GridSampler2DBackward0"


def _grid_samples():
    x, grid = _images(2, 3, 5, 6), np.random.default_rng(1).uniform(-1.3, 1.3, (2, 4, 3, 2))
    return [((x, grid), dict(mode=m, padding_mode=p, align_corners=a)) for m, p, a in (
        ("bilinear", "zeros", False), ("bilinear", "border", True), ("bilinear", "reflection", False), ("nearest", "zeros", False),
        ("bicubic", "reflection", True))]


def _told_corners(align_corners):
    if align_corners is None:
        warn("Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please specify align_corners=True if the old "
             "behavior is desired. See the documentation of grid_sample for details.")


def _check_sizes(input, grid):
    sizes = f"but got input with sizes {list(input.shape)} and grid with sizes {list(grid.shape)}"
    if input.shape[:1] != grid.shape[:1]:
        raise RuntimeError(f"grid_sampler(): expected grid and input to have same batch size, {sizes}")
    if input.ndim > 2 and grid.shape[-1] != input.ndim - 2:
        raise RuntimeError(f"grid_sampler(): expected grid to have size {input.ndim - 2} in last dimension, but got grid with sizes {list(grid.shape)}")
    if input.ndim in (4, 5) and grid.ndim != input.ndim:
        raise RuntimeError(f"grid_sampler(): expected {input.ndim}D input and grid with same number of dimensions, {sizes}")


@composite("grid_sample", splice=True, repeat="ready small", method=False, torch="nn.functional.grid_sample", samples=_grid_samples, dtypes=dt.FLOATS)
def grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    """``input`` read at the points of ``grid``, whose coordinates run from -1 to 1 over the image.

    Args:
        input: ``(N, C, H, W)`` or ``(N, C, D, H, W)``.
        grid: ``(N, Ho, Wo, 2)`` of (x, y) or ``(N, Do, Ho, Wo, 3)`` of (x, y, z).
        mode: ``bilinear`` (trilinear for volumes), ``nearest`` or ``bicubic`` (images).
        padding_mode: outside of the image are ``zeros``, the ``border``, or its ``reflection``.
        align_corners: -1 and 1 are the centres of the outermost elements instead of their outer edges (the default).

    Raises:
        ValueError: unknown modes. RuntimeError: shapes that do not fit.
    """
    _told_corners(align_corners)
    if mode not in ("bilinear", "nearest", "bicubic"):
        raise ValueError(f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'")
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError("nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: "
                         f"'{padding_mode}'")
    if input.dtype is not grid.dtype:
        raise RuntimeError(f"grid_sampler(): expected input and grid to have same dtype, but input has {spoken(input.dtype)} and grid has {spoken(grid.dtype)}")
    if not input.dtype.is_floating_point:
        raise NotImplementedError(f'"grid_sampler" not implemented for \'{type_name(input.dtype)}\'; it takes float tensors')
    _check_sizes(input, grid)
    rank = input.ndim - 2
    if rank not in (2, 3) or grid.ndim != input.ndim or grid.shape[0] != input.shape[0] or grid.shape[-1] != rank:
        raise RuntimeError("grid_sampler(): expected 4D or 5D input and grid with same number of dimensions and batch size, and the grid's last "
                           f"dimension to be the number of spatial ones, but got input with sizes {list(input.shape)} and grid with sizes "
                           f"{list(grid.shape)}")
    if 0 in input.shape[2:]:
        raise RuntimeError(f"grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes {list(input.shape)} with "
                           f"dimension {2 + list(input.shape[2:]).index(0)} being empty")
    if mode == "bicubic" and rank == 3:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    return _grid_sample(input, grid, mode, padding_mode, bool(align_corners))


@composite("affine_grid", repeat="small", method=False, torch="nn.functional.affine_grid", dtypes=dt.FLOATS, samples=lambda: [
    ((_images(2, 2, 3), (2, 1, 4, 5)), dict(align_corners=True)), ((_images(2, 3, 4), (2, 1, 2, 3, 4)), dict(align_corners=False))])
def affine_grid(theta, size, align_corners=None):
    """The grid for :func:`grid_sample` of an affine map: ``grid[n, ...] = theta[n] @ (x, y, 1)`` (or ``(x, y, z, 1)``).

    Args:
        theta: ``(N, 2, 3)`` or ``(N, 3, 4)``.
        size: ``(N, C, H, W)`` or ``(N, C, D, H, W)`` of the output.
        align_corners: as in :func:`grid_sample`.

    Raises:
        ValueError: theta is not float or does not fit the size. NotImplementedError: a size of another length.
    """
    _told_corners(align_corners)
    if not theta.dtype.is_floating_point:
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    rank = len(size) - 2
    if rank not in (2, 3):
        raise NotImplementedError("affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got size "
                                  f"{tuple(size)}.")
    if theta.ndim != 3 or theta.shape[-2] != rank or theta.shape[-1] != rank + 1:
        raise ValueError(f"Expected a batch of {rank}D affine matrices of shape Nx{rank}x{rank + 1} for size {tuple(size)}. Got "
                         f"{theta.shape}.")
    if min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {tuple(size)}")
    if align_corners and min(size[2:]) == 1:
        warn("Since version 1.3.0, affine_grid behavior has changed for unit-size grids when align_corners=True. This is not an intended use case of affine_grid. "
             "See the documentation of affine_grid for details.")
    shape = tuple(int(s) for s in size[2:])
    base = shared(theta._storage.device, (affine_grid, theta.dtype, shape, bool(align_corners)), lambda: _places(theta, shape, align_corners))
    return base.expand(size[0], *base.shape[1:]).bmm(theta.transpose(1, 2)).reshape(size[0], *shape, rank)


def _places(theta, shape, align_corners):
    """``(1, H W, 3)``: (x, y, 1) of each element of the grid."""
    rank, parts = len(shape), []
    for k in range(rank - 1, -1, -1):
        n = shape[k]
        line = linspace(-1, 1, n, dtype=theta.dtype, device=theta.device) if n > 1 else theta.new_zeros(1)
        line = line if align_corners else line * (n - 1) / n          # PyTorch's roundings: pixels that are hit exactly stay so
        parts.append(line.reshape([-1 if i == k else 1 for i in range(rank)]).expand(shape))
    return stack([*parts, theta.new_ones(shape)], -1).reshape(1, -1, rank + 1)
