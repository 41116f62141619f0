"""Activation functions as modules. Each takes a tensor of any shape ``*`` and returns one of the same shape unless it says otherwise."""
import clnn
from clnn.nn import functional as F
from clnn.nn.parameter import Parameter

from ._chain import known
from ._declare import declare
from .attention import MultiheadAttention, NonDynamicallyQuantizableLinear  # noqa: F401  (PyTorch has them in this file)
from .module import Module

__all__ = ["Threshold", "ReLU", "RReLU", "Hardtanh", "ReLU6", "Sigmoid", "Hardsigmoid", "Tanh", "SiLU", "Mish", "Hardswish", "ELU",
           "CELU", "SELU", "GLU", "GELU", "Hardshrink", "LeakyReLU", "LogSigmoid", "Softplus", "Softshrink", "PReLU", "Softsign",
           "Tanhshrink", "Softmin", "Softmax", "Softmax2d", "LogSoftmax"]


@known(settings="threshold value inplace")
@declare
class Threshold(Module):
    """``x`` where ``x > threshold``, else ``value``.

    Example::

        >>> nn.Threshold(0.5, 9.)(clnn.tensor([0., 1.]))
        tensor([9., 1.])
    """

    threshold: float
    value: float
    inplace: bool = False

    def forward(self, input):
        return F.threshold(input, self.threshold, self.value, self.inplace)


@known(settings="inplace")
@declare
class ReLU(Module):
    """``max(0, x)``; ``inplace=True`` overwrites the input.

    Example::

        >>> nn.ReLU()(clnn.tensor([-1., 2.]))
        tensor([0., 2.])
    """

    inplace: bool = False

    def forward(self, input):
        return F.relu(input, inplace=self.inplace)


@declare
class RReLU(Module):
    """``x`` for ``x >= 0``, else ``a x``: ``a`` is drawn from ``[lower, upper)`` in training and their mean in evaluation.

    Source: Xu et al., Empirical Evaluation of Rectified Activations, 2015 (arXiv:1505.00853).

    Example::

        >>> nn.RReLU(0.25, 0.25)(clnn.tensor([-2., 0., 1.]))
        tensor([-0.5000,  0.0000,  1.0000])
    """

    lower: float = 1.0 / 8
    upper: float = 1.0 / 3
    inplace: bool = False

    def forward(self, input):
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)


@known(settings="min_val max_val inplace")
class Hardtanh(Module):
    """``x`` limited to ``[min_val, max_val]`` (``min_value`` and ``max_value`` are old names).

    Example::

        >>> nn.Hardtanh()(clnn.tensor([-3., 0.5, 3.]))
        tensor([-1.0000,  0.5000,  1.0000])
    """

    _module_repr_fields = "min_val max_val inplace?"

    def __init__(self, min_val=-1.0, max_val=1.0, inplace=False, min_value=None, max_value=None):
        super().__init__()
        self.min_val = min_val if min_value is None else min_value
        self.max_val = max_val if max_value is None else max_value
        self.inplace = inplace
        if self.max_val <= self.min_val:
            raise AssertionError("max_val must be larger than min_val")

    def forward(self, input):
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)


@known(settings="min_val max_val inplace")
class ReLU6(Hardtanh):
    """``min(max(0, x), 6)``.

    Example::

        >>> nn.ReLU6()(clnn.tensor([-1., 3., 9.]))
        tensor([0., 3., 6.])
    """

    _module_repr_fields = "inplace?"

    def __init__(self, inplace=False):
        super().__init__(0.0, 6.0, inplace)


@known()
@declare
class Sigmoid(Module):
    """``1 / (1 + exp(-x))``.

    Example::

        >>> nn.Sigmoid()(clnn.zeros(1))
        tensor([0.5000])
    """

    def forward(self, input):
        return clnn.sigmoid(input)


@known(settings="inplace")
@declare
class Hardsigmoid(Module):
    """``min(max(x / 6 + 1/2, 0), 1)``: a piecewise linear sigmoid.

    Example::

        >>> nn.Hardsigmoid()(clnn.tensor([-2., 0., 1.]))
        tensor([0.1667, 0.5000, 0.6667])
    """

    inplace: bool = False
    _module_repr_fields = ""

    def forward(self, input):
        return F.hardsigmoid(input, self.inplace)


@known()
@declare
class Tanh(Module):
    """``tanh(x)``.

    Example::

        >>> nn.Tanh()(clnn.tensor([-2., 0., 1.]))
        tensor([-0.9640,  0.0000,  0.7616])
    """

    def forward(self, input):
        return clnn.tanh(input)


@known(settings="inplace")
@declare
class SiLU(Module):
    """``x * sigmoid(x)``, also called swish.

    Source: Hendrycks, Gimpel, 2016 (arXiv:1606.08415); Ramachandran et al., 2017 (arXiv:1710.05941).

    Example::

        >>> nn.SiLU()(clnn.tensor([-2., 0., 1.]))
        tensor([-0.2384,  0.0000,  0.7311])
    """

    inplace: bool = False

    def forward(self, input):
        return F.silu(input, inplace=self.inplace)


@known(settings="inplace")
@declare
class Mish(Module):
    """``x * tanh(softplus(x))``. Source: Misra, 2019 (arXiv:1908.08681).

    Example::

        >>> nn.Mish()(clnn.tensor([-2., 0., 1.]))
        tensor([-0.2525,  0.0000,  0.8651])
    """

    inplace: bool = False

    def forward(self, input):
        return F.mish(input, inplace=self.inplace)


@known(settings="inplace")
@declare
class Hardswish(Module):
    """``x * min(max(x + 3, 0), 6) / 6``. Source: Howard et al., MobileNetV3, 2019 (arXiv:1905.02244).

    Example::

        >>> nn.Hardswish()(clnn.tensor([-2., 0., 1.]))
        tensor([-0.3333,  0.0000,  0.6667])
    """

    inplace: bool = False
    _module_repr_fields = ""

    def forward(self, input):
        return F.hardswish(input, self.inplace)


@known(settings="alpha inplace")
@declare
class ELU(Module):
    """``x`` for ``x > 0``, else ``alpha (exp(x) - 1)``. Source: Clevert et al., 2015 (arXiv:1511.07289).

    Example::

        >>> nn.ELU()(clnn.tensor([-2., 0., 1.]))
        tensor([-0.8647,  0.0000,  1.0000])
    """

    alpha: float = 1.0
    inplace: bool = False

    def forward(self, input):
        return F.elu(input, self.alpha, self.inplace)


@known(settings="alpha inplace")
@declare
class CELU(Module):
    """``max(0, x) + min(0, alpha (exp(x / alpha) - 1))``. Source: Barron, 2017 (arXiv:1704.07483).

    Example::

        >>> nn.CELU()(clnn.tensor([-2., 0., 1.]))
        tensor([-0.8647,  0.0000,  1.0000])
    """

    alpha: float = 1.0
    inplace: bool = False

    def forward(self, input):
        return F.celu(input, self.alpha, self.inplace)


@known(settings="inplace")
@declare
class SELU(Module):
    """``scale (max(0, x) + min(0, alpha (exp(x) - 1)))`` with the constants that keep mean 0 and variance 1.

    Source: Klambauer et al., Self-Normalizing Neural Networks, 2017 (arXiv:1706.02515).

    Example::

        >>> nn.SELU()(clnn.tensor([-2., 0., 1.]))
        tensor([-1.5202,  0.0000,  1.0507])
    """

    inplace: bool = False

    def forward(self, input):
        return F.selu(input, self.inplace)


@known(settings="dim")
@declare
class GLU(Module):
    """``a * sigmoid(b)`` where a and b are the halves of the input along *dim*, which shrinks to half its size.

    Source: Dauphin et al., 2016 (arXiv:1612.08083).

    Example::

        >>> nn.GLU()(clnn.tensor([1., 2., 0., 0.]))
        tensor([0.5000, 1.0000])
    """

    dim: int = -1

    def forward(self, input):
        return F.glu(input, self.dim)


@known(settings="approximate")
@declare
class GELU(Module):
    """``x * Phi(x)`` with the normal distribution function; ``approximate="tanh"`` uses the tanh formula.

    Source: Hendrycks, Gimpel, 2016 (arXiv:1606.08415).

    Example::

        >>> nn.GELU()(clnn.tensor([0., 1.]))
        tensor([0.0000, 0.8413])
    """

    approximate: str = "none"

    def forward(self, input):
        return F.gelu(input, approximate=self.approximate)


@known(settings="lambd")
@declare
class Hardshrink(Module):
    """``x`` where ``|x| > lambd``, else 0.

    Example::

        >>> nn.Hardshrink()(clnn.tensor([-2., 0., 1.]))
        tensor([-2.,  0.,  1.])
    """

    lambd: float = 0.5
    _module_repr_fields = "=lambd"

    def forward(self, input):
        return F.hardshrink(input, self.lambd)


@known(settings="negative_slope inplace")
@declare
class LeakyReLU(Module):
    """``x`` for ``x >= 0``, else ``negative_slope * x``.

    Example::

        >>> nn.LeakyReLU(0.1)(clnn.tensor([-1., 2.]))
        tensor([-0.1000,  2.0000])
    """

    negative_slope: float = 1e-2
    inplace: bool = False

    def forward(self, input):
        return F.leaky_relu(input, self.negative_slope, self.inplace)


@known()
@declare
class LogSigmoid(Module):
    """``log(1 / (1 + exp(-x)))``, computed without overflow.

    Example::

        >>> nn.LogSigmoid()(clnn.tensor([-2., 0., 1.]))
        tensor([-2.1269, -0.6931, -0.3133])
    """

    def forward(self, input):
        return F.logsigmoid(input)


@known(settings="beta threshold")
@declare
class Softplus(Module):
    """``log(1 + exp(beta x)) / beta``; ``x`` itself where ``beta x > threshold``.

    Example::

        >>> nn.Softplus()(clnn.tensor([-2., 0., 1.]))
        tensor([0.1269, 0.6931, 1.3133])
    """

    beta: float = 1.0
    threshold: float = 20.0

    def forward(self, input):
        return F.softplus(input, self.beta, self.threshold)


@known(settings="lambd")
@declare
class Softshrink(Module):
    """``x - lambd`` above ``lambd``, ``x + lambd`` below ``-lambd``, else 0.

    Example::

        >>> nn.Softshrink()(clnn.tensor([-2., 0., 1.]))
        tensor([-1.5000,  0.0000,  0.5000])
    """

    lambd: float = 0.5
    _module_repr_fields = "=lambd"

    def forward(self, input):
        return F.softshrink(input, self.lambd)


@known("weight")
class PReLU(Module):
    """``max(0, x) + a min(0, x)`` with a learned slope ``a``, one for all or one per channel (dimension 1).

    Args:
        num_parameters: 1, or the number of channels. Default: 1.
        init: first value of the slopes. Default: 0.25.

    Source: He et al., Delving Deep into Rectifiers, 2015 (arXiv:1502.01852).

    Example::

        >>> nn.PReLU()(clnn.tensor([-2., 0., 1.])).detach()
        tensor([-0.5000,  0.0000,  1.0000])
    """

    _module_repr_fields = "num_parameters"

    def __init__(self, num_parameters=1, init=0.25, device=None, dtype=None):
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(clnn.empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self):
        """Set all slopes to ``init``."""
        with clnn.no_grad():
            self.weight.fill_(self.init)

    def forward(self, input):
        return F.prelu(input, self.weight)


@known()
@declare
class Softsign(Module):
    """``x / (1 + |x|)``.

    Example::

        >>> nn.Softsign()(clnn.tensor([-2., 0., 1.]))
        tensor([-0.6667,  0.0000,  0.5000])
    """

    def forward(self, input):
        return F.softsign(input)


@known()
@declare
class Tanhshrink(Module):
    """``x - tanh(x)``.

    Example::

        >>> nn.Tanhshrink()(clnn.tensor([-2., 0., 1.]))
        tensor([-1.0360,  0.0000,  0.2384])
    """

    def forward(self, input):
        return F.tanhshrink(input)


@known(settings="dim")
@declare
class Softmin(Module):
    """``exp(-x_i) / sum_j exp(-x_j)`` along *dim*.

    Example::

        >>> nn.Softmin(dim=0)(clnn.tensor([0., 0.]))
        tensor([0.5000, 0.5000])
    """

    dim: int = None

    def forward(self, input):
        return F.softmin(input, self.dim, _stacklevel=5)


@known(settings="dim")
@declare
class Softmax(Module):
    """``exp(x_i) / sum_j exp(x_j)`` along *dim*.

    Example::

        >>> nn.Softmax(dim=1)(clnn.zeros(1, 4))
        tensor([[0.2500, 0.2500, 0.2500, 0.2500]])
    """

    dim: int = None

    def forward(self, input):
        return F.softmax(input, self.dim, _stacklevel=5)


@declare
@known()
class Softmax2d(Module):
    """Softmax over the channels of an (N, C, H, W) or (C, H, W) input.

    Example::

        >>> nn.Softmax2d()(clnn.zeros(1, 4, 2, 2)).shape
        clnn.Size([1, 4, 2, 2])
    """

    def forward(self, input):
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return F.softmax(input, -3, _stacklevel=5)


@known(settings="dim")
@declare
class LogSoftmax(Module):
    """``log(softmax(x))`` along *dim*, computed without overflow.

    Example::

        >>> nn.LogSoftmax(dim=0)(clnn.zeros(2))
        tensor([-0.6931, -0.6931])
    """

    dim: int = None

    def forward(self, input):
        return F.log_softmax(input, self.dim, _stacklevel=5)
