"""Resampling, grids, sliding blocks and shuffles against PyTorch: values, gradients, dtypes, errors."""
import numpy as np
import pytest

import clnn
import clnn.nn.functional as F

torch = pytest.importorskip("torch")
TF = torch.nn.functional
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def floats(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def close(got, want, tol=2e-5):
    assert tuple(got.shape) == tuple(want.shape)
    np.testing.assert_allclose(got.detach().to(clnn.float64).numpy(), want.detach().to(torch.float64).numpy(), rtol=tol, atol=tol)


def compare(name, arrays, *args, tol=2e-5, **kwargs):
    """Values and gradients of the function ``name`` of both libraries."""
    xs, ys = [clnn.tensor(a, requires_grad=True) for a in arrays], [torch.tensor(a, requires_grad=True) for a in arrays]
    got, want = getattr(F, name)(*xs, *args, **kwargs), getattr(TF, name)(*ys, *args, **kwargs)
    close(got, want, tol)
    g = floats(*want.shape, seed=9)
    got.backward(clnn.tensor(g))
    want.backward(torch.tensor(g))
    for x, y in zip(xs, ys):
        close(x.grad, y.grad, tol * 10)


LINE, IMAGE, VOLUME = (2, 3, 7), (2, 3, 7, 5), (1, 2, 5, 4, 6)
INTERPOLATIONS = [
    (LINE, dict(size=11)), (LINE, dict(scale_factor=2.3)), (LINE, dict(size=3, mode="nearest-exact")), (LINE, dict(size=12, mode="linear")),
    (LINE, dict(scale_factor=0.7, mode="linear", align_corners=True)), (LINE, dict(size=4, mode="area")), (LINE, dict(size=7)),
    (IMAGE, dict(size=(14, 10))), (IMAGE, dict(size=(3, 9), mode="nearest-exact")), (IMAGE, dict(scale_factor=(2.0, 1.7), mode="bilinear")),
    (IMAGE, dict(size=(1, 1), mode="bilinear", align_corners=True)), (IMAGE, dict(size=(15, 3), mode="bilinear", align_corners=True)),
    (IMAGE, dict(scale_factor=1.7, mode="bilinear", recompute_scale_factor=True)), (IMAGE, dict(size=(70, 66), mode="bilinear")),
    (IMAGE, dict(size=(9, 4), mode="bicubic")), (IMAGE, dict(scale_factor=2.5, mode="bicubic", align_corners=True)),
    (IMAGE, dict(size=(3, 4), mode="area")), (IMAGE, dict(size=(3, 8), mode="bilinear", antialias=True)),
    (IMAGE, dict(size=(4, 2), mode="bicubic", antialias=True)), (IMAGE, dict(size=(3, 2), mode="bilinear", antialias=True, align_corners=True)),
    (IMAGE, dict(size=(3, 9), mode="lanczos", antialias=True)), ((1, 2, 20, 33), dict(scale_factor=0.3, mode="lanczos", antialias=True)),
    ((2, 3, 20, 33), dict(size=(31, 40), mode="bilinear")), ((2, 3, 20, 33), dict(size=(9, 21), mode="area")),     # rows of whole vectors
    (VOLUME, dict(size=(8, 3, 6))), (VOLUME, dict(scale_factor=2, mode="trilinear")),
    (VOLUME, dict(size=(3, 4, 9), mode="trilinear", align_corners=True)),
    (VOLUME, dict(size=(2, 3, 4), mode="area")), (VOLUME, dict(size=(2, 3, 4), mode="nearest-exact")),
]


@pytest.mark.parametrize("shape, kwargs", INTERPOLATIONS, ids=str)
def test_interpolate(shape, kwargs):
    compare("interpolate", [floats(*shape)], **kwargs)


@pytest.mark.parametrize("dtype, tol", [("float16", 2e-3), ("bfloat16", 2e-2), ("float64", 1e-12)])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "nearest"])
def test_interpolate_dtypes(dtype, tol, mode):
    x = floats(2, 3, 6, 5)
    got = F.interpolate(clnn.tensor(x).to(getattr(clnn, dtype)), (9, 11), mode=mode)
    assert got.dtype is getattr(clnn, dtype)
    close(got, TF.interpolate(torch.tensor(x).to(getattr(torch, dtype)), (9, 11), mode=mode), tol)


@pytest.mark.parametrize("shape, kwargs", [
    ((2, 3, 20, 31), dict(scale_factor=2)), ((2, 3, 20, 31), dict(size=(33, 70), mode="bilinear")), ((2, 8, 20, 31), dict(size=(17, 33), mode="bicubic")),
    ((3, 40, 50), dict(scale_factor=2.5, mode="linear")), ((1, 2, 15, 6, 17), dict(scale_factor=2)),
    ((1, 2, 5, 16, 17), dict(size=(17, 11, 33), mode="trilinear"))], ids=str)
def test_interpolate_as_a_gpu_that_is_full_does(monkeypatch, shape, kwargs):
    from clnn._tensor import repeat
    device = clnn.get_default_device().physical
    for owner, name, value in ((repeat, "on", False), (device, "is_cpu", False), (device, "loops", False), (device, "compute_units", 1)):
        monkeypatch.setattr(owner, name, value)
    a = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    want = torch.nn.functional.interpolate(torch.tensor(a), **kwargs).numpy()
    np.testing.assert_allclose(clnn.nn.functional.interpolate(clnn.tensor(a), **kwargs).numpy(), want, rtol=1e-5, atol=1e-5)


def test_interpolate_uint8():
    x = np.random.default_rng(0).integers(0, 256, (1, 3, 6, 5)).astype(np.uint8)
    close(F.interpolate(clnn.tensor(x), (13, 7)), TF.interpolate(torch.tensor(x), (13, 7)), 0)
    for mode in ("bilinear", "bicubic", "lanczos"):             # to the last bit: weights and the image between both axes are rounded
        for size in ((13, 7), (5, 7), (4, x.shape[3])):
            for rest in (dict(antialias=True), dict(align_corners=True), {})[:1 if mode == "lanczos" else 3]:
                close(F.interpolate(clnn.tensor(x), size, mode=mode, **rest), TF.interpolate(torch.tensor(x), size, mode=mode, **rest), 0)


def test_interpolate_of_views_and_twice_differentiable():
    x = floats(2, 3, 6, 5)
    close(F.interpolate(clnn.tensor(x).transpose(2, 3)[:, 1:], scale_factor=2, mode="bilinear"),
          TF.interpolate(torch.tensor(x).transpose(2, 3)[:, 1:], scale_factor=2, mode="bilinear"))
    leaf = clnn.tensor(x[:1, :1].astype(np.float64), requires_grad=True)
    assert clnn.autograd.gradgradcheck(lambda t: F.interpolate(t, (4, 7), mode="bicubic") ** 2, (leaf,))


def test_gradient_is_the_same_every_time():
    x = clnn.tensor(floats(2, 3, 9, 9), requires_grad=True)
    grads = []
    for _ in range(2):
        x.grad = None
        F.interpolate(x, (31, 5), mode="bilinear").sin().sum().backward()
        grads.append(x.grad.numpy())
    assert (grads[0] == grads[1]).all()


@pytest.mark.parametrize("kwargs, exc, text", [
    ({}, ValueError, "either size or scale_factor"), (dict(size=3, scale_factor=2), ValueError, "only one of"),
    (dict(size=3, align_corners=True), ValueError, "align_corners option"), (dict(size=(3, 3, 3)), ValueError, "same number of spatial dimensions"),
    (dict(size=3, mode="linear"), NotImplementedError, "linear mode needs 3D"), (dict(size=3, mode="cubic"), NotImplementedError, "got cubic"),
    (dict(size=3, recompute_scale_factor=True), ValueError, "recompute_scale_factor"), (dict(size=3, antialias=True), ValueError, "Anti-alias"),
    (dict(size=3, mode="lanczos"), ValueError, "antialias"), (dict(size=3, mode="lanczos", antialias=True, align_corners=True), ValueError, "align_corners"),
    (dict(size=0), RuntimeError, "greater than 0")], ids=str)
def test_interpolate_errors(kwargs, exc, text):
    x = floats(1, 1, 4, 4)
    with pytest.raises(exc, match=text):
        F.interpolate(clnn.tensor(x), **kwargs)
    with pytest.raises(exc):
        TF.interpolate(torch.tensor(x), **kwargs)


def test_old_names():
    x = floats(1, 2, 3, 4)
    for name in ("upsample", "upsample_nearest", "upsample_bilinear"):
        compare(name, [x], scale_factor=2)


@pytest.mark.share(2)
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("align", [False, True])
def test_grid_sample(mode, padding, align):
    grid = np.random.default_rng(3).uniform(-1.8, 1.8, (2, 5, 4, 2)).astype(np.float32)
    compare("grid_sample", [floats(2, 19, 6, 7), grid], mode=mode, padding_mode=padding, align_corners=align, tol=5e-5)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_grid_sample_of_volumes(mode, padding):
    grid = np.random.default_rng(3).uniform(-1.5, 1.5, (2, 3, 2, 4, 3)).astype(np.float32)
    compare("grid_sample", [floats(2, 2, 4, 5, 3), grid], mode=mode, padding_mode=padding, align_corners=False, tol=5e-5)


def test_grid_sample_far_outside():
    grid = np.array([[[[np.nan, 0], [np.inf, 0], [1e30, -1e30], [-1, -1]]]], np.float32)
    x = floats(1, 1, 3, 3)
    got = F.grid_sample(clnn.tensor(x), clnn.tensor(grid), align_corners=True)
    assert got.flatten().tolist() == [0.0, 0.0, 0.0, x[0, 0, 0, 0].item()]
    close(F.grid_sample(clnn.tensor(x), clnn.tensor(grid), padding_mode="border", align_corners=True),
          TF.grid_sample(torch.tensor(x), torch.tensor(grid), padding_mode="border", align_corners=True))


@pytest.mark.parametrize("size", [(2, 1, 4, 5), (2, 1, 1, 3), (2, 1, 3, 4, 2)], ids=str)
@pytest.mark.parametrize("align", [False, True])
def test_affine_grid(size, align):
    rank = len(size) - 2
    compare("affine_grid", [floats(2, rank, rank + 1)], size, align_corners=align)


@pytest.mark.parametrize("kwargs", [dict(kernel_size=2), dict(kernel_size=(3, 2), dilation=(1, 2), padding=(2, 1), stride=(2, 3)),
                                    dict(kernel_size=3, padding=1)], ids=str)
def test_unfold_and_fold(kwargs):
    x = floats(2, 3, 8, 9)
    compare("unfold", [x], **kwargs)
    compare("unfold", [x[0]], **kwargs)
    columns = TF.unfold(torch.tensor(x), **kwargs)
    compare("fold", [floats(*columns.shape)], (8, 9), **kwargs)
    compare("fold", [floats(*columns.shape)[0]], (8, 9), **kwargs)


def test_shuffles():
    for name, shape, factor in (("pixel_shuffle", (2, 12, 3, 5), 2), ("pixel_unshuffle", (2, 3, 4, 6), 2), ("channel_shuffle", (2, 6, 3, 4), 3),
                                ("pixel_shuffle", (9, 2, 2), 3)):
        compare(name, [floats(*shape)], factor)
    x = floats(2, 6, 3, 4)
    close(F.native_channel_shuffle(clnn.tensor(x), 2), TF.native_channel_shuffle(torch.tensor(x), 2), 0)
    with pytest.raises(RuntimeError, match="divisible"):
        F.fold(clnn.zeros(1, 5, 4), (3, 3), 2)
