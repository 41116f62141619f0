"""The functions of a program's binary, loaded into this process. Intel's CPU runtime keeps an object file with machine code for this processor in its binaries
(ELF, as the System V ABI's AMD64 supplement has it): sections are copied, addresses are filled in, and the copy becomes executable.

The process that tries this out (``probe.py``) runs this file alone, so it imports nothing of clnn.
"""
import ctypes
import functools
import mmap
import re
import struct

_SECTION = struct.Struct("<IIQQQQIIQQ")     # name, type, flags, address, offset, size, link, info, alignment, entry size
_SYMBOL, _RELOCATION = struct.Struct("<IBBHQQ"), struct.Struct("<QQq")
_SYMBOLS, _RELOCATIONS, _NO_BITS, _OLD_RELOCATIONS = 2, 4, 8, 9         # types of sections
_WRITABLE, _LOADED = 1, 2                   # flags of sections
_ADDRESS = 1                                # R_X86_64_64: the only relocation in code that may lie anywhere
_FUNCTION, _HERE = 2, 0xff00                # a symbol's type; section numbers from there on mean something else
_MATHS = re.compile(r"/\S.*/libocl_svml\w*\.so\S*$", re.M)


class Refused(Exception):
    """The binary holds no machine code, or some that needs more than is known here."""


def load(binary: bytes):
    """(memory, name -> address) of the functions in a binary, which are gone with ``memory``.

    Raises:
        Refused: none can be loaded.
    """
    try:
        code = next(binary[s[4]:s[4] + s[5]] for s, name in _sections(binary) if name == b".ocl.obj")
        sections = [s for s, _ in _sections(code)]
        places, size = _places(sections, len(code))
        memory = mmap.mmap(-1, size)
        base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        for n, at in places.items():
            _, kind, _, _, offset, length, *_ = sections[n]
            memory[at:at + length] = bytes(length) if kind == _NO_BITS else code[offset:offset + length]
        symbols = [symbol for s in sections if s[1] == _SYMBOLS for symbol in _symbols(code, s, sections)]
        _relocate(code, sections, memory, {n: base + at for n, at in places.items()}, symbols)
        protect = ctypes.CDLL(None).mprotect
        protect.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
        if protect(base, size, mmap.PROT_READ | mmap.PROT_EXEC):
            raise Refused("this process may not run code that it writes")
    except (struct.error, ValueError, IndexError, KeyError, OSError, AttributeError, StopIteration) as exc:
        raise Refused(f"{type(exc).__name__}: {exc}") from exc
    return memory, {name: base + places[section] + value for name, kind, section, value in symbols if kind == _FUNCTION and section in places}


def _sections(text):
    """(header, name) of each section of an ELF file."""
    at, = struct.unpack_from("<Q", text, 40)
    size, count, names = struct.unpack_from("<HHH", text, 58)
    headers = [_SECTION.unpack_from(text, at + n * size) for n in range(count)]
    start = headers[names][4]
    return [(h, text[start + h[0]:text.index(b"\0", start + h[0])]) for h in headers]


def _places(sections, room):
    """Where each section goes that is needed to run, and how long they are; none is longer than ``room``."""
    places, end = {}, 1
    for n, (_, kind, flags, _, offset, length, _, _, align, _) in enumerate(sections):
        if flags & _LOADED and length:
            if flags & _WRITABLE:
                raise Refused("a copy would have variables of its own")
            if length > room or kind != _NO_BITS and offset > room - length or align > mmap.PAGESIZE:
                raise Refused("a section that is not there")
            places[n] = -(-end // max(align, 1)) * max(align, 1)
            end = places[n] + length
    return places, -(-end // mmap.PAGESIZE) * mmap.PAGESIZE


def _symbols(code, table, sections):
    """(name, type, section, value) of each symbol."""
    names = sections[table[6]][4]
    for name, info, _, section, value, _ in _SYMBOL.iter_unpack(code[table[4]:table[4] + table[5]]):
        yield code[names + name:code.index(b"\0", names + name)].decode(), info & 15, section, value


def _relocate(code, sections, memory, addresses, symbols):
    """Fill in the addresses of what the code mentions."""
    for _, kind, _, _, offset, length, _, target, _, _ in sections:
        if kind not in (_RELOCATIONS, _OLD_RELOCATIONS) or target not in addresses:
            continue
        start = addresses[target] - ctypes.addressof(ctypes.c_char.from_buffer(memory))
        for place, info, addend in _RELOCATION.iter_unpack(code[offset:offset + length]):
            name, _, section, value = symbols[info >> 32]
            if kind == _OLD_RELOCATIONS or info & 0xffffffff != _ADDRESS or section >= _HERE:
                raise Refused("an address of another kind")
            meant = addresses[section] + value if section else elsewhere(name)
            struct.pack_into("<Q", memory, start + place, meant + addend)


@functools.cache
def elsewhere(name) -> int:
    """The address of a function that the code of a binary calls."""
    if name in ("memcpy", "memset", "memmove"):
        library = ctypes.CDLL(None)
    elif name.startswith("__ocl_svml_"):
        with open("/proc/self/maps") as maps:
            library = ctypes.CDLL(_MATHS.search(maps.read()).group())
    else:
        raise Refused(f"the function {name}")
    return ctypes.cast(library[name], ctypes.c_void_p).value
