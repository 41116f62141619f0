"""Result classes of operators that return several tensors, by operator name: ``clnn.return_types.sort``."""
from __future__ import annotations

from ._tensor.return_types import _made, named

_FIELDS = {
    "values indices": "sort topk kthvalue median nanmedian mode max min cummax cummin", "min max": "aminmax", "mantissa exponent": "frexp", "a tau": "geqrf",
    "hist bin_edges": "histogram histogramdd", "L info": "linalg_cholesky_ex", "eigenvalues eigenvectors": "linalg_eig linalg_eigh",
    "inverse info": "linalg_inv_ex", "solution residuals rank singular_values": "linalg_lstsq", "P L U": "linalg_lu lu_unpack",
    "LU pivots": "linalg_lu_factor", "LU pivots info": "linalg_lu_factor_ex", "Q R": "linalg_qr qr", "sign logabsdet": "linalg_slogdet slogdet",
    "result info": "linalg_solve_ex", "U S Vh": "linalg_svd", "U S V": "svd", "solution cloned_coefficient": "triangular_solve",
}
for _fields, _names in _FIELDS.items():
    for _name in _names.split():
        named(_name, *_fields.split())


def __getattr__(name):
    base = _made.get(name.removesuffix("_out"))
    if base is None:
        raise AttributeError(f"module 'clnn.return_types' has no attribute {name!r}")
    return named(name, *base._fields)


def __dir__():
    return sorted(_made)
