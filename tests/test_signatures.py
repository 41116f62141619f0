"""Calls with wrong arguments, made from the table of signatures: refused where PyTorch refuses them, taken where it takes them."""
import numpy as np
import pytest
from scenarios import torch

import clnn
from clnn._tensor import signatures, worded

FACTORIES = frozenset("rand randn randint randperm arange linspace logspace empty normal range empty_strided rand_like randn_like randint_like".split())
NAMES = sorted(worded._rows(signatures.FUNCTIONS).keys() - FACTORIES - frozenset("""to new_tensor conv1d conv2d conv3d conv_transpose1d conv_transpose2d
    conv_transpose3d histogram normal""".split()))
# Where PyTorch has other forms for functions of the same name elsewhere, or where the function is one of Python here.
LEFT = frozenset("""linear pad gelu leaky_relu elu hardtanh softplus one_hot scaled_dot_product_attention mish silu hardswish hardsigmoid scalar_tensor
    tril_indices triu_indices eye rrelu zeros ones full complex polar adjoint detach alias_copy detach_copy as_strided_copy bartlett_window blackman_window
    hamming_window hann_window kaiser_window is_same_size threshold unflatten is_nonzero is_signed renorm zero_ vander
    flip tile reshape broadcast_to""".split())
GOOD = {"Tensor": lambda t: t.ones(2, 2), "Number": lambda t: 1, "int": lambda t: 1, "float": lambda t: 0.5, "bool": lambda t: False, "str": lambda t: "mean",
        "ints": lambda t: [0], "Tensors": lambda t: [t.ones(2, 2)], "dtype": lambda t: t.float32}
BAD = [lambda t: "a", lambda t: {}, lambda t: None, lambda t: True, lambda t: 1.5, lambda t: 1, lambda t: np.float32(1), lambda t: [1.5],
       lambda t: [[1]], lambda t: t.ones(2), lambda t: t.tensor(1.0), lambda t: np.int64(1)]


def outcome(call, lib):
    try:
        call(lib)
    except TypeError:
        return "TypeError"
    except Exception:
        return "another error"
    return "a result"


def said(value):
    return f"tensor{list(value.shape)}" if isinstance(value, torch.Tensor) else value


def calls(name, method):
    """(arguments, named arguments) of calls that nearly fit the signatures of a function, each of them a function of the library."""
    for form in worded.forms(name, method):
        if any([p.kind not in GOOD or p.name == "out_dtype" for p in form if p.default is None]):
            continue
        place = [GOOD[p.kind] for p in form if p.default is None and not p.by_name]
        named = {p.name: GOOD[p.kind] for p in form if p.default is None and p.by_name}
        place = [GOOD["Tensor"]] * method + place
        yield place, named
        if method:
            yield place, {**named, "out": GOOD["Tensor"]}
        for key, value in dict(foo=BAD[5], dim=BAD[3], keepdim=BAD[5]).items():
            yield place, {**named, key: value}
        for bad in BAD:
            for i in range(1 if method else 0, len(place)):
                yield [*place[:i], bad, *place[i + 1:]], named
            for p in form[:6]:
                if p.default is not None and p.kind != "device" and (p.name != "out" or bad is BAD[0]):
                    yield place, {**named, p.name: bad}


@pytest.mark.share(4)
@pytest.mark.parametrize("name", [n for n in NAMES if n not in LEFT])
@pytest.mark.filterwarnings("ignore")
def test_wrong_calls(name):
    wrong = []
    for method in (False, True):
        if not hasattr(torch.Tensor if method else torch, name) or not hasattr(clnn.Tensor if method else clnn, name):
            continue
        for place, named in calls(name, method):
            got, want = [outcome(lambda t: getattr(t.Tensor if method else t, name)(*[f(t) for f in place], **{k: f(t) for k, f in named.items()}), t)
                         for t in (clnn, torch)]
            if (got == "TypeError") != (want == "TypeError"):
                called = [said(f(torch)) for f in place], {k: said(f(torch)) for k, f in named.items()}
                wrong.append(f"{'method' * method} {called}: {got}, not {want}")
    assert not wrong, (len(wrong), wrong[:6])


OTHERS = {
    "places that are no list": lambda t: t.ones(3).index_put_(t.tensor([0]), t.ones(1)), "no tensor to sum over": lambda t: t.nn.functional.mse_loss("a", t.ones(2)),
    "no tensor of scores": lambda t: t.nn.functional.glu("a"), "softmax of nothing": lambda t: t.nn.functional.log_softmax("a", 0),
    "a result in place of another dtype": lambda t: t.ones(2).cumsum_(0, dtype=t.float16),
    "two results into one": lambda t: t.max(t.ones(2), 0, out=(t.ones(2), "b")),
    "two results into a word": lambda t: t.topk(t.ones(2), 1, out=(t.ones(2), "b")),
    "no method": lambda t: t.Tensor.abs_(2), "no flag": lambda t: t.zeros(2, pin_memory="a"),
    "a mode that is no word": lambda t: t.linalg.qr(t.eye(2), 1), "a length that is no number": lambda t: t.fft.fft(t.ones(2), "a"),
    "a flag of pooling": lambda t: t.nn.functional.avg_pool2d(t.ones(1, 2, 2), 2, ceil_mode=1),
    "like another": lambda t: t.ones_like(t.ones(2), pin_memory="a"), "no end": lambda t: t.ones(2).random_("a"), "relu with a flag": lambda t: t.relu(t.ones(2), True)}


@pytest.mark.parametrize("name", OTHERS)
def test_other_wrong_calls(name):
    raised = []
    for t in (torch, clnn):
        with pytest.raises((TypeError, AttributeError, RuntimeError, ValueError)) as info:
            OTHERS[name](t)
        raised.append(info.type)
    assert raised[0] is raised[1]


def test_what_is_given_by_other_names_and_numbers():
    for call in (lambda t: t.ones(2, 3).sum(axis=0), lambda t: t.swapaxes(t.ones(2, 3), axis0=0, axis1=1), lambda t: t.hsplit(t.ones(2, 4), np.int64(2))[1],
                 lambda t: t.nn.functional.avg_pool2d(t.ones(1, 4, 4), 2, stride=np.int64(2)), lambda t: t.div(np.float32(3), 2),
                 lambda t: t.add(t.ones(2), 3, t.ones(2)),
                 lambda t: t.ones(2, 2).addmm(2, 3, t.ones(2, 2), t.ones(2, 2)), lambda t: t.amax(t.ones(2, 3), None), lambda t: t.ones(3).random_(0, None) * 0,
                 lambda t: t.ones(2, 3).sum(t.tensor(0)), lambda t: t.linalg.pinv(t.eye(2), rtol=0.1), lambda t: t.linalg.inv(A=t.eye(2)),
                 lambda t: t.rand(2, generator=None) * 0, lambda t: t.randperm(1, generator=None), lambda t: t.zeros(2, requires_grad=None, pin_memory=None),
                 lambda t: t.fft.fft(t.ones(2, 3), axis=0).abs(), lambda t: t.fft.fft2(t.ones(2, 3), s=np.int64(2), dim=-1).abs(),
                 lambda t: t.linalg.householder_product(t.eye(2), tau=t.ones(2))):
        assert call(clnn).tolist() == call(torch).tolist()


def test_classes_that_take_functions_over_are_asked_where_a_number_belongs():
    def answers(t):
        class Number:
            @classmethod
            def __torch_function__(cls, fn, types, args=(), kwargs=None):
                return "asked"
        n = Number()
        return [t.softmax(t.ones(2, 3), n), t.flip(t.ones(2), (n,)), t.add(t.ones(2), 1, alpha=n), t.sum(t.ones(2), dim=n)]
    assert answers(clnn) == answers(torch)
