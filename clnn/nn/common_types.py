"""Type names for the size arguments of layers (an int, or one int per dimension)."""
from typing import Optional, Tuple, TypeVar, Union

from clnn._tensor.tensor import Tensor

T = TypeVar("T")


def _sizes(n, of=T):
    many = Tuple[of, ...] if n is None else Tuple[(of,) * n]
    return Union[of, many]


_scalar_or_tuple_any_t = _sizes(None)
_scalar_or_tuple_1_t, _scalar_or_tuple_2_t, _scalar_or_tuple_3_t = _sizes(1), _sizes(2), _sizes(3)
_scalar_or_tuple_4_t, _scalar_or_tuple_5_t, _scalar_or_tuple_6_t = _sizes(4), _sizes(5), _sizes(6)
_size_any_t, _size_1_t, _size_2_t, _size_3_t = _sizes(None, int), _sizes(1, int), _sizes(2, int), _sizes(3, int)
_size_4_t, _size_5_t, _size_6_t = _sizes(4, int), _sizes(5, int), _sizes(6, int)
_size_any_opt_t, _size_2_opt_t, _size_3_opt_t = (_sizes(n, Optional[int]) for n in (None, 2, 3))
_ratio_any_t, _ratio_2_t, _ratio_3_t = _sizes(None, float), _sizes(2, float), _sizes(3, float)
_tensor_list_t = _sizes(None, Tensor)
_maybe_indices_t = _sizes(2, Tensor)
