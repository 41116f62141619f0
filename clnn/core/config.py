"""Settings read from the environment, in one place.

========================= ==========================================================================================
variable                  meaning
========================= ==========================================================================================
``CLNN_DEVICE``           the default device (any name that :func:`clnn.device` accepts)
``CLNN_CACHE_DIR``        where probe verdicts and built kernels are kept (default: the user's cache folder + ``clnn``)
``CLNN_NO_CACHE``         ``1``: neither read nor write built kernels on disk
``CLNN_EAGER``            ``1``: run each operator at once instead of fusing (the oracle for fusion, and for debugging)
``CLNN_REPEAT``           ``0``: no call is repeated from what an earlier one of its kind launched: each works everything out anew (for debugging)
``CLNN_SHARE_MEMORY``     ``0``: tensors and NumPy arrays share no memory, all conversions copy
``CLNN_DEBUG``            ``1``: wait after each launch, so that an error names the launch that caused it
``CLNN_INLINE``           ``0``: short launches on CPUs wake the driver's threads like long ones instead of running in the calling thread
``CLNN_DIRECT``           ``0``: such launches, and reads and writes of few values, go through the driver each time: nothing that a driver has built is
                          called without it, and the memory of no CPU driver is touched
``CLNN_NATIVE``           ``0``: the functions that every operator goes through run in Python, as where their C forms were not built
``CLNN_BUILD_AHEAD``      ``0``: no second process that builds missing kernels beside this one
``CLNN_AFFINITY``         ``0``: worker threads of CPU drivers are not given a core each and the batch policy
``CLNN_HUGE_PAGES``       ``0``: large buffers of CPU drivers are not backed by huge pages
``CLNN_RANDOM``           ``pytorch``: on all devices the random numbers that PyTorch draws on a processor from the same seed; ``philox``: on none
                          (default: on CPUs, as drawing them is slow on GPUs)
``CLNN_TENSOR_CORES``     ``0``: no tensor cores for matrix products (``emulate``: their kernels without the instruction, on any device, for tests)
``CLNN_PROBE_TIMEOUT``    seconds that a driver gets to prove itself on its first sight (default 60)
========================= ==========================================================================================
"""
from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path


def flag(name: str, default: bool = False) -> bool:
    """True when the variable is set to something other than ``0``, ``no``, ``off``, ``false`` or nothing."""
    value = os.environ.get(name)
    return default if value is None else value.strip().lower() not in ("", "0", "no", "off", "false")


def number(name: str, default: float) -> float:
    """The variable as a number; ``default`` when it is unset or is not one."""
    try:
        return float(os.environ[name])
    except (KeyError, ValueError):
        return default


def device_name() -> str | None:
    """The device asked for by ``CLNN_DEVICE``, or None."""
    return os.environ.get("CLNN_DEVICE", "").strip() or None


def cache_dir(*parts: str) -> Path:
    """A folder for things that can be made again, created on demand; a private temporary one where the home is read-only."""
    base = os.environ.get("CLNN_CACHE_DIR")
    if not base:
        if sys.platform == "win32":
            root = os.environ.get("LOCALAPPDATA") or os.path.expanduser("~")
        elif sys.platform == "darwin":
            root = os.path.expanduser("~/Library/Caches")
        else:
            root = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        base = os.path.join(root, "clnn")
    path = Path(base, *parts)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError:
        return spare_dir(*parts)
    return path


def spare_dir(*parts: str) -> Path:
    """A folder among the temporary ones, for what does not fit into :func:`cache_dir`."""
    owner = os.getuid() if hasattr(os, "getuid") else "user"
    path = Path(tempfile.gettempdir(), f"clnn-{owner}", *parts)
    path.mkdir(parents=True, exist_ok=True)
    return path


class Config:
    """Switches that may also be changed while a program runs: ``config.eager``, ``config.debug``.

    ``tensor_cores`` is ``auto``, ``off``, ``emulate``, or ``trust`` (without asking the device first). ``matmul_precision`` is what
    ``clnn.set_float32_matmul_precision`` was given. ``spoken`` is the package's name in texts.
    """

    __slots__ = ("eager", "debug", "repeat", "inline", "direct", "build_ahead", "affinity", "huge_pages", "share_memory", "no_cache", "probe_timeout", "tensor_cores",
                 "random", "matmul_precision")

    def __init__(self):
        self.eager = flag("CLNN_EAGER")
        self.debug = flag("CLNN_DEBUG")
        self.repeat = flag("CLNN_REPEAT", True)
        self.inline = flag("CLNN_INLINE", True)
        self.direct = flag("CLNN_DIRECT", True)
        self.build_ahead = flag("CLNN_BUILD_AHEAD", True)
        self.affinity = flag("CLNN_AFFINITY", True)
        self.huge_pages = flag("CLNN_HUGE_PAGES", True)
        self.share_memory = flag("CLNN_SHARE_MEMORY", True)
        self.no_cache = flag("CLNN_NO_CACHE")
        self.probe_timeout = number("CLNN_PROBE_TIMEOUT", 60.0)
        named = os.environ.get("CLNN_TENSOR_CORES", "").strip().lower()
        self.tensor_cores = named if named in ("emulate", "trust") else "auto" if flag("CLNN_TENSOR_CORES", True) else "off"
        named = os.environ.get("CLNN_RANDOM", "").strip().lower()
        self.random = named if named in ("pytorch", "philox") else "auto"
        self.matmul_precision = "highest"

    @property
    def spoken(self) -> str:
        """``torch`` where that name imports clnn, else ``clnn``."""
        own = __name__.partition(".")[0]
        return "torch" if sys.modules.get("torch") is sys.modules.get(own) else own


config = Config()
