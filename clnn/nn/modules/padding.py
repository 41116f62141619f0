"""Padding of the last 1, 2 or 3 dimensions. The amounts are (left, right, top, bottom, front, back), or one int for all."""
from clnn.nn import functional as F

from ._chain import known
from .module import Module
from .utils import _ntuple

__all__ = [f"{kind}Pad{nd}d" for kind in ("Circular", "Constant", "Reflection", "Replication", "Zero") for nd in (1, 2, 3)]


class _PadNd(Module):
    """A negative amount cuts elements off."""

    _module_repr_fields = "=padding"
    _mode = None
    _nd = None

    def __init__(self, padding):
        super().__init__()
        self.padding = _ntuple(2 * self._nd)(padding)

    def forward(self, input):
        return F.pad(input, self.padding, self._mode)


class _ConstantPadNd(_PadNd):
    _module_repr_fields = "padding value"

    def __init__(self, padding, value):
        super().__init__(padding)
        self.value = value

    def forward(self, input):
        return F.pad(input, self.padding, "constant", self.value)


class _CircularPadNd(_PadNd):
    _mode = "circular"

    def forward(self, input):
        if input.dim() not in (self._nd + 1, self._nd + 2):
            raise ValueError(f"expected {self._nd + 1}D or {self._nd + 2}D input (got {input.dim()}D input)")
        return super().forward(input)


class _ReflectionPadNd(_PadNd):
    _mode = "reflect"


class _ReplicationPadNd(_PadNd):
    _mode = "replicate"


_ABOUT = {
    "Constant": (_ConstantPadNd, "Pad the last {nd} dimension(s) with ``value``."),
    "Zero": (None, "Pad the last {nd} dimension(s) with zeros."),
    "Reflection": (_ReflectionPadNd, "Pad the last {nd} dimension(s) with the reflection of the input at its edge."),
    "Replication": (_ReplicationPadNd, "Pad the last {nd} dimension(s) with copies of the edge."),
    "Circular": (_CircularPadNd, "Pad the last {nd} dimension(s) with the values of the opposite side."),
}


_DOC = """{about}

Args:
    padding: an int for all sides, or the amounts (left, right, ...).{value}

Example::

    >>> nn.{name}(1{argument})(clnn.zeros{size}).shape
    clnn.Size({padded})
"""


def _zero_init(self, padding):
    _ConstantPadNd.__init__(self, padding, 0.0)


def _define():
    for kind, (base, about) in _ABOUT.items():
        with_value = kind == "Constant"
        for nd in (1, 2, 3):
            name, size = f"{kind}Pad{nd}d", (1, 2) + (3,) * nd
            doc = _DOC.format(about=about.format(nd=nd), name=name, size=size, padded=[*size[:2], *[5] * nd],
                              argument=", 3.5" if with_value else "", value="\n    value: the number to fill in." if with_value else "")
            members = {"_nd": nd, "__doc__": doc, "__module__": __name__}
            if kind == "Zero":                                                  # a constant one, as isinstance shows
                members |= {"_module_repr_fields": "=padding", "__init__": _zero_init}
            made = type(name, (base or globals()[f"ConstantPad{nd}d"],), members)
            globals()[name] = known(settings="padding value" if kind in ("Constant", "Zero") else "padding")(made)


_define()
