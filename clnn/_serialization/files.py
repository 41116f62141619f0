"""Errors of checkpoint files, and writes that never leave half a file behind."""

import contextlib
import os
import pickle
import secrets


class SerializationError(RuntimeError, pickle.UnpicklingError):
    """A checkpoint cannot be written or read: its content is not allowed, its format is unknown, or it is damaged."""


class EmptyFile(SerializationError, EOFError):
    """There is nothing to read."""


def is_path(f):
    """Whether `f` names a file (str, bytes or os.PathLike) rather than being an open one."""
    return isinstance(f, (str, bytes, os.PathLike))


@contextlib.contextmanager
def atomic_write(path):
    """Open a temporary file beside `path`; on success it is flushed to the disk and takes the place of `path`.

    If the block raises, `path` stays as it was and the temporary file is removed. A symbolic link is kept: its target is replaced.
    """
    target = os.path.realpath(os.fspath(path))
    if isinstance(target, bytes):
        target = os.fsdecode(target)
    folder, name = os.path.split(target)
    if not os.path.isdir(folder):
        raise SerializationError(f"Parent directory {folder} does not exist.")
    temporary = os.path.join(folder, f".{name[:100]}.{secrets.token_hex(6)}.tmp")
    try:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(OSError):  # an existing file keeps its permissions
            os.chmod(temporary, os.stat(target).st_mode & 0o7777)
        os.replace(temporary, target)
    except BaseException as exc:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        if isinstance(exc, OSError) and exc.errno and exc.filename in (None, temporary):     # a full disk does not say which
            raise OSError(exc.errno, exc.strerror, target) from exc
        raise
    _sync_folder(folder)


def _sync_folder(folder):
    """Make the new name itself durable, where the system can."""
    with contextlib.suppress(OSError, AttributeError):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
