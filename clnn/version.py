"""The version, and what the PyTorch names for other platforms' versions mean here: nothing."""
import clnn

__version__ = clnn.__version__
cuda = hip = rocm = xpu = git_version = None
debug = False
