"""Tools around models: data loading and hooks."""

import importlib


def __getattr__(name):
    """Submodules load on first use, so that `clnn.utils.data` works after a plain `import clnn`."""
    if not name.startswith("__"):
        try:
            return importlib.import_module(f"{__name__}.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"{__name__}.{name}":
                raise
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
