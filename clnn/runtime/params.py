"""Tuned parameters of kernels: JSON rows, looked up device -> architecture -> driver family -> vendor -> default.

A row says: operator ``op`` on problems of class ``key`` is fastest with ``params`` on ``device`` (a device name, an architecture such as
``pocl/2048``: driver and bytes of vector registers, a flavour such as ``pocl``, a vendor, or ``default``). Rows ship in
``kernels/tuned/*.json``; the tuner writes the user's own, which come first. Nothing has to be there: every
launcher has a rule of its own and asks here only for something better.
"""
from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

from ..core import symbols
from ..core.config import cache_dir

FORMAT = 1
_index: dict | None = None          # (op, place, key) -> params
_memo: dict = {}
_forced: dict = {}
asked: dict = {}                    # op -> the class that was last looked up
_listeners: list = []               # called when parameters change, to drop plans made with old ones


def user_file() -> Path:
    """Where the tuner keeps this user's rows."""
    return cache_dir("tune") / "tuned.json"


def read_rows(path) -> list:
    """The rows of a file; ValueError names what is wrong with it."""
    try:
        data = json.loads(Path(path).read_text())
        rows = data["rows"]
        if data["format"] != FORMAT:
            raise ValueError(f"{path}: format {data['format']}, this version reads {FORMAT}")
        for row in rows:
            if not isinstance(row["params"], dict) or not all(isinstance(row[k], str) for k in ("op", "place", "key")):
                raise TypeError
    except (KeyError, TypeError, json.JSONDecodeError):
        raise ValueError(f"{path}: not a file of tuned parameters") from None
    return rows


def write_rows(path, rows) -> None:
    """Replace a file of rows as a whole: a reader sees the old or the new one, whatever happens meanwhile."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
    try:
        with os.fdopen(handle, "w") as f:
            json.dump({"format": FORMAT, "rows": rows}, f, indent=1, sort_keys=True)
            f.write("\n")
            f.flush()
            os.fsync(f.fileno())
        os.replace(name, path)
    except BaseException:
        if os.path.exists(name):
            os.unlink(name)
        raise


def merge(*lists) -> list:
    """Rows of all lists, later ones winning over earlier ones of the same op, place and key."""
    found = {}
    for rows in lists:
        for row in rows:
            found[row["op"], row["place"], row["key"]] = row
    return [found[k] for k in sorted(found)]


def shipped_files() -> list:
    """The files of rows in the package, in order."""
    from .templates import kernels_dir
    return sorted((kernels_dir() / "tuned").glob("*.json"))


def _load() -> dict:
    rows = [read_rows(p) for p in shipped_files()]
    try:
        if user_file().exists():
            rows.append(read_rows(user_file()))
    except (ValueError, OSError):       # a damaged user file costs speed, never the program; `tune show` reports it
        pass
    return {(r["op"], r["place"], r["key"]): r["params"] for r in merge(*rows)}


def places(device) -> tuple:
    """The names under which rows for ``device`` may stand, best first."""
    return (device.name, *((f"{device.flavour}/{device.registers}",) if device.registers else ()), device.flavour, device.vendor, "default")


def lookup(device, op: str, key: str):
    """Tuned parameters of ``op`` for problems of class ``key``, or None."""
    global _index
    asked[op] = key
    if op in _forced:
        return _forced[op]
    memo = (device, op, key)
    if memo in _memo:
        return _memo[memo]
    if _index is None:
        _index = _load()
    found = None
    if _index:
        for place in places(device):
            found = _index.get((op, place, key))
            if found is not None:
                break
    _memo[memo] = found
    return found


def size_class(*sizes) -> str:
    """Sizes rounded to powers of two, as text: problems of one class share their parameters."""
    return "x".join(str(1 << max(0, (symbols.index(s) - 1).bit_length())) for s in sizes)


@symbols.choice
def parameters_for(device, op, lead, *sizes) -> dict:
    """The parameters of an operator for the class of some sizes, below a key that begins with ``lead``; an empty dict where there are none."""
    return lookup(device, op, lead + size_class(*sizes)) or {}


def on_change(callback) -> None:
    """Call ``callback`` when parameters change."""
    _listeners.append(callback)


def changed() -> None:
    """Forget what was read: the next look-up reads the files again."""
    global _index
    _index = None
    _memo.clear()
    asked.clear()
    for callback in _listeners:
        callback()


class forced:
    """``with forced("gemm", {"MR": 8}):`` makes every look-up of the operator give these parameters."""

    def __init__(self, op, params):
        self.op, self.params = op, params

    def __enter__(self):
        _forced[self.op] = self.params
        changed()

    def __exit__(self, *exc):
        _forced.pop(self.op, None)
        changed()
