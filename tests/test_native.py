"""The C forms of the functions that every operator goes through: they do what the Python functions do, and keep nothing."""
import gc
import os
import shutil
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import pytest

import clnn
from clnn import nn
from clnn._tensor import dispatch, entries, splice
from clnn._tensor import tensor as tensors
from clnn.core import native
from clnn.graph import fuse, structure
from clnn.nn import functional as F
from clnn.runtime import launch, memory

ROOT = Path(__file__).resolve().parent.parent
needs = pytest.mark.skipif(native.built is None, reason=f"the C forms are {native.state}")
R = np.random.default_rng(0)


def floats(*shape, grad=False):
    return clnn.tensor(R.standard_normal(shape).astype(np.float32), requires_grad=grad)


def plainly(monkeypatch):
    """From here on the Python functions are called."""
    from clnn._tensor import repeat
    python = native.definitions
    for owner, name, key in ((dispatch, "record_briefly", "brief"), (dispatch, "record_alike", "alike"), (dispatch, "record_pair", "pair"), (fuse, "told", "told"),
                             (structure, "told", "told"), (fuse, "_compute", "compute"), (splice, "_kind", "kind"), (splice, "_again", "spliced"),
                             (tensors, "view_of", "view_of"), (repeat.Recipe, "run", "Recipe.run"), (launch.Prepared, "run", "Prepared.run"),
                             (memory.Memory, "alloc", "Memory.alloc")):
        monkeypatch.setattr(owner, name, python[key])


@needs
def test_every_form_has_a_definition():
    makers = {"SOURCES", "FORGET", "read_only", "rare", "maker", "Direct", "Lock", "Remembered",
              "hire", "libraries", "know", "give", "again", "method", "swift", "asking", "front", "tries", "settled", "quick", "unshelve", "picker", "hashing",
              "missing", "references", "told_alone"}
    assert clnn.optim.Adam and {name for name in makers if not hasattr(native.built, name)} == set()             # what optimizers define, too
    public = {name for name in dir(native.built) if not name.startswith("_")} - makers
    assert public <= set(native.definitions), "a C form without a Python function"


@needs
@pytest.mark.parametrize("name", ["shape", "dtype", "device", "is_leaf", "grad_fn", "ndim"])
def test_what_a_program_cannot_assign(name):
    x = clnn.ones(2, 3)
    before = repr((x, x.shape))
    for refused in (lambda: setattr(x, name, getattr(x[0], name)), lambda: delattr(x, name)):
        with pytest.raises(AttributeError):
            refused()
    assert repr((x, x.shape)) == before


@needs
def test_all_that_they_look_at_is_given():
    """By ``import clnn`` alone, but for what belongs to modules that are imported later together with their forms."""
    code = "import clnn; from clnn.core import native; print(*native.built.missing())"
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and set(done.stdout.split()) <= {"row_kind", "gather"}, done.stdout + done.stderr[-2000:]


# what is pending: (a function of tensors, their shapes)
PENDING = [
    (lambda x, y: (x + y) * 2, (4, 5), (4, 5)), (lambda x, y: x * y + 1, (3, 4, 5), (5,)), (lambda x, y: x - y, (4, 1), (1, 5)),
    (lambda x, y: (x + y) * (x - y) + x, (7,), (7,)), (lambda x, y: x.t() + y, (5, 4), (4, 5)), (lambda x, y: x[1:] * y[:-1], (6,), (6,)),
    (lambda x, y: (x[:, 0] + y) > 0.5, (6, 3), (6,)), (lambda x, y: clnn.where(x > 0, y, 2.0), (9,), (9,)), (lambda x, y: (x.double() + y.int()).half(), (9,), (9,)),
    (lambda x, y: clnn.addcmul(x, y, y, value=0.5), (9,), (9,)),
    (lambda x, y: (x + 1)[0] * (y + 1), (3, 4), (2, 4)), (lambda x, y: (x + 1).sum() + y * -0.0, (3, 4), (2,)),
    (lambda x, y: F.softplus(x + y).mean() - y, (3, 4), (4,)), (lambda x, y: (x * 2).view(-1)[:5] + (y * 3), (3, 4), (5,)),
]


@needs
@pytest.mark.parametrize("at", range(len(PENDING)))
def test_what_is_pending_is_told_alike(at):
    function, *shapes = PENDING[at]
    t = function(*[floats(*s) for s in shapes])
    node = t._storage.node
    if node is None:
        pytest.skip("computed at once")
    got, want = native.built.told(node), native.definitions["told"](node)
    assert got[0] == want[0] and got[2] == want[2] and list(got[3].items()) == list(want[3].items())
    assert len(got[1]) == len(want[1]) and all(a[0] is b[0] and a[1:] == b[1:] for a, b in zip(got[1], want[1]))


@needs
@pytest.mark.parametrize("at", range(len(PENDING)))
def test_results_and_gradients_are_those_of_python(at, monkeypatch):
    function, *shapes = PENDING[at]

    def computed():
        operands = [floats(*s, grad=True) for s in shapes]
        out = []
        for _ in range(4):                                      # the first time, observed, and repeated
            y = function(*operands)
            out.append(y.detach().numpy())
            if y.requires_grad:
                (y * y).sum().backward()
                out += [y.grad_fn.name(), *[t.grad.numpy().copy() for t in operands if t.grad is not None]]
        return out
    global R
    R = np.random.default_rng(at)
    got = computed()
    plainly(monkeypatch)
    R = np.random.default_rng(at)
    want = computed()
    assert len(got) == len(want) and all(a == b if isinstance(a, str) else np.array_equal(a, b, equal_nan=True) for a, b in zip(got, want))


@needs
def test_entries_are_those_of_python(monkeypatch):
    x, w, base = floats(3, 4, grad=True), floats(4, grad=True), floats(5, 4, grad=True)
    mask, other = x.detach() > 0, x.detach()

    def told(y):
        fn = y.grad_fn
        return (type(fn), fn.name(), fn.outs, fn.metas, fn.keeps, fn.versions, [v if v.__class__ is not clnn.Tensor else v._storage for v in fn.values],
                [e and (e[0].name(), e[1]) for e in fn.edges])
    calls = [lambda: x * w, lambda: x * 2, lambda: x.exp(), lambda: x.sum(1), lambda: base[1:4] * x, lambda: clnn.where(mask, x, w), lambda: other * w]
    got = [told(c()) for c in calls]
    monkeypatch.setattr(entries, "_quick", None)
    entries._written_out.cache_clear()
    for op in (fn().grad_fn.op for fn in calls):
        monkeypatch.setattr(op, "attach", entries.attach)
    want = [told(c()) for c in calls]
    entries._written_out.cache_clear()
    assert got == want


def test_steps_are_the_same_without_them():
    """A process that trains with the C forms, and one without: equal bits."""
    code = textwrap.dedent("""
        import clnn as torch
        from clnn.core import native
        F = torch.nn.functional
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.LayerNorm(16), torch.nn.Linear(16, 3))
        rnn = torch.nn.GRUCell(3, 5)
        opt = torch.optim.Adam([*net.parameters(), *rnn.parameters()], lr=0.01)
        for step in range(12):
            x, h = torch.randn(4, 6), torch.zeros(4, 5)
            for t in range(3):
                h = rnn(net(x) * (t + 1), h)
            loss = F.cross_entropy(h, torch.tensor([0, 1, 2, 3])) + (h[:, 1:].pow(2).mean() - h.t()[0].std()).abs()
            opt.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            opt.step()
            print(repr(loss.item()), h.sum().item(), [p.grad.norm().item() for p in net.parameters()])
        print(native.built is None)
    """)
    def run(on, **others):
        done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "CLNN_NATIVE": on, "PYTHONPATH": str(ROOT), **others}, capture_output=True,
                              text=True, timeout=300)
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout.splitlines()
    *plain, without = run("0")
    *quick, _ = run("1")
    *far, _ = run("1", CLNN_INLINE="0")                         # as on devices that have no short way
    *driven, _ = run("1", CLNN_DIRECT="0")
    assert without == "True" and plain == quick == far == driven and len(plain) == 12


# -- memory and errors ---------------------------------------------------------------------------------------------------------------

net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))
kept = floats(6, 8, grad=True)


def train():
    loss = F.cross_entropy(net(kept), clnn.tensor([0, 1, 2, 3, 0, 1])) + (kept[1:3] * 2).sum()
    loss.backward()
    net.zero_grad()
    kept.grad = None


own = floats(4, 4)


def write():
    own[1] = 0.5
    own[:, 2] = own[:, 1]
    own[0].add_(1)


LOOPS = {"sums": lambda: floats(5, 6).sum(1), "kept": lambda: kept.detach().sum(), "pending": lambda: ((kept.detach() + 1) * 2 - kept.detach()).numpy(),
         "broadcast": lambda: (kept.detach() * kept.detach()[:, :1]).numpy(), "views": lambda: kept[1:, 2].view(-1)[0], "tracked": lambda: (kept * 2).exp(),
         "two results": lambda: kept.detach().max(1), "a step": train, "numbers": lambda: (kept.detach() * R.random() + 1).numpy(),
         "recalled": lambda: kept.t().unsqueeze(0).reshape(2, -1)[:, ::2], "in place": lambda: own.mul_(1.5).sub_(own.detach() + 1).clamp_(-1, 1), "written": write,
         "one value": lambda: float(kept.detach().sum()) + bool(kept.detach()[0, 0] > 0)}


@needs
@pytest.mark.parametrize("name", LOOPS)
def test_nothing_is_kept(name):
    def many(n):
        for _ in range(n):
            LOOPS[name]()
        clnn.synchronize()
        gc.collect()
        return sys.getallocatedblocks()
    names = (None, True, False, (), 0, 1)
    gc.freeze()                         # what other tests left would be looked through each time
    try:
        many(80)
        blocks, counts = [many(300)], []
        for _ in range(6):              # what is kept by a call grows in every round; what a thread of an earlier test makes, in some
            counts.append([sys.getrefcount(x) for x in names])
            blocks.append(many(300))
            grown = [sys.getrefcount(x) - n for x, n in zip(names, counts[-1])]
            if blocks[-1] - blocks[-2] < 100 and all(abs(n) < 100 for n in grown):
                return
    finally:
        gc.unfreeze()
    raise AssertionError(f"blocks of memory are not given back: {blocks}, references {counts}")


@needs
def test_errors_come_through():
    with clnn.inference_mode():
        made = floats(3)
    for _ in range(5):
        with pytest.raises(RuntimeError, match="Inference tensors cannot be saved"):
            floats(3, grad=True) * made
    with pytest.raises(RuntimeError, match="must match|size of tensor"):
        floats(3) + floats(4)
    with pytest.raises(IndexError):
        floats(3).sum(1)
    for wrong in (lambda: native.built.told(3), lambda: native.built.brief(1), lambda: native.built.compute(1, 2), lambda: native.built.attach("x")):
        with pytest.raises(TypeError):
            wrong()


@needs
def test_a_launch_that_fails_says_what_it_was(monkeypatch):
    x = floats(67)
    monkeypatch.setattr(x._storage.device, "inline", None)
    for _ in range(20):
        x.sum().item()
    driver = launch._enqueue

    def failing(*args):
        raise RuntimeError("the driver is tired")
    monkeypatch.setattr(launch, "_enqueue", failing)
    with pytest.raises(Exception, match="tired"):
        x.sum().item()
    monkeypatch.setattr(launch, "_enqueue", driver)
    assert np.isclose(x.sum().item(), x.numpy().sum(), 1e-4)


@needs
def test_threads_at_once():
    x, w, failures = floats(16, 8), floats(8, 8, grad=True), []
    want = ((x @ w.detach()).tanh().sum(1) * 2).numpy()

    def work():
        try:
            for _ in range(150):
                y = (x @ w).tanh().sum(1) * 2
                assert np.array_equal(y.detach().numpy(), want)
                clnn.autograd.grad(y.sum(), w)
        except BaseException as exc:
            failures.append(exc)
    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures, failures


def test_a_process_that_ends_while_a_daemon_works_says_nothing():
    code = ("import threading, time, clnn\nx = clnn.ones(64)\nx.sum().item()\n"
            "def work():\n    while True:\n        (x * 2).sum().item()\nthreading.Thread(target=work, daemon=True).start()\ntime.sleep(0.5)\n")
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and not done.stderr, done.stderr[-2000:]


def test_a_checkout_where_nothing_was_built(tmp_path):
    """The folder of the sources is not taken for the module."""
    copy = tmp_path / "clnn"
    shutil.copytree(ROOT / "clnn", copy, ignore=shutil.ignore_patterns("*.so", "*.pyd", "__pycache__"))
    code = "import clnn; from clnn.core import native; print(native.built, '|', native.state.partition(':')[0], '|', clnn.__file__)"
    env = {k: v for k, v in os.environ.items() if k != "CLNN_NATIVE"}
    done = subprocess.run([sys.executable, "-c", code], env={**env, "PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip() == f"None | not built | {copy / '__init__.py'}"
