"""Launching matrix products: which kernel variant, which tile, which split, for raw buffers with strides.

A *plan* is everything that a product needs except its buffers. It is worked out once per problem and device and then costs a
dictionary look-up. No choice depends on timing, so two runs give equal bits.
"""
from __future__ import annotations

import struct
from bisect import bisect_right
from dataclasses import dataclass, field

from ..core import dtype as dt
from ..core import symbols
from ..core.config import config
from ..runtime.launch import launch
from ..runtime.params import on_change, parameters_for
from . import _gemm_gpu, _gemm_tensor, _gemm_warpgroup, _gemm_words

# Epilogues by name. "VT" stands for the type of v: such an expression is valid on vectors too.
EPILOGUES = {"": "", "relu": "(v < (VT)0) ? (VT)0 : v"}

_FMT = {"float": "<f", "double": "<d", "int": "<i", "long": "<q"}
_DIMS, _BATCH = struct.Struct("<16q"), struct.Struct("<8q")
_plans: dict = symbols.kept()
on_change(_plans.clear)


def scalar(acc: str, value) -> bytes:
    """``value`` packed as the C type ``acc``."""
    return struct.pack(_FMT[acc], int(value) if acc in ("int", "long") else float(value))


@dataclass(frozen=True)
class Problem:
    """One product C[z] = epilogue(alpha * A[z] @ B[z] + beta * C[z] + bias), without its buffers. Strides count elements."""
    ta: dt.dtype
    tb: dt.dtype
    tc: dt.dtype
    M: int
    N: int
    K: int
    a: tuple
    b: tuple
    rcs: int
    batch: tuple
    steps: tuple  # per batch dimension: strides of A, B, C
    alpha: float
    beta: float
    bias: str
    epilogue: str
    table: str = ""  # "a": row i of A starts at table[i], "b": column j of B does, instead of a multiple of a stride
    ccs: int = 1     # column stride of C, for products whose C is written by the kernel that adds partial sums
    add_batch: bool = False  # C is the sum over the first batch dimension
    tf32: bool = False       # float operands may be rounded to tf32
    aligned: bool = True     # operands begin at multiples of 16 bytes
    tail: int = 0            # where K counts words (see _gemm_words): the numbers in the last of them
    lanes: int = field(kw_only=True)    # elements in a vector of the device: more than it has registers for come out wrong on Intel's runtime

    @property
    def acc(self) -> str:
        return self.tc.acc

    def replace(self, **changes) -> "Problem":
        return Problem(**{name: getattr(self, name) for name in Problem.__dataclass_fields__} | changes)

    def finishing(self) -> dict:
        return dict(BIAS=self.bias, BETA=self.beta != 0, EPI=self.epilogue)

    def pack(self, MB=0, NB=0, chunk=0, KB=0):
        """The shape words that every kernel of the family takes (see the templates for who reads which)."""
        (s0, s1), (_, b1) = self.steps, self.batch
        dims = symbols.call(_DIMS.pack, self.M, self.N, self.K, *self.a, *self.b, self.rcs, MB, chunk, NB, KB, 0, 0, 0, 0)
        return dims, symbols.call(_BATCH.pack, max(b1, 1), *s0, *s1, 0)


class Plan:
    """Kernel and launch geometry of a problem on a device; ``run`` binds the buffers."""

    def __init__(self, device, p: Problem, turned=False):
        self.device, self.problem, self.turned = device, p, turned      # turned: the caller's A and B are given to ``run`` as B and A
        self.scratch, self.other = 0, None      # other: the plan for operands that are not aligned, where this one's kernel needs it
        self.before, self.reduce = dict(a=[], b=[]), None       # passes over A and over B, each over what the one before it wrote
        if device.is_cpu:
            p = _gemm_words.prepare(self, p) if _gemm_words.suits(device, p) else self._prepare(p)
        else:
            p = _gemm_warpgroup.prepare(self, p)
        p = self._partial(p) if self._needs_partial(p) else p
        variant, params, self.gs, self.ls, words = (_plan_cpu if device.is_cpu else _gemm_gpu.plan)(device, p, self.chunk)
        if params.get("ASTEP") == "panel":
            self._panel_a(p, params["MR"])
        self.kernel = device.kernel(variant, TA=p.ta, TB=p.tb, TC=p.tc, **params, **p.finishing())
        # Kernels of wide loads need operands at multiples of 16 bytes; for others there is one of the same geometry with narrow loads, or another plan.
        self.only_aligned, narrow = variant == "matmul/warpgroup", _gemm_tensor.narrow(variant, params)
        self.even = 16 // min(p.ta.itemsize, p.tb.itemsize) - 1 if self.only_aligned or narrow != (variant, params) else 0
        self.narrow = (narrow[0], dict(TA=p.ta, TB=p.tb, TC=p.tc, **narrow[1], **p.finishing()))
        self.words = words + (scalar(p.acc, p.alpha), scalar(p.acc, p.beta))

    # ---- steps around the product -------------------------------------------------------------------------------------------

    def _prepare(self, p):
        """Copy an operand first where that pays, in the compute type."""
        if p.ta.c != p.ta.acc and not _use_dot(p) and not _gemv_mode(p):
            # The tile broadcasts A as it is stored. It is copied in the order it lies in memory.
            columns = p.a[0] == 1 and p.a[1] != 1
            steps = self._copied("a", p.ta, *((p.K, p.M, p.a[::-1]) if columns else (p.M, p.K, p.a)), p)
            p = p.replace(ta=p.ta.acc_dtype, a=(1, p.M) if columns else (p.K, 1), steps=steps)
        if not p.table and p.a[1] == 1 and p.b[0] != 1 and p.N <= _DOT_MOST and p.M >= 32 and p.K >= 64 and p.M > 4 * p.N:
            # A few columns side by side would leave most lanes of the tile empty: each is laid out as a row.
            turned = p.replace(tb=p.tb.acc_dtype, b=(1, p.K))
            if _use_dot(turned) or _gemv_mode(turned):
                p = turned.replace(steps=self._copied("b", p.tb, p.N, p.K, p.b[::-1], p))
        return p

    def _copied(self, which, T, rows, columns, strides, p):
        """Note that an operand is copied row by row before the product; the steps of all operands from then on."""
        at, (s0, s1), (b0, b1) = "ab".index(which), p.steps, p.batch
        own = (s0[at], s1[at])
        if own == (0, 0):       # one matrix for all products
            b0 = b1 = 1
        across, down, each = _strips(rows, columns)
        self.note(which, self.device.kernel("matmul/convert", T=T, W=p.lanes, CHUNK=_CHUNK), (across, down, b0 * b1),
                  (rows, 0, columns, *strides, 0, 0, 0, 0, each), (b1, own[0], 0, 0, own[1]), rows * columns * b0 * b1 * T.acc_dtype.itemsize)
        flat = rows * columns
        new = (0, 0) if own == (0, 0) else (flat * b1, flat)
        return tuple(s[:at] + (n,) + s[at + 1:] for s, n in zip(p.steps, new))

    def _panel_a(self, p, MR):
        """Lay a column-major A out in panels first: a walk along K through its columns would miss the caches at each step."""
        (s0, s1), (b0, b1) = p.steps, p.batch
        self.note("a", self.device.kernel("matmul/panels", T=p.ta, MR=MR, STEPS=16), (-(-p.K // 16), 1, b0 * b1), (p.M, 0, p.K, *p.a),
                  (b1, s0[0], 0, 0, s1[0]), -(-p.M // MR) * MR * p.K * b0 * b1 * p.ta.itemsize)

    def note(self, which, kernel, gs, dims, batch, nbytes, ls=(1, 1, 1)):
        """A pass over operand ``which`` before the product, into a buffer of its own; ``dims`` and ``batch`` are filled up with zeros."""
        self.before[which].append((kernel, gs, ls, symbols.call(_DIMS.pack, *dims, *[0] * (16 - len(dims))),
                                   symbols.call(_BATCH.pack, *batch, *[0] * (8 - len(batch))), nbytes))

    chunk = 0

    def _needs_partial(self, p) -> bool:
        """Split K where C has too few tiles to fill the device; sum in the compute type where a 16-bit C would be read back."""
        self.splits = 1
        if p.add_batch:
            self.splits = p.batch[0]
            return True
        if p.batch == (1, 1):
            self.splits = self._splits(p)
        if self.splits > 1:
            self.chunk = -(-(-(-p.K // self.splits)) // 16) * 16
            self.splits = -(-p.K // self.chunk)
            return True
        return p.ccs != 1 or (self.device.is_cpu and p.tc.c != p.acc and p.K > _most_steps(self.device, p, 4)
                              and not (_use_dot(p) or _gemv_mode(p)))

    def _splits(self, p) -> int:
        if not self.device.is_cpu:
            return _gemm_gpu.splits(self.device, p)
        units, mode = self.device.compute_units, _gemv_mode(p)
        if mode:
            return _gemv_splits(units, mode, max(p.M, p.N), p.K)
        if _use_dot(p):
            return 1
        return _tiled_splits(units, p.M, p.N, p.K)

    def _partial(self, p):
        """Redirect the product into partial sums; what belongs to the end moves to the kernel that adds them up."""
        if self.splits == 1 and p.batch != (1, 1) and not p.add_batch:
            return self._partial_batched(p)
        acc = p.tc.acc_dtype
        self.scratch = self.splits * p.M * p.N * acc.itemsize
        self.reduce = [(*adding(self.device, p.tc, p.M, p.N, self.splits, (p.rcs, p.ccs), **p.finishing()),
                        scalar(p.acc, p.alpha), scalar(p.acc, p.beta), 0, 0)]
        walk = p.steps[0][:2] if p.add_batch else (self.chunk * p.a[1], self.chunk * p.b[0])
        return p.replace(tc=acc, rcs=p.N, ccs=1, batch=(self.splits, 1), alpha=1.0, beta=0.0, bias="", epilogue="", add_batch=False,
                        steps=((*walk, p.M * p.N), (0, 0, 0)))

    def _partial_batched(self, p):
        acc, (b0, b1), size = p.tc.acc_dtype, p.batch, p.M * p.N
        self.scratch = b0 * b1 * size * acc.itemsize
        add = adding(self.device, p.tc, p.M, p.N, 1, (p.rcs, p.ccs), **p.finishing())
        ends = (scalar(p.acc, p.alpha), scalar(p.acc, p.beta))
        self.reduce = [(*add, *ends, (i * b1 + j) * size, i * p.steps[0][2] + j * p.steps[1][2])
                       for i in range(b0) for j in range(b1)]
        (s0, s1) = p.steps
        return p.replace(tc=acc, rcs=p.N, ccs=1, alpha=1.0, beta=0.0, bias="", epilogue="",
                        steps=((s0[0], s0[1], size * b1), (s1[0], s1[1], size)))

    def run(self, A, a_off, B, b_off, C, c_off, bias=None, bias_off=0, *table):
        device = self.device
        if self.only_aligned and (a_off | b_off) & self.even:
            if self.other is None:
                self.other = Plan(device, self.problem.replace(aligned=False))
            return self.other.run(A, a_off, B, b_off, C, c_off, bias, bias_off, *table)
        for kernel, gs, ls, dims, batch, nbytes in self.before["a"]:
            laid_out = device.alloc(nbytes)
            launch(device, kernel, gs, ls, A, a_off, laid_out, 0, dims, batch)
            A, a_off = laid_out, 0
        for kernel, gs, ls, dims, batch, nbytes in self.before["b"]:
            laid_out = device.alloc(nbytes)
            launch(device, kernel, gs, ls, B, b_off, laid_out, 0, dims, batch)
            B, b_off = laid_out, 0
        product = self.kernel
        if self.even and (a_off | b_off) & self.even:
            product = device.kernel(self.narrow[0], **self.narrow[1])
        if self.reduce is None:
            launch(device, product, self.gs, self.ls, A, a_off, B, b_off, C, c_off, C if bias is None else bias, bias_off, *self.words, *table)
            return
        part = device.alloc(self.scratch)
        launch(device, product, self.gs, self.ls, A, a_off, B, b_off, part, 0, part, 0, *self.words, *table)
        for kernel, gs, ls, dims, alpha, beta, p_off, c_add in self.reduce:
            launch(device, kernel, gs, ls, part, p_off, C, c_off + c_add, C if bias is None else bias, bias_off, dims, alpha, beta)


_CHUNK = 4096  # elements that a work-item of a CPU passes over, about


def _strips(rows: int, columns: int):
    """(groups across, groups down, rows per group) of a pass over a matrix in pieces of about _CHUNK elements."""
    each = max(1, _CHUNK // max(1, columns))
    return -(-columns // _CHUNK), -(-rows // each), each


def adding(device, tc, M, N, parts, strides, BIAS="", BETA=False, EPI=""):
    """(kernel, global size, local size, shape words) of ``matmul/sum``, which adds ``parts`` partial results into C with these strides."""
    across, down, rows = _strips(M, N) if device.is_cpu else (N, M, 0)
    W = device.lanes(tc.acc) if device.is_cpu else 1
    kernel = device.kernel("matmul/sum", TC=tc, BIAS=BIAS, BETA=BETA, EPI=EPI, W=W, CHUNK=_CHUNK)
    dims = symbols.call(_DIMS.pack, M, N, parts, 0, 0, 0, 0, *strides, rows, *[0] * 6)
    return kernel, (across, down), (1, 1) if device.is_cpu else None, dims


# ---- choices -----------------------------------------------------------------------------------------------------------------

_DOT_MOST = 8       # rows or columns that are better summed one by one than packed, whatever the other sizes


def _use_dot(p) -> bool:
    """Both operands contiguous along K, for a vector at least, and few rows or columns to share a packed panel among."""
    if p.table:
        return p.table == "b" and p.M <= 4
    if p.a[1] != 1 or p.b[0] != 1 or p.K < p.lanes:
        return False
    return _dot_pays(p.M, p.N, p.K)


@symbols.choice
def _dot_pays(M, N, K) -> bool:
    few = min(M, N)
    return few <= 4 or few <= _DOT_MOST and K >= 32 or M <= 16 and K >= 160 or K >= 192 and (M <= 64 or M <= 96 and K <= 2048) or N <= 12 and K >= 2048


@symbols.choice
def _tiled_splits(units, M, N, K) -> int:
    tiles = -(-N // 64) * max(1, M // 256)
    return max(1, min(-(-2 * units // tiles), K // 2048)) if tiles < 2 * units else 1


@symbols.choice
def _gemv_splits(units, mode, n, K) -> int:
    blocks, shortest = (n // 4, 8192) if mode == "rows" else (n // _GEMV_COLUMNS, 2048)
    return max(1, min(-(-2 * units // max(1, blocks)), K // shortest)) if blocks < units else 1


_GEMV_COLUMNS = 512     # of a matrix that a work-item takes at least: shorter runs of a row are read more slowly
_GEMV_ROWS = 4


def _gemv_mode(p) -> str:
    """How ``matmul/gemv`` reads the matrix of a product with a vector, or a few: by its rows, by its columns; "" where it is none or neither lies in a row."""
    if p.table or p.M > _GEMV_ROWS and p.N > 1:
        return ""
    if p.M > 1 and p.N > 1:
        return "cols" if p.b[1] == 1 and p.N >= _GEMV_COLUMNS else ""
    (along, across), vector = ((p.b[0], p.b[1]), p.a[1]) if p.M == 1 else ((p.a[1], p.a[0]), p.b[0])
    if along == 1 and vector == 1:
        return "rows"
    return "cols" if p.M == 1 and across == 1 and p.N >= _GEMV_COLUMNS else ""


# Rows, vectors, relative cost of an element, by the bytes of vector registers that a tile needs (32 of 64 bytes, 16 of 32, 16 of 16).
_TILES = {2048: ((6, 4, 1.0), (8, 3, 1.03), (8, 2, 1.06), (12, 2, 1.08), (24, 1, 1.3)),
          512: ((4, 3, 1.0), (6, 2, 1.06), (5, 2, 1.08), (4, 2, 1.08), (8, 1, 1.8)),
          0: ((3, 2, 1.0), (6, 1, 1.0), (4, 1, 1.06))}
_ROWS = (1, 2, 3, 4, 5, 6, 8, 12, 24)


def _rows_within(most: int) -> int:
    return _ROWS[bisect_right(_ROWS, most) - 1]


@symbols.choice
def cpu_tile(device, M: int, N: int, W: int, direct: bool = False):
    """(MR, NV): the register tile that wastes least of an M x N result; direct tiles must fit into N."""
    best = None
    for MR, NV, cost in next(tiles for registers, tiles in _TILES.items() if registers <= device.registers):
        if direct and NV * W > N:
            continue
        rows = _rows_within(min(MR, M))
        total = -(-M // rows) * max(rows, 2) * -(-N // (NV * W)) * NV * cost
        if best is None or total < best[0]:
            best = (total, rows, NV)
    return best and best[1:]


def small_tile(M: int):
    """(MR, NV) for up to :data:`SMALL` multiply-adds."""
    return max(r for r in (1, 2, 4) if r <= M), 1


def tuned_tile(row: dict, M: int, MR: int, NV: int):
    """The register tile of a tuned row, with no more rows than the result has."""
    return _rows_within(min(row.get("MR", MR), M)), row.get("NV", NV)


@symbols.computed
def cpu_rows(M: int, panels: int, MR: int, units: int, pack_cost: float):
    """Rows per work-item: the split of M that evens out the units without packing panels again too often.

    Half an item more than its share of them is what a unit waits for the others at the end, as none runs undisturbed.
    """
    best, MB = None, 0
    for parts in range(1, 17):
        if MB == MR:                        # more parts are no smaller
            break
        MB = -(-(-(-M // parts)) // MR) * MR
        items = panels * -(-M // MB)
        total = (-(-items // units) + 0.5) * (min(MB, M) + pack_cost)
        if best is None or total < best[0] * 0.97:
            best = (total, MB)
    return best[1]


def _most_steps(device, p, NV, rows=0) -> int:
    """Steps of K whose packed panel (and rows of A) fit local memory, at most 768 or 512 (so that a panel stays in the second cache)."""
    size = (NV * p.lanes + rows) * p.tc.acc_dtype.itemsize
    return max(16, min(768 if device.wide else 512, device.local_mem * (7 if rows else 6) // 8 // size // 16 * 16))


@symbols.computed
def even_steps(K: int, most: int) -> int:
    """Steps per block so that the blocks of K are even: a short last block would pay for its pass over C alone."""
    blocks = max(1, -(-K // most))
    return -(-(-(-K // blocks)) // 16) * 16 or 16


_TINY = 8192        # multiply-adds, and
_TINY_MOVED = 640   # elements of both operands, up to which a product costs less than its launch whatever kernel computes it
SMALL = 40000       # multiply-adds up to which few register tiles are told apart


def _plan_gemv(p, mode, units, z, chunk):
    W = p.lanes
    matrix, size = ("a", p.M) if p.N == 1 < p.M else ("b", p.N)
    least = W if mode == "rows" else max(_GEMV_COLUMNS, min(2 * _GEMV_COLUMNS, size // units))
    MB = max(least, -(-(-(-size // max(1, 2 * units // z))) // W) * W)
    return "matmul/gemv", dict(W=W, P=matrix, MODE=mode, MR=p.M if mode == "cols" else 1), (-(-size // MB), 1, z), (1, 1, 1), p.pack(MB, 0, chunk)


def _plan_dot(device, p, z, chunk):
    W, tasks = p.lanes, max(1, 2 * device.compute_units // z)
    DM = 2 if p.acc in ("double", "long") else {"pocl": 2}.get(device.flavour, 4)
    DM = W // 2 if p.N <= 2 else 2 if p.M <= 2 else DM
    DN = W // DM
    NB = max(DN, min(64, -(-(-(-p.N // tasks)) // DN) * DN))
    MB = max(DM, -(-(-(-p.M // tasks)) // DM) * DM) if p.N <= NB else p.M
    return "matmul/dot", dict(W=W, DM=DM, DN=DN, TABLE=p.table == "b"), (-(-p.N // NB), -(-p.M // MB), z), (1, 1, 1), p.pack(MB, NB, chunk)


def _plan_cpu(device, p, chunk):
    W, units = p.lanes, device.compute_units
    z = p.batch[0] * p.batch[1]
    work = p.M * p.N * p.K * z
    if not p.table and p.ta.c == p.ta.acc and work <= _TINY and (p.M + p.N) * p.K * z <= _TINY_MOVED:
        # One kernel for all of them, whatever their sizes and strides: to build another would cost a program more than it ever saved.
        return ("matmul/cpu", dict(W=W, NV=1, MR=4, KB=256, MODE="any", ASTEP="any", GROUP=4), (-(-p.N // W), 1, z), (1, 1, 1),
                p.pack(-(-p.M // 4) * 4, 0, chunk, 256))
    if p.tail:
        return _gemm_words.plan(device, p, chunk, _words_tile)
    mode = _gemv_mode(p)
    if mode:
        return _plan_gemv(p, mode, units, z, chunk)
    if _use_dot(p):
        return _plan_dot(device, p, z, chunk)
    # With more rows a panel of B is worth packing: as it lies, its rows are far apart and share few sets of the caches.
    direct = p.table != "b" and p.b[1] == 1 and p.N >= W and (p.M <= 24 or p.M <= 96 and p.K * p.N <= 1 << 16)
    MR, NV = cpu_tile(device, p.M, p.N, W, direct) if work > SMALL else small_tile(p.M)
    row = parameters_for(device, "gemm", f"{p.ta.name}/", p.M, p.N, p.K)
    if row and not (direct and row.get("NV", NV) * W > p.N):
        MR, NV = tuned_tile(row, p.M, MR, NV)
    mode = "table" if p.table == "b" else "direct" if direct else "rows" if p.b[1] == 1 else "cols" if p.b[0] == 1 else "any"
    panels = -(-p.N // (NV * W))
    MB = cpu_rows(p.M, panels * z, MR, units, {"direct": 0.5, "rows": 4, "cols": 16, "any": 40, "table": 16}[mode])
    step = "table" if p.table == "a" else "k" if p.a[1] == 1 else "any" if p.a[0] != 1 else "m"
    pages = p.a[1] * p.ta.itemsize >= 4096
    if step == "m" and (pages or panels > 8) and p.K >= 128 and p.M * p.K >= 1 << 16:
        # A walk along K through many columns, or a page per step: lay A out in panels where several panels of B use it, else once per group of tiles.
        step = "panel" if panels > 1 and not chunk else "pack" if pages else "m"
    group = max(1, 48 // MR) if step in ("any", "pack") else 0
    most = min(_most_steps(device, p, NV, group * MR), row.get("KB", 768))
    params = dict(W=W, NV=NV, MR=MR, KB=most, MODE=mode, ASTEP=step, GROUP=group)
    if step == "panel":
        flat, (s0, s1) = -(-p.M // MR) * MR * p.K, p.steps
        p = p.replace(steps=((flat * p.batch[1], *s0[1:]), (flat, *s1[1:])))
    return "matmul/cpu", params, (panels, -(-p.M // MB), z), (1, 1, 1), p.pack(MB, 0, chunk, even_steps(chunk or p.K, most))


def _words_tile(device, p, chunk, mode):
    """(MR, NV, rows per work-item, words per block, most of them) of a product in words."""
    row = parameters_for(device, "gemm", f"{p.ta.name}/", p.M, p.N, p.K)
    MR, NV = tuned_tile(row, p.M, *cpu_tile(device, p.M, p.N, p.lanes))
    MB = cpu_rows(p.M, -(-p.N // (NV * p.lanes)) * p.batch[0] * p.batch[1], MR, device.compute_units, {"rows": 6, "cols": 16, "any": 80}[mode])
    most = min(_most_steps(device, p, NV), row.get("KB", 768))
    return MR, NV, MB, even_steps(chunk or p.K, most), most


# ---- the entry -----------------------------------------------------------------------------------------------------------------

def gemm(device, dtype, M, N, K, A, a_off, a_strides, B, b_off, b_strides, C, c_off, rcs, batch=1, batch_strides=(0, 0, 0),
         alpha=1.0, beta=0.0, bias=None, bias_axis="n", epilogue="", out_dtype=None):
    """Enqueue C[z] = epilogue(alpha * A[z] @ B[z] + beta * C[z] + bias) on raw buffers.

    Args:
        dtype: of A and B, or a pair (A's, B's) of one compute type. ``out_dtype``: of C and bias (default: A's).
        A, a_off, a_strides: buffer, element offset, (row stride, column stride) of the (M, K) operand; likewise B (K, N).
        C, c_off, rcs: result; its columns have unit stride, its rows lie ``rcs`` (a number, or a 1-tuple) elements apart.
        batch: a number, or a pair for two batch dimensions; ``batch_strides``: (of A, of B, of C), or a pair of such triples.
            A stride of 0 repeats an operand.
        alpha, beta: scalars of the compute type (any numbers; integers for integer products).
        bias: (buffer, offset) of N values (``bias_axis='n'``) or M values (``'m'``), or None.
        epilogue: a name in :data:`EPILOGUES`, or a C expression in ``v``.
    """
    if M == 0 or N == 0:
        return
    rcs = rcs[0] if type(rcs) is tuple else rcs
    if N == 1 and rcs == 1 and M > 1 and a_strides[0] == 1 and a_strides[1] != 1:
        # A column of a column-major A: as the row C.T = B.T @ A.T it streams A by rows.
        dtype = dtype[::-1] if type(dtype) is tuple else dtype
        turned = tuple((s[1], s[0], s[2]) for s in batch_strides) if type(batch) is tuple else (batch_strides[1], batch_strides[0], batch_strides[2])
        return gemm(device, dtype, 1, M, K, B, b_off, b_strides[::-1], A, a_off, a_strides[::-1], C, c_off, M, batch, turned,
                    alpha, beta, bias, "m" if bias_axis == "n" else "n", epilogue, out_dtype)
    key = (device, dtype, out_dtype, M, N, K, a_strides, b_strides, rcs, batch, batch_strides, alpha, beta,
           bias_axis if bias is not None else "", epilogue, config.matmul_precision, config.tensor_cores)
    plan = _plans.get(key)
    if plan is None:
        plan = _make(*key)
        if plan is None:
            return
        if len(_plans) > 8192:
            _plans.clear()
        _plans[key] = plan
    if plan.turned:
        A, a_off, B, b_off = B, b_off, A, a_off
    if bias is None:
        plan.run(A, a_off, B, b_off, C, c_off)
    else:
        plan.run(A, a_off, B, b_off, C, c_off, *bias)


def _make(device, dtype, out_dtype, M, N, K, a, b, rcs, batch, steps, alpha, beta, bias, epilogue, precision="highest", tensor_cores="auto"):
    ta, tb = dtype if type(dtype) is tuple else (dtype, dtype)
    tc = out_dtype or ta
    if ta.acc != tb.acc:                                         # as under autocast, which leaves doubles alone
        raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {dt.IN_C.get(ta.name, ta.name)} != {dt.IN_C.get(tb.name, tb.name)} (matmul)")
    if ta.acc != tc.acc:
        raise TypeError(f"matmul: {ta}, {tb} and {tc} are not computed in one type")
    if type(batch) is not tuple:
        batch, steps = (1, batch), ((0, 0, 0), tuple(steps))
    if 0 in batch:
        return None
    # The stride of a dimension of one element says nothing: choose the one that opens the fast variants.
    (ras, cas), (rbs, cbs) = a, b
    cas = 1 if K == 1 else cas
    rbs = 1 if K == 1 and cbs != 1 else rbs
    cbs = 1 if N == 1 and rbs != 1 else cbs
    ras = 1 if M == 1 and cas != 1 else ras
    ccs, turned = 1, device.is_cpu and ras == 1 != cas and 1 < N <= 16 and M > 4 * N and K >= 64 and batch == (1, 1)
    if turned:      # few columns of a column-major A: as C.T = B.T @ A.T it streams A by rows
        M, N, ta, tb, (ras, cas), (rbs, cbs) = N, M, tb, ta, (cbs, rbs), (cas, ras)
        rcs, ccs, steps, bias = 1, rcs, tuple((s[1], s[0], s[2]) for s in steps), {"n": "m", "m": "n"}.get(bias, "")
    return Plan(device, Problem(ta, tb, tc, M, N, K, (ras, cas), (rbs, cbs), rcs, batch, tuple(map(tuple, steps)), alpha, beta, bias,
                                EPILOGUES.get(epilogue, epilogue), ccs=ccs, tf32=precision != "highest", lanes=device.lanes(tc.acc)), turned)
