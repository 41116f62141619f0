"""Quantised tensors, observers, and models that are quantised dynamically, after training and with training: the numbers of PyTorch."""
import copy
import importlib
import io
import pickle
import warnings

import numpy as np
import pytest
from scenarios import torch

import clnn

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.share(2)]
BOTH = torch, clnn


def ours(t):
    """A tensor of PyTorch's, or of a list of them, as one of clnn's."""
    if isinstance(t, (list, tuple)):
        return [ours(v) for v in t]
    return clnn.tensor(t.detach().numpy()) if isinstance(t, torch.Tensor) else t


def equal(a, b, off=0, scale=1e-6):
    """``b`` is ``a``: quantised tensors to the integer, or ``off`` of them by one."""
    if isinstance(a, (tuple, list)):
        for x, y in zip(a, b, strict=True):
            equal(x, y, off, scale)
        return
    assert tuple(a.shape) == tuple(b.shape) and str(a.dtype).partition(".")[2] == str(b.dtype).partition(".")[2]
    if not a.is_quantized:
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-4, atol=1e-5)
        return
    differ = a.int_repr().int().numpy() - b.int_repr().cpu().int().numpy()
    assert (differ != 0).sum() <= off and abs(differ).max(initial=0) <= 1
    if a.qscheme() is torch.per_tensor_affine:
        assert b.q_scale() == pytest.approx(a.q_scale(), rel=scale) and a.q_zero_point() == b.q_zero_point()


def operands(lib):
    """The tensors that the cases below name."""
    x = lib.linspace(-1, 1, 12).reshape(3, 4)
    numbers = (lib.arange(144) % 17 - 8.0).reshape(1, 4, 6, 6) * 0.17
    return dict(torch=lib, F=lib.nn.functional, Q=lib.ops.quantized, x=x, q=lib.quantize_per_tensor(x, 0.02, 3, lib.qint8),
                r=lib.quantize_per_tensor(x * 0.7, 0.0371, -5, lib.qint8), u=lib.quantize_per_tensor(x, 0.013, 70, lib.quint8),
                c=lib.quantize_per_channel(x, lib.tensor([0.01, 0.02, 0.03]), lib.tensor([0, 1, 2]), 0, lib.qint8),
                i=lib.quantize_per_tensor(numbers, 0.02, 3, lib.quint8))


def outcome(lib, code):
    try:
        got = eval(code, operands(lib))
    except Exception as error:
        kind = NotImplementedError if isinstance(error, NotImplementedError) else type(error)
        return kind.__name__, str(error).replace("torch", "clnn").splitlines()[0][:38]
    return got


def shown(value):
    return str(value).replace("torch.", "clnn.").replace("clnn.return_types.", "")


TENSORS = """
q.qscheme(), q.q_scale(), q.q_zero_point(), q.int_repr(), q.dequantize(), q.is_quantized, q.dtype, q.type(), q.element_size(), q.stride(), len(q)
c.qscheme(), c.q_per_channel_scales(), c.q_per_channel_zero_points(), c.q_per_channel_axis(), c.int_repr(), c.dequantize(), c[0].int_repr()
torch.quantize_per_tensor_dynamic(x, torch.quint8, True).int_repr(), torch.quantize_per_tensor_dynamic(x * 3 + 1, torch.qint8, False).q_zero_point()
[t.int_repr() for t in torch.quantize_per_tensor([x, x], torch.tensor([.1, .2]), torch.tensor([0, 1]), torch.quint8)]
torch.quantize_per_tensor(x, torch.tensor(.1), torch.tensor(3), torch.qint8).int_repr(), torch.quantize_per_tensor(x, .1, 0, torch.qint32).int_repr()
torch.quantize_per_channel(x, torch.tensor([.01, .02, .03]), torch.tensor([.5, 1.25, 2]), 0, torch.quint8).dequantize()
torch._make_per_tensor_quantized_tensor(torch.tensor([1], dtype=torch.int8), .1, 2).dequantize(), torch.dequantize([q, x])[0]
q[0].int_repr(), float(q[0, 1]), q[:, 1:3].int_repr(), q[torch.tensor([0, 1])].int_repr(), q[x > 0].int_repr(), q[..., None].shape, bool(q[0, 0])
q.clone().copy_(x).int_repr(), q.clone().copy_(r).q_scale(), q.clone().fill_(.5).int_repr(), q.masked_fill(x > 0, .5).int_repr()
(lambda t: (t.__setitem__(0, .5), t.__setitem__(1, t[0]), t[2].fill_(1.), t.int_repr()))(q.clone())
torch.equal(q, q.clone()), torch.equal(q, r), q == r, q < .5, q.max(), q.sort(1, True)[1]
torch.relu(q).int_repr(), q.clone().relu_().int_repr(), torch.tanh(q).q_scale(), q.sigmoid().q_zero_point()
q.flatten().shape, q.t().int_repr(), q.view(4, 3).shape, q.permute(1, 0).is_contiguous(), q.unbind(0)[1].int_repr(), q.expand(2, 3, 4).shape
i.contiguous(memory_format=torch.channels_last).stride(), i.to(memory_format=torch.channels_last).is_contiguous(), q.repeat(2, 1).shape, q.flip(0).int_repr()
repr(torch.quantize_per_tensor(torch.zeros(0), .1, 0, torch.qint8)), torch.per_tensor_affine, torch.qscheme, x.dequantize() is not None
q.abs()
-q
q + q
q @ q.t()
q.sum()
q.float()
q.numpy()
q.tolist()
q.item()
q.requires_grad_()
c.t()
c.q_scale()
q.q_per_channel_scales()
x.int_repr()
x.qscheme()
x.clone().copy_(q)
torch.nn.functional.linear(q, x)
torch.quantize_per_tensor(x, .1, 0, torch.int8)
torch.quantize_per_tensor(x.half(), .1, 0, torch.qint8)
torch.quantize_per_tensor(x, .1, 1000, torch.qint8)
"""


@pytest.mark.parametrize("code", TENSORS.strip().splitlines())
def test_tensors_answer_as_pytorchs(code):
    assert shown(outcome(clnn, code)) == shown(outcome(torch, code))


COMPUTED = """
F.max_pool2d(i, 2), F.avg_pool2d(i, 2), F.avg_pool2d(i, 3, 2, 1), F.adaptive_avg_pool2d(i, (2, 3)), F.max_pool1d(i[0], 2), i.mean([2, 3])
F.interpolate(i, scale_factor=2), F.interpolate(i, scale_factor=2, mode="bilinear"), F.pad(i, (1, 1, 1, 1)), F.pad(i, (1, 1, 1, 1), mode="reflect")
F.hardtanh(i), F.relu6(i), F.threshold(i, .1, .2), i.clamp(-.5, .5), torch.sigmoid(i), torch.tanh(i), F.hardsigmoid(i), F.gelu(i), F.leaky_relu(i, .1)
F.pixel_shuffle(i, 2), F.channel_shuffle(i, 2), F.dropout(i, .5, False), F.embedding(torch.tensor([1, 0]), q), torch.cat([q, r]), torch.stack([q, q])
Q.add(q, r, .05, 2), Q.add_relu(q, r, .05, 2), Q.mul(q, r, .05, 2), Q.mul_relu(q, r, .05, 2), Q.cat([q, r], 0, .04, 1), Q.matmul(q, r.t(), .1, 3)
Q.add_scalar(u, .5), Q.add_scalar(u, 5.5), Q.add_scalar(u, -5.5), Q.mul_scalar(u, 2.5), Q.mul_scalar(u, -2.5), Q.mul_scalar(u, 0.), Q.add_scalar_relu(u, -.3)
Q.elu(i, .02, 40, 1.), Q.celu(i, .02, 40, 1.3), Q.hardswish(i, .02, 10), Q.sigmoid(i, .01, 3), Q.leaky_relu(i, .1, False, .02, 30), Q.softmax(u, 1, 1 / 256, 0)
Q.layer_norm(i, [6], torch.ones(6), torch.zeros(6), 1e-5, .03, 110), Q.group_norm(i, 2, torch.ones(4), torch.zeros(4), 1e-5, .03, 110)
Q.batch_norm2d(i, torch.ones(4), torch.zeros(4), torch.ones(4) * .1, torch.ones(4), 1e-5, .05, 60), Q.instance_norm(i, torch.ones(4), torch.zeros(4), 1e-5, .03, 90)
"""


@pytest.mark.parametrize("code", COMPUTED.strip().splitlines())
def test_operators_give_pytorchs_integers(code):
    equal(outcome(torch, code), outcome(clnn, code), off=4)


def weights(shape, by_channel, axis=0):
    torch.manual_seed(1)
    w = torch.randn(shape) / shape[1] ** 0.5
    scales = w.abs().amax([d for d in range(w.ndim) if d != axis]) / 127
    for lib, x, s in ((torch, w, scales), (clnn, ours(w), ours(scales))):
        zeros = lib.zeros(len(scales), dtype=lib.int64)
        yield lib.quantize_per_channel(x, s, zeros, axis, lib.qint8) if by_channel else lib.quantize_per_tensor(x, s.max().item(), 0, lib.qint8)


@pytest.mark.parametrize("by_channel", (False, True))
def test_linear_layers(by_channel):
    torch.manual_seed(0)
    x, bias = torch.randn(5, 300), torch.randn(7)
    packed = [lib.ops.quantized.linear_prepack(w, b) for lib, w, b in zip(BOTH, weights((7, 300), by_channel), (bias, ours(bias)))]
    for name in ("linear", "linear_relu"):
        equal(*[getattr(lib.ops.quantized, name)(lib.quantize_per_tensor(v, 0.023, 100, lib.quint8), p, 0.031, 120) for lib, v, p in zip(BOTH, (x, ours(x)), packed)])
    for reduced in (True, False):
        equal(*[lib.ops.quantized.linear_dynamic(v, p, reduced) for lib, v, p in zip(BOTH, (x, ours(x)), packed)])
    equal(*[lib.ops.quantized.linear_unpack(p)[0] for lib, p in zip(BOTH, packed)])


@pytest.mark.parametrize("dims", (1, 2, 3))
def test_convolutions(dims):
    torch.manual_seed(0)
    x, bias = torch.randn((2, 6) + (7,) * dims), torch.randn(8)
    q = [lib.quantize_per_tensor(v, 0.023, 100, lib.quint8) for lib, v in zip(BOTH, (x, ours(x)))]
    for by_channel in (False, True):
        for name in (f"conv{dims}d", f"conv{dims}d_relu"):
            packed = [getattr(lib.ops.quantized, f"conv{dims}d_prepack")(w, b, [2] * dims, [1] * dims, [1] * dims, 2)
                      for lib, w, b in zip(BOTH, weights((8, 3) + (3,) * dims, by_channel), (bias, ours(bias)))]
            equal(*[getattr(lib.ops.quantized, name)(v, p, 0.06, 110) for lib, v, p in zip(BOTH, q, packed)])
    packed = [getattr(lib.ops.quantized, f"conv_transpose{dims}d_prepack")(w, b[:4], [2] * dims, [1] * dims, [1] * dims, [1] * dims, 1)
              for lib, w, b in zip(BOTH, weights((6, 4) + (3,) * dims, False), (bias, ours(bias)))]
    equal(*[getattr(lib.ops.quantized, f"conv_transpose{dims}d")(v, p, 0.06, 110) for lib, v, p in zip(BOTH, q, packed)])


# -- observers ------------------------------------------------------------------------------------------------------------------------
OBSERVERS = """
Q.MinMaxObserver()
Q.MinMaxObserver(dtype=torch.qint8, qscheme=torch.per_tensor_symmetric)
Q.MinMaxObserver(reduce_range=True)
Q.MinMaxObserver(quant_min=-10, quant_max=10, dtype=torch.qint8)
Q.MovingAverageMinMaxObserver(0.1)
Q.PerChannelMinMaxObserver(dtype=torch.qint8, qscheme=torch.per_channel_symmetric)
Q.PerChannelMinMaxObserver(ch_axis=1, qscheme=torch.per_channel_affine_float_qparams)
Q.MovingAveragePerChannelMinMaxObserver(0.1, qscheme=torch.per_channel_affine)
Q.HistogramObserver()
Q.HistogramObserver(reduce_range=True, bins=256)
Q.HistogramObserver(dtype=torch.qint8, qscheme=torch.per_tensor_symmetric)
Q.FixedQParamsObserver(1 / 256, 3)
Q.FakeQuantize(quant_min=0, quant_max=255, reduce_range=True)
Q.default_per_channel_weight_fake_quant()
Q.default_fused_act_fake_quant()
Q.default_fused_per_channel_wt_fake_quant()
Q.default_symmetric_fixed_qparams_fake_quant()
Q.fused_wt_fake_quant_range_neg_127_to_127()
"""


@pytest.mark.parametrize("code", OBSERVERS.strip().splitlines())
def test_observers_find_pytorchs_scales(code):
    torch.manual_seed(0)
    data = [torch.randn(6, 5) * (1 + k) + k for k in range(3)]
    seen = []
    for lib in BOTH:
        module = eval(code, dict(torch=lib, Q=lib.ao.quantization))
        results = [module(x if lib is torch else ours(x)) for x in data]
        seen.append((module.calculate_qparams() if "fused" not in code else (module.scale, module.zero_point), results, module))
    (theirs, a, module), (mine, b, own) = seen
    equal(a, b)
    np.testing.assert_allclose(theirs[0].detach().numpy(), mine[0].numpy(), rtol=1e-6)
    np.testing.assert_allclose(theirs[1].numpy(), mine[1].numpy(), rtol=1e-5)
    assert list(module.state_dict()) == list(own.state_dict())
    fresh = eval(code, dict(torch=clnn, Q=clnn.ao.quantization))
    fresh.load_state_dict(own.state_dict())
    assert shown(fresh.state_dict()) == shown(own.state_dict())


def test_settings_are_pytorchs():
    for backend in ("fbgemm", "x86", "qnnpack", "onednn"):
        for name in ("get_default_qconfig", "get_default_qat_qconfig"):
            a, b = [getattr(lib.ao.quantization, name)(backend) for lib in BOTH]
            assert shown(a).replace("clnn.ao.quantization.", "") == shown(b).replace("clnn.ao.quantization.", "")
            assert clnn.ao.quantization.qconfig_equals(b, copy.deepcopy(b))
    names = [n for n in torch.ao.quantization.qconfig.__all__ if n.startswith(("default", "float", "per_channel"))]
    for name in names:
        a, b = [getattr(lib.ao.quantization.qconfig, name) for lib in BOTH]
        assert shown(a).replace("clnn.ao.quantization.", "") == shown(b).replace("clnn.ao.quantization.", ""), name
    mapping = clnn.ao.quantization.get_default_qconfig_mapping("x86").set_module_name("fc", None)
    assert mapping.from_dict(mapping.to_dict()).to_dict() == mapping.to_dict()
    with pytest.raises(AssertionError, match="must be one of"):
        clnn.ao.quantization.get_default_qconfig("none")
    with pytest.raises(ValueError, match="observer instance"):
        clnn.ao.quantization.QConfig(clnn.ao.quantization.MinMaxObserver(), None)


# -- models ---------------------------------------------------------------------------------------------------------------------------
def language_model(lib):
    nn = lib.nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder, self.rnn, self.decoder = nn.Embedding(20, 8), nn.LSTM(8, 16, 2, bidirectional=True), nn.Linear(32, 20)
            self.gru = nn.GRU(8, 16, batch_first=True)

        def forward(self, x, hidden=None):
            x = self.encoder(x)
            out, hidden = self.rnn(x, hidden)
            return self.decoder(out), hidden, self.gru(x)[0]
    return Model()


def image_model(lib):
    nn, Q = lib.nn, lib.ao.quantization

    class Block(nn.Module):
        def __init__(self, inside, out):
            super().__init__()
            self.conv, self.bn, self.relu = nn.Conv2d(inside, out, 3, padding=1, bias=False), nn.BatchNorm2d(out), nn.ReLU()
            self.conv2, self.sum = nn.Conv2d(out, out, 1), nn.quantized.FloatFunctional()

        def forward(self, x):
            y = self.relu(self.bn(self.conv(x)))
            return self.sum.add_relu(self.conv2(y), y)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.quant, self.dequant = Q.QuantStub(), Q.DeQuantStub()
            self.one, self.two, self.pool, self.act = Block(3, 8), Block(8, 8), nn.MaxPool2d(2), nn.Hardswish()
            self.fc, self.relu, self.last = nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 5)

        def forward(self, x):
            x = self.act(self.two(self.pool(self.one(self.quant(x)))))
            return self.dequant(self.last(self.relu(self.fc(x.mean([2, 3])))))
    return Model()


def pair(make):
    """A model of both libraries with the same parameters."""
    torch.manual_seed(1)
    theirs, mine = make(torch), make(clnn)
    mine.load_state_dict({k: ours(v) for k, v in theirs.state_dict().items()})
    return theirs, mine


def same_text(a, b):
    assert shown(a) == str(b)


@pytest.mark.parametrize("dtype", ("qint8", "float16"))
def test_dynamic_quantisation_of_a_language_model(dtype):
    x = torch.arange(12).reshape(4, 3)
    models = [lib.quantization.quantize_dynamic(m, {lib.nn.Linear, lib.nn.LSTM, lib.nn.GRU}, dtype=getattr(lib, dtype)) for lib, m in zip(BOTH, pair(language_model))]
    same_text(*models)
    theirs, mine = models
    first = theirs(x), mine(ours(x))
    equal(*first)
    equal(theirs(x, first[0][1]), mine(ours(x), first[1][1]))
    assert list(theirs.state_dict()) == list(mine.state_dict()) and theirs.state_dict()._metadata == mine.state_dict()._metadata
    equal(copy.deepcopy(theirs)(x)[0], copy.deepcopy(mine)(ours(x))[0])

    fresh = clnn.quantization.quantize_dynamic(language_model(clnn), {clnn.nn.Linear, clnn.nn.LSTM, clnn.nn.GRU}, dtype=getattr(clnn, dtype))
    for save in (lambda f: clnn.save(mine.state_dict(), f), lambda f: torch.save(theirs.state_dict(), f)):       # PyTorch's file is read, too
        file = io.BytesIO()
        save(file)
        file.seek(0)
        fresh.load_state_dict(clnn.load(file))
        equal(theirs(x)[0], fresh(ours(x))[0])
    file = io.BytesIO()
    clnn.save(mine.state_dict(), file)
    file.seek(0)
    theirs.load_state_dict(torch.load(file, weights_only=False))
    equal(theirs(x)[0], mine(ours(x))[0])


@pytest.mark.parametrize("kind", ("LSTMCell", "GRUCell", "RNNCell"))
def test_dynamic_cells(kind):
    x = torch.linspace(-1, 1, 12).reshape(3, 4)
    theirs, mine = [lib.ao.quantization.quantize_dynamic(m) for lib, m in zip(BOTH, pair(lambda lib: lib.nn.Sequential(getattr(lib.nn, kind)(4, 6))))]
    equal(theirs(x), mine(ours(x)))
    same_text(theirs, mine)
    assert list(theirs.state_dict()) == list(mine.state_dict())
    again = clnn.ao.quantization.quantize_dynamic(clnn.nn.Sequential(getattr(clnn.nn, kind)(4, 6)))
    again.load_state_dict(mine.state_dict())
    equal(theirs(x), again(ours(x)))


def test_embeddings_trained_with_rounding():
    index, done = torch.arange(6), []
    for lib, model in zip(BOTH, pair(lambda lib: lib.nn.Sequential(lib.nn.Embedding(10, 6)))):
        Q, value = lib.ao.quantization, index if lib is torch else ours(index)
        model.train().qconfig = Q.default_embedding_qat_qconfig
        trained = Q.prepare_qat(model, mapping=Q.get_embedding_qat_module_mappings())
        out = trained(value)
        out.sum().backward()
        done.append([out, trained[0].weight.grad, Q.convert(trained.eval(), Q.get_embedding_static_quant_module_mappings())(value)])
    equal(*done)


def test_packed_sequences_and_embeddings():
    x, lengths = torch.linspace(-1, 1, 60).reshape(3, 5, 4), [5, 3, 2]
    theirs, mine = [lib.ao.quantization.quantize_dynamic(m) for lib, m in zip(BOTH, pair(lambda lib: lib.nn.Sequential(lib.nn.LSTM(4, 6, batch_first=True))))]
    packed = [lib.nn.utils.rnn.pack_padded_sequence(v, lengths, batch_first=True) for lib, v in zip(BOTH, (x, ours(x)))]
    equal(theirs(packed[0])[0].data, mine(packed[1])[0].data)
    index = torch.tensor([[1, 0, 4], [2, 2, 5]])
    for kind in ("Embedding", "EmbeddingBag"):
        options = {"mode": "sum"} if kind == "EmbeddingBag" else {}
        theirs, mine = [lib.ao.quantization.quantize_dynamic(m, {getattr(lib.nn, kind)}, dtype=lib.quint8)
                        for lib, m in zip(BOTH, pair(lambda lib: lib.nn.Sequential(getattr(lib.nn, kind)(6, 8, **options))))]
        equal(theirs(index), mine(ours(index)))
        same_text(theirs, mine)
        assert list(theirs.state_dict()) == list(mine.state_dict())


FUSED = [["one.conv", "one.bn", "one.relu"], ["two.conv", "two.bn", "two.relu"], ["fc", "relu"]]


@pytest.mark.parametrize("backend", ("fbgemm", "onednn", "default"))
def test_static_quantisation(backend):
    torch.manual_seed(3)
    data = [torch.randn(4, 3, 8, 8) * (1 + 0.3 * k) for k in range(2)]
    done = []
    for lib, model in zip(BOTH, pair(image_model)):
        Q = lib.ao.quantization
        model = Q.fuse_modules(model.eval(), FUSED)
        model.qconfig = Q.default_qconfig if backend == "default" else Q.get_default_qconfig(backend)
        prepared = Q.prepare(model)
        for x in data:
            prepared(x if lib is torch else ours(x))
        done.append((prepared, Q.convert(prepared)))
    (observed, theirs), (watched, mine) = done
    assert list(observed.state_dict()) == list(watched.state_dict()) and list(theirs.state_dict()) == list(mine.state_dict())
    assert [type(m).__name__ for m in theirs.modules()] == [type(m).__name__ for m in mine.modules()]
    for (name, a), b in zip(theirs.state_dict().items(), mine.state_dict().values()):
        if isinstance(a, torch.Tensor) and not name.endswith("zero_point"):
            equal(a, b)
    for x in data:
        a, b = theirs(x).numpy(), mine(ours(x)).numpy()
        assert abs(a - b).max() < 2.5 * theirs.last.scale and (abs(a - b) > 1e-5).mean() < 0.3
    file = io.BytesIO()
    torch.save(theirs.state_dict(), file)
    file.seek(0)
    mine.load_state_dict(clnn.load(file))
    a, b = [], []                                                # with the same weights and scales the same integers
    for model, log in ((theirs, a), (mine, b)):
        for module in (model.one.conv, model.one.conv2, model.two.conv, model.act, model.fc, model.last):
            module.register_forward_hook(lambda module, inputs, result, log=log: log.append(result))
    theirs(data[0]), copy.deepcopy(mine)(ours(data[0]))
    equal(a[:4], b[:4])
    equal(a[4:], b[4:], off=1)                                   # the mean before: of 16 integers one in 16 lies halfway between two


@pytest.mark.parametrize("backend, version", (("fbgemm", 1), ("qnnpack", 1), ("qnnpack", 0)))
def test_training_with_rounding(backend, version):
    torch.manual_seed(3)
    data, goal, done = [torch.randn(4, 3, 8, 8) for _ in range(3)], torch.randn(4, 5), []
    for lib, model in zip(BOTH, pair(image_model)):
        to, Q = ours if lib is clnn else lambda t: t, lib.ao.quantization
        model = Q.fuse_modules_qat(model.train(), FUSED)
        model.qconfig = Q.get_default_qat_qconfig(backend, version)
        model = Q.prepare_qat(model)
        optimizer, losses = lib.optim.SGD(model.parameters(), lr=0.01), []
        for x in data:
            optimizer.zero_grad()
            loss = ((model(to(x)) - to(goal)) ** 2).mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        model.apply(Q.disable_observer)
        model.apply(lib.nn.intrinsic.qat.freeze_bn_stats)
        done.append((model, losses, Q.convert(model.eval())))
    (trained, theirs, a), (learnt, mine, b) = done
    np.testing.assert_allclose(theirs, mine, rtol=2e-3)
    np.testing.assert_allclose(theirs[0], mine[0], rtol=1e-6)
    assert list(trained.state_dict()) == list(learnt.state_dict()) and list(a.state_dict()) == list(b.state_dict())
    assert [type(m).__name__ for m in a.modules()] == [type(m).__name__ for m in b.modules()]
    if backend == "fbgemm":
        assert abs(a(data[0]).numpy() - b(ours(data[0])).numpy()).max() < 0.05


def graph_model(lib):
    """A model that is quantised by its graph: functions and operators beside layers."""
    nn = lib.nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.bn, self.relu, self.conv2 = nn.Conv2d(3, 4, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 4, 1)
            self.pool, self.act, self.fc, self.last = nn.MaxPool2d(2), nn.Hardswish(), nn.Linear(8, 5), nn.Sigmoid()

        def forward(self, x):
            y = self.relu(self.bn(self.conv(x)))
            y = self.pool(lib.relu(self.conv2(y) + y))
            y = lib.cat([y, self.act(y)], 1)
            y = nn.functional.adaptive_avg_pool2d((y * y)[:, :8], 1)
            n = y.size(0) * 2
            return self.last(self.fc(lib.flatten(y, 1).view(n // 2, 8))) * 2
    return Model()


@pytest.mark.parametrize("mode", ("static", "dynamic", "training"))
def test_graph_mode(mode):
    for lib in BOTH:
        importlib.import_module(f"{lib.__name__}.ao.quantization.quantize_fx")
    torch.manual_seed(3)
    data, done = [torch.randn(4, 3, 8, 8) for _ in range(2)], []
    for lib, model in zip(BOTH, pair(graph_model)):
        Q, values = lib.ao.quantization, data if lib is torch else ours(data)
        if mode == "training":
            prepared = Q.quantize_fx.prepare_qat_fx(model.train(), Q.get_default_qat_qconfig_mapping("x86"), (values[0],))
        else:
            mapping = Q.get_default_qconfig_mapping("x86") if mode == "static" else Q.QConfigMapping().set_object_type(lib.nn.Linear, Q.default_dynamic_qconfig)
            prepared = Q.quantize_fx.prepare_fx(model.eval(), mapping, (values[0],))
        results = [prepared(x) for x in values]
        converted = Q.quantize_fx.convert_fx(prepared.eval())
        done.append((results, converted(values[0]), prepared, converted))
    (a, x, observed, theirs), (b, y, watched, mine) = done
    equal(a, b)
    assert abs(x.detach().numpy() - y.detach().numpy()).max() < 0.02
    assert mode == "dynamic" or shown(observed.code) == watched.code
    assert mode == "dynamic" or list(theirs.state_dict()) == list(mine.state_dict()) and "clnn.quantize_per_tensor(x, conv_input_scale_0" in mine.code
    for name in ("conv", "conv2", "fc"):
        assert type(getattr(theirs, name)).__name__ == type(getattr(mine, name)).__name__


@pytest.mark.parametrize("kind", ("LSTM", "MultiheadAttention"))
def test_static_quantisation_of_layers_with_parts(kind):
    def make(lib):
        nn, Q = lib.nn, lib.ao.quantization

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.quant, self.dequant = Q.QuantStub(), Q.DeQuantStub()
                self.part = nn.LSTM(8, 6, 2, bidirectional=True) if kind == "LSTM" else nn.MultiheadAttention(8, 2)

            def forward(self, x):
                x = self.quant(x)
                return self.dequant((self.part(x) if kind == "LSTM" else self.part(x, x, x))[0])
        return Model()
    torch.manual_seed(3)
    x, done = torch.randn(4, 3, 8), []
    for lib, model in zip(BOTH, pair(make)):
        value, Q = (x if lib is torch else ours(x)), lib.ao.quantization
        model.eval().qconfig = Q.get_default_qconfig("fbgemm")
        prepared = Q.prepare(model)
        done.append((prepared(value), Q.convert(prepared)))
    (a, theirs), (b, mine) = done
    equal(a, b)
    equal(theirs(x), mine(ours(x)))
    assert list(theirs.state_dict()) == list(mine.state_dict())
    assert [type(m).__name__ for m in theirs.modules()] == [type(m).__name__ for m in mine.modules()]


def layers(lib):
    """A model of other layers that have quantised forms."""
    nn, Q = lib.nn, lib.ao.quantization
    return Q.QuantWrapper(nn.Sequential(nn.BatchNorm2d(4), nn.ReLU6(), nn.ELU(), nn.LeakyReLU(0.1), nn.GroupNorm(2, 4), nn.InstanceNorm2d(4, affine=True),
                                        nn.Dropout(), nn.ConvTranspose2d(4, 4, 2), nn.LayerNorm([5]), nn.Sigmoid(), nn.Flatten(), nn.Linear(100, 3), nn.Tanh()))


def test_other_layers():
    torch.manual_seed(5)
    x, done = torch.randn(2, 4, 4, 4), []
    for lib, model in zip(BOTH, pair(layers)):
        model.eval().qconfig = lib.ao.quantization.default_qconfig
        value = x if lib is torch else ours(x)
        done.append(lib.ao.quantization.quantize(model, lambda m, v: m(v), [value])(value))
    equal(*done)


def test_names_and_places():
    import clnn.nn.intrinsic.qat.modules.conv_fused
    import clnn.nn.quantized.dynamic as dynamic
    import clnn.quantization.observer
    assert clnn.quantization is clnn.ao.quantization and clnn.nn.quantized is clnn.ao.nn.quantized and clnn.nn.quantized.dynamic is dynamic
    assert clnn.nn.qat is clnn.ao.nn.qat and clnn.nn.intrinsic is clnn.ao.nn.intrinsic and clnn.quantization.observer.MinMaxObserver
    absent = {name for name in torch.ao.quantization.__all__ if not hasattr(clnn.ao.quantization, name)}
    assert not {name for name in absent if "jit" not in name and not name.startswith(("script", "get_default", "Per"))} - {
        "AffineQuantizedObserverBase", "Granularity", "MappingType", "TorchAODType", "ZeroPointDomain", "get_block_size"}
    for place in ("ao.nn.intrinsic", "ao.nn.intrinsic.quantized", "ao.nn.quantized.dynamic", "ao.nn.qat",
                  "ao.nn.quantizable", "ao.nn.quantized", "ao.nn.quantized.functional"):
        theirs, mine = [eval(f"lib.{place}", dict(lib=lib)) for lib in BOTH]
        names = getattr(theirs, "__all__", None) or [n for n in dir(theirs) if n[0].isupper()]
        assert not [n for n in names if n != "modules" and not hasattr(mine, n)], place
    before = clnn.backends.quantized.engine
    clnn.backends.quantized.engine = "qnnpack"
    assert (before, clnn.backends.quantized.engine) == ("x86", "qnnpack")
    clnn.backends.quantized.engine = before
    with pytest.raises(RuntimeError, match="not a valid value"):
        clnn.backends.quantized.engine = "none of these"


def test_files_and_copies():
    values = operands(clnn)
    file = io.BytesIO()
    clnn.save([values["q"], values["c"], clnn.per_channel_affine, clnn.qint8], file)
    file.seek(0)
    q, c, scheme, dtype = clnn.load(file)
    assert clnn.equal(q, values["q"]) and str(c) == str(values["c"]) and scheme is clnn.per_channel_affine and dtype is clnn.qint8
    file.seek(0)
    assert shown(torch.load(file)[1]) == shown(operands(torch)["c"])
    for copied in (copy.copy, copy.deepcopy, lambda t: pickle.loads(pickle.dumps(t))):
        assert str(copied(values["q"])) == str(values["q"]) and str(copied(values["c"])) == str(values["c"])


def test_scales_found_on_the_device(monkeypatch):
    """Where waiting is dear, dynamic layers choose their scale without it: the same one."""
    from clnn._quantized.ranges import choose_qparams, covering
    for low, high in ((-1.0, 2.0), (0.0, 3.0), (-0.37, 0.0), (0.5, 0.7), (-1e-4, 2e-4), (0.0, 0.0), (-5.3, 7.7)):
        for least, most in ((0, 255), (0, 127), (-128, 127)):
            scale, zero = covering(clnn.tensor(low), clnn.tensor(high), least, most)
            want = choose_qparams(low, high, least, most)
            assert (scale.item(), zero.item()) == (pytest.approx(want[0], rel=1e-6), want[1])
    torch.manual_seed(0)
    x = torch.randn(5, 300)
    packed = [lib.ops.quantized.linear_prepack(w, None) for lib, w in zip(BOTH, weights((7, 300), True))]
    monkeypatch.setattr(clnn.Tensor, "is_cpu", property(lambda self: False))
    equal(*[lib.ops.quantized.linear_dynamic(v, p, True) for lib, v, p in zip(BOTH, (x, ours(x)), packed)])


@pytest.mark.parametrize("rows", (False, True))
def test_observing_and_rounding_as_one_function(rows):
    torch.manual_seed(0)
    data, done = [torch.randn(4, 6) + 0.3 * k for k in range(3)], []
    for lib in BOTH:
        low, high = (lib.full((4,) if rows else (), v) for v in (float("inf"), float("-inf")))
        scale, zero, on = lib.ones(4 if rows else 1), lib.zeros(4 if rows else 1, dtype=lib.int32), lib.tensor([1])
        got = [lib.fused_moving_avg_obs_fake_quant(x if lib is torch else ours(x), on, on, low, high, scale, zero, 0.1, -128, 127, 0, rows, rows) for x in data]
        done.append([*got, low, high, scale, zero])
    equal(*done)
    with pytest.raises(AssertionError, match="Quantized tensor-likes are not close"):
        clnn.testing.assert_close(*[clnn.quantize_per_tensor(clnn.ones(3) * k, 0.1, 0, clnn.quint8) for k in (1, 2)])


def test_gradients_stop_and_others_are_unharmed():
    """A quantised tensor has no history; operators on other tensors go on as before."""
    x = clnn.ones(3, requires_grad=True)
    q = clnn.quantize_per_tensor(x, 0.1, 0, clnn.quint8)
    assert not q.requires_grad and not q.dequantize().requires_grad
    (clnn.nn.functional.kl_div(x.log(), x, reduction="sum") + x.sum()).backward()
    assert x.grad is not None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert clnn.ao.quantization.prepare_qat.__doc__


def fresh_layers(t):
    """Layers of convolution and batch normalisation for training start from PyTorch's random numbers, and leave the stream where PyTorch does."""
    t.manual_seed(0)
    qat, config = t.ao.nn.intrinsic.qat, t.ao.quantization.get_default_qat_qconfig("fbgemm")
    layers = [qat.ConvBn1d(2, 4, 3, qconfig=config, bias=True), qat.ConvBnReLU2d(2, 4, 3, qconfig=config), qat.ConvBn3d(2, 3, 2, bias=True, qconfig=config)]
    pair = t.ao.nn.intrinsic.LinearBn1d(t.nn.Linear(4, 3), t.nn.BatchNorm1d(3))
    pair.qconfig = config
    layers.append(qat.LinearBn1d.from_float(pair))
    return [[v.tolist() for n, v in layer.state_dict().items() if "fake_quant" not in n] for layer in layers], t.rand(3).tolist()


def test_layers_with_batch_normalisation_draw_as_pytorch_does():
    theirs, got = (fresh_layers(t) for t in (pytest.importorskip("torch"), clnn))
    np.testing.assert_allclose(*([v for layer in made[0] for part in layer for v in np.ravel(part)] + made[1] for made in (got, theirs)), rtol=1e-5, atol=1e-7)
