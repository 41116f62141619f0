"""Which setting which part of a model gets."""
from __future__ import annotations

from collections import OrderedDict

import clnn
from clnn import nn

from . import fake_quantize as fake
from . import observer as seen
from .qconfig import QConfig, default_quint8_weight_qconfig, default_reuse_input_qconfig, get_default_qat_qconfig, get_default_qconfig

__all__ = ["QConfigMapping", "get_default_qconfig_mapping", "get_default_qat_qconfig_mapping"]
_KEYS = dict(object_type_qconfigs="object_type", module_name_regex_qconfigs="module_name_regex", module_name_qconfigs="module_name",
             module_name_object_type_order_qconfigs="module_name_object_type_order")


class QConfigMapping:
    """Settings for a whole model, for classes and functions, for names, and for regular expressions over names; the most particular one counts.

    Example::

        >>> q = clnn.ao.quantization
        >>> mapping = q.QConfigMapping().set_global(q.default_qconfig).set_object_type(nn.Linear, None)
        >>> mapping.object_type_qconfigs[nn.Linear] is None
        True
    """

    def __init__(self):
        self.global_qconfig = None
        for name in _KEYS:
            setattr(self, name, OrderedDict())

    def set_global(self, global_qconfig):
        """For all that nothing else is said of."""
        self.global_qconfig = global_qconfig
        return self

    def set_object_type(self, object_type, qconfig):
        """For a class of modules, a function or a method's name."""
        self.object_type_qconfigs[object_type] = qconfig
        return self

    def set_module_name_regex(self, module_name_regex, qconfig):
        """For modules whose name matches."""
        self.module_name_regex_qconfigs[module_name_regex] = qconfig
        return self

    def set_module_name(self, module_name, qconfig):
        """For the module of this name."""
        self.module_name_qconfigs[module_name] = qconfig
        return self

    def set_module_name_object_type_order(self, module_name, object_type, index, qconfig):
        """For the ``index``-th use of a class or function in the module of this name."""
        self.module_name_object_type_order_qconfigs[(module_name, object_type, index)] = qconfig
        return self

    def to_dict(self):
        """The same as a dict of lists."""
        lists = {key: [(*k, v) if isinstance(k, tuple) else (k, v) for k, v in getattr(self, name).items()] for name, key in _KEYS.items()}
        return {"": self.global_qconfig, **lists}

    @classmethod
    def from_dict(cls, qconfig_dict):
        """The mapping of what :meth:`to_dict` returned."""
        made = cls()
        made.global_qconfig = qconfig_dict.get("", None)
        for name, key in _KEYS.items():
            for *k, v in qconfig_dict.get(key, []):
                getattr(made, name)[tuple(k) if len(k) > 1 else k[0]] = v
        return made

    def __repr__(self):
        lines = ["QConfigMapping (", " global_qconfig", f"  {self.global_qconfig}"]
        for name in _KEYS:
            entries = getattr(self, name)
            lines.append(f" {name}")
            lines += [f"  {k}: {v}" for k, v in entries.items()] or ["  OrderedDict()"]
        return "\n".join(lines + [")"])


def _mapping(training, backend, version):
    qconfig = (get_default_qat_qconfig if training else get_default_qconfig)(backend, version)
    weight = fake.default_weight_fake_quant if training else seen.default_weight_observer
    made = QConfigMapping().set_global(qconfig).set_object_type("reshape", default_reuse_input_qconfig)
    if backend in ("fbgemm", "x86", "qnnpack", "onednn"):
        transposed = QConfig(qconfig.activation, weight)
        for name in ("ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"):
            made.set_object_type(getattr(nn, name), transposed)
        for name in ("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"):
            made.set_object_type(getattr(nn.functional, name), transposed)
    for kind in (nn.functional.layer_norm, nn.LayerNorm):
        made.set_object_type(kind, QConfig(qconfig.activation, seen.default_placeholder_observer))
    made.set_object_type(nn.PReLU, default_quint8_weight_qconfig)
    positive, both = ((fake.default_fixed_qparams_range_0to1_fake_quant, fake.default_fixed_qparams_range_neg1to1_fake_quant) if training else
                      (seen.default_fixed_qparams_range_0to1_observer, seen.default_fixed_qparams_range_neg1to1_observer))
    kinds = {positive: (nn.Hardsigmoid, nn.functional.hardsigmoid, "hardsigmoid", "hardsigmoid_", nn.Sigmoid, clnn.sigmoid, "sigmoid", "sigmoid_", nn.Softmax),
             both: (nn.Tanh, clnn.tanh, "tanh", "tanh_")}
    for activation, names in kinds.items():
        for kind in names:
            made.set_object_type(kind, QConfig(activation, weight))
    return made


def get_default_qconfig_mapping(backend="x86", version=0):
    """The usual settings for quantisation after training, with the ranges of functions whose results are known.

    Example::

        >>> clnn.ao.quantization.get_default_qconfig_mapping().object_type_qconfigs[nn.Sigmoid].activation().scale
        tensor([0.0039])
    """
    return _mapping(False, backend, version)


def get_default_qat_qconfig_mapping(backend="x86", version=1):
    """The usual settings for training with rounding.

    Example::

        >>> clnn.ao.quantization.get_default_qat_qconfig_mapping().global_qconfig.weight().qscheme
        clnn.per_channel_symmetric
    """
    return _mapping(True, backend, version)
