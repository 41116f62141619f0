"""``python -m clnn run``: programs written for PyTorch, unchanged."""
import os
import subprocess
import sys
from pathlib import Path

from clnn import run

ROOT = Path(__file__).resolve().parent.parent


def test_run_takes_the_place_of_torch(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("import sys, torch\nfrom torch import nn\nprint(torch.__version__ != '', sys.argv[1:], nn.ReLU()(torch.tensor([-1.0, 2.0])).tolist())\n"
                       "sys.exit(3)\n")
    for how, where in ((["program.py"], tmp_path), ([str(program)], None), (["-m", "program"], tmp_path)):
        done = subprocess.run([sys.executable, "-m", "clnn", "run", *how, "a"], cwd=where, capture_output=True, text=True,
                              env={**os.environ, "PYTHONPATH": str(ROOT)})
        assert (done.returncode, done.stdout) == (3, "True ['a'] [0.0, 2.0]\n"), done.stderr
    assert run.main(["nowhere.py"]) == 2 and run.main([]) == 2 and run.main(["--help"]) == 0


def test_functorch_is_there(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("""
import torch
from functorch import combine_state_for_ensemble, make_functional, make_functional_with_buffers, vmap
import functorch
net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2)).eval()
f, params, buffers = make_functional_with_buffers(net)
x = torch.ones(3, 2)
assert torch.equal(f(params, buffers, x), net(x)) and params[0].requires_grad and functorch.vmap is torch.vmap
g, weights = make_functional(net[0], disable_autograd_tracking=True)
assert torch.equal(g([w * 2 for w in weights], x), net[0](x) * 2) and not weights[0].requires_grad
h, params, buffers = combine_state_for_ensemble([net, net])
assert torch.allclose(vmap(h, (0, 0, None))(params, buffers, x), net(x).expand(2, 3, 2))
""")
    done = subprocess.run([sys.executable, "-m", "clnn", "run", str(program)], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stderr
