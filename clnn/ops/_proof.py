"""The proof that a driver takes an instruction spelt in its own terms, and computes with it rightly: asked once per driver, in a process of its own.

What is outside of OpenCL C - inline assembly, names of LLVM - a compiler may refuse, crash about or get wrong. That costs the speed, never the program.
"""
from __future__ import annotations

import contextlib
import hashlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from ..core.config import cache_dir, config
from ..runtime.templates import kernels_dir

_FAILURE_LIFETIME = 24 * 3600.0     # a failed proof is repeated after a day: the machine may only have been busy


def verdict(device, name: str, kinds: list, templates: tuple, part: str = "") -> dict:
    """``kinds`` (names of dtypes) that module ``clnn.ops.<name>`` proves right on ``device``, their ``choices``, and ``problems`` of the others, from disk or
    by asking.

    A driver or templates of another version are proved again. The module's ``main`` calls :func:`tell`; it is given ``part``, what is asked of a proof
    whose kernels take long to build.
    """
    from ..runtime.diskcache import FileLock
    text = "".join((kernels_dir() / f"{template}.cl.mako").read_text() for template in templates)
    key = "\0".join([device.name, device.platform_name, device.platform_version, device.driver_version, text, part])
    path = cache_dir("probes") / f"{name.strip('_')}-{hashlib.sha256(key.encode()).hexdigest()[:32]}.json"
    with FileLock(f"{name.strip('_')}.lock"):
        try:
            found = json.loads(path.read_text())
            if found["problems"] and time.time() - found["time"] > _FAILURE_LIFETIME:
                raise ValueError("too old")
        except (OSError, ValueError, KeyError, TypeError):
            found = _ask(device, name, kinds, part)
            with contextlib.suppress(OSError):
                part = path.with_suffix(f".{os.getpid()}")
                part.write_text(json.dumps(found))
                os.replace(part, path)
    return found


def _ask(device, name, kinds, part="") -> dict:
    """The proof in a process of its own, which may crash, hang or lose its context."""
    env = {**os.environ, "CLNN_TENSOR_CORES": "trust", "CLNN_DEVICE": "cl:%d:%d" % device.cl_index}
    env["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).resolve().parents[2]), *filter(None, [env.get("PYTHONPATH")])])
    problems, choices = dict.fromkeys(kinds, "the process that tried it ended early"), {}
    try:
        child = subprocess.run([sys.executable, "-c", f"from clnn.ops.{name} import main; main({repr(part) if part else ''})"], env=env, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=config.probe_timeout)
        printed = child.stdout
    except subprocess.TimeoutExpired as exc:
        printed = (exc.stdout or b"").decode(errors="replace") if isinstance(exc.stdout, (bytes, type(None))) else exc.stdout
    except (OSError, TypeError, ValueError) as exc:     # no interpreter to start, or no process to be had
        printed, problems = "", dict.fromkeys(problems, f"{type(exc).__name__}: {exc}")
    for line in printed.splitlines():
        with contextlib.suppress(ValueError, KeyError, TypeError):
            said = json.loads(line)
            problems[said["kind"]] = said["problem"]
            choices[said["kind"]] = said["choice"]
    problems = {kind: text for kind, text in problems.items() if text}
    return {"kinds": [kind for kind in kinds if kind not in problems], "problems": problems, "choices": choices, "time": time.time()}


def tell(kinds, check, choice=None) -> None:
    """In the process of its own: say of each dtype what ``check(device, dtype)`` finds wrong, or "" where its products come out right, by ``choice(dtype)``."""
    from ..runtime.device import default_device
    for T in kinds:
        try:
            problem = check(default_device(), T)
        except Exception as exc:
            problem = f"{type(exc).__name__}: {exc}"[:800]
        print(json.dumps({"kind": T.name, "problem": problem, "choice": choice(T) if choice is not None and not problem else None}), flush=True)
    os._exit(0)     # a driver may crash while it unloads; the verdicts are out already


def difference(got, want) -> str:
    """What is wrong with ``got``, or "" where all elements are those of ``want``."""
    where = (got != want).nonzero()
    if not len(where[0]):
        return ""
    first = tuple(int(i[0]) for i in where)
    return f"{len(where[0])} of {got.size} elements are wrong; the first, {list(first)}, is {got[first]}, should be {want[first]}"
