"""Settings of a layer: which observer, or which module that rounds, its activations and its weights get."""
from __future__ import annotations

import warnings
from collections import namedtuple

import clnn
from clnn import nn

from . import fake_quantize as fake
from . import observer as seen

__all__ = ["QConfig", "QConfigDynamic", "default_qconfig", "default_debug_qconfig", "default_per_channel_qconfig", "default_dynamic_qconfig",
           "float16_dynamic_qconfig", "float16_static_qconfig", "per_channel_dynamic_qconfig", "float_qparams_weight_only_qconfig",
           "float_qparams_weight_only_qconfig_4bit", "default_quint8_weight_qconfig", "default_qat_qconfig", "default_dynamic_qat_qconfig",
           "default_weight_only_qconfig", "default_activation_only_qconfig", "default_qat_qconfig_v2", "default_reuse_input_qconfig",
           "default_symmetric_qnnpack_qconfig", "default_per_channel_symmetric_qnnpack_qconfig", "default_symmetric_qnnpack_qat_qconfig",
           "default_per_channel_symmetric_qnnpack_qat_qconfig", "default_embedding_qat_qconfig", "default_embedding_qat_qconfig_4bit", "get_default_qconfig",
           "get_default_qat_qconfig", "get_default_qconfig_dict", "get_default_qat_qconfig_dict", "QConfigAny", "qconfig_equals"]


class QConfig(namedtuple("QConfig", ["activation", "weight"])):
    """What makes the observer of a layer's activations, and that of its weights: classes, or what their ``with_args`` gives.

    Example::

        >>> q = clnn.ao.quantization
        >>> q.QConfig(activation=q.MinMaxObserver.with_args(dtype=clnn.quint8), weight=q.default_weight_observer).weight().dtype
        clnn.qint8
    """

    __slots__ = ()

    def __new__(cls, activation, weight):
        if isinstance(activation, nn.Module) or isinstance(weight, nn.Module):
            raise ValueError("QConfig received observer instance, please pass observer class instead. Use MyObserver.with_args(x=1) to override arguments to "
                             "constructor if needed")
        return super().__new__(cls, activation, weight)


class QConfigDynamic(namedtuple("QConfigDynamic", ["activation", "weight"])):
    """The old name of :class:`QConfig` for dynamic quantisation.

    Example::

        >>> import warnings
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     clnn.ao.quantization.QConfigDynamic().weight
        <class 'clnn.nn.modules.linear.Identity'>
    """

    __slots__ = ()

    def __new__(cls, activation=nn.Identity, weight=nn.Identity):
        if isinstance(weight, nn.Module):
            raise ValueError("QConfigDynamic received observer instance, please pass observer class instead. Use MyObserver.with_args(x=1) to override "
                             "arguments to constructor if needed")
        warnings.warn("`QConfigDynamic` is going to be deprecated in PyTorch 1.12, please use `QConfig` instead", FutureWarning, stacklevel=2)
        return super().__new__(cls, activation, weight)


QConfigAny = QConfig            # or None, in PyTorch's hints
_half = seen.PlaceholderObserver.with_args(dtype=clnn.float16)
default_qconfig = QConfig(seen.default_observer, seen.default_weight_observer)
default_debug_qconfig = QConfig(seen.default_debug_observer, seen.default_weight_observer)
default_per_channel_qconfig = QConfig(seen.default_observer, seen.default_per_channel_weight_observer)
default_dynamic_qconfig = QConfig(seen.default_dynamic_quant_observer, seen.default_weight_observer)
float16_dynamic_qconfig = QConfig(seen.PlaceholderObserver.with_args(dtype=clnn.float16, is_dynamic=True), _half)
float16_static_qconfig = QConfig(_half, _half)
per_channel_dynamic_qconfig = QConfig(seen.default_dynamic_quant_observer, seen.default_per_channel_weight_observer)
float_qparams_weight_only_qconfig = QConfig(seen.default_placeholder_observer, seen.default_float_qparams_observer)
float_qparams_weight_only_qconfig_4bit = QConfig(seen.default_placeholder_observer, seen.default_float_qparams_observer_4bit)
default_quint8_weight_qconfig = QConfig(seen.HistogramObserver, seen.MinMaxObserver)
default_qat_qconfig = QConfig(fake.default_fake_quant, fake.default_weight_fake_quant)
default_dynamic_qat_qconfig = QConfig(fake.default_dynamic_fake_quant, fake.default_weight_fake_quant)
default_weight_only_qconfig = QConfig(nn.Identity, fake.default_weight_fake_quant)
default_activation_only_qconfig = QConfig(fake.default_fake_quant, nn.Identity)
default_qat_qconfig_v2 = QConfig(fake.default_fused_act_fake_quant, fake.default_fused_wt_fake_quant)
default_reuse_input_qconfig = QConfig(seen.default_reuse_input_observer, seen.NoopObserver)
default_embedding_qat_qconfig = QConfig(seen.NoopObserver.with_args(dtype=clnn.float32), fake.default_embedding_fake_quant)
default_embedding_qat_qconfig_4bit = QConfig(seen.NoopObserver.with_args(dtype=clnn.float32), fake.default_embedding_fake_quant_4bit)
_signed = dict(dtype=clnn.qint8, reduce_range=False, eps=2 ** -12)
_signed_fake = fake.FusedMovingAvgObsFakeQuantize.with_args(observer=seen.MovingAverageMinMaxObserver, quant_min=-128, quant_max=127, **_signed)
default_symmetric_qnnpack_qconfig = QConfig(seen.HistogramObserver.with_args(**_signed), seen.weight_observer_range_neg_127_to_127)
default_per_channel_symmetric_qnnpack_qconfig = QConfig(seen.HistogramObserver.with_args(**_signed), seen.per_channel_weight_observer_range_neg_127_to_127)
default_symmetric_qnnpack_qat_qconfig = QConfig(_signed_fake, fake.fused_wt_fake_quant_range_neg_127_to_127)
default_per_channel_symmetric_qnnpack_qat_qconfig = QConfig(_signed_fake, fake.fused_per_channel_wt_fake_quant_range_neg_127_to_127)

_BACKENDS = ["fbgemm", "x86", "qnnpack", "onednn"]


def _supported(backend, version, known, what, text):
    if backend not in _BACKENDS:
        raise AssertionError(f"backend: {backend} not supported. backend must be one of {_BACKENDS}")
    if version not in known:
        raise AssertionError(f"Version number: {version} in {what} is not supported. Version number must be {text}")


def get_default_qconfig(backend="x86", version=0):
    """The usual setting for quantisation after training.

    Args:
        backend: ``"x86"``, ``"fbgemm"`` (both use half of the integers of activations), ``"onednn"`` or ``"qnnpack"`` (one scale for each weight). clnn computes
            the same on every device: the name decides about scales only.
        version: 0.

    Example::

        >>> clnn.ao.quantization.get_default_qconfig("qnnpack").weight().qscheme
        clnn.per_tensor_symmetric
    """
    _supported(backend, version, (0,), "get_default_qconfig", "0")
    reduced = backend in ("fbgemm", "x86")
    weight = seen.default_weight_observer if backend == "qnnpack" else seen.default_per_channel_weight_observer
    return QConfig(seen.HistogramObserver.with_args(reduce_range=reduced), weight)


def get_default_qat_qconfig(backend="x86", version=1):
    """The usual setting for training with rounding.

    Args:
        backend: see :func:`get_default_qconfig`.
        version: 1, or 0 for observing and rounding as two operators.

    Example::

        >>> clnn.ao.quantization.get_default_qat_qconfig("fbgemm").activation().quant_max
        127
    """
    _supported(backend, version, (0, 1), "get_default_qat_qconfig", "0 or 1")
    kind = fake.FusedMovingAvgObsFakeQuantize if version else fake.FakeQuantize
    reduced = {} if backend == "onednn" else dict(reduce_range=backend in ("fbgemm", "x86"))
    activation = kind.with_args(observer=seen.MovingAverageMinMaxObserver, quant_min=0, quant_max=255, **reduced)
    if backend == "qnnpack":
        return QConfig(activation, fake.default_fused_wt_fake_quant if version else fake.default_weight_fake_quant)
    return QConfig(activation, fake.default_fused_per_channel_wt_fake_quant if version else fake.default_per_channel_weight_fake_quant)


def get_default_qconfig_dict(backend="x86", version=0):
    """:func:`get_default_qconfig_mapping` as a dict.

    Example::

        >>> sorted(clnn.ao.quantization.get_default_qconfig_dict())[:2]
        ['', 'module_name']
    """
    from .qconfig_mapping import get_default_qconfig_mapping
    return get_default_qconfig_mapping(backend, version).to_dict()


def get_default_qat_qconfig_dict(backend="x86", version=1):
    """:func:`get_default_qat_qconfig_mapping` as a dict.

    Example::

        >>> sorted(clnn.ao.quantization.get_default_qat_qconfig_dict())[:2]
        ['', 'module_name']
    """
    from .qconfig_mapping import get_default_qat_qconfig_mapping
    return get_default_qat_qconfig_mapping(backend, version).to_dict()


def _assert_valid_qconfig(qconfig, mod):
    """Refuse weights by channels for transposed convolutions, whose channels lie elsewhere."""
    if qconfig is not None and isinstance(mod, (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)) and qconfig.weight is not None:
        if isinstance(qconfig.weight(), (seen.PerChannelMinMaxObserver, seen.MovingAveragePerChannelMinMaxObserver)):
            raise AssertionError("Per channel weight observer is not supported yet for ConvTranspose{n}d.")


def _add_module_to_qconfig_obs_ctr(qconfig, module):
    """``qconfig``: where a layer's observers are to be is settled when they are added."""
    return qconfig


def _parts(constructor):
    """A function or class and its arguments, however they were put together."""
    arguments = {}
    while isinstance(constructor, seen._PartialWrapper) or hasattr(constructor, "keywords"):
        arguments = {**getattr(constructor, "keywords", {}), **arguments}
        constructor = constructor.p if isinstance(constructor, seen._PartialWrapper) else constructor.func
    return constructor, {k: _parts(v) if isinstance(v, seen._PartialWrapper) else v for k, v in arguments.items()}


def qconfig_equals(q1, q2):
    """Whether two settings make the same observers.

    Example::

        >>> q = clnn.ao.quantization
        >>> q.qconfig_equals(q.get_default_qconfig("x86"), q.get_default_qconfig("fbgemm"))
        True
    """
    if q1 is None or q2 is None:
        return q1 is q2
    return all(_parts(a) == _parts(b) for a, b in zip(q1, q2))


def _activation_is_memoryless(qconfig):
    """Whether what activations were does not matter to the next scale."""
    observer = qconfig.activation()
    inner = getattr(observer, "activation_post_process", observer)
    return getattr(inner, "averaging_constant", None) == 1
