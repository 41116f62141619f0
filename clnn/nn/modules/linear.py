"""Linear maps."""
import math

import clnn
from clnn.nn import functional as F
from clnn.nn import init
from clnn.nn.parameter import Parameter, UninitializedParameter

from ._chain import known, parted
from .lazy import LazyModuleMixin
from .module import Module

__all__ = ["Identity", "Linear", "Bilinear", "LazyLinear", "NonDynamicallyQuantizableLinear"]


@known()
class Identity(Module):
    """Returns its input; takes and ignores any arguments.

    Example::

        >>> nn.Identity(54, unused=True)(clnn.ones(2))
        tensor([1., 1.])
    """

    def __init__(self, *args, **kwargs):
        super().__init__()

    def forward(self, input):
        return input


@known("weight bias")
class Linear(Module):
    """``y = x W^T + b``.

    Args:
        in_features: size of each input row.
        out_features: size of each output row.
        bias: whether to add ``b``. Default: ``True``.

    Shape:
        input ``(*, in_features)``, output ``(*, out_features)``; weight ``(out_features, in_features)``, bias ``(out_features)``,
        both drawn from ``U(-k, k)`` with ``k = 1 / sqrt(in_features)``.

    Example::

        >>> nn.Linear(20, 30)(clnn.randn(128, 20)).shape
        clnn.Size([128, 30])
    """

    _module_repr_fields = "in_features out_features bias!"

    def __init__(self, in_features, out_features, bias=True, device=None, dtype=None):
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(clnn.empty((out_features, in_features), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(clnn.empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self):
        """Draw weight and bias anew."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))  # this slope gives the bound 1 / sqrt(in_features)
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input):
        own = self._parameters                      # an attribute that is found at once, as parameters are not
        if "weight" in own and "bias" in own:
            return F.linear(input, own["weight"], own["bias"])
        return F.linear(input, self.weight, self.bias)


@known("weight bias")
class NonDynamicallyQuantizableLinear(Linear):
    """A :class:`Linear` that quantization tools leave alone (the output projection of attention)."""


@parted("weight bias")
class Bilinear(Module):
    """``y_k = x1^T W_k x2 + b_k``.

    Args:
        in1_features, in2_features: sizes of the rows of the two inputs.
        out_features: size of each output row.
        bias: whether to add ``b``. Default: ``True``.

    Shape:
        inputs ``(*, in1_features)`` and ``(*, in2_features)``, output ``(*, out_features)``.

    Example::

        >>> nn.Bilinear(20, 30, 40)(clnn.randn(8, 20), clnn.randn(8, 30)).shape
        clnn.Size([8, 40])
    """

    _module_repr_fields = "in1_features in2_features out_features bias!"

    def __init__(self, in1_features, in2_features, out_features, bias=True, device=None, dtype=None):
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got {in1_features}")
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        self.weight = Parameter(clnn.empty((out_features, in1_features, in2_features), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(clnn.empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self):
        """Draw weight and bias from ``U(-k, k)`` with ``k = 1 / sqrt(in1_features)``."""
        bound = 1 / math.sqrt(self.weight.size(1))
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1, input2):
        return F.bilinear(input1, input2, self.weight, self.bias)


class LazyLinear(LazyModuleMixin, Linear):
    """A :class:`Linear` that takes ``in_features`` from its first input.

    Example::

        >>> nn.LazyLinear(4)(clnn.randn(2, 3)).shape
        clnn.Size([2, 4])
    """

    cls_to_become = Linear

    def __init__(self, out_features, bias=True, device=None, dtype=None):
        super().__init__(0, 0, False, device=device, dtype=dtype)
        self.out_features = out_features
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self):
        if not self.has_uninitialized_params() and self.in_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input):
        if not self.has_uninitialized_params():
            self.in_features = self.weight.shape[-1]            # of a state dict that came before the first call
            return
        with clnn.no_grad():
            self.in_features = input.shape[-1]
            self.weight.materialize((self.out_features, self.in_features))
            if self.bias is not None:
                self.bias.materialize((self.out_features,))
            self.reset_parameters()
