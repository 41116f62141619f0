"""Repeating what a body did: its allocations and launches, kept by the shapes, strides, dtypes and attributes that it was called with.

A body works out kernels, sizes and arguments anew in each call, which costs the host more than the launches do. Where they follow from those
things alone, the second call of a kind is observed, and later ones do the same with other buffers.
"""
from __future__ import annotations

import functools
import operator
import threading

from ..core import dtype as dt
from ..core import rng
from ..core import warn as warnings
from ..core.config import config
from ..graph import fuse
from ..graph.node import Storage
from ..runtime import launch as launcher
from ..runtime.device import Device
from ..runtime.launch import BUFFER, Prepared
from ..runtime.params import on_change
from .foreign import NoStrides
from .grad_mode import state
from .tensor import Tensor

_PLAIN = frozenset((int, float, bytes, type(None)))
_TRIES = 4              # a call that cannot be observed is tried again so often; what waits for a build is no try
_MOST = 4096            # kinds of call remembered per body
_FEW = 1 << 13          # elements of a result that costs the host more than the device
_SMALL = 1 << 12        # elements of an operand whose gradient is not worth fusing into what reads it
_lock = threading.Lock()
on = True               # tests that change how a device is treated switch it off


class Recipe:
    """Bytes to allocate, launches with what picks their buffers, and the results: None, (buffer, nbytes, shape, strides, dtype, elements,
    dense), or the number of an earlier result that is given once more.

    ``places`` are the numbers of arguments: what picks the buffers of a launch from a list picks the arguments' numbers from its end.
    """

    __slots__ = ("device", "sizes", "launches", "places", "results", "single")

    def run(self, buffers):
        device = self.device
        alloc = device.alloc
        for n in self.sizes:
            buffers.append(alloc(n))
        everything = buffers + self.places
        for prepared, pick in self.launches:
            prepared.run(device, pick(everything))
        if self.single:
            return _tensor(device, buffers, *self.results[0]) if self.results else None
        out = []
        for r in self.results:
            out.append(None if r is None else out[r] if r.__class__ is int else _tensor(device, buffers, *r))
        return tuple(out)


def _tensor(device, buffers, at, nbytes, shape, strides, dtype, numel, dense):
    t = _new(Tensor)
    t._storage, t.shape, t._strides, t._offset = Storage(device, nbytes, buffers[at]), shape, strides, 0
    t.dtype, t._numel, t._dense = dtype, numel, dense
    return t


_new = object.__new__


def _describe(values, key, buffers, ready):
    """Add what tells calls apart to ``key``, and the operands' memory to ``buffers``; False where such a call is not repeated."""
    for v in values:
        kind = v.__class__
        if isinstance(v, Tensor):
            st = v._storage
            if st.node is not None:
                if ready and st.node.buf is None:
                    return False
                fuse.realize(st)
            buffers.append(st.buf)
            key += (v.shape, v._strides, v._offset, v.dtype, st.device)
        elif kind is list or kind is tuple and v and v[0].__class__ is not int:
            key.append(len(v))
            if not _describe(v, key, buffers, ready):
                return False
        else:
            key += (v if v.__class__ is not float or v else str(v), kind)      # 0.0 equals -0.0
    return True


def repeated(body, mode=""):
    """``body`` with calls of a known kind repeated (decorator).

    Its launches must depend on nothing but the metadata of its tensors and on its other arguments, which are hashable: no random numbers, no values
    read, no state. It takes positional arguments: tensors, lists or tuples of them, and others. What warns, or gives results that are not fresh or not
    computed yet, is called each time.

    A body that gives None writes into the memory of its operands.

    Modes, words of ``mode``: ``ready``: calls with pending operands are left to the body, too, which computes these where they are needed.
    ``whole``: pending results are computed at once; ``small``: those of few elements, as larger ones gain by being fused with what follows.
    ``fresh``: the first operand is only copied, so that constants need no memory of their own.
    """
    words = mode.split() if mode.__class__ is str else ()
    ready, whole, fresh = "ready" in words, (1 << 62 if "whole" in words else _FEW if "small" in words else 0), "fresh" in words
    known = {}
    on_change(known.clear)
    dt.default_listeners.append(known.clear)

    @functools.wraps(body)
    def call(*values):
        if launcher.recorders is not None or launcher.recording is not None or not on:
            return body(*values)
        key, buffers, rest = [config.matmul_precision, config.tensor_cores], [], values
        if fresh:
            constant = full_value(values[0])
            if constant is not None:
                key += (values[0].shape, values[0].dtype, values[0]._storage.device, repr(constant))
                rest = values[1:]
        try:
            if not _describe(rest, key, buffers, ready):
                return body(*values)
        except NoStrides:                                       # the body finds that out, too, or asks for no memory
            return body(*values)
        n = len(buffers)
        if n > 1 and (buffers[0] is buffers[1] if n == 2 else len(set(map(id, buffers))) < n):
            ids = list(map(id, buffers))
            key.append(tuple(map(ids.index, ids)))              # which operands are the same memory
        key = tuple(key)
        try:
            found = known.get(key, 0)
        except TypeError:                                       # an argument without a hash
            return body(*values)
        if found.__class__ is Recipe:
            return found.run(buffers)
        if found > _TRIES:
            return body(*values)
        if len(known) > _MOST:
            known.clear()
        if not found or not _lock.acquire(blocking=False):
            known[key] = found + 1
            return body(*values)
        try:
            result, recipe = _observe(body, values, buffers, whole)
        finally:
            _lock.release()
        if recipe is not WAITS:
            known[key] = recipe or found + 1
        return result
    return call


def repeated_untracked(body, mode=""):
    """``body`` of a composite, repeated where no gradients are recorded: then it is a list of launches like any other (decorator)."""
    brief = repeated(lambda args, named: body(*args, **dict(named)), mode)

    @functools.wraps(body)
    def call(*args, **kwargs):
        if state.autocast is not None or state.grad and _tracked((*args, *kwargs.values())):
            return body(*args, **kwargs)
        return brief(args, tuple(kwargs.items()))
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


def _observe(body, values, inputs, whole):
    """(result, its Recipe, None or WAITS)."""
    device, me = _device(values), threading.get_ident()
    if device.__class__ is not Device or device.waiting or config.debug:
        return body(*values), WAITS if device.__class__ is Device and device.waiting else None
    made, launches, plain, before = [], [], device.alloc, (device.transfers, rng.default.offset, warnings.count)

    def alloc(nbytes):
        buf = plain(nbytes)
        if threading.get_ident() == me:
            made.append((buf, nbytes))
        return buf

    def seen(where, kernel, global_size, local_size, args, event):
        if threading.get_ident() == me:
            launches.append((where, kernel, global_size, local_size, args))
    device.alloc, launcher.recorders = alloc, [seen]
    try:
        result = body(*values)
        for t in (result if result.__class__ is tuple else (result,)) if whole else ():
            if t is not None and t._storage.node is not None and t._numel <= whole:
                fuse.realize(t._storage)
    finally:
        device.alloc, launcher.recorders = plain, None
    if device.err_dirty and device.word is not None:
        device.settle()                     # it did not run in the calling thread, which would show an error at once
    if device.waiting:
        return result, WAITS
    if (device.transfers, rng.default.offset, warnings.count) != before or any([where is not device for where, *_ in launches]):
        return result, None
    return result, _recipe(device, result, inputs, made, launches)


def _recipe(device, result, inputs, made, launches):
    place = {id(buf): k for k, buf in enumerate([*inputs, *[buf for buf, _ in made]])}
    recipe = Recipe()
    recipe.device, recipe.places = device, list(range(max([len(args) for *_, args in launches], default=0)))
    recipe.sizes = [nbytes for _, nbytes in made]
    recipe.single = result.__class__ is not tuple
    recipe.results, first, used = [], len(inputs), set()
    for t in () if result is None else (result,) if recipe.single else result:
        if t is None:
            recipe.results.append(None)
            continue
        if t.__class__ is not Tensor:
            return None
        same = [i for i, other in enumerate(result[:len(recipe.results)]) if other is t] if not recipe.single else ()
        if same:
            recipe.results.append(same[0])
            continue
        st = t._storage
        k = place.get(id(st.buf), -1)
        if st.node is not None or k < first or k in used or t._numel * t.dtype.itemsize != st.nbytes:
            return None                     # a value yet to be computed, an operand or a part of something
        used.add(k)
        recipe.results.append((k, st.nbytes, t.shape, t._strides, t.dtype, t._numel, t._dense))
    recipe.launches, total = [], len(inputs) + len(made)
    for _, kernel, global_size, local_size, args in launches:
        varying = [i for i, a in enumerate(args) if type(a) not in _PLAIN and id(a) in place]
        if not varying:
            return None
        pick = operator.itemgetter(*[k for i in varying for k in (total + i, place[id(args[i])])])
        args = [BUFFER if i in varying else a for i, a in enumerate(args)]              # a recipe keeps no buffer but constants
        recipe.launches.append((Prepared(kernel, global_size, local_size, args), pick))
    return recipe
