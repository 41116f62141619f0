"""Modules that round as quantised tensors would, and observe what they round: what training for quantised inference computes with."""
from __future__ import annotations

from abc import ABC, abstractmethod

import clnn
from clnn import nn
from clnn._quantized.ranges import covering

from .observer import (FixedQParamsObserver, HistogramObserver, MovingAverageMinMaxObserver, MovingAveragePerChannelMinMaxObserver, _with_args,
                       default_fixed_qparams_range_0to1_observer, default_fixed_qparams_range_neg1to1_observer)
from .utils import is_per_channel, is_per_tensor

__all__ = ["FakeQuantizeBase", "FakeQuantize", "FixedQParamsFakeQuantize", "FusedMovingAvgObsFakeQuantize", "disable_fake_quant", "disable_observer",
           "enable_fake_quant", "enable_observer"]


class FakeQuantizeBase(ABC, nn.Module):
    """What modules that round have: two switches, kept as buffers so that they are part of the state.

    Example::

        >>> fake = clnn.ao.quantization.FakeQuantize()
        >>> fake.disable_fake_quant()
        >>> fake(clnn.tensor([0.123]))
        tensor([0.1230])
    """

    def __init__(self):
        super().__init__()
        self.register_buffer("fake_quant_enabled", clnn.tensor([1], dtype=clnn.uint8))
        self.register_buffer("observer_enabled", clnn.tensor([1], dtype=clnn.uint8))

    @abstractmethod
    def forward(self, x):
        """``x`` rounded."""

    @abstractmethod
    def calculate_qparams(self, **kwargs):
        """(scale, zero point)."""

    def enable_fake_quant(self, enabled=True):
        """Round from now on, or not."""
        self.fake_quant_enabled[0] = 1 if enabled else 0

    def disable_fake_quant(self):
        """Do not round from now on."""
        self.enable_fake_quant(False)

    def enable_observer(self, enabled=True):
        """Observe from now on, or not."""
        self.observer_enabled[0] = 1 if enabled else 0

    def disable_observer(self):
        """Do not observe from now on."""
        self.enable_observer(False)

    def _on(self, name):
        """The value of a switch, read from the device only after it was written."""
        held = self._buffers[name]
        if held.is_inference():
            return held[0].item() == 1
        key, known = (id(held), held._version), self.__dict__.setdefault("_switches", {})
        if known.get(name, (None,))[0] != key:
            known[name] = key, held[0].item() == 1
        return known[name][1]

    with_args = classmethod(_with_args)


class FakeQuantize(FakeQuantizeBase):
    """Observes its input and rounds it by the scale and the zero point that follow: ``(clamp(round(x / scale + zero)) - zero) * scale``.

    Args:
        observer: the class of the observer, which gets the other arguments.
        quant_min, quant_max: the least and the greatest integer.

    Example::

        >>> fake = clnn.ao.quantization.FakeQuantize(quant_min=0, quant_max=3)
        >>> fake(clnn.tensor([0.0, 1.2, 3.0]))
        tensor([0., 1., 3.])
    """

    def __init__(self, observer=MovingAverageMinMaxObserver, quant_min=None, quant_max=None, is_dynamic=False, **observer_kwargs):
        super().__init__()
        if quant_min is not None and quant_max is not None:
            if quant_min > quant_max:
                raise AssertionError("quant_min must be less than or equal to quant_max")
            observer_kwargs.update(quant_min=quant_min, quant_max=quant_max)
        observer_kwargs["is_dynamic"] = is_dynamic
        self.activation_post_process = observer(**observer_kwargs)
        self.quant_min, self.quant_max = self.activation_post_process.quant_min, self.activation_post_process.quant_max
        self.is_dynamic = self.activation_post_process.is_dynamic
        floats = self.activation_post_process.qscheme is clnn.per_channel_affine_float_qparams
        self.register_buffer("scale", clnn.tensor([1.0]))
        self.register_buffer("zero_point", clnn.tensor([0.0] if floats else [0], dtype=clnn.float32 if floats else clnn.int32))
        self.dtype, self.qscheme = self.activation_post_process.dtype, self.activation_post_process.qscheme
        self.ch_axis = getattr(self.activation_post_process, "ch_axis", -1)
        if not (is_per_channel(self.qscheme) or is_per_tensor(self.qscheme)):
            raise AssertionError("Only per channel and per tensor quantization are supported in fake quantize got qscheme: " + str(self.qscheme))
        self.is_per_channel = is_per_channel(self.qscheme)

    def calculate_qparams(self):
        """(scale, zero point) for what was observed."""
        return self.activation_post_process.calculate_qparams()

    def forward(self, X):
        if self._on("observer_enabled"):
            self.activation_post_process(X.detach())
            self._hold(*self.calculate_qparams())
        return self._rounded(X) if self._on("fake_quant_enabled") else X

    def _hold(self, scale, zero_point):
        for held, new in ((self.scale, scale), (self.zero_point, zero_point)):
            if held.shape != new.shape:
                held.resize_(new.shape)
            held.copy_(new)

    def _rounded(self, X):
        limits = self.activation_post_process.quant_min, self.activation_post_process.quant_max
        if self.is_per_channel:
            return clnn.fake_quantize_per_channel_affine(X, self.scale, self.zero_point, self.ch_axis, *limits)
        return clnn.fake_quantize_per_tensor_affine(X, self.scale, self.zero_point, *limits)

    def extra_repr(self):
        return (f"fake_quant_enabled={self.fake_quant_enabled}, observer_enabled={self.observer_enabled}, "
                f"quant_min={self.activation_post_process.quant_min}, quant_max={self.activation_post_process.quant_max}, "
                f"dtype={self.dtype}, qscheme={self.qscheme}, ch_axis={self.ch_axis}, scale={self.scale}, zero_point={self.zero_point}")

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "scale"], destination[prefix + "zero_point"] = self.scale, self.zero_point

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        for name in ("scale", "zero_point"):                # as many as there are channels
            given, held = state_dict.get(prefix + name), self._buffers[name]
            if given is not None and given.shape != held.shape:
                self._buffers[name] = clnn.zeros(given.shape, dtype=held.dtype, device=held.device)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)


class FixedQParamsFakeQuantize(FakeQuantize):
    """Rounds by a scale and a zero point that are known beforehand.

    Example::

        >>> clnn.ao.quantization.default_fixed_qparams_range_0to1_fake_quant()(clnn.tensor([0.3, 2.0]))
        tensor([0.3008, 0.9961])
    """

    def __init__(self, observer):
        super().__init__(observer=observer)
        if type(self.activation_post_process) is not FixedQParamsObserver:
            raise AssertionError(f"{type(self).__name__}'s observer must be a FixedQParamsObserver")
        self.scale, self.zero_point = self.activation_post_process.scale, self.activation_post_process.zero_point
        if not is_per_tensor(self.qscheme):
            raise AssertionError("Only per tensor quantization is supported FixedQParamsFakeQuantize module, got qscheme:" + str(self.qscheme))

    def calculate_qparams(self):
        """(scale, zero point)."""
        return self.scale, self.zero_point

    def extra_repr(self):
        return (f"fake_quant_enabled={self.fake_quant_enabled}, observer_enabled={self.observer_enabled}, scale={self.scale}, zero_point={self.zero_point}, "
                f"dtype={self.dtype}, quant_min={self.activation_post_process.quant_min}, quant_max={self.activation_post_process.quant_max}, "
                f"qscheme={self.qscheme}")


class FusedMovingAvgObsFakeQuantize(FakeQuantize):
    """:class:`FakeQuantize` with an observer of moving averages; PyTorch has one operator for both.

    Example::

        >>> clnn.ao.quantization.FusedMovingAvgObsFakeQuantize()(clnn.tensor([0.0, 2.55]))
        tensor([0.0000, 2.5500])
    """

    def __init__(self, observer=MovingAverageMinMaxObserver, quant_min=0, quant_max=255, **observer_kwargs):
        super().__init__(observer, quant_min, quant_max, **observer_kwargs)
        if not isinstance(self.activation_post_process, (MovingAverageMinMaxObserver, MovingAveragePerChannelMinMaxObserver)):
            raise AssertionError("Fused observer+fake_quant module only works with MovingAverageMinMaxObserver")
        self.register_buffer("fake_quant_enabled", clnn.tensor([1], dtype=clnn.int64))
        self.register_buffer("observer_enabled", clnn.tensor([1], dtype=clnn.int64))
        self.is_symmetric_quant = self.qscheme in (clnn.per_channel_symmetric, clnn.per_tensor_symmetric)

    def forward(self, X):
        if self._on("observer_enabled"):
            observer = self.activation_post_process
            observer(X.detach())
            self._hold(*covering(observer.min_val, observer.max_val, observer.quant_min, observer.quant_max, self.is_symmetric_quant))
        return self._rounded(X) if self._on("fake_quant_enabled") else X

    def extra_repr(self):
        return (f"fake_quant_enabled={self.fake_quant_enabled}, observer_enabled={self.observer_enabled}, scale={self.scale}, zero_point={self.zero_point}, "
                f"dtype={self.dtype}, quant_min={self.activation_post_process.quant_min}, quant_max={self.activation_post_process.quant_max}, "
                f"qscheme={self.qscheme}, reduce_range={self.activation_post_process.reduce_range}")


_weight = dict(quant_min=-128, quant_max=127, dtype=clnn.qint8)
_by_tensor = dict(observer=MovingAverageMinMaxObserver, **_weight, qscheme=clnn.per_tensor_symmetric)
_by_channel = dict(observer=MovingAveragePerChannelMinMaxObserver, **_weight, qscheme=clnn.per_channel_symmetric)
_narrow = dict(quant_min=-127, quant_max=127, eps=2 ** -12)
default_fake_quant = FakeQuantize.with_args(observer=MovingAverageMinMaxObserver, quant_min=0, quant_max=255, dtype=clnn.quint8, qscheme=clnn.per_tensor_affine,
                                            reduce_range=True)
default_weight_fake_quant = FakeQuantize.with_args(**_by_tensor, reduce_range=False)
default_dynamic_fake_quant = FakeQuantize.with_args(observer=MovingAverageMinMaxObserver, quant_min=0, quant_max=255, is_dynamic=True, dtype=clnn.quint8,
                                                    averaging_constant=1)
default_fixed_qparams_range_neg1to1_fake_quant = FixedQParamsFakeQuantize.with_args(observer=default_fixed_qparams_range_neg1to1_observer)
default_fixed_qparams_range_0to1_fake_quant = FixedQParamsFakeQuantize.with_args(observer=default_fixed_qparams_range_0to1_observer)
default_symmetric_fixed_qparams_fake_quant, default_affine_fixed_qparams_fake_quant = (
    default_fixed_qparams_range_neg1to1_fake_quant, default_fixed_qparams_range_0to1_fake_quant)
default_per_channel_weight_fake_quant = FakeQuantize.with_args(**_by_channel, reduce_range=False, ch_axis=0)
default_embedding_fake_quant = FakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver, qscheme=clnn.per_channel_affine_float_qparams, dtype=clnn.quint8, quant_min=0, quant_max=255, ch_axis=0,
    averaging_constant=1)
default_embedding_fake_quant_4bit = FakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver, qscheme=clnn.per_channel_affine_float_qparams, ch_axis=0, dtype=clnn.quint4x2, averaging_constant=1)
default_histogram_fake_quant = FakeQuantize.with_args(observer=HistogramObserver, quant_min=0, quant_max=255, dtype=clnn.quint8,
                                                      qscheme=clnn.per_tensor_affine, reduce_range=True)
default_fused_act_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(observer=MovingAverageMinMaxObserver, quant_min=0, quant_max=255, dtype=clnn.quint8)
default_fused_wt_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(**_by_tensor)
default_fused_per_channel_wt_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(**_by_channel)
fused_wt_fake_quant_range_neg_127_to_127 = FusedMovingAvgObsFakeQuantize.with_args(**{**_by_tensor, **_narrow})
fused_per_channel_wt_fake_quant_range_neg_127_to_127 = FusedMovingAvgObsFakeQuantize.with_args(**{**_by_channel, **_narrow})


def _switch(name):
    def switch(mod):
        if isinstance(mod, FakeQuantizeBase):
            getattr(mod, name)()
    switch.__name__ = switch.__qualname__ = name
    switch.__doc__ = f"""Call ``{name}`` of ``mod``, if it has that: ``model.apply(clnn.ao.quantization.{name})``.

    Example::

        >>> _ = nn.ReLU().apply(clnn.ao.quantization.{name})
    """
    return switch


disable_fake_quant, enable_fake_quant, disable_observer, enable_observer = map(_switch, ("disable_fake_quant", "enable_fake_quant", "disable_observer",
                                                                                        "enable_observer"))
