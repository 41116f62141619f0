"""The tests of ``opcheck`` in the module ``library``."""
from __future__ import annotations

import clnn
from clnn._tensor.interop import read
from clnn._tensor.tensor import Tensor
from clnn.utils._pytree import tree_leaves, tree_map


def _tensors(values):
    return [t for t in tree_leaves(values) if isinstance(t, Tensor)]


def _copies(values):
    """The same values in tensors of their own, leaves that require gradients where the originals do."""
    return tree_map(lambda t: t.detach().clone().requires_grad_(t.requires_grad) if isinstance(t, Tensor) else t, values)


def _call(op, args, kwargs):
    args, kwargs = _copies((list(args), kwargs))
    return args, kwargs, op(*args, **kwargs)


def schema(op, args, kwargs, **tolerances):
    """Only what is declared is changed; results share no memory with arguments."""
    args, kwargs = _copies((list(args), kwargs))
    values, named = op._schema.bind(args, kwargs)
    before = {a.name: [read(t.detach()).tobytes() for t in _tensors([v])] for a, v in zip(_ordered(op), [*values, *named.values()])}
    result = op(*args, **kwargs)
    for a, v in zip(_ordered(op), [*values, *named.values()]):
        if not a.mutated and [read(t.detach()).tobytes() for t in _tensors([v])] != before[a.name]:
            raise RuntimeError(f"Argument {a.name} is not defined as mutable but was mutated")
    if not op._schema.is_mutable:
        op._refuse_aliases(_tensors((args, kwargs)), result)


def _ordered(op):
    arguments = op._schema.arguments
    return [a for a in arguments if not a.kwarg_only] + [a for a in arguments if a.kwarg_only]


def autograd_registration(op, args, kwargs, **tolerances):
    """A gradient is registered where an argument requires one."""
    if not any(t.requires_grad for t in _tensors((args, kwargs))) or op._schema.is_mutable:
        return
    if op.backward is None and not {"implicit", "autograd"} & set(op.kernels):
        raise AssertionError("the operator has arguments that require gradients, but no autograd formula is registered: use register_autograd")


def fake(op, args, kwargs, **tolerances):
    """The fake kernel gives tensors like the results."""
    _, _, result = _call(op, args, kwargs)
    meta = tree_map(lambda t: t.detach().to("meta") if isinstance(t, Tensor) else t, (list(args), kwargs))
    expected, got = _tensors([result]), _tensors([op(*meta[0], **meta[1])])
    if len(expected) != len(got):
        raise AssertionError(f"the operator returns {len(expected)} tensors, its fake kernel {len(got)}")
    for i, (a, b) in enumerate(zip(expected, got)):
        for what in ("shape", "dtype"):
            if getattr(a, what) != getattr(b, what):
                raise AssertionError(f"output {i} has {what} {getattr(a, what)}, that of the fake kernel {getattr(b, what)}")
        if a.stride() != b.stride():
            raise AssertionError(f"output {i} has strides {a.stride()}, that of the fake kernel {b.stride()}")


def repeated(op, args, kwargs, rtol=None, atol=None):
    """Two runs give the same results and gradients."""
    runs = []
    for _ in range(2):
        these, named, result = _call(op, args, kwargs)
        leaves = [t for t in _tensors((these, named)) if t.requires_grad]
        outs = [t for t in _tensors([result]) if t.requires_grad]
        grads = clnn.autograd.grad([t.sum() for t in outs], leaves, allow_unused=True) if outs and leaves else ()
        runs.append([t.detach() for t in (*_tensors([result]), *[g for g in grads if g is not None])])
    for a, b in zip(*runs):
        clnn.testing.assert_close(a, b, rtol=rtol, atol=atol, equal_nan=True)


TESTS = {"test_schema": schema, "test_autograd_registration": autograd_registration, "test_faketensor": fake, "test_aot_dispatch_static": repeated,
         "test_aot_dispatch_dynamic": repeated}
