"""Distributions against PyTorch's: densities, moments, divergences, reprs and refusals; samples against their own moments."""
import warnings

import numpy as np
import pytest

import clnn
from clnn.testing.cases import pending

torch = pytest.importorskip("torch")
A, B, C = [0.3, 1.2, 2.5], [0.7, 0.4, 1.9], [-0.5, 0.2, 1.0]
SPD = [[2.0, 0.5, 0.0], [0.5, 1.5, 0.2], [0.0, 0.2, 1.0]]
CORRELATION = np.linalg.cholesky([[1, 0.5, 0.2], [0.5, 1, 0.1], [0.2, 0.1, 1]])
# name: (distribution, value) of the module of distributions D and the constructor of tensors t
CASES = {
    "Normal": lambda D, t: (D.Normal(t(C), t(A)), t([0.1, -2, 3])),
    "NormalNumbers": lambda D, t: (D.Normal(0.5, 2.0), t(1.0)),
    "Laplace": lambda D, t: (D.Laplace(t(C), t(A)), t([0.1, -2, 3])),
    "Cauchy": lambda D, t: (D.Cauchy(t(C), t(A)), t([0.1, -2, 3])),
    "Uniform": lambda D, t: (D.Uniform(t(C), t([1, 2, 3.0])), t([0.1, 0.5, 2])),
    "Exponential": lambda D, t: (D.Exponential(t(A)), t(B)),
    "Gamma": lambda D, t: (D.Gamma(t(A), t(B)), t([0.1, 1, 3])),
    "Chi2": lambda D, t: (D.Chi2(t(A)), t(B)),
    "Beta": lambda D, t: (D.Beta(t(A), t(B)), t([0.1, 0.5, 0.9])),
    "Dirichlet": lambda D, t: (D.Dirichlet(t([A, B])), t([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]])),
    "StudentT": lambda D, t: (D.StudentT(t([3, 1.5, 5]), t(C), t(A)), t([0.1, -2, 3])),
    "FisherSnedecor": lambda D, t: (D.FisherSnedecor(t([3, 4, 5.0]), t([5, 6, 7.0])), t(B)),
    "Poisson": lambda D, t: (D.Poisson(t(A)), t([0, 2, 3])),
    "Bernoulli": lambda D, t: (D.Bernoulli(t([0.2, 0.5, 0.9])), t([0, 1, 1])),
    "BernoulliLogits": lambda D, t: (D.Bernoulli(logits=t(C)), t([0, 1, 1])),
    "Binomial": lambda D, t: (D.Binomial(5, t([0.2, 0.5, 0.9])), t([0, 2, 5])),
    "NegativeBinomial": lambda D, t: (D.NegativeBinomial(t([3, 4, 5.0]), logits=t(C)), t([0, 2, 5])),
    "Geometric": lambda D, t: (D.Geometric(t([0.2, 0.5, 0.9])), t([0, 2, 1])),
    "ContinuousBernoulli": lambda D, t: (D.ContinuousBernoulli(t([0.2, 0.5, 0.9])), t([0.1, 0.2, 0.7])),
    "Categorical": lambda D, t: (D.Categorical(t([A, B])), t([0, 2])),
    "CategoricalLogits": lambda D, t: (D.Categorical(logits=t([C, B])), t([0, 2])),
    "OneHotCategorical": lambda D, t: (D.OneHotCategorical(t([A, B])), t([[0, 0, 1], [1, 0, 0]])),
    "Multinomial": lambda D, t: (D.Multinomial(4, t([A, B])), t([[1, 1, 2], [4, 0, 0]])),
    "Gumbel": lambda D, t: (D.Gumbel(t(C), t(A)), t([0.1, -1, 3])),
    "Weibull": lambda D, t: (D.Weibull(t(A), t(B)), t([0.1, 1, 3])),
    "Pareto": lambda D, t: (D.Pareto(t(A), t([3, 1.5, 0.5])), t([1, 2, 3])),
    "GeneralizedPareto": lambda D, t: (D.GeneralizedPareto(t(C), t(A), t([0.25, 0, -0.5])), t([1, 0.5, 2])),
    "HalfNormal": lambda D, t: (D.HalfNormal(t(A)), t(B)),
    "HalfCauchy": lambda D, t: (D.HalfCauchy(t(A)), t(B)),
    "LogNormal": lambda D, t: (D.LogNormal(t(C), t(A)), t(B)),
    "LogisticNormal": lambda D, t: (D.LogisticNormal(t(C), t(A)), t([0.1, 0.2, 0.3, 0.4])),
    "Kumaraswamy": lambda D, t: (D.Kumaraswamy(t(A), t(B)), t([0.1, 0.5, 0.9])),
    "InverseGamma": lambda D, t: (D.InverseGamma(t([2.5, 3, 4]), t(B)), t([0.1, 1, 3])),
    "MultivariateNormal": lambda D, t: (D.MultivariateNormal(t(C), t(SPD)), t([[0.1, 0.2, 0.3], [1, 2, 3]])),
    "MultivariateNormalPrecision": lambda D, t: (D.MultivariateNormal(t([C, A]), precision_matrix=t(SPD)), t([[0.1, 0.2, 0.3], [1, 2, 3]])),
    "LowRankMultivariateNormal": lambda D, t: (D.LowRankMultivariateNormal(t(C), t([[1], [0.5], [0.2]]), t(A)), t([[0.1, 0.2, 0.3], [1, 2, 3]])),
    "Mixture": lambda D, t: (D.MixtureSameFamily(D.Categorical(t(A)), D.Normal(t(C), t(B))), t([0.1, -1, 2])),
    "MixtureOfVectors": lambda D, t: (D.MixtureSameFamily(D.Categorical(t(A)), D.Independent(D.Normal(t([[1, 2], [0, 1], [2, 0.0]]), t(np.ones((3, 2)))), 1)),
                                      t([[0.1, -1], [2, 0]])),
    "Independent": lambda D, t: (D.Independent(D.Normal(t([C, A]), t([A, B])), 1), t([[0.1, 0.2, 0.3], [1, 2, 3]])),
    "RelaxedBernoulli": lambda D, t: (D.RelaxedBernoulli(t(0.5), t([0.2, 0.5, 0.9])), t([0.1, 0.2, 0.7])),
    "RelaxedOneHotCategorical": lambda D, t: (D.RelaxedOneHotCategorical(t(0.5), t([A, B])), t([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]])),
    "VonMises": lambda D, t: (D.VonMises(t(C), t([0.3, 4.0, 30.0])), t([0.1, -1, 3])),
    "LKJCholesky": lambda D, t: (D.LKJCholesky(3, t([0.5, 1.0, 2.0])), t(CORRELATION)),
    "Wishart": lambda D, t: (D.Wishart(t(5.0), t(SPD)), t(np.array(SPD) * 1.3)),
    "Transformed": lambda D, t: (D.TransformedDistribution(D.Uniform(t([0, 0, 0]), t([1, 1, 1])), [D.SigmoidTransform().inv, D.AffineTransform(t(C), t(A))]),
                                 t([0.1, -1, 3])),
    "Squashed": lambda D, t: (D.TransformedDistribution(D.Normal(t(C), t(A)), D.TanhTransform(cache_size=1)), t([0.1, -0.5, 0.9])),
}
PROPERTIES = ("mean", "mode", "variance", "has_rsample", "has_enumerate_support", "support", "arg_constraints")
FULL = {"Normal", "Gamma", "Bernoulli", "Categorical", "MultivariateNormal", "Independent", "Squashed", "Exponential", "Uniform"}   # asked for all
OTHER_MODE = {"Kumaraswamy"}                                         # PyTorch gives NaN for concentrations above 1


def constructor(lib):
    return lambda values: lib.tensor(np.asarray(values, "float32"))


def observe(lib, name):
    """What the library says about a case: numbers, texts, or the error."""
    D, t = lib.distributions, constructor(lib)
    d, value = CASES[name](D, t)
    asked = {p: lambda p=p: getattr(d, p) for p in PROPERTIES if p != "mode" or name not in OTHER_MODE}
    asked |= {"repr": lambda: repr(d), "log_prob": lambda: d.log_prob(value), "cdf": lambda: d.cdf(value), "icdf": lambda: d.icdf(t([0.2, 0.5, 0.7])),
              "entropy": d.entropy, "enumerate_support": d.enumerate_support, "expand": lambda: d.expand((2, *d.batch_shape)).log_prob(value),
              "shapes": lambda: (tuple(d.batch_shape), tuple(d.event_shape), tuple(d.sample((5,)).shape), tuple(d.expand((2, *d.batch_shape)).batch_shape)),
              "kl": lambda: D.kl_divergence(d, CASES[name](D, t)[0]),
              "outside": lambda: d.log_prob(t(np.full(tuple(value.shape), -7.5)))}
    if name not in FULL:
        asked = {k: v for k, v in asked.items() if k not in ("expand", "outside", "icdf", "kl", "enumerate_support")}
    found = {}
    for key, ask in asked.items():
        try:
            got = ask()
            found[key] = got.detach() if hasattr(got, "detach") else repr(got).replace("clnn", "torch")
        except Exception as exc:
            found[key] = f"{type(exc).__name__}: {exc}".replace("clnn", "torch")
    if lib is clnn:
        pending([v for v in found.values() if isinstance(v, clnn.Tensor)])
    return {k: v if isinstance(v, str) else v.numpy() for k, v in found.items()}, d


@pytest.mark.share(4)
@pytest.mark.parametrize("name", CASES)
def test_as_in_pytorch(name):
    torch.distributions.Distribution.set_default_validate_args(True)     # torch._dynamo, which other tests load, switches the checks off
    want, _ = observe(torch, name)
    got, d = observe(clnn, name)
    for key, w in want.items():
        if isinstance(w, str) or isinstance(got[key], str):
            assert str(got[key]) == str(w), f"{name}.{key}"
        else:
            np.testing.assert_allclose(got[key], w, rtol=3e-4, atol=3e-5, err_msg=f"{name}.{key}")
    if name in FULL:
        assert bool(d.support.check(d.sample((50,))).all())


@pytest.mark.parametrize("concentration", [1e-3, 1.0, 100.0])
def test_angles_without_doubles(concentration, device, monkeypatch):
    monkeypatch.setattr(device, "has_fp64", False)
    clnn.manual_seed(0)
    d = clnn.distributions.VonMises(clnn.tensor(0.5), clnn.tensor(concentration))
    mean = np.exp(1j * d.sample((20000,)).numpy()).mean()
    assert abs(abs(mean) - (1 - d.variance.item())) < 0.015 and (concentration < 1 or abs(np.angle(mean) - 0.5) < 0.03)


PAIRS = {"Beta": "Normal Exponential Gamma Uniform ContinuousBernoulli", "Exponential": "Gamma Gumbel", "Gamma": "Normal Beta Gumbel",
         "Gumbel": "Exponential", "Laplace": "Gamma", "Normal": "Gumbel Laplace Uniform", "Pareto": "Gamma Normal",
         "Uniform": "Gumbel Gamma Beta", "Bernoulli": "Poisson", "Poisson": "Bernoulli",
         "MultivariateNormal": "LowRankMultivariateNormal", "LowRankMultivariateNormal": "MultivariateNormal"}


@pytest.mark.parametrize("name", PAIRS)
def test_divergences_between_families(name):
    for other in PAIRS[name].split():
        found = []
        for lib in (torch, clnn):
            D, t = lib.distributions, constructor(lib)
            try:
                found.append(D.kl_divergence(CASES[name](D, t)[0], CASES[other](D, t)[0]).numpy())
            except NotImplementedError as exc:
                found.append(str(exc))
        if isinstance(found[0], str):
            assert found[1] == found[0]
        else:
            np.testing.assert_allclose(found[1], found[0], rtol=1e-3, atol=1e-4, err_msg=f"KL({name} || {other})")


def test_registered_divergences():
    class Mine(clnn.distributions.Normal):
        pass

    @clnn.distributions.register_kl(Mine, clnn.distributions.Normal)
    def rule(p, q):
        return "mine"
    n = clnn.distributions.Normal(0.0, 1.0)
    assert clnn.distributions.kl_divergence(Mine(0.0, 1.0), n) == "mine" and float(clnn.distributions.kl_divergence(n, n)) == 0
    with pytest.raises(TypeError, match="subclasses"):
        clnn.distributions.register_kl(1, Mine)


def test_refusals():
    D = clnn.distributions
    with pytest.raises(ValueError, match=r"parameter scale \(Tensor of shape \(2,\)\) of distribution Normal\(loc: clnn.Size\(\[2\]\)"):
        D.Normal(clnn.zeros(2), clnn.tensor([1.0, -1.0]))
    with pytest.raises(ValueError, match="within the support"):
        D.Uniform(0.0, 1.0).log_prob(clnn.tensor(2.0))
    with pytest.raises(ValueError, match="Either `probs` or `logits`"):
        D.Bernoulli()
    with pytest.raises(ValueError, match="not broadcastable"):
        D.Normal(clnn.zeros(2), clnn.ones(2)).log_prob(clnn.zeros(3))
    assert D.Normal(0.0, -1.0, validate_args=False).scale.item() == -1
    with pytest.raises(NotImplementedError):
        D.Cauchy(0.0, 1.0).enumerate_support()


def _counts_and_scores_that_are_integers(lib):
    D, t = lib.distributions, lib.tensor
    several = D.Binomial(t([4, 9]), t([0.2, 0.5]))
    scores = D.Categorical(logits=t([1, 2, 3]))
    kinds = [d.sample((3,)).dtype for d in (several, D.NegativeBinomial(t(3), t([0.2, 0.5])))] + [several.total_count.dtype, scores.logits.dtype]
    return [str(k).split(".")[1] for k in kinds], several.log_prob(t([1.0, 2.0])).tolist() + scores.probs.tolist()


def test_counts_and_scores_that_are_integers():
    (kinds, values), (others, found) = map(_counts_and_scores_that_are_integers, (torch, clnn))
    assert others == kinds and found == pytest.approx(values, rel=1e-5)


@pytest.mark.parametrize("kind", ["cat", "stack"])
def test_constraints_of_parts_want_the_dimension(kind):
    for D in (torch.distributions, clnn.distributions):
        with pytest.raises(AssertionError, match="dim 1 out of range for value with 1 dimensions"):
            getattr(D.constraints, kind)([D.constraints.real] * 2, dim=1).check(D.Normal(0.0, 1.0).sample((2,)))


MOMENTS = ["Normal", "Laplace", "Gamma", "Beta", "Dirichlet", "Poisson", "Bernoulli", "Binomial", "Geometric", "OneHotCategorical", "Multinomial", "Gumbel",
           "MultivariateNormal", "LowRankMultivariateNormal", "Mixture", "Wishart"]


@pytest.mark.parametrize("name", MOMENTS)
def test_samples_have_their_moments(name):
    clnn.manual_seed(3)
    d, _ = CASES[name](clnn.distributions, constructor(clnn))
    x = d.sample((4000,)).numpy()
    spread = np.sqrt(d.variance.numpy())
    np.testing.assert_array_less(np.abs(x.mean(0) - d.mean.numpy()), 5 * spread / np.sqrt(4000) + 1e-6)
    assert (np.abs(x.std(0) / (spread + 1e-6) - 1)[spread > 0.05] < 0.25).all()


def test_gamma_gradients_follow_the_quantile():
    """A draw of fixed probability moves with the shape as the quantile does."""
    a = clnn.tensor([0.4, 1.0, 3.0, 40.0], dtype=clnn.float64, requires_grad=True)
    x = clnn.distributions.Gamma(a, 1.0).rsample((64,))
    slope, = clnn.autograd.grad(x.sum(), a)
    eps = 1e-5
    x0, a0 = x.detach(), a.detach()
    by_shape = (clnn.special.gammainc(a0 + eps, x0) - clnn.special.gammainc(a0 - eps, x0)) / (2 * eps)
    density = clnn.distributions.Gamma(a0, 1.0).log_prob(x0).exp()
    np.testing.assert_allclose(slope.numpy(), (-by_shape / density).sum(0).numpy(), rtol=2e-3)


def test_gradients_of_shares_are_those_of_beta_numbers():
    x, a, total = np.array([0.0, 1e-3, 0.2, 0.9, 0.5, 0.999, 0.01, 0.7]), np.array([2.0, 0.1, 2, 30, 300, 40, 0.05, 1]), np.array([3.0, 9, 7, 33, 610, 40.2, 99, 2])
    mine, theirs = [t._dirichlet_grad(*[t.tensor(v, dtype=t.float32) for v in (x, a, total)]).numpy() for t in (clnn, torch)]
    np.testing.assert_allclose(mine, theirs, rtol=3e-3)                 # PyTorch's is an approximation

    def drawn(t):
        t.manual_seed(3)
        a, b = t.tensor([0.5, 20.0], requires_grad=True), t.tensor([[0.3, 2.0, 9.0]], requires_grad=True)
        beta, shares = t.distributions.Beta(a, 3.0).rsample((2,)), t.distributions.Dirichlet(b).rsample((2,))
        (beta.sum() + (shares * shares).sum()).backward()
        return [v.detach().numpy() for v in (beta, shares, a.grad, b.grad)], shares.grad_fn.name()
    (mine, name), (theirs, other) = drawn(clnn), drawn(torch)
    for got, want in zip(mine, theirs):
        np.testing.assert_allclose(got, want, rtol=3e-3, atol=1e-5)
    assert name == other


def test_distribution_functions_at_the_ends_of_transforms():
    def values(t):
        d = t.distributions
        return [f.cdf(t.zeros(2)).tolist() for f in (d.LogNormal(t.zeros(2), 1.0), d.Weibull(t.ones(2), 1.0), d.InverseGamma(t.ones(2), 1.0))] \
            + [d.Wishart(t.tensor(4.0), t.eye(2))._natural_params[1].item(), d.Normal(0.0, 1.0)._mean_carrier_measure]
    assert values(clnn) == values(torch)
    df = clnn.tensor([3.0, 5.0], requires_grad=True)
    clnn.distributions.Wishart(df, clnn.eye(2)).rsample().sum().backward()
    assert (df.grad > 0).all()


def test_gradients_through_draws():
    p = clnn.tensor([0.2, 0.3, 0.5], requires_grad=True)
    clnn.distributions.OneHotCategoricalStraightThrough(p).rsample((3,))[:, 0].sum().backward()
    assert p.grad is not None and p.grad.abs().sum() > 0
    loc, scale = clnn.zeros(2, requires_grad=True), clnn.ones(2, requires_grad=True)
    x = clnn.distributions.Normal(loc, scale).rsample((5,))
    x.sum().backward()
    np.testing.assert_allclose(loc.grad.numpy(), [5, 5])
    np.testing.assert_allclose(scale.grad.numpy(), x.detach().sum(0).numpy(), rtol=1e-5)


TRANSFORMS = {
    "ExpTransform": lambda T, t: T.ExpTransform(), "SigmoidTransform": lambda T, t: T.SigmoidTransform(), "TanhTransform": lambda T, t: T.TanhTransform(),
    "SoftplusTransform": lambda T, t: T.SoftplusTransform(), "AffineTransform": lambda T, t: T.AffineTransform(t([1.0, 2, 3]), -2.0, event_dim=1),
    "StickBreakingTransform": lambda T, t: T.StickBreakingTransform(), "CorrCholeskyTransform": lambda T, t: T.CorrCholeskyTransform(),
    "PowerTransform": lambda T, t: T.ComposeTransform([T.ExpTransform(), T.PowerTransform(t(2.0))]),
    "IndependentTransform": lambda T, t: T.IndependentTransform(T.ExpTransform(), 1), "ReshapeTransform": lambda T, t: T.ReshapeTransform((3,), (3, 1)),
    "CatTransform": lambda T, t: T.CatTransform([T.ExpTransform(), T.TanhTransform()], -1, [1, 2]),
    "StackTransform": lambda T, t: T.StackTransform([T.ExpTransform(), T.TanhTransform(), T.SigmoidTransform()], -1),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms(name):
    found = []
    for lib in (torch, clnn):
        t = constructor(lib)
        f = TRANSFORMS[name](lib.distributions.transforms, t)
        x = t([[0.3, -0.4, 0.9], [0.1, 0.2, -0.7]])
        y = f(x)
        found.append((y, f.inv(y), f.log_abs_det_jacobian(x, y), tuple(f.forward_shape(tuple(x.shape))), repr(f), f.inv.inv is f, f.domain.event_dim,
                      f.codomain.event_dim))
    for w, g in zip(*found):
        if hasattr(w, "numpy"):
            np.testing.assert_allclose(g.numpy(), w.numpy(), rtol=1e-4, atol=1e-5)
        else:
            assert g == w


def test_checks_of_infinities_do_not_warn():
    D, inf = clnn.distributions, float("inf")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for make in (lambda: D.Categorical(clnn.tensor([inf, -inf])), lambda: D.Poisson(clnn.tensor(2.0)).log_prob(clnn.tensor([inf, 1.0]))):
            with pytest.raises(ValueError, match="invalid values|within the support"):
                make()


def test_constraints_lead_to_transforms():
    D, T = clnn.distributions, torch.distributions
    x = np.random.default_rng(0).standard_normal((2, 3, 3)).astype("float32")
    for c in ("real", "positive", "unit_interval", "simplex", "lower_cholesky", "positive_definite", "real_vector"):
        got = D.transform_to(getattr(D.constraints, c))(clnn.tensor(x))
        assert bool(getattr(D.constraints, c).check(got).all()), c
        np.testing.assert_allclose(got.numpy(), T.transform_to(getattr(T.constraints, c))(torch.tensor(x)).numpy(), rtol=1e-4, atol=1e-5)
    assert repr(D.constraints.interval(0, 2)) == repr(T.constraints.interval(0, 2)) and D.constraints.is_dependent(D.constraints.dependent)
    for c in ("boolean", "lower_cholesky", "positive_definite"):
        with pytest.raises(NotImplementedError, match="Cannot transform"):
            D.biject_to(getattr(D.constraints, c))
    low, high, x = [-1.0, 0.0], [1.0, 3.0], [0.5, -0.2]
    for kind, bounds in (("interval", (low, high)), ("greater_than", (low,)), ("less_than", (high,))):
        got, want = (m.biject_to(getattr(m.constraints, kind)(*map(lib.tensor, bounds)))(lib.tensor(x)).tolist() for m, lib in ((D, clnn), (T, torch)))
        assert got == pytest.approx(want, rel=1e-5)


def test_transforms_to_a_half_line_print_as_in_pytorch():
    for name in ("positive", "nonnegative", "unit_interval"):
        ours, theirs = [repr(m.distributions.transform_to(getattr(m.distributions.constraints, name))) for m in (clnn, torch)]
        assert ours == theirs


def test_names_that_files_and_programs_look_for():
    for lib in (clnn, torch):
        D = lib.distributions
        assert D.ExpTransform.__module__ == D.StackTransform.__module__ == lib.__name__ + ".distributions.transforms"
        tril = D.multivariate_normal._precision_to_scale_tril(lib.tensor([[4.0, 1.0], [1.0, 2.0]]))
        assert lib.allclose(tril @ tril.mT, lib.tensor([[2.0, -1.0], [-1.0, 4.0]]) / 7)
