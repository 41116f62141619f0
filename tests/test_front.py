"""Functions of operators that try what most calls come to before a frame of Python's is made (native.front): functions in every other respect."""
import copy
import inspect
import pickle
import sys
import types

import pytest

import clnn
import clnn.nn.functional as F
from clnn.core import native

needs = pytest.mark.skipif(native.built is None, reason="the C forms were not built")


def _frames(call):
    """The Python functions that a call runs."""
    names = []
    sys.setprofile(lambda frame, event, arg: names.append(frame.f_code.co_name) if event == "call" else None)
    try:
        call()
    finally:
        sys.setprofile(None)
    return set(names[1:])


@needs
@pytest.mark.parametrize("call", [
    lambda x: x.sum(), lambda x: x + x, lambda x: 2 * x, lambda x: x.exp(), lambda x: x.t(), lambda x: x.add_(1.0), lambda x: x.zero_(), lambda x: x.clamp(0, 1),
    lambda x: clnn.cat((x, x)), lambda x: clnn.zeros(3, 4), lambda x: F.softmax(x, dim=1), lambda x: x.max(1)], ids=range(12))
def test_no_frame_of_python_is_made(call):
    """Not after some calls, which learn, and once the kernels are built."""
    x = clnn.ones(3, 4)
    for _ in range(40):
        if not _frames(lambda: call(x)) & {"call", "inplace"}:
            return
        clnn.synchronize()
    assert False, _frames(lambda: call(x))


@pytest.mark.parametrize("fn", [clnn.sum, clnn.add, clnn.exp, F.relu, F.softmax, clnn.zeros, clnn.Tensor.sum, clnn.Tensor.add_,
                                clnn.Tensor.__add__], ids=lambda f: f.__name__)
def test_they_are_functions(fn):
    assert isinstance(fn, types.FunctionType) and inspect.isfunction(fn) and type(fn).__name__ == "function"
    assert str(inspect.signature(fn)).startswith("(") and repr(fn).startswith("<function ")
    assert fn.__name__ in ("__add__", "zeros") or "clnn" in fn.__doc__ and "__doc__" not in vars(fn)
    assert copy.deepcopy(fn) is fn and copy.copy(fn) is fn and pickle.loads(pickle.dumps(fn)) is fn
    assert fn.__get__(1).__self__ == 1


def test_other_code_is_another_function():
    fn, code = clnn.Tensor.sum, clnn.Tensor.sum.__code__
    x = clnn.ones(2)
    free = dict(zip(code.co_freevars, fn.__closure__))
    made = {}
    exec(f"def make({', '.join(free)}):\n def other(*args, **kwargs):\n  {', '.join(free) or '0'}\n  return 'other'\n return other", made)
    try:
        fn.__code__ = made["make"](*free).__code__
        assert x.sum() == "other"
    finally:
        fn.__code__ = code
    assert x.sum().item() == 2


def test_failures_are_pytorchs():
    x = clnn.ones(2, 3)
    for _ in range(3):
        with pytest.raises(TypeError):
            x.sum("a")
        with pytest.raises(IndexError):
            x.sum(5)
        with pytest.raises(RuntimeError, match="size"):
            x.add_(clnn.ones(4))
    assert x.sum().item() == 6


def test_precision_of_autocast():
    a, b = clnn.ones(2, 2), clnn.ones(2, 2)
    for _ in range(4):
        assert clnn.mm(a, b).dtype is clnn.float32
    with clnn.autocast("cpu", dtype=clnn.bfloat16):
        assert clnn.mm(a, b).dtype is clnn.bfloat16
    assert clnn.mm(a, b).dtype is clnn.float32
