"""Names that PyTorch programs use to spread a model over devices."""
import contextlib
import copy

import clnn

from .modules.module import Module

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel", "gather", "parallel_apply", "replicate", "scatter", "scatter_kwargs"]


class DataParallel(Module):
    """Wraps a module as PyTorch's class of this name does, so that programs and checkpoints with ``module.`` names work.

    Nothing is split: the module runs on its own device. ``device_ids``, ``output_device`` and ``dim`` are kept and ignored.

    Example::

        >>> list(nn.DataParallel(nn.Linear(2, 1, bias=False)).state_dict())
        ['module.weight']
    """

    def __init__(self, module, device_ids=None, output_device=None, dim=0):
        super().__init__()
        self.module = module
        self.device_ids = [] if device_ids is None else device_ids
        self.output_device = output_device
        self.dim = dim

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)


class DistributedDataParallel(DataParallel):
    """:class:`DataParallel` for programs that make a group of processes with ``clnn.distributed``: there is one, so nothing is exchanged.

    Example::

        >>> net = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
        >>> with net.no_sync():
        ...     net(clnn.ones(1, 2)).sum().backward()
    """

    def __init__(self, module, device_ids=None, output_device=None, dim=0, broadcast_buffers=True, **options):
        if not any(p.requires_grad for p in module.parameters()):
            raise RuntimeError("DistributedDataParallel is not needed when a module doesn't have any parameter that requires a gradient.")
        super().__init__(module, device_ids, output_device, dim)
        self.broadcast_buffers, self.require_backward_grad_sync = broadcast_buffers, True

    @contextlib.contextmanager
    def no_sync(self):
        """A block in which gradients are not exchanged: they never are, but for what :meth:`register_comm_hook` is given."""
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    @contextlib.contextmanager
    def join(self, divide_by_initial_world_size=True, enable=True, throw_on_early_termination=False):
        """A block in which processes may have different numbers of batches: there is one."""
        yield

    def register_comm_hook(self, state, hook):
        """Call ``hook(state, bucket)`` with the gradients of each backward pass; it returns a future of the vector that takes their place.

        Example::

            >>> net = nn.parallel.DistributedDataParallel(nn.Linear(1, 1, bias=False))
            >>> def halved(state, bucket):
            ...     result = clnn.futures.Future()
            ...     result.set_result(bucket.buffer() / 2)
            ...     return result
            >>> net.register_comm_hook(None, halved)
            >>> net(clnn.ones(1, 1)).sum().backward()
            >>> net.module.weight.grad
            tensor([[0.5000]])
        """
        from ._buckets import Exchange
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        if self._exchange is not None:
            raise RuntimeError("register_comm_hook or register_builtin_comm_hook can only be called once.")
        self._exchange = Exchange(self, state, hook)

    _exchange = None


def data_parallel(module, inputs, device_ids=None, output_device=None, dim=0, module_kwargs=None):
    """Call ``module`` on its own device.

    Example::

        >>> nn.parallel.data_parallel(nn.Flatten(), clnn.ones(1, 2, 2)).shape
        clnn.Size([1, 4])
    """
    return module(*(inputs if isinstance(inputs, tuple) else (inputs,)), **(module_kwargs or {}))


def _parts(value, devices, dim):
    """One value per device: tensors in chunks, what is not a tensor as it is."""
    count = len(devices)
    if isinstance(value, clnn.Tensor):
        return [part.to(device) for part, device in zip(value.chunk(count, dim), devices)]
    if isinstance(value, dict) and value:
        return [type(value)(zip(value, parts)) for parts in zip(*[_parts(v, devices, dim) for v in value.values()])]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return [type(value)(*parts) for parts in zip(*[_parts(v, devices, dim) for v in value])]
    if isinstance(value, (tuple, list)) and value:
        return [type(value)(parts) for parts in zip(*[_parts(v, devices, dim) for v in value])]
    return [value for _ in devices]


def _places(devices):
    """Devices of numbers, names and devices; a number that there is none of means the default device."""
    found = []
    for d in devices:
        try:
            found.append(clnn.device(d))
            found[-1].physical                              # noqa: B018  (raises where there is none)
        except RuntimeError:
            found[-1:] = [clnn.get_default_device()]
    return found


def is_namedtuple(obj) -> bool:
    """Whether ``obj`` is of a class that ``collections.namedtuple`` made."""
    return isinstance(obj, tuple) and hasattr(obj, "_asdict") and hasattr(obj, "_fields")


def scatter(inputs, target_gpus, dim=0):
    """Tensors in chunks along ``dim``, one for each of the devices; other values go to each of them.

    Example::

        >>> [t.shape for t in nn.parallel.scatter(clnn.ones(4, 2), ["cpu", "cpu"])]
        [clnn.Size([2, 2]), clnn.Size([2, 2])]
    """
    return _parts(inputs, _places(target_gpus), dim)


def scatter_kwargs(inputs, kwargs, target_gpus, dim=0):
    """:func:`scatter` for positional and keyword arguments: a tuple of argument tuples and one of dictionaries, equally long."""
    first = scatter(inputs, target_gpus, dim) if inputs else []
    second = scatter(kwargs, target_gpus, dim) if kwargs else []
    first += [()] * (len(second) - len(first))
    second += [{} for _ in range(len(first) - len(second))]
    return tuple(first), tuple(second)


def gather(outputs, target_device, dim=0):
    """Results of several devices as one on ``target_device``: tensors joined along ``dim``, numbers (0-d) as a vector, in nested structures.

    Example::

        >>> nn.parallel.gather([clnn.ones(1), clnn.zeros(1)], "cpu")
        tensor([1., 0.])
    """
    place, = _places([target_device])
    first = outputs[0]
    if isinstance(first, clnn.Tensor):
        return clnn.cat([o.to(place) if o.ndim else o.to(place).reshape(1) for o in outputs], dim if first.ndim else 0)
    if first is None:
        return None
    if isinstance(first, dict):
        if any(len(o) != len(first) for o in outputs):
            raise ValueError("All dicts must have the same number of keys")
        return type(first)((k, gather([o[k] for o in outputs], target_device, dim)) for k in first)
    if hasattr(first, "_fields"):
        return type(first)(*[gather(list(column), target_device, dim) for column in zip(*outputs)])
    return type(first)(gather(list(column), target_device, dim) for column in zip(*outputs))


def replicate(network, devices, detach=False):
    """Copies of a module whose parameters are the module's own, on each of the devices: gradients of all of them add up in it.

    Args:
        detach: the copies' parameters have no history.
    """
    return [_replica(network, device, detach) for device in _places(devices)]


def _replica(module, device, detach):
    copied = copy.copy(module)
    copied.__dict__ = dict(module.__dict__)
    for table in ("_parameters", "_buffers"):
        moved = {n: t if t is None else (t.detach() if detach or table == "_buffers" else t).to(device) for n, t in getattr(module, table).items()}
        copied.__dict__[table] = moved
    copied.__dict__["_modules"] = {n: m if m is None else _replica(m, device, detach) for n, m in module._modules.items()}
    return copied


def parallel_apply(modules, inputs, kwargs_tup=None, devices=None):
    """The results of each module for its inputs, one after the other: devices work on what they were given meanwhile.

    Example::

        >>> nn.parallel.parallel_apply([nn.Identity(), nn.Flatten(0)], [clnn.ones(1), (clnn.ones(1, 2),)])
        [tensor([1.]), tensor([1., 1.])]
    """
    if len(modules) != len(inputs):
        raise AssertionError(f"The number of modules {len(modules)} is not equal to the number of inputs {len(inputs)}")
    kwargs_tup = kwargs_tup or [{}] * len(modules)
    return [m(*(x if isinstance(x, (list, tuple)) else (x,)), **kw) for m, x, kw in zip(modules, inputs, kwargs_tup)]
