"""What PyTorch's own tests ask of nodes of the graph: their hooks, their contexts, what functions of a program's own may say of themselves."""
import pytest
from scenarios import assert_same, torch

import clnn

RETURNED = {
    "alone": lambda t: t.ones(2), "as given": lambda t: (t.full((2,), 5.0),), "other dtype": lambda t: (t.ones(2, dtype=t.float16),), "none": lambda t: (None,),
    "smaller": lambda t: (t.ones(1),), "text": lambda t: "ab", "nothing": lambda t: (), "list": lambda t: [t.ones(2)], "number": lambda t: (3,)}


def _words(call):
    """What a call gives, or the kind and the words of its error."""
    try:
        return call()
    except (RuntimeError, TypeError, AssertionError) as error:
        return next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins"), str(error)


@pytest.mark.parametrize("register", ("register_hook", "register_prehook"))
@pytest.mark.parametrize("name", RETURNED)
def test_what_hooks_of_nodes_return(name, register):
    def run(t):
        x = t.ones(2, requires_grad=True)
        y = x.exp()
        getattr(y.grad_fn, register)(lambda *grads: RETURNED[name](t))
        return _words(lambda: y.sum().backward()), x.grad
    assert_same(run)


def test_hooks_leave_missing_gradients():
    def run(t):
        x = t.ones(2, requires_grad=True)
        seen = []

        def after(make, new):
            z = make()
            z.grad_fn.register_hook(lambda given, grads: (seen.append([g is None for g in given]), new)[1])
            return _words(lambda: z.sum().backward())

        class Double(t.autograd.Function):
            @staticmethod
            def forward(ctx, x, n):
                return x * n

            @staticmethod
            def backward(ctx, g):
                return g * 2, None

        got = [after(lambda: x * t.ones(2), (t.ones(2), None)), after(lambda: x * t.ones(2), (t.ones(2), t.ones(2))),
               after(lambda: Double.apply(x, 2), (t.ones(2),)), after(lambda: Double.apply(x, 2), (t.ones(2), None))]
        leaf = x.view_as(x).grad_fn.next_functions[0][0]
        leaf.register_hook(lambda given, grads: (t.ones(2),))
        return got, seen, _words(lambda: (x * 2).sum().backward()), [_words(lambda: x.exp().grad_fn(g)) for g in (3, None)], x.grad
    assert_same(run)


def test_contexts_are_nodes():
    def run(t):
        seen = []

        class Same(t.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 1

            @staticmethod
            def backward(ctx, g):
                seen.append((ctx.name(), len(ctx.next_functions), ctx.metadata))
                return g

        y = Same.apply(t.ones(2, requires_grad=True))
        y.sum().backward()
        return seen, type(y.grad_fn) is Same._backward_cls
    assert_same(run)


def _function(t, mark, outs=1, **rules):
    def forward(ctx, x):
        mark(ctx, x)
        return x if outs == 1 else (x,) * outs
    rules.setdefault("backward", lambda ctx, *g: g[0])
    return type("Odd", (t.autograd.Function,), {"forward": staticmethod(forward), **{k: staticmethod(v) for k, v in rules.items()}})


REFUSED = {
    "later tensors": lambda t, x: _function(t, lambda ctx, x: ctx.save_for_forward(3)).apply(x),
    "many from a view": lambda t, x: _function(t, lambda ctx, x: ctx.mark_dirty(x.mul_(2)), outs=2).apply((x * 1)[0]),
    "two rules": lambda t, x: _function(t, lambda ctx, x: None, vjp=lambda ctx, g: g).apply(x).sum().backward(),
    "a number": lambda t, x: _function(t, lambda ctx, x: None, backward=lambda ctx, g: 3).apply(x).sum().backward(),
    "old form": lambda t, x: type("Old", (t.autograd.Function,), {"__init__": lambda self: None})()(x),
    "no inputs": lambda t, x: x.sum().backward(inputs=[]),
    "no outputs": lambda t, x: t.autograd.grad([], x),
    "samples": lambda t, x: t.autograd.grad(x * 2, x, t.ones(2), is_grads_batched=True),
    "no data": lambda t, x: delattr(x, "data"),
    "no flag": lambda t, x: delattr(x, "requires_grad"),
    "accumulated": lambda t, x: (x.register_post_accumulate_grad_hook(lambda leaf: 3), (x * 2).sum().backward()),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name):
    def run(t):
        return _words(lambda: REFUSED[name](t, t.ones(2, requires_grad=True)))
    assert_same(run)


def test_only_tensors_are_marked():
    for t in (torch, clnn):
        for mark in ("mark_dirty", "mark_non_differentiable"):
            with pytest.raises(RuntimeError, match="variable"):
                _function(t, lambda ctx, x, mark=mark: getattr(ctx, mark)(3)).apply(t.ones(2))


def test_names_of_old():
    for t in (torch, clnn):
        x = t.ones(2, requires_grad=True)
        with pytest.warns(UserWarning, match="volatile was removed"):
            assert x.volatile is False
        with pytest.warns(FutureWarning, match="only_inputs"):
            t.autograd.grad((x * 2).sum(), x, only_inputs=False)
        with t.inference_mode():
            frozen = t.ones(3)
        with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
            frozen.resize_(4)


def _undefined(t):
    class Undefined(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            return None
    return Undefined.apply


def _echo(t, seen, fills):
    class Echo(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(fills)
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            seen.append(g)
            return g
    return Echo.apply


def test_gradients_that_are_missing_go_on():
    """Hooks see None; functions are given zeros, or None where they say so."""
    def run(t):
        seen, none = [], _undefined(t)
        leaves = [t.ones(2, requires_grad=True) for _ in range(7)]
        y = leaves[0] * 2
        y.register_hook(seen.append)
        none(y).sum().backward()
        y = leaves[1] * 2
        y.grad_fn.register_hook(lambda given, grads: seen.extend((given, grads)))
        y.grad_fn.register_prehook(seen.append)
        y.retain_grad()
        none(y).sum().backward()
        leaves[2].register_hook(seen.append)
        leaves[2].register_post_accumulate_grad_hook(lambda leaf: seen.append(leaf.grad))
        none(leaves[2]).sum().backward()
        none(_echo(t, seen, True)(leaves[3])).sum().backward()
        none(_echo(t, seen, False)(leaves[4])).sum().backward()
        model = t.nn.Linear(2, 2)
        model.register_full_backward_hook(lambda module, given, grads: seen.extend((given, grads)))
        none(model(leaves[5])).sum().backward()
        parts = (leaves[6] * 2).unbind()
        for part in parts:
            part.register_hook(seen.append)
        parts[0].backward()
        return seen, [leaf.grad for leaf in leaves], y.grad, model.weight.grad
    assert_same(run)


def _hooks_of_numbers(t, x):
    with t.autograd.graph.saved_tensors_hooks(3, 3):
        return x * x


def _disabled_within(t, x):
    with t.autograd.graph.saved_tensors_hooks(lambda v: v, lambda v: v), t.autograd.graph.disable_saved_tensors_hooks("not here"):
        return x * x


def _nested(t, x):
    with t.autograd.graph.allow_mutation_on_saved_tensors(), t.autograd.graph.allow_mutation_on_saved_tensors():
        return x * x


def _changing(t, x):
    with t.autograd.graph.saved_tensors_hooks(lambda v: v.mul_(2), lambda v: v):
        return (x * 1).exp()


def _freed(t, x):
    y = x.exp()
    kept = y.grad_fn._raw_saved_result
    y.sum().backward()
    kept.register_hooks(lambda v: v, lambda v: v)


def _again(t, x, **options):
    calls = []

    def part(x):
        calls.append(x)
        return (x.double() if len(calls) > 1 else x).exp()
    t.utils.checkpoint.checkpoint(part, x, use_reentrant=False, **options).sum().backward()
    return x.grad


KEPT = {
    "numbers": _hooks_of_numbers, "disabled": _disabled_within, "nested": _nested, "changing": _changing, "freed": _freed,
    "versions": lambda t, x: t.autograd.graph.increment_version(3),
    "numbers for one": lambda t, x: x.exp().grad_fn._raw_saved_result.register_hooks(1, 2),
    "check of a name": lambda t, x: _again(t, x, determinism_check="x"),
    "debug": lambda t, x: t.utils.checkpoint.checkpoint(t.exp, x, use_reentrant=True, debug=True),
    "parts": lambda t, x: t.utils.checkpoint.checkpoint_sequential([t.exp, t.sin], 2, x, use_reentrant=False, more=3),
}


@pytest.mark.parametrize("name", KEPT)
def test_what_is_kept(name):
    def run(t):
        kind, words = _words(lambda: KEPT[name](t, t.ones(2, requires_grad=True)))
        return kind, words if kind != "TypeError" else words.partition(": ")[0]
    if name == "numbers":
        assert run(clnn)[0] == run(torch)[0]
    else:
        assert_same(run)


def test_metadata_that_differs():
    for t in (torch, clnn):
        with pytest.raises(t.utils.checkpoint.CheckpointError) as caught:
            _again(t, t.ones(2, requires_grad=True))
        lines = str(caught.value).replace("clnn.", "torch.").splitlines()[1:4]
        assert [line.partition(", 'device'")[0] for line in lines] == [
            "tensor at position 0:", "saved metadata: {'shape': torch.Size([2]), 'dtype': torch.float32",
            "recomputed metadata: {'shape': torch.Size([2]), 'dtype': torch.float64"]


VIEWS = {"one": lambda t, x: x.view_as(x), "of many": lambda t, x: x.unbind()[0],
         "of a function": lambda t, x: type("Same", (t.autograd.Function,), {
             "forward": staticmethod(lambda ctx, x: x.view_as(x)), "backward": staticmethod(lambda ctx, g: g)}).apply(x)}


@pytest.mark.parametrize("recorded", ((True, True), (True, False), (False, True), (False, False)), ids=str)
@pytest.mark.parametrize("kind", VIEWS)
def test_views_that_change_their_shape_in_place(kind, recorded):
    """Where the view, and the change of its shape, were recorded or not: what the change and a write after it are refused for."""
    def run(t):
        got = []
        for tracked in (True, False):
            for change in (lambda v: v.unsqueeze_(0), lambda v: v.transpose_(0, 0)):
                base = t.ones(2, 3, requires_grad=tracked).clone()
                with t.set_grad_enabled(recorded[0]):
                    view = VIEWS[kind](t, base)
                with t.set_grad_enabled(recorded[1]):
                    got.append(_words(lambda: tuple(change(view).shape)))
                got.append(_words(lambda: tuple(view.add_(1).shape)))
        return got
    assert_same(run)


ENTRIES = {
    "remainder": lambda t, x: x % 2, "remainders": lambda t, x: x % x, "fmod": lambda t, x: x.fmod(2), "fmods": lambda t, x: x.fmod(x),
    "clamp": lambda t, x: x.clamp(0, 1),
    "least": lambda t, x: x.clamp(min=0), "power": lambda t, x: 2 ** x, "lerp": lambda t, x: t.lerp(x, x, 0.5), "from a number": lambda t, x: 1 - x,
    "times": lambda t, x: x * 2, "linear": lambda t, x: t.nn.functional.linear(x, t.ones(2, 2), t.ones(2, requires_grad=True)),
    "linear of constants": lambda t, x: t.nn.functional.linear(x, t.ones(2, 2), t.ones(2))}


@pytest.mark.parametrize("name", ENTRIES)
def test_operands_of_entries(name):
    """Numbers are operands of sums and products only; a linear layer's bias comes first."""
    def run(t):
        node = ENTRIES[name](t, t.ones(2, 2, requires_grad=True)).grad_fn
        return node.name(), [None if n is None else n.name() for n, _ in node.next_functions]
    assert_same(run)
