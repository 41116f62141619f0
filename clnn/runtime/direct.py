"""Short launches without the driver. PoCL makes a shared library of each kernel and work-group size, with a function that runs one group, and the binaries of
Intel's CPU runtime hold such functions for any size: to call them takes a tenth of the time that a launch through a queue takes. A kernel that the driver has
launched is called so from then on, by threads that share its groups where that is worth it (``_native/crew.c``): they take work within a microsecond, and a
driver's own up to sixty.

What this relies on is the drivers' own affair, so a process apart tries it once for each version (``probe``), and where that fails all goes through the driver.
Kernels of PoCL's programs have a mark in their names that tells the program (``assemble.combine``), by which the right library is found.
"""
from __future__ import annotations

import ctypes
import functools
import math
import os
import re
import struct
import weakref

import numpy as np

from ..core import native
from ..core.config import config
from . import machine_code

LIMIT = 500e-6              # seconds that a launch may take
_SMALL = 65535              # work-items along a dimension, below which PoCL may have taken them to be few
_MOST_LOCALS = 64           # arrays in local memory, which follow the arguments: a source may spell them in many ways, so room is kept for as many
_POINTER = struct.Struct("=Q").pack
_LOADED = re.compile(r"(/.*)/(\w+)/[\d-]+-goffs0[^/]*/\2\.so")
_folders = {}               # a program's mark -> the folder of its libraries
_DRIVEN = object()          # stands for the address of a function that the driver knows, or is about to load
_functions = {}             # path -> address, or None; the libraries stay in the process
_codes = weakref.WeakKeyDictionary()    # a driver's program -> (memory, name -> address) of its functions
_STRUCT = re.compile(r"\bstruct\b")
_STACK = 1 << 20            # bytes of local memory and of all work-items of a group, at most: it is the stack's


def driven(kernel, sizes) -> None:
    """Note that the driver was given a launch of ``sizes``, (global, local) as they are enqueued: it loads the kernel's library first."""
    kernel.entries.setdefault(kind(sizes), _DRIVEN)


def opened(way, device):
    """How to call the kernel of ``way``, a Prepared launch; None where the driver has to launch it first, False where it always has to."""
    args = [None] * way.kernel.cl.num_args
    for i, packed in zip(way.fixed[::2], way.fixed[1::2]):
        args[i] = packed
    found = called(device, way.kernel, way.sizes, args)
    for i, constant in way.constants if found else ():
        memory = 0 if constant is None else address(device, constant)
        if constant is not None and not memory:
            return False
        found._set_arg_buf(i, _POINTER(memory))
    return found


def called(device, kernel, sizes, args):
    """How to call ``kernel``, as above.

    Args:
        sizes: (global, local) as they are enqueued. args: bytes of what never changes, None for what is given.
    """
    entry = _entry(device, kernel, sizes) if config.direct and device.record.direct else False
    if not entry:
        return entry
    global_size, local_size = sizes
    packed = not device.marks_kernels
    try:
        return native.built.Direct(device, entry, tuple([g // n for g, n in zip(global_size, local_size)]), tuple(local_size), tuple(args), packed,
                                   _MOST_LOCALS if kernel.local_mem and not packed else 0, kernel.local_mem)
    except ValueError:                      # more arguments than it takes
        return False


def kind(sizes):
    """What PoCL compiles a kernel for, and Intel's runtime chooses by: a work-group size, and whether there are few groups."""
    return sizes[1], max(sizes[0]) < _SMALL


def _entry(device, kernel, sizes):
    """The address of the function for groups of that size; None before the driver has loaded it, False where there is none."""
    key = kind(sizes)
    entry = kernel.entries.get(key)
    if entry is _DRIVEN:
        entry = False
        if sizes[1] is not None and "printf" not in kernel.source:
            entry = _library_function(device, kernel, *key) if device.marks_kernels else _binary_function(kernel, sizes[1])
        kernel.entries[key] = entry
    return entry


def _binary_function(kernel, local_size):
    """The address of a function of the kernel in its program's binary, or False: the one for whole vectors where groups are made of them, as the driver has it."""
    import pyopencl as cl
    built, name = kernel.program.cl, kernel.cl.function_name
    try:
        if built not in _codes:
            _codes[built] = machine_code.load(built.get_info(cl.program_info.BINARIES)[0])
        functions = _codes[built][1]
        private = kernel.cl.get_work_group_info(cl.kernel_work_group_info.PRIVATE_MEM_SIZE, kernel.device.cl_device)
    except (machine_code.Refused, cl.Error):
        return False
    if _STRUCT.search(kernel.source) or kernel.local_mem + private * math.prod(local_size) > _STACK:      # a struct may begin anywhere
        return False
    wide = [found for found in map(re.compile(rf"_ZGV[a-z](N|M)(\d+)[a-z\d]*_{name}").fullmatch, functions) if found]
    if len(wide) > 1 or wide and wide[0][1] == "M":
        return False
    chosen = wide[0].group() if wide and local_size[0] % int(wide[0][2]) == 0 else name
    return functions.get(chosen, False)


def _library_function(device, kernel, local_size, few):
    """The address of the function for groups of ``local_size`` of the kernel in a library, or False."""
    device.last.wait()                      # it was loaded then
    return _function(kernel.cl.function_name, kernel.program.mark, local_size, few) or False


def _function(name, mark, local_size, few):
    """The address of the function for groups of ``local_size`` of the kernel ``name``, or None."""
    if not mark or not name.endswith(mark):
        return None
    folder = _folders.get(mark)
    if folder is None:
        for loaded in filter(None, map(_LOADED.fullmatch, native.built.libraries("-goffs0"))):
            _folders[loaded[2][-len(mark):]] = loaded[1]
        folder = _folders.get(mark, "")
    sizes = "-".join(map(str, (*local_size, 1, 1)[:3]))
    for kind in ("goffs0-smallgrid", "goffs0") if few else ("goffs0",):
        path = os.path.join(folder, name, f"{sizes}-{kind}", f"{name}.so")
        if path not in _functions and os.path.exists(path):
            try:
                _functions[path] = ctypes.cast(ctypes.CDLL(path)[f"_pocl_kernel_{name}_workgroup"], ctypes.c_void_p).value
            except (OSError, AttributeError):
                _functions[path] = None
        if _functions.get(path):
            return _functions[path]
    return None


@functools.cache
def helpers(device) -> int:
    """How many threads there are, beside the calling one, that share what is called: one on each of the device's cores, which look out for work for a moment
    after the last and sleep then."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return native.built.hire(min(device.compute_units, cores) - 1, config.affinity)


@functools.cache
def driver(name):
    """The loader's function of that name, or None: pyopencl is linked to it."""
    import pyopencl as cl
    try:
        return getattr(ctypes.CDLL(cl._cl.__file__), name)
    except (OSError, AttributeError):
        return None


def address_of_function(name) -> int:
    """Where it is; 0 where it cannot be found."""
    return ctypes.cast(driver(name), ctypes.c_void_p).value if driver(name) else 0


def address_of(device, buf) -> int:
    """Where a buffer lies in this process; 0 where that cannot be known."""
    import pyopencl as cl
    watch = driver("clSetMemObjectDestructorCallback")
    if watch is None or device.inline is None:
        return 0
    watch.argtypes, queue = (ctypes.c_void_p,) * 3, device.inline.queue
    try:
        with device.lock:
            if watch(buf.int_ptr, native.built.FORGET, None) != 0:
                return 0
            memory, _ = cl.enqueue_map_buffer(queue, buf, cl.map_flags.READ, 0, (1,), np.uint8, is_blocking=True)
            address = memory.ctypes.data
            memory.base.release(queue).wait()
            return address
    except (AttributeError, cl.Error):
        return 0


address = native.form("address", address_of)
