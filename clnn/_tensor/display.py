"""How tensors print: PyTorch's text, computed on the host from no more values than are shown."""
from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass, replace

import numpy as np

from ..core import dtype as dt


@dataclass
class PrintOptions:
    """What ``clnn.set_printoptions`` sets."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


OPTIONS = PrintOptions()
_PROFILES = {"default": PrintOptions(), "short": PrintOptions(precision=2, edgeitems=2), "full": PrintOptions(threshold=math.inf)}
UNNAMED = {"cpu"}       # types of devices that the text of a tensor leaves out


def set_printoptions(precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None):
    """How tensors are printed.

    Args:
        precision: digits after the point (4).
        threshold: tensors with more elements are summarised (1000).
        edgeitems: elements shown at each end of a summarised dimension (3).
        linewidth: characters per line (80).
        profile: ``default``, ``short`` or ``full``: starting values that the other arguments override.
        sci_mode: scientific notation always (True), never (False) or when numbers ask for it (None).

    Example:
        >>> clnn.set_printoptions(precision=2)
        >>> clnn.tensor([1.12345])
        tensor([1.12])
        >>> clnn.set_printoptions(profile="default")
    """
    if profile is not None:
        if profile not in _PROFILES:
            raise ValueError(f"set_printoptions: profile is one of {', '.join(_PROFILES)}; got {profile!r}")
        OPTIONS.__dict__.update(_PROFILES[profile].__dict__)
    given = dict(precision=precision, threshold=threshold, edgeitems=edgeitems, linewidth=linewidth)
    for name, value in given.items():
        if value is not None:
            setattr(OPTIONS, name, value)
    OPTIONS.sci_mode = sci_mode


def get_printoptions() -> dict:
    """The present settings of :func:`set_printoptions`."""
    return dict(OPTIONS.__dict__)


@contextlib.contextmanager
def printoptions(**kwargs):
    """:func:`set_printoptions` for the length of a ``with`` block."""
    before = replace(OPTIONS)
    set_printoptions(**kwargs)
    try:
        yield
    finally:
        OPTIONS.__dict__.update(before.__dict__)


# -- numbers --------------------------------------------------------------------------------------------------------------------

class Numbers:
    """One format for all numbers of a tensor: whole numbers (``1.``), fixed point (``1.2500``) or scientific (``1.2500e+10``)."""

    def __init__(self, values: np.ndarray):
        self.floating = values.dtype.kind == "f"
        self.whole, self.scientific, self.width = True, False, 1
        if not self.floating:
            self.width = max([1, *(len(str(v)) for v in values.ravel().tolist())])
            return
        shown = values[np.isfinite(values) & (values != 0)].astype(np.float64)
        if shown.size == 0:
            return
        size = np.abs(shown)
        low, high = float(size.min()), float(size.max())
        self.whole = bool((shown == np.ceil(shown)).all())
        self.scientific = high / low > 1000.0 or high > 1.0e8 or (not self.whole and low < 1.0e-4)
        if OPTIONS.sci_mode is not None:
            self.scientific = OPTIONS.sci_mode
        self.width = max([1, *(len(self._number(v)) for v in shown.tolist())])

    def _number(self, value) -> str:
        if self.scientific:
            return f"{value:.{OPTIONS.precision}e}"
        if self.whole:
            return f"{value:.0f}" + ("." if math.isfinite(value) else "")
        return f"{value:.{OPTIONS.precision}f}"

    def __call__(self, value) -> str:
        return (self._number(value) if self.floating else str(value)).rjust(self.width)


class ComplexNumbers:
    """Complex numbers: one format for the real parts and one for the imaginary parts, ``1.5000+2.0000j``."""

    floating = True

    def __init__(self, values: np.ndarray):
        self.real, self.imag = Numbers(values.real), Numbers(values.imag)
        self.width = self.real.width + self.imag.width + 1

    def __call__(self, value) -> str:
        imag = self.imag(value.imag).lstrip() + "j"
        return self.real(value.real) + ("" if imag[0] in "+-" else "+") + imag


# -- values ---------------------------------------------------------------------------------------------------------------------

def _edges(size: int) -> list:
    """The parts of a dimension that are shown, as (start, length)."""
    e = OPTIONS.edgeitems
    return [(0, e), (size - e, e)] if size > 2 * e else [(0, size)]


def _corners(t) -> np.ndarray:
    """The shown values of a summarised tensor; only these are copied from the device."""
    from .interop import read
    from .tensor import make_view
    t = t.detach()
    t._storage.buffer()

    def part(dim, start, lengths, offset):
        if dim == t.ndim:
            return read(make_view(t, tuple(lengths), t._strides, t._offset + offset))
        pieces = [part(dim + 1, start, (*lengths, n), offset + at * t._strides[dim]) for at, n in _edges(t.shape[dim])]
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces, axis=dim)
    return part(0, 0, (), 0)


def _row(values, size, number, indent) -> str:
    per_line = max(1, (OPTIONS.linewidth - indent) // (number.width + 2))
    words = [number(v) for v in values.tolist()]
    if len(words) < size or not words:
        words.insert(OPTIONS.edgeitems, " ..." if words else "...")
    lines = [", ".join(words[i:i + per_line]) for i in range(0, len(words), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _nested(values, shape, number, indent) -> str:
    """Brackets around rows; ``shape`` is that of the whole tensor, so that a shortened dimension shows as ``...``."""
    if not shape:
        return number(values.item())
    if len(shape) == 1:
        return _row(values, shape[0], number, indent)
    parts = [_nested(v, shape[1:], number, indent + 1) for v in values]
    if len(parts) < shape[0]:
        parts.insert(OPTIONS.edgeitems, "...")
    return "[" + ("," + "\n" * (len(shape) - 1) + " " * (indent + 1)).join(parts) + "]"


def contents(t, indent: int) -> str:
    """The bracketed numbers of a tensor whose first line starts in column ``indent``."""
    from .interop import read
    values = _corners(t) if t._numel > OPTIONS.threshold else read(t.detach())
    if values.dtype not in (np.float32, np.float64) and t.dtype.is_floating_point:
        values = values.astype(np.float32)
    return _nested(values, t.shape, (ComplexNumbers if t.dtype.is_complex else Numbers)(values), indent)


# -- the whole text -------------------------------------------------------------------------------------------------------------

dual_of = None              # forward_ad.unpack_dual while a level of forward differentiation is open


def _history(t) -> list:
    tangent = None if dual_of is None else dual_of(t).tangent
    if tangent is not None:
        return ([f"grad_fn=<{t.grad_fn.name().rpartition('::')[2]}>"] if tangent.requires_grad else []) + [f"tangent={tangent}"]
    try:
        fn = t.grad_fn
    except RuntimeError:                                         # of a view whose base was changed
        return ["grad_fn=<Invalid>"]
    if fn is not None:
        return [f"grad_fn=<{fn.name().rpartition('::')[2]}>"]
    return ["requires_grad=True"] if t.requires_grad else []


def _joined(text, suffixes, indent) -> str:
    """Suffixes after the numbers, on a new line where the present one is full."""
    used = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if used + len(suffix) + 2 > OPTIONS.linewidth:
            text += ",\n" + " " * indent + suffix
            used = indent + len(suffix)
        else:
            text += ", " + suffix
            used += len(suffix) + 2
    return text + ")"


def tensor_repr(t, tensor_contents=None) -> str:
    """The text of ``repr(t)``. Waits for the device."""
    from .tensor import Tensor
    plain = type(t) is Tensor or type(t).__name__ in ("Parameter", "Buffer")
    prefix = "tensor(" if plain else f"{type(t).__name__}("
    suffixes = [] if t.device.type in UNNAMED else [f"device='{t.device}'"]
    hidden = {dt.float_default()}
    if t.is_meta:
        suffixes.append(f"size={tuple(t.shape)}")
        text = "..."
    elif t._numel == 0:
        if t.ndim != 1:
            suffixes.append(f"size={tuple(t.shape)}")
        text = "[]"
    else:
        hidden |= {dt.int64, dt.bool_, dt.float_default().to_complex()}
        text = contents(t, len(prefix)) if tensor_contents is None else tensor_contents
        if not OPTIONS.edgeitems:
            suffixes.append(f"size={tuple(t.shape)}")
    if t.dtype not in hidden:
        suffixes.append(f"dtype={t.dtype}")
    text = _joined(prefix + (tensor_contents or text), suffixes + _history(t), len(prefix))
    return f"Parameter({text})" if not plain and "_is_param" in t._all else text
