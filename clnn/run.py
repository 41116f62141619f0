"""``python -m clnn run program.py [arguments]``: a program written for PyTorch, unchanged, on clnn.

Whatever the program or a library it uses imports as ``torch`` is clnn then; PyTorch need not be installed, and is not loaded if it is.
"""
from __future__ import annotations

import builtins
import importlib.machinery
import importlib.util
import os
import runpy
import sys
import types

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


def _run_file(program) -> None:
    """As ``python program`` does: ``__file__``, tracebacks and warnings have the whole path, ``sys.argv[0]`` what was typed (``runpy`` has one for both)."""
    path = os.path.abspath(program)
    sys.path.insert(0, os.path.dirname(path))
    loader = importlib.machinery.SourceFileLoader("__main__", path)
    module = sys.modules["__main__"] = types.ModuleType("__main__")
    vars(module).update(__file__=path, __loader__=loader, __builtins__=builtins, __cached__=None, __annotations__={})
    exec(loader.source_to_code(loader.get_data(path), path), vars(module))


def _stand_in() -> None:
    """From here on clnn is what is imported as torch."""
    import clnn
    from clnn import _alias
    sys.modules["torch"] = clnn
    _alias._speak("torch")


class _InChildren:
    """Read by a process that is started afresh, before it imports the program again: clnn stands there in the place of torch as well."""

    def __reduce__(self):
        return _stand_in, ()


def _lead_children() -> None:
    from multiprocessing import spawn
    given = spawn.get_preparation_data
    spawn.get_preparation_data = lambda name: {**given(name), "clnn": _InChildren()}


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
    _stand_in()
    _lead_children()
    sys.argv = list(args)
    if as_module:
        sys.path.insert(0, "")
        if not _finds(program):
            print(f"there is no module {program!r} to run", file=sys.stderr)
            return 2
        runpy.run_module(program, run_name="__main__", alter_sys=True)
    else:
        _run_file(program)
    return 0
