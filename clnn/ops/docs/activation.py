"""Activations and softmax."""
from ..._tensor.explain import explain

explain("relu6", "Krizhevsky, 2010.", "clnn.nn.functional.relu6(clnn.tensor([-1., 3., 8.]))", "tensor([0., 3., 6.])")
explain("hardtanh", "``min(max(x, min_val), max_val)``.",
        "clnn.nn.functional.hardtanh(clnn.tensor([-2., 0.5, 2.]))", "tensor([-1.0000,  0.5000,  1.0000])")
explain("leaky_relu", "``max(0, x) + negative_slope * min(0, x)`` (Maas, Hannun, Ng, 2013).",
        "clnn.nn.functional.leaky_relu(clnn.tensor([-1., 2.]))", "tensor([-0.0100,  2.0000])")
explain("hardsigmoid", "A sigmoid of straight lines.",
        "clnn.nn.functional.hardsigmoid(clnn.tensor([-4., 0., 1.]))", "tensor([0.0000, 0.5000, 0.6667])")
explain("hardswish", 'Howard et al., "Searching for MobileNetV3", 2019.',
        "clnn.nn.functional.hardswish(clnn.tensor([-4., 0., 3.]))", "tensor([-0., 0., 3.])")
explain("hardshrink", "", "clnn.nn.functional.hardshrink(clnn.tensor([-1., 0.3]))", "tensor([-1.,  0.])")
explain("softshrink", "", "clnn.nn.functional.softshrink(clnn.tensor([-1., 0.3]))", "tensor([-0.5000,  0.0000])")
explain("threshold", "", "clnn.nn.functional.threshold(clnn.tensor([-1., 2.]), 0., 9.)", "tensor([9., 2.])")
explain("gelu", "``0.5 x (1 + erf(x / sqrt(2)))``, or ``0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))``.",
        "clnn.nn.functional.gelu(clnn.tensor([-1., 1.]))", "tensor([-0.1587,  0.8413])")
explain("silu", "Elfwing, Uchibe, Doya, 2018; Ramachandran, Zoph, Le, 2017.",
        "clnn.nn.functional.silu(clnn.tensor([-1., 1.]))", "tensor([-0.2689,  0.7311])")
explain("mish", "", "clnn.nn.functional.mish(clnn.tensor([-1., 1.]))", "tensor([-0.3034,  0.8651])")
explain("softplus", "", "clnn.nn.functional.softplus(clnn.tensor([0., 30.]))", "tensor([ 0.6931, 30.0000])")
explain("logsigmoid", "``-ln(1 + exp(-x))``.",
        "clnn.nn.functional.logsigmoid(clnn.tensor([0., -100.]))", "tensor([  -0.6931, -100.0000])")
explain("elu", "Clevert, Unterthiner, Hochreiter, 2016.",
        "clnn.nn.functional.elu(clnn.tensor([-1., 2.]))", "tensor([-0.6321,  2.0000])")
explain("celu", "Continuously differentiable for every ``alpha`` (Barron, 2017).",
        "clnn.nn.functional.celu(clnn.tensor([-1., 2.]))", "tensor([-0.6321,  2.0000])")
explain("selu", "", "clnn.nn.functional.selu(clnn.tensor([-1., 2.]))", "tensor([-1.1113,  2.1014])")
explain("tanhshrink", "What tanh takes away from x.",
        "clnn.nn.functional.tanhshrink(clnn.tensor([0., 1.]))", "tensor([0.0000, 0.2384])")
explain("softsign", "In (-1, 1), with a slope that falls off as ``1 / x^2``.",
        "clnn.nn.functional.softsign(clnn.tensor([-1., 3.]))", "tensor([-0.5000,  0.7500])")
explain("prelu", "``max(0, x) + weight * min(0, x)`` (He, Zhang, Ren, Sun, 2015).",
        "clnn.nn.functional.prelu(clnn.tensor([-1., 2.]), clnn.tensor([0.5]))", "tensor([-0.5000,  2.0000])")
explain("rrelu", "Xu, Wang, Chen, Li, 2015.",
        "clnn.nn.functional.rrelu(clnn.tensor([-1., 2.]), 0.25, 0.75)", "tensor([-0.5000,  2.0000])")
explain("glu", "The gated linear unit (Dauphin, Fan, Auli, Grangier, 2017); the size of ``dim`` is even.",
        "clnn.nn.functional.glu(clnn.tensor([1., 2., 0., 0.]))", "tensor([0.5000, 1.0000])")
explain("log_softmax", "", "clnn.nn.functional.log_softmax(clnn.zeros(2), 0)", "tensor([-0.6931, -0.6931])")
explain("softmin", "``exp(-x_i) / sum_j exp(-x_j)``.", "clnn.nn.functional.softmin(clnn.zeros(2), 0)", "tensor([0.5000, 0.5000])")
explain("gumbel_softmax", "", "clnn.nn.functional.gumbel_softmax(clnn.zeros(4), hard=True).sum()", "tensor(1.)")
