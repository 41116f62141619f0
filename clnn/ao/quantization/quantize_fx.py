"""Quantisation of a model's graph: what runs is recorded, layers in a row are fused, and observers stand wherever a quantised operator begins or ends.

Quantised are layers with a quantised form, sums and products, joins, functions whose range is known, and what moves or pools elements. The rest, functions
with weights like ``nn.functional.linear`` among it, computes with floats.
"""
from __future__ import annotations

import copy
import operator
import re

import clnn
from clnn import fx, nn
from clnn.nn import functional as F

from ..nn import quantized as nnq
from ..nn.intrinsic import _FusedModule
from . import observer as seen
from .fake_quantize import FixedQParamsFakeQuantize
from .fuser_method_mappings import _DEFAULT_OP_LIST_TO_FUSER_METHOD
from .qconfig_mapping import QConfigMapping
from .quantization_mappings import (DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS, DEFAULT_QAT_MODULE_MAPPINGS, DEFAULT_STATIC_QUANT_MODULE_MAPPINGS)

__all__ = ["fuse_fx", "prepare_fx", "prepare_qat_fx", "convert_fx"]
_STATIC = {**{k: v for k, v in DEFAULT_STATIC_QUANT_MODULE_MAPPINGS.items() if k not in (nn.Embedding, nn.EmbeddingBag, nn.Dropout, nn.ReLU6)},
           nn.Softmax: nnq.Softmax}
_RELU = {F.relu, clnn.relu, "relu", "relu_", nn.ReLU}
_BINARY = {operator.add: "add", operator.iadd: "add", clnn.add: "add", "add": "add", "add_": "add",
           operator.mul: "mul", operator.imul: "mul", clnn.mul: "mul", "mul": "mul", "mul_": "mul"}
_POSITIVE = {nn.Sigmoid, nn.Hardsigmoid, clnn.sigmoid, F.sigmoid, F.hardsigmoid, "sigmoid", "hardsigmoid"}
_FIXED = {**dict.fromkeys(_POSITIVE | {nn.Softmax}, seen.default_fixed_qparams_range_0to1_observer),
          **dict.fromkeys({nn.Tanh, clnn.tanh, F.tanh, "tanh"}, seen.default_fixed_qparams_range_neg1to1_observer)}
_POOLS = [f"{kind}_pool{d}d" for kind in ("max", "avg", "adaptive_avg") for d in "123" if kind != "avg" or d != "1"]
_SHARED = {
    *_RELU, nn.MaxPool1d, nn.MaxPool2d, nn.AvgPool2d, nn.AvgPool3d, nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d, nn.Identity,
    nn.ReLU6, nn.Hardtanh, nn.Flatten, nn.PixelShuffle, nn.PixelUnshuffle, nn.Upsample, *(getattr(F, name) for name in _POOLS), F.relu6, F.hardtanh,
    F.interpolate, F.pixel_shuffle, clnn.flatten, clnn.mean, clnn.squeeze, clnn.unsqueeze, clnn.transpose, clnn.permute, clnn.clamp, clnn.reshape,
    *"mean view reshape flatten permute transpose squeeze unsqueeze clamp contiguous repeat detach".split()}


class _Tracer(fx.Tracer):
    """Records calls of layers, and in which module the rest runs."""

    def __init__(self, kept_names=(), kept_kinds=()):
        super().__init__()
        self.kept_names, self.kept_kinds, self.scope = set(kept_names), tuple(kept_kinds), [""]

    def is_leaf_module(self, m, module_qualified_name):
        """Layers, fused ones too, stay calls."""
        return (super().is_leaf_module(m, module_qualified_name) or isinstance(m, _FusedModule) or module_qualified_name in self.kept_names
                or isinstance(m, self.kept_kinds) or type(m).__module__.startswith(("clnn.ao.nn", "clnn.nn")) and not isinstance(m, nn.Sequential))

    def call_module(self, m, forward, args, kwargs):
        """The call, with its place noted."""
        self.scope.append(self.path_of_module(m))
        try:
            return super().call_module(m, forward, args, kwargs)
        finally:
            self.scope.pop()

    def create_node(self, kind, target, args, kwargs, name=None, type_expr=None):
        """The node, with its place noted."""
        node = super().create_node(kind, target, args, kwargs, name, type_expr)
        node.meta["scope"] = self.scope[-1]
        return node


def _traced(model, custom):
    for module in list(model.modules()):
        for name, child in module.named_children():
            if type(child) is nnq.FloatFunctional:
                setattr(module, name, nnq.FXFloatFunctional())
    custom = custom if isinstance(custom, dict) else vars(custom) if custom is not None else {}
    tracer = _Tracer(custom.get("non_traceable_module_name", custom.get("non_traceable_module_names", ())),
                     custom.get("non_traceable_module_class", custom.get("non_traceable_module_classes", ())))
    return fx.GraphModule(model, tracer.trace(model), type(model).__name__)


def _kind(node, modules):
    """The class, function or method's name that a node calls."""
    return type(modules[node.target]) if node.op == "call_module" else node.target if node.op in ("call_function", "call_method") else None


def _replace(model, path, module):
    owner, _, name = path.rpartition(".")
    setattr(model.get_submodule(owner), name, module)


# -- fusing ---------------------------------------------------------------------------------------------------------------------------
def _fuse(model, is_qat):
    """Make one module of each chain of layers that has a fused form; ReLU may be a function."""
    for node in model.graph.nodes:
        modules = dict(model.named_modules(remove_duplicate=False))
        if node.op != "call_module" or node.target not in modules:
            continue
        chain, kinds = [node], [_kind(node, modules)]
        best = None
        while len(chain[-1].users) == 1 and len(chain) < 3:
            follower = next(iter(chain[-1].users))
            kind = _kind(follower, modules)
            kind = nn.ReLU if kind in _RELU else kind
            if follower.all_input_nodes != [chain[-1]] or kind is None:
                break
            chain, kinds = [*chain, follower], [*kinds, kind]
            if tuple(kinds) in _DEFAULT_OP_LIST_TO_FUSER_METHOD:
                best = list(chain)
        if best is not None:
            _fuse_chain(model, best, tuple(kinds[:len(best)]), modules, is_qat)
    model.delete_all_unused_submodules()
    model.recompile()
    return model


def _fuse_chain(model, chain, kinds, modules, is_qat):
    first = chain[0]
    parts = [modules[n.target] if n.op == "call_module" else nn.ReLU().train(modules[first.target].training) for n in chain]
    _replace(model, first.target, _DEFAULT_OP_LIST_TO_FUSER_METHOD[kinds](is_qat, *parts))
    first.meta["fused"] = kinds
    chain[-1].replace_all_uses_with(first)
    for node in reversed(chain[1:]):
        model.graph.erase_node(node)


def fuse_fx(model, fuse_custom_config=None, backend_config=None):
    """The graph of a model in eval mode, with convolutions, batch normalisations and ReLUs in a row fused.

    Example::

        >>> from clnn.ao.quantization.quantize_fx import fuse_fx
        >>> net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU()).eval()
        >>> [str(n.target) for n in fuse_fx(net).graph.nodes]
        ['input', '0', 'output']
    """
    return _fuse(_traced(copy.deepcopy(model), fuse_custom_config), False)


# -- settings -------------------------------------------------------------------------------------------------------------------------
def _setting(mapping, node, modules, counts):
    """The setting of a node: by place and count, by name, by expression, by kind, or that of the whole."""
    path = node.target if node.op == "call_module" else node.meta.get("scope", "")
    kind = node.meta["fused"][0] if "fused" in node.meta else _kind(node, modules)
    place = node.meta.get("scope", "") if node.op != "call_module" else path.rpartition(".")[0]
    number = counts[place, kind] = counts.get((place, kind), -1) + 1
    by_order = mapping.module_name_object_type_order_qconfigs
    if (place, kind, number) in by_order:
        return by_order[place, kind, number]
    names = path
    while names:
        if names in mapping.module_name_qconfigs:
            return mapping.module_name_qconfigs[names]
        names = names.rpartition(".")[0]
    for pattern, qconfig in mapping.module_name_regex_qconfigs.items():
        if path and re.match(pattern, path):
            return qconfig
    found = mapping.object_type_qconfigs.get(kind, mapping.global_qconfig)
    if found is None and node.op == "call_module" and isinstance(modules[path], _FusedModule):
        return mapping.global_qconfig                           # PyTorch hands settings of the first layer on to fused ones, but not that there be none
    return found


class _Shapes(fx.Interpreter):
    """Notes which nodes give floating tensors."""

    def run_node(self, n):
        got = super().run_node(n)
        n.meta["floating"] = any(isinstance(t, clnn.Tensor) and t.is_floating_point() for t in (got if isinstance(got, (tuple, list)) else (got,)))
        return got


def _numbers(node):
    """Whether a node gives a floating tensor, as far as is known."""
    return isinstance(node, fx.Node) and node.meta.get("floating", True)


# -- observers ------------------------------------------------------------------------------------------------------------------------
class _Preparation:
    """Adds observers to a graph."""

    def __init__(self, model, mapping):
        self.model, self.graph, self.mapping = model, model.graph, mapping
        self.modules, self.counts, self.observed, self.number = dict(model.named_modules(remove_duplicate=False)), {}, {}, 0

    def run(self):
        """The model, prepared."""
        for node in self.graph.nodes:
            if node.op in ("call_module", "call_function", "call_method"):
                self.visit(node, _setting(self.mapping, node, self.modules, self.counts))
        self.model.recompile()
        return self.model

    def visit(self, node, qconfig):
        """What becomes of one node: kept in its ``meta`` for the conversion."""
        kind = _kind(node, self.modules)
        node.meta["unset"] = qconfig is None
        if qconfig is None or not _numbers(node) or node.meta.get("summed"):
            return
        table = kind in (nn.Embedding, nn.EmbeddingBag)
        if getattr(qconfig.activation(), "is_dynamic", False) or table:
            if kind in DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS and (not table or qconfig.weight().qscheme is clnn.per_channel_affine_float_qparams):
                self.modules[node.target].qconfig = qconfig
                node.meta["quantized"] = "dynamic"
            return
        sort = self.sort(node, kind)
        if sort is None or getattr(qconfig.activation(), "dtype", None) not in (clnn.quint8, clnn.qint8):
            return
        node.meta["quantized"] = sort
        sources = [self.observe(source, qconfig) for source in self.sources(node, sort)]
        if sort == "layer":
            self.modules[node.target].qconfig = qconfig
        if sort == "cat":                                       # all of them with the scale of the first
            for source in sources[1:]:
                _replace(self.model, source.target, self.model.get_submodule(sources[0].target))
        last = next(iter(node.users)) if "relu" in sort else node
        if sort in ("shared", "cat", "scalar"):
            self.watch(last, self.model.get_submodule(sources[0].target))
        else:
            fixed = _FIXED.get(kind)
            found = qconfig.activation()
            own = fixed is not None and not isinstance(found, (seen.FixedQParamsObserver, FixedQParamsFakeQuantize))
            self.watch(last, fixed() if own else found)

    def sort(self, node, kind):
        """How a node takes part, None where it does not."""
        if node.op == "call_module" and kind in _STATIC:
            return "layer"
        if kind in _BINARY:
            others = [a for a in node.args[1:2]]
            if len(node.args) != 2 or node.kwargs or not _numbers(node.args[0]):
                return None
            if not isinstance(others[0], fx.Node):
                return "scalar" if isinstance(others[0], (int, float)) else None
            users = list(node.users)
            if not _numbers(others[0]):
                return None
            if len(users) == 1 and _kind(users[0], self.modules) in _RELU:
                users[0].meta["summed"] = True
                return "binary relu"
            return "binary"
        if kind in (clnn.cat, clnn.concat):
            listed = node.args[0] if node.args else node.kwargs.get("tensors")
            return "cat" if listed and all(_numbers(a) for a in listed) else None
        if kind in (nn.Dropout, F.dropout):
            return "own"
        return "fixed" if kind in _FIXED else "shared" if kind in _SHARED and node.args and _numbers(node.args[0]) else None

    def sources(self, node, sort):
        if sort == "cat":
            return list(node.args[0] if node.args else node.kwargs["tensors"])
        return [a for a in node.args[:2 if sort.startswith("binary") else 1] if isinstance(a, fx.Node)] or node.all_input_nodes[:1]

    def observe(self, source, qconfig):
        """The observer of what a node reads, made where there is none."""
        if source.meta.get("observer"):
            return source
        return self.observed.get(source) or self.watch(source, qconfig.activation())

    def watch(self, node, observer):
        """Let all that read ``node`` read it through an observer."""
        name = f"activation_post_process_{self.number}"
        self.number += 1
        self.model.add_submodule(name, observer.train(self.model.training))
        with self.graph.inserting_after(node):
            made = self.graph.call_module(name, (node,))
        made.meta["observer"] = True
        node.replace_all_uses_with(made, lambda user: user is not made)
        self.observed[node] = made
        return made


def _as_mapping(mapping):
    return QConfigMapping.from_dict(mapping) if isinstance(mapping, dict) else mapping


def _prepared(model, mapping, example_inputs, custom, is_qat):
    model = _fuse(_traced(copy.deepcopy(model), custom), is_qat)
    if example_inputs is not None:
        training = model.training
        with clnn.no_grad():
            _Shapes(copy.deepcopy(model).eval(), graph=model.graph).run(*(example_inputs if isinstance(example_inputs, (tuple, list)) else (example_inputs,)))
        model.train(training)
    mapping = _as_mapping(mapping)
    if is_qat:
        counts, modules = {}, dict(model.named_modules(remove_duplicate=False))
        for node in model.graph.nodes:
            qconfig = _setting(mapping, node, modules, counts) if node.op == "call_module" else None
            rounding = DEFAULT_QAT_MODULE_MAPPINGS.get(type(modules.get(node.target)))
            if qconfig is not None and rounding is not None:
                modules[node.target].qconfig = qconfig
                _replace(model, node.target, rounding.from_float(modules[node.target]))
                node.meta["fused"] = node.meta.get("fused", (type(modules[node.target]),))
    return _Preparation(model, mapping).run()


def prepare_fx(model, qconfig_mapping, example_inputs, prepare_custom_config=None, _equalization_config=None, backend_config=None):
    """The graph of a model in eval mode, fused and with observers, to run on some data before :func:`convert_fx`.

    Args:
        qconfig_mapping: a :class:`QConfigMapping`, which says what is observed how.
        example_inputs: a tuple of inputs, which tell tensors of floats from others.

    Example::

        >>> from clnn.ao.quantization.quantize_fx import convert_fx, prepare_fx
        >>> net, x = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).eval(), clnn.randn(16, 4)
        >>> prepared = prepare_fx(net, clnn.ao.quantization.get_default_qconfig_mapping("x86"), (x,))
        >>> _ = prepared(x)
        >>> [type(m).__name__ for m in convert_fx(prepared).children() if hasattr(m, "scale")]
        ['LinearReLU', 'Linear']
    """
    return _prepared(model, qconfig_mapping, example_inputs, prepare_custom_config, False)


def prepare_qat_fx(model, qconfig_mapping, example_inputs, prepare_custom_config=None, backend_config=None):
    """:func:`prepare_fx` for training with rounding, of a model in training mode.

    Example::

        >>> from clnn.ao.quantization.quantize_fx import prepare_qat_fx
        >>> net, x = nn.Sequential(nn.Linear(4, 2)).train(), clnn.randn(16, 4)
        >>> prepare_qat_fx(net, clnn.ao.quantization.get_default_qat_qconfig_mapping("x86"), (x,))(x).requires_grad
        True
    """
    return _prepared(model, qconfig_mapping, example_inputs, prepare_custom_config, True)


# -- conversion -----------------------------------------------------------------------------------------------------------------------
def _scope(node):
    """The path of the module that a node calls, or that calls it."""
    return node.target if node.op == "call_module" else node.meta.get("scope", "")


class _Conversion:
    """Makes the quantised graph of one with observers."""

    def __init__(self, model):
        self.model, self.graph, self.made = model, fx.Graph(), {}
        self.modules = dict(model.named_modules(remove_duplicate=False))
        self.plain, self.names = {}, {}                         # nodes of floats by quantised nodes; what an observer's numbers are called

    def run(self):
        """The model."""
        numbers = {}                                            # every observer has one, as in PyTorch, also where its numbers are not needed
        for node in self.model.graph.nodes:
            if node.meta.get("observer"):
                prefix = self.prefix(node).replace(".", "_")
                number = numbers[prefix] = numbers.get(prefix, -1) + 1
                self.names[node] = f"{prefix}_scale_{number}", f"{prefix}_zero_point_{number}"
        for node in self.model.graph.nodes:
            self.made[node] = self.observer(node) if node.meta.get("observer") else self.other(node)
        self.model.delete_all_unused_submodules()
        done = fx.GraphModule(self.model, self.graph, type(self.model).__name__)
        return done.train(self.model.training)

    def floats(self, node):
        """The new node for an old one, of floats."""
        new, quantised = self.made[node]
        if not quantised:
            return new
        if new not in self.plain:
            self.plain[new] = self.graph.call_method("dequantize", (new,))
        return self.plain[new]

    def observer(self, node):
        source = node.args[0]
        new, quantised = self.made[source]
        if quantised:
            return new, True
        scale, zero_point = self.attributes(node)
        return self.graph.call_function(clnn.quantize_per_tensor, (new, scale, zero_point, self.modules[node.target].dtype)), True

    def prefix(self, node):
        """What the names of an observer's numbers begin with: an input's, with the layer that takes it first."""
        source = node.args[0]
        if source.op != "placeholder" and not source.meta.get("unset"):
            return _scope(source)
        first = next((u for u in node.users if u.target is clnn.nn.functional.linear), None) or next(iter(node.users), None)
        return f"{_scope(first) if first is not None else ''}_input"

    def attributes(self, observer):
        """Nodes that read the scale and the zero point of an observer."""
        scale, zero_point = self.modules[observer.target].calculate_qparams()
        names = self.names[observer]
        for name, value in zip(names, (scale.reshape(-1)[0].float().clone(), zero_point.reshape(-1)[0].to(clnn.int64))):
            self.model.register_buffer(name, value.detach())
        return [self.graph.get_attr(name) for name in names]

    def other(self, node):
        sort = node.meta.get("quantized")
        if node.op == "placeholder" or node.op == "get_attr":
            return self.graph.node_copy(node), False
        if node.meta.get("summed") and self.made[node.args[0]][1]:
            return self.made[node.args[0]]
        if sort == "dynamic":
            kind = type(self.modules[node.target])
            _replace(self.model, node.target, DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS[kind].from_float(self.modules[node.target]))
            sort = None
        if sort is None:                                        # a size is that of the integers, too
            return self.graph.node_copy(node, self.floats if node.meta.get("floating", True) else lambda n: self.made[n][0]), False
        return getattr(self, sort.split()[0])(node), True

    @staticmethod
    def seen_by(node):
        return next((user for user in node.users if user.meta.get("observer")), None)

    def layer(self, node):
        module = self.modules[node.target]
        observer = self.seen_by(node)
        module.activation_post_process = None if observer is None else self.modules[observer.target]
        _replace(self.model, node.target, _STATIC[type(module)].from_float(module))
        return self.shared(node)

    def binary(self, node):
        name, relu = _BINARY[_kind(node, self.modules)], "relu" in node.meta["quantized"]
        observer = self.seen_by(next(iter(node.users)) if relu else node)
        function = getattr(clnn.ops.quantized, name + "_relu" * relu)
        operands = [self.made[a][0] for a in node.args]
        return self.graph.call_function(function, (*operands, *self.attributes(observer)))

    def scalar(self, node):
        return self.graph.call_function(getattr(clnn.ops.quantized, _BINARY[_kind(node, self.modules)]), (self.made[node.args[0]][0], node.args[1]))

    def shared(self, node):
        module = self.modules.get(node.target) if node.op == "call_module" else None
        if type(module) is nn.Dropout:
            _replace(self.model, node.target, nnq.Dropout.from_float(module))
        return self.graph.node_copy(node, lambda n: self.made[n][0])

    fixed = cat = own = shared


def convert_fx(graph_module, convert_custom_config=None, _remove_qconfig=True, qconfig_mapping=None, backend_config=None, keep_original_weights=False):
    """The quantised model of one that :func:`prepare_fx` or :func:`prepare_qat_fx` made, after it saw data.

    Example::

        >>> from clnn.ao.quantization.quantize_fx import convert_fx, prepare_fx
        >>> net, x = nn.Sequential(nn.Linear(4, 2)).eval(), clnn.randn(16, 4)
        >>> prepared = prepare_fx(net, clnn.ao.quantization.get_default_qconfig_mapping("x86"), (x,))
        >>> _ = prepared(x)
        >>> convert_fx(prepared)(x).shape
        clnn.Size([16, 2])
    """
    from .quantize import _remove_qconfig as remove
    model = _Conversion(copy.deepcopy(graph_module)).run()
    if _remove_qconfig:
        remove(model)
    return model
