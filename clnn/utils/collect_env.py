"""What a bug report should say of a machine: ``python -m clnn.utils.collect_env``."""
from __future__ import annotations

import importlib.metadata
import platform
import sys
from collections import namedtuple

import clnn

SystemEnv = namedtuple("SystemEnv", "clnn_version os libc_version python_version python_platform cpu_info devices packages default_device")


def _version(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _cpu():
    try:
        with open("/proc/cpuinfo") as f:
            return next(line.partition(":")[2].strip() for line in f if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or "unknown"


def _devices():
    try:
        return [f"{d}: {d.physical.name} ({d.physical.platform_name}), driver {d.physical.driver_version}" for d in clnn.devices()]
    except RuntimeError as exc:
        return [f"none: {str(exc).splitlines()[0]}"]


def get_env_info():
    """The facts as a named tuple."""
    packages = {name: _version(name) for name in ("numpy", "pyopencl", "mako", "ml_dtypes", "safetensors", "intel-opencl-rt", "pocl-binary-distribution")}
    devices = _devices()
    return SystemEnv(clnn.__version__, platform.platform(), "-".join(platform.libc_ver()), sys.version.replace("\n", ""), sys.platform, _cpu(), devices,
                     {k: v for k, v in packages.items() if v}, str(clnn.get_default_device()) if not devices[0].startswith("none") else "none")


def pretty_str(envinfo):
    """The facts as text, a line each."""
    lines = [f"clnn version: {envinfo.clnn_version}", f"OS: {envinfo.os}", f"Libc version: {envinfo.libc_version}", "",
             f"Python version: {envinfo.python_version}", f"Python platform: {envinfo.python_platform}", f"CPU: {envinfo.cpu_info}", "",
             f"Default device: {envinfo.default_device}", *[f"Device {d}" for d in envinfo.devices], "", "Versions of relevant libraries:"]
    return "\n".join([*lines, *[f"[pip] {name}=={version}" for name, version in envinfo.packages.items()]])


def get_pretty_env_info():
    """The facts of this machine as text."""
    return pretty_str(get_env_info())


def main():
    """Print them."""
    print("Collecting environment information...")
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
