"""One OpenCL C text out of several: drivers parse megabytes of headers per build, so a build of twenty kernels costs little more than one.

Each source becomes a section. What a section declares at file scope (functions, constants, kernels) gets a name of its own by a macro,
its macros end with it, and the functions of the template base that any of the sections needs stand once in front.
"""
from __future__ import annotations

import hashlib
import re

from . import templates

_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.M)
_ATTRIBUTE = re.compile(r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)")
_FUNCTION = re.compile(r"(\w+)\s*\(")
_VARIABLE = re.compile(r"(\w+)\s*(?:\[[^\]]*\]\s*)*(?:=|$)")
_TYPE = re.compile(r"^typedef\b.*?(\w+)$", re.S)
_KERNEL = re.compile(r"\b(?:__kernel|kernel)\b")
_BRACE = re.compile(r"[{};]")
_MARKED = re.compile(r"_\d+_x[0-9a-f]{16}$")


def declared(body: str) -> tuple[list[str], list[str]]:
    """(names of kernels, names of everything else) that a source declares at file scope."""
    text = _ATTRIBUTE.sub("", _DIRECTIVE.sub("", _COMMENT.sub("", body)))
    kernels, others, depth, start = [], [], 0, 0
    for brace in _BRACE.finditer(text):
        mark = brace.group()
        if depth == 0:
            head = text[start:brace.start()].strip()
            function = _FUNCTION.search(head)
            found = _TYPE.match(head) or (function if function and "=" not in head else _VARIABLE.search(head) if mark == "{" or "=" in head else None)
            if found:
                (kernels if _KERNEL.search(head) else others).append(found.group(1))
            start = brace.end()
        depth += (mark == "{") - (mark == "}")
        if depth == 0:
            start = brace.end()
    return list(dict.fromkeys(kernels)), list(dict.fromkeys(others))


def combine(sources: list[str], device) -> tuple[str, list[dict]]:
    """The common source, and for each given one the table from its kernels' names to those in the common source.

    Where ``device.marks_kernels``, these end with a mark that no other source's have.
    """
    mark = "x" + hashlib.sha256("\0".join(sources).encode()).hexdigest()[:16] if device.marks_kernels else ""
    parts = [templates.split(s) for s in sources]
    doubles = any(fp64 for fp64, _ in parts)
    text, tables = [], []
    if any(fp64 is not None for fp64, _ in parts):
        text.append(templates.preamble(device, doubles, "\n".join(body for _, body in parts)))
    for n, (_, body) in enumerate(parts):
        kernels, others = declared(body)
        others = others if len(sources) > 1 else []
        macros = set(_MACRO.findall(body))
        for name in macros.intersection(others):        # a function under one condition and a macro under another: a macro cannot rename it
            body = re.sub(rf"\b{name}\b", f"{name}_{n}_", body)
        macros = set(_MACRO.findall(body))
        names = [name for name in kernels + others if name not in macros and f"{name}_{n}_" not in macros]
        text.append("#pragma OPENCL FP_CONTRACT ON\n" + "".join(f"#define {name} {name}_{n}_{mark}\n" for name in names) + body
                    + "".join(f"\n#undef {name}" for name in [*names, *sorted(macros)]) + "\n")
        tables.append({name: f"{name}_{n}_{mark}" for name in kernels})
    return "\n".join(text), tables


def mark_of(names: dict) -> str:
    """What the marked ``names`` of a table end with; "" where they are not marked."""
    found = _MARKED.search(next(iter(names.values()), ""))
    return found.group().rpartition("_")[2] if found else ""


def groups(programs, limit: int):
    """Programs that may stand in one text (all with the base for ``double``, or all without), at most ``limit`` in each."""
    by_base: dict = {}
    for p in programs:
        by_base.setdefault(bool(templates.split(p.source)[0]), []).append(p)
    for same in by_base.values():
        count = -(-len(same) // limit)
        size = -(-len(same) // count)
        for at in range(0, len(same), size):
            yield same[at:at + size]
