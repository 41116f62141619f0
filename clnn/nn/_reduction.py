"""How losses name their reductions, as programs with losses of their own import it."""
import warnings

_NUMBERS = {"none": 0, "mean": 1, "elementwise_mean": 1, "sum": 2}


def get_enum(reduction: str) -> int:
    """The number of a reduction: 0 for ``"none"``, 1 for ``"mean"``, 2 for ``"sum"``."""
    if reduction not in _NUMBERS:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if reduction == "elementwise_mean":
        warnings.warn("reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.", stacklevel=2)
    return _NUMBERS[reduction]


def legacy_get_string(size_average, reduce, emit_warning=True) -> str:
    """The reduction that the older arguments ``size_average`` and ``reduce`` mean."""
    size_average, reduce = size_average is None or size_average, reduce is None or reduce
    got = "none" if not reduce else "mean" if size_average else "sum"
    if emit_warning:
        warnings.warn(f"size_average and reduce args will be deprecated, please use reduction='{got}' instead.", stacklevel=2)
    return got


def legacy_get_enum(size_average, reduce, emit_warning=True) -> int:
    """The number of :func:`legacy_get_string`."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))
