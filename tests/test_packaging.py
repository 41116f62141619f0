"""What is installed is what is in the tree: packages, kernel templates, metadata."""
import configparser
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
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


@pytest.mark.share(2)
@pytest.mark.parametrize("compiler", [None, "false"], ids=["compiled", "no compiler"])
def test_wheel_holds_the_kernels(tmp_path, compiler):
    """Built without the network, from a copy, as a build leaves folders behind; where nothing compiles the C forms, the rest is there."""
    pytest.importorskip("setuptools", minversion="70.1")        # the first that builds wheels by itself
    copy = tmp_path / "src"
    skip = shutil.ignore_patterns(".git", "__pycache__", "*.egg-info", "build", "tests", "benchmarks", "examples", "*.so")
    shutil.copytree(ROOT, copy, ignore=skip)
    code = "import setuptools.build_meta as b, sys; print(b.build_wheel(sys.argv[1]))"
    env = os.environ if compiler is None else {**os.environ, "CC": compiler}
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=copy, capture_output=True, text=True, timeout=120, env=env)
    assert done.returncode == 0, done.stderr[-2000:]
    wheel, = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    templates = {"clnn/_kernels/" + p.relative_to(ROOT / "kernels").as_posix() for p in (ROOT / "kernels").rglob("*.mako")}
    modules = {p.relative_to(ROOT).as_posix() for p in (ROOT / "clnn").rglob("*.py")}
    assert templates <= names and modules <= names and "clnn/py.typed" in names
    compiled = [n for n in names if n.startswith("clnn/core/_native.")]
    assert not compiled if compiler else compiled or not shutil.which("cc") or not Path(sysconfig.get_path("include"), "Python.h").is_file()


def test_a_source_distribution_has_the_c_files(tmp_path):
    code = "import setuptools.build_meta as b, sys; print(b.build_sdist(sys.argv[1]))"
    copy = tmp_path / "src"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".git", "__pycache__", "*.egg-info", "build", "benchmarks", "examples", "*.so"))
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=copy, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    archive, = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as files:
        names = {n.partition("/")[2] for n in files.getnames()}
    assert {p.relative_to(ROOT).as_posix() for p in (ROOT / "clnn" / "core" / "_native").iterdir()} <= names and "setup.py" in names
