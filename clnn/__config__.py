"""How clnn was built, as programs ask it of PyTorch."""


def show() -> str:
    """The versions of clnn and of what it runs on, as text."""
    import platform

    import numpy

    from .version import __version__
    return f"clnn built with:\n  - Python {platform.python_version()}\n  - NumPy {numpy.__version__}\n  - kernels in OpenCL C, version {__version__}"


def parallel_info() -> str:
    """Who runs threads, as text."""
    return "the OpenCL driver runs the threads of a device"
