"""How many times as fast as PyTorch, as a picture: ``python -m benchmarks.chart FILE.json ... [--groups training,models] [--out speed.png]``.

Each file is what ``python -m benchmarks --json`` wrote on one device. Needs matplotlib.
"""
from __future__ import annotations

import argparse
import json
import sys

WAYS = {"clnn": "as written", "compiled": "with clnn.compile"}


def speedups(results, group):
    """{line: {contender: times as fast as PyTorch}} of one file and group."""
    table = {}
    for r in results:
        best = r["best_seconds"]
        if r["group"] == group and "torch" in best and "clnn" in best:
            table[r["name"]] = {way: best["torch"] / best[way] for way in WAYS if way in best}
    return table


def draw(runs, groups, path):
    """One panel per group, a bar per device and way. ``runs``: what the files hold."""
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    colours = plt.get_cmap("tab20").colors
    tables = [[speedups(run["results"], group) for run in runs] for group in groups]
    heights = [len(panel[0]) for panel in tables]
    figure, panels = plt.subplots(len(groups), 1, figsize=(9, 1.5 + 0.3 * sum(heights)), squeeze=False, sharex=True, height_ratios=heights)
    for axes, group, panel in zip(panels[:, 0], groups, tables):
        bars = [(d, way) for d in range(len(runs)) for way in WAYS if any(way in row for row in panel[d].values())]
        for k, (d, way) in enumerate(bars):
            found = [(i + 0.8 * (k + 0.5) / len(bars) - 0.4, panel[d][name][way]) for i, name in enumerate(panel[0]) if way in panel[d].get(name, {})]
            axes.barh(*zip(*found), height=0.8 / len(bars), color=colours[2 * d + (way != "clnn")], label=f"{runs[d]['platform']}, {WAYS[way]}")
        axes.set_yticks(range(len(panel[0])), panel[0])
        axes.margins(y=0.02)
        axes.invert_yaxis()
        axes.axvline(1, color="black", linewidth=0.8)
        axes.grid(axis="x", alpha=0.3)
        axes.set_title(group, loc="left", fontsize=10)
    panels[0, 0].legend(fontsize=8, loc="lower right")
    panels[-1, 0].set_xlabel("times as fast as PyTorch on the same processor (1: equally fast)")
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.chart", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--groups", default="training,models")
    parser.add_argument("--out", default="speed.png")
    args = parser.parse_args(argv)
    runs = []
    for name in args.files:
        with open(name) as file:
            runs.append(json.load(file))
    draw(runs, args.groups.split(","), args.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
