"""Behaviour that PyTorch's own tests ask of layers, indices and hooks: what overlaps, bags with a last offset, references, dtypes."""
import copy
import subprocess
import sys
import weakref

import pytest
from scenarios import assert_same

import clnn


@pytest.mark.parametrize("write", (
    lambda x: x.__setitem__(1, x[1, 0]), lambda x: x.__setitem__((slice(None), 0), x[1, 2]), lambda x: x.__setitem__(slice(None), x[0]),
    lambda x: x.__setitem__(x > 2, x[0, 1]), lambda x: x.fill_(x[1, 1]), lambda x: x.masked_fill_(x > 2, x[0, 1]),
    lambda x: x.view(-1).__setitem__(slice(1, None), x.view(-1)[:-1]), lambda x: x.add_(x[0, 0]), lambda x: x.mul_(x[0]), lambda x: x.copy_(x[0, 0])))
def test_writes_of_own_elements(write):
    def run(lib):
        x = lib.arange(6.).view(2, 3)
        write(x)
        return x
    assert_same(run)


def test_own_elements_have_gradients():
    def run(lib):
        w = lib.arange(6.).view(2, 3).requires_grad_()
        v = w * 1
        v[0] = v[1, 1]
        v.masked_fill_(v > 4.5, v[0, 0])
        (v * v).sum().backward()
        return v, w.grad
    assert_same(run)


@pytest.mark.parametrize("mode,padding", (("max", None), ("sum", 1), ("mean", 1)))
def test_last_bag_ends_where_the_input_does(mode, padding):
    def run(lib):
        weight = lib.arange(12.).view(4, 3)
        bag = lib.nn.EmbeddingBag.from_pretrained(weight, freeze=False, include_last_offset=True, padding_idx=padding, mode=mode)
        out = bag(lib.tensor([0, 1, 2, 3]), lib.tensor([0, 3, 3]))
        out.sum().backward()
        return out, bag.weight.grad
    assert_same(run)


@pytest.mark.parametrize("call", (
    lambda t: t.nn.functional.embedding_bag(t.tensor([[0, 1]]), t.ones(4, 3), padding_idx=-6),
    lambda t: t.nn.EmbeddingBag(5, 2, mode="sum")(t.tensor([3, 1, 1]), t.tensor([0, 1]), t.ones(3, dtype=t.float64)),
    lambda t: t.unravel_index(t.tensor([1]), t.tensor([2, 2])), lambda t: t.unravel_index(t.tensor([1]), (2, -2)),
    lambda t: t.unravel_index(t.tensor([1]), (2.0, 2)), lambda t: t.unravel_index(t.tensor([1]), 3.0), lambda t: t.unravel_index(t.tensor([1]), 3),
    lambda t: t.ones(2, 2).flip(), lambda t: t.ones(10, 2).topk(4, True), lambda t: t.ones(3).topk(2.0),
    lambda t: [str(d.to_complex()) for d in (t.float16, t.bfloat16, t.float64, t.complex64)], lambda t: t.int32.to_complex(), lambda t: str(t.chalf.to_real()),
    lambda t: t.strided in (t.sparse_bsr, t.sparse_bsc)))
def test_arguments(call):
    assert_same(call)


def test_sparse_gradients_keep_their_indices():
    """The program may write other numbers into its own tensor after backward."""
    def run(lib):
        table, x = lib.nn.Embedding(10, 2, sparse=True), lib.tensor([2, 4, 5])
        table(x).sum().backward()
        x[0] = 8
        table(x).sum().backward()
        none = lib.nn.Embedding(0, 0, sparse=True)
        none(lib.tensor([], dtype=lib.int64)).sum().backward()
        return table.weight.grad._indices(), none.weight.grad.is_sparse
    assert_same(run)


def test_load_hooks_do_not_keep_the_module():
    seen = []
    module = clnn.nn.Linear(2, 2)
    module.register_load_state_dict_pre_hook(lambda m, *args: seen.append(type(m)))
    again = copy.deepcopy(module)
    again.load_state_dict(module.state_dict())
    gone = weakref.ref(module)
    del module
    assert gone() is None and seen == [clnn.nn.Linear]


def test_lazy_parameters_refuse_functions():
    for call in (clnn.empty_like, lambda p: clnn.add(p, p), lambda p: p + p, lambda p: clnn.nn.functional.linear(clnn.ones(2), p)):
        with pytest.raises(ValueError, match="uninitialized parameter"):
            call(clnn.nn.UninitializedParameter())
    with pytest.raises(RuntimeError, match="run a forward pass"):
        clnn.jit.script(clnn.nn.LazyLinear(2))


def test_spectral_norm_of_complex_weights():
    def run(lib):
        layer = lib.nn.Linear(2, 3, dtype=lib.complex64)
        with lib.no_grad():
            layer.weight.copy_(lib.tensor([[1, 2], [3, 0.5], [-1, .2]]) * (1 + 2j))
        lib.nn.utils.parametrizations.spectral_norm(layer)
        return lib.view_as_real(layer.weight.detach().clone())
    assert_same(run)


def test_operators_are_copied_as_themselves():
    for op in (clnn.ops.aten.add, clnn.ops.aten.add.Tensor):
        assert copy.deepcopy(op) is op


def test_modules_of_the_name_of_a_function_leave_it():
    program = ("import sys, clnn; sys.modules['torch'] = clnn; import torch; import torch.autograd.gradcheck; from torch.autograd.gradcheck import GradcheckError; "
               "assert torch.autograd.gradcheck(lambda x: x * 2, torch.ones(2, dtype=torch.float64, requires_grad=True))")
    subprocess.run([sys.executable, "-c", program], check=True)


def test_diagonals_that_wrap_in_tensors_with_strides():
    def run(lib):
        wide, steps = lib.zeros(3, 8).t(), lib.zeros(14, 6)[::2, ::2]
        return wide.fill_diagonal_(1, wrap=True), steps.fill_diagonal_(2, wrap=True), \
            lib.zeros(3, 7).fill_diagonal_(1, wrap=True), lib.zeros(4, 3).fill_diagonal_(1, wrap=True)
    assert_same(run)


def test_deterministic_modes_are_read_back():
    def run(lib):
        seen = []
        for mode, warn_only in ((True, True), (True, False), (False, True), (False, False)):
            lib.use_deterministic_algorithms(mode, warn_only=warn_only)
            seen.append((lib.are_deterministic_algorithms_enabled(), lib.is_deterministic_algorithms_warn_only_enabled(), lib.get_deterministic_debug_mode()))
        lib.set_deterministic_debug_mode("warn")
        seen.append((lib.are_deterministic_algorithms_enabled(), lib.is_deterministic_algorithms_warn_only_enabled()))
        lib.set_deterministic_debug_mode(0)
        return seen
    assert_same(run)


@pytest.mark.parametrize("call", (
    lambda t: t.bernoulli(t.ones(3), out=t.zeros(3, dtype=t.bool)), lambda t: list(t.ones(2).new(size=(3, 4)).shape), lambda t: str(t.ones(2).int().type(t.Tensor).dtype),
    lambda t: t.ones(2).map_(t.ones(2), "str"), lambda t: t.ones(2).map_(t.ones(1), lambda a, b: a + b),
    lambda t: t.nn.functional.ctc_loss(t.zeros(5, 1, 3), t.ones(1, 2, dtype=t.int64), t.tensor([5.0]), t.tensor([2])),
    lambda t: t.autograd.grad(t.ones(1, requires_grad=True) * 2, t.ones(1, requires_grad=True), create_graph=True, materialize_grads=True)[0].requires_grad))
def test_old_forms_of_calls(call):
    assert_same(call)


@pytest.mark.parametrize("call", (
    lambda t, x: x.view(2.0, 8), lambda t, x: x.reshape(16 / 4, 4), lambda t, x: x.expand(4, 4.0), lambda t, x: x.repeat(2.0), lambda t, x: x.permute(1.0, 0),
    lambda t, x: x.unflatten(0, (2.0, 2)), lambda t, x: x.chunk(2.0), lambda t, x: x.split(2.0), lambda t, x: x.split([2.0, 2]), lambda t, x: x.narrow(0, 0.0, 2),
    lambda t, x: x.select(0, 1.0), lambda t, x: x.roll(1.0), lambda t, x: x.diagonal(1.0), lambda t, x: x.tril(1.0), lambda t, x: x.unfold(0, 2.0, 1),
    lambda t, x: x.kthvalue(2.0), lambda t, x: t.randperm(4.0), lambda t, x: t.nn.functional.one_hot(t.tensor([1]), 3.0),
    lambda t, x: t.nn.functional.pixel_shuffle(t.ones(1, 4, 2, 2), 2.0), lambda t, x: t.nn.functional.group_norm(t.ones(1, 4, 2), 2.0),
    lambda t, x: t.nn.functional.layer_norm(x, (4.0,)), lambda t, x: t.nn.functional.conv2d(t.ones(1, 1, 4, 4), t.ones(1, 1, 2, 2), stride=1.0),
    lambda t, x: t.rot90(x, 1.5), lambda t, x: t.randint(2.5, (2,)), lambda t, x: t.randint(0, 2.0, (2,)), lambda t, x: t.nn.functional.pad(x, (1.0, 1)),
    lambda t, x: t.nn.functional.pad(x, (1, 1.5), mode="reflect"), lambda t, x: t.nn.functional.fold(x, (2.5, 2), 2),
    lambda t, x: t.nn.functional.unfold(t.ones(1, 1, 3, 3), 2.0), lambda t, x: t.fft.fft(x, 2.5), lambda t, x: t.fft.rfft2(x, s=(2, 2.0)),
    lambda t, x: t.fft.fftfreq(4.0), lambda t, x: t.bincount(t.tensor([1]), minlength=3.0), lambda t, x: x.view(t.tensor(16)), lambda t, x: x.view(True, 16)))
def test_fractions_are_no_sizes(call):
    """A division leaves them by mistake, 2.0 as well as 1.5."""
    def run(lib):
        try:
            return call(lib, lib.ones(4, 4))
        except TypeError:
            return "refused"
    assert_same(run)


def test_kinds_of_storages():
    def run(lib):
        kinds = lib.Storage, lib.DoubleStorage, lib.LongStorage
        return [str(k) for k in kinds], [isinstance(lib.ones(2).storage(), k) for k in kinds], lib.Storage is lib.FloatStorage, lib.Storage(3).size()
    assert_same(run)


def test_ranges_fill_any_shape():
    def run(lib):
        x, y = lib.zeros(2, 3), lib.zeros(2, 2)
        lib.arange(0, 4, out=x.narrow(1, 1, 2))
        lib.linspace(0, 1, 4, out=y)
        return x, y
    assert_same(run)


@pytest.mark.parametrize("call", (
    lambda t: t.cat([t.ones(0), t.ones(0)], 1), lambda t: t.hstack(t.ones(2, 2)), lambda t: t.column_stack(t.ones(2, 2)), lambda t: t.dstack(t.ones(2, 2)),
    lambda t: t.view_as_real(t.arange(20).to(t.complex128).view(1, 20)[:, t.arange(19, -1, -1)])))
def test_joined_and_chosen(call):
    if "complex128" in call.__code__.co_names and not clnn.get_default_device().physical.has_fp64:
        pytest.skip("no fp64")
    assert_same(call)


def test_shapes_beyond_any_device_are_worked_out():
    x = clnn.empty(2**10, 3, 2**16, 2**16, device="meta")
    conv, back = clnn.nn.Conv2d(3, 5, 2, device="meta"), clnn.nn.ConvTranspose2d(5, 3, 2, device="meta")
    assert conv(x).shape == (1024, 5, 65535, 65535) and back(conv(x)).shape == x.shape
    conv(x).sum().backward()
    assert conv.weight.grad.shape == (5, 3, 2, 2)


REFUSED = {
    "empty average": lambda t, F: F.adaptive_avg_pool1d(t.ones(1, 2, 0), 2),
    "empty average in planes": lambda t, F: F.adaptive_avg_pool2d(t.ones(1, 2, 0, 3), 2),
    "empty maximum": lambda t, F: F.adaptive_max_pool2d(t.ones(1, 2, 0, 3), 2),
    "no channels": lambda t, F: F.adaptive_max_pool2d(t.ones(1, 0, 3, 3), 2),
    "places of floats": lambda t, F: F.max_unpool1d(t.ones(1, 1, 2), t.zeros(1, 1, 2), 2),
    "places of floats in space": lambda t, F: F.max_unpool3d(t.ones(1, 1, 1, 1, 1), t.zeros(1, 1, 1, 1, 1), 2),
    "few dimensions": lambda t, F: F.max_unpool2d(t.ones(2, 2), t.zeros(2, 2, dtype=t.int64), 2),
    "old order": lambda t, F: F.embedding_bag(t.arange(6.0).reshape(3, 2), t.tensor([0, 1]), t.tensor([0])),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.filterwarnings("ignore:Argument order")
def test_empty_windows_and_places(name):
    def run(t):
        try:
            return REFUSED[name](t, t.nn.functional)
        except RuntimeError as error:
            return str(error).replace("clnn", "torch")
    assert_same(run)
