"""What optimizers count with: tensors without dimensions to programs, bytes of the host to a step, which then needs no work of a device."""

from struct import Struct

from clnn._tensor.grad_mode import no_grad
from clnn._tensor.tensor import Tensor
from clnn.core import native
from clnn.graph import mirror
from clnn.graph.mirror import Counted
from clnn.optim._shared import _get_scalar_dtype

_KINDS = {4: Struct("f"), 8: Struct("d")}


def counter(value):
    """A tensor that holds ``value``, of float32 or of the default dtype if that is float64."""
    from clnn import tensor
    t = tensor(value, dtype=_get_scalar_dtype())
    _keep(t, value)
    return t


def held(state, name):
    """What the counter in ``state[name]`` is, to tell counters apart: its bytes where the host has them, else a float."""
    t = state[name]
    if t.__class__ is Tensor:
        st = t._storage
        if st.__class__ is Counted and (values := st.mirror).__class__ is bytes:
            return values
    if not isinstance(t, Tensor):                               # a program's own number
        state[name] = counter(float(t))
        return float(t)
    value = t.item()
    _keep(t, value)
    return value


def number_of(value):
    """The number that :func:`held` stands for."""
    return _KINDS[len(value)].unpack(value)[0] if value.__class__ is bytes else value


def count_of(state, name):
    """The counter in ``state[name]`` as a number."""
    return number_of(held(state, name))


def alike(states, names):
    """Whether these states have equal counters, as they have until a program changes one of them."""
    return all([len({held(state, name) for state in states}) == 1 for name in names])


def advance(states, counters):
    """Write new values of counters into the states that have equal ones."""
    for name, value in counters.items():
        packed = _KINDS[4].pack(value)
        for state in () if _counted_on(states, name, packed) else states:
            t = state[name]
            st = t._storage
            if st.__class__ is Counted and st.nbytes == 4:
                st.mirror = packed
                st.version += 1
            else:
                _put(t, value)


def _counted_on(states, name, packed):
    """Whether the next value was written into counters that the host has, all of them: the C form does so."""
    return False


_counted_on = native.form("counted_on", _counted_on)


def _keep(t, value):
    """Leave the value of a counter to the host, where nobody looks into its memory."""
    kind = _KINDS.get(t.dtype.itemsize) if t.dtype.is_floating_point else None
    return kind is not None and kind.size == t._storage.nbytes and mirror.count(t._storage, kind.pack(value))


def _put(t, value):
    if _keep(t, value):
        t._storage.version += 1
    else:
        with no_grad():
            t.fill_(value)
