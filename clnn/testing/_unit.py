"""What programs' tests take from ``torch.testing._internal``: a TestCase that compares tensors, and decorators that make one test of many values."""
from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
import random
import sys
import unittest

import numpy as np

import clnn
from clnn.autograd import gradcheck, gradgradcheck  # noqa: F401  (names that tests import from here)

from .compare import compare
from .create import make_tensor  # noqa: F401

SEED = 1234
TEST_NUMPY = True
TEST_CUDA = TEST_MULTIGPU = TEST_SCIPY = TEST_WITH_ROCM = TEST_WITH_SLOW = TEST_WITH_TORCHDYNAMO = TEST_MPS = TEST_XPU = IS_JETSON = IS_FBCODE = False
IS_WINDOWS, IS_MACOS, IS_LINUX = sys.platform == "win32", sys.platform == "darwin", sys.platform == "linux"


def set_rng_seed(seed=SEED):
    """Seed clnn's, NumPy's and Python's generators."""
    clnn.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)


@contextlib.contextmanager
def freeze_rng_state():
    """A block after which clnn's generator is what it was."""
    state = clnn.get_rng_state()
    try:
        yield
    finally:
        clnn.set_rng_state(state)


def _has_values(x):
    """Whether tensors, arrays or numbers are to be compared."""
    if isinstance(x, dict):
        return any(map(_has_values, x.values()))
    return any(map(_has_values, x)) if isinstance(x, (list, tuple)) else isinstance(x, (clnn.Tensor, np.ndarray, np.generic, float, complex))


def _plain(x, like):
    """``x`` as a tensor where the other side is one."""
    if isinstance(like, clnn.Tensor) and isinstance(x, (int, float, complex, list, np.ndarray, np.generic)):
        return clnn.as_tensor(x, dtype=None if isinstance(x, (np.ndarray, np.generic)) else like.dtype, device=like.device).expand(
            like.shape if np.ndim(x) == 0 else np.shape(x))
    return x


class TestCase(unittest.TestCase):
    """``unittest.TestCase`` whose ``assertEqual`` takes tensors, arrays and containers of them; each test begins with the same seed."""

    __test__ = False                # pytest collects subclasses, which set it below
    exact_dtype, precision, rel_tol = True, 0, 0

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        cls.__test__ = True

    def setUp(self):
        set_rng_seed()

    def assertEqual(self, x, y, msg=None, *, atol=None, rtol=None, equal_nan=True, exact_dtype=True, exact_device=False, exact_layout=False,
                    exact_stride=False, exact_is_coalesced=False):
        """Equal numbers within the tolerances of ``assert_close``; anything else by ``==``. Sets and texts compare as ``unittest`` does."""
        if not (_has_values(x) or _has_values(y)):
            return super().assertEqual(x, y, msg)
        if atol is None and self.precision:
            atol, rtol = self.precision, rtol or self.rel_tol
        x, y = _plain(x, y), _plain(y, x)
        compare(x, y, dict(atol=atol, rtol=0 if atol is not None and rtol is None else rtol, equal_nan=equal_nan, check_dtype=exact_dtype and self.exact_dtype,
                           check_device=exact_device, check_layout=exact_layout, check_stride=exact_stride, allow_subclasses=True, check_numbers=False), msg)

    def assertNotEqual(self, x, y, msg=None, *, atol=None, rtol=None, **kwargs):
        """The contrary of :meth:`assertEqual`."""
        with self.assertRaises(AssertionError, msg=msg):
            self.assertEqual(x, y, atol=atol, rtol=rtol, **kwargs)

    def assertObjectIn(self, obj, iterable):
        """``obj`` itself is among the elements."""
        if not any(obj is one for one in iterable):
            raise AssertionError("object not found in iterable")

    def assertExpectedInline(self, actual, expect, skip=0):
        """Texts are equal."""
        super().assertEqual(str(actual), expect)


def run_tests(argv=None):
    """Run the tests of the program."""
    unittest.main(argv=argv)


class subtest:
    """Values of one test of ``parametrize``, with a name."""

    def __init__(self, arg_values, name=None, decorators=()):
        self.arg_values, self.name, self.decorators = arg_values, name, list(decorators)


class _Cases:
    """Several tests from one; two stacked decorators make their product."""

    def __init__(self, fn, cases):
        self.fn, self.cases = fn, cases


def _named(names, value, name_fn, i):
    decorators = value.decorators if isinstance(value, subtest) else []
    name, value = (value.name, value.arg_values) if isinstance(value, subtest) else (None, value)
    values = (value,) if len(names) == 1 else tuple(value)
    text = name or (name_fn(*values) if name_fn else "_".join(_text(n, v, i) for n, v in zip(names, values)))
    return text, dict(zip(names, values)), decorators


def _text(name, value, i):
    if isinstance(value, clnn.dtype):
        return str(value).rpartition(".")[2]
    return f"{name}_{value}".replace(".", "_") if isinstance(value, (int, float, str)) else f"{name}{i}"


def parametrize(arg_str, arg_values, name_fn=None):
    """One test for each of the values; :func:`instantiate_parametrized_tests` makes them."""
    names = [n.strip() for n in arg_str.split(",")]

    def decorate(fn):
        new = [_named(names, value, name_fn, i) for i, value in enumerate(arg_values)]
        if not isinstance(fn, _Cases):
            return _Cases(fn, new)
        return _Cases(fn.fn, [(f"{b}_{a}", {**p, **q}, d + e) for (b, q, e), (a, p, d) in itertools.product(new, fn.cases)])
    return decorate


def _test(fn, values, decorators):
    @functools.wraps(fn)
    def method(self, *args):
        return fn(self, *args, **values)
    method.__signature__ = inspect.Signature([inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)])   # pytest takes others for fixtures
    for decorator in decorators:
        method = decorator(method)
    return method


def instantiate_parametrized_tests(generic_cls):
    """Put the tests of :func:`parametrize` into the class, by names that tell their values."""
    for name, cases in list(vars(generic_cls).items()):
        if isinstance(cases, _Cases):
            delattr(generic_cls, name)
            for text, values, decorators in cases.cases:
                setattr(generic_cls, f"{name}_{text}", _test(cases.fn, values, decorators))
    return generic_cls


def instantiate_device_type_tests(generic_test_class, scope, except_for=None, only_for=None, **kwargs):
    """Put a class of the tests with ``device="cpu"`` into ``scope``, one test for each dtype of :func:`dtypes`."""
    name = generic_test_class.__name__ + "CPU"
    scope.pop(generic_test_class.__name__, None)
    made = type(name, (generic_test_class,), {"__module__": generic_test_class.__module__, "device_type": "cpu"})
    for key, fn in list(vars(generic_test_class).items()):
        if not key.startswith("test"):
            continue
        fn, cases = (fn.fn, fn.cases) if isinstance(fn, _Cases) else (fn, [("", {}, [])])
        setattr(made, key, None)
        for (text, values, decorators), kind in itertools.product(cases, getattr(fn, "dtypes", (None,))):
            given = {**values, **({"dtype": kind} if kind is not None else {})}
            parts = [key, text, "cpu", str(kind).rpartition(".")[2] if kind is not None else ""]
            setattr(made, "_".join(p for p in parts if p), _test(functools.partial(_with_device, fn), given, decorators))
    scope[name] = made


def _with_device(fn, self, **values):
    return fn(self, "cpu", **values)


def dtypes(*args):
    """The dtypes of a test that :func:`instantiate_device_type_tests` makes."""
    def decorate(fn):
        fn.dtypes = args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args
        return fn
    return decorate


def _same(fn=None, *args, **kwargs):
    return fn if callable(fn) else _same


def _never(fn):
    return unittest.skip("needs a CUDA device of PyTorch")(fn)


onlyCPU = onlyNativeDeviceTypes = slowTest = skipIfTorchDynamo = skipIfNoLapack = skipIfRocm = skipIfMps = skipMeta = wrapDeterministicFlagAPITest = _same
skipCUDAIfNoMagma = skipCPUIfNoLapack = skipCUDAIf = skipCPUIf = toleranceOverride = dtypesIfCUDA = dtypesIfCPU = deviceCountAtLeast = gradcheck_wrapper = _same
onlyCUDA = onlyOn = _never


def _kinds(*names):
    def give():
        return tuple(getattr(clnn, n) for n in names)
    return give


floating_types, integral_types = _kinds("float32", "float64"), _kinds("uint8", "int8", "int16", "int32", "int64")
floating_types_and_half = _kinds("float32", "float64", "float16")
all_types, complex_types = _kinds(*"float32 float64 uint8 int8 int16 int32 int64".split()), _kinds("complex64", "complex128")
