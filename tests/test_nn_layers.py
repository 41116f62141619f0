"""Every layer against PyTorch: constructor, repr, names and shapes of the state, outputs and gradients."""
import inspect
import warnings

import numpy as np
import pytest

import clnn
from clnn import nn

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore")


def case(expr, *inputs, eval_mode=False, atol=2e-5):
    """A layer expression and its inputs: shapes of floats (tuples), or ready NumPy arrays."""
    return pytest.param(expr, inputs, eval_mode, atol, id=expr.replace("nn.", ""))


def ints(high, *shape):
    return np.random.default_rng(1).integers(0, high, shape)


def probabilities(*shape):
    return np.random.default_rng(2).uniform(0.05, 0.95, shape).astype(np.float32)


def signs(*shape):
    return np.where(np.random.default_rng(3).random(shape) > 0.5, 1.0, -1.0).astype(np.float32)


ACTIVATIONS = [case(f"nn.{text}", (3, 4)) for text in (
    "ReLU()", "ReLU(inplace=False)", "ReLU6()", "Threshold(0.1, 20.)", "RReLU(0.2, 0.2)", "Hardtanh(-0.5, 0.5)", "Sigmoid()", "Hardsigmoid()",
    "Tanh()", "SiLU()", "Mish()", "Hardswish()", "ELU(0.7)", "CELU(1.3)", "SELU()", "GLU()", "GELU()", "GELU(approximate='tanh')",
    "Hardshrink(0.3)", "LeakyReLU(0.2)", "LogSigmoid()", "Softplus(2., 10.)", "Softshrink(0.3)", "PReLU()", "PReLU(4)", "Softsign()",
    "Tanhshrink()", "Softmin(dim=1)", "Softmax(dim=1)", "LogSoftmax(dim=0)")] + [case("nn.Softmax2d()", (2, 3, 4, 4))]

LINEAR = [
    case("nn.Identity(3, foo=2)", (2, 3)), case("nn.Linear(3, 4)", (2, 3)), case("nn.Linear(3, 4, bias=False)", (2, 5, 3)),
    case("nn.Bilinear(3, 4, 5)", (2, 3), (2, 4)), case("nn.Flatten()", (2, 3, 4)), case("nn.Unflatten(1, (2, 3))", (2, 6)),
    case("nn.Embedding(10, 3, padding_idx=-1)", ints(10, 2, 4)), case("nn.Embedding(10, 3, norm_type=3.0, sparse=False)", ints(10, 5)),
    case("nn.EmbeddingBag(10, 3, mode='sum')", ints(10, 2, 4)), case("nn.EmbeddingBag(10, 3)", ints(10, 6), np.array([0, 2, 5])),
]

CONV = [
    case("nn.Conv1d(4, 6, 3, stride=2, padding=1)", (2, 4, 9)), case("nn.Conv2d(4, 6, 3)", (2, 4, 6, 7)),
    case("nn.Conv2d(4, 6, (3, 2), padding=(2, 1), dilation=2, groups=2, bias=False)", (2, 4, 8, 8)),
    case("nn.Conv2d(4, 6, 3, padding='same', padding_mode='reflect')", (2, 4, 6, 7)),
    case("nn.Conv2d(4, 6, 3, padding=1, padding_mode='circular')", (2, 4, 6, 7)),
    case("nn.Conv2d(4, 6, 3, padding=1, padding_mode='replicate')", (4, 6, 7)),
    case("nn.Conv3d(2, 3, 2)", (1, 2, 4, 4, 4)), case("nn.ConvTranspose1d(4, 6, 3, stride=2)", (2, 4, 5)),
    case("nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2)", (2, 4, 5, 5)),
    case("nn.ConvTranspose3d(2, 3, 2)", (1, 2, 3, 3, 3)),
]

NORM = [
    case("nn.BatchNorm1d(4)", (5, 4)), case("nn.BatchNorm1d(4, momentum=None)", (5, 4, 3)), case("nn.BatchNorm2d(3, affine=False)", (4, 3, 5, 5)),
    case("nn.BatchNorm2d(3, track_running_stats=False)", (4, 3, 5, 5)), case("nn.BatchNorm2d(3)", (4, 3, 5, 5), eval_mode=True),
    case("nn.BatchNorm3d(2, eps=1e-3)", (2, 2, 3, 3, 3)),
    case("nn.InstanceNorm1d(3)", (2, 3, 5)), case("nn.InstanceNorm2d(3, affine=True)", (2, 3, 5, 5)),
    case("nn.InstanceNorm2d(3, track_running_stats=True)", (3, 5, 5)), case("nn.InstanceNorm3d(2)", (2, 2, 3, 3, 3)),
    case("nn.LayerNorm(4)", (2, 3, 4)),
    case("nn.LayerNorm((3, 4), bias=False)", (2, 3, 4)), case("nn.LayerNorm(4, elementwise_affine=False)", (2, 4)),
    case("nn.GroupNorm(2, 6)", (2, 6, 5)), case("nn.GroupNorm(3, 6, affine=False)", (2, 6, 2, 2)), case("nn.RMSNorm(4)", (2, 4)),
    case("nn.LocalResponseNorm(2)", (2, 5, 3, 3)),
]

POOL = [
    case("nn.MaxPool1d(2)", (2, 3, 8)),
    case("nn.MaxPool2d(3, stride=2, padding=1)", (2, 3, 8, 8)), case("nn.MaxPool2d(2, ceil_mode=True)", (2, 3, 5, 5)),
    case("nn.MaxPool2d(2, dilation=2)", (3, 7, 7)), case("nn.MaxPool3d(2)", (1, 2, 4, 4, 4)), case("nn.AvgPool1d(2)", (2, 3, 8)),
    case("nn.AvgPool2d((2, 3), padding=1)", (2, 3, 7, 7)), case("nn.AvgPool2d(2, divisor_override=3)", (2, 3, 6, 6)),
    case("nn.AvgPool3d(2, count_include_pad=False)", (1, 2, 4, 4, 4)), case("nn.LPPool1d(2, 3)", probabilities(2, 3, 9)),
    case("nn.LPPool2d(2, 3, stride=2)", probabilities(2, 3, 7, 7)), case("nn.LPPool3d(2, 2)", probabilities(1, 2, 4, 4, 4)),
    case("nn.AdaptiveAvgPool1d(3)", (2, 3, 8)),
    case("nn.AdaptiveAvgPool2d((3, None))", (2, 3, 8, 5)), case("nn.AdaptiveAvgPool3d(2)", (1, 2, 4, 5, 6)),
    case("nn.AdaptiveMaxPool1d(3)", (2, 3, 8)), case("nn.AdaptiveMaxPool2d((3, 2))", (2, 3, 8, 5)), case("nn.AdaptiveMaxPool3d(2)", (1, 2, 4, 5, 6)),
    case("nn.MaxPool2d(2, return_indices=True)", (2, 3, 6, 6)),
]

SHAPE = [
    *[case(f"nn.{kind}Pad{nd}d(1)", (2, 3, *(4, 5, 6)[:nd])) for kind in ("Zero", "Reflection", "Replication", "Circular") for nd in (1, 2, 3)],
    case("nn.ConstantPad1d((1, 2), 3.5)", (2, 3, 4)),
    case("nn.ConstantPad2d((1, 2, 0, -1), 3.5)", (2, 3, 4, 5)), case("nn.ConstantPad3d(1, 2.)", (1, 1, 2, 2, 2)),
    case("nn.PixelShuffle(2)", (1, 8, 2, 3)), case("nn.PixelUnshuffle(2)", (1, 2, 4, 6)), case("nn.ChannelShuffle(2)", (1, 4, 2, 2)),
    case("nn.Unfold((2, 3))", (2, 5, 3, 4)), case("nn.Fold((4, 5), (2, 2))", (1, 12, 12)), case("nn.Upsample(scale_factor=2)", (1, 2, 3, 3)),
    case("nn.Upsample(size=(5, 4), mode='bilinear')", (1, 2, 3, 3)), case("nn.UpsamplingBilinear2d(scale_factor=2)", (1, 2, 3, 3)),
    case("nn.UpsamplingNearest2d(size=4)", (1, 2, 3, 3)), case("nn.PairwiseDistance(keepdim=True)", (4, 3), (4, 3)),
    case("nn.CosineSimilarity()", (4, 3), (4, 3)),
]

LOSS = [
    *[case(f"nn.{name}(reduction='{how}')", (4, 3), (4, 3)) for name in ("L1Loss", "MSELoss", "SmoothL1Loss", "HuberLoss") for how in ("mean",
        "none")],
    case("nn.CrossEntropyLoss()", (4, 5), ints(5, 4)), case("nn.CrossEntropyLoss(label_smoothing=0.1, reduction='sum')", (4, 5, 3), ints(5, 4, 3)),
    case("nn.CrossEntropyLoss(ignore_index=2)", (6, 5), ints(5, 6)), case("nn.CrossEntropyLoss()", (4, 5), probabilities(4, 5)),
    case("nn.NLLLoss()", (4, 5), ints(5, 4)), case("nn.PoissonNLLLoss()", (4, 3), probabilities(4, 3)),
    case("nn.GaussianNLLLoss(full=True)", (4, 3), (4, 3), probabilities(4, 3)),
    case("nn.KLDivLoss(reduction='batchmean')", (4, 3), probabilities(4, 3)),
    case("nn.BCELoss()", probabilities(4, 3), probabilities(4, 3)), case("nn.BCEWithLogitsLoss()", (4, 3), probabilities(4, 3)),
    case("nn.HingeEmbeddingLoss()", (4, 3), signs(4, 3)), case("nn.MultiLabelMarginLoss()", (2, 4), np.array([[3, 0, -1, 1], [1, -1, 2, 0]])),
    case("nn.SoftMarginLoss()", (4, 3), signs(4, 3)), case("nn.MultiLabelSoftMarginLoss()", (4, 3), (signs(4, 3) + 1) / 2),
    case("nn.CosineEmbeddingLoss(0.1)", (4, 3), (4, 3), signs(4)), case("nn.MarginRankingLoss(0.2)", (4,), (4,), signs(4)),
    case("nn.MultiMarginLoss(p=2)", (4, 5), ints(5, 4)), case("nn.TripletMarginLoss(swap=True)", (4, 3), (4, 3), (4, 3)),
    case("nn.TripletMarginWithDistanceLoss(margin=0.5)", (4, 3), (4, 3), (4, 3)),
    case("nn.L1Loss(size_average=False)", (4, 3), (4, 3)), case("nn.MSELoss(reduce=False)", (4, 3), (4, 3)),
    case("nn.AdaptiveLogSoftmaxWithLoss(8, 20, [4, 8], div_value=2.)", (5, 8), ints(20, 5)),
]

RECURRENT = [
    case("nn.RNN(3, 4)", (5, 2, 3)), case("nn.RNN(3, 4, 2, nonlinearity='relu', bias=False)", (5, 2, 3), (2, 2, 4)),
    case("nn.RNN(3, 4, bidirectional=True)", (5, 3)), case("nn.LSTM(3, 4, 2, batch_first=True, bidirectional=True)", (2, 5, 3)),
    case("nn.LSTM(3, 4, proj_size=2, bidirectional=True, num_layers=2)", (5, 2, 3)),
    case("nn.LSTM(3, 4, num_layers=2, dropout=0.5)", (5, 2, 3), eval_mode=True),
    case("nn.GRU(3, 4, 2, bidirectional=True)", (5, 2, 3), (4, 2, 4)),
    case("nn.GRU(3, 4)", (5, 3)), case("nn.RNNCell(3, 4, nonlinearity='relu')", (2, 3)),
    case("nn.RNNCell(3, 4, bias=False)", (2, 3), (2, 4)), case("nn.LSTMCell(3, 4)", (2, 3)), case("nn.GRUCell(3, 4)", (3,)),
]

ATTENTION = [
    case("nn.MultiheadAttention(8, 2)", (5, 2, 8), (4, 2, 8), (4, 2, 8)),
    case("nn.MultiheadAttention(8, 2, batch_first=True, bias=False)", *[(2, 5, 8)] * 3),
    case("nn.MultiheadAttention(8, 2, kdim=3, vdim=5, add_bias_kv=True, add_zero_attn=True)", (5, 2, 8), (4, 2, 3), (4, 2, 5)),
    case("nn.TransformerEncoderLayer(8, 2, 16, dropout=0.)", (5, 2, 8)),
    case("nn.TransformerEncoderLayer(8, 2, 16, 0., 'gelu', norm_first=True, bias=False)", (5, 8)),
    case("nn.TransformerDecoderLayer(8, 2, 16, dropout=0., batch_first=True)", (2, 5, 8), (2, 4, 8)),
    case("nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, dropout=0.), 2, nn.LayerNorm(8))", (5, 2, 8)),
    case("nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16, dropout=0.), 2)", (5, 2, 8), (4, 2, 8)),
    case("nn.Transformer(8, 2, 1, 1, 16, dropout=0.)", (5, 2, 8), (4, 2, 8)),
]

DROPOUT = [case(f"nn.{name}(0.3)", shape, eval_mode=True) for name, shape in (
    ("Dropout", (3, 4)), ("Dropout1d", (2, 3, 4)), ("Dropout2d", (2, 3, 4, 4)), ("Dropout3d", (1, 2, 3, 3, 3)), ("AlphaDropout", (3, 4)),
    ("FeatureAlphaDropout", (2, 3, 4)))] + [case("nn.Dropout(0.)", (3, 4))]

CASES = ACTIVATIONS + LINEAR + CONV + NORM + POOL + SHAPE + LOSS + RECURRENT + ATTENTION + DROPOUT


def arrays(inputs):
    rng = np.random.default_rng(0)
    return [x if isinstance(x, np.ndarray) else rng.standard_normal(x).astype(np.float32) for x in inputs]


def tensors(lib, values, grad_on_all=True):
    made = [lib.tensor(v) for v in values]
    for t in made:
        if t.is_floating_point() and grad_on_all:
            t.requires_grad_()
    return made


def flat(out):
    """The tensors of an output, in order."""
    if out is None:
        return []
    return [t for part in out for t in flat(part)] if isinstance(out, tuple) else [out]


def to_numpy(t):
    return t.detach().cpu().numpy()


def build(expr):
    """The layer in both libraries with the same state."""
    theirs = eval(expr, {"nn": torch.nn})
    ours = eval(expr, {"nn": nn})
    assert repr(ours) == repr(theirs)
    assert {k: tuple(v.shape) for k, v in ours.state_dict().items()} == {k: tuple(v.shape) for k, v in theirs.state_dict().items()}
    assert list(ours.state_dict()) == list(theirs.state_dict())
    ours.load_state_dict({k: clnn.tensor(v.numpy()) for k, v in theirs.state_dict().items()})
    return ours, theirs


def run(lib, layer, values, inputs_need_grad):
    made = tensors(lib, values, inputs_need_grad)
    outputs = flat(layer(*made))
    floats = [o for o in outputs if o.is_floating_point() and o.requires_grad]
    if floats:
        rng = np.random.default_rng(7)
        weights = [lib.tensor(rng.standard_normal(tuple(o.shape)).astype(np.float32)) for o in floats]
        sum((o * w).sum() for o, w in zip(floats, weights)).backward()
    grads = [t.grad for t in made] + [p.grad for p in layer.parameters()]
    return [to_numpy(o) for o in outputs], [None if g is None else to_numpy(g) for g in grads]


@pytest.mark.share(2)
@pytest.mark.parametrize("expr, inputs, eval_mode, atol", CASES)
def test_layer_equals_torch(expr, inputs, eval_mode, atol):
    ours, theirs = build(expr)
    if eval_mode:
        ours.eval(), theirs.eval()
    values = arrays(inputs)
    grad_inputs = "Loss" not in expr or "Embedding" in expr
    got, got_grads = run(clnn, ours, values, grad_inputs)
    want, want_grads = run(torch, theirs, values, grad_inputs)
    assert len(got) == len(want)
    for a, b in zip(got, want):
        np.testing.assert_allclose(a, b, atol=atol, rtol=1e-4)
    for a, b in zip(got_grads, want_grads):
        assert (a is None) == (b is None)
        if a is not None:
            np.testing.assert_allclose(a, b, atol=10 * atol, rtol=1e-3)
    for (name, a), b in zip(ours.state_dict().items(), theirs.state_dict().values()):
        np.testing.assert_allclose(to_numpy(a), b.numpy(), atol=atol, rtol=1e-4, err_msg=name)


NOT_OFFERED = {"Container", "LinearCrossEntropyLoss"}
FREE_FORM = {"RNN", "LSTM", "GRU"}  # PyTorch takes *args there
LAYERS = sorted(name for name, kind in vars(torch.nn).items() if inspect.isclass(kind) and issubclass(kind, torch.nn.Module))


@pytest.mark.parametrize("name", [n for n in LAYERS if n not in NOT_OFFERED])
def test_constructor_arguments_equal_torch(name):
    if name in FREE_FORM:
        return
    wanted = [p for p in inspect.signature(getattr(torch.nn, name).__init__).parameters.values() if p.name not in ("args", "kwargs")]
    got = [p for p in inspect.signature(getattr(nn, name).__init__).parameters.values() if p.name not in ("args", "kwargs")]
    if name.startswith("LazyConv"):  # the mixin forwards the rest by position
        return
    assert [p.name for p in got] == [p.name for p in wanted]
    for a, b in zip(got, wanted):
        if not callable(b.default):
            assert a.default == b.default, a.name


LAZY = [("nn.LazyLinear(4)", (2, 3)), ("nn.LazyConv1d(4, 3)", (2, 3, 5)), ("nn.LazyConv2d(4, 3, 2, 1, 1, 1, False)", (2, 3, 5, 5)),
        ("nn.LazyConv3d(4, 2)", (1, 3, 4, 4, 4)), ("nn.LazyConvTranspose1d(4, 3)", (2, 3, 5)), ("nn.LazyConvTranspose2d(4, 3, 2, 0, 1)", (2, 3, 5,
        5)),
        ("nn.LazyConvTranspose3d(4, 2)", (1, 3, 3, 3, 3)), ("nn.LazyBatchNorm1d()", (4, 3)), ("nn.LazyBatchNorm2d(affine=False)", (2, 3, 4, 4)),
        ("nn.LazyBatchNorm3d(track_running_stats=False)", (2, 3, 2, 2, 2)), ("nn.LazyInstanceNorm2d(affine=True)", (2, 3, 4, 4)),
        ("nn.LazyInstanceNorm1d()", (2, 3, 4)), ("nn.LazyInstanceNorm3d(affine=True, track_running_stats=True)", (2, 3, 2, 2, 2))]


@pytest.mark.parametrize("expr, shape", LAZY)
def test_lazy_layers(expr, shape):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs, ours = eval(expr, {"nn": torch.nn}), eval(expr, {"nn": nn})
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    theirs(torch.tensor(x)), ours(clnn.tensor(x))
    assert repr(ours) == repr(theirs) and type(ours).__name__ == type(theirs).__name__
    ours.load_state_dict({k: clnn.tensor(v.numpy()) for k, v in theirs.state_dict().items()})
    np.testing.assert_allclose(to_numpy(ours(clnn.tensor(x))), to_numpy(theirs(torch.tensor(x))), atol=1e-5, rtol=1e-4)


def test_lazy_layer_loads_a_state_dict_before_the_first_call():
    lazy, source = nn.LazyLinear(4), nn.Linear(3, 4)
    lazy.load_state_dict(source.state_dict())
    assert tuple(lazy.weight.shape) == (4, 3)
    with pytest.raises(RuntimeError, match="uninitialized"):
        nn.LazyLinear(4).weight.shape


ERRORS = [("nn.Conv2d(3, 4, 3, groups=2)", "in_channels must be divisible by groups"), ("nn.Conv2d(4, 3, 3, groups=2)",
    "out_channels must be divisible"),
          ("nn.Conv2d(3, 4, 3, padding='same', stride=2)", "not supported for strided"), ("nn.Conv2d(3, 4, 3, padding='full')",
          "Invalid padding string"),
          ("nn.Conv2d(3, 4, 3, padding_mode='odd')", "padding_mode must be one of"), ("nn.Dropout(1.5)", "has to be between 0 and 1"),
          ("nn.GroupNorm(2, 3)", "must be divisible"), ("nn.LSTM(3, 0)", "greater than zero"), ("nn.LSTM(3, 4, proj_size=5)",
          "smaller than hidden_size"),
          ("nn.GRU(3, 4, dropout=2)", "dropout should be a number"), ("nn.MultiMarginLoss(p=3)", "only p == 1 and p == 2"),
          ("nn.TripletMarginLoss(margin=-1)", "greater than 0"), ("nn.FractionalMaxPool2d(2)", "requires specifying either"),
          ("nn.AdaptiveLogSoftmaxWithLoss(8, 20, [8, 4])", "cutoffs should be"), ("nn.Bilinear(0, 2, 3)", "must be > 0")]


@pytest.mark.parametrize("expr, text", ERRORS)
def test_constructor_errors_equal_torch(expr, text):
    with pytest.raises(Exception, match=text) as ours:
        eval(expr, {"nn": nn})
    with pytest.raises(Exception, match=text) as theirs:
        eval(expr, {"nn": torch.nn})
    assert ours.type is theirs.type


@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
def test_inputs_of_recurrent_layers_have_two_or_three_dimensions(name):
    said = []
    for lib in (clnn, torch):
        with pytest.raises(ValueError) as caught:
            getattr(lib.nn, name)(3, 4)(lib.ones(2, 2, 2, 3))
        said.append(str(caught.value))
    assert said[0] == said[1]


def packed(lib, x, lengths, **kwargs):
    return lib.nn.utils.rnn.pack_padded_sequence(lib.tensor(x), lengths, **kwargs)


@pytest.mark.parametrize("expr", ["nn.RNN(3, 4, 2, bidirectional=True)", "nn.LSTM(3, 4, bidirectional=True)", "nn.GRU(3, 4, 2)"])
@pytest.mark.parametrize("lengths, enforce", [([5, 3, 3, 1], True), ([1, 5, 3, 2], False)])
def test_packed_sequences_equal_torch(expr, lengths, enforce):
    ours, theirs = build(expr)
    x = np.random.default_rng(0).standard_normal((5, 4, 3)).astype(np.float32)
    results = []
    for lib, layer in ((clnn, ours), (torch, theirs)):
        sequence = packed(lib, x, lengths, enforce_sorted=enforce)
        out, state = layer(sequence)
        padded, sizes = lib.nn.utils.rnn.pad_packed_sequence(out, batch_first=True, padding_value=-1., total_length=6)
        assert sizes.tolist() == lengths
        padded.sum().backward()
        results.append([to_numpy(t) for t in (sequence.data, padded, *flat(state), *[p.grad for p in layer.parameters()])])
    for a, b in zip(*results):
        np.testing.assert_allclose(a, b, atol=2e-5, rtol=1e-3)


@pytest.mark.parametrize("name", ["attn_mask", "key_padding_mask", "float"])
def test_attention_masks_equal_torch(name):
    ours, theirs = build("nn.MultiheadAttention(8, 2)")
    x = np.random.default_rng(0).standard_normal((5, 2, 8)).astype(np.float32)
    masks = {"attn_mask": np.triu(np.ones((5, 5), bool), 1), "key_padding_mask": np.array([[0, 0, 0, 1, 1], [0, 0, 0, 0, 1]], bool),
             "float": np.random.default_rng(1).standard_normal((5, 5)).astype(np.float32)}
    key = "attn_mask" if name == "float" else name
    for extra in ({}, {"need_weights": False}, {"average_attn_weights": False}):
        got = flat(ours(*[clnn.tensor(x)] * 3, **{key: clnn.tensor(masks[name])}, **extra))
        want = flat(theirs(*[torch.tensor(x)] * 3, **{key: torch.tensor(masks[name])}, **extra))
        assert len(got) == len(want)
        for a, b in zip(got, want):
            np.testing.assert_allclose(to_numpy(a), to_numpy(b), atol=2e-5, rtol=1e-4)


def test_adaptive_softmax_log_prob_and_predict():
    ours, theirs = build("nn.AdaptiveLogSoftmaxWithLoss(8, 20, [4, 8], div_value=2., head_bias=True)")
    x = np.random.default_rng(0).standard_normal((6, 8)).astype(np.float32)
    np.testing.assert_allclose(to_numpy(ours.log_prob(clnn.tensor(x))), to_numpy(theirs.log_prob(torch.tensor(x))), atol=1e-5)
    assert ours.predict(clnn.tensor(x)).tolist() == theirs.predict(torch.tensor(x)).tolist()


def test_transposed_convolution_output_size():
    layer = nn.ConvTranspose2d(2, 3, 3, stride=2, padding=1)
    assert tuple(layer(clnn.zeros(1, 2, 4, 4), output_size=(8, 7)).shape) == (1, 3, 8, 7)
    with pytest.raises(ValueError, match="requested an output size"):
        layer(clnn.zeros(1, 2, 4, 4), output_size=(9, 9))


def test_max_unpool_undoes_max_pool():
    x = clnn.tensor(np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4))
    out, indices = nn.MaxPool2d(2, return_indices=True)(x)
    assert nn.MaxUnpool2d(2)(out, indices).sum().item() == out.sum().item()


def test_dropout_in_training_keeps_the_mean():
    out = nn.Dropout(0.25)(clnn.ones(200, 200))
    assert abs(out.mean().item() - 1) < 0.03
    np.testing.assert_allclose(np.unique(to_numpy(out)), [0, 4 / 3], rtol=1e-6)


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy", "soft_margin_loss",
                                  "binary_cross_entropy_with_logits"])
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_losses_show_torchs_grad_fn(name, reduction):
    shown = [getattr(lib.nn.functional, name)(lib.full((2, 3), 0.5, requires_grad=True), lib.ones(2, 3), reduction=reduction).grad_fn.name()
             for lib in (clnn, torch)]
    assert shown[0] == shown[1] or name == "l1_loss" and reduction == "none"


@pytest.mark.parametrize("x, y, text", [(1.5, 1.0, "input"), (-0.5, 1.0, "input"), (float("nan"), 1.0, "input"), (0.5, 2.0, "target")])
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_bce_wants_values_between_0_and_1(x, y, text, reduction):
    for lib in (clnn, torch):
        values = lib.full((70, 3), 0.5)
        values[3, 2] = x
        with pytest.raises(RuntimeError, match=f"all elements of {text} should be between 0 and 1"):
            lib.nn.BCELoss(reduction=reduction)(values, lib.full((70, 3), y)).sum().item()
    assert clnn.nn.BCELoss()(clnn.tensor([0.0, 1.0]), clnn.tensor([0.0, 1.0])).item() == 0.0


def test_uninitialized_parameters_refuse_to_be_used():
    for lib in (clnn, torch):
        layer = lib.nn.LazyLinear(3)
        for use in (lambda p: p + 1, lambda p: p.numel(), lambda p: p.sum(), lambda p: p.zero_(), lambda p: p[0]):
            with pytest.raises(ValueError, match="Attempted to use an uninitialized parameter"):
                use(layer.weight)
        with pytest.raises(RuntimeError, match="Can't access the shape") as seen:
            layer.weight.shape
        assert seen.typename == "RuntimeError"
        assert layer.half().weight.dtype is lib.float16


def test_gradients_of_convolutions_by_hand():
    results = []
    for lib in (clnn, torch):
        x = (lib.arange(2 * 2 * 5, dtype=lib.float32).reshape(2, 2, 5) * 0.7).sin()
        w = (lib.arange(4 * 1 * 3, dtype=lib.float32).reshape(4, 1, 3) * 0.3).cos()
        g = lib.ones(2, 4, 3)
        options = dict(stride=2, padding=1, groups=2)
        results.append([lib.nn.grad.conv1d_input(x.shape, w, g, **options).flatten().tolist(),
                        lib.nn.grad.conv1d_weight(x, w.shape, g, **options).flatten().tolist()])
        again = lib.nn.grad.conv1d_input(x.shape, w.requires_grad_(), g, **options)
        results[-1] += [lib.autograd.grad((again ** 2).sum(), w)[0].flatten().tolist(), [float(lib.nn.grad.conv1d_weight(x, w.shape, g, **options).requires_grad)]]
    for ours, theirs in zip(*results):
        assert ours == pytest.approx(theirs, abs=1e-5)


@pytest.mark.parametrize("name, base", [("ZeroPad2d", "padding.ConstantPad2d"), ("AvgPool1d", "pooling._AvgPoolNd"), ("Conv2d", "conv._ConvNd"),
                                        ("ConvTranspose1d", "conv._ConvTransposeNd"), ("MaxPool3d", "pooling._MaxPoolNd"), ("LSTM", "rnn.RNNBase"),
                                        ("SyncBatchNorm", "batchnorm._BatchNorm"), ("Dropout2d", "dropout._DropoutNd"), ("BCELoss", "loss._WeightedLoss"),
                                        ("LazyConv2d", "lazy.LazyModuleMixin"), ("InstanceNorm1d", "batchnorm._NormBase")])
def test_base_classes_equal_torch(name, base):
    """Programs ask isinstance for these."""
    for lib in (clnn, torch):
        found = lib.nn.modules
        for part in base.split("."):
            found = getattr(found, part)
        assert issubclass(getattr(lib.nn, name), found)


def test_linear_cross_entropy_loss():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((4, 3)).astype(np.float32), rng.integers(0, 5, (4, 2))
    weight, bias = rng.standard_normal((10, 3)).astype(np.float32), rng.standard_normal(10).astype(np.float32)
    got = []
    for m in (clnn, torch):
        loss = m.nn.LinearCrossEntropyLoss(3, 5, out_features=(2,), bias=True, weight=m.ones(5) * 2, label_smoothing=0.1)
        with m.no_grad():
            loss.linear.weight.copy_(m.tensor(weight))
            loss.linear.bias.copy_(m.tensor(bias))
        value = loss(m.tensor(x), m.tensor(y))
        value.backward()
        got.append([value.tolist(), loss.linear.weight.grad.tolist(), sorted(loss.state_dict())])
    assert got[0][2] == got[1][2]
    for a, b in zip(got[0][:2], got[1][:2]):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    with pytest.raises(RuntimeError, match="weight shape"):
        nn.LinearCrossEntropyLoss(3, 5, weight=clnn.ones(4))


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "huber_loss"])
def test_weights_of_elements_average_as_in_torch(name):
    x, w = np.array([[0.5, -2.0], [3.0, 0.1]], "f4"), np.array([[1.0, 2.0], [0.5, 4.0]], "f4")
    got = getattr(nn.functional, name)(clnn.tensor(x), clnn.zeros(2, 2), weight=clnn.tensor(w))
    want = getattr(torch.nn.functional, name)(torch.tensor(x), torch.zeros(2, 2), weight=torch.tensor(w))
    np.testing.assert_allclose(got.item(), want.item(), rtol=1e-6)


def test_constants_bases_and_signatures_are_pytorchs():
    import inspect
    torch = pytest.importorskip("torch")
    for name, theirs in vars(torch.nn).items():
        mine = getattr(nn, name, None)
        if isinstance(theirs, type) and issubclass(theirs, torch.nn.Module) and mine is not None:
            if hasattr(theirs, "__constants__"):
                assert mine.__constants__ == theirs.__constants__, name
            if name.startswith("Lazy"):
                public = [[b.__name__ for b in cls.__mro__ if hasattr(nn, b.__name__)] for cls in (mine, theirs)]
                assert public[0] == public[1]
                args = [[(p.name, p.default) for p in inspect.signature(cls).parameters.values()] for cls in (mine, theirs)]
                assert args[0] == args[1] or "Norm" in name, name
    layer = nn.LazyConvTranspose2d(4, 3, 2, 1, 1, 2, False)
    assert layer(clnn.ones(1, 4, 5, 5)).shape == (1, 4, 10, 10) and layer.bias is None and type(layer) is nn.ConvTranspose2d


def test_a_subclass_of_parameters_is_printed():
    for m in (clnn, pytest.importorskip("torch")):
        class Weight(m.nn.Parameter):
            pass
        assert repr(Weight(m.ones(2))) == "Parameter containing:\nParameter(Weight([1., 1.], requires_grad=True))"
