"""``python -m clnn tune``: the tuner from the command line, and its files: show, export, merge."""
from __future__ import annotations

import argparse
import contextlib
import json
import sys
from pathlib import Path

from ..runtime import params


class Bar:
    """A progress line: tqdm where it is installed, else one line that rewrites itself; in a log a line per problem."""

    def __init__(self):
        self.bar, self.live = None, sys.stderr.isatty()
        with contextlib.suppress(ImportError):
            from tqdm import tqdm
            self.bar = tqdm(total=100, unit="%", bar_format="{l_bar}{bar}| {elapsed}<{remaining} {postfix}") if self.live else None

    def __call__(self, text, share):
        if self.bar is not None:
            self.bar.update(max(0, int(share * 100) - self.bar.n))
            self.bar.set_postfix_str(text)
        elif self.live:
            print(f"\r{share:4.0%} {text:<90.90}", end="", file=sys.stderr, flush=True)
        elif text.endswith("done"):
            print(f"{share:4.0%} {text}", file=sys.stderr, flush=True)

    def close(self):
        if self.bar is not None:
            self.bar.close()


def table(rows) -> str:
    """Rows as aligned text."""
    if not rows:
        return "no tuned parameters"
    lines = [("operator", "place", "class", "parameters", "ms", "rule ms")]
    lines += [(r["op"], r["place"], r["key"], " ".join(f"{k}={v}" for k, v in sorted(r["params"].items())), str(r.get("ms", "")),
               str(r.get("rule_ms", ""))) for r in rows]
    widths = [max(len(line[i]) for line in lines) for i in range(6)]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(line, widths)).rstrip() for line in lines)


def _all_rows():
    user = params.user_file()
    return params.merge(*[params.read_rows(p) for p in params.shipped_files()], params.read_rows(user) if user.exists() else [])


def main(argv) -> int:
    """Run a ``tune`` command; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m clnn tune", description="Search kernel parameters, or handle files of them.")
    parser.add_argument("action", nargs="?", default="search", choices=("search", "show", "export", "merge"))
    parser.add_argument("files", nargs="*", help="export FILE; merge FILE...")
    parser.add_argument("--device", help="device name (default: the default device)")
    parser.add_argument("--op", help="operators, comma-separated")
    parser.add_argument("--budget", type=float, default=600.0, metavar="SECONDS")
    parser.add_argument("--shapes", metavar="FILE", help='JSON: {"gemm": [[M, N, K], ...], ...}')
    args = parser.parse_args(argv)
    if args.files and args.action not in ("export", "merge"):
        parser.error(f"{args.action} takes no file, got {args.files[0]}")
    if not args.budget > 0:
        parser.error(f"--budget takes a positive number of seconds, got {args.budget:g}")
    try:
        return _ACTIONS[args.action](args)
    except (ValueError, OSError, RuntimeError) as exc:
        print(f"tune: {str(exc).removeprefix('tune: ')}", file=sys.stderr)
        return 1


def _shapes(file):
    """The problems in a file of ``--shapes``; ValueError says what is wrong with it."""
    from .spaces import SPACES
    try:
        shapes = json.loads(Path(file).read_text())
    except ValueError as exc:
        raise ValueError(f"{file} is not JSON: {exc}") from None
    if not isinstance(shapes, dict):
        raise ValueError(f'{file}: expected {{"operator": [sizes, ...], ...}}, e.g. {{"gemm": [[64, 512, 784]]}}')
    for op, problems in shapes.items():
        if op not in SPACES:
            raise ValueError(f"{file}: no tunable operator {op!r}; there are {', '.join(SPACES)}")
        known = SPACES[op].problems[0]
        for p in problems if isinstance(problems, list) else [problems]:
            if not isinstance(p, list) or len(p) != len(known) or not all(isinstance(n, type(k)) and n >= 0 for n, k in zip(p, known)):
                raise ValueError(f"{file}: {op} takes lists of {len(known)} sizes, such as {list(known)}; got {p}")
    return shapes


def _search(args):
    from .search import tune
    shapes = _shapes(args.shapes) if args.shapes else None
    bar = Bar()
    try:
        found = tune(args.device, args.op.split(",") if args.op else None, args.budget, shapes, bar)
    except KeyboardInterrupt:
        print("\nstopped; what was measured is kept, the same command goes on", file=sys.stderr)
        return 130
    finally:
        bar.close()
    print(table(found) if found else "nothing was faster than the parameters in use")
    if found:
        print(f"kept in {params.user_file()}")
    return 0


def _show(args):
    print(table(_all_rows()))
    return 0


def _export(args):
    if len(args.files) != 1:
        raise ValueError("export takes one file name")
    rows = _all_rows()
    params.write_rows(args.files[0], rows)
    print(f"{len(rows)} rows written to {args.files[0]}")
    return 0


def _merge(args):
    if not args.files:
        raise ValueError("merge takes the names of files to merge into this user's")
    from .search import save_rows
    rows = params.merge(*[params.read_rows(f) for f in args.files])
    save_rows(rows)
    print(f"{len(rows)} rows merged into {params.user_file()}")
    return 0


_ACTIONS = {"search": _search, "show": _show, "export": _export, "merge": _merge}
