"""Functions of operators that try what most calls come to before a frame of Python's is made (native.front): functions in every other respect."""
import copy
import inspect
import pickle
import subprocess
import sys
import types

import pytest

import clnn
import clnn.nn.functional as F
from clnn.core import native

needs = pytest.mark.skipif(native.built is None, reason="the C forms were not built")


_CALLS = """x.sum(); x + x; 2 * x; 1 - x; x.exp(); x.t(); x.T; x.add_(1.0); x.zero_(); x.copy_(y); x.clamp(0, 1); x ** 2; clnn.cat((x, x)); clnn.zeros(3, 4)
    F.softmax(x, dim=1); x.max(1); x.contiguous(); F.linear(x, w); F.linear(x, w, b); F.linear(z, w, b); F.embedding(i, w)"""
_FRAMES = """
import sys, clnn
F = clnn.nn.functional
place = dict(clnn=clnn, F=F, x=clnn.ones(3, 4), y=clnn.ones(3, 4) * 2, z=clnn.ones(2, 3, 4), i=clnn.tensor([1, 0]))
place.update(w=clnn.nn.Parameter(clnn.ones(5, 4)), b=clnn.nn.Parameter(clnn.ones(5)))

def frames(code):
    names = []
    sys.setprofile(lambda frame, event, arg: names.append(frame.f_code.co_name) if event == "call" else None)
    exec(code, place)
    sys.setprofile(None)
    return set(names) & {"call", "inplace", "forward", "linear", "body"}
for text in ";".join(sys.argv[1].splitlines()).split(";"):
    code = compile(text.strip(), "a call", "exec")
    for _ in range(60):
        found = frames(code)
        if not found:
            break
        clnn.synchronize()
    if found:
        print(text.strip(), found)
"""


@needs
def test_no_frame_of_python_is_made():
    """Not after some calls, which learn, and once the kernels are built; in a process that has no tensors that stand for others."""
    done = subprocess.run([sys.executable, "-c", _FRAMES, _CALLS], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and done.stdout == "", done.stdout + done.stderr


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
