"""``clnn.func.rearrange``: dimensions by name, after einops (Rogozhnikov, "Einops: Clear and Reliable Tensor Manipulations", ICLR 2022)."""
from __future__ import annotations

import math
import re

import clnn


_REST = ("...",)                 # as dimensions of their own; in parentheses they are one


def _side(text):
    """The dimensions of one side, each a list of the names that it is made of."""
    groups, inside = [], None
    for token in re.findall(r"\.\.\.|[()]|[^\s().]+|\.", text):
        if token == "(":
            if inside is not None:
                raise ValueError("Axis composition is one-level (brackets inside brackets not allowed)")
            inside = []
            groups.append(inside)
        elif token == ")":
            if inside is None:
                raise ValueError("Brackets are not balanced")
            inside = None
        elif not (token in ("...", "1") or token.isidentifier()):
            raise ValueError("rearrange only supports unnamed axes of size 1" if token.isdigit() else f"Invalid axis identifier: {token}\nnot a valid python identifier")
        elif token != "1":
            (groups.append(_REST if token == "..." else [token]) if inside is None else inside.append(token))
        elif inside is None:
            groups.append([])
    if inside is not None:
        raise ValueError("Brackets are not balanced")
    names = [n for g in groups for n in g]
    for n in names:
        if names.count(n) > 1:
            raise ValueError(f"Indexing expression contains duplicate dimension '{n}'")
    return groups, names


def _parsed(pattern, lengths):
    if pattern.count("->") != 1:
        raise ValueError("Pattern must contain a single '->' separator")
    (left, given), (right, wanted) = map(_side, pattern.split("->"))
    if "..." in wanted and "..." not in given:
        raise ValueError(f"Ellipsis found in right side, but not left side of a pattern {pattern}")
    if set(given) != set(wanted):
        raise ValueError(f"Identifiers only on one side of rearrange expression (should be on both): {set(given) ^ set(wanted)}")
    if not set(lengths) <= set(given):
        raise ValueError(f"Identifiers not found in rearrange expression: {set(lengths) - set(given)}")
    return left, right, wanted


def _sizes(shape, left, lengths, pattern):
    """name -> the sizes that it stands for; one alone, but for ``...``."""
    around = len(left) - (_REST in left)
    if len(shape) < around or len(shape) > around and _REST not in left:
        raise ValueError(f"rearrange: the left side of {pattern!r} has {around} dimensions; got shape={tuple(shape)}")
    shape, sizes = list(shape), {n: (size,) for n, size in lengths.items()}
    for group in left:
        if group == _REST:
            sizes["..."] = tuple([shape.pop(0) for _ in range(len(shape) - around)])
            continue
        size, open_names = shape.pop(0), [n for n in group if n not in sizes]
        around -= 1
        known = math.prod([sizes[n][0] for n in group if n in sizes])
        if len(open_names) > 1:
            raise ValueError(f"rearrange: cannot infer the sizes of {open_names} of {pattern!r} at once; give all but one by name")
        if (size % known if known else size) or not open_names and size != known:
            raise ValueError(f"rearrange: a dimension of size {size} does not fit ({' '.join(group)}) with {({n: sizes[n][0] for n in group if n in sizes})}")
        for n in open_names:
            sizes[n] = (size // known if known else 0,)
    return sizes


def rearrange(tensor, pattern, **axes_lengths):
    """Reorder, split and join the dimensions of a tensor as ``"before -> after"`` says.

    Args:
        tensor: the tensor; or a list of tensors of one shape, whose first name then counts them.
        pattern: names for the dimensions before and after, with parentheses around those that are one dimension, ``...`` for any number of them, and 1 or
            ``()`` for one of size 1.
        axes_lengths: sizes of names inside parentheses, where they do not follow from the others.

    Raises:
        ValueError: the pattern is wrong, or does not fit the shape.

    Example:
        >>> clnn.func.rearrange(clnn.zeros(4, 6, 3), "h (w two) c -> two c (h w)", two=2).shape
        clnn.Size([2, 3, 12])
    """
    if not isinstance(tensor, clnn.Tensor):
        tensor = clnn.stack(list(tensor))
    left, right, wanted = _parsed(pattern, axes_lengths)
    sizes = _sizes(tensor.shape, left, axes_lengths, pattern)
    places, at = {}, 0
    for group in left:
        for n in group:
            places[n] = range(at, at + len(sizes[n]))
            at += len(sizes[n])
    apart = tensor.reshape([s for g in left for n in g for s in sizes[n]]).permute([p for n in wanted for p in places[n]])
    return apart.reshape([s for g in right for s in (sizes["..."] if g == _REST else (math.prod([m for n in g for m in sizes[n]]),))])
