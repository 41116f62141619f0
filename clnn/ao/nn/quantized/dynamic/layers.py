"""Linear layers and convolutions of floats with quantised weights."""
from __future__ import annotations

import clnn
from clnn import nn
from clnn._quantized import functions as quantized

from ... import intrinsic as nni
from .. import modules as nnq
from ..modules.base import expect_kind, quantize_weight

__all__ = ["Linear", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]


class Linear(nnq.Linear):
    """A linear layer of floats. Its weight is quantised, or rounded to float16; its input is rounded to integers that cover its least and greatest element.

    Args:
        in_features, out_features, bias_: as of ``nn.Linear``.
        dtype: of the weight: ``clnn.qint8`` or ``clnn.float16``.

    Example::

        >>> nn.quantized.dynamic.Linear(20, 30)(clnn.randn(8, 20)).shape
        clnn.Size([8, 30])
    """

    _version = 4
    _FLOAT_MODULE = (nn.Linear, nn.modules.linear.NonDynamicallyQuantizableLinear)

    def __init__(self, in_features, out_features, bias_=True, dtype=clnn.qint8):
        super().__init__(in_features, out_features, bias_, dtype)
        self.version = 4

    def forward(self, x):
        if self._packed_params.dtype is clnn.float16:
            return quantized.linear_dynamic_fp16(x, self._packed())
        return quantized.linear_dynamic(x, self._packed(), self.version is not None and self.version >= 4)

    def _get_name(self):
        return "DynamicQuantizedLinear"

    def extra_repr(self):
        text = f"in_features={self.in_features}, out_features={self.out_features}, dtype={self._packed_params.dtype}"
        return text + (f", qscheme={self.weight().qscheme()}" if self._packed_params.dtype is clnn.qint8 else "")

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, *rest):
        self.version = local_metadata.get("version")
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The layer with the quantised weight of a float one."""
        from ....quantization.qconfig import default_dynamic_qconfig
        kinds = [*cls._FLOAT_MODULE, nni.LinearReLU]
        if not hasattr(mod, "weight_fake_quant"):
            expect_kind(cls, mod, kinds)
            if not hasattr(mod, "qconfig"):
                raise AssertionError("Input float module must have qconfig defined")
        setting = mod.qconfig if mod.qconfig is not None and mod.qconfig.weight is not None else default_dynamic_qconfig
        rule, mod = setting.weight(), mod[0] if type(mod) is nni.LinearReLU else mod
        rule(mod.weight)
        made = cls(mod.in_features, mod.out_features, dtype=rule.dtype)
        if rule.dtype is clnn.qint8:
            weight = quantize_weight(mod.weight, rule)
        elif rule.dtype is clnn.float16:
            weight = mod.weight.detach().float()
        else:
            raise RuntimeError("Unsupported dtype specified for dynamic quantized Linear!")
        made.set_weight_bias(weight, mod.bias)
        return made


class _Dynamic:
    """What dynamic convolutions do differently."""

    def _get_name(self):
        return "Dynamic" + super()._get_name()

    def forward(self, input, reduce_range=True):
        dims = self._dims
        if input.ndim != dims + 2:
            raise ValueError(f"Input shape must be `({'N, C, ' + ', '.join({1: 'L', 2: 'HW', 3: 'DHW'}[dims])})`!")
        if self.padding_mode != "zeros":
            input = nn.functional.pad(input, [p for p in reversed(self.padding) for _ in (0, 1)], mode=self.padding_mode)
        return getattr(quantized, f"conv{'_transpose' * self._transposed}{dims}d_dynamic")(input, self._packed_params, reduce_range)


def _kind(name):
    base, dims = getattr(nnq, name), int(name[-2])
    size, out = (1, 2) + (5,) * dims, [1, 3] + ([7] if base._transposed else [3]) * dims
    text = f"""``nnq.{name}`` of floats: the input is rounded to integers that cover it, and the result by the same scale, as in PyTorch.

    Example::

        >>> nn.quantized.dynamic.{name}(2, 3, 3)(clnn.rand{size}).shape
        clnn.Size({out})
    """
    return type(name, (_Dynamic, base), {"__doc__": text, "__module__": __name__, "_FLOAT_MODULES": (getattr(nn, name),)})


Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d = map(_kind, (
    "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"))
