"""``python -m clnn doctor``: every OpenCL platform and device, why one is not used, what each can do, and a fix per problem."""
from __future__ import annotations

import os
import platform
import sys

from .core import native
from .core.config import cache_dir, config, device_name
from .runtime import icd


def report(refresh: bool = True) -> tuple[str, bool]:
    """The text of the report, and whether a usable device exists.

    Args:
        refresh: prove every device again instead of trusting remembered verdicts.
    """
    from .runtime import drivers
    lines = _versions()
    found = drivers.survey(refresh)
    problems = _driver_entries(lines, found)
    lines.append("")
    for record in found.records:
        lines += _device_lines(record)
    for name in found.empty_platforms:
        lines += [f"platform {name}", "    skipped: it shows no device", ""]
    if found.error:
        problems.append((found.error, "install a driver: pip install \"clnn[cpu]\"   or   apt-get install pocl-opencl-icd"))
    for record in found.records:
        if record.problem and not record.problem.startswith("the same driver"):
            problems.append((f"{record.name} ({record.platform_name}): {record.problem}", _advice(record)))
    usable = _default(lines, problems)
    for what, fix in problems:
        lines += [f"problem: {what}", f"    fix: {fix}"]
    if not problems:
        lines.append("no problems found")
    return "\n".join(lines), usable


def _versions():
    lines = [f"python      {platform.python_version()} ({sys.executable})", f"system      {platform.platform()}"]
    for name in ("pyopencl", "numpy", "Mako", "ml_dtypes", "safetensors"):
        try:
            from importlib.metadata import version
            lines.append(f"{name.lower():<12}{version(name)}")
        except Exception:
            lines.append(f"{name.lower():<12}missing: pip install {name.lower()}")
    used, wanted = str(cache_dir()), os.environ.get("CLNN_CACHE_DIR", "")
    if not os.access(used, os.W_OK):
        used += " (it cannot be written: what is built is lost)"
    elif wanted and not os.path.isdir(wanted):
        used += f" (CLNN_CACHE_DIR={wanted} cannot be made)"
    return lines + [f"C forms     {native.state}", f"cache       {used}"]


def _driver_entries(lines, found):
    """List the driver entries; returns (problem, fix) pairs."""
    problems = []
    chosen = icd.user_vendors()
    if chosen:
        lines.append(f"drivers     OCL_ICD_VENDORS={chosen} (set by you; clnn adds nothing to it)")
    else:
        entries = icd.icd_files()
        lines.append("drivers     " + (", ".join(f"{n} -> {t.splitlines()[0]}" for n, t in sorted(entries.items())) or "none"))
    for name, why in found.bad_icds.items():
        problems.append((f"driver entry {name} takes the process down: {why}", "reinstall or remove that driver; clnn leaves it out"))
    library = icd.pip_intel_library()
    if library is not None:
        missing = icd.intel_runtime_missing(library)
        if missing:
            problems.append((f"{library} cannot load: {', '.join(missing)} missing", "pip install intel-cmplr-lib-rt"))
    return problems


def _device_lines(record):
    from .runtime.drivers import properties
    from .runtime.memory import human
    p = properties(record.cl_device)
    where = f"cl:{record.platform_index}:{record.device_index}"
    state = f"skipped: {record.problem}" if record.problem else ("usable" if record.rank < 90 else
                                                                 "a simulator or emulator: used only when named")
    yes = [text for text, key in (("fp64", "has_fp64"), ("fp16", "has_fp16"), ("sub-groups", "has_subgroups"),
                                  ("exact division", "correctly_rounded_divide"), ("shared memory with the host", "unified_memory")) if p[key]]
    no = [text for text, key in (("fp64", "has_fp64"), ("fp16", "has_fp16"), ("sub-groups", "has_subgroups")) if not p[key]]
    return [f"{where}  {p['name']}  [{record.flavour}, {record.kind}]",
            f"    {p['platform_name']}, {p['cl_version']}, driver {p['driver_version']}",
            f"    {state}",
            f"    {p['compute_units']} compute units, memory {human(p['global_mem'])}, largest buffer {human(p['max_alloc'])}, "
            f"local {human(p['local_mem'])}, work-group <= {p['max_work_group']}",
            f"    has {', '.join(yes) or 'no optional feature'}; lacks {', '.join(no) or 'none of fp64, fp16, sub-groups'}"
            + (" (16-bit tensors work: they are stored in 16 and computed in 32 bits)" if not p["has_fp16"] else ""), ""]


def _advice(record):
    if "BuildProgram" in record.problem or "BUILD" in record.problem:
        return "its compiler fails on a trivial kernel: update the driver, or its LLVM if it is PoCL or Mesa"
    if "did not answer" in record.problem:
        return "the driver hangs: update it, or raise CLNN_PROBE_TIMEOUT (seconds) if the machine was only busy"
    return "update or reinstall this driver"


def _words(device):
    """What products on a CPU do with its instructions for pairs of bfloat16 and for four int8, and why not more."""
    from .ops._gemm_words import able, kinds, verdict
    if not able(device) or config.tensor_cores != "auto":
        return []
    lines = [f"    products by words: {', '.join(sorted(kinds(device))) or 'not used'}"]
    return lines + [f"    products by words, {name}: {problem}" for name, problem in verdict(device)["problems"].items()]


def _tensor_cores(device):
    """What matrix products do with the tensor cores of an NVIDIA GPU, and why not more."""
    from .ops import _gemm_warpgroup
    from .ops._gemm_tensor import kinds, verdict
    found = sorted(kinds(device))
    capability = ".".join(map(str, device.compute_capability))
    lines = [f"    tensor cores: {', '.join(found) or 'not used'} (compute capability {capability})"]
    if found or device.compute_capability >= (8, 0) and config.tensor_cores == "auto":
        lines += [f"    tensor cores, {name}: {problem}" for name, problem in verdict(device)["problems"].items()]
    if _gemm_warpgroup.able(device) and config.tensor_cores == "auto":
        lines.append(f"    tensor cores, four warps together: {', '.join(sorted(_gemm_warpgroup.kinds(device))) or 'not used'}")
        lines += [f"    tensor cores, four warps together, {name}: {problem}" for name, problem in _gemm_warpgroup.verdict(device)["problems"].items()]
    return lines


def _default(lines, problems):
    """Name the default device and run one kernel of clnn's own on it."""
    from .core.errors import DeviceError
    from .runtime.device import default_device, list_devices
    wanted = device_name()
    for device in list_devices():
        lines.append(f"{device}  = cl:{device.cl_index[0]}:{device.cl_index[1]}  {device.name} ({device.platform_name})")
        lines += _tensor_cores(device) if device.flavour == "nvidia" else _words(device)
    try:
        device = default_device()
        lines.append(f"default     {device}  {device.name}" + (f" (CLNN_DEVICE={wanted})" if wanted else ""))
        return True
    except DeviceError as exc:
        fix = "unset CLNN_DEVICE or give one of the names above" if wanted and list_devices() else \
            "install a driver: pip install \"clnn[cpu]\"   or   apt-get install pocl-opencl-icd"
        if wanted or not problems:  # else the reasons are listed already
            problems.append((str(exc).split("\n")[0], fix))
        return False


def main(args=()) -> int:
    """Print the report; the exit status is 0 when a device is usable, 1 when none is, 2 for an unknown option."""
    unknown = [a for a in args if a not in ("-h", "--help", "--cached")]
    if unknown:
        print(f"doctor: unknown option {unknown[0]!r}", file=sys.stderr)
    if unknown or "-h" in args or "--help" in args:
        print("usage: python -m clnn doctor [--cached]\n\n--cached   trust remembered verdicts instead of proving every device again")
        return 2 if unknown else 0
    text, usable = report(refresh="--cached" not in args)
    print(text)
    return 0 if usable else 1
