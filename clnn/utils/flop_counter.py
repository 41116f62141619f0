"""Counting floating-point operations: products, convolutions and attention, twice the multiplications each, as PyTorch counts them."""
from __future__ import annotations

import importlib
import warnings
from collections import defaultdict
from math import prod

from clnn import _custom
from clnn._tensor.tensor import Tensor
from clnn.utils._pytree import tree_map
from clnn.utils.module_tracker import ModuleTracker

__all__ = ["FlopCounterMode", "register_flop_formula"]

_NAMES = {"mm": "mm", "_bmm": "bmm", "_mv": "mv", "_linear2d": "addmm", "convolution": "convolution", "conv_input_grad": "convolution_backward",
          "conv_weight_grad": "convolution_backward", "_attention": "_scaled_dot_product_flash_attention",
          "_attention_backward": "_scaled_dot_product_flash_attention_backward"}
flop_registry: dict = {}        # custom operator -> formula


def register_flop_formula(targets, get_raw=False):
    """Give operators of a program's own a count (decorator): ``formula(*args, out_shape=..., **kwargs)`` gets shapes in place of tensors, or with
    ``get_raw`` the tensors and ``out_val``."""
    def register(formula):
        for target in targets if isinstance(targets, (list, tuple)) else [targets]:
            flop_registry[_custom.find(target)] = (formula, get_raw)
        return formula
    return register


def _shape(value):
    return value.shape if isinstance(value, Tensor) else value


# -- formulas, as programs call them with shapes ----------------------------------------------------------------------------------------

def get_shape(i):
    """The shape of a tensor; what is none as it is."""
    return _shape(i)


def mm_flop(a_shape, b_shape, *args, out_shape=None, **kwargs) -> int:
    """Of a product of matrices.

    Example:
        >>> clnn.utils.flop_counter.mm_flop((2, 3), (3, 4))
        48
    """
    m, k = a_shape
    k2, n = b_shape
    if k != k2:
        raise AssertionError(f"matmul: inner dimensions must match (k == k2), got {k} and {k2}")
    return m * n * 2 * k


def addmm_flop(self_shape, a_shape, b_shape, out_shape=None, **kwargs) -> int:
    """Of ``addmm``: its product."""
    return mm_flop(a_shape, b_shape)


def bmm_flop(a_shape, b_shape, out_shape=None, **kwargs) -> int:
    """Of a batch of products."""
    if a_shape[0] != b_shape[0]:
        raise AssertionError(f"bmm: batch dimensions must match (b == b2), got {a_shape[0]} and {b_shape[0]}")
    return a_shape[0] * mm_flop(a_shape[1:], b_shape[1:])


def baddbmm_flop(self_shape, a_shape, b_shape, out_shape=None, **kwargs) -> int:
    """Of ``baddbmm``: its products."""
    return bmm_flop(a_shape, b_shape)


def conv_flop_count(x_shape, w_shape, out_shape, transposed=False) -> int:
    """Of a convolution, without the bias.

    Example:
        >>> clnn.utils.flop_counter.conv_flop_count([1, 3, 8, 8], [4, 3, 3, 3], [1, 4, 6, 6])
        7776
    """
    return prod((x_shape if transposed else out_shape)[2:]) * prod(w_shape) * x_shape[0] * 2


def conv_flop(x_shape, w_shape, _bias, _stride, _padding, _dilation, transposed, *args, out_shape=None, **kwargs) -> int:
    """Of the operator ``convolution``."""
    return conv_flop_count(x_shape, w_shape, out_shape, transposed=transposed)


def sdpa_flop_count(query_shape, key_shape, value_shape) -> int:
    """Of attention: the scores and the weighted sum. Keys may have fewer heads than queries.

    Example:
        >>> clnn.utils.flop_counter.sdpa_flop_count((1, 2, 4, 8), (1, 2, 4, 8), (1, 2, 4, 8))
        1024
    """
    b, h, s_q, d_q = query_shape
    s_k, d_v = key_shape[2], value_shape[3]
    return 2 * b * h * s_q * s_k * (d_q + d_v)


def sdpa_flop(query_shape, key_shape, value_shape, *args, out_shape=None, **kwargs) -> int:
    """Of the operators of attention."""
    return sdpa_flop_count(query_shape, key_shape, value_shape)


def sdpa_backward_flop_count(grad_out_shape, query_shape, key_shape, value_shape) -> int:
    """Of the gradients of attention, which compute the scores again."""
    b, h, s_q, d_q = query_shape
    s_k, d_v = key_shape[2], value_shape[3]
    return 2 * b * h * s_q * s_k * (3 * d_q + 2 * d_v)


def sdpa_backward_flop(grad_out_shape, query_shape, key_shape, value_shape, *args, out_shape=None, **kwargs) -> int:
    """Of the operators of attention's gradients."""
    return sdpa_backward_flop_count(grad_out_shape, query_shape, key_shape, value_shape)


suffixes = ["", "K", "M", "B", "T"]


def get_suffix_str(number) -> str:
    """The unit to print a count in, which leaves it one to three digits.

    Example:
        >>> clnn.utils.flop_counter.get_suffix_str(12345)
        'K'
    """
    return suffixes[max(0, min(len(suffixes) - 1, (len(str(number)) - 2) // 3))]


def convert_num_with_suffix(number, suffix) -> str:
    """A count in a unit."""
    return f"{number / 1000 ** suffixes.index(suffix):.3f}{suffix}"


def convert_to_percent_str(num, denom) -> str:
    """A share in percent."""
    return f"{num / denom:.2%}" if denom else "0%"


def _packet(name):
    space = _custom.namespace("aten")
    if name not in space.__dict__ and getattr(space, name, None) is None:         # an operator that can be called stays callable
        space.__dict__[name] = _custom.OpOverloadPacket(f"aten::{name}", None, None)
    return space.__dict__[name]


class FlopCounterMode:
    """A block whose floating-point operations are counted, in all and module by module.

    What the backward pass does counts for the modules whose gradients it computes; of one whose arguments ask for none, until the pass ends, as in PyTorch.

    Args:
        depth: levels of modules in the table. display: print the table at the end.
        custom_mapping: formulas of custom operators, as for :func:`register_flop_formula`.

    Example::

        >>> from clnn.utils.flop_counter import FlopCounterMode
        >>> with FlopCounterMode(display=False) as counter:
        ...     y = clnn.nn.Linear(4, 8)(clnn.ones(2, 4))
        >>> counter.get_total_flops()
        128
    """

    def __init__(self, mods=None, depth=2, display=True, custom_mapping=None):
        self.depth, self.display = depth, display
        self.flop_counts = defaultdict(lambda: defaultdict(int))
        self.formulas = {_custom.find(k): (v, getattr(v, "_get_raw", False)) for k, v in (custom_mapping or {}).items()}
        if mods is not None:
            warnings.warn("mods argument is not needed anymore, you can stop passing it", stacklevel=2)
        self.mod_tracker = ModuleTracker()

    def get_total_flops(self):
        """All operations of the block."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self):
        """``{"Global" or module: {operator: count}}``."""
        return {k: dict(v) for k, v in self.flop_counts.items()}

    def _add(self, packet, count):
        for name in set(self.mod_tracker.parents):
            self.flop_counts[name][packet] += count

    def _counted(self, op, multiply_adds):
        self._add(_packet(_NAMES.get(op.name, op.name)), 2 * multiply_adds)

    def _custom_op(self, op, args, kwargs, result):
        known = self.formulas.get(op) or flop_registry.get(op)
        if known is not None:
            formula, raw = known
            if raw:
                count = formula(*args, **kwargs, out_val=result)
            else:
                args, kwargs = tree_map(_shape, (list(args), kwargs))
                count = formula(*args, **kwargs, out_shape=tree_map(_shape, result))
            self._add(getattr(_custom.namespace(op.namespace), op._opname), count)

    def __enter__(self):
        self.flop_counts.clear()
        instrument = importlib.import_module("clnn.profiler.instrument")
        self._counting = instrument.counting(self._counted)
        self._counting.__enter__()
        self.mod_tracker.__enter__()
        _custom.watchers.append(self._custom_op)
        return self

    def __exit__(self, *exc):
        _custom.watchers.remove(self._custom_op)
        self.mod_tracker.__exit__()
        self._counting.__exit__(*exc)
        if self.display:
            print(self.get_table(self.depth))

    def get_table(self, depth=None):
        """The counts as text: module, operations in the unit of the whole, share of the whole. All of the block has a line where modules leave some of it out."""
        depth = self.depth if depth is None else depth
        depth, total = 999999 if depth is None else depth, self.get_total_flops()
        unit, rows, covered = get_suffix_str(total), [], False

        def line(text, count):
            shown = convert_num_with_suffix(count, unit)
            return text, shown if unit else f"{float(shown):g}", convert_to_percent_str(count, total)

        def lines(name, level):
            counts = self.flop_counts[name]
            return [line(" " * level + name, sum(counts.values())), *[line(f"{' ' * level} - {op}", n) for op, n in counts.items()]]
        for name in sorted(self.flop_counts):
            level = name.count(".") + 1
            if name != "Global" and level <= depth:
                covered |= sum(self.flop_counts[name].values()) >= total
                rows += lines(name, level - 1)
        if "Global" in self.flop_counts and not covered:
            rows = [*lines("Global", 0), *[(" " + text, *numbers) for text, *numbers in rows]]
        return _as_table(("Module", "FLOP", "% Total"), rows or [("Global", "0", "0%")])


def _as_table(header, rows):
    """As the package ``tabulate`` prints it, which PyTorch asks for."""
    widths = [max(len(head) + 2, *[len(r[i]) for r in rows]) for i, head in enumerate(header)]
    first, *rest = [f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}" for a, b, c in (header, *rows)]
    return "\n".join([first, "  ".join("-" * w for w in widths), *rest])
