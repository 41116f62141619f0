"""Storage and the lazy node: what a tensor's memory is, or how it will be computed.

A ``Storage`` is what views share. It either has a device buffer or a pending ``Node``. An elementwise operator only records a
node; reading the storage realises it, and all pending nodes it depends on are fused into that one launch (see ``fuse``).
A node refers to its inputs by *snapshot* (the buffer or the pending node they had then), so that overwriting a tensor in place simply
gives its storage a new node: earlier readers still see the old value and nothing has to be flushed.
"""
from __future__ import annotations

import weakref
from collections import deque

from ..core import dtype as dt
from ..core import native
from ..runtime.sharing import shared

MAX_NODES = 48          # a fused kernel stays small enough to compile fast and keep its values in registers
MAX_LEAVES = 14


births = None           # while a thread is in inference mode: a function that gives the first version of a storage made now
constants: dict = {}     # (number, dtype, device) -> a buffer with that number, which tensors share by value: whoever writes one of them copies it first
held: dict = {}          # id -> buffer, for buffers that a capture keeps alive: one reference more than usual
native.give(held=held)


@native.know
class Storage:
    """The memory behind one or more tensors: ``nbytes`` bytes on ``device``, with an in-place version counter, below 0 if made in inference mode."""

    __slots__ = ("device", "nbytes", "buf", "node", "version", "pinned", "mirror", "__weakref__")
    mirrored = False        # True: a mirror.Mirrored, one with an array of the program

    def __init__(self, device, nbytes, buf=None, node=None):
        self.device, self.nbytes, self.buf, self.node = device, nbytes, buf, node
        self.version = 0 if births is None else births()
        self.pinned = False     # a runtime.sharing.Shared while arrays of the program see the buffer, where in-place results must land then

    def buffer(self):
        """The device buffer, computing the pending node first."""
        if self.node is not None:
            realize(self)
        return self.buf

    def leaf(self):
        """What an operator reads that is recorded now: the buffer, or the values that will be sent to one."""
        return self.buf

    def size(self):
        return self.nbytes

    def __len__(self):
        return self.nbytes


native.method(Storage, "buffer")
_CATEGORIES = {dt.BOOL: "bool", dt.INT: "int", dt.FLOAT: "float"}


@native.know
class Expr:
    """A scalar C expression over named operands, by category of the compute dtype; one object per operator.

    ``complex`` is the expression for complex compute dtypes, None where there is none. ``elements`` says that numbers, and single elements of other dtypes,
    are rounded to a compute dtype of 16 bits, as a tensor of them would be.
    """

    __slots__ = ("index", "name", "names", "text", "checked", "failing", "failure", "uses_index", "longs", "complex", "elements")
    all: list["Expr"] = []

    def __init__(self, name, names, text, checked=None, longs=(), failure=None, complex=None):
        self.name, self.names, self.text, self.checked, self.complex = name, names, text, checked, complex
        self.failing = frozenset(c for c, name in _CATEGORIES.items()       # compute categories whose test can be true
                                 if checked and (checked[name] if isinstance(checked, dict) else checked) != "0")
        self.failure = failure                                    # (exception, message) when the test `checked` is true
        self.longs = frozenset(names.index(n) for n in longs)     # operands that stay 64-bit integers whatever the compute dtype
        self.uses_index, self.elements = "IDX" in str(text), False
        self.index = len(Expr.all)
        Expr.all.append(self)


@native.know
class Node:
    """A recorded elementwise computation that has not run yet.

    ``args`` holds, per operand of ``expr``, a Python number or a tuple ``(source, dtype, offset, strides)`` whose source is a buffer or a
    Node and whose strides are already broadcast to ``shape``. ``linear`` says that every buffer below is read in flat order.
    """

    __slots__ = ("expr", "args", "compute", "dtype", "shape", "numel", "device", "out", "buf", "count", "leaves", "linear", "reduce",
                 "__weakref__")

    def __init__(self, expr, args, compute, dtype, shape, numel, device, count, leaves, linear):
        self.expr, self.args, self.compute, self.dtype = expr, args, compute, dtype
        self.shape, self.numel, self.device = shape, numel, device
        self.count, self.leaves, self.linear = count, leaves, linear
        self.buf = None
        self.reduce = None


class Values(Node):
    """What an operator reads of the host: bytes that go to the device when somebody asks for their buffer."""

    __slots__ = ("values",)
    args, reduce = (), None

    def __init__(self, device, values):
        self.device, self.values = device, values

    @property
    def buf(self):
        if self.values is not None:
            with self.device.lock:
                if self.values is not None:                     # no other thread was faster
                    _buf.__set__(self, self.device.send(self.values))
                    self.values = None
        return _buf.__get__(self)


_buf = Node.__dict__["buf"]
_ref, _new = weakref.ref, object.__new__
_recent: deque = deque(maxlen=1 << 14)      # references to the storages that were given a node, for ``realize_all``; bounded
native.give(node=globals(), shared=shared, recent=_recent, most_nodes=MAX_NODES, most_leaves=MAX_LEAVES)


def record(expr, refs, compute, dtype, shape, numel, device, count, leaves, linear) -> Storage:
    """Make the pending node and the storage that will hold its value."""
    node, storage = _new(Node), _new(Storage)               # as their constructors would make them: every recorded operator comes here
    node.expr, node.args, node.compute, node.dtype, node.shape, node.numel, node.device = expr, refs, compute, dtype, shape, numel, device
    node.count, node.leaves, node.linear, node.buf, node.reduce = count, leaves, linear, None, None
    storage.device, storage.nbytes, storage.buf, storage.node, storage.pinned = device, numel * dtype.itemsize, None, node, False
    storage.version = 0 if births is None else births()
    node.out = out = _ref(storage)
    _recent.append(out)
    if shared and expr is not None and any([r.__class__ is tuple and r[0] in shared for r in refs]):
        realize(storage)                                    # before the program writes to what it reads
    return storage


native.give(record=record)
record = native.form("record", record)


def realize_all(device=None) -> None:
    """Launch all that is recorded and still referred to (of one device): what ``synchronize`` waits for is the whole work."""
    others = []
    while _recent:
        storage = _recent.pop()()                        # latest first: what it depends on is fused into its launch
        if storage is not None and storage.node is not None:
            if device is None or storage.device is device:
                realize(storage)
            else:
                others.append(_ref(storage))
    _recent.extend(reversed(others))


def realize(storage: Storage) -> None:
    """Compute the pending node of ``storage`` (installed by ``fuse`` to keep this module small)."""
    raise NotImplementedError
