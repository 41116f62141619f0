"""``__torch_dispatch__``: classes of tensors without memory, and modes, are asked for the operators below autograd."""
import copy
import math

import pytest

import clnn
from clnn import library, nn
from clnn._ops import OpOverload
from clnn.nn import functional as F
from clnn.utils._python_dispatch import TorchDispatchMode, is_traceable_wrapper_subclass
from clnn.utils._pytree import tree_map

aten = clnn.ops.aten
LOG = []


class Logging(clnn.Tensor):
    """Holds another tensor and notes each operator."""

    __slots__ = ["elem"]

    @staticmethod
    def __new__(cls, elem, requires_grad=False):
        t = clnn.Tensor._make_wrapper_subclass(cls, elem.size(), strides=elem.stride(), dtype=elem.dtype, device=elem.device, requires_grad=requires_grad)
        t.elem = elem
        return t

    def __repr__(self):
        return super().__repr__(tensor_contents=f"{self.elem}")

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        LOG.append(str(func))
        bare = lambda t: t.elem if isinstance(t, cls) else t          # noqa: E731
        return tree_map(lambda t: cls(t) if isinstance(t, clnn.Tensor) else t, func(*tree_map(bare, args), **tree_map(bare, kwargs or {})))


class Scaled(clnn.Tensor):
    """Small integers and a factor: knows four operators and no others."""

    @staticmethod
    def __new__(cls, whole, scale):
        return clnn.Tensor._make_wrapper_subclass(cls, whole.shape, dtype=clnn.float32, device=whole.device)

    def __init__(self, whole, scale):
        self.whole, self.scale = whole, scale

    def __tensor_flatten__(self):
        return ["whole"], self.scale

    @staticmethod
    def __tensor_unflatten__(inner, scale, size, stride):
        return Scaled(inner["whole"], scale)

    @classmethod
    def __torch_dispatch__(cls, func, types, args, kwargs=None):
        if func is aten.detach.default:
            return cls(args[0].whole, args[0].scale)
        if func is aten.t.default:
            return cls(args[0].whole.t(), args[0].scale)
        if func in (aten.mm.default, aten.addmm.default):
            return func(*[a.whole.float() * a.scale if isinstance(a, Scaled) else a for a in args])
        if func.overloadpacket is aten.mul:
            return cls(args[0].whole, args[0].scale * args[1])
        return NotImplemented


class Names(TorchDispatchMode):
    """Notes each operator."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


def held(values):
    return Logging(clnn.tensor(values))


def names(call):
    LOG.clear()
    result = call()
    return result, list(LOG)


def test_instances_have_shape_and_dtype_but_no_memory():
    x = held([[1.0, 2.0], [3.0, 4.0]])
    assert (x.shape, x.dtype, x.stride(), x.is_leaf, x.requires_grad, x.numel()) == ((2, 2), clnn.float32, (2, 1), True, False, 4)
    assert repr(x) == "Logging(tensor([[1., 2.],\n        [3., 4.]]))"
    with pytest.raises(RuntimeError, match="doesn't have storage"):
        x.data_ptr()
    with pytest.raises(RuntimeError, match="not supported for tensor subclasses"):
        x.tolist()


@pytest.mark.parametrize("call, expected", [
    (lambda x: x + 1, ["aten.add.Tensor"]), (lambda x: clnn.add(x, x, alpha=2), ["aten.add.Tensor"]), (lambda x: 1 - x, ["aten.rsub.Scalar"]),
    (lambda x: x ** 2, ["aten.pow.Tensor_Scalar"]), (lambda x: F.relu(x), ["aten.relu.default"]), (lambda x: x.sum(), ["aten.sum.default"]),
    (lambda x: x.mean(-1), ["aten.mean.dim"]), (lambda x: x @ x.t(), ["aten.t.default", "aten.mm.default"]),
    (lambda x: x[0, 1:], ["aten.select.int", "aten.slice.Tensor"]), (lambda x: x.reshape(-1), ["aten.view.default"]),
    (lambda x: clnn.cat([x, x]), ["aten.cat.default"]), (lambda x: x.softmax(1), ["aten._softmax.default"]), (lambda x: x.clone(), ["aten.clone.default"]),
    (lambda x: x.to(clnn.float16), ["aten._to_copy.default"]), (lambda x: x.clone().add_(1), ["aten.clone.default", "aten.add_.Tensor"]),
    (lambda x: x.clone().copy_(x), ["aten.clone.default", "aten.copy_.default"]), (lambda x: clnn.zeros_like(x), ["aten.zeros_like.default"]),
    (lambda x: x.topk(1), ["aten.topk.default"]), (lambda x: F.linear(x, x, x[0]), ["aten.select.int", "aten.t.default", "aten.addmm.default"]),
    (lambda x: copy.deepcopy(x), ["aten.clone.default"])])
def test_operators_are_told_by_their_names_in_aten(call, expected):
    plain = clnn.tensor([[1.0, 2.0], [3.0, 5.0]])
    got, log = names(lambda: call(Logging(plain)))
    assert log == expected
    want = call(plain)
    for a, b in zip(got if isinstance(got, tuple) else (got,), want if isinstance(want, tuple) else (want,)):
        assert type(a) is Logging and a.elem.tolist() == b.tolist()


def test_gradients_are_of_the_same_class_and_right():
    w, b = Logging(clnn.tensor([[0.5, -1.0]]), requires_grad=True), nn.Parameter(held([0.25]))
    x = held([[1.0, 2.0], [3.0, -1.0]])
    F.linear(x, w, b).tanh().pow(2).mean().backward()
    w2, b2 = w.elem.clone().requires_grad_(), b.elem.clone().requires_grad_()
    F.linear(x.elem, w2, b2).tanh().pow(2).mean().backward()
    assert type(w.grad) is Logging and clnn.allclose(w.grad.elem, w2.grad) and clnn.allclose(b.grad.elem, b2.grad)
    (second,) = clnn.autograd.grad(clnn.autograd.grad((w ** 3).sum(), w, create_graph=True)[0].sum(), w)
    assert clnn.allclose(second.elem, 6 * w.elem)


def test_views_and_in_place_operators_keep_their_history():
    w = Logging(clnn.tensor([1.0, 2.0, 3.0]), requires_grad=True)
    v = (w * 2)[1:]
    v.mul_(3)
    v.exp().sum().backward()
    assert clnn.allclose(w.grad.elem, clnn.tensor([0.0, 6.0, 6.0]) * (w.elem * 6).exp())
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        w.add_(1)


def test_a_parameter_of_such_a_class_is_trained():
    w = nn.Parameter(held([1.0, -2.0]))
    assert isinstance(w, nn.Parameter) and type(w) is Logging and repr(w) == "Parameter(Logging(tensor([ 1., -2.]), requires_grad=True))"
    step = clnn.optim.SGD([w], lr=0.1, momentum=0.9)
    for _ in range(2):
        step.zero_grad()
        (w * w).sum().backward()
        step.step()
    assert clnn.allclose(w.elem, clnn.tensor([0.46, -0.92]))


def test_what_a_class_does_not_know_is_an_error_that_names_it():
    q = Scaled(clnn.tensor([[1, 2], [3, -4]], dtype=clnn.int8), 0.5)
    x = clnn.tensor([[2.0, 1.0]], requires_grad=True)
    y = F.linear(x, q, clnn.ones(2))
    assert type(y) is clnn.Tensor and y.tolist() == [[3.0, 2.0]] and (q * 2).scale == 1.0
    y.sum().backward()
    assert x.grad.tolist() == [[2.0, -1.0]]
    with pytest.raises(TypeError, match="aten.exp.default"):
        q.exp()
    assert is_traceable_wrapper_subclass(q) and not is_traceable_wrapper_subclass(x)


def test_a_class_that_asks_its_base_computes_with_the_memory_it_was_made_of():
    class Old(clnn.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            LOG.append(func.__name__)
            return super().__torch_dispatch__(func, types, args, kwargs)

    got, log = names(lambda: clnn.Tensor._make_subclass(Old, clnn.ones(2)) + 1)
    assert type(got) is clnn.Tensor and got.tolist() == [2.0, 2.0] and log == ["add.Tensor"]


def test_a_mode_sees_forward_and_backward():
    x, w = clnn.tensor([[1.0, 2.0]]), clnn.tensor([[0.5, -1.0]], requires_grad=True)
    with Names() as mode:
        loss = (F.linear(x, w) ** 2).sum()
        ahead = list(mode.names)
        loss.backward()
    assert ahead == ["aten.t.default", "aten.mm.default", "aten.pow.Tensor_Scalar", "aten.sum.default"]
    assert "aten.mm.default" in mode.names[len(ahead):] and w.grad.tolist() == [[-3.0, -6.0]]
    count = len(mode.names)
    assert (x + 1).tolist() == [[2.0, 3.0]] and len(mode.names) == count


@pytest.mark.parametrize("options", [{}, {"label_smoothing": 0.1}, {"reduction": "none"}], ids=["mean", "smooth", "none"])
def test_a_mode_sees_what_cross_entropy_is_made_of(options):
    x, classes = clnn.arange(6.0).view(2, 3).requires_grad_(), clnn.tensor([0, 2])
    expected = F.cross_entropy(x, classes, **options)
    want, = clnn.autograd.grad(expected.sum(), x)
    with Names() as mode:
        got = F.cross_entropy(x, classes, **options)
        grad, = clnn.autograd.grad(got.sum(), x)
    assert "aten._log_softmax.default" in mode.names and "aten._log_softmax_backward_data.default" in mode.names
    assert clnn.allclose(got, expected) and clnn.allclose(grad, want)


@pytest.mark.parametrize("shapes", [((1, 2, 8, 4), (1, 2, 4, 8)), ((2, 1, 3, 4), (3, 4, 5)), ((2, 3, 4), (2, 4, 5))])
def test_a_mode_sees_products_of_stacks_of_one_dimension(shapes):
    a, b = clnn.arange(64.0)[:math.prod(shapes[0])].view(shapes[0]).requires_grad_(), clnn.arange(64.0)[:math.prod(shapes[1])].view(shapes[1]).requires_grad_()
    expected = a @ b
    want = clnn.autograd.grad(expected.square().sum(), (a, b))
    with Names() as mode:
        got = a @ b
        grads = clnn.autograd.grad(got.square().sum(), (a, b))
    assert mode.names.count("aten.bmm.default") == 3 and clnn.equal(got, expected) and all(map(clnn.allclose, grads, want))


def test_modes_nest_and_can_change_results():
    class Twice(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            return result * 2 if func is aten.add.Tensor else result

    x = clnn.tensor([1.0, 2.0])
    with Names() as outer, Names() as inner:
        x.exp()
        clnn.zeros(2).add_(1)
        x.double()
    assert outer.names == inner.names == ["aten.exp.default", "aten.zeros.default", "aten.add_.Tensor", "aten._to_copy.default"]
    with Twice():
        assert (x + 1).tolist() == [4.0, 6.0]
    with pytest.raises(NotImplementedError), TorchDispatchMode():
        x + 1
    assert (x + 1).tolist() == [2.0, 3.0]


@pytest.mark.parametrize("call, expected", [
    (lambda x: x.view(-1), "view.default"), (lambda x: x.view(2, 3), "view.default"), (lambda x: x.reshape(6), "view.default"), (lambda x: x[:], "slice.Tensor"),
    (lambda x: x[0:2], "slice.Tensor"), (lambda x: x.narrow(0, 0, 2), "slice.Tensor"), (lambda x: x[...][0][:, None], "alias.default select.int unsqueeze.default"),
    (lambda x: x.flatten(), "view.default"), (lambda x: x.view_as(x), "view.default"), (lambda x: x.as_strided((3,), (2,)), "as_strided.default"),
    (lambda x: x.as_strided((3,), (2,), 1), "as_strided.default"), (lambda x: x.view(x.dtype), "view.dtype"), (lambda x: x.unflatten(0, (2, 1)), "view.default")])
def test_a_mode_sees_views_of_the_whole(call, expected):
    x = clnn.arange(6.0).reshape(2, 3)
    with Names() as mode:
        got = call(x)
    assert got is not x and got.data_ptr() - 4 * got.storage_offset() == x.data_ptr() and [n[5:] for n in mode.names] == expected.split()


def test_custom_operators_are_told_too():
    @library.custom_op("dispatch_test::half", mutates_args=())
    def half(x: clnn.Tensor) -> clnn.Tensor:
        return x / 2

    x = held([2.0, 4.0])
    got, log = names(lambda: half(x))
    assert type(got) is Logging and got.elem.tolist() == [1.0, 2.0] and log == ["dispatch_test.half.default"]
    half.register_torch_dispatch(Logging, lambda func, types, args, kwargs: "mine")
    half.register_torch_dispatch(Names, lambda mode, func, types, args, kwargs: mode.names)
    assert half(x) == "mine"
    with Names() as mode:
        assert half(clnn.ones(1)) is mode.names


def test_overloads_are_told_apart():
    assert aten.add.Tensor is aten.add.Tensor and aten.add.Tensor is not aten.add.Scalar and aten.add.Tensor.overloadpacket is aten.add
    assert aten.add.Tensor._overloadpacket is aten.add and aten.add._qualified_op_name == "aten::add" and aten.mm.default._name == "aten::mm"
    assert str(aten.add.Tensor) == "aten.add.Tensor" and aten.add.Tensor.name() == "aten::add.Tensor" and aten.mm.default.__name__ == "mm.default"
    assert isinstance(aten.mm.default, OpOverload)


def test_parameters_of_a_class_are_swapped():
    """A class may get its ``__torch_function__`` later, and say by it what is loaded in its place."""
    class Kept(Scaled):
        __slots__ = ()

    def loads(cls, func, types, args=(), kwargs=None):
        if func is clnn.Tensor.module_load:
            return Kept(args[1], args[0].scale)
        with clnn._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))

    Kept.__torch_function__ = classmethod(loads)
    layer, values = nn.Linear(3, 2), nn.Linear(3, 2).state_dict()
    layer.weight = nn.Parameter(Kept(layer.weight.detach(), 0.5))
    before = id(layer.weight), id(layer.bias)
    clnn.__future__.set_swap_module_params_on_conversion(True)
    try:
        for assign in (False, True):
            layer.load_state_dict(values, assign=assign)
            assert (id(layer.weight), id(layer.bias)) == before and type(layer.weight.data) is Kept and layer.weight.scale == 0.5
            assert layer.weight.whole.tolist() == values["weight"].tolist() and layer.bias.tolist() == values["bias"].tolist()
            assert layer.weight.requires_grad and layer.bias.requires_grad
        with pytest.raises(RuntimeError, match="While swapping the parameter named \"bias\".*module_load returned one of self or other"):
            plain = nn.Linear(3, 2)
            plain.load_state_dict({"weight": values["weight"], "bias": values["bias"].as_subclass(Returned)})
    finally:
        clnn.__future__.set_swap_module_params_on_conversion(False)


class Returned(clnn.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return args[1] if func is clnn.Tensor.module_load else super().__torch_function__(func, types, args, kwargs or {})


def _filled(t):
    """The operators of aten that fills with random numbers are."""
    names, x = [], t.ones(3)

    class Names(t.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            names.append(str(func))
            return func(*args, **(kwargs or {}))
    with Names():
        x.normal_(), x.uniform_(1, 2), x.exponential_(), x.geometric_(0.5), x.cauchy_(), x.log_normal_(), x.random_(), x.random_(5), x.random_(1, to=3)
        x.bernoulli_(), x.bernoulli_(0.3), x.bernoulli_(x), t.normal(x, 1.0), t.normal(x, std=x), t.normal(1.0, x), t.normal(0.0, 1.0, (2,)), t.poisson(x)
        t.nn.init.normal_(x)
    return names


def test_modes_see_random_fills():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0), clnn.manual_seed(0)
    assert _filled(clnn) == _filled(torch)
