"""Shared set-up: the device that is tested, and a clean state for every test."""
import contextlib
import os
import re
import warnings
from collections import Counter

import pytest
from ahead import Later
from share import takes

from clnn.core.config import config as settings
from clnn.runtime.ahead import quick_linker

_ASKS_FOR_DOUBLES = re.compile("(float64|complex128) is not supported by ")


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: takes more than a few seconds")
    config.addinivalue_line("markers", "share(parts, both=False, turn=0): knows no driver: PoCL looks at one case in so many, the first or with turn=1 the second, "
                                       "Intel's runtime at the others or at all")
    warnings.filterwarnings("ignore", message="degrees of freedom")
    if "CLNN_RANDOM" not in os.environ:                         # the numbers that PyTorch draws, on GPUs too: layers are compared with its layers
        os.environ["CLNN_RANDOM"] = settings.random = "pytorch"
    with contextlib.suppress(Exception):                        # the texts that tests expect name no device; without one, the tests say it better
        import clnn
        from clnn._tensor.display import UNNAMED
        UNNAMED.add(clnn.get_default_device().type)
    settings.build_ahead = os.environ.setdefault("CLNN_BUILD_AHEAD", "0") == "1"        # the tests' own processes keep all cores busy
    if "COMPILER_PATH" not in os.environ and (folder := quick_linker()) is not None:
        os.environ["COMPILER_PATH"] = str(folder)
        config.add_cleanup(lambda: os.environ.pop("COMPILER_PATH"))


def pytest_collection_modifyitems(config, items):
    """Leave to another driver what ``share`` says, but not of tests that somebody names."""
    if config.option.keyword or any("::" in arg for arg in config.args):
        return
    left, seen = set(), Counter()
    for item in items:
        mark = item.get_closest_marker("share")
        if mark is not None:
            name, how = item.nodeid.partition("[")[0], dict(mark.kwargs)
            if not takes(seen[name] + how.pop("turn", 0), *mark.args, **how):
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
    try:
        result = yield
        if "later" in pyfuncitem.funcargs:
            pyfuncitem.funcargs["later"].settle()
        return result
    except TypeError as exc:
        import clnn
        if _ASKS_FOR_DOUBLES.match(str(exc)) and not clnn.get_default_device().physical.cl_device.double_fp_config:
            pytest.skip(str(exc).partition(";")[0])
        raise


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
    state.grad, state.inference, state.claimed, state.autocast, state.anomaly = True, False, False, None, False
    clnn.core.warn._said.clear()                    # what is said once is said in the next test, too
    from clnn._tensor import override
    override.deactivate()                           # a test that defined a subclass of Tensor left the check in all functions
    override.local.modes, override.local.off = (), 0
