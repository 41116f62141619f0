"""Convolutions on CPUs whose lanes are output channels (``conv/direct``), at sizes of every kind, chosen by hand."""
import numpy as np
import pytest
from test_gemm_conv import convolve, dev  # noqa: F401

import clnn
from clnn.core import dtype as dt
from clnn.ops import _conv, _conv_direct
from clnn.runtime import params

CASES = {
    "padded": ((3, 9, 9, 11), (20, 9, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    "nothing outside": ((2, 17, 12, 10), (33, 17, 3, 2), (1, 1), (0, 0), (1, 1), 1),
    "few channels between zeros": ((2, 3, 30, 29), (16, 3, 7, 7), (2, 2), (3, 3), (1, 1), 1),
    "patches": ((4, 18, 12, 16), (34, 18, 4, 4), (4, 4), (0, 0), (1, 1), 1),
    "phases in pairs": ((2, 24, 14, 16), (40, 24, 4, 4), (2, 2), (1, 1), (1, 1), 1),
    "phases in pairs, short rows": ((5, 17, 6, 6), (18, 17, 4, 4), (2, 2), (1, 1), (1, 1), 1),
    "phases that differ": ((2, 34, 9, 21), (40, 34, 3, 3), (2, 2), (1, 1), (1, 1), 1),
    "phases of a stride of 3": ((2, 18, 12, 12), (17, 18, 3, 3), (3, 3), (0, 0), (1, 1), 1),
    "phases that no tap meets": ((2, 20, 13, 13), (16, 20, 2, 2), (3, 3), (1, 1), (1, 1), 1),
    "one row of phases": ((2, 16, 9, 8), (16, 16, 3, 2), (1, 2), (1, 0), (1, 1), 1),
    "groups": ((2, 36, 8, 7), (66, 12, 3, 3), (1, 1), (2, 2), (2, 2), 3),
    "taps that meet nothing": ((3, 18, 4, 4), (20, 18, 3, 3), (1, 1), (4, 4), (4, 4), 1),
    "uneven padding": ((2, 16, 8, 9), (25, 16, 2, 4), (1, 1), ((0, 1), (1, 2)), (1, 1), 1),
    "1d": ((2, 19, 70), (70, 19, 5), (3,), (2,), (2,), 1),
    "3d": ((2, 18, 5, 6, 7), (100, 18, 3, 2, 3), (1, 2, 1), (1, 1, 0), (1, 1, 1), 1),
    "single taps": ((4, 40, 7, 7), (24, 40, 1, 1), (2, 2), (0, 0), (1, 1), 1),
    "images side by side": ((9, 48, 5, 6), (50, 48, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    "images side by side, strided": ((8, 40, 6, 7), (42, 40, 4, 4), (2, 2), (2, 2), (1, 1), 1),
    "images side by side, groups of depths": ((11, 56, 3, 4, 3), (48, 28, 3, 3, 3), (1, 1, 1), (1, 1, 2), (1, 1, 1), 2),
    "many channels": ((1, 200, 6, 6), (130, 200, 3, 3), (1, 1), (1, 1), (1, 1), 1),
}


@pytest.fixture
def direct(monkeypatch):
    """Every convolution that may goes by the kernel under test; says how many were planned."""
    planned, init = [], _conv_direct.Direct.__init__

    def count(self, *args, **kwargs):
        planned.append(init(self, *args, **kwargs))
    monkeypatch.setattr(_conv_direct, "suits_forward", lambda device, T, s, e: _conv_direct.Direct.possible(device, T, s.Og, e))
    monkeypatch.setattr(_conv_direct, "suits_backward_input", lambda device, T, s, e: _conv_direct.Direct.possible(device, T, s.Cg, e))
    monkeypatch.setattr(_conv.Winograd, "suits", staticmethod(lambda *args: False))
    monkeypatch.setattr(_conv_direct.Direct, "__init__", count)
    params.changed()
    yield planned
    params.changed()


@pytest.mark.share(2)
@pytest.mark.parametrize("case", CASES)
def test_sizes(dev, direct, case):  # noqa: F811
    convolve(dev, dt.float32, *CASES[case], bias=True, epilogue="relu" if "phases" in case else "")
    assert len(direct) >= 1 or not dev.is_cpu


def test_steps_in_blocks(dev, direct, monkeypatch):  # noqa: F811
    """Weights that the second cache does not hold: sums are kept from block to block."""
    monkeypatch.setattr(_conv_direct, "_PANEL", 1 << 14)
    for case in ("many channels", "images side by side", "images side by side, strided", "phases in pairs", "phases that differ", "groups", "taps that meet nothing"):
        convolve(dev, dt.float32, *CASES[case], bias=True, epilogue="relu")
    assert len(direct) == 13 or not dev.is_cpu


@pytest.mark.parametrize("registers", [512, 2048], ids=["AVX2", "AVX-512"])
@pytest.mark.parametrize("T", [dt.float32, dt.float64], ids=str)
def test_registers_and_dtypes(dev, direct, monkeypatch, registers, T):  # noqa: F811
    if not dev.is_cpu or T.needs_fp64 and not dev.has_fp64:
        pytest.skip("of processors, with that dtype")
    monkeypatch.setattr(dev, "registers", registers)
    monkeypatch.setattr(dev, "_kernels", {})
    monkeypatch.setattr(dev, "_programs", {})
    for case in ("padded", "phases in pairs", "nothing outside", "images side by side, strided"):
        convolve(dev, T, *CASES[case], bias=True)
    assert len(direct) >= 7


def test_infinities_stay_where_taps_meet_them(dev, direct):  # noqa: F811
    """An element that a tap does not meet is read as zero even where an infinite or undefined one lies in its place."""
    x = np.zeros((1, 16, 6, 6), "f")
    x[0, :, 0, 0], x[0, :, 5, 5] = np.inf, np.nan
    y = clnn.nn.functional.conv2d(clnn.tensor(x), clnn.ones(16, 16, 3, 3), padding=1).numpy()
    assert np.isinf(y[:, :, :2, :2]).all() and np.isnan(y[:, :, 4:, 4:]).all() and not y[:, :, 2:4, :].any() and not y[:, :, :2, 2:].any()


def test_images_lie_side_by_side_where_taps_differ(dev, direct):  # noqa: F811
    """The rule that the sizes above rest on."""
    if not dev.is_cpu:
        pytest.skip("of processors")
    kernels = []
    for case in ("images side by side", "images side by side, strided", "images side by side, groups of depths", "padded"):
        x, w, *geometry = CASES[case]
        kernels.append(_conv_direct.forward(dev, dt.float32, _conv_direct.Shape(x, w, *geometry), False, "").images)
    assert kernels == [True, True, True, False]


def test_few_rows_of_a_grid(dev):  # noqa: F811
    """A gradient with more pixels along a dimension than its grid has places there: what lies past them was left unwritten."""
    convolve(dev, dt.float32, (2, 8, 7, 8), (100, 8, 5, 5), (1, 1), (1, 1), (2, 2), 1)
