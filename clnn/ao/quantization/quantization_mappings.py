"""Which class of layers becomes which."""
from __future__ import annotations

import copy

from clnn import nn
from clnn.nn.utils.parametrize import type_before_parametrizations

from ..nn import intrinsic as nni
from ..nn import qat as nnqat
from ..nn import quantizable as nnqa
from ..nn import quantized as nnq
from ..nn.intrinsic import qat as nniqat
from ..nn.intrinsic import quantized as nniq
from ..nn.quantized import dynamic as nnqd
from .fake_quantize import default_fixed_qparams_range_0to1_fake_quant, default_fixed_qparams_range_neg1to1_fake_quant
from .stubs import DeQuantStub, QuantStub
from .utils import get_combined_dict

__all__ = ["DEFAULT_STATIC_QUANT_MODULE_MAPPINGS", "DEFAULT_QAT_MODULE_MAPPINGS", "DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS",
           "DEFAULT_FLOAT_TO_QUANTIZED_OPERATOR_MAPPINGS", "DEFAULT_MODULE_TO_ACT_POST_PROCESS", "no_observer_set", "get_default_static_quant_module_mappings",
           "get_embedding_static_quant_module_mappings", "get_static_quant_module_class", "get_dynamic_quant_module_class", "get_default_qat_module_mappings",
           "get_embedding_qat_module_mappings", "get_default_dynamic_quant_module_mappings", "get_default_qconfig_propagation_list",
           "get_default_compare_output_module_list", "get_default_float_to_quantized_operator_mappings", "get_quantized_operator"]
_SAME = """BatchNorm2d BatchNorm3d Dropout Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d ELU Embedding EmbeddingBag GroupNorm Hardswish
           InstanceNorm1d InstanceNorm2d InstanceNorm3d LayerNorm LeakyReLU Linear ReLU6 PReLU""".split()
_CONVS = ("Conv1d", "Conv2d", "Conv3d")
_NonDynamic = nn.modules.linear.NonDynamicallyQuantizableLinear

DEFAULT_STATIC_QUANT_MODULE_MAPPINGS = {
    QuantStub: nnq.Quantize, DeQuantStub: nnq.DeQuantize, **{getattr(nn, name): getattr(nnq, name) for name in _SAME}, _NonDynamic: nnq.Linear,
    nnq.FloatFunctional: nnq.QFunctional, **{getattr(nni, name): getattr(nniq, name) for name in nniq._LAYERS},
    **{getattr(nniqat, f"ConvBn{name[4:]}"): getattr(nnq, name) for name in _CONVS},
    **{getattr(nniqat, f"ConvBnReLU{name[4:]}"): getattr(nniq, f"ConvReLU{name[4:]}") for name in _CONVS},
    nniqat.ConvReLU2d: nniq.ConvReLU2d, nniqat.ConvReLU3d: nniq.ConvReLU3d, nniqat.LinearReLU: nniq.LinearReLU, nniqat.LinearBn1d: nnq.Linear,
    nnqat.Linear: nnq.Linear, nnqat.Conv2d: nnq.Conv2d, nnqat.Conv3d: nnq.Conv3d,
}
DEFAULT_QAT_MODULE_MAPPINGS = {
    nn.Conv2d: nnqat.Conv2d, nn.Conv3d: nnqat.Conv3d, nn.Linear: nnqat.Linear, _NonDynamic: nnqat.Linear,
    **{getattr(nni, name): getattr(nniqat, name) for name in (*(f"ConvBn{d}d" for d in "123"), *(f"ConvBnReLU{d}d" for d in "123"), "ConvReLU2d", "ConvReLU3d",
                                                            "LinearReLU", "LinearBn1d")},
}
DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS = {
    nn.GRUCell: nnqd.GRUCell, nn.Linear: nnqd.Linear, nnqat.dynamic.Linear: nnqd.Linear, _NonDynamic: nnqd.Linear, nn.LSTM: nnqd.LSTM, nn.GRU: nnqd.GRU,
    nn.LSTMCell: nnqd.LSTMCell, nn.RNNCell: nnqd.RNNCell, nni.LinearReLU: nniq.dynamic.LinearReLU, nn.EmbeddingBag: nnq.EmbeddingBag, nn.Embedding: nnq.Embedding,
}
DEFAULT_MODULE_TO_ACT_POST_PROCESS = {**dict.fromkeys((nn.Hardsigmoid, nn.Sigmoid, nn.Softmax), default_fixed_qparams_range_0to1_fake_quant),
                                      nn.Tanh: default_fixed_qparams_range_neg1to1_fake_quant}


def _operators():
    from clnn._quantized import functions as quantized
    F = nn.functional
    return {getattr(F, name): getattr(quantized, name) for name in ("elu", "hardswish", "instance_norm", "layer_norm", "leaky_relu", "dropout")}


DEFAULT_FLOAT_TO_QUANTIZED_OPERATOR_MAPPINGS = _operators()


def no_observer_set():
    """The classes of observed layers whose results are not observed.

    Example::

        >>> clnn.ao.nn.quantizable.LSTM in clnn.ao.quantization.no_observer_set()
        True
    """
    return {nnqa.LSTM, nnqa.MultiheadAttention}


def _getter(name, table, text):
    def get():
        return copy.deepcopy(table)
    get.__name__ = get.__qualname__ = name
    get.__doc__ = f"""{text}

    Example::

        >>> isinstance(clnn.ao.quantization.{name}(), dict)
        True
    """
    return get


get_default_static_quant_module_mappings = _getter("get_default_static_quant_module_mappings", DEFAULT_STATIC_QUANT_MODULE_MAPPINGS,
                                                   "From classes of observed layers to those of quantised ones.")
get_default_qat_module_mappings = _getter("get_default_qat_module_mappings", DEFAULT_QAT_MODULE_MAPPINGS, "From classes of layers to those that round in training.")
get_default_dynamic_quant_module_mappings = _getter("get_default_dynamic_quant_module_mappings", DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS,
                                                    "From classes of layers to those with quantised weights.")
get_default_float_to_quantized_operator_mappings = _getter(
    "get_default_float_to_quantized_operator_mappings", DEFAULT_FLOAT_TO_QUANTIZED_OPERATOR_MAPPINGS, "From functions to those of quantised tensors.")


def get_embedding_static_quant_module_mappings():
    """The static mappings, with embeddings that were trained with rounding.

    Example::

        >>> nn.qat.Embedding in clnn.ao.quantization.get_embedding_static_quant_module_mappings()
        True
    """
    return get_combined_dict(DEFAULT_STATIC_QUANT_MODULE_MAPPINGS, {nnqat.EmbeddingBag: nnq.EmbeddingBag, nnqat.Embedding: nnq.Embedding})


def get_embedding_qat_module_mappings():
    """The mappings of training, with embeddings.

    Example::

        >>> nn.Embedding in clnn.ao.quantization.get_embedding_qat_module_mappings()
        True
    """
    return get_combined_dict(DEFAULT_QAT_MODULE_MAPPINGS, {nn.EmbeddingBag: nnqat.EmbeddingBag, nn.Embedding: nnqat.Embedding})


def get_static_quant_module_class(float_module_class, additional_static_quant_mapping=None, is_reference=False):
    """The class of quantised layers for a class of layers.

    Example::

        >>> clnn.ao.quantization.get_static_quant_module_class(nn.Linear) is nn.quantized.Linear
        True
    """
    found = get_combined_dict(DEFAULT_STATIC_QUANT_MODULE_MAPPINGS, additional_static_quant_mapping or {}).get(float_module_class)
    if found is None:
        raise AssertionError(f"Floating point module class {float_module_class} does not have a corresponding quantized module class")
    return copy.deepcopy(found)


def get_dynamic_quant_module_class(float_module_class, additional_dynamic_quant_mapping=None):
    """The class of layers with quantised weights for a class of layers.

    Example::

        >>> clnn.ao.quantization.get_dynamic_quant_module_class(nn.LSTM) is nn.quantized.dynamic.LSTM
        True
    """
    found = get_combined_dict(DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS, additional_dynamic_quant_mapping or {}).get(float_module_class)
    if found is None:
        raise AssertionError(f"Floating point module class {float_module_class} does not have a corresponding quantized module class")
    return copy.deepcopy(found)


def get_default_qconfig_propagation_list():
    """The classes of layers that may be observed.

    Example::

        >>> nn.Linear in clnn.ao.quantization.get_default_qconfig_propagation_list()
        True
    """
    return {*DEFAULT_STATIC_QUANT_MODULE_MAPPINGS, *DEFAULT_QAT_MODULE_MAPPINGS, *DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS, nn.Sequential,
            nni.ConvBn1d, nni.ConvBn2d, nni.ConvBn3d, nni.ConvBnReLU1d, nni.ConvBnReLU2d, nni.ConvBnReLU3d, nni.LinearBn1d}


def get_default_compare_output_module_list():
    """The classes whose results are compared before and after.

    Example::

        >>> nn.quantized.Linear in clnn.ao.quantization.get_default_compare_output_module_list()
        True
    """
    return {*DEFAULT_STATIC_QUANT_MODULE_MAPPINGS.values(), *DEFAULT_STATIC_QUANT_MODULE_MAPPINGS, *DEFAULT_QAT_MODULE_MAPPINGS.values(),
            *DEFAULT_QAT_MODULE_MAPPINGS, *DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS.values(), *DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS, nn.Sequential}


def get_quantized_operator(float_op):
    """The function of quantised tensors for a function.

    Example::

        >>> clnn.ao.quantization.get_quantized_operator(nn.functional.elu).__name__
        'elu'
    """
    found = DEFAULT_FLOAT_TO_QUANTIZED_OPERATOR_MAPPINGS.get(float_op)
    if found is None:
        raise AssertionError(f"Operator {float_op} does not have corresponding quantized op")
    return found


def _get_special_act_post_process(module):
    """What observes the results of a layer in training whose range is known; None for others."""
    return None if not module.training else DEFAULT_MODULE_TO_ACT_POST_PROCESS.get(type_before_parametrizations(module))
