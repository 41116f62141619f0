"""PyTorch's ``cpu`` functions, which let programs treat the CPU as one more kind of device."""
from __future__ import annotations

import clnn
from clnn.amp._by_device import module_for as _amp

from .cuda import Event, Stream, current_stream, stream  # noqa: F401


def is_available() -> bool:
    """True."""
    return True


def is_initialized() -> bool:
    """True."""
    return True


def device_count() -> int:
    """1."""
    return 1


def current_device() -> str:
    """``"cpu"``."""
    return "cpu"


def set_device(device) -> None:
    """Nothing to choose from."""


def get_capabilities() -> dict:
    """What the CPU is and can do: True for each instruction set that the system tells of; others that PyTorch names are False."""
    import os
    import platform
    flags, name = set(), platform.processor()
    try:
        with open("/proc/cpuinfo") as f:
            for line in f:
                key, _, value = line.partition(":")
                if key.strip() == "flags":
                    flags = set(value.split())
                elif key.strip() == "model name":
                    name = value.strip()
    except OSError:
        pass                            # a system that tells in other ways
    found = {ours: theirs in flags for theirs, ours in (pair.split("=") if "=" in pair else (pair, pair) for pair in _FLAGS.split())}
    return {"cpu_name": name, "architecture": platform.machine(), "num_logical_cores": os.cpu_count(), **found}


_FLAGS = """sse sse2 pni=sse3 ssse3 sse4_1 sse4_2 sse4a avx avx2 fma=fma3 fma4 f16c bmi1=bmi bmi2 abm=lzcnt popcnt aes sha_ni=sha clwb avx512f=avx512_f avx512cd=avx512_cd
    avx512bw=avx512_bw avx512dq=avx512_dq avx512vl=avx512_vl avx512ifma=avx512_ifma avx512vbmi=avx512_vbmi avx512_vbmi2 avx512_vnni avx512_bitalg
    avx512_vpopcntdq avx512_bf16 avx512_fp16 avx512_vp2intersect avx_vnni amx_tile amx_int8 amx_bf16"""


def synchronize(device=None) -> None:
    """Wait until the default device has finished."""
    clnn.synchronize()


__path__: list = []      # so that "import clnn.cpu.amp" looks for the module made here
amp = _amp(__name__, "cpu")
