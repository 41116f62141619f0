"""The C forms of the functions that every operator goes through, from the files in ``_native``.

pip builds them where it finds a C compiler. Without them, or with ``CLNN_NATIVE=0``, the Python functions do the same and take longer: each is the definition of
what its C form does, and is called by it for whatever is not the usual case.
"""
import operator
import threading
import zlib
from pathlib import Path

from .config import Config, config, flag

definitions = {}        # name of a C form -> the Python function


def _sources():
    """What tells the files that a build has to come from; None where they are not there."""
    files = sorted(Path(__file__).with_name("_native").glob("*.[ch]"))
    return zlib.crc32(b"".join([p.read_bytes() for p in files])) if files else None


def _find():
    """(the module or None, what there is to say about it)."""
    if not flag("CLNN_NATIVE", True):
        return None, "off (CLNN_NATIVE=0)"
    try:
        from . import _native
    except ImportError:
        _native = None
    found = getattr(_native, "SOURCES", None)                   # where nothing was built, the folder of the sources goes by that name
    if found is None:
        return None, "not built: small operators take longer; pip builds them where there is a C compiler"
    if _sources() not in (None, found):
        return None, "built from other sources, so not used: pip install builds them anew"
    return _native, "built"


built, state = _find()
if built is not None:
    built.know(Config)
    built.give(config=config)


def know(cls):
    """Tell the C functions where the slots of ``cls`` are (decorator)."""
    if built is not None:
        built.know(cls)
    return cls


def give(**things):
    """Tell them functions, objects, and the variables of modules that they look at."""
    if built is not None:
        built.give(**things)


def picker(places):
    """What picks the items at two places and more from a list, as a tuple."""
    return operator.itemgetter(*places) if built is None else built.picker(places)


def unshelve():
    """Give small buffers that nobody uses back to their pools: the C forms keep some between two users (see buffers.c)."""
    if built is not None:
        built.unshelve()


def remembered(shares=False):
    """What tells calls of a factory that were met lately, whose results follow from their arguments (see factories.c); None without the C forms.

    ``shares``: results that have memory are given it by value, and nobody writes to it."""
    return None if built is None else built.Remembered(shares)


def lock():
    """A lock that a thread may take again while it has it."""
    return threading.RLock() if built is None else built.Lock()


def front(function, **quick):
    """``function`` as one that first tries what most of its calls come to, before a frame of Python's is made for it (see front.c); without the C forms itself.

    It is asked the same again where that gave nothing, so that it must do without. ``quick``: what is tried: ``again`` and ``named`` of a repeated function, with
    arguments by name or without; ``known`` calls that are one entry of the tape and the ``rest`` of their arguments; ``op``, ``operands``, ``shown`` and
    ``listed`` of a kernel (public outputs; whether it takes a list); the dictionary ``seen`` of views; ``thin`` and ``free``; ``swift`` and how many
    ``operands`` it takes; ``dense`` tensors as they are; ``made`` of a factory. ``into``: the first argument shall hold the result; ``same`` (what records
    an operand as it is): or the second one.
    """
    return function if built is None else built.front(function, built.quick(**quick))


def fronted_as(function, other):
    """``function``, trying first what ``other`` does."""
    tried = None if built is None else built.tries(other)
    return function if tried is None else built.front(function, tried)


def settle(function):
    """Tell that ``function`` got the code that it is to keep: with another one, nothing is tried first."""
    if built is not None:
        built.settled(function)


def form(name, python):
    """The C function of that name, or ``python``."""
    definitions[name] = python
    return python if built is None else getattr(built, name)


def maker(cls):
    """Let the C form of ``cls.__new__`` make its instances."""
    definitions[f"{cls.__name__}.__new__"] = cls.__new__
    if built is not None:
        built.maker(cls)


def slots(names):
    """``names`` as slots of a class that is then told to :func:`rare`: none without the C forms."""
    return tuple(names) if built is not None else ()


def rare(cls, defaults):
    """Let instances have attributes that most never set: in slots, or in their dictionaries without the C forms; until then they are what ``defaults`` says."""
    for name, value in defaults.items():
        type.__setattr__(cls, name, value if built is None else built.rare(vars(cls)[name], value))


def read_only(cls, name):
    """The slot ``name`` of ``cls`` as one that cannot be assigned, at no cost for who reads it; without the C forms, which alone can make one, the slot itself."""
    slot = vars(cls)[name]
    return slot if built is None else built.read_only(slot)


def method(cls, name):
    """Give ``cls`` the C form of a method in place of the Python function of that name."""
    definitions[f"{cls.__name__}.{name}"] = python = getattr(cls, name)
    if built is not None:
        built.give(**{f"{cls.__name__}_{name}": python})
        setattr(cls, name, built.method(cls))
