"""The bases of pipes: each step is a class, and a method of every pipe once it is registered under a name."""

import functools
import random
import warnings
from types import FunctionType

from clnn.utils.data.dataset import Dataset, IterableDataset
from clnn.utils.data.sampler import draw_seed


class DataChunk(list):
    """A batch of samples: a list that other lists may be told from."""

    def __init__(self, items):
        items = list(items)
        super().__init__(items)
        self.items = items

    def as_str(self, indent=""):
        """The samples, one after the other."""
        return indent + "[" + ", ".join(map(str, self)) + "]"

    def raw_iterator(self):
        """The samples as they are kept."""
        yield from self.items


class Shuffling:
    """The switches of a pipe with random numbers ``_rng``, which shuffles while it is ``_enabled``."""

    def start_unseeded(self):
        self._enabled, self._seed, self._rng = True, None, random.Random()

    def seed(self):
        """Begin a pass: with the seed that was set for it, else with one of its own."""
        self._rng.seed(draw_seed(None) if self._seed is None else self._seed)
        self._seed = None

    def set_shuffle(self, shuffle=True):
        """Switch the shuffling on or off."""
        self._enabled = shuffle
        return self

    def set_seed(self, seed):
        """Fix the order of the next pass."""
        self._seed = seed
        return self


class _Pipe:
    """What both kinds of pipes share."""

    functions = {}

    def __getattr__(self, name):
        step = None if name.startswith("__") else type(self).functions.get(name)
        if step is None:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        return functools.partial(step, self)

    def __getstate__(self):
        return dict(self.__dict__)

    @classmethod
    def register_function(cls, function_name, function):
        """Make ``function(pipe, ...)`` a method of all pipes."""
        cls.functions[function_name] = function

    @classmethod
    def register_datapipe_as_function(cls, function_name, cls_to_register):
        """Make ``cls_to_register(pipe, ...)`` a method of all pipes."""
        if function_name in cls.functions:
            raise Exception(f"Unable to add DataPipe function name {function_name} as it is already taken")
        cls.functions[function_name] = cls_to_register

    def __repr__(self):
        return type(self).__qualname__

    __str__ = __repr__


class _Pass:
    """One pass over a pipe. It begins with the first sample, and ends when another begins."""

    def __init__(self, pipe, begin):
        self.pipe, self.begin, self.samples, self.number = pipe, begin, None, None

    def __iter__(self):
        return self

    def __next__(self):
        if self.samples is None:
            self.number = self.pipe.__dict__["_passes"] = self.pipe.__dict__.get("_passes", 0) + 1
            self.pipe.reset()
            self.samples = iter(self.begin(self.pipe))
        if self.pipe.__dict__["_passes"] != self.number:
            raise RuntimeError("This iterator has been invalidated because another iterator has been created from the same IterDataPipe: "
                               f"{self.pipe}\nThis may be caused multiple references to the same IterDataPipe. We recommend using `.fork()` if that is necessary.")
        return next(self.samples)


class IterDataPipe(_Pipe, IterableDataset):
    """A stream of samples. A subclass defines ``__iter__``, and ``reset`` if there is something to do before a pass.

    Example:
        >>> from clnn.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper(range(5)).map(lambda x: x * 2).filter(lambda x: x > 2).batch(2))
        [[4, 6], [8]]
    """

    functions = {}

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        begin = cls.__dict__.get("__iter__")
        if begin is None:
            return

        @functools.wraps(begin)
        def passes(self):
            return _Pass(self, begin)
        cls.__iter__ = passes

    def reset(self):
        """Begin anew, before each pass."""


class MapDataPipe(_Pipe, Dataset):
    """Samples by index or key. A subclass defines ``__getitem__`` and ``__len__``."""

    functions = {}


DFIterDataPipe = IterDataPipe


def functional_datapipe(name):
    """Decorator of a class of pipes: all pipes of its kind get a method of this name that makes one.

    Example:
        >>> from clnn.utils.data.datapipes.iter import IterableWrapper
        >>> @clnn.utils.data.functional_datapipe("doubled")
        ... class Doubler(clnn.utils.data.IterDataPipe):
        ...     def __init__(self, source):
        ...         self.source = source
        ...     def __iter__(self):
        ...         return (2 * x for x in self.source)
        >>> list(IterableWrapper([1, 2]).doubled())
        [2, 4]
    """
    def register(cls):
        if not issubclass(cls, (IterDataPipe, MapDataPipe)):
            raise TypeError("`functional_datapipe` can only decorate IterDataPipe or MapDataPipe")
        (IterDataPipe if issubclass(cls, IterDataPipe) else MapDataPipe).register_datapipe_as_function(name, cls)
        return cls
    return register


def check_picklable(fn):
    """Warn of functions that worker processes cannot be sent."""
    if not callable(fn):
        raise TypeError(f"A callable function is expected, but {type(fn)} is provided.")
    if isinstance(fn, FunctionType) and fn.__name__ == "<lambda>":
        warnings.warn("Lambda function is not supported by pickle, please use regular python function or functools.partial instead.", stacklevel=3)


def sized(pipe, length):
    """The result of ``len``, or the error of a stream that does not know."""
    if length < 0:
        raise TypeError(f"{type(pipe).__name__} instance doesn't have valid length")
    return length
