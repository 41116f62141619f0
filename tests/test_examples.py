"""The examples do what they promise."""
import importlib.util
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
pytestmark = pytest.mark.skipif(not EXAMPLES.is_dir(), reason="needs a checkout")


def load(name):
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_train_digits(tmp_path, capsys):
    """A fresh process with the documented defaults: accuracy, checkpoint and picture."""
    for needed in ("sklearn", "tqdm", "matplotlib"):
        pytest.importorskip(needed)
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(EXAMPLES / "train_digits.py"), "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=600)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert (tmp_path / "digits.pt").stat().st_size > 50_000 and (tmp_path / "digits.png").read_bytes()[:4] == b"\x89PNG"
    accuracy = float(done.stdout.split("test accuracy")[-1].split("%")[0])
    assert accuracy >= 98.5


def test_train_digits_names_its_device():
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, str(EXAMPLES / "train_digits.py"), "--help"], capture_output=True, text=True, env=env, timeout=100)
    if "ModuleNotFoundError" in done.stderr:
        pytest.skip("the examples extra is not installed")
    assert "--device" in done.stdout and "--epochs" in done.stdout and "--seed" in done.stdout


@pytest.mark.share(3)
@pytest.mark.parametrize("name", ["modules", "saving", "hooks", "initialisation", "weight_tools", "schedules", "mixed_precision"])
def test_modules_and_training(name, monkeypatch, capsys):
    """Each example checks what it shows."""
    monkeypatch.setattr(sys, "argv", [name])
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    assert capsys.readouterr().out


def test_train_mlp(capsys):
    assert load("train_mlp").main(["--steps", "300"]) > 0.95


def test_custom_operator(capsys):
    from clnn._tensor.tensor import Tensor
    from clnn.graph.op import REGISTRY
    try:
        assert load("custom_operator").main().shape == (2, 3)
        assert "check gradient: passed" in capsys.readouterr().out
    finally:
        REGISTRY.pop("square_share", None)
        for name in ("square_share", "square_share_"):
            if name in Tensor.__dict__:
                delattr(Tensor, name)


@pytest.mark.share(2)
def test_benchmarks_print_a_table(tmp_path):
    """A short run of the host group; the rates are not judged here."""
    import json
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "benchmarks", "--only", "host", "--seconds", "0.01", "--without", "limit", "--json", str(tmp_path / "out.json")]
    done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=ROOT, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    results = json.loads((tmp_path / "out.json").read_text())["results"]
    assert len(results) >= 4 and all(r["best_seconds"].get("clnn", 1) > 0 for r in results) and "record one operator" in done.stdout


def test_chart_of_benchmarks(tmp_path, monkeypatch):
    """A picture of two devices' results; lines that PyTorch does not run are left out."""
    import json
    pytest.importorskip("matplotlib")
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks import chart
    files = []
    for device, factor in (("a", 2.0), ("b", 0.5)):
        results = [dict(group="training", name="net", best_seconds=dict(clnn=1.0, compiled=0.5, torch=factor)),
                   dict(group="models", name="step", best_seconds=dict(clnn=1.0, torch=factor)), dict(group="models", name="alone", best_seconds=dict(clnn=1.0))]
        files.append(str(tmp_path / f"{device}.json"))
        (tmp_path / f"{device}.json").write_text(json.dumps(dict(platform=device, results=results)))
    assert chart.speedups(results, "training") == {"net": {"clnn": 0.5, "compiled": 1.0}} and list(chart.speedups(results, "models")) == ["step"]
    assert chart.main([*files, "--out", str(tmp_path / "speed.png")]) == 0
    assert (tmp_path / "speed.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
