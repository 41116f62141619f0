"""How sparse tensors print: PyTorch's text."""
from __future__ import annotations

from .._tensor import display
from ..core import dtype as dt
from ._tensor import COO, CSR


def _part(name, t, last):
    prefix = f"{name}=tensor("
    text = "..." if t.is_meta else "[]" if t._numel == 0 else display.contents(t, len("tensor(") + len(prefix))
    size = f", size={tuple(t.shape)}" if t._numel == 0 or t.is_meta else ""
    return prefix + text + size + (")" if last else "),\n" + " " * len("tensor("))


def sparse_repr(t) -> str:
    """The text of ``repr(t)``. Waits for the device."""
    if t.layout is COO:
        places = dict(indices=t._indices())
    elif t.layout is CSR:
        places = dict(crow_indices=t.crow_indices(), col_indices=t.col_indices())
    else:
        places = dict(ccol_indices=t.ccol_indices(), row_indices=t.row_indices())
    indent = len("tensor(")
    text = "tensor(" + "".join(_part(name, p, False) for name, p in places.items()) + _part("values", t._values(), True)
    suffixes = [] if t.device.type == "cpu" else [f"device='{t.device}'"]
    suffixes += [f"size={tuple(t.shape)}", f"nnz={t._nnz()}"]
    if t.dtype not in (dt.float_default(), dt.int64, dt.bool_, dt.float_default().to_complex()):
        suffixes.append(f"dtype={t.dtype}")
    suffixes.append(f"layout={t.layout}")
    suffixes += display._history(t)
    if t.layout is COO:
        text, suffixes = text + ",\n" + " " * indent + suffixes[0], suffixes[1:]
    return ("Parameter containing:\n" if "_is_param" in t.__dict__ else "") + display._joined(text, suffixes, indent)
