"""Counting floating-point operations: products, convolutions and attention, twice the multiplications each, as PyTorch counts them."""
from __future__ import annotations

import importlib
from collections import defaultdict

from clnn import _custom
from clnn._tensor.tensor import Tensor
from clnn.nn.modules import _hooks
from clnn.utils._pytree import tree_map

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


def _packet(name):
    space = _custom.namespace("aten")
    if name not in space.__dict__ and getattr(space, name, None) is None:         # an operator that can be called stays callable
        space.__dict__[name] = _custom.OpOverloadPacket(f"aten::{name}", None, None)
    return space.__dict__[name]


class FlopCounterMode:
    """A block whose floating-point operations are counted, in all and module by module.

    What the backward pass does counts for the whole and for the outermost module only.

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
        self._stack, self._outermost = [], None

    def get_total_flops(self):
        """All operations of the block."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self):
        """``{"Global" or module: {operator: count}}``."""
        return {k: dict(v) for k, v in self.flop_counts.items()}

    def _add(self, packet, count):
        for name in {"Global", *self._stack, *([self._outermost] if not self._stack and self._outermost else [])}:
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

    def _enter_module(self, module, args):
        if not self._stack:
            self._names = {id(m): ".".join(filter(None, (type(module).__name__, name))) for name, m in module.named_modules()}
            self._outermost = type(module).__name__
        self._stack.append(self._names.get(id(module), type(module).__name__))

    def _leave_module(self, module, args, output):
        if self._stack:
            self._stack.pop()

    def __enter__(self):
        self.flop_counts.clear()
        instrument = importlib.import_module("clnn.profiler.instrument")
        self._counting = instrument.counting(self._counted)
        self._counting.__enter__()
        self._handles = [_hooks.register_module_forward_pre_hook(self._enter_module),
                         _hooks.register_module_forward_hook(self._leave_module, always_call=True)]
        _custom.watchers.append(self._custom_op)
        return self

    def __exit__(self, *exc):
        _custom.watchers.remove(self._custom_op)
        for handle in self._handles:
            handle.remove()
        self._counting.__exit__(*exc)
        if self.display:
            print(self.get_table(self.depth))

    def get_table(self, depth=None):
        """The counts as text: module, operations, share of the whole."""
        depth, total = self.depth if depth is None else depth, self.get_total_flops()
        rows = [("Module", "FLOP", "% Total")]
        for name in sorted(self.flop_counts, key=lambda n: (n != "Global", n)):
            level = 0 if name == "Global" else name.count(".") + 1
            if level > depth:
                continue
            counts = self.flop_counts[name]
            rows.append(("  " * level + name, *_numbers(sum(counts.values()), total)))
            rows += [("  " * level + f" - {op}", *_numbers(n, total)) for op, n in counts.items()]
        widths = [max(len(r[i]) for r in rows) for i in range(3)]
        lines = [f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}" for a, b, c in rows]
        return "\n".join([lines[0], "  ".join("-" * w for w in widths), *lines[1:]])


def _numbers(count, total):
    unit = min(4, max(0, (len(str(count)) - 1) // 3))
    value = f"{count / 1000 ** unit:,.3f}{['', 'K', 'M', 'B', 'T'][unit]}" if unit else str(count)
    return value, f"{count / total:.2%}" if total else "0%"
