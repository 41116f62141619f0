"""``sys.modules["torch"] = clnn``: what is then imported as ``torch.nn`` is ``clnn.nn`` itself, not a second copy of it.

Modules that PyTorch keeps elsewhere are found under its names, and an import of what clnn does not have says why.
"""
import importlib
import importlib.util
import sys
from importlib.machinery import ModuleSpec

_PACKAGE = __name__.rpartition(".")[0]
_ELSEWHERE = {
    "autograd.profiler": "profiler", "autograd.variable": "autograd", "cuda.amp.autocast_mode": "cuda.amp", "cuda.amp.common": "cuda.amp",
    "cuda.amp.grad_scaler": "amp.grad_scaler", "cuda.memory": "cuda", "cuda.random": "cuda", "cuda.streams": "cuda",
    "_functorch.aot_autograd": "_aot", "_functorch.partitioners": "_aot", "_functorch.compilers": "_aot", "_dynamo.backends": "_aot",
    "_dynamo.backends.common": "_aot", "_dynamo.testing": "_dynamo_testing",
    "_dynamo.utils": "_dynamo", "_dynamo.eval_frame": "_dynamo", "_dynamo._trace_wrapped_higher_order_op": "_dynamo",
    "_subclasses": "_questions", "_subclasses.fake_tensor": "_questions", "fx.experimental": "_questions", "fx.experimental.symbolic_shapes": "_questions",
    "fx.experimental.proxy_tensor": "_questions", "fx.experimental.optimization": "fx._optimization",
    "jit.annotations": "_jit_annotations",
    "onnx.operators": "onnx", "onnx.symbolic_helper": "onnx", **{f"onnx.symbolic_opset{n}": "onnx" for n in range(7, 24)},
    "distributed.distributed_c10d": "distributed", "distributed.constants": "distributed", "distributed.nn.functional": "distributed.nn",
    "nn.parallel.scatter_gather": "nn.parallel", "nn.parallel.replicate": "nn.parallel", "nn.parallel.parallel_apply": "nn.parallel",
    "nn.parallel.data_parallel": "nn.parallel", "nn.parallel.distributed": "nn.parallel",
    "utils.data._utils.collate": "utils.data.collate", "utils.data._utils.worker": "utils.data._worker", "utils.data.distributed": "utils.data.sampler",
    "utils.tensorboard.writer": "utils.tensorboard", "testing._comparison": "testing.compare",
    **dict.fromkeys(("testing._internal", *(f"testing._internal.common_{n}" for n in ("utils", "dtype", "device_type"))), "testing._unit"),
    "export.graph_signature": "export", "export.exported_program": "export", "export.dynamic_shapes": "export",
    "distributed.algorithms._checkpoint.checkpoint_wrapper": "distributed.checkpoint_wrapper",
    "_functorch.eager_transforms": "func", "_functorch.apis": "func", "_functorch.functional_call": "func", "_functorch.make_functional": "functorch",
    "_vmap_internals": "func", "optim._multi_tensor": "optim", "autograd.profiler_util": "profiler",
    "cuda.comm": "nn._exchange", "nn.parallel.comm": "nn._exchange", "nn.parallel._functions": "nn._exchange", "cuda.graphs": "cuda", "cuda._utils": "_utils",
    "distributed.optim.zero_redundancy_optimizer": "distributed.optim", "_C._distributed_c10d": "distributed", "export.unflatten": "export",
    "_lowrank": "ops.factorisations", "_lobpcg": "ops.symmetric", "jit._script": "jit", "onnx.utils": "onnx",
    "utils._typing_utils": "_utils",
    "_C._functorch": "_functorch", "_functorch.vmap": "_functorch", "utils.data._utils.pin_memory": "utils.data._pinning",
}
_LAYERS = {                     # modules of quantised layers: PyTorch has them below nn and below ao.nn
    "intrinsic": "intrinsic", "intrinsic.modules": "intrinsic", "intrinsic.modules.fused": "intrinsic", "intrinsic.quantized": "intrinsic.quantized",
    "intrinsic.quantized.modules": "intrinsic.quantized", "intrinsic.quantized.dynamic": "intrinsic._dynamic", "intrinsic.qat": "intrinsic.qat",
    **{f"intrinsic.quantized.modules.{n}": "intrinsic.quantized" for n in ("bn_relu", "conv_add", "conv_relu", "linear_relu")},
    "intrinsic.qat.modules": "intrinsic.qat", **{f"intrinsic.qat.modules.{n}": "intrinsic.qat" for n in ("conv_fused", "linear_fused", "linear_relu")},
    "intrinsic.quantized.dynamic.modules": "intrinsic._dynamic", "intrinsic.quantized.dynamic.modules.linear_relu": "intrinsic._dynamic",
    "qat": "qat", "qat.modules": "qat.modules", "qat.dynamic": "qat.dynamic", "qat.dynamic.modules": "qat.dynamic",
    **{f"qat.modules.{n}": f"qat.modules.{n}" for n in ("conv", "embedding_ops", "linear")},
    "quantizable": "quantizable", "quantizable.modules": "quantizable", "quantizable.modules.rnn": "quantizable",
    "quantizable.modules.activation": "quantizable",
    "quantized": "quantized", "quantized.functional": "quantized.functional", "quantized.modules": "quantized.modules", "quantized.dynamic": "quantized.dynamic",
    **{f"quantized.modules.{n}": f"quantized.modules.{n}" for n in ("activation", "conv", "embedding_ops", "functional_modules", "linear", "normalization")},
    "quantized.modules.batchnorm": "quantized.modules.normalization", "quantized.modules.dropout": "quantized.modules.activation",
    "quantized.modules.utils": "quantized.modules.base", "quantized.dynamic.modules": "quantized.dynamic", "quantized.dynamic.modules.conv": "quantized.dynamic.layers",
    "quantized.dynamic.modules.linear": "quantized.dynamic.layers", "quantized.dynamic.modules.rnn": "quantized.dynamic.rnn",
}
_ELSEWHERE.update({f"{place}.{name}": f"ao.nn.{found}" for place in ("nn", "ao.nn") for name, found in _LAYERS.items() if place == "nn" or name != found})
_ELSEWHERE.update({"quantization": "ao.quantization", **{f"quantization.{n}": f"ao.quantization.{n}" for n in (
    "fake_quantize", "fuse_modules", "fuser_method_mappings", "observer", "qconfig", "quant_type", "quantization_mappings", "quantize", "quantize_fx", "stubs",
    "utils")}})
_FOUND = {*_ELSEWHERE, *(name.rpartition(".")[0] for name in _ELSEWHERE)}       # these, and packages that they make of modules, are left to the finder


_FUNCTORCH = {"functorch.compile": "_aot", "functorch.experimental": "_higher_order_ops", "functorch.experimental.control_flow": "_higher_order_ops",
              "functorch.experimental.ops": "_higher_order_ops"}
_OWN, _FOLLOWS = "0.1.0", "2.13.0+clnn"


def is_torch() -> bool:
    """Whether programs that import torch get clnn."""
    return sys.modules.get("torch") is sys.modules[_PACKAGE]


def _speak(name):
    """Libraries for several frameworks tell modules and tensors by the name of the package: give them the one that they import. Programs print the kinds."""
    package = sys.modules[_PACKAGE]
    if package.__name__ != name and hasattr(package, "Tensor"):
        package.__name__ = name
        for kind in ("Tensor", "Size", "dtype", "device", "Generator"):
            getattr(package, kind).__module__ = name


def version():
    """clnn's version. What imports it as torch asks which names there are, and gets the version of PyTorch that clnn follows."""
    if not is_torch():
        return _OWN
    _speak("torch")
    from .torch_version import TorchVersion
    return TorchVersion(_FOLLOWS)


class _Loader:
    """Hands out the module that is already there under its own name."""

    def __init__(self, name):
        self.name = name

    def create_module(self, spec):
        module = importlib.import_module(self.name)
        self.own = module.__spec__
        return module

    def exec_module(self, module):
        other, module.__spec__ = module.__spec__.name, self.own  # the import system just wrote the other name's over it
        # Those below are known by then too, as programs look for them in ``sys.modules``; and an import of autograd.gradcheck would put the module where the
        # package has the function of that name.
        for name in [name for name in sys.modules if name.startswith(f"{self.name}.") and "._" not in name]:
            place = other + name[len(self.name):]
            if place.partition(".")[2] not in _FOUND:
                sys.modules.setdefault(place, sys.modules[name])


class _Finder:
    """Sends imports below another name of the package to the package."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        root, dot, rest = name.partition(".")
        if name == "functorch" and is_torch():              # a package of PyTorch's distribution
            return ModuleSpec(name, _Loader(f"{_PACKAGE}.functorch"), is_package=True)
        if name in _FUNCTORCH and is_torch():
            return ModuleSpec(name, _Loader(f"{_PACKAGE}.{_FUNCTORCH[name]}"), is_package=True)
        if not dot or root != _PACKAGE and sys.modules.get(root) is not sys.modules.get(_PACKAGE):
            return None
        if root == "torch":
            _speak(root)
        own = f"{_PACKAGE}.{_ELSEWHERE.get(rest, rest)}"
        if own != name and (own in sys.modules or importlib.util.find_spec(own)):
            return ModuleSpec(name, _Loader(own), is_package=True)
        return None

    @staticmethod
    def find_distributions(context=None):
        if getattr(context, "name", None) != "torch" or not is_torch():
            return []
        from ._installed import Torch
        return [Torch(version())]


class _Why:
    """Comes last: what no one has found is refused with the reason."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        root, _, rest = name.partition(".")
        if rest and sys.modules.get(root) is sys.modules.get(_PACKAGE) is not None:
            from ._absent import reason
            family = reason(rest.partition(".")[0])
            if family:
                raise ModuleNotFoundError(f"No module named {name!r}: clnn does not implement {family}", name=name)
        return None


sys.meta_path.insert(0, _Finder)
sys.meta_path.append(_Why)
