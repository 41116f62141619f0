"""Every operator of the table: the derived checks of ``clnn.testing.checks``, one test per operator and property.

``pytest tests/test_ops.py -k "softmax and gradient"`` runs one of them. What an operator lacks is a skip with its reason.
"""
import functools

import numpy as np
import pytest
from ahead import Ahead
from share import takes

import clnn
from clnn._tensor import declare
from clnn._tensor.tensor import Tensor
from clnn.graph.op import REGISTRY
from clnn.testing import cases, checks, domains
from clnn.testing.batching import BY_VALUE

OPERATORS = cases.operators()
NUMBER = {op: number for number, op in enumerate(OPERATORS)}
# What these look at knows nothing of the driver; Intel's runtime takes the gradients of all operators.
SHARE = dict(gradient=4, double_gradient=6, layouts=4, fusion=4, complex_numbers=4, scalars_and_empty=4, undeclared_dtypes=3, forms=6, repeats=6, batched=6, traced=4,
             without_values=2)
pytestmark = [pytest.mark.filterwarnings("ignore::UserWarning"), pytest.mark.filterwarnings("ignore::RuntimeWarning")]


def applies(op, name):
    """Leave out at collection what can never apply, so that the report shows real skips only."""
    if not takes(NUMBER[op], SHARE.get(name, 1), both=name == "gradient"):
        return False
    if name == "special_values":
        return op.kind == "elementwise"
    if name == "errors":
        return bool(op.errors)
    if name == "undeclared_dtypes":
        return bool(op.dtypes) and len(op.dtypes) < 10
    if name == "forms":
        return not op.name.startswith("_")
    if name in ("batched", "traced") and (op.name.startswith("_") or op.name in BY_VALUE | domains.RANDOM):
        return False
    if name in ("gradient", "double_gradient", "repeats"):
        if op.name == "_tetragamma":            # the last derivative there is: its gradient is refused by name
            return False
        return op.name.strip("_") not in domains.RANDOM and (op.kind == "composite" or bool(op.rules))
    if cases.declared(op) is None and op.kind != "elementwise":
        return False
    return True


PAIRS = [pytest.param(op, check, id=f"{op.name}-{name}") for op in OPERATORS for name, check in checks.CHECKS.items() if applies(op, name)]


def start(op, check):
    return check.start(op) if hasattr(check, "start") else functools.partial(check, op)


AHEAD = Ahead(start, cases=24)


@pytest.mark.parametrize("op, check", PAIRS)
def test_operator(op, check, request):
    try:
        AHEAD.finish(request)
    except checks.NotApplicable as reason:
        pytest.skip(str(reason))


# -- what is not covered, by name ---------------------------------------------------------------------------------------------------

# Without samples, each for a reason; all are tested by name in other files.
NO_SAMPLES = {
    # drawn at random
    "bernoulli", "binomial", "gumbel_softmax", "multinomial", "pca_lowrank", "poisson", "svd_lowrank", "fractional_max_pool2d", "fractional_max_pool2d_with_indices",
    "fractional_max_pool3d", "fractional_max_pool3d_with_indices",
    # factors that are unique only up to signs or order
    "linalg_eig", "linalg_eigvals", "linalg_eigh", "linalg_svd", "svd", "qr", "linalg_lstsq", "lobpcg",
    # take the result of another operator, or many parameters at once
    "max_unpool1d", "max_unpool2d", "max_unpool3d", "multi_head_attention_forward",
    # parts of other operators: their gradients, copies, the region of a view; another name of interpolate
    "convolution", "conv_input_grad", "conv_weight_grad", "copy", "embed_strided", "upsample_bilinear",
}
# With samples, but neither a NumPy nor a PyTorch counterpart under this name: tested for consistency only.
NO_REFERENCE = {"linalg_solve_triangular"}


def public(ops):
    return [op for op in ops if not op.name.startswith("_")]


def test_every_public_operator_has_samples():
    missing = {op.name for op in public(OPERATORS) if op.kind != "elementwise" and cases.declared(op) is None}
    assert missing <= NO_SAMPLES, f"give these entries samples=: {sorted(missing - NO_SAMPLES)}"


def test_every_public_operator_has_a_reference():
    pytest.importorskip("torch")
    missing = {op.name for op in public(OPERATORS) if op.numpy is None and cases.torch_function(op) is None}
    assert missing <= NO_REFERENCE | NO_SAMPLES, f"give these entries numpy=: {sorted(missing - NO_REFERENCE - NO_SAMPLES)}"


def test_elementwise_names_in_the_domain_table_exist():
    known = set(REGISTRY) | {name.strip("_") for name in REGISTRY}
    planned = {"polygamma", "entr", "ndtri", "zeta", "mvlgamma", "igamma", "igammac", "log_ndtr", "xlog1py", "gcd", "trunc_divide", "clamp_both"}
    assert not set(domains.DOMAINS) - known - planned


# -- one entry is enough ------------------------------------------------------------------------------------------------------------

@pytest.fixture
def toy():
    """An elementwise operator declared in one call, as a contributor would, and taken out again."""
    fn = declare.elementwise("toy_smooth_step", "input, other", "input * input / (1.0f + other * other)", result="float",
                             numpy=lambda x, y: x * x / (1 + y * y),
                             vjp=dict(input=lambda g, input, other: g * (2 * input / (1 + other * other)),
                                      other=lambda g, input, other: g * (-2 * other * input * input / (1 + other * other) ** 2)))
    yield fn
    del REGISTRY["toy_smooth_step"]
    del Tensor.toy_smooth_step, Tensor.toy_smooth_step_


@pytest.mark.parametrize("name", list(checks.CHECKS))
def test_a_toy_operator_passes_every_check(toy, name):
    try:
        checks.CHECKS[name](toy.op)
    except checks.NotApplicable:
        assert name in ("errors", "undeclared_dtypes")


def has_fp64():
    return clnn.get_default_device().physical.has_fp64


@pytest.mark.parametrize("name, change", [
    ("forward", dict(expr="input + 1.001f")), ("gradient", dict(vjp=dict(input=lambda g: g * (1.01 if has_fp64() else 0)))),
    ("double_gradient", dict(expr="input * input", numpy=np.square, vjp=dict(input=lambda g, input: g * 2 * input.detach())))])
def test_a_wrong_operator_is_found(name, change):
    """The checks do fail: a wrong value, a wrong gradient, a gradient that cannot be differentiated."""
    entry = dict(expr="input + 1.0f", numpy=lambda x: x + 1, vjp=dict(input=lambda g: g)) | change
    fn = declare.elementwise("toy_wrong", "input", entry.pop("expr"), result="float", **entry)
    try:
        with pytest.raises(AssertionError):
            checks.CHECKS[name](fn.op)
    finally:
        del REGISTRY["toy_wrong"]
        del Tensor.toy_wrong, Tensor.toy_wrong_


# -- the comparing functions themselves ---------------------------------------------------------------------------------------------

def test_assert_close():
    close, a = clnn.testing.assert_close, clnn.tensor([1.0, 2.0, float("nan")])
    close(a, a.clone(), equal_nan=True)
    close([a[:2], {"k": 1}], [a[:2] + 1e-7, {"k": 1}])
    with pytest.raises(TypeError, match="No comparison pair"):
        close(clnn.tensor(3), 3, check_dtype=False)
    for wrong, text in ((a, "not close"), (clnn.tensor([1.0, 2.0]), "shape"), (clnn.tensor([1, 2, 3]), "dtype")):
        with pytest.raises(AssertionError, match=text):
            close(a, wrong)
    with pytest.raises(AssertionError, match=r"Mismatched elements: 1 / 3 \(33.3%\)"):
        close(clnn.tensor([1, 2, 3]), clnn.tensor([1, 2, 4]))
    with pytest.raises(AssertionError, match="item \\[1\\]"):
        close([a[:1], a[:2]], [a[:1], a[:2] + 1])
    with pytest.raises(ValueError, match="rtol"):
        close(a, a, rtol=1e-3)


def test_make_tensor():
    make = clnn.testing.make_tensor
    t = make((4, 5), dtype=clnn.float32, low=0, high=1, requires_grad=True, noncontiguous=True)
    assert t.shape == (4, 5) and not t.is_contiguous() and t.requires_grad and 0 <= t.min().item() and t.max().item() < 1
    assert bool((make(100, dtype=clnn.int8, low=-1, high=2, exclude_zero=True) != 0).all())
    assert make(3, dtype=clnn.bool).dtype is clnn.bool and make(dtype=clnn.float64 if cases.usable_rows()[-1] is clnn.float64 else clnn.float32).shape == ()


def test_two_drivers_share_all_cases(monkeypatch):
    import types

    def taken(flavour, **how):
        monkeypatch.setattr(cases, "resolve", lambda _: types.SimpleNamespace(flavour=flavour))
        return {n for n in range(12) if takes(n, 4, **how)}
    monkeypatch.delenv("CLNN_TESTS", raising=False)
    pocl, intel, everything = taken("pocl"), taken("intel-cpu"), set(range(12))
    assert pocl == {0, 4, 8} and intel == everything - pocl and taken("intel-cpu", both=True) == taken("nvidia") == everything
    monkeypatch.setenv("CLNN_TESTS", "all")
    assert taken("pocl") == taken("intel-cpu") == everything
