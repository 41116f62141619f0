"""The project's own functions of doubles, in their scalar and vector forms, and quotients of any size: against numbers of more digits."""
import math

import numpy as np
import pytest

import clnn
from clnn.runtime import templates
from clnn.runtime.device import default_device
from clnn.runtime.launch import launch

WIDE = np.longdouble
if np.finfo(WIDE).nmant < 63:
    pytest.skip("nothing to compare doubles with here", allow_module_level=True)


def doubles(function):
    """A function of the C library as a reference for arrays."""
    return np.vectorize(lambda x: function(x) if abs(x) < math.inf or x == x and function in (math.erf, math.erfc) else math.nan)


# name: (reference, ulp allowed; those of OpenCL C, but closer for what has own code)
ULP = {"exp": (np.exp, 2), "expm1": (np.expm1, 3), "exp2": (np.exp2, 2), "log": (np.log, 2), "log1p": (np.log1p, 2), "log2": (np.log2, 2), "log10": (np.log10, 2),
       "sin": (doubles(math.sin), 2), "cos": (doubles(math.cos), 2), "tan": (doubles(math.tan), 4),
       "asin": (np.arcsin, 3), "acos": (np.arccos, 3), "atan": (np.arctan, 3), "sinh": (np.sinh, 4),
       "cosh": (np.cosh, 4), "tanh": (np.tanh, 4), "asinh": (np.arcsinh, 3), "acosh": (np.arccosh, 3), "atanh": (np.arctanh, 4),
       "erf": (doubles(math.erf), 8), "erfc": (doubles(math.erfc), 8)}
ULP2 = {"pow": (np.power, 3), "atan2": (np.arctan2, 4), "hypot": (np.hypot, 3)}


@pytest.fixture
def dev():
    device = default_device()
    if not device.has_fp64:
        pytest.skip("no doubles here")
    if device.flavour == "rusticl":
        pytest.skip("Mesa has doubles on demand only, with functions that are less accurate than OpenCL demands; llvmpipe's fma of them rounds twice")
    return device


def both_forms(dev, name, *operands):
    """clnn_<name> of doubles, which its form for eight at a time has to repeat to the bit where the project's own code is at work."""
    n, count = len(operands[0]), len(operands)
    places = "".join(f"PTR_IN(double, x{k}); " for k in range(count)) + "PTR_OUT(double, y); PTR_OUT(double, z); "
    one, eight = (", ".join(f"{read}x{k}{end}" for k in range(count)) for read, end in (("", "[i]"), ("vload8(i, ", ")")))
    body = f"if (i < n) y[i] = clnn_{name}({one}); if (i < n / 8) vstore8(clnn_{name}({eight}), i, z);"
    parameters = ", ".join(f"IN(double, x{k})" for k in range(count)) + ", OUT(double, y), OUT(double, z), const long n"
    source = templates.preamble(dev, True, body) + f"__kernel void k({parameters}) {{ const long i = get_global_id(0); {places}{body} }}"
    arguments = []
    for x in operands:
        arguments += [dev.alloc(x.nbytes), 0]
        dev.write(arguments[-2], x)
    y, z = dev.alloc(8 * n), dev.alloc(8 * n)
    launch(dev, dev.kernel_from_source(source, "k"), (n,), None, *arguments, y, 0, z, 0, n)
    scalar, vector = (dev.read(b, 8 * n).view(np.float64) for b in (y, z))
    if dev.flavour == "pocl":
        np.testing.assert_array_equal(scalar, vector)
    return scalar, vector


def agree(got, exact, limit, at):
    """Within so many ulp; NaN and infinities in the same places, and zeros with the same sign."""
    want = np.asarray(exact).astype(np.float64)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_array_equal(got[np.isinf(want)], want[np.isinf(want)])
    zero = (want == 0) & (got == 0)
    np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(want[zero]))
    fine = np.isfinite(want)
    ulp = np.abs(got[fine].astype(WIDE) - exact[fine]) / np.spacing(np.abs(want[fine]))
    assert ulp.max() <= limit, ([a[fine][ulp.argmax()] for a in at], ulp.max())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ULP)
def test_functions_of_doubles(dev, name):
    r = np.random.default_rng(1)
    special = [0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -5e-324, 1e-310, 1e-300, 1e-10, 1, -1, 0.5, 1000, 709.7, 709.79, 710.4, 710.5, -745.1, -746, -708.5, 1e300, 1e15,
               36.7, 27, 26.5, 1e-17, -1e-8, 2.0 ** 30, 2.0 ** 30 + 1, 1024, -1074, -1075.5, 6, 2 ** 0.5, 0.5 ** 0.5]
    x = np.concatenate([special, r.standard_normal(2000) * 3, r.standard_normal(1000) * 1e-3, 1 + r.standard_normal(1000) * 1e-3, r.uniform(-1, 1, 2000),
                        np.exp(r.uniform(-700, 700, 1000)) * r.choice([-1, 1], 1000), r.uniform(-60, 60, 1000), np.pi / 2 * r.integers(-10 ** 6, 10 ** 6, 500)])
    x = x[:len(x) // 8 * 8]
    reference, limit = ULP[name]
    by_doubles = name in ("sin", "cos", "tan", "erf", "erfc")       # rounded to the last bit, unlike what the processor has of more bits
    exact = np.asarray(reference(x if by_doubles else x.astype(WIDE))).astype(WIDE)
    for got in both_forms(dev, name, x):
        agree(got, exact, limit if dev.flavour == "pocl" else max(limit, 5), [x])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ULP2)
def test_functions_of_two_doubles(dev, name):
    r = np.random.default_rng(2)
    special = np.array([0, -0.0, 1, -1, 2, -2, 0.5, -3, 3, np.inf, -np.inf, np.nan, 5e-324, 1e308, -1e308, 1e300, 2.5, -0.5, 1e-310, 2.0 ** 53, 2.0 ** 53 - 1])
    a, b = (g.ravel() for g in np.meshgrid(special, special))
    x = np.concatenate([a, np.exp(r.standard_normal(3000) * 4), r.uniform(0.5, 2, 2000), -r.integers(1, 30, 1000).astype(float), np.exp(r.uniform(-300, 300, 1000))])
    y = np.concatenate([b, r.standard_normal(3000) * 5, r.uniform(-700, 700, 2000), r.integers(-60, 60, 1000).astype(float), r.uniform(-1, 1, 1000)])
    n = len(x) // 8 * 8
    x, y = x[:n], y[:n]
    reference, limit = ULP2[name]
    exact = reference(x.astype(WIDE), y.astype(WIDE))
    for got in both_forms(dev, name, x, y):
        agree(got, exact, limit if dev.flavour == "pocl" else 16, [x, y])


def test_whole_powers_are_exact(dev):
    x = 10.0 ** np.arange(-10, 20)
    y = clnn.tensor(x)
    np.testing.assert_array_equal(y.log10().numpy(), np.arange(-10, 20))
    np.testing.assert_array_equal(clnn.tensor(2.0 ** np.arange(-1074, 1024)).log2().numpy(), np.arange(-1074, 1024))
    np.testing.assert_array_equal(clnn.tensor(np.arange(-1074.0, 1024)).exp2().numpy(), 2.0 ** np.arange(-1074, 1024))
    np.testing.assert_array_equal((clnn.tensor(np.arange(1.0, 200)) ** 5.0).numpy(), np.arange(1.0, 200) ** 5)


def test_powers_of_floats():
    """Nearly to the last bit, in scalar code and in vectors."""
    r = np.random.default_rng(3)
    x = np.exp(r.standard_normal(8000) * 4).astype(np.float32)
    y = (r.standard_normal(8000) * 5).astype(np.float32)
    x[::50] = -np.round(x[::50])
    y[::25] = np.round(y[::25])
    with np.errstate(all="ignore"):
        exact = np.power(x.astype(np.float64), y.astype(np.float64))
        want = exact.astype(np.float32)
        fine = np.isfinite(want)
        for n in (8000, 100):
            got = (clnn.tensor(x[:n]) ** clnn.tensor(y[:n])).numpy()
            np.testing.assert_array_equal(np.isnan(got), np.isnan(want[:n]))
            ulp = np.abs(got - exact[:n])[fine[:n]] / np.spacing(np.abs(want[:n]))[fine[:n]]
            assert ulp.max() <= (0.6 if default_device().flavour == "pocl" else 16)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_quotients_of_any_size(kind, request):
    dev = default_device() if kind is np.float32 else request.getfixturevalue("dev")
    r, limits = np.random.default_rng(4), np.finfo(kind)
    span = 37 if kind is np.float32 else 300
    special = np.array([0, -0.0, 1, -1, 0.1, 3, -7.5, np.inf, -np.inf, np.nan, limits.tiny, limits.max, -limits.max, 1e10, 2 ** 24, 2.0 ** 53], kind)
    a, b = (g.ravel() for g in np.meshgrid(special, special))
    more = [limits.smallest_subnormal, limits.smallest_subnormal * 7, limits.tiny * 1.5] if dev.flavour != "rusticl" else [1, 1, 1]

    def any_size():
        return 10.0 ** r.uniform(-span, span, 4000) * r.choice([-1, 1], 4000)
    x = np.concatenate([a, r.standard_normal(3000) * 50, any_size(), r.integers(-100, 100, 3000), [7, 5e5, 3]]).astype(kind)
    y = np.concatenate([b, r.standard_normal(3000), any_size(), r.integers(-10, 10, 3000), more]).astype(kind)
    with np.errstate(all="ignore"):
        want, floor = np.fmod(x, y), np.remainder(x, y)
    for n in (len(x), len(a)):
        got = clnn.fmod(clnn.tensor(x[:n]), clnn.tensor(y[:n])).numpy()
        np.testing.assert_array_equal(got, want[:n])
        zero = got == 0
        np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(want[:n][zero]))
        np.testing.assert_array_equal(clnn.remainder(clnn.tensor(x[:n]), clnn.tensor(y[:n])).numpy(), floor[:n])


def test_special_functions_of_doubles():
    torch = pytest.importorskip("torch")
    r = np.random.default_rng(5)
    special = [0, -0.0, 1, 2, -1, -2.5, -1e-5, 0.5, 5e-324, 1e-300, 1e300, 1e10, np.inf, np.nan]
    x = np.concatenate([special, r.uniform(-10, 30, 2000), np.exp(r.uniform(-50, 50, 200)), 2 + r.standard_normal(200) * 1e-3])
    unit = np.concatenate([r.uniform(-1, 1, 1000), [0, -0.0, 1, -1, 2, np.nan, 1e-300], 1 - np.exp(r.uniform(-34, -1, 500))])
    for name, a, within in (("lgamma", x, 1e-14), ("digamma", x, 1e-12), ("erfinv", unit, 1e-15), ("special.erfcx", x[(x > -20) & (x < 1e200)], 1e-14)):
        mine, theirs = clnn, torch
        for part in name.split("."):
            mine, theirs = getattr(mine, part), getattr(theirs, part)
        got, want = mine(clnn.tensor(a)).numpy(), theirs(torch.tensor(a)).numpy()
        np.testing.assert_allclose(got, want, within, 0 if name in ("erfinv", "special.erfcx") else within, err_msg=name)


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
def test_parts_of_numbers(name):
    torch = pytest.importorskip("torch")
    r = np.random.default_rng(6)
    a = np.concatenate([[0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 1e-320, 3, -0.25, 1, -1, 3e38], r.standard_normal(500) * np.exp(r.standard_normal(500) * 5)])
    x = torch.tensor(a).to(getattr(torch, name))
    mantissa, exponent = torch.frexp(x)
    got = clnn.frexp(clnn.tensor(x.double().numpy()).to(getattr(clnn, name)))
    np.testing.assert_array_equal(got.mantissa.double().numpy(), mantissa.double().numpy())
    np.testing.assert_array_equal(got.exponent.numpy(), exponent.numpy())
    with pytest.raises(RuntimeError, match="floating-point"):
        clnn.frexp(clnn.tensor([1, 2]))


def test_bessel_functions_of_doubles(dev):
    """By their integral over a half-turn, which the trapezoidal rule gives to the last digits, and by Wronskians."""
    x = np.concatenate([np.linspace(0.05, 9, 300), np.linspace(7.9, 8.1, 20), np.linspace(9, 60, 200)])
    angle = np.pi * (np.arange(200) + 0.5) / 200
    y = clnn.tensor(x)
    j0, j1, y0, y1 = (getattr(clnn.special, "bessel_" + name)(y).numpy() for name in ("j0", "j1", "y0", "y1"))
    for order, got in enumerate((j0, j1)):
        want = np.cos(order * angle - x[:, None] * np.sin(angle)).mean(1)
        np.testing.assert_allclose(got, want, 0, 3e-15)
    np.testing.assert_allclose((j1 * y0 - j0 * y1) * x, 2 / np.pi, 5e-14)
    k = [getattr(clnn.special, f"scaled_modified_bessel_k{n}")(y).numpy() for n in (0, 1)]
    i = [getattr(clnn.special, f"i{n}e")(y).numpy() for n in (0, 1)]
    np.testing.assert_allclose((i[0] * k[1] + i[1] * k[0]) * x, 1, 1e-14)
    end = clnn.tensor([0.0, -1.0, np.inf, np.nan], dtype=clnn.float64)
    np.testing.assert_array_equal(clnn.special.bessel_y0(end)[:2].numpy(), [-np.inf, np.nan])
    np.testing.assert_array_equal(clnn.special.modified_bessel_k1(end).numpy(), [np.inf, np.nan, 0, np.nan])


def test_results_that_programs_overwrite():
    """Functions whose gradient PyTorch computes from the operand: the result may be written in place."""
    torch = pytest.importorskip("torch")
    calls = [lambda x, e=e: x.pow_(e) for e in (-1, -0.5, 0.5, 1, 2, 3, 0.3)] + [lambda x: x.erfinv(), lambda x: x.sinc()]
    for call in calls:
        found = []
        for lib in (clnn, torch):
            w = lib.tensor([0.1, 0.4, 0.6], requires_grad=True)
            y = call(w * 1)
            y.masked_fill_(y > 2, 0.0)
            g, = lib.autograd.grad((y * y).sum(), w, create_graph=True)
            found.append((g.detach().numpy(), lib.autograd.grad(g.sum(), w)[0].numpy()))
        np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-4)
        np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-3, atol=1e-5)


def test_quotients_of_large_integers():
    """64 bits are divided by way of doubles on some drivers: ends of the range, neighbours of multiples, divisors of all lengths."""
    ends = np.array([0, 1, -1, 3, -7, 2**31, 1 - 2**32, 2**53 + 1, -2**53 - 1, 2**62 + 1, 2**63 - 1025, 2**63 - 1, 1 - 2**63, -2**63])
    rng = np.random.default_rng(0)
    b = rng.integers(-2**63, 2**63 - 1, 3000) >> rng.integers(0, 63, 3000)
    b[b == 0] = 3
    multiples = rng.integers(-(2**62 // np.abs(b)) - 1, 2**62 // np.abs(b) + 1) * b // 2 * 2 + rng.integers(-1, 2, 3000)
    a, b = np.concatenate([np.repeat(ends, 13), multiples]), np.concatenate([np.tile(ends[1:], 14), b])
    b[(a == -2**63) & (b == -1)] = 1                              # this quotient is no integer
    down = [(int(n) // int(d), int(n) % int(d)) for n, d in zip(a, b)]
    x, y = clnn.tensor(a), clnn.tensor(b)
    assert (x // y).tolist() == [q for q, _ in down] and (x % y).tolist() == [r for _, r in down]
    toward = [q + (q < 0 and r != 0) for q, r in down]
    assert clnn.div(x, y, rounding_mode="trunc").tolist() == toward
    assert clnn.fmod(x, y).tolist() == [int(n) - q * int(d) for n, d, q in zip(a, b, toward)]


def test_a_remainder_beside_its_mirror():
    """A kernel that Intel's compiler once failed on: a remainder that is stored and goes into a minimum of two expressions."""
    h, c = np.random.default_rng(0).random((2, 1, 4, 20)).astype(np.float32), np.array([[[0.0]], [[8.0]], [[4.0]]], np.float32)
    k = (clnn.tensor(h) + clnn.tensor(c)) % 12
    got, want = clnn.minimum(k - 3.0, 9.0 - k).numpy(), (h + c) % 12
    np.testing.assert_allclose(got, np.minimum(want - 3, 9 - want), atol=1e-5)


def test_numbers_keep_their_digits(dev):
    """Python numbers that kernels of doubles take as arguments: epsilons, scales, smoothing."""
    f, rng = clnn.nn.functional, np.random.default_rng(0)
    x = rng.normal(size=(3, 4, 6))
    t = clnn.tensor(x)

    def normed(a, axes):
        return (a - a.mean(axes, keepdims=True)) / np.sqrt(a.var(axes, keepdims=True) + 0.6)
    scores = 0.3 * x @ x.transpose(0, 2, 1)
    p = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    lp = (x[0] - np.log(np.exp(x[0]).sum(-1, keepdims=True)))
    pairs = [(f.layer_norm(t, (6,), eps=0.6), normed(x, -1)), (f.batch_norm(t, None, None, training=True, eps=0.6), normed(x, (0, 2))),
             (f.group_norm(t, 4, eps=0.6), normed(x, -1)), (f.scaled_dot_product_attention(t, t, t, scale=0.3), p @ x),
             (f.cross_entropy(t[0], clnn.tensor([0, 1, 2, 3]), label_smoothing=0.1), -0.9 * lp[range(4), range(4)].mean() - 0.1 * lp.mean()),
             (clnn.angle(-t.abs()), np.full_like(x, math.pi))]
    for got, want in pairs:
        np.testing.assert_allclose(got.numpy(), want, 1e-13, 1e-14)


def test_gradients_at_infinities_and_nan():
    """Those of PyTorch's vectors, which is what all but the last elements of its tensors get."""
    torch = pytest.importorskip("torch")
    for dtype in ("float32", "float64"):
        for name in ("hardtanh", "relu6", "softshrink", "hardshrink", "hardswish", "mish", "elu", "selu", "celu", "i1", "i1e", "angle", "logits"):
            both = []
            for lib in (clnn, torch):
                x = lib.tensor([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 6.0, 3.0, -3.0], dtype=getattr(lib, dtype)).repeat_interleave(64)
                x.requires_grad_()
                if name == "logits":
                    y = lib.nn.functional.binary_cross_entropy_with_logits(x, x.detach().flip(0), reduction="none")
                else:
                    y = getattr(next(place for place in (lib.nn.functional, lib.special, lib) if hasattr(place, name)), name)(x)
                y.sum().backward()
                both.append((y.detach()[::64].numpy(), x.grad[::64].numpy()))
            for got, want in zip(*both):
                np.testing.assert_allclose(got, want, 1e-5, 1e-6, err_msg=name)
