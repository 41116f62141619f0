"""The Tensor handle: shape, strides and offset into a shared Storage, plus its place on the autograd tape.

Operators, methods and operator symbols are attached by ``declare`` from the operator table; this file holds what is not an operator.
"""
from __future__ import annotations

import numbers
import weakref
from math import prod

from ..core import dtype as dt
from ..core import native
from ..core.layout import strided
from ..core.shape import Size, contiguous_strides, is_contiguous
from ..core.warn import first_time, warn
from ..graph import fuse
from ..graph.node import Storage, record
from . import gradient, later
from .device import public
from .grad_mode import state
from .handle import RARE, Handle, attributes
from .handles import RemovableHandle
from .pointers import address
from .tape import accumulator
from .views import follow, refresh, watch
from .writing import write


@native.know
class Tensor(Handle):
    """A multi-dimensional array on an OpenCL device, with gradients.

    Make one with ``clnn.tensor``, ``clnn.zeros``, ``clnn.randn`` or ``clnn.from_numpy``.
    """

    __module__ = "clnn"             # where it is public
    __slots__ = ("_storage", "shape", "_strides", "_offset", "dtype", "_numel", "_dense", *native.slots(RARE))
    __dict__ = attributes
    _retain = _wrapped = False
    _drawn = None                   # the dimensions in which random numbers are drawn for it, where PyTorch's result lies otherwise in memory

    def __new__(cls, *args, device=None, dtype=None, **kwargs):
        from ..ops import creation
        return creation.legacy_constructor(cls, args, device)

    def __init__(self, *args, **kwargs):
        pass

    # -- identity -------------------------------------------------------------------------------------------------------------
    @staticmethod
    def _make_subclass(cls, data, require_grad=False):
        """A tensor of class ``cls`` that shares the memory of ``data`` and has no history."""
        if cls._wrapped:
            from .wrapped import made_of
            return made_of(cls, data, require_grad)
        t = object.__new__(cls)
        t._storage, t._shape, t._strides, t._offset = data._storage, data.shape, data._strides, data._offset
        t._dtype, t._numel, t._dense = data.dtype, data._numel, data._dense
        if data._ver is not None:
            t._ver = data._ver
        if require_grad:
            if not t.dtype.differentiable:
                raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
            t.requires_grad = True
        return t

    def _alias(self):
        """A plain handle on the same memory and version counter, without history."""
        t = _new(Tensor)
        t._storage, t._shape, t._strides, t._offset = self._storage, self.shape, self._strides, self._offset
        t._dtype, t._numel, t._dense = self.dtype, self._numel, self._dense
        if self._ver is not None:
            t._ver = self._ver
        return t

    def _snapshot(self):
        """The present value under a storage of its own: no copy is made until one side is written (buffers are shared by value)."""
        if self._numel * self.dtype.itemsize != self._storage.nbytes or not (self._dense or self._is_permuted()) or self._storage.pinned:
            return later.record_in_layout(fuse.CAST, self.dtype, self.dtype, self.shape, self._numel, (self,))
        t = self._alias()
        t._ver = None
        st = self._storage
        t._storage = Storage(st.device, st.nbytes, st.buf, st.node)
        return t

    def _is_permuted(self):
        """True for all of a dense block with its dimensions in another order."""
        return self._offset == 0 and later.memory_order(self, dense=True) is not None

    def _assign(self, value):
        """Write ``value`` (same shape and dtype, broadcasts not allowed) into this tensor's memory and bump the version."""
        write(self, value)

    # -- geometry -------------------------------------------------------------------------------------------------------------
    @property
    def device(self):
        return public(self._storage.device)

    @property
    def ndim(self):
        return len(self.shape)

    def dim(self):
        return len(self.shape)

    ndimension = dim

    def numel(self):
        return self._numel

    nelement = numel

    def size(self, dim=None):
        return self.shape if dim is None else self.shape[dim if -len(self.shape) <= dim < len(self.shape) else _bad_dim(dim, self)]

    def stride(self, dim=None):
        return tuple(self._strides) if dim is None else self._strides[dim if -len(self.shape) <= dim < len(self.shape) else _bad_dim(dim, self)]

    def storage_offset(self):
        return self._offset

    def element_size(self):
        return self.dtype.itemsize

    itemsize = property(lambda self: self.dtype.itemsize)
    nbytes = property(lambda self: self._numel * self.dtype.itemsize)

    _cdata = property(id)                                           # what tells this tensor from others of the same memory

    def data_ptr(self):
        """The address of a copy on the host, equal for tensors that start at the same element of the same storage. It holds the values of now."""
        span = 1 + sum((n - 1) * s for n, s in zip(self.shape, self._strides)) if self._numel else 0
        return address(self._storage, self._offset * self.dtype.itemsize, (self._offset + span) * self.dtype.itemsize)

    def is_contiguous(self, memory_format=None):
        if memory_format is not None:
            from .formats import follows
            return follows(self, memory_format)
        return self._dense or is_contiguous(self.shape, self._strides)

    def is_floating_point(self):
        return self.dtype.is_floating_point

    def is_complex(self):
        return self.dtype.is_complex

    def is_signed(self):
        return self.dtype.is_signed

    _inference = property(lambda self: self._storage.version < 0)

    def is_inference(self):
        """Whether the memory was made in inference mode."""
        return self._inference

    def is_set_to(self, other):
        return self._storage is other._storage and self._offset == other._offset and self.shape == other.shape \
            and self._strides == other._strides

    is_cuda = property(lambda self: self._storage.device.kind == "gpu")
    is_cpu = property(lambda self: self._storage.device.kind == "cpu")
    is_meta = property(lambda self: self._storage.device.kind == "meta")
    is_sparse = is_quantized = is_mkldnn = is_nested = False
    layout = strided

    def get_device(self):
        return -1 if self.is_cpu else self._storage.device.index

    # -- autograd -------------------------------------------------------------------------------------------------------------
    @property
    def requires_grad(self):
        return self._rg

    @requires_grad.setter
    def requires_grad(self, value):
        if value.__class__ is not bool:
            raise RuntimeError("requires_grad must be a bool")
        if self._grad_fn is not None:
            if not value:
                raise RuntimeError("you can only change requires_grad flags of leaf variables. If you want to use a computed variable in "
                                   "a subgraph that doesn't require differentiation use var_no_grad = var.detach().")
            return
        if value and not self.dtype.differentiable:
            raise RuntimeError("only Tensors of floating point and complex dtype can require gradients")
        if value and self._inference and not state.inference:
            raise RuntimeError("Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.")
        self._rg = value
        if self._views is not None:
            follow(self)

    @requires_grad.deleter
    def requires_grad(self):
        raise RuntimeError("requires_grad must be a bool")

    def requires_grad_(self, requires_grad=True):
        if requires_grad.__class__ is not bool:
            raise TypeError(f"requires_grad_(): argument 'requires_grad' (position 1) must be bool, not {type(requires_grad).__name__}")
        if requires_grad and not self.dtype.differentiable:
            raise RuntimeError("only Tensors of floating point dtype can require gradients")
        self.requires_grad = requires_grad
        return self

    @property
    def is_leaf(self):
        if self._base is not None:
            refresh(self)
        return self._grad_fn is None

    @property
    def grad_fn(self):
        if self._base is not None:
            refresh(self)
        node = self._grad_fn
        if node is None:
            return None
        node = node.shown(self._out_nr)
        node.__dict__.setdefault("shapes", {})[self._out_nr] = (self.shape, self.dtype, self._home)      # for gradients that start at the node
        return node

    @property
    def output_nr(self):
        return self._out_nr

    @property
    def _version(self):
        if self._storage.version < 0:
            raise RuntimeError("Inference tensors do not track version counter.")
        return (self._ver or self._storage).version

    grad, grad_dtype, volatile = gradient.grad, gradient.grad_dtype, gradient.volatile

    @property
    def data(self):
        t = self._alias()
        t._ver = Version()
        return t

    @data.setter
    def data(self, value):
        if not isinstance(value, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(value).__name__}")
        if self._rg and not value.dtype.differentiable:
            raise RuntimeError("data set to a tensor that requires gradients must be floating point or complex dtype")
        counter = self._ver or self._storage
        self._storage, self._shape, self._strides, self._offset = value._storage, value.shape, value._strides, value._offset
        self._dtype, self._numel, self._dense = value.dtype, value._numel, value._dense
        if counter.version != (self._ver or self._storage).version:             # the count goes on: what is kept for backward is this tensor still
            self._ver = counter if counter.__class__ is Version else Version(counter.version)

    @data.deleter
    def data(self):
        raise RuntimeError("Deleting tensor data is not allowed. Delete tensor instead!")

    def detach(self):
        """The same memory without history."""
        return self._alias()

    def detach_(self):
        if self._base is not None:
            raise RuntimeError("Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for training, and "
                               "gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence detach_() cannot be called on these "
                               "gradients. To fix this error, please refer to the Optimizer.zero_grad() function in torch/optim/optimizer.py as the solution.")
        self._grad_fn, self._out_nr, self._rg = None, 0, False
        return self

    def backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None):
        later.backward(self, gradient, retain_graph, create_graph, None, inputs)

    def retain_grad(self):
        """Keep ``.grad`` of a tensor that is not a leaf."""
        if not self._rg:
            raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
        if self.is_leaf or self._retain:
            return
        self._retain = True
        me = weakref.ref(self)

        def keep(g):
            t = me()
            if t is not None:
                t._grad = writable(g) if t._grad is None else t._grad + g
        self._hook_table()["retain"] = keep

    @property
    def retains_grad(self):
        return self._retain

    def _hook_table(self):
        fn = self.grad_fn
        if fn is None:
            if self._leaf_hooks is None:
                self._leaf_hooks = {0: {}}
            hooks = self._leaf_hooks
            accumulator(self).retains = hooks
            return hooks[0]
        if fn.retains is None:
            fn.retains = {}
        return fn.retains.setdefault(self._out_nr, {})

    def register_hook(self, hook):
        """Call ``hook(grad)`` when the gradient of this tensor is known; what it returns replaces the gradient."""
        if not self._rg:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        table = self._hook_table()
        handle = RemovableHandle(table)
        table[handle.id] = hook
        return handle

    def register_post_accumulate_grad_hook(self, hook):
        """Call ``hook(self)`` after ``.grad`` of this leaf was updated."""
        if not self._rg:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        if self._grad_fn is not None:
            raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
        if self._post_accumulate_hooks is None:
            self._post_accumulate_hooks = {}
        table = self._post_accumulate_hooks
        handle = RemovableHandle(table)
        table[handle.id] = hook
        return handle

    # -- Python protocol --------------------------------------------------------------------------------------------------------
    def __len__(self):
        if not self.shape:
            raise TypeError("len() of a 0-d tensor")
        return self.shape[0]

    def __iter__(self):
        if not self.shape:
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.unbind(0))

    def __hash__(self):
        return id(self)

    def __contains__(self, item):
        if isinstance(item, (Tensor, numbers.Number)):          # NumPy's, too
            return bool((self == item).any())
        raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(item)}.")

    def __repr__(self, *, tensor_contents=None):
        from .display import tensor_repr
        return tensor_repr(self, tensor_contents)

    def __format__(self, spec):
        if not self.shape and type(self) is Tensor and self._storage.device.kind != "meta":
            return format(self.item(), spec)
        return object.__format__(self, spec) if spec else str(self)

    def __bool__(self):
        if self._numel != 1:
            if self._numel == 0:
                raise RuntimeError("Boolean value of Tensor with no values is ambiguous")
            raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
        return bool(self.item())

    def _scalar(self):
        if self._numel != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        return self.item()

    def _real_scalar(self, kind):
        value = self._scalar()
        if value.__class__ is complex:
            if value.imag:
                raise RuntimeError(f"value cannot be converted to type {kind} without overflow")
            value = value.real
        return value

    def __float__(self):
        if self._rg and state.grad and first_time("scalar"):
            warn("Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\nConsider using tensor.detach() first.")
        return float(self._real_scalar("double"))

    def __int__(self):
        return int(self._real_scalar("int64_t"))

    def __complex__(self):
        return complex(self._scalar())

    def __index__(self):
        if self._numel != 1 or self.dtype.differentiable:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self.item())

    def __getitem__(self, index):
        return later.getitem(self, index)

    def __delitem__(self, index):
        raise TypeError("Tensor does not support deleting items")

    def __setitem__(self, index, value):
        later.setitem(self, index, value)

    def __reversed__(self):
        return self.flip(0) if self.shape else self

    def __copy__(self):
        from .interop import shallow
        return shallow(self)

    def __deepcopy__(self, memo):
        from .interop import deepcopy
        return deepcopy(self, memo)

    def __reduce_ex__(self, protocol):
        from .interop import reduce
        return reduce(self)

    def __array__(self, dtype=None, copy=None):
        got = self.numpy()
        return got if dtype is None else got.astype(dtype)

    __array_priority__ = 1000

    def __array_wrap__(self, array, context=None, return_scalar=False):
        from .device import resolve
        from .interop import from_array
        return from_array(array.astype("uint8") if array.dtype == bool else array, resolve(None))

    def __dlpack__(self, **kwargs):
        from .interop import to_dlpack
        return to_dlpack(self, **kwargs)

    def __dlpack_device__(self):
        return (1, 0)

    def numpy(self, *, force=False):
        """The values as a NumPy array: on a CPU the tensor's own memory, so that each sees what is written to the other; of other devices a copy."""
        return later.to_numpy(self, force)

    def item(self):
        """The one value as a Python number. Waits for the device."""
        return later.item(self)

    def tolist(self):
        """The values as nested Python lists."""
        return self.item() if not self.shape else later.read(self).tolist()

    def __setstate__(self, data):
        self.__dict__.update(data)


Tensor._shape, Tensor._dtype = vars(Tensor)["shape"], vars(Tensor)["dtype"]          # where clnn's own code writes them
Tensor.shape, Tensor.dtype = native.read_only(Tensor, "shape"), native.read_only(Tensor, "dtype")
native.rare(Tensor, RARE)
native.method(Tensor, "_alias")
_new = object.__new__


class Version:
    __slots__ = ("version",)

    def __init__(self, version=0):
        self.version = version


def _bad_dim(dim, t):
    from ..core.shape import wrap_dim
    dim = wrap_dim(dim, len(t.shape))
    if not t.shape:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return dim


def make(storage, shape, dtype, numel) -> Tensor:
    """A handle on a fresh, dense storage."""
    t = _new(Tensor)
    t._storage, t._shape, t._strides, t._offset = storage, shape, contiguous_strides(shape), 0
    t._dtype, t._numel, t._dense = dtype, numel, True
    return t


make = native.form("make", make)


def make_view(base, shape, strides, offset, dtype=None) -> Tensor:
    """A handle on part of the storage of ``base`` (history is attached by the view driver); with a ``dtype``, strides and offset count its elements."""
    shape = shape if shape.__class__ is Size else Size(shape)
    return view_of(base, shape, strides, offset, prod(shape), offset == 0 and is_contiguous(shape, strides), dtype)


def view_of(base, shape, strides, offset, numel, dense, dtype=None) -> Tensor:
    """:func:`make_view` where all that follows from shape and strides is known."""
    t = _new(Tensor)
    t._storage, t._shape, t._strides, t._offset = base._storage, shape, strides, offset
    t._dtype = base.dtype if dtype is None else dtype
    t._numel, t._dense = numel, dense
    if base._ver is not None:
        t._ver = base._ver
    recording = state.grad
    if recording is None:                                       # within an operator's body: no view to the program
        return t
    t._base, t._view_version = base, (t._ver or t._storage).version
    if base._base is not None:
        t._base = base._base
        if base._origin is not None:
            t._origin = base._origin
    if not recording:
        if t.dtype.differentiable:
            t._origin, t._rg = "inference" if state.inference else "no_grad", t._base._rg
    elif not base._rg and t.dtype.differentiable:
        watch(t._base, t)
    return t


native.give(state=state, watch=watch, view_of=view_of)
view_of = native.form("view_of", view_of)


def empty(shape, dtype, device) -> Tensor:
    """Uninitialised dense memory."""
    shape = shape if shape.__class__ is Size else Size(shape)
    numel = 1
    for s in shape:
        if s < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {s}: {list(shape)}")
        numel *= s
    if dtype.needs_fp64 and not device.has_fp64:
        raise TypeError(f"{dtype.name} is not supported by {device.name}; use {'complex64' if dtype.is_complex else 'float32'}, or a device with fp64 "
                        "(python -m clnn doctor lists them)")
    dt.noticed(dtype)
    nbytes = numel * dtype.itemsize
    return make(Storage(device, nbytes, device.alloc(nbytes)), shape, dtype, numel)


def writable(grad):
    """A gradient that programs keep and may write to: with memory for each element, where one stands for several that a reduction took."""
    return grad.contiguous() if grad.__class__ is Tensor and 0 in grad._strides and grad._numel > 1 else grad


def edge(t):
    """Where the gradient of ``t`` is to be delivered: (node, output number), or None."""
    if t._base is not None:
        refresh(t)
    fn = t._grad_fn
    if fn is not None:
        return (fn, t._out_nr)
    return (accumulator(t), 0) if t._rg else None


def from_node(expr, refs, compute, dtype, shape, numel, device, count, leaves, linear) -> Tensor:
    return make(record(expr, refs, compute, dtype, shape, numel, device, count, leaves, linear), shape, dtype, numel)
