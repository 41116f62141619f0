"""Writes to views that cannot get a history: outputs of functions with several views, views made without recording, outputs of custom functions."""
import pytest
from scenarios import assert_same

BASES = dict(leaf=lambda t: t.arange(6., requires_grad=True), inner=lambda t: t.arange(6., requires_grad=True) * 1, plain=lambda t: t.arange(6.))
VIEWS = {
    "split": lambda t, x: x.split(3)[1], "split_with_sizes": lambda t, x: x.split([2, 4])[0], "chunk": lambda t, x: x.chunk(2)[0],
    "unbind": lambda t, x: x.view(2, 3).unbind(0)[1], "rows": lambda t, x: list(x.view(2, 3))[0], "tensor_split": lambda t, x: t.tensor_split(x, 2)[0],
    "hsplit": lambda t, x: t.hsplit(x, 2)[0], "index": lambda t, x: x[:3], "view": lambda t, x: x.view(2, 3), "of a piece": lambda t, x: x.split(3)[0].view(3, 1),
    "of a detached one": lambda t, x: x.detach().split(3)[0], "data": lambda t, x: x.data[:3], "detach": lambda t, x: x.split(3)[0].detach(),
    "unsafe_split": lambda t, x: x.unsafe_split(3)[0], "unsafe_chunk": lambda t, x: t.unsafe_chunk(x, 2)[0], "itself": lambda t, x: x,
    "unsafe_split_with_sizes": lambda t, x: t.unsafe_split_with_sizes(x, [3, 3])[0], "copy": lambda t, x: x.view(2, 3).t().reshape(-1)}
WRITES = dict(mul=lambda t, v, r: v.mul_(2), add=lambda t, v, r: v.add_(r), copy=lambda t, v, r: v.copy_(r), zero=lambda t, v, r: v.zero_(),
              item=lambda t, v, r: v.__setitem__(..., r), first=lambda t, v, r: v.__setitem__(0, 2.0))


def _write(t, base, view, write, recording, writing):
    x = BASES[base](t)
    with t.set_grad_enabled(recording):
        v = VIEWS[view](t, x)
    before = v.requires_grad
    with t.set_grad_enabled(writing):
        WRITES[write](t, v, t.ones((), requires_grad=True))
    return [before, v.requires_grad, x.requires_grad, v.grad_fn is None, v.is_leaf, v]


@pytest.mark.parametrize("recording, writing", [(True, True), (False, True), (True, False), (False, False)])
@pytest.mark.parametrize("view", VIEWS)
def test_writes(view, recording, writing):
    for base in BASES:
        for write in WRITES:
            assert_same(lambda t: _write(t, base, view, write, recording, writing))


def _base_written(t, view, recording, writing):
    x = BASES["inner"](t)
    with t.set_grad_enabled(recording):
        v = VIEWS[view](t, x)
    with t.set_grad_enabled(writing):
        x.mul_(2)
    return v.requires_grad, "<Invalid>" in repr(v), v.detach(), (v * 2).grad_fn.name()


@pytest.mark.parametrize("recording, writing", [(True, True), (False, True), (True, False), (False, False)])
@pytest.mark.parametrize("view", ["split", "unbind", "index", "of a piece", "unsafe_split", "detach", "copy"])
def test_a_base_is_written(view, recording, writing):
    assert_same(lambda t: _base_written(t, view, recording, writing))


def _of_a_function(t, forward):
    class Function(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return forward(x)

        @staticmethod
        def backward(ctx, *g):
            return g[0]
    out = Function.apply(BASES["inner"](t))
    out = out[0] if isinstance(out, tuple) else out
    return out.mul_(2)


@pytest.mark.parametrize("forward", [lambda x: x, lambda x: x.view(2, 3), lambda x: x * 1, lambda x: (x.view(2, 3), x * 2)])
def test_outputs_of_functions(forward):
    assert_same(lambda t: _of_a_function(t, forward))


OWN = {"matmul": lambda t, x: t.matmul(x, t.ones(6, 4)), "repeat": lambda t, x: x.repeat(2),
       "roll": lambda t, x: t.roll(x, 1), "scatter": lambda t, x: x.scatter(0, t.tensor([1, 2]), 0.0), "index_add": lambda t, x: x.index_add(0, t.tensor([1]), x[:1]),
       "pixel_shuffle": lambda t, x: t.nn.functional.pixel_shuffle(x.repeat(2).view(1, 4, 3, 1), 2)}


@pytest.mark.parametrize("name", OWN)
def test_results_are_no_views(name):
    """What an operator made of others computed without recording is written like any other tensor."""
    def write(t):
        with t.no_grad():
            y = OWN[name](t, t.arange(6.))
        return y._is_view(), y.mul_(t.ones((), requires_grad=True))
    assert_same(write)


def test_gradients_are_no_views():
    def write(t):
        x = t.arange(6., requires_grad=True)
        g, = t.autograd.grad((x.view(2, 3).t() * 2).sum(), x)
        return g._is_view(), g.add_(t.ones((), requires_grad=True))
    assert_same(write)


TRIVIAL = {"repeat": lambda t, x: x.repeat(1, 1), "tile": lambda t, x: x.tile(1), "repeat_interleave": lambda t, x: x.repeat_interleave(1, 0),
           "pixel_shuffle": lambda t, x: t.nn.functional.pixel_shuffle(x.view(1, 1, 2, 3), 1), "chain_matmul": lambda t, x: t.chain_matmul(x),
           "pixel_unshuffle": lambda t, x: t.nn.functional.pixel_unshuffle(x.view(1, 1, 2, 3), 1), "diff": lambda t, x: x.diff(n=0),
           "channel_shuffle": lambda t, x: t.nn.functional.channel_shuffle(x.view(1, 2, 3), 2), "roll": lambda t, x: x.roll(0, 0),
           "flip": lambda t, x: x.flip([]), "pad": lambda t, x: t.nn.functional.pad(x, (0, 0)), "cat": lambda t, x: t.cat([x])}


@pytest.mark.parametrize("name", TRIVIAL)
def test_results_share_no_memory(name):
    """Also where an operator has nothing to do, a write to its result leaves its input as it was."""
    def write(t):
        x = t.arange(6.).view(2, 3)
        return TRIVIAL[name](t, x).zero_(), x
    assert_same(write)


def _region_of_a_written_tensor(t):
    x = t.arange(12., requires_grad=True)
    y = (x * 1).view(3, 4).t()[1:]
    z = y.as_strided((2, 2), (4, 1), 1)
    y.mul_(2)
    (z * z).sum().backward()
    return z, x.grad, z.grad_fn.name()


def _mirrored(t):
    x = t.arange(24.).view(2, 3, 4).permute(2, 0, 1)
    return x.flip(0, 2), x.flip(0).stride(), x.flip(1).permute(1, 2, 0).view(-1)


@pytest.mark.parametrize("call", [_region_of_a_written_tensor, _mirrored, lambda t: t.zeros(3, 0).expand(2, 3, 0).sub_(1)])
def test_layouts(call):
    assert_same(call)
