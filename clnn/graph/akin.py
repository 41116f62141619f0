"""Structures that are not read in flat order, at sizes that were never met: what their launches are for two others says it (see ``core/families.py``)."""
from __future__ import annotations

from ..core import families, symbols
from .structure import varied

_strided: dict = {}     # structures that are not read in flat order, without their sizes -> their Family


def known(key, root, targets, made):
    """``made(root, targets)``, the _Known of ``fuse`` for what is pending below ``root`` and has this ``key``, from what it was for other sizes where that says."""
    family, numbers = families.find(_strided, key, root.device.manner(), 4096)
    variant, found = (None, None) if family is None else family.of(numbers)
    if found is not None and variant.checks >= families.CHECKS:
        launch = found.launch
        launch.kernel.touches(launch.global_size, launch.local_size, root.numel * launch.nbytes)
        return found
    if family is not None and found is None and family.open(numbers):
        variant, found = family.learn(numbers, _traced, key, root, targets, made)
    right = made(root, targets)
    if found is not None and right is not None:
        family.check(variant, found, right, right.__class__.same)
    return right


def _traced(numbers, groups, key, root, targets, made):
    """(function of one number for each of the ``groups`` of places, the _Known for these)."""
    with symbols.Trace([numbers[group[0]] for group in groups]) as trace:
        told, copies = iter(families.marked(key, numbers, groups, trace.inputs)), {}
        next(told)                                              # the device
        copy = varied(root, told, copies)
        last = list(told)[-1:]                                  # the strides of a target that has its own
        got = made(copy, [(copies[node], *rest, strides and last[0]) for node, *rest, strides in targets])
        if got is None or got.launch.kernel is None:
            raise symbols.Refused("no kernel")
        launch = got.launch
        return trace.function(trace.text((launch.geometry, launch.global_size, launch.local_size, launch.steps, launch.out_steps))), got
