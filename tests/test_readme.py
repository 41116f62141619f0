"""The Python blocks of the documentation run as they stand."""
import re
from pathlib import Path

import pytest

import clnn
from clnn._tensor.tensor import Tensor
from clnn.graph.op import REGISTRY

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```python\n(.*?)^```", re.M | re.S)


def blocks():
    for name in ("README.md", "CONTRIBUTING.md"):
        path = ROOT / name
        for n, found in enumerate(BLOCK.finditer(path.read_text() if path.is_file() else "")):
            line = path.read_text()[:found.start()].count("\n") + 2
            yield pytest.param(found.group(1), line, id=f"{name}-{n}")


@pytest.mark.parametrize("code, line", list(blocks()))
def test_python_block(code, line, capsys):
    before = set(REGISTRY)
    try:
        exec(compile("\n" * (line - 1) + code, "README", "exec"), {"__name__": "readme", "clnn": clnn})
    finally:
        for name in set(REGISTRY) - before:
            REGISTRY.pop(name)
            for form in (name, name + "_"):
                if form in Tensor.__dict__:
                    delattr(Tensor, form)
    printed = capsys.readouterr().out
    assert "False" not in printed and printed.strip()


def test_kernel_readme_template_renders_and_runs(tmp_path, monkeypatch, device):
    import numpy as np

    from clnn._tensor.dispatch import run
    from clnn._tensor.tensor import empty
    from clnn.runtime import templates
    text = re.search(r"^```mako\n(.*?)^```", (ROOT / "kernels" / "README.md").read_text(), re.M | re.S).group(1)
    (tmp_path / "scale.cl.mako").write_text(text)
    monkeypatch.setattr(templates, "folders", lambda: (tmp_path, templates.kernels_dir()))
    x, s = np.arange(12, dtype=np.float32).reshape(3, 4), np.array([1, 2, 3], np.float32)
    a, b = clnn.tensor(x), clnn.tensor(s)
    out = empty(a.shape, a.dtype, device)
    run(device, "scale", dict(T=a.dtype), (4, 3), (4, 1), a, b, out, 4)
    assert np.array_equal(out.numpy(), x * s[:, None])


def test_files_that_the_readme_names_exist():
    for name in ("README.md", "CONTRIBUTING.md", "kernels/README.md"):
        path = ROOT / name
        for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", path.read_text()):
            assert (path.parent / target).exists(), f"{name} links to {target}"
