"""Module, containers and state dictionaries: every scenario gives the same result, or the same error, as in PyTorch."""
import copy
import pickle
from collections import OrderedDict

import numpy as np
import pytest

import clnn
from clnn.nn.parameter import Buffer, Parameter
from scenarios import assert_same, net, outcome, torch

pytestmark = pytest.mark.filterwarnings("ignore")

SCENARIOS = []


def scenario(fn):
    SCENARIOS.append(fn)
    return fn


@scenario
def repr_of_nested(lib):
    return repr(net(lib))


@scenario
def state_dict_content(lib):
    sd = net(lib).state_dict(prefix="m.")
    return list(sd.items()), {k: dict(v) for k, v in sd._metadata.items()}


@scenario
def state_dict_keep_vars(lib):
    return [v.requires_grad for v in net(lib).state_dict(keep_vars=True).values()]


@scenario
def traversal(lib):
    m = net(lib)
    m.again = m.fc
    return [[n for n, _ in m.named_parameters()], [n for n, _ in m.named_parameters(remove_duplicate=False)], [n for n, _ in m.named_buffers()],
            [n for n, _ in m.named_modules()], [n for n, _ in m.named_modules(remove_duplicate=False)], [n for n, _ in m.named_children()],
            [n for n, _ in m.named_parameters(prefix="p", recurse=False)], len(list(m.modules())), len(list(m.parameters())), len(list(m.buffers()))]


@scenario
def access_by_path(lib):
    m = net(lib)
    return m.get_parameter("fc.weight"), m.get_buffer("seen"), repr(m.get_submodule("block.1")), m.get_submodule("") is m


for bad in ("m.get_parameter('fc')", "m.get_parameter('fc.foo')", "m.get_buffer('fc.weight')", "m.get_submodule('fc.weight')",
    "m.get_submodule('x.y')",
            "m.missing", "m.register_buffer('fc', None)", "m.register_buffer('a.b', None)", "m.register_buffer('', None)",
            "m.register_buffer(3, None)",
            "m.register_buffer('b', 3)", "m.register_parameter('fc', None)", "m.register_parameter('p', 3)", "m.register_parameter('a.b', None)",
            "m.register_parameter('p', m.scale * 2)", "m.add_module('scale', m.fc)", "m.add_module('m', 3)", "m.add_module('', m.fc)",
            "m.add_module('a.b', m.fc)", "setattr(m, 'fc', 3)", "setattr(m, 'scale', 3)", "setattr(m, 'scale', lib.ones(1))", "setattr(m, 'seen', 3)",
            "setattr(m, 'none', 3)", "delattr(m, 'gone')", "m.train('yes')", "m.to(lib.int64)", "type(m)(1)", "lib.nn.Module(1)",
            "lib.nn.Module(a=1)",
            "lib.nn.Module()(1)", "m.load_state_dict(3)", "m.load_state_dict({})", "m.load_state_dict({'scale': lib.ones(2)}, strict=False)",
            "m.load_state_dict({**m.state_dict(), 'extra': lib.ones(1), 'fc.foo': lib.ones(1), 'q.r': lib.ones(1)})",
            "m.load_state_dict({**m.state_dict(), 'scale': 3})", "m.get_extra_state()", "lib.nn.Linear(2, 3, unknown=1)", "lib.nn.ReLU(1, 2)",
            "m.set_submodule('', m.fc)", "m.set_submodule('block.1', 3)", "m.fc(lib.ones(1, 5))"):
    if "fc(lib" in bad or "ReLU(1" in bad:
        continue  # worded by the function

    def _error(lib, code=bad):
        return eval(code, {"m": net(lib), "lib": lib, "setattr": setattr, "delattr": delattr})

    _error.__name__ = "error: " + bad
    SCENARIOS.append(_error)


@scenario
def assignment_before_init(lib):
    results = []
    for value in (lambda: lib.nn.Parameter(lib.ones(1)), lambda: lib.nn.ReLU(), lambda: lib.nn.Buffer(lib.ones(1))):
        class Early(lib.nn.Module):
            def __init__(self):
                self.x = value()

        results.append(outcome(lambda lib: Early(), lib))
    return results


@scenario
def reassignment_moves_between_tables(lib):
    m = net(lib)
    m.x = 3
    m.x = lib.nn.Parameter(lib.ones(1))
    first = list(m._parameters), "x" in m.__dict__
    m.x = None
    second = list(m._parameters), m.x
    del m.x
    m.x = lib.nn.ReLU()
    third = list(m._modules), list(m._parameters)
    m.seen = None
    m.cache = lib.ones(2)
    m.b = lib.nn.Buffer(lib.ones(1), persistent=False)
    return first, second, third, list(m.state_dict()), list(m._buffers), sorted(m._non_persistent_buffers_set)


@scenario
def deletion(lib):
    m = net(lib)
    del m.scale, m.cache, m.block
    return list(m.state_dict()), sorted(m._non_persistent_buffers_set), hasattr(m, "block")


@scenario
def load_results(lib):
    m = net(lib)
    sd = m.state_dict()
    ok = str(m.load_state_dict(sd))
    del sd["scale"]
    sd["extra"] = lib.ones(1)
    found = m.load_state_dict(sd, strict=False)
    return ok, found.missing_keys, found.unexpected_keys


@scenario
def load_reports_everything(lib):
    m = net(lib)
    try:
        m.load_state_dict({"scale": lib.ones(3), "odd": lib.ones(1)})
    except RuntimeError as error:
        return str(error)


@scenario
def load_assign(lib):
    m = net(lib)
    m.fc.weight.requires_grad_(False)
    new = {k: v.clone() + 1 for k, v in m.state_dict().items()}
    m.load_state_dict(new, assign=True)
    return dict(m.state_dict()), [p.requires_grad for p in m.parameters()], isinstance(m.scale, lib.nn.Parameter)


@scenario
def load_copies_in_place(lib):
    m = net(lib)
    weight = m.fc.weight
    m.load_state_dict({k: v + 1 for k, v in m.state_dict().items()})
    return weight is m.fc.weight, weight


@scenario
def extra_state(lib):
    class Extra(lib.nn.Module):
        kept = None

        def get_extra_state(self):
            return {"a": 1}

        def set_extra_state(self, state):
            self.kept = state

    m = Extra()
    sd = m.state_dict()
    m.load_state_dict(sd)
    try:
        m.load_state_dict({})
    except RuntimeError as error:
        return dict(sd), m.kept, str(error)


@scenario
def apply_order(lib):
    log = []
    net(lib).apply(lambda m: log.append(type(m).__name__))
    return log


@scenario
def conversion(lib):
    m = net(lib)
    m.register_buffer("count", lib.tensor(1))
    param = m.scale
    m.scale.grad = lib.ones(1)
    m.to(lib.float64)
    first = [str(v.dtype) for v in m.state_dict().values()], str(m.scale.grad.dtype), m.scale is param
    m.half()
    second = str(m.cache.dtype), str(m.count.dtype)
    m.float().to(lib.ones(1, dtype=lib.float64))
    return first, second, str(m.scale.dtype), m.to("cpu") is m, str(m.bfloat16().scale.dtype)


@scenario
def modes_and_gradients(lib):
    m = net(lib)
    m.eval()
    modes = [mod.training for mod in m.modules()]
    m.block.train()
    m(lib.ones(1, 2)).sum().backward()
    m.zero_grad(set_to_none=False)
    grads = [p.grad for p in m.parameters()]
    m.zero_grad()
    m.fc.requires_grad_(False)
    return modes, [mod.training for mod in m.modules()], grads, [p.grad for p in m.parameters()], [p.requires_grad for p in m.parameters()]


@scenario
def deepcopy_and_set_submodule(lib):
    m = net(lib)
    m.tied = m.fc
    c = copy.deepcopy(m)
    c.set_submodule("block.1", lib.nn.Identity())
    with lib.no_grad():
        c.fc.weight.zero_()
    sized = lib.nn.Linear(np.int64(2), np.int64(3)), lib.nn.Dropout(np.float64(0.5)), lib.nn.GELU("tanh"), lib.nn.LayerNorm(np.int64(3))
    return repr(c), repr(sized), m.fc.weight, c.tied is c.fc, type(c.fc.weight).__name__, sorted(n for n in dir(c) if n in ("fc", "scale", "seen", "forward"))


@scenario
def sequential(lib):
    nn = lib.nn
    s = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    named = nn.Sequential(OrderedDict([("a", nn.ReLU()), ("b", nn.Tanh())]))
    results = [repr(s[1:]), repr(s[-1]), len(s), repr(named), repr(named[0]), repr(named.b), repr(named[:1])]
    s[1] = nn.Tanh()
    del s[0]
    s.append(nn.ReLU()).insert(0, nn.Sigmoid()).extend([nn.ELU()])
    results += [repr(s), repr(s.pop(1)), repr(s), repr(s + named), repr(named * 2), list(s._modules)]
    s += named
    del named["b" == "b"]
    return results, repr(s), repr(named), outcome(lambda lib: s[9], lib), outcome(lambda lib: s + 3, lib)


@scenario
def module_list(lib):
    nn = lib.nn
    ml = nn.ModuleList([nn.ReLU(), nn.ReLU(), nn.Linear(1, 2)])
    ml.append(nn.Tanh()).extend(nn.ModuleList([nn.Tanh()]))
    ml.insert(0, nn.ELU())
    ml[1] = nn.Sigmoid()
    del ml[2:4]
    last = ml.pop(-1)
    return repr(ml), repr(ml[0:2]), repr(last), len(ml), [type(m).__name__ for m in ml + nn.ModuleList([nn.ReLU()])], outcome(lambda lib: ml[7], \
        lib), \
        outcome(lambda lib: ml.extend(3), lib), outcome(lambda lib: ml(1), lib), repr(nn.ModuleList())


@scenario
def module_dict(lib):
    nn = lib.nn
    md = nn.ModuleDict({"a": nn.ReLU(), "b": nn.Linear(1, 2)})
    md["c"] = nn.Tanh()
    md.update([["d", nn.ELU()]])
    popped = repr(md.pop("a"))
    return repr(md), popped, list(md), list(md.keys()), len(md), "c" in md, [k for k, _ in md.items()], list(md.state_dict()), \
        outcome(lambda lib: md.update(3), lib), outcome(lambda lib: md.update([3]), lib), outcome(lambda lib: md.update([[1, 2, 3]]), lib), \
        outcome(lambda lib: md.__setitem__("e", 3), lib), md.clear(), len(md)


@scenario
def parameter_list(lib):
    nn = lib.nn
    pl = nn.ParameterList([lib.ones(2), nn.Parameter(lib.zeros(1, 3))])
    pl.append(lib.ones(1)).extend([lib.ones(4)])
    pl += [lib.zeros(1)]
    pl[0] = lib.zeros(5)
    return repr(pl), len(pl), list(pl.state_dict()), [isinstance(p, nn.Parameter) for p in pl], repr(pl[1:3]), pl[-1], outcome(lambda lib: pl[9], \
        lib), \
        outcome(lambda lib: pl(), lib), outcome(lambda lib: pl.extend(3), lib)


@scenario
def parameter_dict(lib):
    nn = lib.nn
    pd = nn.ParameterDict({"a": lib.ones(2), "n": 3})
    pd["b"] = nn.Parameter(lib.zeros(1, 2))
    pd.update([("c", lib.ones(1))])
    other = nn.ParameterDict({"z": lib.ones(1)})
    merged = pd | other
    return repr(pd), list(pd), list(pd.state_dict()), pd.get("q", 5), pd.setdefault("d", lib.ones(1)), [k for k, _ in pd.items()], list(merged), \
        pd.pop("b"), pd.popitem()[0], len(pd), "a" in pd, list(reversed(pd)), list(pd.fromkeys(["x", "y"])), outcome(lambda lib: pd[3], lib)


@scenario
def shared_parameters(lib):
    m = net(lib)
    m.block[1].weight = lib.nn.Parameter(lib.ones(1, 3))
    m.alias = m.block[1].weight
    return [n for n, _ in m.named_parameters()], list(m.state_dict())


@scenario
def call_super_init(lib):
    class Base:
        def __init__(self, value):
            self.value = value

    class Mixed(lib.nn.Module, Base):
        call_super_init = True

        def __init__(self, value):
            super().__init__(value=value)

    return Mixed(3).value


@scenario
def consume_prefix(lib):
    sd = OrderedDict([("module.a", 1), ("b", 2), ("module.c.d", 3)])
    sd._metadata = OrderedDict([("", {}), ("module", {"version": 1}), ("module.c", {"version": 2})])
    lib.nn.modules.utils.consume_prefix_in_state_dict_if_present(sd, "module.")
    return sorted(sd.items()), sorted(sd._metadata)


@scenario
def plain_dictionaries_of_parameters_are_sorted(lib):
    pd = lib.nn.ParameterDict({"b": lib.ones(1), "a": lib.ones(2)})
    pd.update({"d": lib.ones(1), "c": lib.ones(1)})
    pd.update(OrderedDict(z=lib.ones(1), y=lib.ones(1)))
    return list(pd), list(lib.nn.ModuleDict({"b": lib.nn.ReLU(), "a": lib.nn.ReLU()}))


@scenario
def compiled_in_place(lib):
    m = net(lib)
    expected = m(lib.ones(1, 2))
    log = []
    m.register_forward_hook(lambda mod, args, out: log.append("hook"))
    m.compile(backend="eager") if lib is torch else m.compile()
    results = [m(lib.ones(1, 2)) for _ in range(4)]
    return results, [lib.allclose(r, expected) for r in results], repr(copy.deepcopy(m)) == repr(m)


@scenario
def loading_onto_meta_changes_nothing(lib):
    import warnings
    with lib.device("meta"):
        m = lib.nn.Linear(2, 1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        m.load_state_dict({"weight": lib.ones(1, 2), "bias": lib.ones(1)})
    first = m.weight.is_meta, sorted(str(w.message)[:60] for w in caught)
    m.load_state_dict({"weight": lib.ones(1, 2), "bias": lib.ones(1)}, assign=True)
    return first, m.weight, outcome(lambda lib: lib.nn.Linear(1, 1, device="meta").to("cpu"), lib)


@pytest.mark.parametrize("fn", SCENARIOS, ids=lambda fn: fn.__name__)
def test_same_as_torch(fn):
    assert_same(fn)


def test_parameter():
    p = Parameter(clnn.tensor([1.0, 2.0]))
    assert repr(p) == "Parameter containing:\ntensor([1., 2.], requires_grad=True)"
    assert p.requires_grad and p.is_leaf and isinstance(p, clnn.Tensor)
    assert not Parameter(clnn.ones(1), requires_grad=False).requires_grad
    assert tuple(Parameter().shape) == (0,)
    c = copy.deepcopy(p)
    assert type(c) is Parameter and c is not p and c.tolist() == p.tolist()
    q = pickle.loads(pickle.dumps(p))
    assert type(q) is Parameter and q.requires_grad and q.tolist() == p.tolist()
    assert not isinstance(p * 2, Parameter)
    with pytest.raises(TypeError, match="must be a Tensor"):
        Parameter([1.0])
    assert isinstance(Buffer(clnn.ones(1)), Buffer) and not isinstance(clnn.ones(1), Buffer)


def test_module_pickles():
    m = net_at_module_level()
    back = pickle.loads(pickle.dumps(m))
    assert repr(back) == repr(m)
    assert [p.tolist() for p in back.parameters()] == [p.tolist() for p in m.parameters()]


def net_at_module_level():
    return clnn.nn.Sequential(clnn.nn.Linear(2, 3), clnn.nn.BatchNorm1d(3), clnn.nn.LSTM(3, 4))


def test_call_without_hooks_goes_straight_to_forward():
    m = clnn.nn.ReLU()
    assert "_maybe_hooked" not in m.__dict__
    m.register_forward_hook(lambda *a: None).remove()
    assert m._maybe_hooked and m(clnn.tensor([-1.0])).tolist() == [0.0]


def test_parameters_keep_attributes_and_subclasses():
    p = Parameter(clnn.ones(2))
    p.tag = "kept"
    assert pickle.loads(pickle.dumps(p)).tag == "kept"

    class Special(clnn.Tensor):
        pass

    q = Parameter(clnn.ones(2).as_subclass(Special))
    assert type(q) is Special and isinstance(q, Parameter) and q.requires_grad and q.is_leaf
    m = clnn.nn.Module()
    m.q = q
    assert list(m.state_dict()) == ["q"]


def test_typed_constructors_are_types():
    for lib in (clnn, torch):
        assert isinstance(lib.ones(1), lib.FloatTensor) and not isinstance(lib.ones(1), lib.LongTensor)
        assert lib.nn.Linear(1, 1).type(lib.HalfTensor).weight.type() == f"{lib.__name__}.HalfTensor"
        assert lib.LongTensor([1, 2]).dtype is lib.int64 and tuple(lib.BoolTensor(2, 3).shape) == (2, 3)


def other_device():
    here = clnn.get_default_device()
    there = [d for d in clnn.devices() if clnn.device(d) != here]
    if not there:
        pytest.skip("only one device here")
    return here, clnn.device(there[0])


def test_moving_between_devices():
    """Parameters stay the same objects; values, gradients, buffers and loaded optimizer state follow."""
    here, there = other_device()
    m = clnn.nn.Sequential(clnn.nn.Linear(3, 2), clnn.nn.BatchNorm1d(2))
    weight, values = m[0].weight, m[0].weight.tolist()
    weight.grad = clnn.ones(2, 3)
    assert m.to(there) is m and m[0].weight is weight and weight.device == there == weight.grad.device
    assert weight.tolist() == values and weight.grad.tolist() == [[1.0] * 3] * 2
    assert {t.device for t in m.state_dict().values()} == {there} and m[1].num_batches_tracked.dtype is clnn.int64
    optimizer = clnn.optim.SGD(m.parameters(), lr=0.5, momentum=0.5)
    optimizer.load_state_dict({"param_groups": optimizer.state_dict()["param_groups"], "state": {0: {"momentum_buffer": clnn.ones(2, 3, device=here)}}})
    assert optimizer.state[weight]["momentum_buffer"].device == there
    m.load_state_dict({k: v + 1 for k, v in clnn.nn.Sequential(clnn.nn.Linear(3, 2), clnn.nn.BatchNorm1d(2)).state_dict().items()})
    assert weight.device == there and m[1].running_mean.tolist() == [1.0, 1.0]
    assert copy.deepcopy(m)[0].weight.device == there
    with pytest.raises(RuntimeError, match="same device"):
        m[0](clnn.ones(1, 3, device=here))
    m.to_empty(device="meta")
    assert m[0].weight.is_meta and m.to_empty(device=here)[0].weight.device == here and weight is not m[0].weight


def test_parameters_that_lose_or_get_values_are_others():
    """As in PyTorch, those that were tied are apart then."""
    m = clnn.nn.ModuleList([clnn.nn.Linear(2, 2, bias=False, device="meta") for _ in range(2)])
    m[1].weight = m[0].weight.requires_grad_(False)
    m.to_empty(device="cpu")
    first, second = m[0].weight, m[1].weight
    assert first is not second and not first.requires_grad and len(list(m.parameters())) == 2
    m.to_empty(device="cpu")
    assert m[0].weight is first
    first.grad = clnn.ones(2, 2)
    m.to("meta")
    assert m[0].weight is not first and m[0].weight.grad.is_meta and first.device.type != "meta"


def test_device_blocks_at_construction():
    here, there = other_device()
    with clnn.device(there):
        m = clnn.nn.LSTM(2, 3)
        inner = clnn.nn.Linear(2, 2, device=here)
    assert {p.device for p in m.parameters()} == {there} and inner.weight.device == here and clnn.ones(1).device == here


def test_operators_as_attributes_of_a_class_take_no_self():
    class Net(clnn.nn.Module):
        act, helper = clnn.nn.functional.relu, lambda self, x: self.act(x) + 1

        def forward(self, x):
            return self.helper(x)
    assert Net()(clnn.tensor([-1.0, 2.0])).tolist() == [1, 3]


def test_gradients_pass_through_a_programs_own_exchange():
    """Once for each pass, outside of `no_sync`, for the parameters that the result depends on; what is exchanged as half precision is rounded to it."""
    from clnn.distributed.algorithms.ddp_comm_hooks import default_hooks
    nn, d, seen = clnn.nn, clnn.distributed, []
    d.init_process_group("gloo", rank=0, world_size=1)
    try:
        def doubled(state, bucket):
            seen.append([tuple(g.shape) for g in bucket.gradients()])
            return d.all_reduce(bucket.buffer(), async_op=True).get_future().then(lambda future: future.value()[0] * state)

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.a, self.b = nn.Linear(2, 1, bias=False), nn.Linear(1, 1)

            def forward(self, x, use=True):
                return self.b(self.a(x)) if use else self.a(x)
        net = nn.parallel.DistributedDataParallel(Net(), find_unused_parameters=True)
        net.register_comm_hook(2.0, doubled)
        x = clnn.tensor([[1.0, 0.1]])
        with net.no_sync():
            net(x).sum().backward()
        assert not seen and net.module.b.bias.grad.item() == 1
        with net.join():
            net(x).sum().backward()
        assert seen == [[(1, 2), (1, 1), (1,)]] and net.module.b.bias.grad.item() == 4
        net.zero_grad()
        net(x, use=False).sum().backward()
        assert len(seen) == 2 and net.module.a.weight.grad.tolist() == (2 * x).tolist() and net.module.b.bias.grad is None
        half = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
        half.register_comm_hook(None, default_hooks.fp16_compress_hook)
        half(x).sum().backward()
        assert half.module.weight.grad.tolist() == x.half().float().tolist()
        with pytest.raises(RuntimeError, match="only be called once"):
            half.register_comm_hook(None, doubled)
    finally:
        d.destroy_process_group()
