"""One recording of a compiled function: what it found, what it leaves, and its backward pass."""
from __future__ import annotations

import contextlib
import gc
import os
import sys
import threading
import weakref
from collections import Counter

from ._results import map_tensors
from ._tensor import tape
from ._tensor.backward import grad as grad_of
from ._tensor.tensor import Tensor, edge, make, make_view
from .core.layout import contiguous_format, strided
from .graph import node as lazy
from .graph.mirror import Mirrored, Unsent
from .graph.node import Storage, constants, held
from .runtime.capture import Recording

_refcount = sys.getrefcount
_FOLDER = os.path.dirname(__file__) + os.sep
_WAITING = tuple(_FOLDER + name for name in ("utils", "multiprocessing", "distributed", "futures"))     # threads in these wait for others, or for files
_capturing = threading.RLock()


def alone() -> bool:
    """Whether no other thread is in the midst of an operator: a recording looks at all memory that there is, and would take what others do for its own."""
    for ident, frame in sys._current_frames().items():
        while frame is not None and ident != threading.get_ident():
            name = frame.f_code.co_filename
            if name.startswith(_FOLDER) and not name.startswith(_WAITING):
                return False
            frame = frame.f_back
    return True


@contextlib.contextmanager
def _ours(recording):
    """Whoever makes memory in another thread meanwhile ends the recording, as it does who launches something."""
    before = lazy.births

    def birth():
        recording.mine()
        return 0 if before is None else before()
    lazy.births = birth
    try:
        yield
    finally:
        if lazy.births is birth:
            lazy.births = before


def _alive(*classes):
    """All objects of just these classes. A large program has millions of others, so each is looked at as briefly as can be."""
    kinds = frozenset(classes)
    return [o for o in gc.get_objects() if type(o) in kinds]


def _of(device, storages):
    return [st for st in storages if type(st) is Storage and st.device is device]


def _kinds_of(cls):
    """``cls`` and all classes derived from it."""
    return {cls}.union(*map(_kinds_of, type.__subclasses__(cls)))


def _gradients_of_leaves(inputs):
    """Every leaf but the ``inputs``, with the gradient that it has; references do not keep either."""
    given = set(map(id, inputs))
    leaves = [o for o in _alive(*_kinds_of(Tensor)) if o._rg and o._grad_fn is None and id(o) not in given]
    return [(weakref.ref(t), None if t._grad is None else weakref.ref(t._grad)) for t in leaves]


class Busy(Exception):
    """Other threads work or record now."""


class Stale(Exception):
    """A tensor that a recording works on is gone: the program has replaced it by another one."""


class Captured:
    """One recording with its inputs, its outputs and the memory that it found.

    ``fn`` is called on ``args`` whose tensors are ``inputs``. When outputs require gradients, the tape of the recorded run is kept: its backward is
    recorded at its first use and replayed like the forward pass.
    """

    def __init__(self, fn, args, kwargs, inputs, device, forward=None):
        self.device, self.recording, self.follows = device, Recording(device, forward and forward.recording), forward is not None
        self.inputs = inputs                                       # kept: their addresses must not come to mean other memory
        if not _capturing.acquire(blocking=False):
            raise Busy
        try:
            self._record(lambda: fn(*args, **kwargs), inputs, device, forward)
        finally:
            held.clear()
            _capturing.release()

    def _record(self, run, inputs, device, forward):
        with contextlib.ExitStack() as stack:
            with device.lock:                                      # from here on other threads launch nothing that the recording does not see
                if not alone():
                    raise Busy
                made = forward.made() if forward else set()
                homes, gradients = self._prepare(device, made), () if forward else _gradients_of_leaves(inputs)
                versions = [t._storage.version for t in inputs]
                stack.enter_context(self.recording)
            stack.enter_context(_ours(self.recording))
            self.result = run()
            if self.recording.failed is None:
                if not alone():
                    self.recording.abandon("another thread used the device meanwhile")
                else:
                    self._settle(device, homes)
                    if any(ref() is None and held[home].int_ptr in self.recording.raw for ref, home in homes):
                        self.recording.abandon("it replaces a tensor that it reads by another one")
        self.written = versions != [t._storage.version for t in inputs]
        for address in self.addresses:                             # bound to the inputs of each call
            self.recording.followed.pop(address, None)
        if self.recording.failed is None:
            self._note_gradients(gradients)
            self._finish(homes, made.union(forward.addresses) if forward else made)

    def _prepare(self, device, made):
        """Compute what is pending, and give each storage memory of its own; (reference to a storage, id of its buffer) of each."""
        for t in self.inputs:
            t._storage.buffer()
        storages = _alive(Storage, Mirrored, Unsent)
        for st in [st for st in storages if type(st) is not Storage]:
            st.buffer()                                            # what no array looks at any more, or the host alone had, is a storage like others
        storages = _of(device, storages)
        for st in storages:
            if st.node is not None:
                st.buffer()
        self._separate(device, storages, made)
        self.addresses = [t._storage.buf.int_ptr for t in self.inputs]
        before = [(weakref.ref(st), st.buf) for st in storages if st.buf is not None]
        held.clear()
        held.update({id(buf): buf for _, buf in before})
        return [(ref, id(buf)) for ref, buf in before]

    @staticmethod
    def _separate(device, storages, shared):
        """Storages that share a buffer by value get their own, so that each has a home that only it writes. ``shared``: addresses of what stays as it is."""
        seen = set(map(id, constants.values()))
        for st in storages:
            if st.buf is None:
                continue
            if id(st.buf) in seen and st.buf.int_ptr not in shared:
                st.buf = device.duplicate(st.buf, st.nbytes)
            seen.add(id(st.buf))

    @staticmethod
    def _settle(device, homes):
        """Compute what is pending, and bring values that moved back to where they lived before."""
        for st in _of(device, _alive(Storage)):
            if st.node is not None:
                st.buffer()
        for ref, home in homes:
            st = ref()
            if st is not None and id(st.buf) != home:
                device.copy(st.buf, held[home], st.nbytes)
                st.buf = held[home]

    def _note_gradients(self, before):
        """What the run found of, and left in, ``.grad`` of leaves: replays ask for the same, and leave the same."""
        self.found, self.left = [], []
        for ref, was in before:
            leaf = ref()
            if leaf is None:
                continue
            now, old = leaf._grad, None if was is None else was()
            st = now._storage if now is not None and now.layout is strided else None
            if now is not old or now is None and was is not None:
                self.left.append((ref, now, st, st and st.buf.int_ptr))
            if now is not None and (was is None or now is old and st is not None and st.buf.int_ptr in self.recording.raw):
                self.found.append((ref, was))

    def fits(self):
        """Whether leaves have gradients to add to where they had them in the recorded call, and none where they had none."""
        for ref, was in self.found:
            leaf = ref()
            if leaf is None:
                raise Stale
            if (was is None) != (leaf._grad is None):
                return False
            if was is not None and was() is not leaf._grad:
                raise Stale
        return True

    def _finish(self, homes, filled):
        """Keep what replays need. ``filled``: addresses that are bound or filled for each of them, by the forward pass."""
        used = self.recording.raw.keys() - filled
        self.homes = [(ref, held[home].int_ptr) for ref, home in homes if ref() is not None and held[home].int_ptr in used]
        self.outs = []
        outs = []
        map_tensors(lambda t: outs.append(t) or t, self.result)
        moving, kept = self._moving(outs), {id(ref()) for ref, _ in self.homes}
        given = {id(t._storage): k for k, t in enumerate(self.inputs)}
        for t in outs:
            st = t._storage
            self.outs.append((t, given[id(st)] if id(st) in given else None if id(st) in kept else self.recording.handle(st.buf)))
        self.moving = {id(t): (handle.int_ptr, handle.size) for t, handle in self.outs if id(t) in moving}
        # a graph that backward() already walked is finished business; another one can be walked later
        self.tracked = [t for t in outs if t._grad_fn is not None and not walked(t)]
        self.backward, self.walk = None, None
        if self.tracked:
            self.leaves = [node.variable for node in graph_of(self.tracked) if isinstance(node, tape.AccumulateGrad)]
        self.recording.finish()
        self.memory = self.recording.memory

    def _moving(self, outs):
        """The ids of the outputs that replays write to fresh memory at once: those that nothing but the result refers to."""
        times = Counter([t._storage.buf.int_ptr for t in outs])
        launches = self.recording.launches_by_address()
        found = set()
        for i in range(len(outs)):
            t = outs[i]
            st, address = t._storage, t._storage.buf.int_ptr
            # the result, the list, the loop and the call; the tensor, the loop and the call; the storage and the call
            alone = _refcount(outs[i]) <= 4 and _refcount(t._storage) <= 3 and _refcount(st.buf) <= 2
            # binding a kernel to other memory takes less than a copy does, unless many kernels use it
            if alone and times[address] == 1 and address not in self.addresses and 0 < launches.get(address, 0) <= 8 + (st.nbytes >> 14):
                found.add(id(t))
        return found

    def made(self):
        """Addresses of the memory that the recording itself fills, where its backward pass finds what was saved."""
        return self.recording.raw.keys() - {address for _, address in self.homes} - set(self.addresses) - self.recording.followed.keys()

    def busy(self):
        """True while a forward replay waits for its backward: its saved values must not be overwritten."""
        if not self.tracked:
            return False
        walk = self.walk() if self.walk is not None else None
        return walk is not None and not walk.freed

    def replay(self, inputs, refresh=True):
        """Run the recording on new inputs; outputs are fresh tensors."""
        with self.device.lock:                                      # threads bind it to their inputs in turn
            return self._replay(inputs, refresh)

    def _replay(self, inputs, refresh):
        device, recording = self.device, self.recording
        if refresh and not all(check() for check in recording.checks):
            raise Stale
        self.last = None
        told = {}                                                   # id -> (storage that is one with an array, the buffer with its next values)
        for ref, address in self.homes:
            st = ref()
            if st is None:
                raise Stale
            recording.bind(address, self._own(st, told))
        for _, _, st, address in self.left:
            if st is not None:
                recording.bind(address, self._own(st, told))
        storages = [whole(t)._storage for t in inputs]
        if not self.follows:                                        # a backward pass does not write what it begins with
            for st in {id(st): st for st in storages}.values():
                self._own(st, told if self.written else None)
        self.last = [told[id(st)][1] if id(st) in told else st.buffer() for st in storages]
        for address, buf in zip(self.addresses, self.last):
            recording.bind(address, buf)
        fresh = {key: device.alloc(nbytes) for key, (_, nbytes) in self.moving.items()}
        recording.replay(refresh, [(address, fresh[key]) for key, (address, _) in self.moving.items()])
        for st, buf in told.values():
            st.buf = buf
        for ref, grad, _, _ in self.left:
            leaf = ref()
            if leaf is not None:
                leaf._grad = grad
        walk = None
        if self.tracked:
            walk = Replayed(self, inputs)
            self.walk = weakref.ref(walk)
        outs = iter(self.outs)
        return map_tensors(lambda t: self._renewed(*next(outs), walk, fresh, inputs), self.result)

    @staticmethod
    def _own(st, told):
        """The buffer of a storage, which a replay may write: what has the same value by it, or is still to be computed from it, keeps the value.

        Of one that is one with an array it is a copy, which goes to ``told`` (None: it is only read).
        """
        buf = st.buffer()
        if st.mirrored:
            if told is not None:
                buf = told.setdefault(id(st), (st, st.device.duplicate(buf, st.nbytes)))[1]
        elif _refcount(st.buf) > 3 and not st.pinned:                  # the storage, the name here, the call
            st.buf = buf = st.device.duplicate(buf, st.nbytes)
        return buf

    def _renewed(self, t, where, walk, fresh, inputs):
        """What stands for the recorded output ``t`` after a replay. ``where`` its value is: None in ``t`` itself, the number of an input, or a handle of
        the recorded memory, for which there may be a buffer in ``fresh``."""
        if where is None:
            return t
        if where.__class__ is int:
            got = _part(inputs[where], t)
        else:
            buf = fresh.get(id(t))
            if buf is None:
                buf = self.device.alloc(t._storage.nbytes)
                self.device.copy(where, buf, t._storage.nbytes)
            got = _on(buf, t)
        for nr, tracked in enumerate(self.tracked):
            if tracked is t:
                got._grad_fn, got._out_nr, got._rg = walk, nr, True
        return got

    def gradients(self, grads):
        """Gradients of the leaves for output gradients ``grads``, by the recorded backward pass."""
        seeds = [g.contiguous() if g is not None else t.detach().new_zeros(t.shape) for g, t in zip(grads, self.tracked)]
        if self.backward is None:
            def walk(*seeds):
                return grad_of(self.tracked, self.leaves, list(seeds), retain_graph=True, allow_unused=True)
            seeds = [s + 0 for s in seeds]                          # memory of its own: it is rebound at every replay
            try:
                self.backward = Captured(walk, seeds, {}, seeds, self.device, self)
            except Busy:
                return self._unrecorded(walk, seeds)
            if self.backward.recording.failed is not None:
                self.refused(f"in its backward pass, {self.backward.recording.failed}")
                grads, self.backward = self.backward.result, None
                there = all(t._storage.buf is buf for t, buf in zip(self.inputs, self.last))     # then the run that failed as a recording did it
                return grads if there else self._unrecorded(walk, seeds)
        for address, buf in zip(self.addresses, self.last):         # inputs that were saved for backward
            self.backward.recording.bind(address, buf)
        try:
            return self.backward.replay(seeds, refresh=False)
        except Stale:
            self.backward = None
            return self.gradients(grads)

    def _unrecorded(self, walk, seeds):
        """The backward pass of the last call where it cannot be recorded: the inputs of that call lie where the recorded ones do meanwhile."""
        storages = [t._storage for t in self.inputs]
        own = [st.buffer() for st in storages]
        try:
            for st, buf in zip(storages, self.last):
                st.buf = buf
            grads = walk(*seeds)
            for g in grads:
                if g is not None:
                    g._storage.buffer()
            return grads
        finally:
            for st, buf in zip(storages, own):
                st.buf = buf


def _on(buf, t):
    """A tensor like ``t`` on memory of its own."""
    st = t._storage
    got = make(Storage(st.device, st.nbytes, buf), t.shape, t.dtype, t._numel)
    if not t._dense:
        got._strides, got._offset, got._dense = t._strides, t._offset, False
    return got


def whole(t):
    """The input, or a copy on memory of its own of one that is a part of other memory."""
    return t if t._dense else t.detach().clone(memory_format=contiguous_format)


def _part(given, t):
    """The input ``given``, or the part of its memory that ``t`` is of the recorded one's."""
    if (given.shape, given._strides, given._offset, given.dtype) == (t.shape, t._strides, t._offset, t.dtype):
        return given
    return make_view(given, t.shape, t._strides, t._offset, t.dtype)


def walked(t):
    """Whether a backward pass has used up the graph of ``t``, in part at least."""
    return t._grad_fn is not None and any(getattr(node, "freed", False) for node in graph_of([t]))


def graph_of(outputs):
    """Every entry of the tape that the graph of ``outputs`` has."""
    seen, stack = {}, [t._grad_fn for t in outputs]
    while stack:
        node = stack.pop()
        if node not in seen:
            seen[node] = None
            stack.extend(e[0] for e in node.edges if e is not None)
    return seen


class Replayed(tape.Node):
    """The tape entry of one replayed forward pass."""

    __slots__ = ("captured", "freed")

    def __init__(self, captured, inputs):
        proxies = {id(p): t for p, t in zip(captured.proxies, inputs)}
        super().__init__([edge(proxies.get(id(leaf), leaf)) for leaf in captured.leaves], len(captured.tracked))
        self.captured, self.freed = captured, False

    def name(self):
        return "CompiledFunctionBackward"

    def release(self):
        self.freed = True

    def apply(self, grads, needed):
        if self.freed:
            raise RuntimeError("Trying to backward through a compiled function a second time; its saved values may have been overwritten")
        return self.captured.gradients(grads)
