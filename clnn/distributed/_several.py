"""The packages of ``torch.distributed`` that divide tensors and modules among processes: their names, for programs that ask whether a tensor is divided.

Nothing is an instance of a class that stands for a divided thing, and making one raises. What describes a division (placements, a mesh of one device) is real.
"""
from __future__ import annotations

import dataclasses
import sys
import types

import clnn
from clnn.distributed._hooks import HOOKS

_PARALLEL = "ColwiseParallel RowwiseParallel SequenceParallel ParallelStyle PrepareModuleInput PrepareModuleInputOutput PrepareModuleOutput loss_parallel"
_STATES = "StateDictConfig FullStateDictConfig LocalStateDictConfig ShardedStateDictConfig"
_API = (f"BackwardPrefetch CPUOffload MixedPrecision ShardingStrategy StateDictSettings StateDictType {_STATES} "
        + " ".join("Optim" + name for name in _STATES.split()).replace("OptimFull", "FullOptim").replace("OptimLocal", "LocalOptim").replace(
            "OptimSharded", "ShardedOptim"))
_SHARD = "CPUOffloadPolicy MixedPrecisionPolicy OffloadPolicy FSDPModule fully_shard register_fsdp_forward_method"
_STATE = ("StateDictOptions get_model_state_dict get_optimizer_state_dict get_state_dict set_model_state_dict set_optimizer_state_dict set_state_dict")
_PACKAGES = {               # module -> the names in it that need several processes
    "tensor": "DTensor distribute_tensor distribute_module",
    "tensor.placement_types": "",
    "tensor._utils": "compute_local_shape_and_global_offset",
    "tensor.parallel": _PARALLEL + " parallelize_module",
    "tensor.experimental": "implicit_replication local_map",
    "_tensor": "DTensor distribute_tensor distribute_module",
    "_tensor.experimental": "implicit_replication local_map",
    "device_mesh": "",
    "fsdp": f"FullyShardedDataParallel OptimStateKeyType {_API} {_SHARD}",
    "fsdp.api": _API,
    "fsdp.wrap": "always_wrap_policy lambda_auto_wrap_policy transformer_auto_wrap_policy size_based_auto_wrap_policy enable_wrap wrap CustomPolicy "
                 "ModuleWrapPolicy",
    "fsdp.fully_sharded_data_parallel": f"FullyShardedDataParallel OptimStateKeyType {_API}",
    "fsdp.sharded_grad_scaler": "ShardedGradScaler",
    "_composable": "replicate",
    "_composable.fsdp": _SHARD,
    "checkpoint": "DefaultLoadPlanner DefaultSavePlanner FileSystemReader FileSystemWriter HuggingFaceStorageReader HuggingFaceStorageWriter LoadPlanner "
                  "SavePlanner StorageReader StorageWriter async_save load load_state_dict save save_state_dict",
    "checkpoint.state_dict": _STATE,
    "checkpoint.default_planner": "DefaultLoadPlanner DefaultSavePlanner",
    "checkpoint.hf_storage": "HuggingFaceStorageReader HuggingFaceStorageWriter",
    "_functional_collectives": "AsyncCollectiveTensor all_gather_tensor all_gather_tensor_autograd all_reduce all_to_all_single all_to_all_single_autograd "
                               "broadcast reduce_scatter_tensor reduce_scatter_tensor_autograd wait_tensor",
    "algorithms": "",
    "algorithms.join": "",
    "algorithms._checkpoint": "",
    "algorithms.ddp_comm_hooks": "",
    "algorithms.ddp_comm_hooks.default_hooks": "",
    "algorithms.ddp_comm_hooks.powerSGD_hook": "PowerSGDState batched_powerSGD_hook powerSGD_hook",
    "algorithms.ddp_comm_hooks.ddp_zero_hook": "hook_with_zero_step hook_with_zero_step_interleaved",
    "algorithms.ddp_comm_hooks.debugging_hooks": "",
    "algorithms.ddp_comm_hooks.post_localSGD_hook": "PostLocalSGDState post_localSGD_hook",
    "algorithms.ddp_comm_hooks.quantization_hooks": "quantization_perchannel_hook quantization_pertensor_hook",
    "algorithms.model_averaging": "",
    "algorithms.model_averaging.averagers": "ModelAverager PeriodicModelAverager",
    "algorithms.model_averaging.hierarchical_model_averager": "HierarchicalModelAverager",
    "elastic": "",
    "elastic.multiprocessing": "",
    "elastic.multiprocessing.errors": "",
    "pipelining": "Pipe PipelineStage Schedule1F1B ScheduleGPipe SplitPoint pipe_split pipeline",
}


class Placement:
    """How a tensor lies on the devices of a mesh."""

    def is_shard(self, dim=None):
        """Whether each device holds a part along a dimension, or along ``dim``."""
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self):
        """Whether each device holds all of it."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op=None):
        """Whether the devices hold terms of a sum, or of what ``reduce_op`` names."""
        return isinstance(self, Partial) and reduce_op in (None, self.reduce_op)


@dataclasses.dataclass(frozen=True)
class Shard(Placement):
    """Parts along dimension ``dim``."""

    dim: int


@dataclasses.dataclass(frozen=True)
class _StridedShard(Shard):
    split_factor: int = dataclasses.field(kw_only=True)


@dataclasses.dataclass(frozen=True)
class Replicate(Placement):
    """The whole tensor everywhere."""


@dataclasses.dataclass(frozen=True)
class Partial(Placement):
    """Terms that ``reduce_op`` puts together."""

    reduce_op: str = "sum"


class DeviceMesh:
    """The mesh of this process's one device.

    Args:
        device_type: its kind.
        mesh: zero, in brackets of as many levels as there are dimensions.
        mesh_dim_names: names of the dimensions.

    Raises:
        RuntimeError: there are more devices.

    Example::

        >>> mesh = clnn.distributed.init_device_mesh("cpu", (1, 1), mesh_dim_names=("data", "model"))
        >>> mesh.size(), mesh["data"].ndim
        (1, 1)
    """

    def __init__(self, device_type, mesh, *, mesh_dim_names=None):
        self.device_type, self.mesh, self.mesh_dim_names = device_type, clnn.as_tensor(mesh, device="cpu"), mesh_dim_names
        if self.mesh.numel() != 1:
            raise RuntimeError(f"distributed: clnn trains in one process, got a mesh of shape {tuple(self.mesh.shape)}")
        self.shape, self.ndim = tuple(self.mesh.shape), self.mesh.ndim

    def __repr__(self):
        return f"DeviceMesh({self.device_type!r}, {self.mesh.tolist()}, mesh_dim_names={self.mesh_dim_names})"

    def __getitem__(self, names):
        names = (names,) if isinstance(names, str) else tuple(names)
        unknown = [n for n in names if n not in (self.mesh_dim_names or ())]
        if unknown:
            raise KeyError(f"Invalid mesh_dim_name {unknown[0]!r} specified. Valid mesh_dim_names are {self.mesh_dim_names}.")
        return DeviceMesh(self.device_type, self.mesh.reshape((1,) * len(names)), mesh_dim_names=names)

    def size(self, mesh_dim=None):
        """1."""
        return 1

    def get_rank(self):
        """0."""
        return 0

    def get_local_rank(self, mesh_dim=None):
        """0."""
        return 0

    def get_coordinate(self):
        """Zeros, one for each dimension."""
        return [0] * self.ndim

    def get_group(self, mesh_dim=None):
        """The one group."""
        return clnn.distributed.group.WORLD

    def get_all_groups(self):
        """The one group, for each dimension."""
        return [self.get_group()] * self.ndim


def init_device_mesh(device_type, mesh_shape, *, mesh_dim_names=None, backend_override=None):
    """The :class:`DeviceMesh` of shape ``mesh_shape``, which has to be all ones."""
    return DeviceMesh(device_type, clnn.arange(max(1, clnn.Size(mesh_shape).numel()), device="cpu").reshape(tuple(mesh_shape)), mesh_dim_names=mesh_dim_names)


class Join:
    """A block in which processes with fewer inputs wait for the others: there is no other.

    Args:
        joinables: modules and optimizers that take part; accepted, as all else.
    """

    def __init__(self, joinables, enable=True, throw_on_early_termination=False, **kwargs):
        self.joinables = joinables

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        pass

    @staticmethod
    def notify_join_context(joinable):
        """Nothing to wait for."""


class Joinable:
    """The base class of what takes part in :class:`Join`."""


class JoinHook:
    """What :class:`Join` calls in processes that have ended."""

    def main_hook(self):
        """Nothing."""

    def post_hook(self, is_last_joiner):
        """Nothing."""


class ChildFailedError(Exception):
    """A category that programs catch; never raised here."""


def record(fn, error_handler=None):
    """``fn`` itself: the failure of another process cannot happen."""
    return fn


class _Divided(type):
    """Classes of what clnn never divides."""

    def __call__(cls, *args, **kwargs):
        raise RuntimeError(f"distributed: {cls.__name__} divides its work among processes, and clnn trains in one process")

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return f"{cls.__name__}.{name}"


_names: dict = {}


def _divided(name):
    if name not in _names:
        _names[name] = _Divided(name, (), {"__doc__": "A name only: clnn trains in one process."})
    return _names[name]


_REAL = {name: dict(Placement=Placement, Shard=Shard, Replicate=Replicate, Partial=Partial) for name in ("tensor", "tensor.placement_types", "_tensor")}
_REAL["tensor.placement_types"]["_StridedShard"] = _StridedShard
_REAL["_tensor"].update(DeviceMesh=DeviceMesh)
_REAL["device_mesh"] = dict(DeviceMesh=DeviceMesh, init_device_mesh=init_device_mesh)
_REAL["algorithms"] = _REAL["algorithms.join"] = dict(Join=Join, Joinable=Joinable, JoinHook=JoinHook)
_REAL["algorithms.ddp_comm_hooks.default_hooks"] = {n: f for n, f in HOOKS.items() if n != "noop_hook"}
_REAL["algorithms.ddp_comm_hooks.debugging_hooks"] = {"noop_hook": HOOKS["noop_hook"]}
_REAL["elastic.multiprocessing.errors"] = dict(record=record, ChildFailedError=ChildFailedError)


def install(package):
    """Put the modules below ``package`` where imports find them, and in the name space of their parents."""
    for path, names in _PACKAGES.items():
        module = types.ModuleType(f"{package}.{path}", "Names of what divides work among processes.")
        module.__path__ = []
        vars(module).update({n: _divided(n) for n in names.split()}, **_REAL.get(path, {}))
        sys.modules[module.__name__] = module
        parent, _, own = module.__name__.rpartition(".")
        setattr(sys.modules[parent], own, module)
