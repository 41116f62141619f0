"""``python -m clnn run program.py [arguments]``: a program written for PyTorch, unchanged, on clnn.

Whatever the program or a library it uses imports as ``torch`` is clnn then; PyTorch need not be installed, and is not loaded if it is.
"""
from __future__ import annotations

import importlib.util
import os
import runpy
import sys

_USAGE = """usage: python -m clnn run [-m] PROGRAM [arguments]

Runs a Python file (or, with -m, a module) as python itself would, with clnn in the place of torch.
CLNN_DEVICE names the device."""


def _finds(module) -> bool:
    """Whether ``module`` is there; its packages are imported, and what they raise is the program's own."""
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError as exc:
        if exc.name and (module + ".").startswith(exc.name + "."):
            return False
        raise


def main(args) -> int:
    """Run the program; its exceptions and its exit status are python's own."""
    as_module = args[:1] == ["-m"]
    args = args[as_module:]
    if not args or args[0] in ("-h", "--help"):
        print(_USAGE)
        return 0 if args else 2
    program = args[0]
    if not as_module and not os.path.isfile(program):
        print(f"there is no file {program!r}", file=sys.stderr)
        return 2
    import clnn
    sys.modules["torch"] = clnn
    sys.argv = list(args)
    if as_module:
        sys.path.insert(0, "")
        if not _finds(program):
            print(f"there is no module {program!r} to run", file=sys.stderr)
            return 2
        runpy.run_module(program, run_name="__main__", alter_sys=True)
    else:
        sys.path.insert(0, os.path.dirname(os.path.abspath(program)))
        runpy.run_path(program, run_name="__main__")
    return 0
