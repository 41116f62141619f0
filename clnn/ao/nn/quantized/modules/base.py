"""What quantised layers share: weights that are rounded as an observer says, the state of a scale and a zero point, packed weights that move with the layer."""
from __future__ import annotations

import clnn
from clnn import nn
from clnn.nn.modules.module import _addindent

from ... import intrinsic as nni


def observer_of(post_process):
    """The observer inside a module that rounds; an observer itself."""
    return getattr(post_process, "activation_post_process", post_process)


def quantize_weight(weight, post_process):
    """A weight as a quantised tensor, by the scales that ``post_process`` found."""
    scale, zero_point = post_process.calculate_qparams()
    scheme, weight = post_process.qscheme, weight.detach().float()
    if scheme is clnn.per_channel_affine_float_qparams:
        quantised = clnn.quantize_per_channel(weight, scale.float(), zero_point.float(), post_process.ch_axis, post_process.dtype)
    elif scheme in (clnn.per_channel_symmetric, clnn.per_channel_affine):
        quantised = clnn.quantize_per_channel(weight, scale, zero_point.to(clnn.int64), post_process.ch_axis, clnn.qint8)
    elif scheme in (clnn.per_tensor_symmetric, clnn.per_tensor_affine):
        quantised = clnn.quantize_per_tensor(weight, float(scale), int(zero_point), clnn.qint8)
    else:
        raise ValueError(f"Unexpected qscheme {scheme}")
    observer = observer_of(post_process)
    low, high = (-128, 127) if quantised.dtype is clnn.qint8 else (0, 255)
    if observer.quant_min > low or observer.quant_max < high:
        return quantised.like(quantised.part.clamp(observer.quant_min, observer.quant_max))
    return quantised


def output_scale(module):
    """(scale, zero point) of what the observer of a layer's results saw, as numbers."""
    scale, zero_point = module.activation_post_process.calculate_qparams()
    return float(scale), int(zero_point)


def weight_rule(module):
    """What rounds, or observes, the weight of a layer: its own, or that of its setting."""
    return module.weight_fake_quant if hasattr(module, "weight_fake_quant") else module.qconfig.weight()


def expect_kind(cls, module, kinds):
    """Refuse to make a quantised layer of a module of another class."""
    if type(module) not in kinds:
        raise AssertionError(f"nnq.{cls.__name__}.from_float only works for {[k.__name__ for k in kinds]}, but got: {type(module)}")


def float_layer(cls, mod, kinds, fold):
    """(layer, weight, bias) that a quantised layer is made of: those of one trained with rounding, its batch norm folded in by ``fold``, or of one observed,
    alone or the first of several in one."""
    if hasattr(mod, "weight_fake_quant"):
        bn = getattr(mod, "bn", None)
        folded = (mod.weight, mod.bias) if bn is None else fold(mod.weight, mod.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias)
        return mod, *folded
    expect_kind(cls, mod, kinds)
    inner = mod
    if isinstance(mod, nni._FusedModule):
        inner = mod[0]
        inner.qconfig = getattr(inner, "qconfig", None) or mod.qconfig
    return inner, inner.weight, inner.bias


class Scaled(nn.Module):
    """A layer whose result has a scale and a zero point, Python numbers, which its state holds as tensors."""

    def __init__(self, scale=1.0, zero_point=0):
        super().__init__()
        self.scale, self.zero_point = scale, zero_point

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "scale"], destination[prefix + "zero_point"] = clnn.tensor(self.scale), clnn.tensor(self.zero_point)

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        for name, kind in (("scale", float), ("zero_point", int)):
            if prefix + name in state_dict:
                setattr(self, name, kind(state_dict.pop(prefix + name)))
            elif strict and (local_metadata.get("version") or 1) > 1:
                missing_keys.append(prefix + name)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, missing_keys, unexpected_keys, error_msgs)


class WeightedQuantizedModule(nn.Module):
    """A layer with a packed weight."""

    def _packed(self):
        return self._packed_params

    def _apply(self, fn, recurse=True):
        """Packed weights follow to another device, but keep their dtype."""
        super()._apply(fn, recurse)
        packed = self._packed()
        before = packed.unpack()[0].device if isinstance(packed.unpack(), tuple) else packed.unpack().device
        after = fn(clnn.zeros(0, device=before)).device
        if after != before and after.type != "meta":
            packed.moved(lambda t: t.to(after))
        return self


def hidden_repr(self, hidden):
    """``repr`` of a module without its children of the class ``hidden``."""
    children = [f"({key}): {_addindent(repr(child), 2)}" for key, child in self._modules.items() if not isinstance(child, hidden)]
    extra = self.extra_repr()
    if not children:
        return f"{self._get_name()}({extra})"
    return f"{self._get_name()}(\n  " + "\n  ".join([*extra.split("\n")] * bool(extra) + children) + "\n)"
