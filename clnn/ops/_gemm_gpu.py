"""Matrix products on GPUs: the tile of a work-group and the split of K, chosen by :mod:`clnn.ops._gemm_model`."""
from __future__ import annotations

from ..runtime.params import parameters_for
from . import _gemm_tensor
from ._gemm_model import GAIN, LAUNCH, ROUND, SHORTEST, SPLITS, Tile, fastest

# By name: work-group (LX, LY), elements of a work-item (TM, TN), steps of a block of K, groups that share a unit, cost of a multiply-add.
TILES = {"128x128": (16, 16, 8, 8, 16, 2, 1.2), "128x64": (8, 16, 8, 8, 16, 3, 1.25), "64x128": (16, 8, 8, 8, 16, 3, 1.25),
         "64x64": (8, 8, 8, 8, 16, 6, 1.35), "64x64/256": (16, 16, 4, 4, 16, 3, 2.0), "64x32": (8, 8, 8, 4, 16, 8, 1.7), "32x64": (8, 8, 4, 8, 16, 8, 1.7),
         "32x32": (8, 8, 4, 4, 32, 8, 2.2), "16x64": (8, 8, 2, 8, 16, 8, 2.5), "64x16": (8, 8, 8, 2, 16, 8, 2.5), "16x16": (8, 8, 2, 2, 16, 16, 5.0)}
SINGLE = {"4x4": (1, 1, 4, 4, 16, 16, 2.2), "2x2": (1, 1, 2, 2, 16, 16, 4.0)}       # for devices whose work-groups have a few work-items at most
_MULTIPLY = 1 / (128 * 1.9)     # ns of a multiply-add on a unit of 128 lanes at 1.9 GHz
_THIN = 4       # rows or columns of C up to which the matrix is read without blocks, in which most would be padding


def thin(device, p):
    """(the operand that is the matrix, whether its elements are neighbours along K, lines and steps of K in a work-group) where C is that thin, else None."""
    if min(p.M, p.N) > _THIN or p.table or device.max_work_group < 256:
        return None
    matrix, along, across = ("b", *p.b) if p.M <= p.N else ("a", *p.a[::-1])
    return (matrix, True, 4, 64) if abs(along) < abs(across) or max(p.M, p.N) <= 4 else (matrix, False, 32, 8)


def _thin_splits(device, p, lines: int) -> int:
    """A group brings 10 bytes per ns, as long as 4 of them share a unit."""
    groups, best = -(-max(p.M, p.N) // lines), None
    each = lines * p.K * max(p.ta.itemsize, p.tb.itemsize) / 10
    for S in SPLITS:
        if S > 1 and p.K < S * 4 * SHORTEST:
            break
        time = each / S * max(1.0, groups * S / (4 * device.compute_units)) + (LAUNCH + ROUND if S > 1 else 0)
        if best is None or time < best[0] * GAIN:
            best = time, S
    return best[1]


def _tiles(device, p) -> dict:
    """Rows of the table that the device can run, and whose sums fit registers."""
    size = p.tc.acc_dtype.itemsize
    table = TILES if device.max_work_group >= 64 else SINGLE
    return {name: row for name, row in table.items()
            if row[0] * row[1] <= device.max_work_group and row[2] * row[3] * size <= 256 and 4 * size * (row[0] * row[3] + row[1] * row[2] + 8) <= device.local_mem}


def _choice(device, p, K, parted):
    """(row of the table, steps of a block of K, parts of K)"""
    tuned = parameters_for(device, "gemm_gpu", f"{p.ta.name}/", p.M, p.N, p.K)
    rows = _tiles(device, p)
    if tuned.get("TILE") in rows:
        rows = {tuned["TILE"]: rows[tuned["TILE"]]}
    scale = p.tc.acc_dtype.itemsize / 4
    tiles = {name: Tile(LY * TM, LX * TN, LX * LY, groups, LY * TM * LX * TN * _MULTIPLY * cost * scale, 480 / BK)
             for name, (LX, LY, TM, TN, BK, groups, cost) in rows.items()}
    name, parts = fastest(device.compute_units, tiles, p, K, parted, min(tuned.get("SPLIT", 0), K // 16) if parted else 0)
    return rows[name], tuned.get("BK", rows[name][4]), parts


def splits(device, p) -> int:
    """Parts of K of a single product."""
    found = thin(device, p)
    if found:
        return _thin_splits(device, p, found[2])
    return _gemm_tensor.splits(device, p) or _choice(device, p, p.K, True)[2]


def plan(device, p, chunk):
    """(variant, parameters, global size, local size, words) of a product; ``chunk``: steps of K of a part, 0 for all."""
    z = p.batch[0] * p.batch[1]
    found = thin(device, p)
    if found:
        matrix, along, LI, LK = found
        lines = -(-max(p.M, p.N) // LI) * LI
        shape, local = ((LK, lines), (LK, LI)) if along else ((lines, LK), (LI, LK))
        return "matmul/thin", dict(P=matrix, R=min(p.M, p.N), ALONG=along, LI=LI, LK=LK), (*shape, z), (*local, 1), p.pack(0, 0, chunk)
    found = _gemm_tensor.plan(device, p, chunk)
    if found is not None:
        return found
    (LX, LY, TM, TN, *_), BK, _ = _choice(device, p, chunk or p.K, False)
    size = p.tc.acc_dtype.itemsize
    while BK * (LY * TM + LX * TN + 8) * size > min(device.local_mem, 49152) and BK > 4:
        BK //= 2
    (afast, awide), (bfast, bwide) = (_gemm_tensor.fast_index(ks, xs, p.K, X, t, [s[at] for s in p.steps], chunk)
                                      for ks, xs, X, t, at in ((p.a[1], p.a[0], p.M, p.ta, 0), (p.b[0], p.b[1], p.N, p.tb, 1)))
    near = (max(LY * TM, LX * TN) + BK) * max(abs(s) for s in (*p.a, *p.b)) < 1 << 31
    params = dict(LX=LX, LY=LY, TM=TM, TN=TN, BK=BK, AFAST=afast, BFAST=bfast, WIDE=awide and bwide and near and not p.table, TABLE=p.table == "b")
    gs = (-(-p.N // (LX * TN)) * LX, -(-p.M // (LY * TM)) * LY, z)
    return "matmul/gpu", params, gs, (LX, LY, 1), p.pack(0, 0, chunk)
