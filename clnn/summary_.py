"""``clnn.summary``: the layers of a model with output shapes, parameters, multiply-adds and memory."""
from __future__ import annotations

import html
import weakref
from contextlib import ExitStack

import clnn
from clnn._tensor.tensor import Tensor
from clnn.nn.modules._html import parameter_count as _count

__all__ = ["summary", "Summary", "Layer"]

_HEADS = {"input_size": "Input shape", "output_size": "Output shape", "num_params": "Parameters", "kernel_size": "Kernel",
          "mult_adds": "Mult-adds", "memory": "Memory", "trainable": "Trainable", "dtype": "Dtype"}
_DEFAULT = ("output_size", "num_params", "mult_adds", "memory")


class Layer:
    """One call of a module: what it gave and what it cost. Counts exclude the layers inside unless the name says ``total``."""

    def __init__(self, name, module, depth, parent):
        self.name, self.type, self.depth, self.parent = name, type(module).__name__, depth, parent
        self.module = weakref.ref(module)
        self.children, self.input_size, self.output_size, self.dtype = [], None, None, None
        own = list(module.parameters(recurse=False))
        self.params = sum(_count(p) for p in own)
        self.trainable_params = sum(_count(p) for p in own if p.requires_grad)
        self.total_params = sum(_count(p) for p in module.parameters())
        self.kernel_size = getattr(module, "kernel_size", None)
        self.mult_adds = 0
        self.output_bytes = 0
        self.repeated = False       # a further call of a module that was called before
        self.called = False

    @property
    def total_mult_adds(self):
        return self.mult_adds + sum(c.total_mult_adds for c in self.children)

    @property
    def trainable(self):
        module = self.module()
        flags = {p.requires_grad for p in module.parameters()} if module is not None else set()
        return "-" if not flags else "partly" if len(flags) > 1 else "yes" if flags.pop() else "no"

    def walk(self):
        """This layer and all inside it, in the order of the calls."""
        yield self
        for c in self.children:
            yield from c.walk()


class Summary:
    """What :func:`summary` gives: ``layers`` (in the order of the calls), totals, and a table as text or HTML.

    Attributes:
        total_params, trainable_params: numbers of parameters, shared ones counted once.
        total_mult_adds: multiply-adds of all products, convolutions and attention in one forward pass.
        input_bytes, output_bytes, param_bytes: memory of the inputs, of all layers' outputs, and of parameters and buffers.
    """

    def __init__(self, root, model, inputs, col_names, depth, row_settings):
        self.root, self.col_names, self.depth, self.row_settings = root, tuple(col_names), depth, row_settings
        self.layers = list(root.walk())
        self.total_params = sum(_count(p) for p in model.parameters())
        self.trainable_params = sum(_count(p) for p in model.parameters() if p.requires_grad)
        self.total_mult_adds = root.total_mult_adds
        self.param_bytes = sum(_count(p) * p.element_size() for p in [*model.parameters(), *model.buffers()])
        self.input_bytes = sum(t.nbytes for t in _tensors(inputs))
        self.output_bytes = sum(x.output_bytes for x in self.layers if not x.children)
        self.traced = inputs is not None

    def _rows(self):
        """(layer, whether the layers inside it are left out)."""
        for x in self.layers:
            if x.depth <= self.depth:
                yield x, x.depth == self.depth and bool(x.children)

    def _cell(self, x, column, collapsed):
        if column in ("input_size", "output_size"):
            return _shape_text(getattr(x, column)) if x.called else "-" if not self.traced else "(not called)"
        if column == "num_params":
            n = x.total_params if collapsed else x.params
            return "(shared)" if x.repeated and n else f"{n:,}" if n else "-"
        if column == "mult_adds":
            n = x.total_mult_adds if collapsed else x.mult_adds
            return f"{n:,}" if n else "-"
        if column == "memory":
            return _bytes(x.output_bytes) if x.called else "-"
        value = getattr(x, column)
        return "-" if value is None else "x".join(map(str, value)) if isinstance(value, (tuple, list)) else str(value)

    def _label(self, x):
        return f"{x.name} ({x.type})" if x.name else x.type

    def _table(self):
        cells = [["Layer", *[_HEADS[c] for c in self.col_names]]]
        for x, collapsed in self._rows():
            cells.append(["  " * x.depth + self._label(x), *[self._cell(x, c, collapsed) for c in self.col_names]])
        return cells

    def _totals(self):
        lines = [f"Parameters: {self.total_params:,} (trainable {self.trainable_params:,}, fixed {self.total_params - self.trainable_params:,})"]
        if self.traced:
            lines.append(f"Multiply-adds: {self.total_mult_adds:,}")
            total = self.input_bytes + self.output_bytes + self.param_bytes
            lines.append(f"Memory: input {_bytes(self.input_bytes)}, outputs {_bytes(self.output_bytes)}, parameters and buffers "
                         f"{_bytes(self.param_bytes)}, together {_bytes(total)}")
        else:
            lines.append(f"Memory: parameters and buffers {_bytes(self.param_bytes)}")
        return lines

    def __str__(self):
        cells = self._table()
        widths = [max(len(r[i]) for r in cells) for i in range(len(cells[0]))]
        bar = "=" * (sum(widths) + 2 * len(widths) - 2)

        def line(row):
            return "  ".join(t.ljust(w) if i == 0 else t.rjust(w) for i, (t, w) in enumerate(zip(row, widths))).rstrip()
        return "\n".join([bar, line(cells[0]), bar, *map(line, cells[1:]), bar, *self._totals(), bar])

    __repr__ = __str__

    def _repr_html_(self):
        head, *rows = self._table()
        parts = ["<table><thead><tr>", *[f"<th style='text-align:{'left' if i == 0 else 'right'}'>{html.escape(t)}</th>" for i, t in enumerate(head)],
                 "</tr></thead><tbody>"]
        for row in rows:
            indent = len(row[0]) - len(row[0].lstrip())
            parts.append(f"<tr><td style='text-align:left;padding-left:{0.6 + 0.6 * indent:.1f}em'>{html.escape(row[0].strip())}</td>")
            parts += [f"<td style='text-align:right'>{html.escape(t)}</td>" for t in row[1:]]
            parts.append("</tr>")
        parts.append("</tbody></table><p>" + "<br>".join(map(html.escape, self._totals())) + "</p>")
        return "".join(parts)


def summary(model, input_size=None, input_data=None, *, batch_dim=None, col_names=_DEFAULT, col_width=None, depth=3, device=None, dtypes=None,
            mode="eval", row_settings=None, verbose=0, **kwargs):
    """Run a model once and tell its layers, their output shapes, parameters, multiply-adds and memory.

    Args:
        model: the module.
        input_size: shape of the input with its batch dimension, or a list of shapes for several inputs.
        input_data: the input instead of its size: a tensor, a tuple of arguments or a dictionary of keyword arguments.
        batch_dim: insert a dimension of size 1 here, when ``input_size`` has no batch dimension.
        col_names: columns, from ``input_size, output_size, num_params, kernel_size, mult_adds, memory, trainable, dtype``.
        depth: how many levels of modules to show; deeper ones are added up.
        device: where to make the input. Default: where the parameters are.
        dtypes: dtypes of the inputs made from ``input_size``. Default: the default dtype.
        mode: ``"eval"`` or ``"train"``, during the run. Afterwards all modules are in their former mode.
        verbose: 1 prints the table.
        **kwargs: further arguments of the model's ``forward``.

    Returns:
        A :class:`Summary`; ``print`` it, or show it in a notebook. Without an input, parameters only.

    Raises:
        ValueError: an unknown column or mode, or both kinds of input.

    Example::

        >>> report = clnn.summary(nn.Sequential(nn.Linear(8, 4), nn.ReLU()), input_size=(2, 8))
        >>> report.total_params, report.total_mult_adds
        (36, 64)
    """
    unknown = [c for c in col_names if c not in _HEADS]
    if unknown:
        raise ValueError(f"summary: unknown column {unknown[0]!r}; known: {', '.join(_HEADS)}")
    if mode not in ("eval", "train"):
        raise ValueError(f"summary: mode is 'eval' or 'train', got {mode!r}")
    if input_size is not None and input_data is not None:
        raise ValueError("summary: give input_size or input_data, not both")
    if input_size is None and input_data is None and not kwargs:
        result = Summary(_untraced(model), model, None, col_names, depth, row_settings)
    else:
        with clnn.random.fork_rng():
            args, named = _inputs(model, input_size, input_data, batch_dim, device, dtypes)
            named.update(kwargs)
            root = _trace(model, args, named, mode)
        result = Summary(root, model, (args, list(named.values())), col_names, depth, row_settings)
    if verbose:
        print(result)
    return result


def _inputs(model, input_size, input_data, batch_dim, device, dtypes):
    """(positional, keyword) arguments of the model."""
    if input_data is not None:
        if isinstance(input_data, dict):
            return (), dict(input_data)
        return (tuple(input_data) if isinstance(input_data, (tuple, list)) else (input_data,)), {}
    if input_size is None:
        return (), {}
    sizes = [input_size] if all(isinstance(n, int) for n in input_size) else list(input_size)
    if batch_dim is not None:
        sizes = [(*s[:batch_dim], 1, *s[batch_dim:]) for s in map(tuple, sizes)]
    first = next(iter(model.parameters()), None)
    home = device if device is not None else first.device if first is not None else None
    dtypes = dtypes or [first.dtype if first is not None and first.dtype.is_floating_point else clnn.get_default_dtype()] * len(sizes)
    made = []
    for size, dtype in zip(sizes, dtypes):
        if dtype.is_floating_point:
            made.append(clnn.randn(tuple(size), device=home).to(dtype))
        else:
            made.append(clnn.zeros(tuple(size), dtype=dtype, device=home))
    return tuple(made), {}


class _Tracer:
    """Builds the tree of layers from hooks while the model runs."""

    def __init__(self, model):
        self.names = {id(m): path.rpartition(".")[2] for path, m in model.named_modules()}
        self.root, self.stack, self.seen = None, [], {}

    def enter(self, module, args, kwargs):
        parent = self.stack[-1] if self.stack else None
        layer = Layer(self.names.get(id(module), ""), module, len(self.stack), parent)
        layer.repeated = id(module) in self.seen
        self.seen.setdefault(id(module), layer)
        layer.input_size = _shapes((args, list(kwargs.values())))
        if parent is None:
            self.root = self.root or layer
        else:
            parent.children.append(layer)
        self.stack.append(layer)

    def leave(self, module, args, output):
        layer = self.stack.pop()
        layer.called = True
        layer.output_size = _shapes(output)
        tensors = list(_tensors(output))
        layer.output_bytes = sum(t.nbytes for t in tensors)
        layer.dtype = str(tensors[0].dtype).rpartition(".")[2] if tensors else None
        if not layer.repeated:           # parameters that this very call made (lazy modules) are known now
            own = list(module.parameters(recurse=False))
            layer.params, layer.total_params = sum(map(_count, own)), sum(_count(p) for p in module.parameters())

    def count(self, op, multiply_adds):
        if self.stack:
            self.stack[-1].mult_adds += multiply_adds


def _trace(model, args, kwargs, mode):
    from clnn.profiler.instrument import counting
    tracer = _Tracer(model)
    modes = {m: m.training for m in model.modules()}
    buffers = [(b, b.detach().clone()) for b in model.buffers() if _count(b)] if mode == "train" else []
    with ExitStack() as stack:
        for m in modes:
            stack.callback(m.register_forward_pre_hook(tracer.enter, with_kwargs=True, prepend=True).remove)
            stack.callback(m.register_forward_hook(tracer.leave).remove)
        stack.enter_context(counting(tracer.count))
        stack.enter_context(clnn.no_grad())
        try:
            model.train(mode == "train")
            model(*args, **kwargs)
        finally:
            for m, training in modes.items():
                m.training = training
            for buffer, value in buffers:      # running statistics of a run in training mode
                if buffer.shape == value.shape:
                    buffer.copy_(value)
    _add_uncalled(model, tracer)
    return tracer.root


def _add_uncalled(model, tracer):
    """Modules that hold parameters but were not called still appear below their parent."""
    def visit(module, layer):
        for name, child in module.named_children():
            inside = tracer.seen.get(id(child))
            if inside is None and next(child.parameters(), None) is not None:
                inside = tracer.seen[id(child)] = Layer(name, child, layer.depth + 1, layer)
                layer.children.append(inside)
            visit(child, inside or layer)
    visit(model, tracer.root)


def _untraced(model):
    def build(name, module, depth, parent):
        layer = Layer(name, module, depth, parent)
        layer.children = [build(n, c, depth + 1, layer) for n, c in module.named_children()]
        return layer
    return build("", model, 0, None)


def _tensors(value):
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        for v in value.values():
            yield from _tensors(v)
    elif isinstance(value, (tuple, list)):
        for v in value:
            yield from _tensors(v)


def _shapes(value):
    return [tuple(t.shape) for t in _tensors(value)]


def _shape_text(shapes):
    return ", ".join(str(list(s)) for s in shapes or ()) or "-"


def _bytes(n):
    for unit in ("B", "KiB", "MiB", "GiB"):
        if n < 1024 or unit == "GiB":
            return f"{n:.0f} {unit}" if unit == "B" else f"{n:.1f} {unit}"
        n /= 1024
