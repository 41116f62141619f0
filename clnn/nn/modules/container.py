"""Modules that hold other modules or parameters."""
import operator
from collections import OrderedDict
from collections import abc as container_abcs
from itertools import chain, islice

from clnn._tensor.tensor import Tensor
from clnn.nn.parameter import Parameter

from ._chain import CALL, RUNS, in_order, parted
from .module import Module, _addindent, _typename

__all__ = ["Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict"]


def _position(size, idx):
    """A checked index, negative ones counted from the end."""
    idx = operator.index(idx)
    if not -size <= idx < size:
        raise IndexError(f"index {idx} is out of range")
    return idx % size


class _Listed(Module):
    """What :class:`Sequential` and :class:`ModuleList` share: children named "0", "1", ... used as a list."""

    def _renumber(self, modules):
        # assign a fresh table, so that iterators over the old one are not disturbed
        self.__dict__["_modules"] = {str(i): module for i, module in enumerate(modules)}

    def __setitem__(self, idx, module):
        name = list(self._modules)[_position(len(self), idx)]
        setattr(self, name, module)

    def __delitem__(self, idx):
        names = list(self._modules)
        for name in names[idx] if isinstance(idx, slice) else [names[_position(len(self), idx)]]:
            delattr(self, name)
        self._renumber(self._modules.values())

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules.values())

    def __dir__(self):
        return [name for name in super().__dir__() if not name.isdigit()]

    def pop(self, key):
        """Remove the module at *key* and return it."""
        module = self[key]
        del self[key]
        return module

    def append(self, module):
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index, module):
        """Insert a module before *index*."""
        modules = list(self._modules.values())
        modules.insert(index, module)
        self._renumber(modules)


def _get_abs_string_index(self, idx):
    """The name of the item at a position; lists of programs call it."""
    return str(_position(len(self), idx))


class Sequential(_Listed):
    """Call the modules one after the other, each on the output of the one before.

    Args:
        args: the modules, or one ``OrderedDict`` from names to modules.

    Example::

        >>> net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        >>> net(clnn.ones(1, 4)).shape
        clnn.Size([1, 2])
    """

    def __init__(self, *args):
        super().__init__()
        named = args[0].items() if len(args) == 1 and isinstance(args[0], OrderedDict) else ((str(i), m) for i, m in enumerate(args))
        for name, module in named:
            self.add_module(name, module)

    def _get_item_by_idx(self, iterator, idx):
        return next(islice(iterator, _position(len(self), idx), None))

    def __getitem__(self, idx):
        if isinstance(idx, slice):
            return type(self)(OrderedDict(list(self._modules.items())[idx]))
        return next(islice(self._modules.values(), _position(len(self), idx), None))

    def __add__(self, other):
        if not isinstance(other, Sequential):
            raise ValueError("add operator supports only objects of Sequential class, but {} is given.".format(type(other)))
        return Sequential(*self, *other)

    def __iadd__(self, other):
        if not isinstance(other, Sequential):
            raise ValueError("add operator supports only objects of Sequential class, but {} is given.".format(type(other)))
        return self.extend(list(other))

    def __mul__(self, times):
        if not isinstance(times, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(times)}")
        if times <= 0:
            raise ValueError(f"Non-positive multiplication factor {times} for {type(self)}")
        return Sequential(*(module for _ in range(times) for module in self))

    __rmul__ = __mul__

    def __imul__(self, times):
        repeated = self * times
        return self.extend(list(repeated)[len(self):])

    def forward(self, input):
        if Module.__call__ is not CALL:                            # a program, or fx, put its own there to see every call
            for module in self._modules.values():
                input = module(input)
            return input
        return in_order(self._modules.values(), input)

    def extend(self, sequential):
        """Append all modules of *sequential*."""
        for module in sequential:
            self.append(module)
        return self

    def insert(self, index, module):
        """Insert a module before *index*."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        if not -len(self) <= index <= len(self):
            raise IndexError(f"Index out of range: {index}")
        super().insert(index + len(self) if index < 0 else index, module)
        return self


RUNS.add(Sequential.forward)


@parted()
class ModuleList(_Listed):
    """A list of modules that are registered; it has no ``forward``.

    Example::

        >>> layers = nn.ModuleList([nn.Linear(2, 2) for _ in range(3)])
        >>> len(list(layers.parameters()))
        6
    """

    _get_abs_string_index = _get_abs_string_index

    def __init__(self, modules=None):
        super().__init__()
        if modules is not None:
            self += modules

    def __getitem__(self, idx):
        if isinstance(idx, slice):
            return type(self)(list(self._modules.values())[idx])
        return self._modules[str(_position(len(self), idx))]

    def __setitem__(self, idx, module):
        setattr(self, str(_position(len(self), idx)), module)

    def __iadd__(self, modules):
        return self.extend(modules)

    def __add__(self, other):
        combined = ModuleList()
        for i, module in enumerate(chain(self, other)):
            combined.add_module(str(i), module)
        return combined

    def extend(self, modules):
        """Append all modules of an iterable."""
        if not isinstance(modules, container_abcs.Iterable):
            raise TypeError("ModuleList.extend should be called with an iterable, but got " + type(modules).__name__)
        for module in list(modules):
            self.append(module)
        return self

    def __repr__(self):
        """Runs of equal children are shown once, as ``(first-last): count x child``."""
        if len(self) == 0:
            return self._get_name() + "()"
        runs = []  # [text, first, last]
        for i, text in enumerate(repr(module) for module in self):
            if runs and runs[-1][0] == text:
                runs[-1][2] = i
            else:
                runs.append([text, i, i])
        body = ""
        for text, first, last in runs:
            line = f"({first}): {text}" if first == last else f"({first}-{last}): {last - first + 1} x {text}"
            body += "\n  " + _addindent(line)
        return f"{self._get_name()}({body}\n)"


@parted()
class ModuleDict(Module):
    """A dictionary of modules that are registered; it keeps the order of insertion and has no ``forward``.

    Example::

        >>> acts = nn.ModuleDict({"relu": nn.ReLU(), "tanh": nn.Tanh()})
        >>> acts["relu"](clnn.tensor([-1., 1.]))
        tensor([0., 1.])
    """

    def __init__(self, modules=None):
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key):
        return self._modules[key]

    def __setitem__(self, key, module):
        self.add_module(key, module)

    def __delitem__(self, key):
        del self._modules[key]

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules)

    def __contains__(self, key):
        return key in self._modules

    def clear(self):
        """Remove everything."""
        self._modules.clear()

    def pop(self, key):
        """Remove the module at *key* and return it."""
        return self._modules.pop(key)

    def keys(self):
        """The names."""
        return self._modules.keys()

    def items(self):
        """(name, module) pairs."""
        return self._modules.items()

    def values(self):
        """The modules."""
        return self._modules.values()

    def update(self, modules):
        """Add the modules of a mapping, or of an iterable of (name, module) pairs."""
        for key, module in _pairs(modules, "ModuleDict"):
            self[key] = module


def _pairs(source, owner):
    """(key, value) pairs of a mapping or of an iterable of pairs, with errors that name the bad entry."""
    if not isinstance(source, container_abcs.Iterable):
        raise TypeError(f"{owner}.update should be called with an iterable of key/value pairs, but got {type(source).__name__}")
    if isinstance(source, (container_abcs.Mapping, ModuleDict, ParameterDict)):
        plain = owner == "ParameterDict" and not isinstance(source, (OrderedDict, ParameterDict))
        return sorted(source.items()) if plain else list(source.items())  # PyTorch sorts a plain mapping of parameters by name
    pairs = []
    for i, pair in enumerate(source):
        if not isinstance(pair, container_abcs.Iterable):
            raise TypeError(f"{owner} update sequence element #{i} should be Iterable; is {type(pair).__name__}")
        if not len(pair) == 2:
            raise ValueError(f"{owner} update sequence element #{i} has length {len(pair)}; 2 is required")
        pairs.append(tuple(pair))
    return pairs


def _as_parameter(value):
    """Tensors become parameters; anything else is kept as it is."""
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


def _entry_repr(value, kind_of=lambda value: value.dtype):
    if not isinstance(value, Tensor):
        return "Object of type: " + type(value).__name__
    size = "x".join(str(n) for n in value.size())
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    where = "" if value.device.type == "cpu" else f" ({value.device})"
    return f"{kind} containing: [{kind_of(value)} of size {size}{where}]"


class ParameterList(Module):
    """A list of parameters that are registered; tensors that are put in become parameters.

    Example::

        >>> nn.ParameterList([clnn.zeros(2), clnn.zeros(3)])[1].requires_grad
        True
    """

    _get_abs_string_index = _get_abs_string_index

    def __init__(self, values=None):
        super().__init__()
        self._size = 0
        if values is not None:
            self += values

    def __getitem__(self, idx):
        if isinstance(idx, slice):
            return type(self)(self[i] for i in range(*idx.indices(len(self))))
        return getattr(self, str(_position(len(self), idx)))

    def __setitem__(self, idx, value):
        setattr(self, str(_position(len(self), idx)), _as_parameter(value))

    def __len__(self):
        return self._size

    def __iter__(self):
        return iter(self[i] for i in range(len(self)))

    def __iadd__(self, values):
        return self.extend(values)

    def __dir__(self):
        return [name for name in super().__dir__() if not name.isdigit()]

    def append(self, value):
        """Add a value at the end."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values):
        """Append all values of an iterable."""
        if not isinstance(values, container_abcs.Iterable) or isinstance(values, Tensor):
            raise TypeError("ParameterList.extend should be called with an iterable, but got " + type(values).__name__)
        for value in list(values):
            self.append(value)
        return self

    def extra_repr(self):
        return "\n".join(f"  ({i}): {_entry_repr(value)}" for i, value in enumerate(self))

    def __call__(self, *args, **kwargs):
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """A dictionary of parameters that are registered; tensors that are put in become parameters.

    Example::

        >>> list(nn.ParameterDict({"a": clnn.zeros(2)}).keys())
        ['a']
    """

    def __init__(self, parameters=None):
        super().__init__()
        self._keys = {}
        if parameters is not None:
            self.update(parameters)

    @staticmethod
    def _name(key):
        if not isinstance(key, str):
            raise TypeError("Index given to ParameterDict cannot be used as a key as it is not a string "
                            f"(type is '{type(key).__name__}'). Open an issue on github if you need non-string keys.")
        return key

    def __getitem__(self, key):
        return getattr(self, self._name(key))

    def __setitem__(self, key, value):
        self._keys[key] = None
        setattr(self, self._name(key), _as_parameter(value))

    def __delitem__(self, key):
        del self._keys[key]
        delattr(self, self._name(key))

    def __len__(self):
        return len(self._keys)

    def __iter__(self):
        return iter(self._keys)

    def __reversed__(self):
        return reversed(list(self._keys))

    def __contains__(self, key):
        return key in self._keys

    def copy(self):
        """A new dictionary with the same entries."""
        return ParameterDict(OrderedDict((key, self[key]) for key in self._keys))

    def setdefault(self, key, default=None):
        """The value at *key*, which is set to *default* first when it is missing."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self):
        """Remove everything."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key):
        """Remove the value at *key* and return it."""
        value = self[key]
        del self[key]
        return value

    def popitem(self):
        """Remove the last entry and return it as (key, value)."""
        key, _ = self._keys.popitem()
        self._keys[key] = None  # pop needs it back
        return key, self.pop(key)

    def get(self, key, default=None):
        """The value at *key*, or *default*."""
        return self[key] if key in self else default

    def fromkeys(self, keys, default=None):
        """A new dictionary with *default* under every key."""
        return ParameterDict((key, default) for key in keys)

    def keys(self):
        """The keys."""
        return self._keys.keys()

    def items(self):
        """(key, value) pairs."""
        return ((key, self[key]) for key in self._keys)

    def values(self):
        """The values."""
        return (self[key] for key in self._keys)

    def update(self, parameters):
        """Add the entries of a mapping, or of an iterable of (key, value) pairs."""
        for key, value in _pairs(parameters, "ParameterDict"):
            self[key] = value

    def extra_repr(self):
        return "\n".join(f"  ({key}): {_entry_repr(value, _typename)}" for key, value in self.items())

    def __call__(self, input):
        raise RuntimeError("ParameterDict should not be called.")

    def __or__(self, other):
        merged = self.copy()
        merged.update(other)
        return merged

    def __ror__(self, other):
        merged = other.copy()
        merged.update(self)
        return merged

    def __ior__(self, other):
        self.update(other)
        return self
