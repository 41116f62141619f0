"""``python -m clnn <command>``: doctor, run, tune."""
from __future__ import annotations

import importlib
import sys

_COMMANDS = {
    "doctor": ("clnn.doctor", "show platforms and devices, why one is not used, and how to fix it"),
    "run": ("clnn.run", "run a program written for PyTorch, unchanged, with clnn in the place of torch"),
    "tune": ("clnn.tune.cli", "time the tunable kernels on a device and keep the best parameters"),
}


def main(argv=None) -> int:
    """Run a command's ``main(args)``; returns its exit status."""
    args = sys.argv[1:] if argv is None else list(argv)
    if not args or args[0] in ("-h", "--help"):
        print("usage: python -m clnn <command> [options]\n")
        for name, (_, text) in _COMMANDS.items():
            print(f"  {name:<8}{text}")
        return 0 if args else 2
    if args[0] == "--version":
        import clnn
        print(clnn.__version__)
        return 0
    if args[0] not in _COMMANDS:
        print(f"unknown command {args[0]!r}; known: {', '.join(_COMMANDS)}", file=sys.stderr)
        return 2
    try:
        module = importlib.import_module(_COMMANDS[args[0]][0])
    except ModuleNotFoundError as exc:
        if exc.name != _COMMANDS[args[0]][0]:
            raise
        print(f"this version has no {args[0]!r} command", file=sys.stderr)
        return 2
    return module.main(args[1:]) or 0


if __name__ == "__main__":
    sys.exit(main())
