"""Shared set-up: the device that is tested, and a clean state for every test."""
import os
import shutil
import tempfile
import warnings
from collections import Counter
from pathlib import Path

import pytest
from ahead import Later
from share import takes

# Stands before the linker in PoCL's search path. A kernel uses no library that its process lacks, and "ld" takes longer to read their symbols than the
# compiler takes for a small kernel.
LINKER = """#!/bin/sh
case "$*" in
*/tempfile_*.so.o*) for a; do shift; case $a in -lm|-lc|-lgcc_s) ;; *) set -- "$@" "$a" ;; esac; done ;;
esac
exec {} "$@"
"""


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: takes more than a few seconds")
    config.addinivalue_line("markers", "share(parts, both=False): knows no driver: PoCL looks at one case in so many, Intel's runtime at the others or at all")
    warnings.filterwarnings("ignore", message="degrees of freedom")
    linker = shutil.which("ld")
    if linker and os.name == "posix" and "COMPILER_PATH" not in os.environ:
        folder = tempfile.mkdtemp(prefix="clnn-tests-")
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
        config.add_cleanup(lambda: os.environ.pop("COMPILER_PATH"))
        shim = Path(folder, "ld")
        shim.write_text(LINKER.format(linker))
        shim.chmod(0o755)
        os.environ["COMPILER_PATH"] = folder


def pytest_collection_modifyitems(config, items):
    """Leave to another driver what ``share`` says, but not of tests that somebody names."""
    if config.option.keyword or any("::" in arg for arg in config.args):
        return
    left, seen = set(), Counter()
    for item in items:
        mark = item.get_closest_marker("share")
        if mark is not None:
            name = item.nodeid.partition("[")[0]
            if not takes(seen[name], *mark.args, **mark.kwargs):
                left.add(item)
            seen[name] += 1
    if left:
        config.hook.pytest_deselected(items=list(left))
        items[:] = [item for item in items if item not in left]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config):
    """Each worker's driver uses all cores, too: many workers would only take memory."""
    return min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, 8)


def pytest_report_header(config):
    try:
        import clnn
        dev = clnn.get_default_device().physical
        return f"clnn {clnn.__version__} on {dev.name} ({dev.platform_name}, {dev.flavour})"
    except Exception as exc:                                             # the tests say it better
        return f"clnn: {type(exc).__name__}: {str(exc).splitlines()[0]}"


@pytest.fixture(scope="session")
def device():
    """The physical device under test (CLNN_DEVICE, else the default)."""
    clnn = pytest.importorskip("clnn")
    return clnn.get_default_device().physical


@pytest.fixture
def later():
    """Comparisons that are made at the end of the test, once all of its work was started."""
    return Later()


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    result = yield
    if "later" in pyfuncitem.funcargs:
        pyfuncitem.funcargs["later"].settle()
    return result


@pytest.fixture(autouse=True)
def clean_state():
    """No test leaves the dtype, device or grad mode changed for the next one."""
    yield
    import sys
    if "clnn" not in sys.modules:
        return
    import clnn
    from clnn._tensor.grad_mode import state
    clnn.set_default_dtype(clnn.float32)
    clnn.set_float32_matmul_precision("highest")
    state.grad, state.inference, state.autocast, state.anomaly = True, False, None, False
    clnn.core.warn._said.clear()                    # what is said once is said in the next test, too
    from clnn._tensor import override
    override.deactivate()                           # a test that defined a subclass of Tensor left the check in all functions
    override.local.modes, override.local.off = (), 0
