"""Fetching files of weights. Code from the network is not run."""
from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import sys
import tempfile
import urllib.parse
import urllib.request

__all__ = ["get_dir", "set_dir", "download_url_to_file", "load_state_dict_from_url", "load", "list", "help"]

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
READ_DATA_CHUNK = 128 * 1024
urlparse, urlopen, Request = urllib.parse.urlparse, urllib.request.urlopen, urllib.request.Request
_dir = None


def get_dir() -> str:
    """The folder of fetched files: ``CLNN_HUB``, else ``hub`` in clnn's cache folder."""
    from .core.config import cache_dir
    return _dir or os.environ.get("CLNN_HUB") or str(cache_dir("hub"))


def set_dir(d) -> None:
    """Choose the folder of fetched files."""
    global _dir
    _dir = os.path.expanduser(d)


def download_url_to_file(url, dst, hash_prefix=None, progress=True) -> None:
    """Fetch ``url`` into the file ``dst``, which appears only when it is complete.

    Args:
        hash_prefix: the start of the file's SHA-256 in hexadecimal; a mismatch raises RuntimeError.
    """
    digest = hashlib.sha256()
    os.makedirs(os.path.dirname(os.path.abspath(dst)), exist_ok=True)
    handle, part = tempfile.mkstemp(dir=os.path.dirname(os.path.abspath(dst)))
    try:
        with os.fdopen(handle, "wb") as out, urllib.request.urlopen(url) as source:
            while block := source.read(1 << 20):
                out.write(block)
                digest.update(block)
        if hash_prefix and not digest.hexdigest().startswith(hash_prefix):
            raise RuntimeError(f"{url}: SHA-256 is {digest.hexdigest()}, expected it to start with {hash_prefix}")
        shutil.move(part, dst)
    finally:
        if os.path.exists(part):
            os.remove(part)


def load_state_dict_from_url(url, model_dir=None, map_location=None, progress=True, check_hash=False, file_name=None, weights_only=True):
    """The ``state_dict`` at ``url``, fetched once and read with ``clnn.load``.

    Args:
        check_hash: the file's name ends in ``-<start of its SHA-256>.``; check it.
    """
    from .serialization import load as load_file
    folder = model_dir or os.path.join(get_dir(), "checkpoints")
    name = file_name or os.path.basename(urllib.parse.urlparse(url).path)
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        found = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, path, found.group(1) if found else None, progress)
    return load_file(path, map_location=map_location)


def _entries(repo_or_dir, source):
    """The module ``hubconf.py`` of a folder, whose dependencies are there."""
    if source not in ("github", "local"):
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    if source == "github":
        raise RuntimeError(f"clnn.hub: running a repository's code from the network is not supported; clone {repo_or_dir} and give its folder with source='local'")
    folder = os.path.expanduser(repo_or_dir)
    path = os.path.join(folder, "hubconf.py")
    if not os.path.exists(path):
        raise FileNotFoundError(2, "No such file or directory", path)
    spec = importlib.util.spec_from_file_location("hubconf", path)
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, folder)
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(folder)
    missing = [name for name in getattr(module, "dependencies", ()) if name != "torch" and importlib.util.find_spec(name) is None]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
    return module


def _entry(module, name):
    if not isinstance(name, str):
        raise ValueError("Invalid input: model should be a string of function name")
    found = getattr(module, name, None)
    if not callable(found):
        raise RuntimeError(f"Cannot find callable {name} in hubconf")
    return found


def load(repo_or_dir, model, *args, source="github", trust_repo=None, force_reload=False, verbose=True, skip_validation=False, **kwargs):
    """What the function ``model`` of ``hubconf.py`` in the folder ``repo_or_dir`` returns for the other arguments.

    Args:
        source: ``"local"``; RuntimeError for ``"github"``, as no code from the network is run.

    Example:
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pathlib.Path(folder, "hubconf.py").write_text("import clnn\\ndef line(n): return clnn.nn.Linear(n, 1)")
        ...     print(clnn.hub.load(folder, "line", 3, source="local"))
        Linear(in_features=3, out_features=1, bias=True)
    """
    return _entry(_entries(repo_or_dir, source), model)(*args, **kwargs)


def list(github, force_reload=False, skip_validation=False, trust_repo=None, verbose=True):
    """The names of the functions in ``hubconf.py`` of the folder ``github``."""
    module = _entries(github, _kind(github))
    return [name for name in dir(module) if callable(getattr(module, name)) and not name.startswith("_")]


def help(github, model, force_reload=False, skip_validation=False, trust_repo=None):
    """The documentation of the function ``model`` in ``hubconf.py`` of the folder ``github``."""
    return _entry(_entries(github, _kind(github)), model).__doc__


def _kind(github):
    return "local" if os.path.isdir(os.path.expanduser(github)) else "github"


def _get_torch_home() -> str:
    """The folder above that of fetched files, where libraries keep more."""
    return os.path.dirname(get_dir())


class _Quiet:
    """Stands for ``tqdm`` where that is not installed: shows nothing."""

    def __init__(self, iterable=None, *args, **kwargs):
        self.iterable = iterable

    def __iter__(self):
        return iter(self.iterable)

    def update(self, n=1):
        """Nothing."""

    close = set_description = set_postfix = update

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        pass


def __getattr__(name):
    if name == "tqdm":
        try:
            from tqdm import tqdm
        except ImportError:
            tqdm = _Quiet
        return tqdm
    raise AttributeError(f"module 'clnn.hub' has no attribute {name!r}")
