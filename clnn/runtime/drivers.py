"""Discovery: every OpenCL device is proved once in a process of its own, classified and ranked.

Nothing here runs before the first use of a device. Verdicts are kept in the user cache until drivers change.
"""
from __future__ import annotations

import contextlib
import functools
import json
import os
import sys
import tempfile
import time
import zlib
from dataclasses import dataclass
from pathlib import Path
from platform import machine

from ..core import native
from ..core.config import cache_dir, config
from . import affinity, icd
from .probe import device_key

forked = False   # True in a child that was forked after a device was opened
opened = []      # devices with a queue
pocl_devices = ""   # what PoCL was asked for besides its usual device
_SIMULATOR, _EMULATOR = 90, 95  # ranks that are never chosen on their own
_POCL_DEVICES = {"pthread": "pthread basic", "cpu": "cpu cpu-minimal"}     # PoCL before 4 and since: the usual device, and one without threads
_COMPANIONS = ("basic", "cpu-minimal")
_DIRECT, _NEAR = "|direct", "|near"     # after keys in the table of verdicts
BROKEN = "pyopencl cannot be imported"
_FAILURE_LIFETIME = 24 * 3600.0  # a failed probe is repeated after a day: the machine may only have been busy


@dataclass
class Record:
    """A device as discovery sees it; ``problem`` says why it is not used."""
    platform_index: int
    device_index: int
    cl_device: object
    platform_name: str
    name: str
    kind: str
    flavour: str
    rank: int
    key: str
    problem: str = ""
    companion: object = None    # a second device of the driver that runs in the calling thread
    direct: bool = False        # what it has built may be called without it (runtime/direct.py)
    near: bool = False          # its memory is this process's, where the driver maps it


@dataclass
class Survey:
    """What discovery found: devices (usable or not), platforms without devices, driver entries that crash or hang."""
    records: list
    empty_platforms: list
    bad_icds: dict
    error: str = ""


def _after_fork():
    global forked
    if opened:
        forked = True
        for device in opened:  # these raise the moment they are used, so that launches need no check
            device.poison()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


# ---- probing ---------------------------------------------------------------------------------------------------------------

def _run_probe(skip, folder=None, **variables):
    """One probe process: (verdicts, platforms, blamed key or None, error text)."""
    import subprocess
    env = {**os.environ, "POCL_CACHE_DIR": os.path.join(icd.pocl_cache_base(), "probe"), **variables}
    if folder is not None:
        env["OCL_ICD_VENDORS"] = str(folder)
    env.pop("PYTHONWARNINGS", None)
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        # -c with the text instead of the file: the script's folder must not shadow standard modules on sys.path
        script, code = Path(__file__).with_name("probe.py").read_text(), str(Path(__file__).with_name("machine_code.py"))
        child = subprocess.Popen([sys.executable, "-c", script, code, *skip], stdout=out, stderr=err, stdin=subprocess.DEVNULL, env=env)
        try:
            code = child.wait(config.probe_timeout)
            ending = f"ended with status {code}" if code else ""
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
            ending = f"did not answer within {config.probe_timeout:.0f} s"
        out.seek(0)
        err.seek(0)
        return _read_probe(out.read(), err.read(), ending)


def _read_probe(text, errors, ending):
    verdicts, platforms, begun, done, broken = {}, [], None, False, ""
    for line in text.splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue  # drivers print to stdout, too
        if not isinstance(event, dict):
            continue
        if event.get("event") == "platform":
            platforms.append((event["name"], event["version"], event["devices"]))
        elif event.get("event") == "begin":
            begun = event["key"]
        elif event.get("event") == "end":
            verdicts[event["key"]], begun = event["problem"], None
        elif event.get("event") == "broken":
            broken = f"{BROKEN}: {event['problem']}"
        done = done or event.get("event") == "done"
    tail = errors.strip().splitlines()[-1:] if errors.strip() else []
    return verdicts, platforms, begun, broken or "" if done or broken else " ".join([ending or "ended early", *tail])[:800]


def _probe_all() -> dict:
    """Verdicts of all devices; repeats without a device, or without a driver entry, that takes the process down."""
    bad_icds, blamed, error = {}, {}, ""
    for _ in range(8):
        folder = icd.prepare(exclude=bad_icds)
        verdicts, platforms, begun, error = _run_probe(list(blamed), folder)
        if not error or error.startswith(BROKEN):
            break
        if begun is not None:
            blamed[begun] = f"its driver {error}"
        else:
            found = {} if folder is None else _bad_entries(bad_icds)
            if not found:
                break  # a driver of the user's own vendors folder, or pyopencl itself, is at fault
            bad_icds.update(found)
    table = {"verdicts": {**verdicts, **blamed}, "platforms": platforms, "bad_icds": bad_icds, "error": error, "time": time.time()}
    if not error:
        _probe_companion(table, icd.prepare(exclude=bad_icds))
    return table


def _probe_companion(table, folder):
    """Ask PoCL for the device that runs in the calling thread next to its usual one; ``pocl_devices`` is what to ask with, if it works."""
    own = [key.split("|")[2] for key in _pocl_keys(table["verdicts"])]
    wanted = next((w for start, w in _POCL_DEVICES.items() if len(own) == 1 and own[0].startswith(start)), None)
    if wanted is None or "POCL_DEVICES" in os.environ:
        return
    # the other drivers take longer to load than this takes
    found, _, _, error = _run_probe(list(table["verdicts"]), folder and (only("pocl") or folder), POCL_DEVICES=wanted)
    if not error and len(_pocl_keys(found)) == 2:
        table["pocl_devices"] = wanted
        table["verdicts"].update(found)


def only(library):
    """A folder for the loader with nothing but the driver whose library has ``library`` in its name; None where the user chose one, or it is not there once."""
    entry = [name for name, text in icd.icd_files().items() if library in text.lower()]
    return icd.prepare(only=entry[0]) if len(entry) == 1 else None


def _pocl_keys(verdicts):
    """Those of PoCL's devices that work."""
    return [key for key, problem in verdicts.items() if _is_pocl(key) and not problem and not key.endswith((_DIRECT, _NEAR))]


def _is_pocl(name):
    return "portable computing" in name.lower()


def _bad_entries(known):
    """Driver entries that take a process down while platforms are listed, each tried alone."""
    bad = {}
    for name in icd.icd_files():
        if name in known:
            continue
        _, platforms, begun, error = _run_probe([], icd.prepare(only=name))
        if error and begun is None and "PLATFORM_NOT_FOUND" not in error:
            bad[name] = error
    return bad


def verdicts(refresh: bool = False) -> dict:
    """The remembered verdicts, probing first where there are none for these drivers."""
    from .diskcache import FileLock
    # another version may have asked others
    questions = zlib.crc32(b"".join([Path(__file__).with_name(name).read_bytes() for name in ("probe.py", "machine_code.py")]))
    path = cache_dir("probes") / f"{icd.fingerprint()}-{questions:08x}.json"
    with FileLock("probe.lock"):  # test runners start many processes at once: one probes, the others read
        table = None if refresh else _load(path)
        if table is None:
            table = _probe_all() if sys.executable else {"verdicts": {}, "platforms": [], "bad_icds": {}, "error": "", "time": time.time()}
            if table["error"].startswith(BROKEN):   # it may be mended any moment
                return table
            with contextlib.suppress(OSError):      # a read-only or full disk: the next process probes again
                temp = path.with_suffix(f".{os.getpid()}")
                temp.write_text(json.dumps(table))
                os.replace(temp, path)
    return table


def _load(path):
    try:
        table = json.loads(path.read_text())
        failed = table["error"] or table["bad_icds"] or any(table["verdicts"].values())
        return None if failed and time.time() - table["time"] > _FAILURE_LIFETIME else table
    except (OSError, ValueError, KeyError, TypeError):
        return None


# ---- listing ---------------------------------------------------------------------------------------------------------------

def survey(refresh: bool = False) -> Survey:
    """Everything that the drivers show, with the reason for each thing that is not used. Loads the drivers into this process."""
    if forked:
        opened[0].check_process()
    table = verdicts(refresh)
    icd.choose_pocl_cache(next((version for name, version, _ in table["platforms"] if _is_pocl(name)), ""))
    icd.prepare(exclude=table["bad_icds"])
    try:
        import pyopencl as cl
    except ImportError as exc:
        return Survey([], [], table["bad_icds"], f"{BROKEN}: {type(exc).__name__}: {exc}")
    result = Survey([], [], table["bad_icds"], "")
    global pocl_devices
    pocl_devices = asked = table.get("pocl_devices", "") if config.inline and "POCL_DEVICES" not in os.environ else ""
    if asked:
        os.environ["POCL_DEVICES"] = asked
    watch = affinity.Watch()
    try:
        listed = _listed(cl)
    except cl.Error as exc:
        return Survey([], [], table["bad_icds"], f"the OpenCL loader finds no driver ({exc})")
    finally:
        if asked:
            del os.environ["POCL_DEVICES"]
    for p, (platform, devices) in enumerate(listed):
        if not devices:
            result.empty_platforms.append(f"{platform.name.strip()} ({platform.version.strip()})")
        companion = [d for d in devices if asked and _is_pocl(platform.name) and d.name.startswith(_COMPANIONS)]
        for d, device in enumerate(d for d in devices if d not in companion):
            record = _record(p, d, platform, device, devices.index(device), table["verdicts"])
            record.near, key = native.built is not None and table["verdicts"].get(record.key + _NEAR) == "", record.key
            if companion:
                record.companion, key = companion[0], device_key(platform, companion[0], devices.index(companion[0]))
            record.direct = native.built is not None and table["verdicts"].get(key + _DIRECT) == ""
            result.records.append(record)
    for record in result.records:
        if record.flavour == "pocl":        # it starts its threads when it is listed
            watch.place(record.flavour, record.cl_device.max_compute_units)
    _mark_twins(result.records)
    result.records.sort(key=lambda r: (r.rank, r.platform_index, r.device_index))
    return result


def _listed(cl):
    """(platform, its devices) in the loader's order."""
    listed = []
    for platform in cl.get_platforms():
        try:
            listed.append((platform, platform.get_devices()))
        except cl.Error:
            listed.append((platform, []))
    return listed


def _record(p, d, platform, device, ordinal, known):
    flavour, kind, rank = classify(platform, device)
    key = device_key(platform, device, ordinal)
    return Record(p, d, device, platform.name.strip(), device.name.strip(), kind, flavour, rank, key,
                  known.get(key, ""))


def _mark_twins(records):
    """The same driver may be registered twice (system and pip): the second is skipped."""
    seen = {}
    for r in records:
        first = seen.setdefault(r.key, r.platform_index)
        if first != r.platform_index:
            r.problem = r.problem or f"the same driver and device as cl:{first}:{r.device_index}"


def usable() -> tuple[list[Record], list[Record]]:
    """(devices to choose from, best first; simulators, which only count when named or alone)."""
    good = [r for r in survey().records if not r.problem]
    normal = [r for r in good if r.rank < _SIMULATOR]
    return (normal, good[len(normal):]) if normal else (good, [])


def classify(platform, dev):
    """(flavour, kind, rank) of a device: discrete GPU < integrated GPU < CPU < simulator."""
    import pyopencl as cl
    name, vendor = platform.name.lower(), (platform.vendor + " " + dev.vendor).lower()
    gpu = bool(dev.type & cl.device_type.GPU)
    if "oclgrind" in name:
        return "oclgrind", "cpu", _SIMULATOR
    if "fpga" in name or "fpga" in dev.name.lower():
        return "other", "cpu", _EMULATOR
    if "llvmpipe" in dev.name.lower() or ("rusticl" in name and not gpu):
        return "rusticl", "cpu", 60
    if not gpu:
        if "portable computing" in name:
            return "pocl", "cpu", 50 + dev.name.startswith("basic")  # one thread
        return ("intel-cpu", "cpu", 40) if "intel" in name else ("other", "cpu", 55)
    shared = 10 * bool(dev.host_unified_memory)
    if "rusticl" in name:           # whoever made the GPU: Mesa's compiler and its faults are what counts
        return "rusticl", "gpu", 12 + shared
    for flavour, words in (("nvidia", ("nvidia",)), ("amd", ("amd", "advanced micro")), ("intel-gpu", ("intel",))):
        if any(w in vendor for w in words):
            return flavour, "gpu", 10 + shared
    return "other", "gpu", 12 + shared


def properties(dev) -> dict:
    """The attributes of a Device that the driver knows."""
    import pyopencl as cl
    extensions = dev.extensions.split()
    try:
        rounded = bool(dev.single_fp_config & cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT)
    except cl.Error:
        rounded = False
    return dict(
        name=dev.name.strip(), platform_name=dev.platform.name.strip(), platform_version=dev.platform.version.strip(),
        vendor=dev.vendor.strip(), driver_version=dev.driver_version.strip(), cl_version=dev.version.strip(),
        extensions=frozenset(extensions), has_fp16="cl_khr_fp16" in extensions, has_fp64="cl_khr_fp64" in extensions,
        has_subgroups="cl_khr_subgroups" in extensions or "cl_intel_subgroups" in extensions,
        correctly_rounded_divide=rounded, compute_units=int(dev.max_compute_units), max_work_group=int(dev.max_work_group_size),
        local_mem=int(dev.local_mem_size), global_mem=int(dev.global_mem_size), max_alloc=int(dev.max_mem_alloc_size),
        max_parameter=max(1024, int(dev.max_parameter_size)), cache_line=int(dev.global_mem_cacheline_size) or 64, unified_memory=bool(dev.host_unified_memory),
        compute_capability=_capability(dev) if "cl_nv_device_attribute_query" in extensions else (0, 0))


def _capability(dev) -> tuple:
    """NVIDIA's (major, minor) of what the hardware can do; (0, 0) where the driver does not say."""
    try:
        return int(dev.compute_capability_major_nv), int(dev.compute_capability_minor_nv)
    except Exception:
        return 0, 0


def vector_registers(dev) -> int:
    """Bytes of all vector registers of a CPU: its own word where the system shows it, else what the driver says of one of them."""
    flags = host_flags()
    width = 64 if "avx512f" in flags else 32 if "avx2" in flags else 16 if flags else 4 * max(4, dev.native_vector_width_float)
    return width * (32 if width == 64 or machine().lower() in ("aarch64", "arm64") else 16)


@functools.cache
def host_flags() -> frozenset:
    """What the host's processor can do, by the names of Linux; nothing on other systems."""
    try:
        with open("/proc/cpuinfo") as text:
            return frozenset(next((line for line in text if line.startswith(("flags", "Features"))), "").split())
    except OSError:
        return frozenset()


def build_options(device) -> tuple:
    """OpenCL C 1.2 works everywhere; division and square root are exact where the device can; never fast-relaxed-math."""
    options = ["-cl-std=CL1.2", "-w", f"-DCLNN_{device.flavour.upper().replace('-', '_')}=1"]
    if device.correctly_rounded_divide:
        options.append("-cl-fp32-correctly-rounded-divide-sqrt")
    if device.flavour == "pocl":
        options.append("-DCLNN_OWN_MATH=1")  # its erf is a scalar call
    return tuple(options)


def no_device_text() -> str:
    """The one error for a machine without a usable device: what was tried, and what to run."""
    found = survey()
    lines = ["no usable OpenCL device was found; tried:"]
    where = icd.user_vendors()
    lines.append(f"  drivers listed in OCL_ICD_VENDORS={where}" if where else
                 f"  driver entries: {', '.join(sorted(icd.icd_files())) or 'none (' + str(icd.SYSTEM_VENDORS) + ' is empty)'}")
    lines += [f"  {found.error}"] if found.error else []
    lines += [f"  platform {p}: shows no device" for p in found.empty_platforms]
    lines += [f"  {r.name} ({r.platform_name}): {r.problem}" for r in found.records if r.problem]
    lines += [f"  driver entry {name}: {why}" for name, why in found.bad_icds.items()]
    if found.error.startswith(BROKEN):
        return "\n".join([*lines, "Install it anew, with NumPy, which it was built for:", "  pip install --upgrade --force-reinstall pyopencl numpy"])
    lines += ["Install a driver for the CPU with:", "  pip install \"clnn[cpu]\"", "or, on Debian and Ubuntu:", "  apt-get install pocl-opencl-icd",
              "For a GPU install its vendor's OpenCL driver. `python -m clnn doctor` shows every detail."]
    return "\n".join(lines)
