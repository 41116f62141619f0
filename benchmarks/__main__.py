"""One table of clnn against NumPy, PyTorch and the device's limits: ``python -m benchmarks [--only host,gemm] [--json FILE] [--without torch]``.

All contenders of a line take turns; rates are those of the best round, and the last columns are ratios within the line. More than 1 means that
clnn is faster ("x torch", "x numpy": as written; "replayed": recorded with clnn.compile, against PyTorch as written).
"""
from __future__ import annotations

import argparse
import json
import platform
import sys

import numpy as np

import clnn

from . import calls, elementwise, first_use, loops, memory, models, operators, products, science, setup, sizes, training
from .timing import measure

GROUPS = {"host": elementwise.host, "calls": calls.calls, "loops": loops.loops, "sizes": sizes.sizes, "elementwise": elementwise.elementwise,
          "reductions": elementwise.reductions, "memory": memory.memory, "gemm": products.gemm, "narrow": products.narrow, "tf32": products.rounded,
          "conv": products.conv, "attention": products.attention, "recurrent": products.recurrent, "training": training.training, "models": models.models,
          "science": science.science, "operators": operators.operators, "first use": first_use.first_use}
COLUMNS = (("clnn", 8), ("unit", 8), ("compiled", 9), ("torch", 8), ("numpy", 8), ("limit", 8), ("x torch", 8), ("replayed", 9), ("x numpy", 8), ("of limit", 9))


def number(value):
    if value is None:
        return ""
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def line(result):
    """The cells of one result."""
    case = result.case
    ours, limit = result.rate("clnn"), result.rate("limit") if case.bound else None

    def ratio(other, mine="clnn"):
        return result.best[other] / result.best[mine] if other in result.best and mine in result.best else None
    cells = [number(ours), case.unit, number(result.rate("compiled")), number(result.rate("torch")), number(result.rate("numpy")), number(limit),
             number(ratio("torch")), number(ratio("torch", "compiled")), number(ratio("numpy")), f"{100 * ours / limit:.0f} %" if limit and ours else ""]
    return case.name, cells


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help=f"groups or parts of names, comma-separated; groups: {', '.join(GROUPS)}")
    parser.add_argument("--json", help="also write all figures to this file")
    parser.add_argument("--seconds", type=float, default=0.6, help="time per contender and line")
    parser.add_argument("--without", default="", help="contenders to leave out: torch, numpy, limit")
    args = parser.parse_args(argv)
    setup.PEERS.difference_update(args.without.split(","))
    wanted = args.only.split(",") if args.only else list(GROUPS)
    groups = [g for g in wanted if g in GROUPS] or list(GROUPS)
    words = [w for w in wanted if w not in GROUPS]
    dev = setup.DEVICE
    print(f"clnn {clnn.__version__} on {dev.name} ({dev.platform_name}, {dev.compute_units} units); NumPy {np.__version__}, "
          f"PyTorch {setup.torch.__version__ if setup.torch is not None else 'not installed'}; Python {platform.python_version()}")
    width, records = 54, []
    fma, operations = setup.multiply_add_limit() if "limit" in setup.PEERS else (None, 0)
    for group in groups:
        print(f"\n{group:{width}s}" + "".join(f"{name:>{w}s}" for name, w in COLUMNS))
        for case in GROUPS[group]():
            if words and not any(w in case.name for w in words):
                continue
            if case.bound == "fma" and fma is not None:
                case.contenders.append(fma)
                case.limit_amount = operations
            result = measure(case, args.seconds)
            name, cells = line(result)
            print(f"{name:{width}s}" + "".join(f"{c:>{w}s}" for c, (_, w) in zip(cells, COLUMNS)) + (f"  {case.note}" if case.note else ""), flush=True)
            records.append(dict(group=group, **result.as_dict()))
    if args.json:
        with open(args.json, "w") as file:
            about = dict(clnn=clnn.__version__, device=dev.name, platform=dev.platform_name, driver=dev.driver_version, units=dev.compute_units,
                         numpy=np.__version__, torch=setup.torch.__version__ if setup.torch is not None else None,
                         python=platform.python_version(), machine=platform.machine())
            json.dump(dict(about, results=records), file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
