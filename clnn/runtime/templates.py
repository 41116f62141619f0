"""Rendering the Mako templates of ``kernels/`` to OpenCL C."""
from __future__ import annotations

import hashlib
import re
import threading
from functools import lru_cache
from pathlib import Path

from ..core.dtype import dtype
from ..core.errors import KernelBuildError
from . import diskcache

_WORD = re.compile(r"[A-Za-z_]\w*")
_BLOCK = re.compile(r"^//@ *(.*)$", re.M)
_BODY = re.compile(r"^//: body ([01])\n", re.M)     # ends the base; 1: with the functions for double
_COMPLEX = re.compile(r"^## complex +(\S.*)$", re.M)
_lock = threading.Lock()


def kernels_dir() -> Path:
    """The folder of the templates: the installed package data, else the checkout's ``kernels/``."""
    package = Path(__file__).resolve().parent.parent
    for path in (package / "_kernels", package.parent / "kernels"):
        if (path / "base.cl.mako").is_file():
            return path
    raise KernelBuildError(f"the kernel templates are missing: neither {package / '_kernels'} nor {package.parent / 'kernels'} "
                           "holds base.cl.mako; reinstall clnn")


def folders() -> tuple[Path, ...]:
    """The folders that templates are looked for in, first to last."""
    return (kernels_dir(),)


def _lookup():
    return _lookup_in(folders())


@lru_cache(maxsize=8)
def _lookup_in(where: tuple):
    from mako.lookup import TemplateLookup
    return TemplateLookup([str(path) for path in where], strict_undefined=True, input_encoding="utf-8", filesystem_checks=False)


def needs_fp64(params: dict) -> bool:
    """True when a parameter is a dtype row that is computed in double."""
    return any(getattr(v, "needs_fp64", False) or getattr(v, "acc", None) in ("double", "double2") for v in params.values())


def check_doubles(device, needed: bool) -> None:
    """Refuse kernels that compute in double on a device that has none, before a compiler does so in its own words."""
    if needed and not getattr(device, "has_fp64", True):
        raise TypeError(f"float64 is not supported by {device.name}; use float32, or a device with fp64")


def check_complex(path: str, params: dict) -> None:
    """Refuse complex dtype rows for templates that do not say in their header, as a condition on their parameters, that they take them."""
    row = next((v for v in params.values() if getattr(v, "is_complex", False)), None)
    if row is not None:
        at = next((at for folder in folders() if (at := folder / (path + ".cl.mako")).is_file()), None)
        found = _COMPLEX.search(at.read_text()) if at else None
        if found is None or not eval(found.group(1), {}, dict(params)):
            raise NotImplementedError(f"\"{path}\" not implemented for '{'ComplexFloat' if row.itemsize == 8 else 'ComplexDouble'}'")


def check_unsigned(path: str, params: dict) -> None:
    """Refuse uint16, uint32 and uint64 for templates that compute: only those that move and sort elements take them."""
    row = next((v for v in params.values() if getattr(v, "name", None) in ("uint16", "uint32", "uint64")), None)
    if row is not None and path.partition("/")[0] not in ("indexing", "sorting"):
        raise NotImplementedError(f"\"{path}\" not implemented for 'UInt{8 * row.itemsize}'")


def render(path: str, params: dict, device=None) -> str:
    """The OpenCL C of ``kernels/<path>.cl.mako`` for these parameters, with only those functions of the base that it uses.

    Raises:
        NotImplementedError: a complex dtype for a template that takes none.
        TypeError: doubles for a device that has none.
        KernelBuildError: no such template, an undefined parameter, or a fault while rendering; shows the template's lines.
    """
    check_complex(path, params)
    check_unsigned(path, params)
    check_doubles(device, params.get("USE_FP64", needs_fp64(params)))
    spelled = _spelled(params)
    if spelled is None:
        return _render(path, params, device)
    return diskcache.text(f"{_tree(folders())} {path} {getattr(device, 'registers', 0)} {spelled}", lambda: _render(path, params, device))


@lru_cache(maxsize=8)
def _tree(where: tuple) -> str:
    """A digest of all that makes texts of parameters: the templates, this file and the table of dtypes."""
    digest = hashlib.sha256()
    for path in (*(p for folder in where for p in sorted(folder.rglob("*.mako"))), Path(__file__), Path(__file__).parents[1] / "core" / "dtype.py"):
        digest.update(f"{path.parent.name}/{path.name}".encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _spelled(value) -> str | None:
    """Parameters as text that tells them apart; None where there is something among them that has no such text."""
    if isinstance(value, (dict, tuple, list)):
        parts = [_spelled(v) for v in (sorted(value.items()) if isinstance(value, dict) else value)]
        return None if None in parts else f"{type(value).__name__}({', '.join(parts)})"
    return repr(value) if value is None or type(value) in (bool, int, float, str, dtype) else None


def _render(path, params, device):
    from mako import exceptions
    context = dict(params)
    context.setdefault("USE_FP64", needs_fp64(params))
    context.setdefault("DEV", device)
    context["COMMON"] = _base(bool(context["USE_FP64"]))
    try:
        with _lock:  # Mako compiles lazily and its lookup is not safe across threads
            text = _lookup().get_template(path + ".cl.mako").render(**context)
    except exceptions.TopLevelLookupException:
        raise KernelBuildError(f"no kernel template {path!r} in {', '.join(map(str, folders()))}") from None
    except Exception as exc:
        shown = ", ".join(f"{k}={v!r}" for k, v in params.items()) or "none"
        raise KernelBuildError(f"{path}: template does not render: {type(exc).__name__}: {exc}\n  parameters: {shown}\n"
                               + _template_lines(path, exc)) from exc
    return prune(text)      # without the lock, which rendering the other base takes


def _template_lines(path, exc) -> str:
    """The template lines around the fault."""
    from mako.exceptions import RichTraceback
    from .program import numbered
    name = re.match(r"'(\w+)' is not defined", str(exc))
    if name:  # strict templates look names up before their first line: search for it
        lines = _lookup().get_template(path + ".cl.mako").source.split("\n")
        for at, line in enumerate(lines, 1):
            if re.search(rf"\b{name.group(1)}\b", line) and not line.lstrip().startswith("##"):
                return numbered(lines, at)
    trace = RichTraceback(exc, exc.__traceback__)
    if trace.lineno is None or not trace.source or not isinstance(trace.source, str):
        return ""
    return numbered(trace.source.split("\n"), trace.lineno)


@lru_cache(maxsize=8)
def _base(use_fp64: bool) -> str:
    def make():
        with _lock:
            return _lookup_in((kernels_dir(),)).get_template("base.cl.mako").render(USE_FP64=use_fp64, DEV=None, COMMON=None)
    return diskcache.text(f"{_tree((kernels_dir(),))} base {use_fp64}", make)


def preamble(device=None, use_fp64: bool = False, features=None) -> str:
    """The text of the base template, for generated kernels.

    Args:
        device: the device it is for; without doubles it takes no ``use_fp64`` (TypeError). Other differences are macros of its build options.
        use_fp64: also the functions for ``double``.
        features: the generated source, or names of functions: only these and what they need are kept. None keeps all.
    """
    check_doubles(device, use_fp64)
    text = _base(bool(use_fp64))
    if features is None:
        return _BLOCK.sub("", text)
    return prune(text, features if isinstance(features, str) else " ".join(features))


def split(source: str) -> tuple[bool | None, str]:
    """(whether its base has the functions for double, what follows the base); None and the whole text where there is no base."""
    found = _BODY.search(source)
    return (found.group(1) == "1", source[found.end():]) if found else (None, source)


def prune(source: str, user: str = "") -> str:
    """Drop unused functions: a line ``//@ name name`` starts a block that is kept if later text (or ``user``) needs one of its names.

    ``//@`` alone starts text that is always kept. Fewer functions shorten the build of small kernels.
    """
    base = next((b for b in map(_base, (False, True)) if source.startswith(b)), "")
    kept, words = [], set(_WORD.findall(user))
    # a function stands after what it uses, so one pass from the end settles it
    for names, text, used in reversed((*_base_blocks(base), *_blocks(source[len(base):]))):
        if not names or not words.isdisjoint(names):
            words.update(_WORD.findall(text) if used is None else used)
            kept.append(text)
    return "".join(reversed(kept))


def _blocks(source: str):
    """(names that it is kept for, its text, None) of each block."""
    parts = _BLOCK.split(source)
    yield (), parts[0], None
    for names, text in zip(parts[1::2], parts[2::2]):
        yield tuple(names.split()), text, None


@lru_cache(maxsize=8)
def _base_blocks(base: str) -> tuple:
    """The same of a base, with the words of each: all kernels share a base."""
    return tuple((names, text, frozenset(_WORD.findall(text))) for names, text, _ in _blocks(base))
