"""Random numbers in kernels with several elements: on CPUs one walk of the generator over 8 blocks serves 32 elements, on GPUs one block 4 or 2 of them, where
a scalar kernel walks once per element.

The texts of operators that draw hold calls like ``clnn_word(ACC, seed, first, IDX)``, which mean the element's word or normal number; here they become
vectors that were filled ahead, with the same bits (``kernels/common/draws.cl.mako``).
"""
from __future__ import annotations

import re

from ..core import dtype as dt
from .node import Expr

STEP = 32               # elements of a step; kernels start at multiples of it
_DRAW = re.compile(r"\bclnn_(word|random_word|random_wide|normal)\((?:ACC, )?seed, first, IDX\)")


def _text(ins):
    text = Expr.all[ins[0]].text
    return text if isinstance(text, str) else ""


def found(program) -> bool:
    """True when some instruction draws."""
    return any(_DRAW.search(_text(ins)) for ins in program.code)


def _kind(ins):
    """'words', 'wide' (64 bits per element) or 'normals', None for an instruction that draws nothing of these."""
    draw = _DRAW.search(_text(ins))
    if draw is None:
        return None
    double = dt.ALL[ins[1]].acc == "double"
    if draw.group(1) == "normal":
        return None if double else "normals"
    return "wide" if draw.group(1) == "random_wide" or draw.group(1) == "word" and double else "words"


def statements(program, index: str, indent: str) -> list[str]:
    """Fill the vectors of the elements from ``index`` on, a multiple of STEP."""
    lines = []
    for n, ins in enumerate(program.code):
        kind = _kind(ins)
        if kind is None:
            continue
        seed, first = _stream(ins)
        vector, blocks = ("float16" if kind == "normals" else "uint16"), (2 if kind == "wide" else 4)
        names = [f"d{n}_{q}" for q in range(8 // blocks)]
        lines.append(f"{indent}{vector} {', '.join(names)};")
        for q in range(0, len(names), 2):
            lines.append(f"{indent}clnn_{'normals' if kind == 'normals' else 'words'}({seed}, {first} + (({index}) / {blocks}) + {4 * q}, "
                         f"&{names[q]}, &{names[q + 1]});")
    return lines


def block(program):
    """Elements that a block of the generator has for each instruction that draws: 0 where none does, None where they differ or one is drawn otherwise."""
    kinds = {_kind(ins) for ins in program.code if _DRAW.search(_text(ins))}
    sizes = {kind and (2 if kind == "wide" else 4) for kind in kinds}
    return sizes.pop() if len(sizes) == 1 else None if sizes else 0


def of_block(program, index: str, indent: str):
    """(statements that draw the block of the elements from ``index`` on, {instruction: its text with number ``c`` of the block})."""
    lines, texts = [], {}
    for n, ins in enumerate(program.code):
        kind = _kind(ins)
        if kind is not None:
            seed, first = _stream(ins)
            lines += [f"{indent}{_DRAWN[kind]} d{n}_[{2 if kind == 'wide' else 4}];", f"{indent}clnn_block_{kind}({seed}, {first}, {index}, d{n}_);"]
            texts[n] = _DRAW.sub(f"d{n}_[c]", _text(ins))
    return lines, texts


_DRAWN = {"words": "uint", "wide": "ulong", "normals": "float"}


def _stream(ins):
    """C names of the seed and the first block of an instruction."""
    names = Expr.all[ins[0]].names
    return [f"s{-ins[3 + names.index(name)] // 2 - 1}" for name in ("seed", "first")]


def replaced(program, n: int, text: str, part: int, width: int):
    """``text`` of instruction ``n`` with what it draws for the vector number ``part`` of a step; None where there is no such vector."""
    kind = _kind(program.code[n])
    if kind is None or kind == "wide" and width != 8:
        return None
    if kind == "wide":
        name = f"as_ulong8(d{n}_{part})"
    else:
        name = f"d{n}_{part}" if width == 16 else f"d{n}_{part // 2}.{'hi' if part % 2 else 'lo'}"
    text = _DRAW.sub(name, text)
    return None if "IDX" in text else text
