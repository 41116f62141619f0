"""Small programs around training: files, compiled modules, steps that are differentiated, samples of all kinds, what is asked of a library's modes.

Each runs with both libraries and must give the same results."""
import collections
import copy
import io

import numpy as np
import pytest
from test_programs import Library, flat, same_start

pytest.importorskip("torch")


def counters_of_own_optimizers(lib):
    """What a program's own optimizer counts with comes back from a checkpoint as what it was: a number, or a tensor that it adds to in place."""
    torch = lib.torch

    class Counting(torch.optim.Optimizer):
        def __init__(self, params, first):
            super().__init__(params, {})
            self.first = first

        def step(self):
            for p in self.param_groups[0]["params"]:
                step = self.state[p].setdefault("step", self.first)
                step += 1
                if isinstance(self.first, int):
                    self.state[p]["step"] = step

    p, found = torch.nn.Parameter(torch.ones(2)), []
    for first in (0, torch.tensor(0.0)):
        old, new = Counting([p], first), Counting([p], first)
        old.step()
        new.load_state_dict(copy.deepcopy(old.state_dict()))
        new.step()
        found.append((type(new.state[p]["step"]).__name__, float(new.state[p]["step"])))
    return found


def counters(lib):
    """Counters of optimizers are tensors: a program may keep them, add to them, look through views, and finds them again in states and copies."""
    torch, found = lib.torch, []
    for kind in ("Adam", "NAdam", "ASGD", "Adagrad", "Adafactor"):
        p = torch.nn.Parameter(torch.ones(2))
        opt = getattr(torch.optim, kind)([p])
        p.grad = torch.ones(2)
        opt.step()
        step, saved = opt.state[p]["step"], opt.state_dict()
        view = step.view(1)
        opt.step()
        step += 3
        opt.step()
        opt.state[p]["step"] += 1
        again = copy.deepcopy(opt)
        opt.step()
        file = io.BytesIO()
        torch.save(saved, file)
        file.seek(0)
        loaded = torch.load(file)["state"][0]
        found += [type(step) is torch.Tensor, step is opt.state[p]["step"] is saved["state"][0]["step"], step, view, step._version,
                  str(again.state_dict()["state"][0]["step"]), p.detach(), [loaded[k] for k in ("step", "mu_product", "eta", "mu") if k in loaded]]
        step.fill_(1)
        opt.load_state_dict(opt.state_dict())
        opt.step()
        found += [view, p.detach()]
    return found


def whole_files(lib):
    """A whole module goes through a file by the names of its classes."""
    torch, nn = lib.torch, lib.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(2, 2)
            self.cfg = {"k": 1}

        def forward(self, x):
            return self.fc(x)
    Net.__qualname__ = "Net"
    globals()["Net"] = Net                      # a file names a class by its module
    net, file = same_start(lib, Net()), io.BytesIO()
    torch.save(net, file)
    file.seek(0)
    with torch.serialization.safe_globals([Net, nn.Linear]):
        kinds = sorted(kind.__name__ for kind in torch.serialization.get_safe_globals() if kind.__module__ in (__name__, nn.Linear.__module__))
        got = torch.load(file)
        file.seek(0)
        kinds += torch.serialization.get_unsafe_globals_in_checkpoint(file)
    file.seek(0)
    kinds += torch.serialization.get_unsafe_globals_in_checkpoint(file)
    return [sorted(kinds), type(got).__name__, got.cfg, got(torch.ones(1, 2))]


def scripted_files(lib):
    """A scripted module is saved, loaded and frozen."""
    torch, nn = lib.torch, lib.nn
    net, file = torch.jit.script(same_start(lib, nn.Sequential(nn.Linear(2, 3), nn.ReLU()))), io.BytesIO()
    torch.jit.save(net, file)
    file.seek(0)
    got = torch.jit.load(file)
    out = [got(torch.ones(1, 2)), list(got.state_dict()), torch.jit.fork(lambda a: a + 1, torch.ones(1)).wait()]
    try:
        torch.jit.freeze(got.train())
    except RuntimeError as exc:
        out.append(str(exc)[:50])
    return [*out, torch.jit.freeze(got.eval())(torch.ones(1, 2)).detach(), torch.jit.Attribute(3, int)[0]]


def compiled_modules(lib):
    """What a program keeps in a compiled module is kept in the module."""
    torch, nn = lib.torch, lib.nn
    net = same_start(lib, nn.Linear(2, 2))
    fast = torch.compile(net, backend="eager")
    fast.note = 3
    out = [net.note, fast.note, list(fast.state_dict()), type(copy.deepcopy(fast)).__name__]
    del fast.note
    fast.eval()
    out += [hasattr(net, "note"), net.training, torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))]
    try:
        torch.compile(3)
    except AssertionError as exc:
        out.append(str(exc))
    return out


def hypergradients(lib):
    """The gradient of a loss after steps of an optimizer, with respect to its learning rate and weight decay."""
    torch, optim = lib.torch, lib.optim
    out = []
    for kind in (optim.SGD, optim.Adam, optim.RAdam):
        lr, decay = torch.tensor(0.1, requires_grad=True), torch.tensor(0.01, requires_grad=True)
        start = torch.tensor([1.0, 2.0], requires_grad=True)
        p = start.clone()
        step = kind([torch.zeros(1, requires_grad=True)], lr=lr if kind in (optim.SGD, optim.Adam) else 0.1, differentiable=True)
        step.param_groups[0].update(params=[p], lr=lr, weight_decay=decay if kind is optim.SGD else 0.01)
        for _ in range(2):
            p.grad = start * 3
            step.step()
        wanted = [lr, decay] if kind is optim.SGD else [lr]
        out += [*torch.autograd.grad((p ** 2).sum(), wanted), p]
    schedule = optim.lr_scheduler.ExponentialLR(optim.Adam([torch.ones(1, requires_grad=True)], lr=torch.tensor(0.5)), 0.5)
    schedule.optimizer.step()
    schedule.step()
    return [*out, schedule.get_last_lr()[0].numpy()]


def modes(lib):
    """What a program asks about modes; values that must not get lost under the device meta; refused values."""
    torch = lib.torch
    out = [torch.is_autocast_cache_enabled(), torch.get_deterministic_debug_mode()]
    with torch.autocast("cpu", dtype=torch.bfloat16, cache_enabled=False):
        out.append(torch.is_autocast_cache_enabled())
    for mode in ("warn", 2, "default"):
        torch.set_deterministic_debug_mode(mode)
        out.append(torch.get_deterministic_debug_mode())
    with torch.device("meta"):
        out.append(torch.from_numpy(np.arange(3.0)).tolist())
    timer = lib.module("utils.benchmark").Timer("y = x + torch.ones(2)", "x = torch.ones(2)")
    out.append(timer.timeit(2).number_per_run)
    for call in (lambda: torch.tensor([None]), lambda: torch.tensor([1, "a"]), lambda: torch.tensor({1: 2}), lambda: torch.rand(2, generator=3),
                 lambda: torch.set_deterministic_debug_mode(7)):
        try:
            call()
        except (RuntimeError, TypeError) as exc:
            out.append(type(exc).__name__)
    return out


def nested_samples(lib):
    """Samples in containers that have more than their entries."""
    data = lib.torch.utils.data
    got = data.default_collate([collections.defaultdict(list, a=1, b=[2.0])] * 2)
    loader = data.DataLoader([{"x": np.float32(i), "y": (i, str(i))} for i in range(3)], batch_size=2)
    return [type(got).__name__, got["a"], got["missing"], [(b["x"], b["y"]) for b in loader]]


PROGRAMS = [counters_of_own_optimizers, counters, whole_files, scripted_files, compiled_modules, hypergradients, modes, nested_samples]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_both_libraries_agree(program):
    ours, theirs = flat(program(Library("clnn"))), flat(program(Library("torch")))
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs):
        np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-4) if isinstance(b, (float, np.ndarray)) else np.testing.assert_equal(a, b)


def test_cases_of_unit_tests():
    """Classes of tests in the way of PyTorch's own: what they are called, which pass, and how the others fail."""
    import unittest

    from clnn.testing import _unit as ours
    pytest.importorskip("expecttest")           # PyTorch's module imports it, but does not ask for it
    from torch.testing._internal import common_device_type, common_utils

    def outcome(lib, common, devices):
        class Cases(common.TestCase):
            @common.parametrize("n", [1, 2])
            @common.parametrize("f,k", [common.subtest((lib.sin, 1), name="sin"), (lib.cos, 2.5)])
            def test_pairs(self, n, f, k):
                self.assertEqual(f(lib.ones(n)) * k, f(lib.ones(n)) * k)

            def test_equal(self):
                x = lib.ones(2)
                for a, b in ((x, x + 1e-7), (x.sum(), 2.0), (x, np.ones(2, "f")), ([x, {"a": x}], [x, {"a": x}]), (x.shape, (2,)), (1, 1.0), ("a", "a")):
                    self.assertEqual(a, b)
                self.assertNotEqual(x, x + 1)
                self.assertEqual(x, x + 0.5, atol=1, rtol=0)

            def test_wrong(self):
                self.assertEqual(lib.ones(2), lib.zeros(2))

            def test_other_dtype(self):
                self.assertEqual(lib.ones(2), lib.ones(2, dtype=lib.int64))
        common.instantiate_parametrized_tests(Cases)

        class OnDevice(common.TestCase):
            @devices.dtypes(lib.float32, lib.int64)
            def test_kind(self, device, dtype):
                self.assertEqual(lib.ones(2, device=device, dtype=dtype).dtype, dtype)
        made = {"OnDevice": OnDevice}
        devices.instantiate_device_type_tests(OnDevice, made, only_for="cpu")
        suite = unittest.TestSuite(map(unittest.defaultTestLoader.loadTestsFromTestCase, (Cases, made["OnDeviceCPU"])))
        names, result = sorted(test.id().rpartition(".")[2] for part in suite for test in part), unittest.TestResult()
        suite.run(result)
        return names, sorted(test.id().rpartition(".")[2] for test, _ in result.failures + result.errors)
    theirs = Library("torch").torch
    assert outcome(Library("clnn").torch, ours, ours) == outcome(theirs, common_utils, common_device_type)


def test_unit_tests_find_their_names(tmp_path):
    """Under PyTorch's names, in a program that runs on clnn."""
    import os
    import subprocess
    import sys
    program = tmp_path / "p.py"
    program.write_text("import torch\nfrom torch.testing._internal.common_utils import TestCase, run_tests\n"
                       "from torch.testing._internal.common_device_type import dtypes\nfrom torch.nn import _reduction\nprint(TestCase.__module__)\n")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-m", "clnn", "run", str(program)], capture_output=True, text=True, env=env)
    assert done.stdout.strip() == "clnn.testing._unit", done.stderr


def test_reductions_and_wrappers():
    ours = Library("clnn")
    for name in ("torch", "clnn"):
        kinds = Library(name).module("nn._reduction")
        assert [kinds.get_enum(r) for r in ("none", "mean", "sum")] == [0, 1, 2] and kinds.legacy_get_string(False, None, emit_warning=False) == "sum"
        with pytest.raises(ValueError, match="not a valid value"):
            kinds.get_enum("most")
    with pytest.raises(RuntimeError, match="any parameter that requires a gradient"):
        ours.nn.parallel.DistributedDataParallel(ours.nn.ReLU())
