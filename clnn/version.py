"""The version, and what the PyTorch names for other platforms' versions mean here: nothing."""
import clnn

cuda = hip = rocm = xpu = git_version = None
debug = False


def __getattr__(name):
    if name == "__version__":
        return clnn.__version__
    raise AttributeError(f"module 'clnn.version' has no attribute {name!r}")
