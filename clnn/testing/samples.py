"""Sample calls for entries that carry none themselves: operators composed of others, views and reductions with plain arguments."""
from __future__ import annotations

import numpy as np


def _grid(*shape, low=-2.0, high=2.0, seed=0):
    """Distinct values, none near a multiple of one half."""
    n = int(np.prod(shape, dtype=int))
    x = np.random.default_rng(seed + n).permutation(np.linspace(low, high, n) + 0.013) if n else np.zeros(0)
    half = np.rint(2 * x) / 2
    return np.where(np.abs(x - half) < 0.02, x + 0.05, x).reshape(shape)


def _one(*variants):
    """Calls on one (3, 4, 5) array, or on the array given first."""
    def make():
        return [((_grid(3, 4, 5), *v[0]), v[1]) if not v[0] or not isinstance(v[0][0], np.ndarray) else v for v in variants]
    return make


def _calls(*variants):
    return lambda: list(variants)


def _a(*args, **kwargs):
    return args, kwargs


X, Y = _grid(3, 4, 5), _grid(3, 4, 5, seed=1)
P, Q = _grid(3, 4, 5, low=0.2, high=3.0), _grid(3, 4, 5, low=0.3, high=2.0, seed=1)
ROW = _grid(5, seed=2)
MASK = np.random.default_rng(3).integers(0, 2, (3, 4, 5)).astype(bool)
M45, M54, M44 = _grid(4, 5), _grid(5, 4), _grid(4, 4)
SPD = _grid(4, 4) @ _grid(4, 4).T + 4 * np.eye(4)
_REDUCE = _one(_a(), _a(1), _a(-1), _a(dim=0, keepdim=True), _a(dim=(0, 2)))
_REDUCE_ONE = _one(_a(), _a(1), _a(dim=-1, keepdim=True))
_BINARY = _calls(_a(X, Y), _a(X, ROW), _a(X, 0.7))
_POSITIVE2 = _calls(_a(P, Q), _a(P, 1.3))

EXTRA = {
    # arithmetic
    "add": _calls(_a(X, Y), _a(X, ROW), _a(X, 0.7), _a(X, Y, alpha=2)), "sub": _calls(_a(X, Y), _a(X, ROW), _a(X, 0.7), _a(X, Y, alpha=2)),
    "rsub": _BINARY, "div": _calls(_a(X, Q), _a(X, 0.7), _a(X, Q, rounding_mode="floor"), _a(X, Q, rounding_mode="trunc")),
    "pow": _calls(_a(P, Y), _a(P, 2), _a(P, 3), _a(P, 0.5), _a(P, -1), _a(P, 1.7), _a(P, 0)), "float_power": _POSITIVE2,
    "square": _one(_a()), "addcmul": _calls(_a(X, Y, ROW), _a(X, Y, P, value=2)), "addcdiv": _calls(_a(X, Y, Q), _a(X, Y, Q, value=0.5)),
    "lerp": _calls(_a(X, Y, 0.3), _a(X, Y, Q)), "clamp": _calls(_a(X, -0.7, 0.8), _a(X, min=-0.7), _a(X, max=0.8), _a(X, -Q, Q)),
    "clamp_min": _one(_a(0.2)), "clamp_max": _one(_a(0.2)), "logit": _calls(_a(_grid(3, 4, low=0.05, high=0.9)), _a(X, eps=0.1)),
    "positive": _one(_a()), "fix": _one(_a()), "round": _one(_a(), _a(decimals=1)), "nan_to_num": _one(_a()),
    "clone": _one(_a()),
    # choosing
    "where": _calls(_a(MASK, X, Y), _a(MASK, X, 0.5), _a(MASK, 1.5, Y)), "masked_fill": _calls(_a(X, MASK, 0.5), _a(X, MASK[0, 0], -1.0)),
    # shape
    "view": _one(_a(12, 5), _a(-1)), "reshape": _one(_a(12, 5), _a(-1, 2)), "view_as": _calls(_a(X, _grid(12, 5))),
    "reshape_as": _calls(_a(X, _grid(12, 5))), "permute": _calls(_a(X, (2, 0, 1))), "transpose": _one(_a(0, 2), _a(-1, -2)), "t": _calls(_a(M45)),
    "expand": _calls(_a(_grid(4, 1), (3, 4, 5)), _a(_grid(3, 1), (-1, 2))), "expand_as": _calls(_a(_grid(4, 1), X)),
    "squeeze": _calls(_a(_grid(3, 1, 5, 1)), _a(_grid(3, 1, 5, 1), 1), _a(_grid(3, 1, 5, 1), (1, 3))), "unsqueeze": _one(_a(0), _a(-1)),
    "flatten": _one(_a(), _a(1), _a(0, 1)), "unflatten": _calls(_a(X, 1, (2, 2))), "narrow": _one(_a(1, 1, 2)), "select": _one(_a(1, 2), _a(-1, -1)),
    "unfold": _one(_a(2, 3, 1), _a(1, 2, 2)), "diagonal": _one(_a(), _a(1, 0, 2)), "movedim": _one(_a(0, 2), _a((0, 1), (1, 2))),
    "moveaxis": _one(_a(0, 2)), "swapaxes": _one(_a(0, 1)), "swapdims": _one(_a(0, 1)), "unbind": _one(_a(), _a(1)),
    "split": _one(_a(2), _a([1, 3], 1)), "chunk": _one(_a(2), _a(3, 1)), "unsafe_split": _one(_a(2), _a(1, 1)), "unsafe_chunk": _one(_a(2), _a(3, 1)),
    "unsafe_split_with_sizes": _one(_a([1, 3], 1)), "tensor_split": _one(_a(2), _a((1, 3), 1)),
    "hsplit": _one(_a(2)), "vsplit": _calls(_a(M45, 2)), "dsplit": _calls(_a(_grid(2, 3, 4), 2)), "ravel": _one(_a()), "contiguous": _one(_a()),
    "broadcast_to": _calls(_a(ROW, (3, 5))), "adjoint": _calls(_a(M45)), "atleast_1d": _one(_a()), "atleast_2d": _calls(_a(ROW)),
    "atleast_3d": _calls(_a(M45)), "sum_to_size": _calls(_a(X, (4, 5)), _a(X, (3, 1, 5))), "slice": None,
    "cat": _calls(_a([X, Y]), _a([X, Y], 1), _a([X, _grid(3, 2, 5)], dim=1)), "stack": _calls(_a([X, Y]), _a([X, Y], -1)),
    "hstack": _calls(_a([X, Y])), "vstack": _calls(_a([X, Y])), "dstack": _calls(_a([X, Y])), "column_stack": _calls(_a([M45, M44])),
    "repeat": _calls(_a(M45, 2, 3)), "tile": _calls(_a(M45, (2, 3))), "flip": _one(_a((0, 2))), "fliplr": _calls(_a(M45)), "flipud": _calls(_a(M45)),
    "roll": _one(_a(2), _a((1, -2), (0, 2))), "rot90": _calls(_a(M45), _a(M45, 2, (1, 0))), "repeat_interleave": _one(_a(2), _a(2, dim=1)),
    "meshgrid": _calls(_a(ROW, _grid(3), indexing="ij")), "cartesian_prod": _calls(_a(ROW, _grid(3))), "block_diag": _calls(_a(M45, M44)),
    "tril": _one(_a(), _a(1)), "triu": _one(_a(), _a(-1)), "diag": _calls(_a(ROW), _a(M45), _a(M45, 1)), "diag_embed": _calls(_a(M45)),
    "broadcast_tensors": _calls(_a(X, ROW)), "diagflat": _calls(_a(ROW)), "squeeze_copy": None,
    # reductions
    "sum": _REDUCE, "mean": _REDUCE, "amax": _REDUCE, "amin": _REDUCE, "var": _REDUCE, "std": _REDUCE, "prod": _REDUCE_ONE, "logsumexp":
    _one(_a(1), _a((0, 2)), _a(-1, keepdim=True)), "max": _REDUCE_ONE, "min": _REDUCE_ONE, "argmax": _REDUCE_ONE, "argmin": _REDUCE_ONE,
    "any": _REDUCE_ONE, "all": _REDUCE_ONE, "nansum": _REDUCE, "nanmean": _REDUCE, "norm": _one(_a(), _a(1, 1), _a(2, (0, 1))),
    "cumsum": _one(_a(0), _a(-1)), "cumprod": _one(_a(1)), "aminmax": _one(_a(), _a(dim=1)), "var_mean": _one(_a(), _a(1)),
    "std_mean": _one(_a(), _a(1)), "median": _calls(_a(_grid(3, 7)), _a(_grid(3, 7), 1)), "count_nonzero": _one(_a(), _a(1)), "dist": _calls(_a(X, Y)),
    "logcumsumexp": _one(_a(1)), "cummax": _one(_a(1)), "cummin": _one(_a(1)), "trapezoid": _one(_a()), "diff": _one(_a(), _a(2, 1)),
    # products
    "mv": _calls(_a(M45, ROW)), "dot": _calls(_a(ROW, _grid(5, seed=9))), "vdot": _calls(_a(ROW, _grid(5, seed=9))),
    "inner": _calls(_a(M45, _grid(3, 5)), _a(ROW, ROW)), "outer": _calls(_a(ROW, _grid(3))), "ger": _calls(_a(ROW, _grid(3))),
    "linear": _calls(_a(M45, _grid(3, 5)), _a(X, _grid(2, 5), _grid(2)), _a(ROW, _grid(2, 5), _grid(2))),
    "addmm": _calls(_a(_grid(4), M45, M54), _a(M44, M45, M54, beta=3, alpha=2)), "addmv": _calls(_a(_grid(4), M45, ROW, beta=3, alpha=2)),
    "addr": _calls(_a(M45, _grid(4), ROW)), "baddbmm": _calls(_a(_grid(3, 4, 4), X, _grid(3, 5, 4), beta=3)),
    "addbmm": _calls(_a(M44, X, _grid(3, 5, 4), alpha=2)), "chain_matmul": _calls(_a(M45, M54, M44)), "kron": _calls(_a(M44, _grid(2, 3))),
    "tensordot": _calls(_a(X, Y, 3), _a(X, _grid(4, 3, 2), dims=([1, 0], [0, 1]))), "einsum": _calls(_a("ij,jk->ik", M45, M54),
    _a("bij,bij->b", X, Y), _a("ij->ji", M45)), "matrix_power": _calls(_a(M44, 3)), "trace": _calls(_a(M44)), "cross": _calls(_a(_grid(4, 3), _grid(4, 3, seed=7))),
    "cosine_similarity": _calls(_a(X, Y), _a(X, Y, dim=0)), "cdist": _calls(_a(M45, _grid(3, 5))), "det": _calls(_a(SPD)), "cholesky": _calls(_a(SPD)),
    "softmax": _one(_a(-1), _a(1)), "log_softmax": _one(_a(-1), _a(1)), "is_nonzero": None, "equal": _calls(_a(X, X), _a(X, Y)),
    "isclose": _calls(_a(X, X + 1e-9), _a(X, Y)), "allclose": _calls(_a(X, X + 1e-9), _a(X, Y)),
}
LOWER = np.tril(M44) + 3 * np.eye(4)
_IMAGE, _LINE, _CUBE = _grid(2, 3, 6, 6), _grid(2, 3, 8), _grid(1, 2, 4, 4, 4)
EXTRA |= {
    "angle": _one(_a()), "conj": _one(_a()), "conj_physical": _one(_a()), "real": _one(_a()), "resolve_conj": _one(_a()), "resolve_neg": _one(_a()),
    "sgn": _one(_a()), "isreal": _one(_a()),
    "ldexp": _calls(_a(X, np.arange(5))), "lcm": _calls(_a(np.arange(1, 7), np.array([4, 6, 9, 2, 10, 15]))), "logaddexp2": _calls(_a(X, Y), _a(X, ROW)),
    "frexp": _one(_a()),
    "fill": _one(_a(0.5)), "polygamma": _calls(_a(1, P), _a(0, P)), "cumulative_trapezoid": _calls(_a(M45), _a(M45, dx=0.5)),
    "as_strided": _calls(_a(M45, (2, 3), (5, 2)), _a(M45, (2, 3), (5, 2), 1)), "upsample_nearest": _calls(_a(_IMAGE, scale_factor=2)),
    "upsample": _calls(_a(_IMAGE, scale_factor=2)),
    "max_pool1d_with_indices": _calls(_a(_LINE, 2), _a(_LINE, 3, 2, 1)), "max_pool2d_with_indices": _calls(_a(_IMAGE, 2), _a(_IMAGE, 3, 2, 1)),
    "max_pool3d_with_indices": _calls(_a(_CUBE, 2)), "adaptive_max_pool1d_with_indices": _calls(_a(_LINE, 3)),
    "adaptive_max_pool2d_with_indices": _calls(_a(_IMAGE, (2, 3))), "adaptive_max_pool3d_with_indices": _calls(_a(_CUBE, 2)),
    "scaled_dot_product_attention": _calls(_a(_grid(2, 3, 6, 8), _grid(2, 3, 6, 8, seed=1), _grid(2, 3, 6, 8, seed=2)),
                                           _a(_grid(2, 3, 6, 8), _grid(2, 3, 6, 8, seed=1), _grid(2, 3, 6, 8, seed=2), is_causal=True),
                                           _a(_grid(1, 2, 5, 4), _grid(1, 2, 7, 4, seed=1), _grid(1, 2, 7, 4, seed=2), _grid(5, 7, seed=3))),
    "logdet": _calls(_a(SPD)), "cholesky_solve": _calls(_a(M45, np.linalg.cholesky(SPD))), "linalg_norm": _calls(_a(M45), _a(M45, 1), _a(ROW, 3)),
    "linalg_cond": _calls(_a(SPD)), "linalg_matrix_rank": _calls(_a(SPD)), "linalg_eigvalsh": _calls(_a(SPD)),
    "linalg_solve_triangular": _calls(_a(LOWER, M45, upper=False)),
}
EXTRA = {name: make for name, make in EXTRA.items() if make is not None}
