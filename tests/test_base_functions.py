"""The base of all kernels: how elements of 16 bits and bools are stored, and its functions, in units in the last place."""
import itertools
import math

import ml_dtypes
import numpy as np
import pyopencl as cl
import pytest
from bare import DEVICES, elementwise, kernel, upload

from clnn.core import dtype as dt
from clnn.runtime.launch import launch


@pytest.fixture(params=DEVICES, ids=lambda d: d.flavour)
def dev(request):
    return request.param


def same(a, b):
    return np.array_equal(a, b, equal_nan=True)


def test_half_and_bfloat16_loads_are_exact(dev):
    bits = np.arange(65536).astype(np.uint16)
    assert same(elementwise(dev, "load_float16(x, i)", bits, "ushort"), bits.view(np.float16).astype(np.float32))
    assert same(elementwise(dev, "load_bfloat16(x, i)", bits, "ushort"), bits.view(ml_dtypes.bfloat16).astype(np.float32))


def some_floats():
    rng = np.random.default_rng(1)
    halves = np.arange(65536).astype(np.uint16).view(np.float16).astype(np.float32)
    ties = (halves[:-1] + halves[1:]) / 2
    edge = np.array([65504, 65519.9, 65520, 65536, 1e6, 2 ** -24, 2 ** -25, 2 ** -25 * 1.01, 6e-8, np.inf, -np.inf, np.nan, 0.0, -0.0,
                     3.39e38, 3.4e38, 1.18e-38, 1e-40, 1e-45], np.float32)
    wild = rng.integers(0, 2 ** 32, 50000, dtype=np.uint32).view(np.float32)
    return np.concatenate([halves, ties, np.nextafter(ties, np.float32(np.inf)), edge, -edge, wild])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("row", [dt.float16, dt.bfloat16], ids=str)
def test_16_bit_stores_round_to_nearest_even(dev, row):
    x = some_floats()
    want = x.astype(row.np)
    got = elementwise(dev, "", x, out_type="ushort", out=np.uint16, body=f"{row.store}(y, i, x[i]);")
    assert same(got.view(row.np).astype(np.float32), want.astype(np.float32))
    numbers = ~np.isnan(x)
    assert np.array_equal(got[numbers], want.view(np.uint16)[numbers])  # signed zeros, too
    assert same(elementwise(dev, f"{row.round_trip}(x[i])", x), want.astype(np.float32))


def test_signs_in_a_choice(dev):
    """Compilers for llvmpipe mixed up the bits of a choice that a built-in copysign follows."""
    x = np.array([1, -3, 7, 0.2, -0.0], np.float32)
    got = elementwise(dev, "x[i] == 7 ? x[i] : clnn_copysign(fabs(x[i]) * 3.0f, x[i])", x)
    assert got.tobytes() == np.where(x == 7, x, 3 * x).tobytes()


def test_bool_storage_is_0_or_1(dev):
    x = np.array([0, 1, 2, 255, 0], np.uint8)
    assert elementwise(dev, "load_bool(x, i)", x, "uchar", "int", np.int32).tolist() == [0, 1, 1, 1, 0]
    f = np.array([0.0, -0.0, 0.5, np.nan, -3], np.float32)
    assert elementwise(dev, "", f, out_type="uchar", out=np.uint8, body="store_bool(y, i, x[i]);").tolist() == [0, 0, 1, 1, 1]


@pytest.mark.parametrize("row", [dt.int8, dt.int16, dt.uint8, dt.uint16], ids=str)
def test_constants_in_place_of_narrow_integers(dev, row):
    """Mesa's optimiser gave such constants the width of the integers, floats and all."""
    x = np.array([0, 1, 2, 100, 7, 3]).astype(row.np) * (-1 if row.is_signed else 1)
    takes = [f"{row.load}(x, i)"] + [f"wrap_{row.name}((int)x[i])"] * row.is_signed
    for take, (ctype, out) in itertools.product(takes, (("float", np.float32), ("int", np.int32))):
        got = elementwise(dev, "", x, row.c, ctype, out, body=f"{ctype} v; if (i % 2) v = {take}; else v = 1; y[i] = v;")
        assert got.tolist() == [1 if i % 2 == 0 else int(v) for i, v in enumerate(x)]
        walked = elementwise(dev, "", x, row.c, ctype, out, body=f"{ctype} v = 1; for (int q = 0; q < i % 3; q++) v = {take}; y[i] = v;")
        assert walked.tolist() == [1 if i % 3 == 0 else int(v) for i, v in enumerate(x)]


ULP = {"exp": (np.exp, 2), "expm1": (np.expm1, 3), "log": (np.log, 3), "log1p": (np.log1p, 3), "log2": (np.log2, 3), "log10": (np.log10, 3),
       "tanh": (np.tanh, 5), "sin": (np.sin, 4), "cos": (np.cos, 4), "erf": (np.vectorize(math.erf), 16), "exp2": (np.exp2, 3),
       "erfc": (np.vectorize(math.erfc), 16), "asin": (np.arcsin, 4), "acos": (np.arccos, 4), "atan": (np.arctan, 5), "asinh": (np.arcsinh, 4),
       "acosh": (np.arccosh, 4), "atanh": (np.arctanh, 5), "sinh": (np.sinh, 4), "cosh": (np.cosh, 4), "tan": (np.tan, 5)}
ULP2 = {"atan2": (np.arctan2, 6), "hypot": (np.hypot, 4)}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("wide", [False, True], ids=["float", "float16"])
@pytest.mark.parametrize("name", ULP)
def test_math_ulp(dev, name, wide):
    rng = np.random.default_rng(2)
    special = [0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1e-10, 1, -1, 88.7, 89, -104, -150, 3.4e38, -3.4e38, 1e10]
    x = np.concatenate([special, rng.standard_normal(4000) * 3, rng.standard_normal(2000) * 1e-3, 1 + rng.standard_normal(2000) * 1e-3,
                        rng.integers(0, 2 ** 32, 8367, dtype=np.uint32).view(np.float32)]).astype(np.float32)
    x = x[:len(x) // 16 * 16]
    if wide:
        got = elementwise(dev, "", x, body=f"if (i < n / 16) vstore16(clnn_{name}(vload16(i, x)), i, y);")
    else:
        got = elementwise(dev, f"clnn_{name}(x[i])", x)
    exact = ULP[name][0](x.astype(np.float64))
    want = exact.astype(np.float32)
    assert np.array_equal(np.isnan(got), np.isnan(want)) and np.array_equal(got[np.isinf(want)], want[np.isinf(want)])
    fine, config, has = np.isfinite(want), dev.cl_device.single_fp_config, cl.device_fp_config
    if not config & has.DENORM:         # what is below the normal numbers may be zero
        below = np.abs(want) < np.finfo(np.float32).tiny
        assert np.all(np.abs(got[below]) <= np.finfo(np.float32).tiny)
        fine &= ~below
    ulp = np.abs(got[fine] - exact[fine]) / np.spacing(np.abs(want[fine])).astype(np.float64)
    limit = 64 if name == "erfc" and not config & has.FMA else ULP[name][1]         # it needs what a square loses, which an fma that rounds twice does not give
    assert ulp.max() <= limit, (x[fine][ulp.argmax()], ulp.max())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ULP2)
def test_math_of_two_ulp(dev, name):
    rng = np.random.default_rng(4)
    special = np.array([0, -0.0, 1, -1, 0.5, np.inf, -np.inf, np.nan, 1e-45, 3e38, -3e38, 1e-30, 1e30], np.float32)
    a, b = (g.ravel() for g in np.meshgrid(special, special))
    x = np.concatenate([a, rng.standard_normal(5000) * 3, np.exp(rng.standard_normal(3000) * 20)]).astype(np.float32)
    y = np.concatenate([b, rng.standard_normal(5000) * 3, -np.exp(rng.standard_normal(3000) * 20)]).astype(np.float32)
    k = kernel(dev, f"PTR_IN(float,a); PTR_IN(float,b); PTR_OUT(float,y); if (i < n) y[i] = clnn_{name}(a[i], b[i]);",
               params="IN(float,a), IN(float,b), OUT(float,y), const long n")
    out = dev.alloc(x.nbytes)
    launch(dev, k, (len(x),), None, upload(dev, x), 0, upload(dev, y), 0, out, 0, len(x))
    got = dev.read(out, x.nbytes).view(np.float32)
    exact = ULP2[name][0](x.astype(np.float64), y.astype(np.float64))
    want = exact.astype(np.float32)
    assert np.array_equal(np.isnan(got), np.isnan(want)) and np.array_equal(got[np.isinf(want)], want[np.isinf(want)])
    fine = np.isfinite(want)
    ulp = np.abs(got[fine] - exact[fine]) / np.spacing(np.maximum(np.abs(want[fine]), np.float32(1e-38))).astype(np.float64)
    assert ulp.max() <= ULP2[name][1], (x[fine][ulp.argmax()], y[fine][ulp.argmax()], ulp.max())


@pytest.mark.filterwarnings("ignore")
def test_pow(dev):
    rng = np.random.default_rng(3)
    special = np.array([0, -0.0, 1, -1, 2, -2, 0.5, -3, np.inf, -np.inf, np.nan, 1e-45, 3e38, 1e30], np.float32)
    a, b = (g.ravel() for g in np.meshgrid(special, special))
    x = np.concatenate([a, np.exp(rng.standard_normal(5000) * 4)]).astype(np.float32)
    y = np.concatenate([b, rng.standard_normal(5000) * 5]).astype(np.float32)
    k = kernel(dev, "PTR_IN(float,a); PTR_IN(float,b); PTR_OUT(float,y); if (i < n) y[i] = clnn_pow(a[i], b[i]);",
               params="IN(float,a), IN(float,b), OUT(float,y), const long n")
    out = dev.alloc(x.nbytes)
    launch(dev, k, (len(x),), None, upload(dev, x), 0, upload(dev, y), 0, out, 0, len(x))
    got = dev.read(out, x.nbytes).view(np.float32)
    exact = np.power(x.astype(np.float64), y.astype(np.float64))
    want = exact.astype(np.float32)
    assert np.array_equal(np.isnan(got), np.isnan(want)) and np.array_equal(got[np.isinf(want)], want[np.isinf(want)])
    fine = np.isfinite(want)
    assert (np.abs(got[fine] - exact[fine]) / np.spacing(np.abs(want[fine]))).max() <= 16
