"""Observers: modules that pass their input on and note what they saw of it, from which a scale and a zero point follow."""
from __future__ import annotations

import functools
import re
import warnings
from abc import ABCMeta, abstractmethod
from collections import OrderedDict

import clnn
from clnn import nn

from .utils import calculate_qmin_qmax, check_min_max_valid, is_per_channel, is_per_tensor, validate_qmin_qmax

__all__ = ["ObserverBase", "UniformQuantizationObserverBase", "MinMaxObserver", "MovingAverageMinMaxObserver", "PerChannelMinMaxObserver",
           "MovingAveragePerChannelMinMaxObserver", "FixedQParamsObserver", "PlaceholderObserver", "RecordingObserver", "NoopObserver", "ReuseInputObserver",
           "get_observer_state_dict", "load_observer_state_dict"]
_EPS = 1.1920928955078125e-07
_REDUCED = "Please use quant_min and quant_max to specify the range for observers. reduce_range will be deprecated in a future release of PyTorch."


class _PartialWrapper:
    """A class with some of its arguments, to be made many times."""

    def __init__(self, p):
        self.p, self.callable_args = p, {}

    def __call__(self, *args, **kwargs):
        late = {name: make() for name, make in self.callable_args.items() if name not in kwargs}
        return self.p(*args, **late, **kwargs)

    def __repr__(self):
        return f"{self.p!r}{self.callable_args!r}"

    def with_args(self, **kwargs):
        """Further arguments."""
        return _with_args(self, **kwargs)

    def with_callable_args(self, **kwargs):
        """Arguments that are made anew each time, by functions."""
        made = _PartialWrapper(self.p)
        made.callable_args = {**self.callable_args, **kwargs}
        return made


def _with_args(cls_or_self, **kwargs):
    made = _PartialWrapper(functools.partial(cls_or_self, **kwargs))
    return made


def _with_callable_args(cls_or_self, **kwargs):
    return _PartialWrapper(functools.partial(cls_or_self)).with_callable_args(**kwargs)


class ObserverBase(nn.Module, metaclass=ABCMeta):
    """What all observers have: a dtype, and :meth:`calculate_qparams`.

    Args:
        dtype: of the quantised tensor that is to come.
        is_dynamic: the scale is found anew for each input.

    Example::

        >>> isinstance(clnn.ao.quantization.MinMaxObserver(), clnn.ao.quantization.ObserverBase)
        True
    """

    def __init__(self, dtype, is_dynamic=False):
        super().__init__()
        self.dtype, self.is_dynamic = dtype, is_dynamic

    @abstractmethod
    def forward(self, x):
        """Note what ``x`` holds and return it."""

    @abstractmethod
    def calculate_qparams(self, **kwargs):
        """(scale, zero point) for what was seen."""

    with_args = classmethod(_with_args)
    with_callable_args = classmethod(_with_callable_args)


class UniformQuantizationObserverBase(ObserverBase):
    """Observers whose integers are evenly spaced numbers.

    Args:
        dtype, qscheme: of the quantised tensor that is to come.
        reduce_range: use half of the integers.
        quant_min, quant_max: the least and the greatest integer; both or none.
        eps: the least scale.

    Example::

        >>> issubclass(clnn.ao.quantization.HistogramObserver, clnn.ao.quantization.UniformQuantizationObserverBase)
        True
    """

    _version = 3

    def __init__(self, dtype=clnn.quint8, qscheme=clnn.per_tensor_affine, reduce_range=False, quant_min=None, quant_max=None, factory_kwargs=None, eps=_EPS,
                 is_dynamic=False, **kwargs):
        super().__init__(dtype=dtype, is_dynamic=is_dynamic, **kwargs)
        if reduce_range:
            warnings.warn(_REDUCED, stacklevel=2)
        if not (is_per_tensor(qscheme) or is_per_channel(qscheme)):
            raise AssertionError("Default Observer only works for per_tensor_affine, per_tensor_symmetric, per_channel_affine, per_channel_symmetric and "
                                 "per_channel_float_qparams quantization scheme")
        self.qscheme, self.reduce_range = qscheme, reduce_range
        self.register_buffer("eps", clnn.tensor([eps], **(factory_kwargs or {})))
        self.has_customized_qrange = quant_min is not None and quant_max is not None
        if self.has_customized_qrange:
            validate_qmin_qmax(quant_min, quant_max)
        self.quant_min, self.quant_max = calculate_qmin_qmax(quant_min, quant_max, self.has_customized_qrange, dtype, reduce_range)
        if qscheme in (clnn.per_tensor_symmetric, clnn.per_channel_symmetric) and reduce_range and dtype is clnn.quint8:
            raise NotImplementedError("Cannot reduce range for symmetric quantization for quint8")

    def _expect_scheme(self, qscheme, fits, what):
        if not fits(qscheme):
            raise NotImplementedError(f"{type(self).__name__}'s qscheme only support {what}, but got: {qscheme}")

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        if local_metadata.get("version", None) in (None, 1):
            state_dict.setdefault(prefix + "eps", clnn.tensor([_EPS]))
        for name in ("min_val", "max_val"):
            held, given = self._buffers.get(name), state_dict.get(prefix + name)
            if held is not None and given is not None and held.shape != given.shape:    # channels are counted when they are first seen
                self._buffers[name] = clnn.zeros(given.shape, dtype=held.dtype, device=held.device)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)

    def _calculate_qparams(self, min_val, max_val):
        """(scale, zero point) that cover the numbers from ``min_val`` to ``max_val``: tensors of one element, or one for each channel."""
        if not check_min_max_valid(min_val, max_val):
            return clnn.tensor([1.0], device=min_val.device), clnn.tensor([0], device=min_val.device)
        low, high = min_val.clamp(max=0), max_val.clamp(min=0)
        width, eps = float(self.quant_max - self.quant_min), self.eps
        zero_point = clnn.zeros(low.shape, dtype=clnn.int64, device=low.device)
        if self.qscheme in (clnn.per_tensor_symmetric, clnn.per_channel_symmetric):
            scale = clnn.maximum(clnn.maximum(-low, high) / (width / 2), eps)
            if self.dtype in (clnn.quint8, clnn.uint8):
                zero_point += (self.quant_min + self.quant_max) // 2 if self.has_customized_qrange else 128
            elif self.dtype is clnn.uint16:
                zero_point += 2 ** 15
        elif self.qscheme is clnn.per_channel_affine_float_qparams:
            scale = (max_val - min_val) / width
            scale = clnn.where(scale > eps, scale, clnn.ones_like(scale))
            zero_point = -min_val / scale
        else:
            scale = clnn.maximum((high - low) / width, eps)
            zero_point = (self.quant_min - clnn.round(low / scale).to(clnn.int32)).clamp(self.quant_min, self.quant_max)
        return scale.reshape(-1), zero_point.reshape(-1)

    def reset_min_max_vals(self):
        """Forget what was seen."""
        raise NotImplementedError("Cannot reset min/max values in the given observer.")

    def extra_repr(self):
        return f"min_val={self.min_val}, max_val={self.max_val}"


class MinMaxObserver(UniformQuantizationObserverBase):
    """Notes the least and the greatest element of all inputs.

    Args:
        dtype, qscheme, reduce_range, quant_min, quant_max, eps: see :class:`UniformQuantizationObserverBase`.

    Example::

        >>> observer = clnn.ao.quantization.MinMaxObserver(dtype=clnn.quint8)
        >>> _ = observer(clnn.tensor([-1.0, 4.1]))
        >>> observer.calculate_qparams()
        (tensor([0.0200]), tensor([50], dtype=clnn.int32))
    """

    def __init__(self, dtype=clnn.quint8, qscheme=clnn.per_tensor_affine, reduce_range=False, quant_min=None, quant_max=None, factory_kwargs=None, eps=_EPS,
                 is_dynamic=False, **kwargs):
        self._expect_scheme(qscheme, is_per_tensor, "torch.per_tensor_symmetric and torch.per_tensor_affine")
        super().__init__(dtype, qscheme, reduce_range, quant_min, quant_max, factory_kwargs, eps, is_dynamic, **kwargs)
        self.register_buffer("min_val", clnn.tensor(float("inf"), **(factory_kwargs or {})))
        self.register_buffer("max_val", clnn.tensor(float("-inf"), **(factory_kwargs or {})))

    def forward(self, x_orig):
        if x_orig.numel():
            low, high = clnn.aminmax(x_orig.detach().to(self.min_val.dtype))
            self._note(low, high)
        return x_orig

    def _note(self, low, high):
        self.min_val.copy_(clnn.minimum(low, self.min_val))
        self.max_val.copy_(clnn.maximum(high, self.max_val))

    def calculate_qparams(self):
        """(scale, zero point), tensors of one element."""
        return self._calculate_qparams(self.min_val, self.max_val)

    def reset_min_max_vals(self):
        """Forget what was seen."""
        self.min_val.fill_(float("inf"))
        self.max_val.fill_(float("-inf"))


class MovingAverageMinMaxObserver(MinMaxObserver):
    """Notes moving averages of the least and of the greatest element of each input: ``min += c (least - min)``.

    Args:
        averaging_constant: c. Default: 0.01.
        dtype, qscheme, reduce_range, quant_min, quant_max, eps: see :class:`UniformQuantizationObserverBase`.

    Example::

        >>> observer = clnn.ao.quantization.MovingAverageMinMaxObserver(0.5)
        >>> _ = observer(clnn.tensor([0.0, 2.0])), observer(clnn.tensor([0.0, 4.0]))
        >>> observer.max_val
        tensor(3.)
    """

    def __init__(self, averaging_constant=0.01, dtype=clnn.quint8, qscheme=clnn.per_tensor_affine, reduce_range=False, quant_min=None, quant_max=None,
                 eps=_EPS, is_dynamic=False, **kwargs):
        self._expect_scheme(qscheme, is_per_tensor, "torch.per_tensor_symmetric and torch.per_tensor_affine")
        if is_dynamic and averaging_constant != 1:
            raise NotImplementedError(f"MovingAverageMinMaxObserver doesn't support dynamic quantization for averaging constant of {averaging_constant}")
        super().__init__(dtype, qscheme, reduce_range, quant_min, quant_max, eps=eps, is_dynamic=is_dynamic, **kwargs)
        self.averaging_constant = averaging_constant

    def _note(self, low, high):
        fresh, c = (self.min_val == float("inf")) & (self.max_val == float("-inf")), self.averaging_constant
        before = [clnn.where(fresh, new, old) for new, old in ((low, self.min_val), (high, self.max_val))]      # the first input counts whole
        self.min_val.copy_(before[0] + c * (low - before[0]))
        self.max_val.copy_(before[1] + c * (high - before[1]))


class PerChannelMinMaxObserver(UniformQuantizationObserverBase):
    """:class:`MinMaxObserver` for each channel.

    Args:
        ch_axis: the dimension of the channels. Default: 0.
        dtype, qscheme, reduce_range, quant_min, quant_max, eps: see :class:`UniformQuantizationObserverBase`.

    Example::

        >>> observer = clnn.ao.quantization.PerChannelMinMaxObserver(dtype=clnn.qint8, qscheme=clnn.per_channel_symmetric)
        >>> _ = observer(clnn.tensor([[-1.0, 0.5], [2.0, 0.0]]))
        >>> observer.min_val, observer.max_val
        (tensor([-1.,  0.]), tensor([0.5000, 2.0000]))
    """

    def __init__(self, ch_axis=0, dtype=clnn.quint8, qscheme=clnn.per_channel_affine, reduce_range=False, quant_min=None, quant_max=None, factory_kwargs=None,
                 eps=_EPS, is_dynamic=False, **kwargs):
        self._expect_scheme(qscheme, is_per_channel, "torch.per_channel_symmetric, torch.per_channel_affine and torch.per_channel_affine_float_qparams")
        if is_dynamic:
            raise NotImplementedError(f"{type(self).__name__} doesn't support dynamic quantization")
        super().__init__(dtype, qscheme, reduce_range, quant_min, quant_max, factory_kwargs, eps, is_dynamic, **kwargs)
        self.ch_axis = ch_axis
        self.register_buffer("min_val", clnn.tensor([], **(factory_kwargs or {})))
        self.register_buffer("max_val", clnn.tensor([], **(factory_kwargs or {})))

    def forward(self, x_orig):
        if x_orig.numel():
            x = x_orig.detach().to(self.min_val.dtype)
            low, high = clnn.aminmax(x.movedim(self.ch_axis, 0).flatten(1), dim=1)
            if self.min_val.numel():
                low, high = self._joined(low, high)
            if self.min_val.shape != low.shape:
                self.min_val.resize_(low.shape), self.max_val.resize_(high.shape)
            self.min_val.copy_(low)
            self.max_val.copy_(high)
        return x_orig

    def _joined(self, low, high):
        return clnn.minimum(low, self.min_val), clnn.maximum(high, self.max_val)

    def calculate_qparams(self):
        """(scales, zero points), one for each channel."""
        return self._calculate_qparams(self.min_val, self.max_val)

    def reset_min_max_vals(self):
        """Forget what was seen."""
        self.min_val, self.max_val = (clnn.empty(0, device=t.device) for t in (self.min_val, self.max_val))


class MovingAveragePerChannelMinMaxObserver(PerChannelMinMaxObserver):
    """:class:`MovingAverageMinMaxObserver` for each channel.

    Example::

        >>> observer = clnn.ao.quantization.MovingAveragePerChannelMinMaxObserver(0.5)
        >>> _ = observer(clnn.tensor([[0.0, 2.0]])), observer(clnn.tensor([[0.0, 4.0]]))
        >>> observer.max_val
        tensor([3.])
    """

    def __init__(self, averaging_constant=0.01, ch_axis=0, dtype=clnn.quint8, qscheme=clnn.per_channel_affine, reduce_range=False, quant_min=None,
                 quant_max=None, eps=_EPS, is_dynamic=False, **kwargs):
        super().__init__(ch_axis, dtype, qscheme, reduce_range, quant_min, quant_max, eps=eps, is_dynamic=is_dynamic, **kwargs)
        self.averaging_constant = averaging_constant

    def _joined(self, low, high):
        c = self.averaging_constant
        return self.min_val + c * (low - self.min_val), self.max_val + c * (high - self.max_val)


class FixedQParamsObserver(ObserverBase):
    """A scale and a zero point that are known beforehand, as those of a sigmoid.

    Example::

        >>> clnn.ao.quantization.FixedQParamsObserver(1 / 256, 0).calculate_qparams()
        (tensor([0.0039]), tensor([0]))
    """

    def __init__(self, scale, zero_point, dtype=clnn.quint8, qscheme=clnn.per_tensor_affine, quant_min=0, quant_max=255, is_dynamic=False, **kwargs):
        if is_dynamic:
            raise NotImplementedError("FixedQParamsObserver doesn't support dynamic quantization")
        super().__init__(dtype=dtype, is_dynamic=is_dynamic, **kwargs)
        self.quant_min, self.quant_max, self.qscheme = quant_min, quant_max, qscheme
        self.register_buffer("scale", clnn.tensor([scale]))
        self.register_buffer("zero_point", clnn.tensor([zero_point]))

    def forward(self, X):
        return X

    def calculate_qparams(self):
        """(scale, zero point)."""
        return self.scale, self.zero_point


class PlaceholderObserver(ObserverBase):
    """Notes nothing: says which dtype the tensor is to have, for conversions that find scales themselves.

    Example::

        >>> clnn.ao.quantization.PlaceholderObserver(dtype=clnn.float16)(clnn.ones(1))
        tensor([1.])
    """

    def __init__(self, dtype=clnn.float32, custom_op_name="", compute_dtype=None, quant_min=None, quant_max=None, qscheme=None, eps=None, is_dynamic=False):
        super().__init__(dtype=dtype, is_dynamic=is_dynamic)
        self.qscheme, self.quant_min, self.quant_max = clnn.per_tensor_affine if qscheme is None else qscheme, quant_min, quant_max
        self.eps, self.custom_op = eps, custom_op_name
        if compute_dtype:
            self.is_dynamic = True
            warnings.warn("Please use `is_dynamic` instead of `compute_dtype`. `compute_dtype` will be deprecated in a future release of PyTorch.", stacklevel=2)

    def forward(self, x):
        return x

    def extra_repr(self):
        return f"dtype={self.dtype}, is_dynamic={self.is_dynamic}"

    def calculate_qparams(self):
        """Refused: nothing was noted."""
        raise Exception("calculate_qparams should not be called for PlaceholderObserver")  # noqa: TRY002


class RecordingObserver(ObserverBase):
    """Keeps all inputs.

    Example::

        >>> observer = clnn.ao.quantization.RecordingObserver()
        >>> _ = observer(clnn.ones(1))
        >>> observer.get_tensor_value()
        [tensor([1.])]
    """

    def __init__(self, dtype=clnn.quint8):
        super().__init__(dtype=dtype, is_dynamic=False)
        self.tensor_val = []

    def forward(self, x):
        self.tensor_val.append(x.clone())
        return x

    def calculate_qparams(self):
        """Refused: inputs were kept, not measured."""
        raise Exception("calculate_qparams should not be called for RecordingObserver")  # noqa: TRY002

    def get_tensor_value(self):
        """The inputs so far."""
        return self.tensor_val


class NoopObserver(ObserverBase):
    """Notes nothing.

    Example::

        >>> clnn.ao.quantization.NoopObserver()(clnn.ones(1))
        tensor([1.])
    """

    def __init__(self, dtype=clnn.float16, custom_op_name=""):
        super().__init__(dtype=dtype, is_dynamic=False)
        self.custom_op = custom_op_name

    def forward(self, x):
        return x

    def calculate_qparams(self):
        """Refused: nothing was noted."""
        raise Exception("calculate_qparams should not be called for NoopObserver")  # noqa: TRY002


class ReuseInputObserver(ObserverBase):
    """Says that the result has the scale of the operator's input.

    Example::

        >>> clnn.ao.quantization.ReuseInputObserver()(clnn.ones(1))
        tensor([1.])
    """

    def __init__(self):
        super().__init__(clnn.quint8, is_dynamic=False)

    def forward(self, x):
        return x

    def calculate_qparams(self):
        """Refused: nothing was noted."""
        raise Exception("calculate_qparams should not be called for ReuseInputObserver")  # noqa: TRY002


def get_observer_state_dict(mod):
    """What the observers of a module hold, by name.

    Example::

        >>> clnn.ao.quantization.get_observer_state_dict(nn.ReLU())
        OrderedDict()
    """
    state = mod.state_dict()
    found = OrderedDict((k, v) for k, v in state.items() if "activation_post_process" in k)
    if hasattr(state, "_metadata"):
        found._metadata = {k: v for k, v in state._metadata.items() if "activation_post_process" in k}
    return found


def load_observer_state_dict(mod, obs_dict):
    """Give the observers of a module what :func:`get_observer_state_dict` returned.

    Example::

        >>> q = clnn.ao.quantization
        >>> q.load_observer_state_dict(nn.ReLU(), q.get_observer_state_dict(nn.ReLU()))
    """
    missing, unexpected = [], []
    for name, module in mod.named_modules():
        if re.search(r"activation_post_process(_\d+)?$", name):
            module._load_from_state_dict(obs_dict, name + ".", {"version": getattr(module, "_version", None)}, False, missing, unexpected, [])
    for key in missing:
        if re.search(r"activation_post_process(_\d+)?", key):
            raise Exception(f"Missing keys for observer {key} in state_dict")  # noqa: TRY002
    for key in unexpected:
        if re.search(r"activation_post_process(_\d+)?", key):
            raise Exception(f"Unexpected keys for observer {key} in state_dict")  # noqa: TRY002


def _is_activation_post_process(module):
    """Whether a module observes, or rounds as an observer says."""
    from .fake_quantize import FakeQuantizeBase
    return isinstance(module, (ObserverBase, FakeQuantizeBase))


def _named():
    """The usual observers under PyTorch's names."""
    from .histogram import HistogramObserver
    fixed = FixedQParamsObserver.with_args
    names = dict(
        default_observer=MinMaxObserver.with_args(quant_min=0, quant_max=127), default_placeholder_observer=PlaceholderObserver,
        default_debug_observer=RecordingObserver, default_weight_observer=MinMaxObserver.with_args(dtype=clnn.qint8, qscheme=clnn.per_tensor_symmetric),
        weight_observer_range_neg_127_to_127=MinMaxObserver.with_args(dtype=clnn.qint8, qscheme=clnn.per_tensor_symmetric, quant_min=-127, quant_max=127,
                                                                      eps=2 ** -12),
        default_histogram_observer=HistogramObserver.with_args(quant_min=0, quant_max=127),
        default_per_channel_weight_observer=PerChannelMinMaxObserver.with_args(dtype=clnn.qint8, qscheme=clnn.per_channel_symmetric),
        per_channel_weight_observer_range_neg_127_to_127=PerChannelMinMaxObserver.with_args(
            dtype=clnn.qint8, qscheme=clnn.per_channel_symmetric, quant_min=-127, quant_max=127, eps=2 ** -12),
        default_dynamic_quant_observer=PlaceholderObserver.with_args(dtype=clnn.quint8, quant_min=0, quant_max=255, is_dynamic=True),
        default_float_qparams_observer=PerChannelMinMaxObserver.with_args(dtype=clnn.quint8, qscheme=clnn.per_channel_affine_float_qparams, ch_axis=0),
        default_float_qparams_observer_4bit=PerChannelMinMaxObserver.with_args(dtype=clnn.quint4x2, qscheme=clnn.per_channel_affine_float_qparams, ch_axis=0),
        default_fixed_qparams_range_neg1to1_observer=fixed(scale=2.0 / 256.0, zero_point=128, dtype=clnn.quint8, quant_min=0, quant_max=255),
        default_fixed_qparams_range_0to1_observer=fixed(scale=1.0 / 256.0, zero_point=0, dtype=clnn.quint8, quant_min=0, quant_max=255),
        default_reuse_input_observer=ReuseInputObserver, HistogramObserver=HistogramObserver)
    names.update(default_symmetric_fixed_qparams_observer=names["default_fixed_qparams_range_neg1to1_observer"],
                 default_affine_fixed_qparams_observer=names["default_fixed_qparams_range_0to1_observer"])
    return names


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    globals().update(_named())
    if name in globals():
        return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
