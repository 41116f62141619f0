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
