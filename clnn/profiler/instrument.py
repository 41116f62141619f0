"""Replaces functions of the engine by timed ones while a profile runs, and puts the originals back.

So profiling costs nothing when it is off: no operator, launch or module call asks whether somebody listens.
"""
from __future__ import annotations

import contextlib
import functools
import math
import sys

from .._tensor import dispatch, multi, override, repeat, tape
from .._tensor.tensor import Tensor
from ..graph import fuse, reduce
from ..graph import node as lazy
from ..graph.op import REGISTRY
from ..runtime.device import Device
from . import traffic


class Instruments:
    """All replacements of one profile. ``install`` and ``remove`` are exact inverses."""

    def __init__(self, collector):
        self.c = collector
        self.undo = []          # functions that restore something, run in reverse order
        self.reduced = None     # the node whose reduction is being computed

    def install(self):
        self._operators()
        self._recording()
        self._fused()
        self._everywhere(tape._step, self._backward_step(tape._step))
        self._copies()
        self._modules()
        self._optimizers()

    def remove(self):
        while self.undo:
            self.undo.pop()()

    # -- ways to replace ------------------------------------------------------------------------------------------------
    def _set(self, owner, name, value):
        own = name in vars(owner)                                  # else it is inherited
        old = vars(owner)[name] if own else None
        setattr(owner, name, value)
        self.undo.append(lambda: setattr(owner, name, old) if own else delattr(owner, name))

    def _everywhere(self, *pairs):
        """Replace functions under every name that a clnn module or Tensor has for them: original, replacement, original, ..."""
        table = {id(old): new for old, new in zip(pairs[::2], pairs[1::2])}
        owners = [m for name, m in list(sys.modules.items()) if m is not None and name.partition(".")[0] == "clnn"]
        for owner in [*owners, Tensor]:
            for name, value in list(vars(owner).items()):
                new = table.get(id(value))
                if new is not None:
                    self._set(owner, name, new)

    def _cell(self, function, variable, make):
        """Replace a variable that ``function`` closes over."""
        code = function.__code__
        if variable not in code.co_freevars:
            return
        cell = function.__closure__[code.co_freevars.index(variable)]
        old = cell.cell_contents
        cell.cell_contents = new = make(old)
        if hasattr(old, "learn"):               # the way to a repeated body that has asked for a known call already
            new.learn = lambda values, missed: new(*values)
        self.undo.append(lambda: setattr(cell, "cell_contents", old))

    def _gradients_apart(self):
        """Gradients by the operators that their rules are made of, which can be seen, not by the shorter way."""
        for op in {id(op): op for op in REGISTRY.values() if getattr(op, "together", None) is not None}.values():
            self.undo.append(functools.partial(setattr, op, "together", op.together))
            op.together = None

    # -- operators ------------------------------------------------------------------------------------------------------
    def _operators(self):
        pairs = []
        self._gradients_apart()
        for op in {id(op): op for op in REGISTRY.values()}.values():
            if op.kind == "kernel":
                self._cell(op.fn, "body", functools.partial(self._timed_body, op))
            elif op.kind == "composite":
                for form in override.forms(op.fn):
                    pairs += [form, self._timed_composite(op, form)]
        self._everywhere(*pairs)

    def _timed_body(self, op, body):
        c = self.c

        def call(*values):
            event = c.begin(op.name, "op", _shapes(values) if c.shapes else None)
            try:
                result = body(*values)
                event.bytes = traffic.of_call(op, values, result)
                if c.flops:
                    count = traffic.multiply_adds(op, values, result)
                    event.flops = None if count is None else 2 * count
                return result
            finally:
                c.end(event)
        return call

    def _timed_composite(self, op, fn):
        c = self.c

        @functools.wraps(fn)
        def call(*args, **kwargs):
            event = c.begin(op.name, "op", _shapes(args) if c.shapes else None)
            try:
                return fn(*args, **kwargs)
            finally:
                c.end(event)
        return call

    def _recording(self):
        c = self.c

        def record_elementwise(expr, compute, result, shape, numel, operands):
            event = c.begin(expr.name, "op", _shapes(operands) if c.shapes else None)
            try:
                return elementwise(expr, compute, result, shape, numel, operands)
            finally:
                c.end(event)

        def record(expr, refs, *rest):
            storage = plain(expr, refs, *rest)
            if storage.node is not None:
                c.note(storage.node, expr.name if expr is not None else "")
            return storage
        elementwise, plain = dispatch.record_elementwise, lazy.record
        self._everywhere(elementwise, record_elementwise, plain, record)
        for short_way in (dispatch.record_briefly, dispatch.record_pair, dispatch.record_alike, dispatch.record_laid):
            self._everywhere(short_way, lambda *operands: None)

    # -- computing what was recorded ------------------------------------------------------------------------------------
    def _fused(self):
        c = self.c

        def run(device, group, shape, numel, targets):
            notes = [c.noted(n, n.expr.name) for n in group.order]
            with _Computing(c, [name for name, _ in notes], notes[-1][1]) as event:
                event.bytes = traffic.of_fused(group, shape, numel, targets)
                return plain_run(device, group, shape, numel, targets)

        def compute(storage, root):
            group = fuse.Group()
            group.visit(root)
            notes = [c.noted(n, n.expr.name) for n in group.order]
            outs = [(None, n.dtype) for n in group.order if n is root or n.out() is not None and n.out().node is n]
            size = traffic.of_fused(group, root.shape, root.numel, outs)
            whole = fuse.fits(root.device, group, len(root.shape), len(outs))
            del group                                               # what it holds would not die
            if not whole:
                return plain_compute(storage, root)
            with _Computing(c, [name for name, _ in notes], notes[-1][1]) as event:
                event.bytes = size
                return plain_compute(storage, root)

        def run_plan(plan, device, call, *rest):
            node, self.reduced = self.reduced, None
            if node is None:                                     # the second launch of a reduction in parts
                return plain_plan(plan, device, call, *rest)
            group = call.elements(node)
            notes = [c.noted(n, n.expr.name) for n in group.order if n.expr is not fuse.CAST]
            grad, module = c.noted(node, "")
            with _Computing(c, [name for name, _ in notes] + [grad or call.spec.name], module) as event:
                event.bytes = traffic.of_fused(group, call.shape, math.prod(call.shape), ())
                return plain_plan(plan, device, call, *rest)

        def run_call(call, storage, node):
            before, self.reduced = self.reduced, node
            try:
                return plain_call(call, storage, node)
            finally:
                self.reduced = before

        def launch_rows(device, code, leaves, kinds, outs, scalars, rows):
            event = c.begin("foreach_update", "foreach")
            try:
                return plain_rows(device, code, leaves, kinds, outs, scalars, rows)
            finally:
                c.end(event)
        plain_run, plain_rows, plain_plan, plain_call = fuse.run, multi.launch_rows, reduce.Plan.run, reduce.Call.run
        plain_compute = fuse._compute
        self._everywhere(plain_run, run, plain_compute, compute, plain_rows, launch_rows)
        self._set(reduce.Call, "run", run_call)
        self._set(reduce.Plan, "run", run_plan)

    def _backward_step(self, plain):
        c = self.c

        def step(node, *rest):
            local = c.local
            name, module = node.name(), c.module_of_node(node)
            local.where.append(module)
            local.grad.append(name)
            event = c.begin(name, "backward")
            try:
                return plain(node, *rest)
            finally:
                c.end(event)
                local.where.pop()
                local.grad.pop()
        return step

    # -- copies and waiting ---------------------------------------------------------------------------------------------
    def _copies(self):
        c, plain = self.c, Device._call

        def _call(device, function, *args, **kwargs):
            result = plain(device, function, *args, **kwargs)
            name = getattr(function, "__name__", "")
            if name in _TRANSFERS and result is not None:
                c.copied(device, *_describe(name, args, kwargs), result)
            return result

        def timed(function, name):
            def call(device, *args, **kwargs):
                event = c.begin(name, "copy")
                try:
                    return function(device, *args, **kwargs)
                finally:
                    c.end(event)
            return call
        self._set(Device, "_call", _call)
        for method, name in (("read", "copy to host (waits)"), ("write", "copy to device"), ("synchronize", "synchronize (waits)")):
            self._set(Device, method, timed(getattr(Device, method), name))

    # -- modules and optimizers -----------------------------------------------------------------------------------------
    def _modules(self):
        from ..nn.modules import _hooks
        c = self.c
        before = _hooks.HookMixin._maybe_hooked
        enter = _hooks.register_module_forward_pre_hook(lambda module, args: c.enter_module(module))
        leave = _hooks.register_module_forward_hook(lambda module, args, output: c.leave_module(module), always_call=True)
        _hooks._global_forward_pre_hooks.move_to_end(enter.id, last=False)      # hooks of the program count for the module

        def restore():
            enter.remove()
            leave.remove()
            _hooks.HookMixin._maybe_hooked = before or any(
                (_hooks._global_forward_pre_hooks, _hooks._global_forward_hooks, _hooks._global_backward_hooks, _hooks._global_backward_pre_hooks))
        self.undo.append(restore)

    def _optimizers(self):
        from ..optim import optimizer
        c, open_steps = self.c, []

        def enter(opt, args, kwargs):
            open_steps.append(c.begin(f"Optimizer.step#{type(opt).__name__}.step", "range"))

        def leave(opt, args, kwargs):
            if open_steps:
                c.end(open_steps.pop())
        handles = [optimizer.register_optimizer_step_pre_hook(enter), optimizer.register_optimizer_step_post_hook(leave)]
        self.undo += [h.remove for h in handles]


_TRANSFERS = {"_enqueue_read_buffer", "_enqueue_write_buffer", "enqueue_copy", "enqueue_fill_buffer"}


def _describe(name, args, kwargs):
    """(name, bytes) of a transfer from the driver call's arguments."""
    if name == "enqueue_fill_buffer":
        return "Memset", args[4]
    if name != "enqueue_copy":
        return ("Memcpy DtoH" if name == "_enqueue_read_buffer" else "Memcpy HtoD"), args[2].nbytes
    return "Memcpy DtoD", 2 * kwargs.get("byte_count", 0)


def _shapes(values):
    return [list(v.shape) if isinstance(v, Tensor) else [] for v in values]


@contextlib.contextmanager
def counting(callback):
    """While the block runs, ``callback(op, multiply_adds)`` is called for each product, convolution and attention."""
    tools = Instruments(None)
    tools._gradients_apart()
    tools._set(repeat, "on", False)         # what is repeated as a whole does not call the operators that it is made of

    def counted(op, body):
        def call(*values):
            result = body(*values)
            count = traffic.multiply_adds(op, values, result)
            if count is not None:
                callback(op, count)
            return result
        return call
    for op in {id(op): op for op in REGISTRY.values() if op.kind == "kernel" and op.name in traffic.COUNTS}.values():
        tools._cell(op.fn, "body", functools.partial(counted, op))
    try:
        yield
    finally:
        tools.remove()


class _Computing:
    """The event of one fused launch."""

    def __init__(self, collector, names, module):
        self.c, self.names, self.module = collector, [n for n in names if n] or ["copy"], module

    def __enter__(self):
        from .collector import squeeze
        self.event = self.c.begin("fused[" + ", ".join(squeeze(self.names)) + "]", "fused")
        self.event.parts, self.event.module = tuple(self.names), self.module
        return self.event

    def __exit__(self, *exc):
        self.c.end(self.event)


__all__ = ["Instruments", "counting"]
