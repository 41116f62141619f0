"""Moving and converting the tensors of a module tree, training mode, gradients."""
import warnings

import clnn
from clnn.__future__ import _flags
from clnn._tensor.tensor import Tensor
from clnn._tensor.worded import refuse
from clnn.core.config import config
from clnn.core.dtype import as_dtype
from clnn.nn.modules._hooks import changes
from clnn.nn.parameter import Parameter, is_lazy
from clnn.utils import swap_tensors


def _parse_to(*args, **kwargs):
    """The forms of ``to``: (device, dtype, non_blocking), (dtype, non_blocking), (tensor, non_blocking)."""
    refuse("to", (None, *args), kwargs, True)
    rest, given = list(args), kwargs.get
    device, dtype, other = given("device"), given("dtype"), given("tensor")
    if rest and isinstance(rest[0], Tensor):
        other = rest.pop(0)
    elif rest and (isinstance(rest[0], clnn.dtype) or rest[0] in (float, int, bool, complex)):
        dtype = rest.pop(0)
    elif rest:
        device = rest.pop(0)
        if rest and (rest[0] is None or isinstance(rest[0], clnn.dtype) or rest[0] in (float, int, bool, complex)):
            dtype = rest.pop(0)
    if "copy" in kwargs or len(rest) > 1:
        raise RuntimeError(".to() does not accept copy argument")
    if other is not None:
        device, dtype = other.device, other.dtype
    return None if device is None else clnn.device(device), as_dtype(dtype), bool(rest[0] if rest else given("non_blocking")), given("memory_format")


class ConvertMixin:
    """The part of :class:`Module` that changes all tensors of the tree."""

    def _apply(self, fn, recurse=True):
        """Replace every tensor of the tree by ``fn(tensor)``; parameters and their gradients keep their identity."""
        changes[0] += 1
        if recurse:
            for module in self.children():
                module._apply(fn)
        for name, param in self._parameters.items():
            if param is not None:
                with clnn.no_grad():
                    self._module_replace(name, param, fn)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def _module_replace(self, name, param, fn):
        """Give one parameter and its gradient the values ``fn`` makes of them, by the switches of ``clnn.__future__``."""
        grad = None if param.grad is None else fn(param.grad).requires_grad_(param.grad.requires_grad)
        if not (_flags["swap"] or _flags["overwrite"]):
            found = fn(param if is_lazy(param) else param.data)
            if found.is_meta == param.is_meta or is_lazy(param):
                param.data = found
            else:                                                   # a tensor without values is one of another kind: parameters that were tied are apart then
                param = self._parameters[name] = Parameter(found, param.requires_grad)
        else:
            fresh = Parameter(fn(param), param.requires_grad)
            if _flags["swap"]:
                swap_tensors(param, fresh)
            else:
                param = self._parameters[name] = fresh
        if grad is not None:
            param.grad = grad

    def apply(self, fn):
        """Call ``fn(module)`` for every module of the tree, children first, and return the module."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def to(self, *args, **kwargs):
        """Move the tree to a device and/or a floating dtype, in place: ``to(device, dtype)``, ``to(dtype)``, ``to(tensor)``.

        Integer parameters and buffers change the device only. A ``memory_format`` is that of images: tensors of other ranks keep theirs.

        Example::

            >>> nn.Linear(2, 1).to(clnn.float16).weight.dtype
            clnn.float16
        """
        device, dtype, non_blocking, memory_format = _parse_to(*args, **kwargs)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}")
        if dtype is not None and dtype.is_complex:
            warnings.warn("Complex modules are a new feature under active development whose design may change, and some modules might not work as "
                          "expected when using complex tensors as parameters or buffers.", stacklevel=2)

        def convert(tensor):
            wanted = dtype if tensor.is_floating_point() or tensor.is_complex() else None
            arranged = {} if memory_format is None or tensor.dim() not in (4, 5) else {"memory_format": memory_format}
            try:
                return tensor.to(device=device, dtype=wanted, non_blocking=non_blocking, **arranged)
            except NotImplementedError as error:
                if str(error).startswith("Cannot copy out of meta tensor"):
                    raise NotImplementedError(f"Cannot copy out of meta tensor; no data! Please use {config.spoken}.nn.Module.to_empty() instead of "
                                              f"{config.spoken}.nn.Module.to() when moving module from meta to a different device.") from None
                raise

        return self._apply(convert)

    def to_empty(self, *, device, recurse=True):
        """Move the tree to *device* without copying: all values are undefined afterwards."""
        return self._apply(lambda t: clnn.empty_like(t, device=device), recurse=recurse)

    def cpu(self):
        """Move the tree to the CPU device."""
        return self._apply(lambda t: t.cpu())

    def cuda(self, device=None):
        """Move the tree to the GPU (name kept from PyTorch)."""
        return self._module_elsewhere("cuda", device)

    def _module_elsewhere(self, kind, device):
        return self._apply(lambda t: t.to(device=f"{kind}:{device}" if isinstance(device, int) else device or kind))

    def xpu(self, device=None):
        """Move the tree to an XPU, as PyTorch calls some GPUs; refused where there is none."""
        return self._module_elsewhere("xpu", device)

    def ipu(self, device=None):
        """Move the tree to an IPU; refused, as OpenCL has none."""
        return self._module_elsewhere("ipu", device)

    def mtia(self, device=None):
        """Move the tree to an MTIA; refused, as OpenCL has none."""
        return self._module_elsewhere("mtia", device)

    def type(self, dst_type):
        """Cast all parameters and buffers to *dst_type*."""
        return self._apply(lambda t: t.type(dst_type))

    def _module_cast_floating(self, dtype):
        return self._apply(lambda t: t.to(dtype=dtype) if t.is_floating_point() else t)

    def float(self):
        """Cast all floating parameters and buffers to float32."""
        return self._module_cast_floating(clnn.float32)

    def double(self):
        """Cast all floating parameters and buffers to float64."""
        return self._module_cast_floating(clnn.float64)

    def half(self):
        """Cast all floating parameters and buffers to float16."""
        return self._module_cast_floating(clnn.float16)

    def bfloat16(self):
        """Cast all floating parameters and buffers to bfloat16."""
        return self._module_cast_floating(clnn.bfloat16)

    def share_memory(self):
        """Move the tensors to memory shared between processes, as ``Tensor.share_memory_`` does."""
        return self._apply(lambda t: t.share_memory_())

    # -- mode and gradients ---------------------------------------------------------------------------------------------
    def train(self, mode=True):
        """Set the training mode of the tree (dropout, batch statistics) and return the module."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self):
        """Set evaluation mode: the same as ``train(False)``."""
        return self.train(False)

    def requires_grad_(self, requires_grad=True):
        """Set ``requires_grad`` of all parameters, for example to freeze a part of a model."""
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none=True):
        """Forget all gradients, or set them to zero with ``set_to_none=False``."""
        if getattr(self, "_is_replica", False):
            warnings.warn("Calling .zero_grad() from a module created with nn.DataParallel() has no effect.", stacklevel=2)
        for param in self.parameters():
            if param.grad is None:
                continue
            if set_to_none:
                param.grad = None
                continue
            if param.grad.grad_fn is not None:
                param.grad.detach_()
            else:
                param.grad.requires_grad_(False)
            param.grad.zero_()
