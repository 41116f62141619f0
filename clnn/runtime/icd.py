"""Which OpenCL drivers (ICDs) the loader shall see: the system's and those that pip installed."""
from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import sys
import sysconfig
from pathlib import Path

from ..core.config import cache_dir, spare_dir

SYSTEM_VENDORS = Path("/etc/OpenCL/vendors")
_ENVIRONMENT = ("POCL_DEVICES", "RUSTICL_ENABLE", "LD_PRELOAD", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
                "ONEAPI_DEVICE_SELECTOR")
_PREPARED = "CLNN_VENDORS"  # marks a vendors folder of ours, so that a child process does not take it for the user's choice


def user_vendors() -> str | None:
    """The ``OCL_ICD_VENDORS`` that the user set, or None."""
    value = os.environ.get("OCL_ICD_VENDORS")
    return value if value and value != os.environ.get(_PREPARED) else None


def pip_intel_library() -> Path | None:
    """``libintelocl.so`` of a pip-installed Intel CPU runtime. The .icd file in that package holds a placeholder path."""
    import importlib.metadata   # here, as it loads an e-mail parser and more
    places = [Path(sys.prefix, "lib"), Path(sysconfig.get_path("data"), "lib")]
    try:
        dist = importlib.metadata.distribution("intel-opencl-rt")
        places += [Path(dist.locate_file(f)).resolve().parent for f in dist.files or () if f.name == "libintelocl.so"]
    except importlib.metadata.PackageNotFoundError:
        pass
    for place in places:
        library = place / "libintelocl.so"
        if library.is_file():
            return library
    return None


def intel_runtime_missing(library: Path) -> list[str]:
    """Libraries of intel-cmplr-lib-rt that libintelocl.so needs next to it but does not find (it then vanishes silently)."""
    return [name for name in ("libimf.so", "libsvml.so", "libirng.so", "libintlc.so.5") if not (library.parent / name).exists()]


def icd_files() -> dict[str, str]:
    """name -> content of every driver entry there is: the system's, those inside pyopencl's wheel, and pip-installed Intel."""
    found = {}
    folders = [SYSTEM_VENDORS]
    spec = importlib.util.find_spec("pyopencl")
    if spec and spec.origin:
        folders.append(Path(spec.origin).parent / ".libs")
    for folder in folders:
        for path in sorted(folder.glob("*.icd")) if folder.is_dir() else ():
            try:
                found.setdefault(path.name, path.read_text().strip())
            except OSError:
                continue
    library = pip_intel_library()
    if library is not None and not any("intelocl" in text for text in found.values()):
        found["clnn-intel-cpu.icd"] = str(library)
    return {name: text for name, text in found.items() if text}


def _filled(folder, files):
    """``folder``, holding ``files``: name -> content."""
    for name, text in files.items():
        path, wanted = folder / name, (text + "\n").encode()
        if not path.exists() or path.read_bytes() != wanted:
            temp = folder / f".{name}.{os.getpid()}"
            temp.write_bytes(wanted)
            os.replace(temp, path)
    return folder


def prepare(exclude=(), only=None) -> Path | None:
    """Point the loader at a vendors folder of our own with all entries; None where the user chose one or the system has no such folders.

    Must run before the first platform call of the process. ``only`` restricts it to one entry (to find the one that hangs).
    """
    if not sys.platform.startswith("linux") or user_vendors():
        return None
    files = {n: t for n, t in icd_files().items() if n not in exclude and (only is None or n == only)}
    digest = hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest()[:16]
    try:
        folder = _filled(cache_dir("vendors", digest), files)
    except OSError:         # a read-only or full disk
        folder = _filled(spare_dir("vendors", digest), files)
    if only is None:
        os.environ["OCL_ICD_VENDORS"] = os.environ[_PREPARED] = str(folder)
    return folder


def fingerprint() -> str:
    """Changes when a driver is added, removed or replaced, or when a variable changes what drivers show."""
    parts = ["2", sys.prefix, user_vendors() or ""] + [f"{k}={os.environ.get(k, '')}" for k in _ENVIRONMENT]
    for name, text in sorted(icd_files().items()):
        library = Path(text.split("\n")[0])
        stamps = [p.stat().st_mtime_ns for p in (SYSTEM_VENDORS / name, library) if p.is_file()]
        parts.append(f"{name}={text} {stamps}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:24]


_POCL_BASE = "CLNN_POCL_CACHE"     # the folder that the user's POCL_CACHE_DIR names, for a child process that inherits ours
_SHARING = re.compile(r"PoCL 3\.\d")      # writes each file of its cache under another name first (seen in its system calls; 6 is known to lose this)
_claimed, _shared = None, False


def pocl_cache_base() -> str:
    """The folder that holds PoCL's caches."""
    return os.environ.get(_POCL_BASE) or os.environ.get("POCL_CACHE_DIR") or str(cache_dir("pocl"))


def choose_pocl_cache(version: str) -> None:
    """Set the cache folder of PoCL for this process: one for all, or where its ``version`` damages a folder that two processes fill, one of its own.

    Those are numbered, and a process takes the first free one, so that usually all runs find the same built kernels. Must run before the first
    platform call.
    """
    global _claimed, _shared
    if _claimed is not None or not version or not sys.platform.startswith("linux"):
        return
    base = pocl_cache_base()
    for name in ["all"] if _SHARING.search(version) else range(64):
        folder = Path(base, str(name))
        try:
            folder.mkdir(parents=True, exist_ok=True)
            file = os.open(folder / "in-use", os.O_CREAT | os.O_WRONLY)
        except OSError:
            return      # not writable: PoCL copes by itself
        if name != "all" and not _locked(file):
            os.close(file)
            continue
        _shared = name == "all"
        _claimed = file     # open, hence locked, until the process ends
        os.environ[_POCL_BASE], os.environ["POCL_CACHE_DIR"] = base, str(folder)
        return


def shares_pocl_cache() -> bool:
    """Whether other processes may use this one's cache folder of PoCL meanwhile."""
    return _shared


def _locked(file) -> bool:
    import fcntl
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
