"""The house rules that a reader relies on: imports go down only, files stay short, importing is light, no text of one place in another."""
import ast
import functools
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "clnn"
FLOORS = {name: floor for floor, names in enumerate((
    "core", "runtime", "graph", "_tensor", "ops",
    "nn optim utils autograd random types compiler _misc amp func linalg serialization _serialization special return_types",
    "testing profiler summary_ tune doctor run __main__", "__init__")) for name in names.split()}
TREES = [d for d in ("clnn", "tests", "benchmarks", "examples") if (ROOT / d).is_dir()]
SOURCES = sorted(PACKAGE.rglob("*.py"))
pytestmark = pytest.mark.skipif(not (ROOT / "setup.cfg").is_file(), reason="needs a checkout")


def floor_of(module):
    """Floor of a dotted module name inside clnn ('clnn.graph.fuse' -> 2); None outside."""
    parts = module.split(".")
    if parts[0] != "clnn":
        return None
    return FLOORS.get(parts[1] if len(parts) > 1 else "__init__", 5)


def name_of(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 2 else parts)


@functools.lru_cache(maxsize=None)
def imports(path):
    return list(_imports(path))


def _imports(path):
    """(line, absolute module, inside a function) of every import in a file."""
    module, package = name_of(path), path.parent.relative_to(ROOT).parts
    tree = ast.parse(path.read_text())
    late = {id(n) for f in ast.walk(tree) if isinstance(f, (ast.FunctionDef, ast.AsyncFunctionDef)) for n in ast.walk(f)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name, id(node) in late
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[:len(package) - node.level + 1]) if node.level else ""
            full = ".".join(p for p in (base, node.module) if p)
            for alias in node.names:
                yield node.lineno, f"{full}.{alias.name}" if full == "clnn" else full, id(node) in late
    assert module


def test_floors_are_known():
    unknown = {p.relative_to(PACKAGE).parts[0].removesuffix(".py") for p in SOURCES} - set(FLOORS)
    assert all(floor_of(f"clnn.{n}") is not None for n in unknown)


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_go_down_only(path):
    here = floor_of(name_of(path))
    wrong = []
    for line, module, late in imports(path):
        floor = floor_of(module)
        if floor is None or floor <= here or here >= 5 and module == "clnn":
            continue
        if floor == 7 and module.split(".")[-1] != "clnn":
            continue
        if late and here >= 3 and floor != 6:                           # a method that hands over to a higher floor imports it when called
            continue
        wrong.append(f"{path.relative_to(ROOT)}:{line} (floor {here}) imports {module} (floor {floor})")
    assert not wrong, "\n".join(wrong)


def test_only_the_runtime_uses_the_driver():
    wrong = [f"{p.relative_to(ROOT)}:{line} imports {module}" for p in SOURCES if "runtime" not in p.relative_to(PACKAGE).parts
             for line, module, _ in imports(p) if module.split(".")[0] in ("pyopencl", "mako")]
    assert not wrong, "\n".join(wrong)


def test_core_needs_numpy_only():
    known = set(sys.stdlib_module_names) | {"numpy", "ml_dtypes", "clnn"}
    wrong = [f"{p.name}:{line} imports {module}" for p in (PACKAGE / "core").glob("*.py") for line, module, _ in imports(p)
             if module.split(".")[0] not in known]
    assert not wrong, "\n".join(wrong)


def test_importing_is_light():
    code = ("import sys, clnn\n"
            "heavy = [m for m in ('pyopencl', 'mako', 'torch', 'matplotlib', 'scipy', 'sklearn', 'multiprocessing.pool', 'asyncio') if m in sys.modules]\n"
            "assert not heavy, heavy\n"
            "assert not [m for m in sys.modules if m in ('clnn.nn', 'clnn.optim', 'clnn.testing')], 'loaded eagerly'")
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def tree_files(*suffixes):
    return [p for d in TREES for p in sorted((ROOT / d).rglob("*")) if p.suffix in suffixes and "__pycache__" not in p.parts]


def test_files_stay_readable():
    long = {str(p.relative_to(ROOT)): n for p in tree_files(".py") if (n := len(p.read_text().splitlines())) > 600}
    long |= {str(p.relative_to(ROOT)): n for p in (ROOT / "kernels").rglob("*.mako") if (n := len(p.read_text().splitlines())) > 250}
    assert not long, f"split these files: {long}"


def test_lines_stay_readable():
    wide = [f"{p.relative_to(ROOT)}:{i}" for p in tree_files(".py") for i, line in enumerate(p.read_text().splitlines(), 1) if len(line) > 170]
    assert not wide, f"wrap these lines: {wide}"


def test_templates_inherit_the_base_and_explain_themselves():
    silent = []
    for path in (ROOT / "kernels").rglob("*.cl.mako"):
        text = path.read_text()
        if "__kernel" in text and 'inherit file="/base.cl.mako"' not in text:
            silent.append(f"{path.relative_to(ROOT)} does not inherit base.cl.mako")
        if not re.search(r"^##", text, re.M):
            silent.append(f"{path.relative_to(ROOT)} has no header comment")
    assert not silent, "\n".join(silent)


def test_kernels_have_no_double_literals():
    """A float literal without f makes a kernel need fp64."""
    wrong = []
    for path in (p for p in (ROOT / "kernels").rglob("*.cl.mako") if p.parent.name != "common"):    # the base has text for double itself
        text = re.sub(r"/\*.*?\*/|##[^\n]*|//[^\n]*|<%.*?%>|\$\{[^}]*\}", lambda m: "\n" * m.group().count("\n"), path.read_text(), flags=re.S)
        for i, line in enumerate(text.splitlines(), 1):
            if not line.lstrip().startswith("%") and re.search(r"(?<![\w.])\d+\.\d*(?:[eE][-+]?\d+)?(?![\w.])", line) and "double" not in line and "fma" not in line:
                wrong.append(f"{path.relative_to(ROOT)}:{i}: {line.strip()[:80]}")
    assert not wrong, "\n".join(wrong)


def test_every_template_folder_is_used():
    """No dead kernels: some module launches from each folder of kernels/."""
    text = "\n".join(p.read_text() for p in SOURCES)
    families = {p.name for p in (ROOT / "kernels").iterdir() if p.is_dir() and p.name != "common" and list(p.glob("*.mako"))}
    unused = [f for f in sorted(families) if not re.search(rf"[\"']{f}/", text)]
    assert not unused, f"no module launches from kernels/{unused}"


def test_references_are_counted_the_same_in_every_python():
    """Since Python 3.14 a local variable given to a function may be no reference of its own: counts of items and attributes are what they were."""
    calls = [(path.name, call.lineno, call.args[0]) for path in SOURCES if "getrefcount" in path.read_text() for call in ast.walk(ast.parse(path.read_text()))
             if isinstance(call, ast.Call) and getattr(call.func, "id", getattr(call.func, "attr", "")) in ("_refcount", "getrefcount")]
    assert len(calls) > 10 and not [(name, line) for name, line, value in calls if not isinstance(value, (ast.Attribute, ast.Subscript))]


def test_nothing_names_the_machine_it_was_written_on():
    pattern = re.compile(r"/(?:root|home/\w+|work)/|\b(?:localhost|127\.0\.0\.1):\d+|index-url|--trusted-host")
    files = tree_files(".py", ".md", ".toml") + [p for p in (ROOT / "setup.cfg", ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / ".ci" / "run") if p.is_file()]
    wrong = [f"{p.relative_to(ROOT)}: {m.group()}" for p in files if p != Path(__file__).resolve() for m in pattern.finditer(p.read_text())]
    assert not wrong, "\n".join(wrong)
