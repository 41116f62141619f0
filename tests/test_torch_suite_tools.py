"""What PyTorch's own tests ask of the tools around modules: optimizers, schedules, data sets, files."""
import io

import pytest
from scenarios import assert_same, torch

import clnn


def _words(call):
    """What a call gives, or the kind and the words of its error."""
    try:
        return call()
    except Exception as error:
        return next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins"), str(error)


def _sgd(t, **options):
    return t.optim.SGD([t.nn.Parameter(t.ones(2))], lr=0.1, **options)


def _resumed(t):
    t.optim.lr_scheduler.StepLR(_sgd(t), 2, last_epoch=3)


CALLS = {
    "parameters in a set": lambda t: t.optim.SGD([{"params": {t.nn.Parameter(t.ones(2))}}], lr=0.1),
    "other groups": lambda t: _sgd(t).load_state_dict({"param_groups": [], "state": {}}),
    "schedule goes on": _resumed,
    "tensors of two lengths": lambda t: t.utils.data.TensorDataset(t.ones(2), t.ones(3)),
    "sets of two lengths": lambda t: t.utils.data.StackDataset([1], [1, 2]),
    "lists of two lengths": lambda t: t.utils.data.default_collate([[1], [2, 3]]),
    "streams in a row": lambda t: t.utils.data.ConcatDataset([t.utils.data.IterableDataset()]),
    "other sets in a row": lambda t: list(t.utils.data.ChainDataset([[1]])),
    "state_dict": lambda t: t.nn.ReLU().state_dict(more=3),
    "to_empty": lambda t: t.nn.ReLU().to_empty(),
    "debug mode": lambda t: t.set_deterministic_debug_mode("x"),
    "debug mode 5": lambda t: t.set_deterministic_debug_mode(5),
    "debug mode 1.5": lambda t: t.set_deterministic_debug_mode(1.5),
    "warn always": lambda t: t.set_warn_always(3),
    "no threads": lambda t: t.set_num_interop_threads(0),
    "deterministic": lambda t: t.use_deterministic_algorithms(3),
    "short state": lambda t: t.set_rng_state(t.ones(3, dtype=t.uint8)),
    "default dtype": lambda t: t.set_default_dtype(t.int32),
    "written to a number": lambda t: t.save(t.ones(1), 3),
    "no folder": lambda t: t.save(t.ones(1), "/missing/folder/x.pt"),
}


@pytest.mark.parametrize("name", CALLS)
def test_refusals(name):
    assert_same(lambda t: _words(lambda: CALLS[name](t)))
    kinds = [_words(lambda t=t: CALLS[name](t)) for t in (torch, clnn)]
    assert kinds[0][1].replace("torch", "") == kinds[1][1].replace("clnn", "")


def test_step_hooks_that_return_something_else():
    for t in (torch, clnn):
        optimizer = _sgd(t)
        optimizer.register_step_pre_hook(lambda *args: 3)
        with pytest.raises(RuntimeError, match=r"<function SGD.step at .*> must return None or a tuple of \(new_args, new_kwargs\), but got 3\."):
            optimizer.step()


def test_lbfgs_takes_sparse_gradients():
    def run(t):
        p = t.nn.Parameter(t.ones(3, 2))
        p.grad = t.tensor([[0.0, 0], [1, 2], [0, 0]]).to_sparse()
        t.optim.LBFGS([p], lr=0.1).step(lambda: t.tensor(0.0))
        return p
    assert_same(run)


def test_old_names():
    for t in (torch, clnn):
        with pytest.warns(FutureWarning, match="cummulative_sizes"):
            assert t.utils.data.ConcatDataset([[1, 2], [3]]).cummulative_sizes == [2, 3]
        with pytest.warns(FutureWarning, match="sample_n"):
            assert t.distributions.Normal(0.0, 1.0).sample_n(2).shape == (2,)


@pytest.mark.parametrize("zipped", (True, False))
def test_tensors_without_memory_are_saved(zipped):
    for here, there in ((torch, clnn), (clnn, torch), (clnn, clnn)):
        file = io.BytesIO()
        here.save({"a": here.zeros(3, 2, device="meta").t(), "p": here.nn.Parameter(here.zeros(3, device="meta"))}, file, _use_new_zipfile_serialization=zipped)
        file.seek(0)
        got = there.load(file)
        assert got["a"].is_meta and got["a"].stride() == (1, 2) and got["a"].dtype is there.float32
        assert isinstance(got["p"], there.nn.Parameter) and got["p"].requires_grad and got["p"].shape == (3,)


TRANSFORMED = {
    "sizes in a list": lambda t, x: t.func.vmap(lambda a, b: a, in_dims=[0, 0])(x, x),
    "flag": lambda t, x: t.func.vmap(lambda a: a.requires_grad_())(x),
    "many dimensions": lambda t, x: t.func.vmap(lambda a: a.t())(t.ones(2, 2, 2, 2)),
    "vectors": lambda t, x: t.func.vmap(lambda a: a.mm(a))(x),
    "matrices": lambda t, x: t.addr(x, x, x),
    "number": lambda t, x: t.func.grad(t.mul, argnums=(0, "a"))(x[0, 0], x[0, 0]),
    "nothing given": lambda t, x: t.func.vjp(lambda: x)[0],
    "nothing returned": lambda t, x: t.func.vjp(lambda x: (), x),
    "none returned": lambda t, x: t.func.vjp(lambda x: None, x),
    "nothing for rows": lambda t, x: t.func.jacrev(lambda x: ())(x),
    "strictly": lambda t, x: t.func.jvp(lambda x: t.ones(1), (x,), (x,), strict=True),
    "strictly right": lambda t, x: t.func.jvp(lambda x: x * 2, (x,), (x,), strict=True),
    "as it is": lambda t, x: t.func.debug_unwrap(x),
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_transformations(name):
    def run(t):
        x = t.arange(4.0).reshape(2, 2)
        return _words(lambda: TRANSFORMED[name](t, x)), x.requires_grad
    assert_same(run)


def test_other_tangents_and_removals_are_refused():
    for t in (torch, clnn):
        x = t.ones(2)
        with pytest.raises(RuntimeError, match="to have the same argspec as the primals"):
            t.func.linearize(t.sin, x)[1](x, x)
        with pytest.raises(RuntimeError, match="received invalid argument for remove=x"):
            t.func.functionalize(t.sin, remove="x")(x)


def _scaled(x, y):
    return 2 * x + 3 * y


DERIVED = {
    "inputs in a list": lambda t, A, x: A.jacobian(_scaled, [x, x]),
    "v in a list": lambda t, A, x: A.vjp(_scaled, (x, x), [x]),
    "v of two": lambda t, A, x: A.vjp(_scaled, (x, x), (x, x)),
    "v of three": lambda t, A, x: A.jvp(_scaled, (x, x), (x, x, x)),
    "v of another size": lambda t, A, x: A.jvp(_scaled, (x, x), (x, t.ones(3))),
    "v a number": lambda t, A, x: A.vjp(_scaled, (x, x), 3),
    "a number among outputs": lambda t, A, x: A.vjp(lambda x: (x, 3), x, (x, x)),
    "outputs in a list": lambda t, A, x: A.vjp(lambda x: [x], x, x),
    "a number among inputs": lambda t, A, x: A.hvp(lambda *a: a[0].sum(), (x, 3), (x, x)),
    "two outputs": lambda t, A, x: A.hessian(lambda x: (x.sum(), x.sum()), x),
    "two outputs of a product": lambda t, A, x: A.hvp(lambda x: (x.sum(), x.sum()), x, x),
    "strict at once": lambda t, A, x: A.jacobian(t.sin, x, strict=True, vectorize=True),
    "strict forward": lambda t, A, x: A.jacobian(t.sin, x, strict=True, vectorize=True, strategy="forward-mode"),
    "graph forward": lambda t, A, x: A.jacobian(t.sin, x, create_graph=True, vectorize=True, strategy="forward-mode"),
    "variable of a number": lambda t, A, x: t.autograd.Variable(3),
    "variable of nothing": lambda t, A, x: t.autograd.Variable(),
}


@pytest.mark.parametrize("name", DERIVED)
def test_derivatives_of_functions(name):
    assert_same(lambda t: _words(lambda: DERIVED[name](t, t.autograd.functional, t.tensor([1.0, 2.0]))))


def _pushed(t, jvp):
    forward = lambda ctx, x: x * 2  # noqa: E731
    kind = type("Pushed", (t.autograd.Function,), {"forward": staticmethod(forward), "backward": staticmethod(lambda ctx, *g: g[0]), "jvp": staticmethod(jvp)})
    fwd = t.autograd.forward_ad
    return fwd.unpack_dual(kind.apply(fwd.make_dual(t.ones(2), t.ones(2)))).tangent


DUALS = {
    "level": lambda t, fwd, x: fwd.make_dual(x, x, level=1),
    "other level": lambda t, fwd, x: fwd.unpack_dual(fwd.make_dual(x, x), level=2),
    "again": lambda t, fwd, x: fwd.make_dual(fwd.make_dual(x, x), x),
    "tangent": lambda t, fwd, x: fwd.make_dual(x, fwd.make_dual(x, x)),
    "number": lambda t, fwd, x: fwd.unpack_dual(3),
    "right": lambda t, fwd, x: _pushed(t, lambda ctx, g: g * 2),
    "two": lambda t, fwd, x: _pushed(t, lambda ctx, g: (g, g)),
    "numbers": lambda t, fwd, x: _pushed(t, lambda ctx, g: 3),
    "lists": lambda t, fwd, x: _pushed(t, lambda ctx, g: [g]),
    "smaller": lambda t, fwd, x: _pushed(t, lambda ctx, g: g[:1]),
}


@pytest.mark.parametrize("name", DUALS)
def test_duals(name):
    def run(t):
        fwd = t.autograd.forward_ad
        with fwd.dual_level():
            return _words(lambda: DUALS[name](t, fwd, t.ones(2)))
    assert_same(run)


def _mapped(t, rule, **more):
    kind = type("Mapped", (t.autograd.Function,), {"forward": staticmethod(lambda x: x * 2), "setup_context": staticmethod(lambda ctx, inputs, output: None),
                                                   "backward": staticmethod(lambda ctx, g: g), "vmap": staticmethod(rule), **more})
    return t.func.vmap(kind.apply)(t.ones(2, 3))


def test_rules_for_maps_and_real_inputs():
    for t in (torch, clnn):
        with pytest.raises(RuntimeError, match="Expected the vmap staticmethod to have two returns"):
            _mapped(t, lambda info, dims, x: x * 3)
        with pytest.raises(RuntimeError, match="returned an incompatible"):
            _mapped(t, lambda info, dims, x: (x * 3, (0, 0)))
        turning = type("Turning", (t.autograd.Function,), {"forward": staticmethod(lambda ctx, x: x * 2), "backward": staticmethod(lambda ctx, g: g * 1j)})
        with pytest.raises(RuntimeError, match="Expected isFloatingType"):
            turning.apply(t.ones(2, requires_grad=True)).sum().backward()


def _graph(t):
    graph = t.fx.Graph()
    return graph, graph.placeholder("x")


def _moved(t):
    graph, x = _graph(t)
    x.prepend(t.fx.Graph().placeholder("z"))


def _ends(t):
    graph, x = _graph(t)
    return x.next.op, x.prev.op, x.next.next is x, _words(graph.output_node)


GRAPHS = {
    "constants": lambda t: t.fx.symbolic_trace(lambda x: t.tensor([1.0, 2.0]) * x + t.ones(2)).code.replace("torch", "").replace("clnn", ""),
    "nothing": lambda t: str(t.fx.Graph()),
    "other op": lambda t: _graph(t)[0].create_node("foo", "x"),
    "list": lambda t: _graph(t)[0].create_node("call_function", t.relu, args=[1]),
    "number": lambda t: _graph(t)[0].create_node("call_function", t.relu, kwargs=3),
    "no target": lambda t: _graph(t)[0].create_node("call_method", None),
    "moved": _moved, "ends": _ends,
}


@pytest.mark.parametrize("name", GRAPHS)
def test_graphs(name):
    assert_same(lambda t: _words(lambda: GRAPHS[name](t)))


def test_members_that_make_tensors_are_handed_over():
    def run(t):
        told = []

        class Told(t.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                told.append(func.__name__)
                return super().__torch_function__(func, types, args, kwargs)
        x = t.ones(3).as_subclass(Told)
        return [type(make()).__name__ for make in (lambda: x.new_tensor([1.0]), lambda: x.new([1.0]), lambda: x.new_zeros(2))], told
    assert_same(run)


def test_functions_that_nobody_takes_over():
    class Refusing:
        @classmethod
        def __torch_function__(cls, *args, **kwargs):
            return NotImplemented

    def run(t):
        def own(x):
            return t.overrides.handle_torch_function(own, (x,), x)
        return [_words(lambda fn=fn: fn(Refusing())) for fn in (own, lambda x: t.overrides.handle_torch_function(t.add, (x,), x))], \
            _words(lambda: t.ones(1).as_subclass(int))
    assert_same(run)


PARTS = {
    "one transform more": lambda t, X, C, x: X.StackTransform([X.ExpTransform()] * 2)(x),
    "other length": lambda t, X, C, x: X.CatTransform([X.ExpTransform(), X.ExpTransform()], lengths=[1, 1])(x),
    "inverse": lambda t, X, C, x: X.CatTransform([X.ExpTransform(), X.ExpTransform()], lengths=[1, 1]).inv(x),
    "lengths": lambda t, X, C, x: X.CatTransform([X.ExpTransform()], lengths=[1, 2]),
    "no transform": lambda t, X, C, x: X.StackTransform([3]),
    "dimension": lambda t, X, C, x: X.StackTransform([X.ExpTransform()], dim=2)(x),
    "negative": lambda t, X, C, x: C.independent(C.positive, -1),
    "no constraint": lambda t, X, C, x: C.cat([3]),
    "constraints of a part": lambda t, X, C, x: C.cat([C.positive, C.real], 0, [1, 1]).check(x),
    "components": lambda t, X, C, x: t.distributions.MixtureSameFamily(t.distributions.Categorical(t.ones(2)), 3),
    "right": lambda t, X, C, x: X.CatTransform([X.ExpTransform(), X.ExpTransform()], lengths=[1, 2])(x),
}


@pytest.mark.parametrize("name", PARTS)
def test_joined_transforms_and_constraints(name):
    assert_same(lambda t: _words(lambda: PARTS[name](t, t.distributions.transforms, t.distributions.constraints, t.tensor([0.5, -1.0, 2.0]))))
