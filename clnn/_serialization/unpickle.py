"""A pickle reader that cannot run code.

The standard unpickler calls whatever a file names. This one is a small stack machine: it knows only the opcodes below, resolves
names through a closed table, calls nothing but that table's functions, and changes only containers that it made itself.
"""

import collections
import io
import pickletools

from clnn._serialization.files import SerializationError


class Callable:
    """A name that a pickle may call; it can do nothing else with it, unless that is a class (``kind``), which may also be a value."""

    def __init__(self, name, function, create=None, kind=None):
        self.name, self.function, self.kind = name, function, kind
        self.create = function if create is None else create        # what makes an instance whose state comes later


trusted: dict = {}          # full name -> class or function that the program vouched for


def trusts(kind):
    """Whether instances of the class may be filled."""
    return any(kind is k for k in trusted.values())


_MARK = object()
_DICTS = (dict, collections.OrderedDict, collections.Counter, collections.defaultdict)
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_VALUES = frozenset("INT BININT BININT1 BININT2 LONG LONG1 LONG4 FLOAT BINFLOAT UNICODE BINUNICODE SHORT_BINUNICODE BINUNICODE8 "
                    "BINBYTES SHORT_BINBYTES BINBYTES8 STRING BINSTRING SHORT_BINSTRING BYTEARRAY8".split())


class Machine:
    """Runs one pickle.

    Args:
        find_global: `(module, name) -> object`; raises `SerializationError` for names that are not allowed.
        load_persistent: `(persistent id) -> object`.
        build: `(object, state) -> object`, for the opcode that sets the state of an object.
    """

    def __init__(self, find_global, load_persistent, build):
        self.find_global, self.load_persistent, self.build = find_global, load_persistent, build
        self.stack, self.memo, self.kinds = [], {}, {}              # kinds: class or function that was named -> its Callable

    def run(self, data):
        """The object that the pickle `data` describes: bytes, or a binary file, which is left behind the pickle's end."""
        try:
            for opcode, argument, _ in pickletools.genops(io.BytesIO(data) if isinstance(data, bytes) else data):
                if opcode.name == "STOP":
                    result = self._pop()
                    return result
                self._step(opcode.name, argument)
        except SerializationError:
            raise
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, RecursionError, EOFError) as error:
            raise SerializationError(f"load: the file's pickle is damaged or hostile ({type(error).__name__}: {error})") from error
        raise SerializationError("load: the file's pickle ends too early")

    def _step(self, name, argument):
        if name in _VALUES:
            self.stack.append(argument)
        elif name in _CONSTANTS:
            self.stack.append(_CONSTANTS[name])
        else:
            handler = getattr(self, "_op_" + name, None)
            if handler is None:
                raise SerializationError(f"load: the file uses the pickle opcode {name}, which tensors and plain containers never need")
            handler(argument)

    def _pop(self):
        value = self.stack.pop()
        if value is _MARK:
            raise ValueError("a mark where a value was expected")
        return value

    def _pop_mark(self):
        for i in range(len(self.stack) - 1, -1, -1):
            if self.stack[i] is _MARK:
                items = self.stack[i + 1:]
                del self.stack[i:]
                return items
        raise ValueError("no mark on the stack")

    def _op_PROTO(self, argument):
        if argument > 5:
            raise ValueError(f"pickle protocol {argument} is unknown")

    def _op_FRAME(self, argument):
        pass

    def _op_MARK(self, argument):
        self.stack.append(_MARK)

    def _op_POP(self, argument):
        self.stack.pop()

    def _op_POP_MARK(self, argument):
        self._pop_mark()

    def _op_DUP(self, argument):
        self.stack.append(self.stack[-1])

    # ---- memo
    def _op_PUT(self, argument):
        self.memo[argument] = self.stack[-1]

    _op_BINPUT = _op_LONG_BINPUT = _op_PUT

    def _op_MEMOIZE(self, argument):
        self.memo[len(self.memo)] = self.stack[-1]

    def _op_GET(self, argument):
        self.stack.append(self.memo[argument])

    _op_BINGET = _op_LONG_BINGET = _op_GET

    # ---- containers
    def _op_EMPTY_TUPLE(self, argument):
        self.stack.append(())

    def _op_EMPTY_LIST(self, argument):
        self.stack.append([])

    def _op_EMPTY_DICT(self, argument):
        self.stack.append({})

    def _op_EMPTY_SET(self, argument):
        self.stack.append(set())

    def _op_TUPLE(self, argument):
        self.stack.append(tuple(self._pop_mark()))

    def _op_LIST(self, argument):
        self.stack.append(self._pop_mark())

    def _op_DICT(self, argument):
        items = self._pop_mark()
        self.stack.append(dict(zip(items[::2], items[1::2], strict=True)))

    def _op_FROZENSET(self, argument):
        self.stack.append(frozenset(self._pop_mark()))

    def _short_tuple(self, n):
        items = [self._pop() for _ in range(n)]
        self.stack.append(tuple(reversed(items)))

    def _op_TUPLE1(self, argument):
        self._short_tuple(1)

    def _op_TUPLE2(self, argument):
        self._short_tuple(2)

    def _op_TUPLE3(self, argument):
        self._short_tuple(3)

    def _top(self, *types):
        if type(self.stack[-1]) not in types and not trusts(type(self.stack[-1])):
            raise TypeError(f"items are added to a {type(self.stack[-1]).__name__}")
        return self.stack[-1]

    def _op_APPEND(self, argument):
        value = self._pop()
        self._top(list).append(value)

    def _op_APPENDS(self, argument):
        items = self._pop_mark()
        self._top(list).extend(items)

    def _op_ADDITEMS(self, argument):
        items = self._pop_mark()
        self._top(set).update(items)

    def _op_SETITEM(self, argument):
        value, key = self._pop(), self._pop()
        self._top(*_DICTS)[key] = value

    def _op_SETITEMS(self, argument):
        items = self._pop_mark()
        target = self._top(*_DICTS)
        for key, value in zip(items[::2], items[1::2], strict=True):
            target[key] = value

    # ---- names, calls, storages
    def _op_GLOBAL(self, argument):
        module, _, name = argument.partition(" ")
        self._named(module, name)

    def _named(self, module, name):
        found = self.find_global(module, name)
        if type(found) is Callable and (found.kind is not None or trusts(found.function)):       # which may also be values
            value = found.function if found.kind is None else found.kind
            self.kinds[value] = found
            found = value
        self.stack.append(found)

    def _op_STACK_GLOBAL(self, argument):
        name, module = self._pop(), self._pop()
        if type(name) is not str or type(module) is not str:
            raise TypeError("a name that is not text")
        self._named(module, name)

    def _called(self):
        arguments, function = self._pop(), self._pop()
        function = self.kinds.get(function) if isinstance(function, type) or trusts(function) else function
        if type(function) is not Callable or type(arguments) is not tuple:
            raise SerializationError("load: the file's pickle calls something that is not a function of the allowed list")
        return function, arguments

    def _op_REDUCE(self, argument):
        function, arguments = self._called()
        self.stack.append(function.function(*arguments))

    def _op_NEWOBJ(self, argument):
        function, arguments = self._called()
        self.stack.append(function.create(*arguments))

    def _op_BUILD(self, argument):
        state = self._pop()
        self.stack.append(self.build(self._pop(), state))

    def _op_BINPERSID(self, argument):
        self.stack.append(self.load_persistent(self._pop()))
