"""What is installed is what is in the tree: packages, kernel templates, metadata."""
import configparser
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
pytestmark = pytest.mark.skipif(not (ROOT / "setup.cfg").is_file(), reason="needs a checkout")


def config():
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg")
    return parser


def test_package_list_matches_the_tree():
    folders = {p.parent for p in (ROOT / "clnn").rglob("*.py")}
    assert not [f for f in folders if not (f / "__init__.py").is_file()], "a package needs __init__.py"
    found = {".".join(f.relative_to(ROOT).parts) for f in folders} | {"clnn._kernels"}
    assert sorted(config()["options"]["packages"].split()) == sorted(found)


def test_kernel_patterns_reach_every_template():
    patterns = [p.strip() for p in config()["options.package_data"]["clnn._kernels"].split(",")]
    kernels = ROOT / "kernels"
    reached = {p for pattern in patterns for p in kernels.glob(pattern)}
    assert not {p for p in kernels.rglob("*.mako")} - reached


def test_version_is_stated_once_and_the_same():
    import clnn
    assert clnn.__version__ == config()["metadata"]["version"]


def test_wheel_holds_the_kernels(tmp_path):
    """Built without the network, from a copy, as a build leaves folders behind."""
    pytest.importorskip("setuptools", minversion="70.1")        # the first that builds wheels by itself
    import shutil
    copy = tmp_path / "src"
    skip = shutil.ignore_patterns(".git", "__pycache__", "*.egg-info", "build", "tests", "benchmarks", "examples")
    shutil.copytree(ROOT, copy, ignore=skip)
    code = "import setuptools.build_meta as b, sys; print(b.build_wheel(sys.argv[1]))"
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=copy, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    wheel, = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    templates = {"clnn/_kernels/" + p.relative_to(ROOT / "kernels").as_posix() for p in (ROOT / "kernels").rglob("*.mako")}
    modules = {p.relative_to(ROOT).as_posix() for p in (ROOT / "clnn").rglob("*.py")}
    assert templates <= names and modules <= names and "clnn/py.typed" in names
