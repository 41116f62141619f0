"""Small programs around layers, optimizers and data whose results, errors and printed forms must be those of PyTorch.

Each is a generator and runs with both libraries; what it yields is compared."""
import collections
import copy
import io
import warnings

import numpy as np
import pytest
from test_programs import Library, flat

import clnn

torch = pytest.importorskip("torch")


def error(call):
    """The error of a call, as text."""
    try:
        call()
    except Exception as exc:                                    # any: it is compared with PyTorch's
        return f"{type(exc).__name__}: {exc}".replace("clnn", "torch")
    return "no error"


def functional_optimizers(lib):
    """The functions below the classes of optimizers: all state is the caller's."""
    torch, scale = lib.torch, dict(lr=0.1, weight_decay=0.01, eps=1e-8)
    betas = dict(beta1=0.9, beta2=0.99)
    for name, lists, options in (("adam", 3, dict(**scale, **betas, amsgrad=True, maximize=False)), ("adamw", 3, dict(**scale, **betas, amsgrad=False, maximize=True)),
                                 ("radam", 2, dict(**scale, **betas)), ("rmsprop", 3, dict(**scale, alpha=0.9, momentum=0.9, centered=True)),
                                 ("adagrad", 1, dict(**scale, lr_decay=0.1, maximize=False))):
        step = getattr(lib.module("optim." + name), name)
        params = [torch.tensor([1.0, 2.0]), torch.tensor([[3.0], [4.0]])]
        slots, steps = [[torch.zeros_like(p) for p in params] for _ in range(lists)], [torch.tensor(0.0) for _ in params]
        for _ in range(2):
            step(params, [p * 2 for p in params], *slots, steps, **options)
        yield [params, slots, steps, error(lambda: step(params, params, *slots, [1, 2], **options))]
    params, buffers = [torch.tensor([1.0, 2.0])], [None]
    for _ in range(2):
        lib.module("optim._functional").sgd(params, [params[0] * 2], buffers, weight_decay=0.1, momentum=0.9, lr=0.1, dampening=0.5, nesterov=False, maximize=False)
    yield [params, buffers]


def lazy_layers(lib):
    """A state dict before the first call tells the size; a parameter without a shape can be moved and looked at."""
    torch, nn = lib.torch, lib.nn
    layer = nn.LazyLinear(3)
    layer.load_state_dict(nn.Linear(4, 3).state_dict())
    layer(torch.ones(2, 4))
    weight = nn.LazyLinear(3).weight
    x = torch.tensor([[[1.0, -3.0, 2.0, 0.5]]])
    yield [lib.F.lp_pool1d(x, float("inf"), 2), lib.F.lp_pool1d(x, 2.0, 2)]
    yield [repr(layer), weight.data.shape, weight.cpu().dtype == torch.float32]
    norm, file = nn.LazyBatchNorm1d().half().double(), io.BytesIO()
    torch.save(norm.state_dict(), file)
    file.seek(0)
    yield [type(norm.running_mean).__name__, norm.running_var.dtype == torch.float64, repr(torch.load(file, weights_only=False)), repr(copy.copy(weight))]
    yield [norm(torch.ones(2, 3).double()), repr(norm)]


def strides(lib):
    """Results that PyTorch lays out in rows whatever the order of their operands: programs go on with view()."""
    torch, F = lib.torch, lib.F
    x = torch.arange(24.0).reshape(1, 2, 3, 4).to(memory_format=torch.channels_last)
    y = torch.arange(6.0).reshape(2, 3)
    for r in (x.masked_fill(x > 1, 0), x.masked_scatter(x > 1, x), F.instance_norm(x), F.pad(x, (1, 1, 1, 1), mode="circular"), torch.einsum("ij,kj->ki", y, y),
              torch.einsum("bi,bj->jib", y, y), torch.einsum("bij,bjk->bki", x[0], x[0].mT)):
        yield [r.stride(), r]


def settings_of_optimizers(lib):
    """Options that do not go together, counters in the state, groups that come after the schedule."""
    torch, optim = lib.torch, lib.optim
    p = torch.ones(1, requires_grad=True)
    yield [error(lambda: kind([p], **options)) for kind in (optim.SGD, optim.Adam)
           for options in (dict(fused=True, foreach=True), dict(fused=True, differentiable=True), dict(foreach=True, differentiable=True))]
    adam = optim.Adam([p], lr=0.5)
    schedule = optim.lr_scheduler.StepLR(adam, 1)
    adam.add_param_group({"params": [torch.ones(1, requires_grad=True)]})
    p.grad = torch.ones(1)
    adam.step()
    schedule.step()
    step = adam.state[p]["step"]
    yield [[group["lr"] for group in adam.param_groups], step.dtype == torch.float32, step.device.type, step.shape, step.numel(), step.clone(), str(step)]
    yield error(lambda: optim.swa_utils.SWALR(adam, 0.1, anneal_strategy="x"))


def cautions(lib):
    """What warns: steps of the optimizer from before there was a schedule do not count, and layers of complex numbers are new."""
    torch, optim = lib.torch, lib.optim
    sgd = optim.SGD([torch.ones(1, requires_grad=True)], lr=0.1)
    sgd.step()
    for go in (lambda: optim.lr_scheduler.StepLR(sgd, 1).step(), lambda: sgd.step(), lambda: optim.lr_scheduler.StepLR(sgd, 1).step(),
               lambda: lib.nn.Linear(1, 1).to(torch.complex64)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            go()
        yield [str(w.message)[:60] for w in caught]


def settings_of_files(lib):
    """Switches of serialization; workers of a kind that there is not."""
    torch, data = lib.torch, lib.torch.utils.data
    files, file = torch.serialization, io.BytesIO()
    torch.save(1, file)
    file.seek(0)
    yield [files.get_default_load_endianness(), files.get_crc32_options(), files.get_default_mmap_options(), files.LoadEndianness.BIG.value]
    with files.set_default_mmap_options(1), files.skip_data():
        yield [files.get_default_mmap_options(), files.location_tag(torch.ones(1).untyped_storage())]
    yield [files.get_default_mmap_options(), error(lambda: files.set_default_mmap_options(9)), error(lambda: torch.load(file, mmap=True))]
    yield [error(lambda: data.DataLoader([1], num_workers=1, multiprocessing_context=kind)) for kind in ("no", 3)]


def hooks_of_leaves(lib):
    """The hooks of a leaf run as soon as its gradient is complete, before those of what came earlier in the forward pass."""
    torch, nn = lib.torch, lib.nn
    log = []

    def follow(name, p):
        p.register_hook(lambda g: log.append(name))
        p.register_post_accumulate_grad_hook(lambda p: log.append(name + " done"))
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2), nn.LayerNorm(2))
    for name, p in net.named_parameters():
        follow(name, p)
    for name, m in net.named_modules():
        m.register_full_backward_hook(lambda m, i, o, name=name: log.append("module " + name))
    net(torch.ones(1, 2, requires_grad=True)).sum().backward()
    yield list(log)
    a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    follow("a", a)
    follow("b", b)
    for compute in (lambda: (a + b) * (a - b), lambda: a * 3 + b.exp().sin() * a, lambda: torch.where(a > 0, b * 2, a), lambda: a.detach() * b):
        log.clear()
        compute().sum().backward()
        yield list(log)
    log.clear()
    (a * b).sum().backward(inputs=[b])
    torch.autograd.grad((a * b).sum(), [a, b])
    yield log


def comparisons(lib):
    """What assert_close says."""
    torch = lib.torch
    x, y = torch.tensor([1.0, 0.0, 2.0]), torch.tensor([1.0, 3.0, 2.0])
    pairs = [(x, y), (torch.tensor(1.1), torch.tensor(1.2)), (1, 1.0), (np.float64(1), 1.0), (True, False), (1j, 2.0), (x.to("meta"), y.to("meta")),
             (x.to_sparse(), y.to_sparse()), ((x * 2).to_sparse(), x.to_sparse()), (x.to_sparse(), x), ([{"a": x}], [{"a": y}])]
    yield [error(lambda: torch.testing.assert_close(a, b)) for a, b in pairs]
    yield error(lambda: torch.testing.assert_close(x.to_sparse(), x, check_layout=False))
    yield error(lambda: torch.testing.make_tensor(2, dtype=torch.int8, device="cpu", low=5, high=1))


def trees(lib):
    """Structures of nested values, as printed, and what does not fit them."""
    tree = lib.module("utils._pytree")
    for value in (1, {"b": [1, {"c": ()}], "a": (1, [2, 3])}, collections.defaultdict(int, a=1), collections.OrderedDict(x=[4])):
        leaves, spec = tree.tree_flatten(value)
        yield [repr(spec), str(spec.context), leaves, error(lambda: tree.tree_unflatten([*leaves, 1], spec))]
    for other in ({"b": 1}, {"a": 1, "b": 2}, [1]):
        yield error(lambda: tree.tree_map(lambda a, b: a, {"a": 1}, other))


def _double(x):
    return 2 * x


def pipes(lib):
    """Datasets of small steps, their order for given seeds, what is shared out, and what they refuse."""
    data, it, keyed = lib.torch.utils.data, lib.module("utils.data.datapipes.iter"), lib.module("utils.data.datapipes.map")

    def numbers(n=6):
        return it.IterableWrapper(range(n))
    yield [list(p) for p in (numbers().map(_double).filter(lambda x: x > 2).batch(2), numbers().batch(2).batch(2).unbatch(-1), numbers().zip(it.IterableWrapper("abc")),
                             numbers(3).mux(it.IterableWrapper("ab")), numbers().groupby(lambda x: x % 2, group_size=2), numbers(9).shuffle(buffer_size=3).set_seed(3),
                             *numbers().fork(2), *numbers().demux(2, lambda x: x % 2), it.IterableWrapper([(1, 2)]).map(_double, input_col=0, output_col=-1))]
    yield [len(numbers().batch(4)), len(numbers().concat(numbers(2))), repr(numbers().map(_double)), type(next(iter(numbers().batch(4)))).__name__]
    yield [list(data.DataLoader(numbers(), batch_size=4)), sorted(data.DataLoader(numbers(8).shuffle().sharding_filter(), num_workers=2, batch_size=None))]
    pipe = lib.module("utils.data.graph_settings").apply_sharding(numbers(10).sharding_filter().map(_double), 3, 1)
    yield [list(pipe), len(pipe)]
    pipe = numbers()
    first = iter(pipe)
    next(first), next(iter(pipe))
    yield error(lambda: next(first))[:100]
    yield [error(call) for call in (lambda: numbers().batch(0), lambda: len(numbers().filter(_double)), lambda: numbers().map(_double, output_col=1),
                                    lambda: numbers().map(3), lambda: list(numbers().fork(2, buffer_size=2)[0]), lambda: numbers()[0])]
    entries = keyed.SequenceWrapper(list(range(6)))
    yield [entries.map(_double)[2], entries.batch(4)[1], entries.concat(keyed.SequenceWrapper("ab"))[7], list(entries.shuffle().set_seed(1)),
           error(lambda: entries.batch(4)[2]), sorted(data.MapDataPipe.functions)]


def traced_functions(lib):
    """Functions of nn.functional stand in a graph with all that their parameters have by default."""
    torch, F = lib.torch, lib.F

    def f(x):
        x = F.relu(F.dropout(torch.relu(x), 0.25, training=False), inplace=True)
        x = F.conv2d(F.pad(x, (1, 1)), torch.ones(1, 1, 2, 2))
        return F.layer_norm(F.interpolate(F.max_pool2d(x, 1), scale_factor=2), (4,)) + torch.ones(x.shape[0]) + torch.arange(x.size(1))
    graph = lib.module("fx").symbolic_trace(f)
    for node in graph.graph.nodes:
        yield [node.op, node.name, str(node.args), str(node.kwargs)]
    yield [node.target in (F.relu, torch.relu) for node in graph.graph.nodes]
    yield [graph(torch.ones(1, 1, 3, 1)), F.relu is torch.relu]


def failures_of_loaders(lib):
    """A sample that fails does not end the pass; draws and seeds that are refused."""
    torch, data = lib.torch, lib.torch.utils.data

    class Bad(data.Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, i):
            return 1 // (i % 2)
    batches = iter(data.DataLoader(Bad(), num_workers=1))
    yield [error(lambda: next(batches))[:30] for _ in range(4)]
    yield error(lambda: list(data.WeightedRandomSampler([1.0], 2, False)))
    yield [error(call) for call in (lambda: torch.manual_seed("a"), lambda: torch.Generator().manual_seed("a"), lambda: torch.Generator().manual_seed(2 ** 65))]
    yield [error(lambda: torch.set_rng_state(state))[:9] for state in (3, torch.ones(3))]


def tracked_modules(lib):
    """Which modules are at work, forward and backward."""
    torch, nn = lib.torch, lib.nn
    net, tracker, log = nn.Sequential(nn.Linear(1, 1), nn.Sequential(nn.ReLU(), nn.Linear(1, 1))), lib.module("utils.module_tracker").ModuleTracker(), []
    for m in net.modules():
        m.register_forward_hook(lambda *call: log.append(sorted(tracker.parents)))
    x = torch.ones(1, 1, requires_grad=True)
    with tracker:
        y = net(x)
        y.register_hook(lambda g: log.append([sorted(tracker.parents), tracker.is_bw]))
        x.register_hook(lambda g: log.append(sorted(tracker.parents)))
        y.sum().backward()
    yield [log, sorted(tracker.parents), tracker.is_bw]


def kept_values(lib):
    """What an entry of the tape says that it has kept, as tools that draw graphs ask."""
    x = lib.torch.ones(2, requires_grad=True)
    for y in (x * x, x.exp(), x.sin()):
        yield [name for name in dir(y.grad_fn) if "_saved" in name and isinstance(getattr(y.grad_fn, name), lib.torch.Tensor)]


def recurrent_checks(lib):
    """What layers say of their state, for classes built on them."""
    torch, nn = lib.torch, lib.nn
    x, h = torch.ones(3, 2, 4), torch.zeros(2, 2, 3)
    for layer in (nn.GRU(4, 3, 2), nn.LSTM(4, 3, 2, proj_size=2, batch_first=True)):
        yield [layer.get_expected_hidden_size(x, None), layer.get_expected_hidden_size(x, [1, 1])]
        hidden = h if isinstance(layer, nn.GRU) else (torch.zeros(2, 3, 2), h)
        yield [error(lambda: layer.check_forward_args(x, hidden, None)), error(lambda: layer.check_hidden_size(h, (1, 2, 3)))]


PROGRAMS = [cautions, recurrent_checks, kept_values, tracked_modules, failures_of_loaders, traced_functions, pipes, trees, hooks_of_leaves, comparisons,
            settings_of_files, settings_of_optimizers, functional_optimizers, lazy_layers, strides]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_both_libraries_agree(program):
    for ours, theirs in zip(program(Library("clnn")), program(Library("torch")), strict=True):
        ours, theirs = flat(ours), flat(theirs)
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5) if isinstance(b, (float, np.ndarray)) else np.testing.assert_equal(a, b)


def test_plateau_can_be_subclassed():
    results = []
    for lib in (clnn, torch):
        class Told(lib.optim.lr_scheduler.ReduceLROnPlateau):
            def _reduce_lr(self, epoch):
                told.append(epoch)
                super()._reduce_lr(epoch)

            def _is_better(self, a, best):
                return not super()._is_better(a, best)

        told = []
        optimizer = lib.optim.SGD([lib.nn.Parameter(lib.ones(1))], lr=1.0)
        schedule = Told(optimizer, patience=1)
        for value in (1.0, 0.5, 0.4, 0.6, 0.3, 0.2, 0.1):
            schedule.step(value)
        results.append((told, schedule.get_last_lr(), schedule.num_bad_epochs))
    assert results[0] == results[1] and results[0][0]
