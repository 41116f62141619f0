"""The printed form of tensors is PyTorch's, character by character."""
import numpy as np
import pytest

import clnn

torch = pytest.importorskip("torch")
R = np.random.default_rng(0)
F4 = np.float32

ARRAYS = {
    "whole": np.arange(6, dtype=F4).reshape(2, 3),
    "fixed": R.standard_normal((2, 3)).astype(F4),
    "small": np.array([1e-5, 1.0], F4),
    "large": np.array([1e9, 2e9], F4),
    "ratio": np.array([1.0, 10000.0], F4),
    "ratio-edge": np.array([1.0, 1000.0], F4),
    "zeros": np.zeros((2, 2), F4),
    "nan-inf": np.array([np.nan, np.inf, -np.inf, 1.0], F4),
    "nan-fixed": np.array([np.nan, np.inf, -np.inf, 1.5], F4),
    "only-nan": np.array([np.nan, np.inf], F4),
    "nan-scientific": np.array([np.nan, 1e-6, -np.inf, 0], F4),
    "scalar": np.array(1.5, F4), "scalar-whole": np.array(3.0, F4), "scalar-int": np.array(-7), "scalar-bool": np.array(True),
    "negative": np.array([[-1.25, 100.0], [3, 4]], F4),
    "int": np.array([[1, -200], [3, 4]]), "int32": np.array([1, 2], np.int32), "uint8": np.array([1, 255], np.uint8),
    "bool": np.array([True, False]), "float64": R.standard_normal(3), "float16": R.standard_normal(3).astype(np.float16),
    "empty": np.zeros((0,), F4), "empty-2d": np.zeros((0, 3), F4), "empty-int": np.zeros((0,), np.int64), "empty-bool": np.zeros((2, 0), bool),
    "wrapped": R.standard_normal(40).astype(F4), "wrapped-int": np.arange(100) * 37, "3d": R.standard_normal((2, 3, 4)).astype(F4),
    "4d": np.arange(48, dtype=F4).reshape(2, 2, 3, 4), "summary-1d": np.arange(1001), "summary-2d": R.standard_normal((50, 30)).astype(F4),
    "summary-narrow": R.standard_normal((400, 4)).astype(F4), "summary-3d": R.standard_normal((20, 9, 7)).astype(F4),
    "summary-one": R.standard_normal((1, 2000)).astype(F4), "exactly-1000": np.arange(1000), "wide": R.standard_normal((3, 20)).astype(F4) * 100,
    "long-suffix": R.standard_normal((2, 6)),
}


def both(array):
    return clnn.from_numpy(array), torch.from_numpy(np.ascontiguousarray(array).reshape(array.shape))


def plain(t):
    import re
    return re.sub(r",\s+device='[^']*'", "", repr(t))


@pytest.mark.parametrize("name", ARRAYS)
def test_values(name):
    c, t = both(ARRAYS[name])
    assert repr(c) == repr(t).replace("torch.", "clnn.")


@pytest.mark.parametrize("options", [dict(precision=2), dict(sci_mode=True), dict(sci_mode=False), dict(edgeitems=1, threshold=5),
                                     dict(linewidth=40), dict(profile="short"), dict(threshold=0, edgeitems=2)],
                         ids=str)
def test_options(options):
    try:
        clnn.set_printoptions(**options)
        torch.set_printoptions(**options)
        for array in ARRAYS.values():
            c, t = both(array)
            assert repr(c) == repr(t).replace("torch.", "clnn.")
    finally:
        clnn.set_printoptions(profile="default")
        torch.set_printoptions(profile="default")


def test_history():
    for lib, out in ((clnn, []), (torch, [])):
        x = lib.tensor([1.0, 2.0], requires_grad=True)
        out += [x, x + 1, x.detach(), (x * 2).sum(), lib.tensor(np.linspace(0, 1, 30), requires_grad=True) * 2]
        got = [repr(t).replace("torch.", "clnn.") for t in out]
        want = got if lib is clnn else want             # noqa: F821
    assert got == want


def test_strided_summary():
    a = R.standard_normal((60, 40)).astype(F4)
    c, t = both(a)
    assert repr(c.t()) == repr(t.t())
    assert repr(c.t().expand(3, 40, 60)) == repr(t.t().expand(3, 40, 60))


def test_meta_and_str():
    assert repr(clnn.empty(2, 3, device="meta")) == "tensor(..., device='meta', size=(2, 3))"
    assert repr(clnn.empty(2, device="meta", dtype=clnn.float64)) == "tensor(..., device='meta', size=(2,), dtype=clnn.float64)"
    assert str(clnn.tensor(2)) == "tensor(2)" and f"{clnn.tensor(2.5):.2f}" == "2.50" and f"{clnn.tensor([2.5])}" == "tensor([2.5000])"
    assert str(clnn.zeros(2, 3).shape) == "clnn.Size([2, 3])"


def test_bfloat16_and_options_text():
    assert repr(clnn.tensor([1.5, 2.25], dtype=clnn.bfloat16)) == "tensor([1.5000, 2.2500], dtype=clnn.bfloat16)"
    with pytest.raises(ValueError, match="profile is one of"):
        clnn.set_printoptions(profile="loud")
    with clnn.printoptions(precision=1):
        assert repr(clnn.tensor([1.25])) == "tensor([1.2])" and clnn.get_printoptions()["precision"] == 1
    assert repr(clnn.tensor([1.25])) == "tensor([1.2500])"
