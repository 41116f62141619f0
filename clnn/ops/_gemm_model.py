"""How long a matrix product takes on a GPU with blocks of one size and so many parts of K: a model, from which both are chosen.

A unit of the device works on several groups at a time; so many more than it holds wait for the next round. In a round a group's step of K costs
its multiply-adds, and what nothing hides when few groups share the unit: barriers and the way of the operands. The numbers are nanoseconds on a unit
of an NVIDIA H200; only their ratios matter, and the price of a launch.
"""
from __future__ import annotations

from typing import NamedTuple


class Tile(NamedTuple):
    """What the model knows of a block of C: rows, columns, work-items, groups that share a unit, ns per step and ns that a step alone waits besides."""
    rows: int
    columns: int
    items: int
    groups: int
    work: float
    lag: float


_BUSY = 192                     # work-items that keep all lanes of a unit at work
ROUND = 1500                   # ns from a group's start to its first step, and from its last step to its end
LAUNCH = 6000                  # ns of a launch
_MOVED = 20                     # bytes that a unit moves per ns
SPLITS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
SHORTEST = 64                  # steps of K of a part at least
GAIN = 0.9                     # of the time that more parts may take: they need memory, too


def duration(units: int, tile: Tile, blocks: int, K: int) -> float:
    """ns of so many blocks of K steps."""
    def steps(groups):
        return ROUND + K * (groups * tile.work * max(1.0, _BUSY / (groups * tile.items)) + tile.lag / groups)
    rounds, rest = divmod(-(-blocks // units), tile.groups)
    return rounds * steps(tile.groups) + (steps(rest) if rest else 0)


def fastest(units: int, tiles: dict, p, K: int, parted: bool, parts=0):
    """(name of a tile, parts of K) that take the least time; one part unless ``parted``, ``parts`` of them where that is not 0."""
    best, z = None, p.batch[0] * p.batch[1]
    for S in (parts,) if parts else SPLITS if parted else (1,):
        if S > 1 and not parts and K < S * SHORTEST:
            break
        moved = 2 * S * p.M * p.N * p.tc.acc_dtype.itemsize
        end = LAUNCH + ROUND + moved / (_MOVED * units) if S > 1 else 0
        for name, tile in tiles.items():
            blocks = -(-p.M // tile.rows) * -(-p.N // tile.columns) * z * S
            time = end + duration(units, tile, blocks, -(-K // S))
            if best is None or time < best[0] * (GAIN if S > best[2] else 1):
                best = time, name, S
    return best and best[1:]
