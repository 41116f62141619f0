"""``python -m clnn run``: programs written for PyTorch, unchanged."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

from clnn import doctor, run
from clnn.runtime import icd

ROOT = Path(__file__).resolve().parent.parent


def test_run_takes_the_place_of_torch(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("import sys, torch\nimport torch.nn as nn\nprint(torch.__version__ != '', sys.argv[1:], nn.ReLU()(torch.tensor([-1.0, 2.0])).tolist())\n"
                       "assert sys.modules['torch.nn.init'] is nn.init\nsys.exit(3)\n")
    for how, where in ((["program.py"], tmp_path), ([str(program)], None), (["-m", "program"], tmp_path)):
        done = subprocess.run([sys.executable, "-m", "clnn", "run", *how, "a"], cwd=where, capture_output=True, text=True,
                              env={**os.environ, "PYTHONPATH": str(ROOT)})
        assert (done.returncode, done.stdout) == (3, "True ['a'] [0.0, 2.0]\n"), done.stderr
    assert doctor.main(["--chached"]) == 2
    assert run.main(["nowhere.py"]) == run.main([]) == 2 and run.main(["--help"]) == 0
    code = "from clnn import run; print([run.main(['-m', name]) for name in ('nowhere', 'nowhere.sub')])"     # not here: torch is clnn from then on
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.stdout == "[2, 2]\n" and "there is no module 'nowhere.sub' to run" in done.stderr


def test_programs_know_their_file(tmp_path):
    """``__file__`` and warnings have the whole path, ``sys.argv[0]`` what was typed, as with python itself; classes of the program are found by pickle."""
    program = tmp_path / "p.py"
    program.write_text("import pickle, sys, warnings\nclass C: pass\n"
                       "print(__file__, sys.argv, __name__, type(pickle.loads(pickle.dumps(C()))) is C)\nwarnings.warn('w')\n")
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    outcomes = [subprocess.run([sys.executable, *how, "p.py", "a"], cwd=tmp_path, capture_output=True, text=True, env=env)
                for how in ([], ["-m", "clnn", "run"])]
    assert outcomes[0].stdout == outcomes[1].stdout and outcomes[0].stderr == outcomes[1].stderr


def test_kinds_go_by_pytorchs_names(tmp_path):
    """Also where the program imports nothing below torch; and its children that are started afresh import clnn as torch too."""
    program = tmp_path / "p.py"
    program.write_text("import torch\ndef show(rank, x, size): print(rank, x, size, type(x), torch.__version__.endswith('clnn'))\n"
                       "class Own(torch.Tensor): pass\n"
                       "if __name__ == '__main__':\n    x = torch.ones(2)\n    p = torch.nn.Parameter(x)\n"
                       "    print(*map(type, (x, p, x.as_subclass(Own), x.shape, x.dtype, x.device, (p * 2).grad_fn)), flush=True)\n"
                       "    torch.multiprocessing.spawn(show, (x, x.shape), nprocs=1)\n")
    done = subprocess.run([sys.executable, "-m", "clnn", "run", str(program)], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    names = "torch.Tensor torch.nn.parameter.Parameter __main__.Own torch.Size torch.dtype torch.device MulBackward0".split()
    assert done.stdout == " ".join(f"<class '{n}'>" for n in names) + "\n0 tensor([1., 1.]) torch.Size([2]) <class 'torch.Tensor'> True\n", done.stderr


def test_functorch_is_there(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("""
import torch
from functorch import combine_state_for_ensemble, make_functional, make_functional_with_buffers, vmap
import functorch
net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2)).eval()
f, params, buffers = make_functional_with_buffers(net)
x = torch.ones(3, 2)
assert torch.equal(f(params, buffers, x), net(x)) and params[0].requires_grad and functorch.vmap(torch.neg)(x).equal(-x)
g, weights = make_functional(net[0], disable_autograd_tracking=True)
assert torch.equal(g([w * 2 for w in weights], x), net[0](x) * 2) and not weights[0].requires_grad
h, params, buffers = combine_state_for_ensemble([net, net])
assert torch.allclose(vmap(h, (0, 0, None))(params, buffers, x), net(x).expand(2, 3, 2))
""")
    done = subprocess.run([sys.executable, "-m", "clnn", "run", str(program)], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stderr


def test_maps_over_containers(tmp_path):
    """A container of tensors brings its own functions to take itself apart, as ``tensordict`` does."""
    program = tmp_path / "program.py"
    program.write_text("""
import torch
import torch._functorch.vmap as place
from torch._functorch.vmap import _add_batch_dim, _maybe_remove_batch_dim, tree_flatten, tree_unflatten

class Box:
    def __init__(self, tensor):
        self.tensor = tensor

    def _add_batch_dim(self, dim, level):
        return Box(_add_batch_dim(self.tensor, dim, level))

def flat(tree):
    return tree_flatten(tree, is_leaf=lambda x: isinstance(x, Box))

def inputs(in_dims, args, func):
    leaves, spec = flat(args)
    dims = place._broadcast_to_and_flatten(in_dims, spec)
    return next(getattr(x, "tensor", x).size(d) for x, d in zip(leaves, dims) if d is not None), dims, leaves, spec

def create(dims, leaves, level, spec):
    return tree_unflatten([x if d is None else x._add_batch_dim(d, level) if isinstance(x, Box) else _add_batch_dim(x, d, level)
                           for x, d in zip(leaves, dims)], spec)

place._process_batched_inputs, place._create_batched_inputs = inputs, create
place._unwrap_batched = lambda out, dim, level, size, func: Box(_maybe_remove_batch_dim("f", out.tensor, level, size, dim))
x = torch.arange(6.0).view(2, 3)
got = torch.vmap(lambda b, y: Box(torch.dot(b.tensor, y)), (0, None))(Box(x), torch.ones(3))
assert got.tensor.tolist() == [3, 12], got.tensor
assert torch.func.vmap(torch.dot)(x, x).tolist() == [5, 50]
""")
    done = subprocess.run([sys.executable, "-m", "clnn", "run", str(program)], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stderr


def test_names_of_parts(tmp_path):
    """Where programs and libraries import PyTorch's parts from."""
    program = tmp_path / "program.py"
    program.write_text("""
import torch
import torch.monitor, torch.mtia
from functorch.experimental.control_flow import cond
from torch import classes
from torch._C import Generator
from torch._C._distributed_c10d import ProcessGroup
from torch._lobpcg import lobpcg
from torch._tensor import Tensor
from torch.autograd.function import NestedIOFunction
from torch.backends.cuda import SDPBackend, sdp_kernel
from torch.cuda.comm import broadcast_coalesced
from torch.cuda.graphs import CUDAGraph
from torch.distributed._tensor import DeviceMesh
from torch.distributed.optim.zero_redundancy_optimizer import ZeroRedundancyOptimizer
from torch.export.dynamic_shapes import dims
from torch.export.unflatten import unflatten
from torch.multiprocessing.pool import Pool
from torch.multiprocessing.queue import SimpleQueue
from torch.multiprocessing.reductions import ForkingPickler, reduce_tensor
from torch.multiprocessing.spawn import ProcessRaisedException
from torch.nn.modules.conv import _LazyConvXdMixin
from torch.nn.modules.module import _global_forward_hooks
from torch.nn.parallel._functions import Broadcast, ReduceAddCoalesced
from torch.optim.lr_scheduler import _enable_get_lr_call
from torch.utils.checkpoint import CheckpointFunction
from torch.utils.data._utils import ExceptionWrapper, collate
from torch.utils.data._utils.fetch import _MapDatasetFetcher
from torch.utils.data.dataloader import _worker_init_fn_t
from torch.utils.mobile_optimizer import optimize_for_mobile
assert Generator is torch.Generator and callable(torch.multiprocessing.spawn) and collate.default_collate([1]).tolist() == [1]
make, args = reduce_tensor(torch.ones(2))
assert make(*args).tolist() == [1, 1] and isinstance(torch.nn.LazyConv1d(1, 1), _LazyConvXdMixin)
assert _MapDatasetFetcher([5, 6], True, list, False).fetch([1, 0]) == [6, 5]
x = torch.ones(2, requires_grad=True)
CheckpointFunction.apply(lambda t: t * t, True, x).sum().backward()
assert x.grad.tolist() == [2, 2]
try:
    classes.shop.Cart
except RuntimeError as exc:
    assert "shop.Cart" in str(exc)
class Halves(torch.optim.lr_scheduler.LRScheduler):
    def step(self, epoch=None):
        self.last_epoch += 1
        with _enable_get_lr_call(self):
            for group, lr in zip(self.optimizer.param_groups, self.get_lr()):
                group["lr"] = lr
    def get_lr(self):
        assert self._get_lr_called_within_step
        return [base * 0.5 ** self.last_epoch for base in self.base_lrs]
optimizer = torch.optim.SGD([x], 1.0)
Halves(optimizer).step()
assert optimizer.param_groups[0]["lr"] == 0.5
""")
    done = subprocess.run([sys.executable, "-m", "clnn", "run", str(program)], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="vendors folders are Linux's")
def test_driver_entries_survive_a_bad_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CLNN_CACHE_DIR", str(tmp_path))
    for name in ("OCL_ICD_VENDORS", "CLNN_VENDORS"):
        monkeypatch.setenv(name, "")                # set again when the test ends
    monkeypatch.setattr(icd, "icd_files", lambda: {"a.icd": "/nowhere/liba.so"})
    entry = icd.prepare() / "a.icd"
    entry.write_bytes(b"\x85damaged")
    assert icd.prepare() == entry.parent and entry.read_text() == "/nowhere/liba.so\n"
    entry.unlink()
    filled, tries = icd._filled, []

    def full(folder, files):
        tries.append(folder)
        if len(tries) == 1:
            raise OSError(28, "No space left on device")
        return filled(folder, files)
    monkeypatch.setattr(icd, "_filled", full)
    assert (icd.prepare() / "a.icd").is_file() and icd.prepare(only="a.icd") == entry.parent
