"""Declarations of just those built-in functions of OpenCL C that a source uses.

PoCL reads Clang's header of ten thousand declarations for each program, which takes longer than all else that a small build does.
Its include guard, defined as an option, leaves the header out; the few declarations that a source needs are then written in front of it.
They repeat the header's attributes, so the code is the same to the bit. What is not in this table does not compile, and is built with the header.
"""
from __future__ import annotations

import re
from functools import lru_cache

OPTION = "-D_OPENCL_H_=1"       # the guard of Clang's opencl-c.h

_WORD = re.compile(r"[A-Za-z_]\w*")
_WIDTHS = ("", "2", "3", "4", "8", "16")
_SIGNED, _UNSIGNED = ("char", "short", "int", "long"), ("uchar", "ushort", "uint", "ulong")
_INTEGER = tuple(t for pair in zip(_SIGNED, _UNSIGNED) for t in pair)
_FLOAT = ("float", "double")
_ALL = _INTEGER + _FLOAT
_BITS = {**dict(zip(_SIGNED, _SIGNED)), **dict(zip(_UNSIGNED, _SIGNED)), "float": "int", "double": "long"}     # signed and of the same size
_SPACES = ("__global", "__local", "__private")

# names: (element types, signatures). V is the vector (or scalar) type, T its element, n its width, I and U the integers of its size; P stands for each
# address space. Functions without pointers are "const", as they depend on nothing but their arguments.
_RULES = [
    ("acos acosh acospi asin asinh asinpi atan atanh atanpi cbrt ceil cos cosh cospi erf erfc exp exp10 exp2 expm1 fabs floor lgamma log log10 log1p log2 "
     "logb rint round rsqrt sin sinh sinpi sqrt tan tanh tanpi tgamma trunc degrees radians sign", _FLOAT, ["V(V)"]),
    ("atan2 atan2pi copysign fdim fmod hypot maxmag minmag nextafter pow powr remainder", _FLOAT, ["V(V, V)"]),
    ("fma mad", _FLOAT, ["V(V, V, V)"]),
    ("fmax fmin", _FLOAT, ["V(V, V)", "V(V, T)"]),
    ("pown rootn", _FLOAT, ["V(V, intn)"]),
    ("ldexp", _FLOAT, ["V(V, intn)", "V(V, int)"]),
    ("ilogb", _FLOAT, ["intn(V)"]),
    ("nan", _FLOAT, ["V(Un)"]),
    ("fract modf sincos", _FLOAT, ["V(V, P V*)"]),
    ("frexp lgamma_r", _FLOAT, ["V(V, P intn*)"]),
    ("remquo", _FLOAT, ["V(V, V, P intn*)"]),
    ("isequal isnotequal isgreater isgreaterequal isless islessequal islessgreater isordered isunordered", _FLOAT, ["R(V, V)"]),
    ("isfinite isinf isnan isnormal signbit", _FLOAT, ["R(V)"]),
    ("mix", _FLOAT, ["V(V, V, V)", "V(V, V, T)"]),
    ("step", _FLOAT, ["V(V, V)", "V(T, V)"]),
    ("smoothstep", _FLOAT, ["V(V, V, V)", "V(T, T, V)"]),
    ("native_cos native_exp native_exp10 native_exp2 native_log native_log10 native_log2 native_recip native_rsqrt native_sin native_sqrt native_tan",
     ("float",), ["V(V)"]),
    ("native_divide native_powr", ("float",), ["V(V, V)"]),
    ("max min", _ALL, ["V(V, V)", "V(V, T)"]),
    ("clamp", _ALL, ["V(V, V, V)", "V(V, T, T)"]),
    ("bitselect", _ALL, ["V(V, V, V)"]),
    ("select", _ALL, ["V(V, V, In)", "V(V, V, Un)"]),
    ("add_sat hadd mul_hi rhadd rotate sub_sat", _INTEGER, ["V(V, V)"]),
    ("clz popcount", _INTEGER, ["V(V)"]),
    ("mad_hi mad_sat", _INTEGER, ["V(V, V, V)"]),
    ("abs", _INTEGER, ["Un(V)"]),
    ("abs_diff", _INTEGER, ["Un(V, V)"]),
    ("mul24", ("int", "uint"), ["V(V, V)"]),
    ("mad24", ("int", "uint"), ["V(V, V, V)"]),
    ("any all", _SIGNED, ["int(V)"]),
]
_PLAIN = {**{f"get_{what}": ["const size_t(uint)"] for what in
             ("global_id", "global_size", "global_offset", "group_id", "local_id", "local_size", "num_groups")},
          "get_work_dim": ["const uint(void)"], "barrier": ["convergent void(cl_mem_fence_flags)"],
          **{f"{kind}mem_fence": [" void(cl_mem_fence_flags)"] for kind in ("", "read_", "write_")}}
_CONVERSION = re.compile(rf"convert_({'|'.join(_ALL)})(|2|3|4|8|16)(_sat)?(?:_rt[ezpn])?$")
_MEMORY = re.compile(r"v(load|store)(a?_half)?(|2|3|4|8|16)(?:_rt[ezpn])?$")
_ATOMIC = re.compile(r"atomic_(?:(add|sub|min|max|and|or|xor)|(?:inc|dec)|(cmpxchg)|(xchg))$")


def declarations(source: str) -> str:
    """The declarations that ``source`` needs, one line per function and width, to stand before it."""
    lines = [line for word in dict.fromkeys(_WORD.findall(source)) for line in _declared(word)]
    return "\n".join([*lines, "#line 1", ""])


@lru_cache(maxsize=None)
def _declared(name: str) -> tuple:
    """Declarations of the built-in function ``name``; none for other words."""
    found = [_line(name, *entry) for entry in _signatures(name)]
    return tuple(dict.fromkeys(found))


def _line(name, kind, signature, double):
    result, _, arguments = signature.partition("(")
    attributes = f"overloadable, {kind}" if kind else "overloadable"
    line = f"__attribute__(({attributes})) {result} {name}({arguments};"
    return f"#ifdef cl_khr_fp64\n{line}\n#endif" if double else line


def _signatures(name):
    """(attribute, "result(arguments)", whether it needs double) of each overload."""
    if name in _PLAIN:
        yield from ((*text.split(" ", 1), False) for text in _PLAIN[name])
    elif name in _GENERIC:
        types, patterns = _GENERIC[name]
        yield from (("" if "P" in p else "const", text, t == "double") for t in types for n in _WIDTHS for p in patterns for text in _written(p, t, n))
    elif match := _CONVERSION.match(name):
        to, n, saturated = match.groups()
        if not (saturated and to in _FLOAT):
            yield from (("const", f"{to}{n}({t}{n})", "double" in (t, to)) for t in _ALL)
    elif match := _MEMORY.match(name):
        yield from _vectors(*match.groups(), "_rt" in name)
    elif match := _ATOMIC.match(name):
        yield from _atomics(*match.groups())


def _written(pattern, t, n):
    """A signature of the table with its letters replaced, once per address space where it has a pointer."""
    integer = _BITS[t]
    truth = "int" if not n else f"{integer}{n}"          # what comparisons give: int for scalars, integers of the same size for vectors
    letters = {"V": t + n, "T": t, "In": integer + n, "Un": f"u{integer}{n}", "R": truth, "intn": f"int{n}"}
    text = re.sub(r"\b(?:V|T|In|Un|R|intn)\b", lambda m: letters[m.group()], pattern)
    return [text.replace("P ", f"{space} ") for space in _SPACES] if "P " in text else [text]


def _vectors(what, half, n, rounded):
    """vload and vstore, also those that convert from and to half."""
    if half is None:
        if not n or rounded:
            return
        shapes = [(f"{t}{n}", t) for t in _ALL]
    else:
        shapes = [(f"{t}{n}", "half") for t in (("float",) if what == "load" else _FLOAT)]
    for value, element in shapes:
        double = value.startswith("double")
        if what == "load":
            yield from (("pure", f"{value}(size_t, const {space} {element}*)", double) for space in ("__constant", *_SPACES))
        else:
            yield from (("", f"void({value}, size_t, {space} {element}*)", double) for space in _SPACES)


def _atomics(two, compare, exchange):
    extra = ", T" if two or exchange else ", T, T" if compare else ""
    for t in ("int", "uint") + (("float",) if exchange else ()):
        for space in ("__global", "__local"):
            yield "", f"{t}(volatile {space} {t}*{extra.replace('T', t)})", False


_GENERIC = {name: (types, patterns) for names, types, patterns in _RULES for name in names.split()}
