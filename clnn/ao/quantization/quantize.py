"""Eager quantisation: observers are added to a model's layers, it sees data, and its layers are exchanged for quantised ones."""
from __future__ import annotations

import copy
import inspect
import warnings

import clnn
from clnn import nn
from clnn.nn.utils.parametrize import type_before_parametrizations

from ..nn import quantizable as nnqa, quantized as nnq
from ..nn.intrinsic import _FusedModule
from .observer import _is_activation_post_process
from .qconfig import (_activation_is_memoryless, _assert_valid_qconfig, default_dynamic_qconfig, float16_dynamic_qconfig, float_qparams_weight_only_qconfig,
                      float_qparams_weight_only_qconfig_4bit)
from .quantization_mappings import (_get_special_act_post_process, get_default_dynamic_quant_module_mappings, get_default_qat_module_mappings,
                                    get_default_qconfig_propagation_list, get_default_static_quant_module_mappings, no_observer_set)
from .stubs import DeQuantStub, QuantWrapper

__all__ = ["get_default_custom_config_dict", "propagate_qconfig_", "add_quant_dequant", "prepare", "quantize", "quantize_dynamic", "prepare_qat", "quantize_qat",
           "convert", "swap_module"]
_CUSTOM: dict = {
    "float_to_observed_custom_module_class": {nn.LSTM: nnqa.LSTM, nn.MultiheadAttention: nnqa.MultiheadAttention},
    "observed_to_quantized_custom_module_class": {nnqa.LSTM: nnq.LSTM, nnqa.MultiheadAttention: nnq.MultiheadAttention},
}


def get_default_custom_config_dict():
    """The classes that take part by methods of their own, ``from_float`` and ``from_observed``: LSTMs and attention.

    Example::

        >>> sorted(clnn.ao.quantization.get_default_custom_config_dict())
        ['float_to_observed_custom_module_class', 'observed_to_quantized_custom_module_class']
    """
    return _CUSTOM


def propagate_qconfig_(module, qconfig_dict=None, prepare_custom_config_dict=None):
    """Give each module of a tree the attribute ``qconfig``: its own, that of its name or class in ``qconfig_dict``, or its parent's.

    Example::

        >>> net = nn.Sequential(nn.Linear(1, 1))
        >>> clnn.ao.quantization.propagate_qconfig_(net, {nn.Linear: clnn.ao.quantization.default_dynamic_qconfig})
        >>> net[0].qconfig is clnn.ao.quantization.default_dynamic_qconfig
        True
    """
    _hand_down(module, qconfig_dict or {}, None, "", prepare_custom_config_dict or {})


def _hand_down(module, settings, above, path, custom):
    qconfig = settings.get(path, settings.get(type_before_parametrizations(module), above))
    qconfig = getattr(module, "qconfig", qconfig)
    _assert_valid_qconfig(qconfig, module)
    module.qconfig = qconfig
    for name, child in module.named_children():
        if name not in custom.get("non_traceable_module_name", []) and type(child) not in custom.get("non_traceable_module_class", []):
            _hand_down(child, settings, qconfig, f"{path}.{name}" if path else name, {})


# -- observers ------------------------------------------------------------------------------------------------------------------------
def _observer_forward_hook(self, input, output):
    """Shows the observer what a layer returns."""
    return self.activation_post_process(output)


def _observer_forward_pre_hook(self, input):
    """Shows the observer what a layer gets."""
    return self.activation_post_process(input[0])


def _wants(module):
    return getattr(module, "qconfig", None) is not None


def _observe(module, device, special=None):
    """Let an observer see what ``module`` returns."""
    if not _wants(module) or isinstance(module, DeQuantStub):
        return
    observer = module.qconfig.activation() if special is None else special()
    if device is not None:
        observer.to(device)
    module.add_module("activation_post_process", observer)
    if _activation_is_memoryless(module.qconfig):
        module.register_forward_pre_hook(_observer_forward_pre_hook, prepend=True)
    else:
        module.register_forward_hook(_observer_forward_hook, prepend=True)


def _get_unique_devices_(module):
    return {t.device for t in (*module.parameters(), *module.buffers()) if not t.is_meta}


def _add_observer_(module, qconfig_propagation_list=None, non_leaf_module_list=None, device=None, custom_module_class_mapping=None):
    """Add observers to the layers below ``module``, and to itself where it is one."""
    listed = get_default_qconfig_propagation_list() if qconfig_propagation_list is None else qconfig_propagation_list
    custom = custom_module_class_mapping or {}
    if device is None:
        devices = _get_unique_devices_(module)
        if len(devices) > 1:
            raise AssertionError(f"_add_observer_ only works with cpu or single-device CUDA modules, but got devices {devices}")
        device = next(iter(devices), None)
    for name, child in module.named_children():
        kind = type_before_parametrizations(child)
        special = _get_special_act_post_process(child)
        if kind is nn.Dropout:
            continue
        if issubclass(kind, (nnq.FloatFunctional, nnq.QFunctional)):
            if _wants(child):
                child.activation_post_process = child.qconfig.activation() if device is None else child.qconfig.activation().to(device)
        elif isinstance(child, _FusedModule) or non_leaf_module_list is not None and kind in non_leaf_module_list:
            _observe(child, device)
        elif special is not None:
            _observe(child, device, special)
        elif _wants(child) and kind in custom:
            observed = custom[kind].from_float(child)
            setattr(module, name, observed)
            if not issubclass(custom[kind], tuple(no_observer_set())):
                _observe(observed, device)
        else:
            _add_observer_(child, listed, non_leaf_module_list, device, custom)
    if not isinstance(module, nn.Sequential) and type_before_parametrizations(module) in listed:
        if hasattr(module, "weight_fake_quant") or _is_leaf(module):
            _observe(module, device)


def _is_leaf(module):
    children = {name for name, _ in module.named_children()}
    return not children or children == {"parametrizations"}


def add_quant_dequant(module):
    """Wrap each layer that has a ``qconfig`` so that its input is quantised and its result is not.

    Example::

        >>> net = nn.Sequential(nn.Linear(1, 1))
        >>> net[0].qconfig = clnn.ao.quantization.default_qconfig
        >>> type(clnn.ao.quantization.add_quant_dequant(net)[0]).__name__
        'QuantWrapper'
    """
    if _is_leaf(module) and getattr(module, "qconfig", None):
        return QuantWrapper(module)
    for name, child in module.named_children():
        module._modules[name] = add_quant_dequant(child)
    return module


def prepare(model, inplace=False, allow_list=None, observer_non_leaf_module_list=None, prepare_custom_config_dict=None):
    """A copy of a model with observers, to run on some data before :func:`convert`.

    Args:
        model: its attribute ``qconfig``, or those of its parts, say which observers.
        inplace: change the model itself.
        allow_list: the classes of layers that get observers.

    Example::

        >>> net = clnn.ao.quantization.QuantWrapper(nn.ReLU()).eval()
        >>> net.qconfig = clnn.ao.quantization.get_default_qconfig()
        >>> _ = clnn.ao.quantization.prepare(net, inplace=True)(clnn.randn(8))
        >>> net.quant.activation_post_process.histogram.sum()
        tensor(8.)
    """
    model = model if inplace else copy.deepcopy(model)
    custom = (get_default_custom_config_dict() if prepare_custom_config_dict is None else prepare_custom_config_dict)
    propagate_qconfig_(model)
    if not any(getattr(m, "qconfig", None) for m in model.modules()):
        warnings.warn("None of the submodule got qconfig applied. Make sure you passed correct configuration through `qconfig_dict` or by assigning the "
                      "`.qconfig` attribute directly on submodules", stacklevel=2)
    _add_observer_(model, allow_list, observer_non_leaf_module_list, custom_module_class_mapping=custom.get("float_to_observed_custom_module_class", {}))
    return model


def _remove_activation_post_process(module):
    if _is_activation_post_process(getattr(module, "activation_post_process", None)):
        del module.activation_post_process
    for table, hook in ((module._forward_pre_hooks, _observer_forward_pre_hook), (module._forward_hooks, _observer_forward_hook)):
        for key in [key for key, found in table.items() if found is hook]:
            table.pop(key)


def _remove_qconfig(module):
    for child in module.children():
        _remove_qconfig(child)
    if hasattr(module, "qconfig"):
        del module.qconfig
    _remove_activation_post_process(module)


# -- the whole way --------------------------------------------------------------------------------------------------------------------
def quantize(model, run_fn, run_args, mapping=None, inplace=False):
    """Quantise a model after training: :func:`prepare`, ``run_fn(model, *run_args)``, :func:`convert`.

    Example::

        >>> net = clnn.ao.quantization.QuantWrapper(nn.Linear(2, 2))
        >>> net.qconfig = clnn.ao.quantization.default_qconfig
        >>> clnn.ao.quantization.quantize(net, lambda m, x: m(x), [clnn.randn(4, 2)])(clnn.ones(1, 2)).shape
        clnn.Size([1, 2])
    """
    model = model if inplace else copy.deepcopy(model)
    model.eval()
    prepare(model, inplace=True)
    run_fn(model, *run_args)
    convert(model, mapping, inplace=True)
    return model


def _dynamic_default(dtype):
    """The setting for weights of this dtype, None for those without one."""
    return {clnn.qint8: default_dynamic_qconfig, clnn.float16: float16_dynamic_qconfig, clnn.quint8: float_qparams_weight_only_qconfig,
            clnn.quint4x2: float_qparams_weight_only_qconfig_4bit}.get(dtype)


def quantize_dynamic(model, qconfig_spec=None, dtype=clnn.qint8, mapping=None, inplace=False):
    """A copy of a model whose weights are quantised, and whose layers round their inputs as they come.

    Args:
        qconfig_spec: a set of classes or names of modules, or a dict with their settings. Default: linear and recurrent layers, for ``quint8`` embeddings.
        dtype: of the weights: ``clnn.qint8``, ``clnn.float16``, or ``clnn.quint8`` for embeddings.
        mapping: from classes of layers to those of quantised ones.
        inplace: change the model itself.

    Example::

        >>> clnn.ao.quantization.quantize_dynamic(nn.Sequential(nn.Linear(4, 2)), {nn.Linear}, dtype=clnn.qint8)
        Sequential(
          (0): DynamicQuantizedLinear(in_features=4, out_features=2, dtype=clnn.qint8, qscheme=clnn.per_tensor_affine)
        )
    """
    qconfig = _dynamic_default(dtype)
    if qconfig_spec is None:
        if qconfig is None:
            raise ValueError(f"Don't know how to quantize with default settings for {dtype}. Provide full qconfig please")
        kinds = ((nn.Linear, nn.LSTM, nn.GRU, nn.LSTMCell, nn.RNNCell, nn.GRUCell) if dtype in (clnn.qint8, clnn.float16) else
                 (nn.EmbeddingBag, nn.Embedding) if dtype is clnn.quint8 else (nn.EmbeddingBag,))
        qconfig_spec = dict.fromkeys(kinds, qconfig)
    elif isinstance(qconfig_spec, set):
        if qconfig is None:
            raise RuntimeError("Unknown dtype specified for quantize_dynamic: ", str(dtype))
        qconfig_spec = dict.fromkeys(qconfig_spec, qconfig)
    model = model if inplace else copy.deepcopy(model)
    model.eval()
    propagate_qconfig_(model, qconfig_spec)
    convert(model, get_default_dynamic_quant_module_mappings() if mapping is None else mapping, inplace=True)
    return model


def prepare_qat(model, mapping=None, inplace=False):
    """A copy of a model, in training mode, whose layers round weights and activations as quantised ones would, for training before :func:`convert`.

    Example::

        >>> net = nn.Sequential(nn.Linear(4, 2)).train()
        >>> net.qconfig = clnn.ao.quantization.get_default_qat_qconfig()
        >>> type(clnn.ao.quantization.prepare_qat(net)[0])
        <class 'clnn.ao.nn.qat.modules.linear.Linear'>
    """
    if not model.training:
        raise AssertionError("prepare_qat only works on models in training mode")
    mapping = get_default_qat_module_mappings() if mapping is None else mapping
    model = model if inplace else copy.deepcopy(model)
    propagate_qconfig_(model)
    convert(model, mapping, inplace=True, remove_qconfig=False)
    return prepare(model, inplace=True, observer_non_leaf_module_list=set(mapping.values()))


def quantize_qat(model, run_fn, run_args, inplace=False):
    """Quantise a model with training: :func:`prepare_qat`, ``run_fn(model, *run_args)``, :func:`convert`.

    Example::

        >>> net = clnn.ao.quantization.QuantWrapper(nn.Linear(2, 2))
        >>> net.qconfig = clnn.ao.quantization.default_qat_qconfig
        >>> clnn.ao.quantization.quantize_qat(net, lambda m, x: m(x).sum().backward(), [clnn.randn(4, 2)])(clnn.ones(1, 2)).shape
        clnn.Size([1, 2])
    """
    model = model if inplace else copy.deepcopy(model)
    model.train()
    prepare_qat(model, inplace=True)
    run_fn(model, *run_args)
    convert(model, inplace=True)
    return model


def convert(module, mapping=None, inplace=False, remove_qconfig=True, is_reference=False, convert_custom_config_dict=None, use_precomputed_fake_quant=False):
    """A copy of a model that saw data, with quantised layers in place of those that ``mapping`` names.

    Args:
        mapping: from classes of layers to those of quantised ones.
        inplace: change the model itself.
        remove_qconfig: take settings and observers away.

    Example::

        >>> net = clnn.ao.quantization.QuantWrapper(nn.Linear(2, 3)).eval()
        >>> net.qconfig = clnn.ao.quantization.get_default_qconfig("qnnpack")
        >>> _ = clnn.ao.quantization.prepare(net, inplace=True)(clnn.randn(4, 2))
        >>> net = clnn.ao.quantization.convert(net)
        >>> type(net.module), net.module.weight().dtype
        (<class 'clnn.ao.nn.quantized.modules.linear.Linear'>, clnn.qint8)
    """
    if is_reference:
        raise NotImplementedError("convert: is_reference=True, layers that compute in floats with quantised weights, is not implemented")
    module = module if inplace else copy.deepcopy(module)
    custom = get_default_custom_config_dict() if convert_custom_config_dict is None else convert_custom_config_dict
    _convert(module, get_default_static_quant_module_mappings() if mapping is None else mapping,
             custom.get("observed_to_quantized_custom_module_class", {}), use_precomputed_fake_quant)
    if remove_qconfig:
        _remove_qconfig(module)
    return module


def _convert(module, mapping, custom, precomputed):
    for name, child in list(module.named_children()):
        if not isinstance(child, _FusedModule) and type_before_parametrizations(child) not in custom:
            _convert(child, mapping, custom, precomputed)
        module._modules[name] = swap_module(child, mapping, custom, precomputed)


def swap_module(mod, mapping, custom_module_class_mapping, use_precomputed_fake_quant=False):
    """The quantised layer for ``mod``, with its hooks, where it has a ``qconfig`` and ``mapping`` a class for it; else ``mod``.

    Example::

        >>> layer = nn.Linear(1, 1)
        >>> clnn.ao.quantization.swap_module(layer, {}, {}) is layer
        True
    """
    kind = type_before_parametrizations(mod)
    if not _wants(mod):
        return mod
    if kind in custom_module_class_mapping:
        new = custom_module_class_mapping[kind].from_observed(mod)
    elif kind in mapping:
        make = mapping[kind].from_float
        options = dict(use_precomputed_fake_quant=use_precomputed_fake_quant)
        new = make(mod, **options) if "use_precomputed_fake_quant" in inspect.signature(make).parameters else make(mod)
    else:
        return mod
    for hook in mod._forward_pre_hooks.values():
        new.register_forward_pre_hook(hook)
    for hook in mod._forward_hooks.values():
        if hook is not _observer_forward_hook:
            new.register_forward_hook(hook)
    devices = _get_unique_devices_(mod)
    if len(devices) > 1:
        raise AssertionError(f"swap_module only works with cpu or single-device CUDA modules, but got devices {devices}")
    if devices:
        new.to(next(iter(devices)))
    return new
