"""PyTorch's ``distributed`` functions for a group of one process, so that programs written for many run as they do there with one.

clnn trains in one process; a group of several is refused when it is made.
"""
from __future__ import annotations

import datetime
import enum
import importlib
import os
import types
import typing

import clnn
from clnn.futures import Future
from clnn.nn._buckets import GradBucket  # noqa: F401
from ._several import DeviceMesh, init_device_mesh, install  # noqa: F401
from .store import FileStore, HashStore, PrefixStore, Store, TCPStore  # noqa: F401


class DistError(RuntimeError):
    """What fails among processes."""


class DistBackendError(DistError):
    """What fails in a library of communication."""


class DistNetworkError(DistError):
    """What fails in the network."""


class DistStoreError(DistError):
    """What fails in a store of keys."""


default_pg_timeout = datetime.timedelta(minutes=30)
_backend = None


class ReduceOp(enum.Enum):
    """What is done with the values of all processes."""

    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM, UNUSED = range(10)


ReduceOp.RedOpType = ReduceOp


class Backend(str):
    """The name of a backend."""

    GLOO, NCCL, MPI, UCC, XCCL, UNDEFINED = "gloo", "nccl", "mpi", "ucc", "xccl", "undefined"
    backend_list = [UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI]
    default_device_backend_map = {"cpu": GLOO, "cuda": NCCL, "gpu": NCCL, "xpu": XCCL, "mps": GLOO}

    def __new__(cls, name):
        if not isinstance(name, str):
            raise ValueError("Backend constructor parameter must be string-ish")
        return str.__new__(cls, name.lower())


class ProcessGroup:
    """The group of this one process."""

    def rank(self):
        """0."""
        return 0

    def size(self):
        """1."""
        return 1


class Work:
    """An operation that is complete, with its result."""

    def __init__(self, *result):
        self._result = list(result)

    def result(self):
        """A list of what it gave."""
        return self._result

    def get_future(self):
        """A future that has :meth:`result`."""
        future = Future()
        future.set_result(self._result)
        return future

    def wait(self, timeout=None):
        """True."""
        return True

    def is_completed(self):
        """True."""
        return True


group = types.SimpleNamespace(WORLD=ProcessGroup(), NON_GROUP_MEMBER=-100)
GroupMember = group


def is_available() -> bool:
    """True: groups of one process can be made."""
    return True


def is_initialized() -> bool:
    """Whether :func:`init_process_group` was called."""
    return _backend is not None


def _no():
    """False: there is no such library behind clnn."""
    return False


is_nccl_available = is_mpi_available = is_ucc_available = is_xccl_available = is_torchelastic_launched = _no
is_gloo_available = is_available


def init_process_group(backend=None, init_method=None, timeout=None, world_size=-1, rank=-1, store=None, group_name="", pg_options=None,
                       device_id=None):
    """Make the group of this process.

    Raises:
        RuntimeError: ``world_size``, or the environment's ``WORLD_SIZE``, is not 1.

    Example:
        >>> clnn.distributed.init_process_group("gloo", rank=0, world_size=1)
        >>> clnn.distributed.get_world_size()
        1
        >>> clnn.distributed.destroy_process_group()
    """
    global _backend
    if is_initialized():
        raise ValueError("trying to initialize the default process group twice!")
    size = world_size if world_size > 0 else int(os.environ.get("WORLD_SIZE", 1))
    if size != 1:
        raise RuntimeError(f"distributed.init_process_group: clnn trains in one process, got world_size={size}; start the program once, without "
                           "torchrun, and use a larger batch or gradient accumulation instead")
    name = Backend(backend or "gloo")
    for part in name.split(","):
        kind = part.rpartition(":")[2]
        if kind not in (*Backend.backend_list[1:], "fake"):
            raise AssertionError(f"Unknown backend type {kind}")
    _backend = str(name)


def destroy_process_group(group=None):
    """Undo :func:`init_process_group`."""
    global _backend
    _backend = None


def _initialized():
    if not is_initialized():
        raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")


def get_rank(group=None) -> int:
    """0."""
    _initialized()
    return 0


def get_world_size(group=None) -> int:
    """1."""
    _initialized()
    return 1


def get_backend(group=None) -> str:
    """The name that was given."""
    _initialized()
    return _backend


def new_group(ranks=None, timeout=None, backend=None, pg_options=None, use_local_synchronization=False, group_desc=None, device_id=None, sort_ranks=True):
    """The one group."""
    _initialized()
    return group.WORLD


def get_process_group_ranks(group=None) -> list:
    """``[0]``."""
    _initialized()
    return [0]


def get_group_rank(group, global_rank) -> int:
    """0."""
    return 0


def get_global_rank(group, group_rank) -> int:
    """0."""
    return 0


def get_node_local_rank(fallback_rank=None) -> int:
    """0."""
    return int(os.environ.get("LOCAL_RANK", 0))


def _rank_not_in_group(group):
    return group is GroupMember.NON_GROUP_MEMBER


def _get_default_group():
    _initialized()
    return group.WORLD


def _done(async_op, *result):
    _initialized()
    return Work(*result) if async_op else None


def barrier(group=None, async_op=False, device_ids=None, timeout=None):
    """Wait for all processes: there is no other."""
    return _done(async_op)


def all_reduce(tensor, op=ReduceOp.SUM, group=None, async_op=False):
    """The sum over one process: ``tensor`` stays as it is.

    Example:
        >>> clnn.distributed.init_process_group("gloo", rank=0, world_size=1)
        >>> x = clnn.ones(2)
        >>> clnn.distributed.all_reduce(x)
        >>> x
        tensor([1., 1.])
        >>> clnn.distributed.destroy_process_group()
    """
    return _done(async_op, tensor)


def reduce(tensor, dst=None, op=ReduceOp.SUM, group=None, async_op=False, group_dst=None):
    """The sum over one process: ``tensor`` stays as it is."""
    return _done(async_op)


def broadcast(tensor, src=None, group=None, async_op=False, group_src=None):
    """``tensor`` stays as it is."""
    return _done(async_op)


def _deliver(targets, tensors):
    with clnn.no_grad():
        for target, tensor in zip(targets, tensors):
            target.copy_(tensor)


def all_gather(tensor_list, tensor, group=None, async_op=False):
    """Copy ``tensor`` into ``tensor_list[0]``."""
    _deliver(tensor_list, [tensor])
    return _done(async_op)


def gather(tensor, gather_list=None, dst=None, group=None, async_op=False, group_dst=None):
    """Copy ``tensor`` into ``gather_list[0]``."""
    _deliver(gather_list or [], [tensor])
    return _done(async_op)


def scatter(tensor, scatter_list=None, src=None, group=None, async_op=False, group_src=None):
    """Copy ``scatter_list[0]`` into ``tensor``."""
    _deliver([tensor], scatter_list or [])
    return _done(async_op)


def reduce_scatter(output, input_list, op=ReduceOp.SUM, group=None, async_op=False):
    """Copy ``input_list[0]`` into ``output``."""
    _deliver([output], input_list)
    return _done(async_op)


def all_gather_into_tensor(output_tensor, input_tensor, group=None, async_op=False):
    """Copy ``input_tensor`` into ``output_tensor``."""
    _deliver([output_tensor], [input_tensor.reshape(output_tensor.shape)])
    return _done(async_op)


def reduce_scatter_tensor(output, input, op=ReduceOp.SUM, group=None, async_op=False):
    """Copy ``input`` into ``output``."""
    return all_gather_into_tensor(output, input, group, async_op)


def all_gather_object(object_list, obj, group=None):
    """Put ``obj`` into ``object_list[0]``."""
    _initialized()
    object_list[0] = obj


def gather_object(obj, object_gather_list=None, dst=None, group=None, group_dst=None):
    """Put ``obj`` into ``object_gather_list[0]``."""
    _initialized()
    if object_gather_list:
        object_gather_list[0] = obj


def broadcast_object_list(object_list, src=None, group=None, device=None, group_src=None):
    """``object_list`` stays as it is."""
    _initialized()


def all_to_all(output_tensor_list, input_tensor_list, group=None, async_op=False):
    """Copy ``input_tensor_list[0]`` into ``output_tensor_list[0]``."""
    _deliver(output_tensor_list, input_tensor_list)
    return _done(async_op)


def all_to_all_single(output, input, output_split_sizes=None, input_split_sizes=None, group=None, async_op=False):      # noqa: A002
    """Copy ``input`` into ``output``."""
    _deliver([output], [input])
    return _done(async_op)


def monitored_barrier(group=None, timeout=None, wait_all_ranks=False):
    """Wait for all processes: there is no other."""
    _initialized()


def scatter_object_list(scatter_object_output_list, scatter_object_input_list=None, src=None, group=None, group_src=None):
    """Put the first input object into the output list."""
    _initialized()
    scatter_object_output_list[0] = scatter_object_input_list[0]


def _alone():
    raise RuntimeError("distributed: clnn trains in one process, there is no other to send to or receive from")


def send(tensor, dst=None, group=None, tag=0, group_dst=None):
    """Raises: there is no other process."""
    _alone()


def recv(tensor, src=None, group=None, tag=0, group_src=None):
    """Raises: there is no other process."""
    _alone()


def send_object_list(object_list, dst=None, group=None, device=None, group_dst=None, use_batch=False):
    """Raises: there is no other process."""
    _alone()


def recv_object_list(object_list, src=None, group=None, device=None, group_src=None, use_batch=False):
    """Raises: there is no other process."""
    _alone()


isend, irecv = send, recv


class P2POp(typing.NamedTuple):
    """One of the operations that :func:`batch_isend_irecv` takes: ``isend`` or ``irecv``, of a tensor and another process."""

    op: typing.Callable
    tensor: typing.Any
    peer: int | None = None
    group: typing.Any = None
    tag: int = 0
    group_peer: int | None = None


def batch_isend_irecv(p2p_op_list):
    """All operations of a list, which raise: there is no other process."""
    return [p2p.op(p2p.tensor, p2p.peer, p2p.group, p2p.tag) for p2p in p2p_op_list]


def new_subgroups(group_size=None, group=None, timeout=None, backend=None, pg_options=None, group_desc=None):
    """(the one group, the list of all groups)."""
    return new_group(), [new_group()]


def is_backend_available(backend) -> bool:
    """Whether it is gloo, by whose rules the group of one process works."""
    return backend.lower() == "gloo"


install(__name__)


def __getattr__(name):
    if name in ("algorithms", "autograd", "constants", "device_mesh", "distributed_c10d", "nn", "optim", "rpc"):
        return importlib.import_module("." + name, __name__)
    raise AttributeError(f"module 'clnn.distributed' has no attribute {name!r}")
