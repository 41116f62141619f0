"""Depthwise convolutions with a plane per lane (``conv/planes``) and their gradients, against NumPy: every kind of stride, tile and remainder."""
import numpy as np
import pytest
from test_gemm_conv import PAD, convolve, dev, get, put  # noqa: F401

from clnn.core import dtype as dt
from clnn.ops import _conv, _conv_planes, _conv_weight

PLANES = {              # as many planes at a time as a vector has lanes
    "small images": ((5, 24, 7, 7), (24, 1, 3, 3), (1, 1), (1, 1), (1, 1), 24),
    "fewer than lanes": ((1, 13, 6, 9), (13, 1, 5, 3), (1, 1), (2, 1), (1, 1), 13),
    "stride 3": ((2, 16, 16, 17), (16, 1, 3, 3), (3, 3), (0, 0), (1, 1), 16),
    "stride over kernel": ((2, 16, 11, 12), (16, 1, 2, 2), (3, 4), (1, 0), (1, 1), 16),
    "stride 7, bands": ((1, 33, 40, 75), (33, 1, 7, 7), (7, 7), (3, 3), (1, 1), 33),
    "strides and dilations": ((2, 16, 19, 17), (16, 1, 3, 4), (4, 2), (3, 2), (2, 3), 16),
    "dilations that share a factor": ((2, 16, 15, 17), (16, 1, 3, 3), (2, 2), (2, 4), (2, 2), 16),
    "multiplier, stride 2": ((3, 12, 9, 8), (24, 1, 3, 3), (2, 2), (1, 1), (1, 1), 12),
    "paddings apart, many taps": ((2, 16, 5, 4), (16, 1, 9, 7), (1, 1), ((7, 2), (0, 9)), (1, 1), 16),
    "long rows": ((1, 16, 1500), (16, 1, 4), (3,), (2,), (1,), 16),
    "3d": ((2, 16, 5, 6, 7), (16, 1, 3, 2, 3), (2, 1, 2), (1, 0, 1), (1, 2, 1), 16),
    "3d in tiles": ((1, 16, 9, 12, 13), (16, 1, 3, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1), 16),
    "one pixel": ((2, 17, 1, 1), (17, 1, 3, 3), (1, 1), (1, 1), (1, 1), 17),
}


@pytest.fixture
def planned(monkeypatch):
    """Plans of this test alone, which choose planes whether or not rows in lanes would be faster."""
    monkeypatch.setattr(_conv, "_plans", {})
    for kind in (_conv_planes.Planes, _conv_planes.PlanesWeight):
        monkeypatch.setattr(kind, "beats", staticmethod(lambda *args: True))
    return _conv._plans


def are_planes(plans):
    return {type(plan) for plan in plans.values()} == {_conv_planes.Planes, _conv_planes.PlanesWeight}


@pytest.mark.parametrize("case", PLANES)
def test_planes(dev, case, planned):  # noqa: F811
    convolve(dev, dt.float32, *PLANES[case], bias=True, epilogue="relu" if case == "stride 3" else "")
    assert are_planes(planned) or not dev.is_cpu


@pytest.mark.share(2)
@pytest.mark.parametrize("T", [dt.float64, dt.float16, dt.bfloat16], ids=str)
def test_planes_of_other_dtypes(dev, T, planned):  # noqa: F811
    if T.needs_fp64 and not dev.has_fp64:
        pytest.skip("no fp64")
    for case in ("small images", "stride 3", "fewer than lanes"):
        convolve(dev, T, *PLANES[case], bias=True, epilogue="relu")
    assert are_planes(planned) or not dev.is_cpu


@pytest.mark.parametrize("registers", [256, 2048])
def test_planes_of_other_vectors(dev, registers, planned, monkeypatch):  # noqa: F811
    monkeypatch.setattr(dev, "registers", registers)
    convolve(dev, dt.float32, *PLANES["small images"], bias=True)


def test_planes_are_chosen(dev, monkeypatch):  # noqa: F811
    """Short rows and large strides of many channels, not a long row alone."""
    if not dev.is_cpu:
        pytest.skip("kernels for CPUs")
    monkeypatch.setattr(_conv, "_plans", {})
    convolve(dev, dt.float32, *PLANES["small images"])
    convolve(dev, dt.float32, *PLANES["stride 3"])
    assert are_planes(_conv._plans)
    _conv._plans.clear()
    convolve(dev, dt.float32, (2, 16, 50), (16, 1, 3), (1,), (1,), (1,), 16)
    assert not {type(plan) for plan in _conv._plans.values()} & {_conv_planes.Planes, _conv_planes.PlanesWeight}


def test_planes_repeat_to_the_bit(dev):  # noqa: F811
    """Shares of images of few channels are added in one order."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((9, 16, 12, 12)).astype("f"), rng.standard_normal((9, 16, 4, 4)).astype("f")
    X, G, found = put(dev, x), put(dev, y), []
    for _ in range(2):
        out = put(dev, np.full((16, 1, 3, 3), np.nan, "f"))
        _conv_weight.conv_backward_weight(dev, dt.float32, X, PAD, G, PAD, out, PAD, x.shape, (16, 1, 3, 3), (3, 3), (0, 0), (1, 1), 16)
        found.append(get(dev, out, (16, 1, 3, 3), dt.float32))
    assert np.array_equal(found[0].view("i"), found[1].view("i"))
