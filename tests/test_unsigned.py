"""uint16, uint32 and uint64: stored, made, converted, compared, moved, sorted and saved as in PyTorch, which computes little else with them."""
import copy
import io

import numpy as np
import pytest
from scenarios import torch

import clnn

NAMES = ("uint16", "uint32", "uint64")
BIG = [1, 2, 2**15 + 1, 2**16 - 1, 2**31 + 1, 2**32 - 1, 2**63 + 2049, 2**64 - 1]


def _values(name):
    return np.array([v for v in BIG if v <= np.iinfo(name).max], name)


def _shown(call, lib, *args):
    """What a call gives, as text with dtype, or the kind and words of its error."""
    try:
        return repr(call(lib, *args)).replace("torch.", "clnn.").replace("clnn.return_types.", "")
    except Exception as error:
        return type(error).__name__, str(error).replace("torch", "clnn")[:60]


CALLS = {
    "text": lambda t, x: (x, x.type(), x.dtype, x.element_size(), x.is_signed(), t.iinfo(x.dtype), str(x.tolist()), x[2].item(), x.storage_offset()),
    "conversions": lambda t, x: [x.to(d) for d in (t.float32, t.float64, t.int64, t.int16, t.uint8, t.bool)],
    "from others": lambda t, x: [t.tensor(v).to(x.dtype) for v in ([-1, 70000], [-1.5, 300.7])],
    "made": lambda t, x: (t.zeros(2, dtype=x.dtype), t.full((2,), 7, dtype=x.dtype), t.tensor([3, 4], dtype=x.dtype), t.zeros_like(x), x.new_ones(1)),
    "wraps": lambda t, x: (x * 2, x * x),
    "bits": lambda t, x: (x & 3, x | x, x ^ 1),
    "compared": lambda t, x: (x == 2, x != x, t.equal(x, x.clone()), x.isclose(x), x.any(), x.bool().all()),
    "with floats": lambda t, x: (x + 1.5, x / 2, x.sqrt(), t.result_type(x, 1), t.result_type(x, 1.0), t.promote_types(x.dtype, t.float16)),
    "sums": lambda t, x: (x.sum(), x.cumsum(0), x.prod()),
    "parts": lambda t, x: (x[1:], x[t.tensor([0, 2])], x[x == 2], t.where(x == 1, x, x * 3), x.roll(1), t.cat([x, x]), x.repeat(2), x[None].mT),
    "order": lambda t, x: (x.sort(), x.roll(1).sort(descending=True), x.unique()),
    "written": lambda t, x: (x.clone().fill_(3), x.clone().copy_(t.arange(len(x))), x.clone().zero_(), x.eq_(1)),
    "with others": lambda t, x: (t.ones((), dtype=t.int32) * x, t.can_cast(x.dtype, t.int32), t.can_cast(t.float32, x.dtype)),
    "promotion": lambda t, x: t.ones(len(x), dtype=t.int32) * x,
    "bool promotion": lambda t, x: t.promote_types(x.dtype, t.bool),
    "products": lambda t, x: (x @ x) and None,
    "indices": lambda t, x: t.arange(3)[x],
    "index": lambda t, x: t.arange(3)[x[0]],
    "mean": lambda t, x: x.mean(),
    "too long": lambda t, x: t.tensor([1 << 70], dtype=x.dtype),
    "long": lambda t, x: t.tensor(2**63),
    "long in floats": lambda t, x: t.tensor([2**63], dtype=t.float32),
}
KERNELS = ("conversions", "with floats", "sums", "parts", "order", "wraps")     # whose many kernels are built for the widest dtype alone


@pytest.mark.parametrize("call", CALLS)
def test_call(call):
    for name in NAMES[2:] if call in KERNELS else NAMES:
        x = _values(name)
        mine, theirs = (_shown(CALLS[call], lib, lib.from_numpy(x.copy())) for lib in (clnn, torch))
        if call == "products":
            assert mine[0] == theirs[0] == "NotImplementedError"
        else:
            assert mine == theirs, name


def test_narrow_ones_wrap_inside_a_fused_kernel():
    for name in NAMES[:2]:
        x = clnn.from_numpy(_values(name))
        assert (x * 3 * 5 == clnn.from_numpy(_values(name) * np.array(15, name))).all()
        assert np.array_equal((x * 3).to(clnn.int64).numpy(), (_values(name) * np.array(3, name)).astype(np.int64))


def test_arithmetic_that_pytorch_lacks_is_numpys():
    x = _values("uint64")
    a = clnn.from_numpy(x)
    assert np.array_equal((a + a - 1).numpy(), x + x - np.uint64(1)) and np.array_equal((a < 2**63).numpy(), x < 2**63)
    assert a.max().item() == 2**64 - 1


def test_stored_and_copied():
    for name in NAMES:
        x = _values(name)
        mine, file = clnn.from_numpy(x), io.BytesIO()
        clnn.save({"a": mine, "b": mine[1:]}, file)
        file.seek(0)
        theirs = torch.load(file, weights_only=True)
        assert np.array_equal(theirs["a"].numpy(), x) and theirs["b"].untyped_storage().data_ptr() == theirs["a"].untyped_storage().data_ptr()
        torch.save(theirs, file := io.BytesIO())
        file.seek(0)
        got = clnn.load(file)
        assert got["b"].dtype is getattr(clnn, name) and np.array_equal(got["b"].numpy(), x[1:]) and got["a"]._storage is got["b"]._storage
        assert np.array_equal(copy.deepcopy(mine).numpy(), x) and np.array_equal(torch.from_dlpack(mine).numpy(), x)


def test_what_has_no_unsigned_form_is_refused_in_words():
    x = clnn.from_numpy(_values("uint64"))
    for call in (lambda: clnn.gcd(x, x), lambda: x.pow(x)):
        with pytest.raises(NotImplementedError, match="not implemented for"):
            call()
