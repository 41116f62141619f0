"""Forward-mode differentiation, compared with PyTorch's."""
import numpy as np
import pytest

import clnn
from clnn.autograd import forward_ad as fwd

X = np.array([[0.3, -1.2, 0.7], [1.5, 0.1, -0.4]])
V = np.array([[1.0, 0.5, -2.0], [0.25, 3.0, 1.0]])


def both():
    return clnn, pytest.importorskip("torch")


def pair(m, values=X, tangent=V):
    return m.tensor(values, dtype=m.float64), m.tensor(tangent, dtype=m.float64)


def tangent_of(m, fn):
    from importlib import import_module
    fa = import_module(m.__name__ + ".autograd.forward_ad")
    with fa.dual_level():
        out = fn(m, fa.make_dual(*pair(m)))
        value, tangent = fa.unpack_dual(out)
        return np.array(value.tolist()), None if tangent is None else np.array(tangent.tolist())


CASES = {
    "product": lambda m, x: (x * x.sin()).sum(1),
    "matrix": lambda m, x: x @ x.T + 1,
    "softmax": lambda m, x: m.nn.functional.softmax(x, 1).log(),
    "views": lambda m, x: m.cat([x[0], x.t()[:, 1]]).reshape(-1, 1),
    "in place": lambda m, x: (x * 2).add_(x).mul_(x),
    "layer norm": lambda m, x: m.nn.functional.layer_norm(x, (3,)),
    "maximum": lambda m, x: x.max(1).values,
    "steps": lambda m, x: x.floor() * x.sign().round(),
    "no dependence": lambda m, x: m.ones(2, dtype=m.float64) * 3,
    "complex": lambda m, x: m.view_as_real(m.exp(x * (1 + 2j))),
}


@pytest.mark.parametrize("name", CASES)
def test_tangents(name):
    (a, s), (b, t) = [tangent_of(m, CASES[name]) for m in both()]
    np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-8)
    assert (s is None) == (t is None)
    if t is not None:
        np.testing.assert_allclose(s, t, rtol=1e-6, atol=1e-8)


def test_levels():
    x, v = pair(clnn)
    with pytest.raises(RuntimeError, match="no level exists"):
        fwd.make_dual(x, v)
    with fwd.dual_level():
        dual = fwd.make_dual(x, v)
        assert fwd.unpack_dual(dual).tangent is v and fwd.unpack_dual(dual).primal is x and fwd.unpack_dual(x).tangent is None
        out = dual.exp()
        with pytest.raises(RuntimeError, match="Nested forward mode"):
            fwd.enter_dual_level()
        with pytest.raises(ValueError, match="Expected primal to be floating point"):
            fwd.make_dual(clnn.ones(2, dtype=clnn.int64), clnn.ones(2))
        with pytest.raises(RuntimeError, match="has a different size"):
            fwd.make_dual(x, v[0])
        assert not fwd.unpack_dual(out).tangent.requires_grad
    assert fwd.unpack_dual(out).tangent is None and fwd.unpack_dual(dual).tangent is None
    with pytest.raises(RuntimeError, match="Dual level must be a positive number"):
        fwd.exit_dual_level()


def test_modules_and_backward_over_forward():
    def run(m, fa):
        layer = m.nn.Linear(3, 2, dtype=m.float64)
        with m.no_grad():
            layer.weight.copy_(m.tensor(X, dtype=m.float64))
            layer.bias.zero_()
        params = dict(layer.named_parameters())
        tangents = {"weight": m.tensor(V, dtype=m.float64), "bias": m.ones(2, dtype=m.float64)}
        inputs = m.tensor(V, dtype=m.float64)
        with fa.dual_level():
            duals = {n: fa.make_dual(p, tangents[n]) for n, p in params.items()}
            out = m.func.functional_call(layer, duals, inputs)
            tangent = fa.unpack_dual(out.tanh()).tangent
        tangent.sum().backward()
        return tangent.tolist(), params["weight"].grad.tolist()
    m, t = both()
    import torch.autograd.forward_ad as theirs
    for a, b in zip(run(m, fwd), run(t, theirs)):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def exp_function(m):
    class Exp(m.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor):
            ctx.result = m.exp(x)
            ctx.save_for_forward(x)
            return ctx.result * factor, x * 2

        @staticmethod
        def jvp(ctx, x_t, factor_t):
            x, = ctx.saved_tensors
            assert factor_t is None and x.shape == x_t.shape
            result = x_t * ctx.result * 10                  # ten times too much: to see that it is this that runs
            del ctx.result
            return result, x_t * 2
    return Exp


def test_a_custom_function_has_its_own_rule():
    def run(m, fa):
        Exp = exp_function(m)
        with fa.dual_level():
            a, b = Exp.apply(fa.make_dual(*pair(m)), 1.0)
            out = (a * a + b).sum(0)
            return fa.unpack_dual(out).tangent.tolist()
    m, t = both()
    import torch.autograd.forward_ad as theirs
    np.testing.assert_allclose(run(m, fwd), run(t, theirs), rtol=1e-6)
    x, v = pair(clnn)
    _, got = clnn.func.jvp(lambda x: exp_function(clnn).apply(x, 1.0)[0], (x,), (v,))
    np.testing.assert_allclose(got.numpy(), 10 * V * np.exp(X), rtol=1e-6)
    jacobian = clnn.func.jacfwd(lambda x: exp_function(clnn).apply(x, 1.0)[1])(x[0])
    np.testing.assert_allclose(jacobian.numpy(), 2 * np.eye(3))


def test_gradcheck_of_the_forward_mode():
    x = clnn.tensor(X, dtype=clnn.float64, requires_grad=True)
    assert clnn.autograd.gradcheck(lambda x: (x.sin() * x).cumsum(1), (x,), check_forward_ad=True)
    wrong = exp_function(clnn)
    with pytest.raises(clnn.autograd.GradcheckError, match="forward mode"):
        clnn.autograd.gradcheck(lambda x: wrong.apply(x, 1.0)[0], (x,), check_forward_ad=True, check_backward_ad=False)


def test_a_level_within_no_grad_has_tangents():
    """A level that begins there records for itself; what it gives has no history, and afterwards nothing is recorded."""
    weight = clnn.ones(2, requires_grad=True)
    with clnn.no_grad():
        with fwd.dual_level():
            primal, tangent = fwd.unpack_dual(fwd.make_dual(clnn.tensor([3.0, 4.0]), clnn.ones(2)) * weight)
        assert not clnn.is_grad_enabled()
    assert tangent.tolist() == [1, 1] and not tangent.requires_grad and not primal.requires_grad


def test_tangents_that_were_taken_out_have_none():
    """They depend on the primal where that requires gradients, and print without end if they are asked for tangents in turn."""
    weight = clnn.tensor([0.5, -0.25], requires_grad=True)
    with fwd.dual_level():
        out = fwd.make_dual(weight, clnn.ones(2)).tanh()
        tangent = fwd.unpack_dual(out).tangent
        assert fwd.unpack_dual(tangent).tangent is None and fwd.unpack_dual(tangent * 2).tangent is None
        assert "tangent" not in repr(tangent) and "grad_fn" in repr(tangent) and "tangent=" in repr(out)
        again, = clnn.autograd.grad(tangent.sum(), weight)
    t = np.tanh([0.5, -0.25])
    np.testing.assert_allclose(again.tolist(), -2 * t * (1 - t**2), rtol=1e-5)
