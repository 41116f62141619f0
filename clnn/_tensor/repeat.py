"""Repeating what a body did: its allocations and launches, kept by the shapes, strides, dtypes and attributes that it was called with.

A body works out kernels, sizes and arguments anew in each call, which costs the host more than the launches do. Where they follow from those
things alone, the second call of a kind is observed, and later ones do the same with other buffers.
"""
from __future__ import annotations

import contextlib
import functools
import math
import threading

from ..core import dtype as dt
from ..core import families, native, rng, symbols
from ..core import warn as warnings
from ..core.config import config
from ..graph import fuse
from ..graph import node as lazy
from ..graph.node import Storage
from ..runtime import launch as launcher
from ..runtime.device import Device
from ..runtime.launch import BUFFER, NUMBER, Prepared, run_all
from ..runtime.memory import HUGE_FROM, MIN_BYTES
from ..runtime.params import on_change
from ..runtime.sharing import shared as seen_by_arrays
from .families import ALIKE, OfBody, only_integers, same, same_recorded, traced
from .foreign import NoStrides
from .grad_mode import state
from .recorded import Recorded, outputs, tensors_among
from .tensor import Tensor

_PLAIN = frozenset((int, float, bytes, type(None)))
_TRIES = 4              # a call that cannot be observed is tried again so often; what waits for a build is no try
_MISFITS = 3            # calls that record gradients and leave more than one entry, after which those of other sizes are taken to do so, too
_MOST = 2048            # kinds of call remembered per body
_FEW = 1 << 15          # elements of a result that costs the host more than the device, whatever it is fused with
_SOME = 1 << 17         # elements up to which working out what to launch costs more than a pass over memory
_SMALL = 1 << 12        # elements of an operand whose gradient is not worth fusing into what reads it
_lock = threading.Lock()
observing = None        # the _Observer at work
on = config.repeat      # tests that change how a device is treated switch it off


@native.know
class Recipe:
    """Bytes to allocate, launches with what picks their buffers, and the results: None, (buffer, nbytes, shape, strides, offset, dtype, elements,
    dense), or the number of an earlier result that is given once more.

    ``places`` are the numbers of arguments: what picks the buffers of a launch from a list picks the arguments' numbers from its end.
    A launch that takes numbers which vary from run to run has their places in the list of those, others have None.
    ``single``: whether there is one result instead of a tuple, which is of the class ``named`` where that is not None.
    ``flow``: what tells two recipes apart whatever shares memory (see :func:`families.same`), where that was asked for.
    """

    __slots__ = ("device", "sizes", "small", "launches", "places", "results", "single", "named", "flow")

    def varied(self, sizes, launches, results):
        """The same with other sizes; ``launches``: what :meth:`Prepared.varied` of each takes."""
        new = Recipe()
        new.device, new.places, new.single, new.named, new.flow = self.device, self.places, self.single, self.named, self.flow
        new.sizes, new.small, new.results = sizes, _are_small(sizes), results
        new.launches = [(p.varied(*other), pick, drawn) for (p, pick, drawn), other in zip(self.launches, launches)]
        return new

    def run(self, buffers, numbers=()):
        device = self.device
        if self.small:
            buffers += device.alloc_all(self.sizes)
        else:
            buffers += map(device.alloc, self.sizes)
        run_all(device, self.launches, buffers + self.places, numbers)
        if self.single:
            return _tensor(device, buffers, *self.results[0]) if self.results else None
        out = []
        for r in self.results:
            out.append(None if r is None else out[r] if r.__class__ is int else _tensor(device, buffers, *r))
        return tuple(out) if self.named is None else tuple.__new__(self.named, out)


def _tensor(device, buffers, at, nbytes, shape, strides, offset, dtype, numel, dense):
    t, st = _new(Tensor), _new(Storage)                         # as its constructor would make it: every repeated operator comes here
    st.device, st.nbytes, st.buf, st.node, st.pinned = device, nbytes, buffers[at], None, False
    st.version = 0 if lazy.births is None else lazy.births()
    if seen_by_arrays and st.buf in seen_by_arrays:                             # an operand's memory, which a result never shares with the program
        st.buf = device.duplicate(st.buf, nbytes)
    t._storage, t._shape, t._strides, t._offset = st, shape, strides, offset
    t._dtype, t._numel, t._dense = dtype, numel, dense
    return t


_new = object.__new__


class Missed:
    """In place of a result: the call is still to be made. ``key``: its kind, None where that is not repeated; ``found``: how often it was met."""

    __slots__ = ("key", "buffers", "found")

    def __init__(self, key=None, buffers=None, found=0):
        self.key, self.buffers, self.found = key, buffers, found


_LEFT = Missed()
native.give(repeat=globals(), LEFT=_LEFT, Missed=Missed)
native.method(Recipe, "run")


def _describe(values, key, buffers, ready):
    """Add what tells calls apart to ``key``, and the operands' memory to ``buffers``; False where such a call is not repeated.

    Pending operands of up to ``ready`` elements are computed once the kind of call is known (0: all, right away; -1: lists have none, nor values of the host).
    """
    for v in values:
        kind = v.__class__
        if isinstance(v, Tensor):
            st = v._storage
            if st.node is not None:
                if not ready or st.node.buf is not None:
                    fuse.realize(st)
                elif st.node.numel > ready:
                    return False
            buffers.append(st if st.node is not None else st.buf)
            key += (v.shape, v._strides, v._offset, v.dtype, st.device)
        elif kind is list or kind is tuple and not only_integers(v):
            if ready < 0 and any([isinstance(t, Tensor) and (t._storage.__class__ is not Storage or t._storage.node is not None) for t in v]):
                return False
            key.append(float(len(v)))                           # no number that a family may vary
            if not (len(v) > 4 and _describe_alike(v, key, buffers) or _describe(v, key, buffers, ready)):
                return False
        else:
            key += (v if v.__class__ is not float or v else str(v), kind)      # 0.0 equals -0.0
    return True


def _describe_alike(values, key, buffers):
    """:func:`_describe` of a list of tensors of one kind, none of which is pending, with that kind told once; False, with nothing added, for others."""
    first = values[0]
    if first.__class__ is not Tensor:
        return False
    shape, strides, dtype, device, found = first.shape, first._strides, first.dtype, first._storage.device, []
    for v in values:
        if v.__class__ is not Tensor or v.dtype is not dtype or v._offset or v.shape != shape or v._strides != strides:
            return False
        st = v._storage
        if st.node is not None or st.device is not device:
            return False
        found.append(st.buf)
    buffers += found
    key += (ALIKE, shape, strides, dtype, device)
    return True


native.give(describe_alike=_describe_alike)


def _computed(buffers):
    """Operands that are pending in ``buffers`` are computed, now that what is to be done with them is known."""
    for i, buf in enumerate(buffers):
        if buf.__class__ is Storage:
            buffers[i] = buf.buffer()
    return buffers


def _fold_key(values):
    """The kind of a call with one tensor, which comes first, for reductions of what is pending; None of others, as where it is given by name."""
    given = ()
    if values[0].__class__ is tuple:                            # (arguments, those by name)
        values, given = values
    if not values or not isinstance(values[0], Tensor):
        return None
    first, *rest = values
    rest += [v for pair in given for v in pair]
    return (first.shape, first.dtype, first._storage.device, *[part for v in rest for part in (v, type(v))]), first, rest


def _note_fold(folds, values, result):
    """Note what a call came to that only recorded a reduction of its pending operand, for the C form: the next of its kind is recorded without the body."""
    node = result._storage.node if result.__class__ is Tensor else None
    call, args = (None, ()) if node is None else (node.reduce, node.args)
    known = None if call is None or not args or symbols.tracing is not None else _fold_key(values)     # another thread may have computed it meanwhile
    if known is None:
        return result
    key, first, rest = known
    if args[0][0] is first._storage.node and not any([isinstance(v, Tensor) for v in rest]):
        with contextlib.suppress(TypeError):                    # an argument without a hash
            if len(folds) > _MOST:
                folds.clear()
            folds[key] = call, node.compute, result.dtype, result.shape, result._numel
    return result


def repeated(body, mode="", entries=None):
    """``body`` with calls of a known kind repeated (decorator).

    Its launches must depend on nothing but the metadata of its tensors and on its other arguments, which are hashable: no random numbers, no values
    read, no state. It takes positional arguments: tensors, lists or tuples of them, and others. What warns, or gives results that are not fresh or not
    computed yet, is called each time.

    A body that gives None writes into the memory of its operands.

    Modes, words of ``mode``: ``ready``: calls with pending operands of many elements are left to the body, too, which computes these where they are needed;
    with ``alone`` those with any pending operands, which the body fuses into its one launch. ``settled``: those with lists of which one is pending, or with the host.
    ``whole``: pending results are computed at once; ``small``: those of some elements, as larger ones gain by being fused with what follows;
    ``few``: those of few, for short chains of elementwise operators.
    ``fresh``: the first operand is only copied, so that constants need no memory of their own.

    ``entries``: of the body of a composite, whether calls that record gradients are repeated, too, where they leave one entry on the tape; None: of others, which
    record none.
    """
    words = mode.split() if mode.__class__ is str else ()
    ready, fresh = -1 if "settled" in words else (1 if "alone" in words else _SOME if "small" in words else _FEW) if "ready" in words else 0, "fresh" in words
    whole = 1 << 62 if "whole" in words else _SOME if "small" in words else _FEW if "few" in words else 0
    known, akin, met, folds = {}, {}, {}, {} if "alone" in words and native.built is not None else None
    for kept in (known, akin, met) if folds is None else (known, akin, met, folds):
        on_change(kept.clear)
        dt.default_listeners.append(kept.clear)

    def again(values):
        """What a call of a known kind gives, else a Missed for ``learn``."""
        if launcher.recorders is not None or launcher.recording is not None or not on or entries is not None and state.autocast is not None:
            return _LEFT
        key, buffers, rest = [config.matmul_precision, config.tensor_cores], [], values
        if fresh:
            constant = full_value(values[0])
            if constant is not None:
                key += (values[0].shape, values[0].dtype, values[0]._storage.device, repr(constant))
                rest = values[1:]
        try:
            if not _describe(rest, key, buffers, ready):
                return _LEFT
        except NoStrides:                                       # the body finds that out, too, or asks for no memory
            return _LEFT
        n = len(buffers)
        if n > 1 and (buffers[0] is buffers[1] if n == 2 else len(set(map(id, buffers))) < n):
            ids = list(map(id, buffers))
            key.append(str(list(map(ids.index, ids))))          # which operands are the same memory
        if entries is not None and state.grad and _tracked(values):
            if not entries:
                return _LEFT
            key.append(tuple([t._rg for t in tensors_among(values)]))
        key = tuple(key)
        try:
            found = known.get(key, 0)
        except TypeError:                                       # an argument without a hash
            return _LEFT
        if found.__class__ is Recipe:
            return found.run(_computed(buffers) if ready else buffers)
        if found.__class__ is Recorded:
            return found.run(_computed(buffers) if ready else buffers, tensors_among(values))
        return _LEFT if found > _TRIES else Missed(key, buffers, found)

    def learn(values, missed):
        """Make the call, and observe it where that says how to make the next one of its kind."""
        key, found = missed.key, missed.found
        if key is None:
            return body(*values) if folds is None else _note_fold(folds, values, body(*values))
        if len(known) > _MOST or len(met) > 8 * _MOST:
            known.clear()
            met.clear()
        device, tracks = _device(values), entries is not None and state.grad and _tracked(values)
        family, numbers = (None, None) if found and not tracks or fresh or device.__class__ is not Device else families.find(akin, key, device.manner())
        if tracks and family is not None and family.fit <= -_MISFITS:
            known[key] = _TRIES + 1                             # it leaves other entries than the one that could be kept
            return body(*values)
        variant, recipe = (None, None) if family is None or found else family.of(numbers)
        if recipe is not None and variant.checks >= families.CHECKS:
            met[hash(key)] = count = met.get(hash(key), 0) + 1
            if count >= families.KEPT:                          # many sizes are met once: what is kept costs memory, and the collector of garbage time
                known[key] = recipe
            buffers = _computed(missed.buffers)
            return recipe.run(buffers, tensors_among(values)) if tracks else recipe.run(buffers)
        wanted = found or recipe is not None or family is not None and family.open(numbers)
        if not wanted:
            known[key] = found + 1
            return body(*values)
        if not _lock.acquire(blocking=False):                   # within another body that is observed, maybe while builds are waited for: no try
            return body(*values)
        try:
            apart = len(set(map(id, missed.buffers)))
            if len(set(map(id, _computed(missed.buffers)))) < apart:
                return body(*values)                            # operands that are copies of each other, which the key does not say
            if not found and recipe is None and not config.debug and (not tracks or family.fit > 0):
                case = OfBody(body, values, tracks)
                variant, recipe = family.learn(numbers, traced, case, key, missed.buffers, whole, device, _recipe, case.recorded if tracks else None)
            result, seen = observe(body, values, missed.buffers, whole, flow=recipe is not None, tracks=tracks)
            learned = seen
            if tracks and seen.__class__ is Recipe:
                seen = Recorded.of(seen, result, tensors_among(values))
                if family is not None:
                    family.fit = max(family.fit, 0) + 1 if seen is not None else min(family.fit, 0) - 1
            if recipe is not None and learned.__class__ is Recipe and seen is not None:
                family.check(variant, recipe, seen, same_recorded if tracks else same)
                learned.flow = None
        finally:
            _lock.release()
        if seen is not WAITS:
            known[key] = seen or found + 1
        return result

    @functools.wraps(body)
    def call(*values):
        result = again(values)
        return result if result.__class__ is not Missed else learn(values, result)
    if native.built is not None and not fresh:
        again = native.built.again(known, again, ready, _TRIES, -1 if entries is None else entries, folds)
    call.again, call.learn = again, learn
    return call


def repeated_composite(body, mode="", entries=False):
    """``body`` of a composite, repeated where no gradients are recorded: then it is a list of launches like any other (decorator). ``entries``: as :func:`repeated`
    takes it."""
    brief, named = repeated(body, mode, entries), repeated(lambda args, given: body(*args, **dict(given)), mode, entries)

    @functools.wraps(body)
    def call(*args, **kwargs):
        if kwargs.get("out") is not None:
            return body(*args, **kwargs)                        # what is given to hold the result may have to be resized or written with care
        return named(args, tuple(kwargs.items())) if kwargs else brief(*args)
    call.again, call.learn, call.by_name = brief.again, brief.learn, named.again
    return call


def repeated_rule(rule):
    """A gradient rule whose launches are repeated where it has few elements and is not differentiated itself (decorator)."""
    again = repeated(rule, "whole")

    @functools.wraps(rule)
    def call(*args):
        if state.grad:
            return rule(*args)
        for v in args:
            if v.__class__ is Tensor and v._numel > _SMALL:
                return rule(*args)
        return again(*args)
    return call


def _tracked(values):
    """Whether a tensor among ``values``, or in a list of them, requires gradients."""
    for v in values:
        if isinstance(v, Tensor):
            if v._rg:
                return True
        elif (v.__class__ is tuple or v.__class__ is list) and _tracked(v):
            return True
    return False


def full_value(t):
    """The number that all elements of a tensor are that is still to be filled, else None."""
    node = t._storage.node
    return node.args[0] if node is not None and node.buf is None and node.expr is fuse.FULL and t._dense and t._numel == node.numel else None


def _device(values):
    for v in values:
        if isinstance(v, Tensor):
            return v._storage.device
        if v.__class__ in (list, tuple):
            found = _device(v)
            if found is not None:
                return found
    return None


WAITS = object()         # in place of a recipe: launches wait for kernels to be built, which says nothing about later calls


def alike(one, other):
    """Whether two recipes launch the same, whatever their buffers and numbers."""
    return one.sizes == other.sizes and one.results == other.results and len(one.launches) == len(other.launches) and all(
        [p.args == q.args and a == b and getattr(p, "kernel", None) is getattr(q, "kernel", None) and getattr(p, "where", None) == getattr(q, "where", None)
         for (p, _, a), (q, _, b) in zip(one.launches, other.launches)])


class _Observer:
    """Notes what the calling thread allocates and enqueues on a device.

    ``limit``: bytes, of which nothing more is held once more are allocated.
    """

    def __init__(self, device, limit):
        self.device, self.limit, self.me = device, limit, threading.get_ident()
        self.made, self.launches, self.total = [], [], 0
        self.before = self._state()

    def _state(self):
        return self.device.transfers, rng.current().position(), warnings.count

    def __enter__(self):
        device = self.device
        self.alloc, self.fill, self.copy = device.alloc, device.fill, device.copy
        device.alloc, device.fill, device.copy, launcher.recorders = self._allocated, self._filled, self._copied, [self._launched]
        return self

    def __exit__(self, *exc):
        device = self.device
        device.alloc, launcher.recorders = self.alloc, None
        del device.fill, device.copy

    @contextlib.contextmanager
    def apart(self):
        """What is done inside is not among what is repeated."""
        then = self._state()
        self.__exit__()
        try:
            yield
        finally:
            self.__enter__()
            self.before = tuple([now if b == t else b for b, t, now in zip(self.before, then, self._state())])

    def _allocated(self, nbytes):
        buf = self.alloc(nbytes)
        if threading.get_ident() == self.me:
            self.total += nbytes
            self.made.append((buf, nbytes))
            if self.total > self.limit:
                self.made.clear()
                self.launches.clear()
        return buf

    def _launched(self, where, kernel, global_size, local_size, args, event):
        if threading.get_ident() == self.me:
            self.launches.append((where, functools.partial(Prepared, kernel, global_size, local_size), args))

    def _filled(self, buf, pattern, nbytes, offset_bytes=0):
        self._transfer(self.fill, "fill", buf, pattern, nbytes, offset_bytes)

    def _copied(self, src, dst, nbytes, src_off=0, dst_off=0):
        self._transfer(self.copy, "copy", src, dst, nbytes, src_off, dst_off)

    def _transfer(self, function, name, *args):
        function(*args)
        if threading.get_ident() == self.me:
            self.launches.append((self.device, functools.partial(launcher.Transfer, name), args))
            self.before = (self.before[0] + 1, *self.before[1:])

    def repeatable(self):
        """Whether all that was done was seen, so that doing it again does the same."""
        return self.total <= self.limit and self._state() == self.before and all([where is self.device for where, *_ in self.launches])


def once():
    """Asked for by a body that changes what it was given: such a call is made anew each time."""
    if observing is not None:
        observing.limit = -1


def observe(body, values, inputs, whole, limit=None, numbers=(), flow=False, tracks=False):
    """(result, its Recipe, None or WAITS); ``tracks``: the recipe makes what the result's entry on the tape keeps, too.

    ``limit``: of a pass over a graph, the bytes that it may allocate; its results may be operands, and the same memory. ``numbers``: those that vary from
    pass to pass, as the very objects that the launches get.
    """
    device = _device(values)
    if device.__class__ is not Device or device.waiting or config.debug:
        return body(*values), WAITS if device.__class__ is Device and device.waiting else None
    global observing
    with _Observer(device, math.inf if limit is None else limit) as seen:
        observing = seen
        try:
            result = body(*values)
        finally:
            observing = None
        for t in (result if isinstance(result, tuple) else (result,)) if whole else ():
            if t.__class__ is Tensor and t._storage.node is not None and t._numel <= whole:
                fuse.realize(t._storage)
    if device.err_dirty and device.word is not None:
        device.settle()                     # it did not run in the calling thread, which would show an error at once
    if device.waiting:
        return result, WAITS
    kept = outputs(result) if tracks else result
    return result, _recipe(device, kept, inputs, seen.made, seen.launches, limit is not None, numbers, flow) if seen.repeatable() else None


def _are_small(sizes):
    """Whether buffers of so many bytes come from the pool alone."""
    return max(sizes, default=0) < HUGE_FROM


def _slots(inputs, made, launches, results):
    """({id: place}, sizes): the places of the operands and of what was allocated, of which those of one size that are not in use at a time share one."""
    place, sizes, free, last = {id(buf): k for k, buf in enumerate(inputs)}, [], {}, {}
    size = {id(buf): symbols.label(nbytes) for buf, nbytes in made}
    numbers = {symbols.label(nbytes): nbytes for _, nbytes in made}
    for n, launch in enumerate(launches):
        last.update([(id(a), n) for a in launch[2] if id(a) in size])
    last.update([(id(t._storage.buf), len(launches)) for t in results if t is not None])
    ends = [buf for buf, _ in made if last.get(id(buf)) == len(launches)]
    for n, (_, _, args) in enumerate([*launches, (None, None, ends)]):
        used = dict.fromkeys([id(a) for a in args if id(a) in size])
        for key in used:
            if key not in place:
                spare = free.get(size[key])
                if spare:
                    place[key] = spare.pop()
                else:
                    place[key] = len(inputs) + len(sizes)
                    sizes.append(numbers[size[key]])
        for key in used:
            if last[key] == n:
                free.setdefault(size[key], []).append(place[key])
    return place, sizes


def _recipe(device, result, inputs, made, launches, shared, numbers, flow=False):
    recipe = Recipe()
    recipe.flow = None
    recipe.single = not isinstance(result, tuple)
    recipe.named = None if recipe.single or result.__class__ is tuple else result.__class__
    results = () if result is None else (result,) if recipe.single else result
    if any([t is not None and t.__class__ is not Tensor for t in results]):
        return None
    place, sizes = _slots(inputs, made, launches, results)
    recipe.sizes = [symbols.larger(n, MIN_BYTES) for n in sizes]
    recipe.small = _are_small(map(symbols.plain, sizes))
    recipe.device, recipe.places = device, list(range(max([len(args) for *_, args in launches], default=0)))
    recipe.results, first, storages = [], len(inputs), set()
    for t in results:
        if t is None:
            recipe.results.append(None)
            continue
        same = [i for i, other in enumerate(results[:len(recipe.results)]) if other is t]
        if same:
            recipe.results.append(same[0])
            continue
        st = t._storage
        k = place.get(id(st.buf), -1)
        part = t._numel * t.dtype.itemsize != st.nbytes
        if st.node is not None or k < 0 or ((k < first or id(st) in storages) and not shared) or (part and shared):
            return None                     # a value yet to be computed, an operand or a view of another result; those that share memory by value may
        storages.add(id(st))
        recipe.results.append((k, st.nbytes, t.shape, t._strides, t._offset, t.dtype, t._numel, t._dense))
    recipe.launches, total, number = [], len(inputs) + len(recipe.sizes), {id(n): i for i, n in enumerate(numbers)}
    for _, make, args in launches:
        varying = [i for i, a in enumerate(args) if type(a) not in _PLAIN and id(a) in place]
        if not varying:
            return None
        pick = native.picker([k for i in varying for k in (total + i, place[id(args[i])])])
        drawn = [number[id(a)] for a in args if id(a) in number]
        args = [BUFFER if i in varying else NUMBER if id(a) in number else a for i, a in enumerate(args)]    # a recipe keeps no buffer but constants
        recipe.launches.append((make(args), pick, drawn or None))
    if flow:
        order = {id(buf): k for k, buf in enumerate([*inputs, *[buf for buf, _ in made]])}
        recipe.flow = ([[order.get(id(a)) for a in args] for *_, args in launches], [None if t is None else order.get(id(t._storage.buf)) for t in results],
                       [(place[id(buf)] - first if id(buf) in place else -1, nbytes) for buf, nbytes in made])
    return recipe
