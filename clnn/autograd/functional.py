"""Jacobians, Hessians and their products with vectors, of functions from tensors to tensors."""
from __future__ import annotations

from .._tensor.backward import grad
from .._tensor.grad_mode import enable_grad
from .._tensor.tensor import Tensor
from ..graph.op import REGISTRY
from ..ops.creation import eye


def _tensors(x, what, name):
    """(the tensors of ``x``, whether they are in a tuple)."""
    many = isinstance(x, tuple)
    for i, t in enumerate(x if many else (x,)):
        if not isinstance(t, Tensor):
            where = f"the value at index {i}" if many else f"the given {what}"
            raise TypeError(f"The {what} given to {name} must be either a Tensor or a tuple of Tensors but {where} has type {type(t)}.")
    return x if many else (x,), many


def _prepare(x, create_graph, name):
    """(tuple of fresh inputs that require gradients, whether ``x`` was a tuple)."""
    xs, many = _tensors(x, "inputs", name)
    return tuple(t.view_as(t) if create_graph and t.requires_grad else t.detach().clone().requires_grad_() for t in xs), many


def _call(func, xs, name, strict=False):
    out = func(*xs)
    outs, many = _tensors(out, "outputs of the user-provided function", name)
    for i, o in enumerate(outs if strict else ()):
        if not o.requires_grad:
            raise RuntimeError(f"Output {i} of the user-provided function does not require gradients. The outputs must be computed in a differentiable manner "
                               "from the input when running in strict mode.")
    return outs, many


def _fixed(grads, strict, create_graph, what="jacobian", at=None):
    """``grads``, which can be differentiated again where that is asked for in strict mode."""
    for i, g in enumerate(grads if strict and create_graph else ()):
        if not g.requires_grad:
            raise RuntimeError(f"The {what} of the user-provided function is independent of input {i if at is None else at}. This is not allowed in strict mode when "
                               "create_graph=True.")
    return grads


def _fill(grads, xs, strict=False, what="The output"):
    if strict and any(g is None for g in grads):
        i = [g is None for g in grads].index(True)
        raise RuntimeError(f"{what} of the user-provided function is independent of input {i}. This is not allowed in strict mode.")
    return tuple(x.new_zeros(x.shape) if g is None else g for g, x in zip(grads, xs))


def _settle(values, many, create_graph):
    values = values if create_graph else tuple(v.detach() for v in values)
    return values if many else values[0]


def _grads(outs, xs, seeds, create_graph, retain=True):
    pairs = [(o, s) for o, s in zip(outs, seeds) if o.requires_grad and s is not None]
    if not pairs:
        return (None,) * len(xs)
    return grad([o for o, _ in pairs], xs, [s for _, s in pairs], retain_graph=retain, create_graph=create_graph, allow_unused=True)


def _of_first(grads, xs, strict):
    """The first gradients, of which more are asked for: all have to depend on the inputs where ``strict`` says so."""
    for i, g in enumerate(grads if strict else ()):
        if g is None or not g.requires_grad:
            raise RuntimeError(f"While computing the hessian, found that the jacobian of the user-provided function with respect to input {i} is independent of the "
                               "input. This is not allowed in strict mode. You should ensure that your function is twice differentiable and that the jacobian "
                               "depends on the inputs (this would be violated by a linear function for example).")
    return _fill(grads, xs)


def _vectors(v, like, name, many):
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            whose = "user-provided function returns" if name == "vjp" else "input to the user-provided function is"
            raise RuntimeError(f"The vector v can only be None if the {whose} a single Tensor with a single element.")
        return (like[0].new_ones(like[0].shape),)
    vs, _ = _tensors(v, "v", name)
    if len(vs) > 1 and not many:
        raise RuntimeError("The given v should contain a single Tensor.")
    if len(vs) != len(like):
        raise RuntimeError(f"v is a tuple of invalid length: should be {len(like)} but got {len(vs)}.")
    for i, (a, b) in enumerate(zip(vs, like)):
        if a.shape != b.shape:
            what = f"Entry {i} in v" if many else "v"
            raise RuntimeError(f"{what} has invalid size: should be {b.shape} but got {a.shape}.")
    return vs


def _rows(i, o, xs, create_graph, strict, vectorize):
    """The Jacobian of one output, per input: by one backward pass per element, or by one for all elements."""
    flat, count = o.reshape(-1), o.numel()
    if vectorize:
        got = grad((flat,), xs, (eye(count, dtype=o.dtype, device=o.device),), retain_graph=True, create_graph=create_graph, allow_unused=True,
                   is_grads_batched=True) if flat.requires_grad and count else (None,) * len(xs)
        return tuple(x.new_zeros(o.shape + x.shape) if g is None else g.reshape(o.shape + x.shape) for g, x in zip(got, xs))
    if o.dtype.is_complex and count:
        raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {o.dtype}")
    columns = [[] for _ in xs]
    for j in range(count):
        seed = flat.detach().new_zeros(count)
        seed[j] = 1.0
        row = _fill(_grads((flat,), xs, (seed,), create_graph), xs, strict, f"Output {i}")
        for k, g in enumerate(_fixed(row, strict, create_graph, at=i)):
            columns[k].append(g)
    return tuple(REGISTRY["stack"].fn(c, 0).reshape(o.shape + x.shape) if c else x.new_zeros(o.shape + x.shape) for c, x in zip(columns, xs))


def _forward(func, inputs, create_graph, strict, vectorize):
    """The Jacobian by one forward pass for all elements of an input."""
    from ..func import jacfwd
    if create_graph:
        raise NotImplementedError("torch.autograd.functional.jacobian: `create_graph=True` and `strategy=\"forward-mode\"` are not supported together (yet). "
                                  "Please either set `create_graph=False` or `strategy=\"reverse-mode\"`.")
    if strict:
        raise RuntimeError("torch.autograd.functional.jacobian: `strict=True` and `strategy=\"forward-mode\"` are not supported together (yet). Please either set "
                           "`strict=False` or `strategy=\"reverse-mode\"`.")
    if not vectorize:
        raise NotImplementedError("Computing Jacobian using forward-AD or forward-over-reverse Hessian isonly implemented for `vectorize=True`.")
    xs, many = _prepare(inputs, False, "jacobian")
    got = jacfwd(func, tuple(range(len(xs))) if many else 0)(*[x.detach() for x in xs])
    if not many:
        return got
    return [list(row) for row in got] if isinstance(got[0], tuple) else list(got)        # lists of what belongs to the inputs, as in PyTorch


def jacobian(func, inputs, create_graph=False, strict=False, vectorize=False, strategy="reverse-mode"):
    """All first derivatives: for output of shape O and input of shape I a tensor of shape O + I; tuples nest as (outputs, inputs).

    Args:
        create_graph: the derivatives can be differentiated themselves.
        strict: raise where an output does not depend on an input.
        vectorize: one pass for all elements, which takes their number of times the memory, instead of one per element.
        strategy: ``"reverse-mode"``, or with ``vectorize`` ``"forward-mode"``, for functions with more outputs than inputs.

    Example:
        >>> clnn.autograd.functional.jacobian(lambda x: x * x, clnn.tensor([1., 3.]))
        tensor([[2., 0.],
                [0., 6.]])
    """
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError("Expected strategy to be either \"forward-mode\" or \"reverse-mode\". Hint: If your function has more outputs than inputs, "
                             "\"forward-mode\" tends to be more performant. Otherwise, prefer to use \"reverse-mode\".")
    if strategy == "forward-mode":
        return _forward(func, inputs, create_graph, strict, vectorize)
    if strict and vectorize:
        raise RuntimeError("torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported together. Please either set "
                           "`strict=False` or `vectorize=False`.")
    with enable_grad():
        xs, many_in = _prepare(inputs, create_graph, "jacobian")
        outs, many_out = _call(func, xs, "jacobian", strict)
        rows = [_settle(_rows(i, o, xs, create_graph, strict, vectorize), many_in, create_graph) for i, o in enumerate(outs)]
    return tuple(rows) if many_out else rows[0]


def hessian(func, inputs, create_graph=False, strict=False, vectorize=False, outer_jacobian_strategy="reverse-mode"):
    """All second derivatives of a scalar function: shape I + I; tuples nest as (inputs, inputs). ``vectorize``: as for :func:`jacobian`.

    Example:
        >>> clnn.autograd.functional.hessian(lambda x: (x ** 3).sum(), clnn.tensor([1.0, 2.0]))
        tensor([[ 6.,  0.],
                [ 0., 12.]])
    """
    many = isinstance(inputs, (tuple, list))

    def first(*xs):
        outs, several = _call(func, xs, "hessian", strict)
        if several or outs[0].numel() != 1:
            raise RuntimeError(_SINGLE[several].format("hessian"))
        got = _of_first(_grads((outs[0].reshape(()),), xs, (outs[0].new_ones(()),), True), xs, strict)
        return got if many else got[0]
    return jacobian(first, inputs, create_graph, strict, vectorize, outer_jacobian_strategy)


def vjp(func, inputs, v=None, create_graph=False, strict=False):
    """(outputs, vector-Jacobian product ``v^T J``).

    Example:
        >>> clnn.autograd.functional.vjp(lambda x: x ** 3, clnn.tensor([1.0, 2.0]), clnn.ones(2))
        (tensor([1., 8.]), tensor([ 3., 12.]))
    """
    with enable_grad():
        xs, many_in = _prepare(inputs, create_graph, "vjp")
        outs, many_out = _call(func, xs, "vjp", strict)
        got = _fill(_grads(outs, xs, _vectors(v, outs, "vjp", many_out), create_graph), xs, strict)
        _fixed(got, strict, create_graph)
    return _settle(outs, many_out, create_graph), _settle(got, many_in, create_graph)


def jvp(func, inputs, v=None, create_graph=False, strict=False):
    """(outputs, Jacobian-vector product ``J v``), by differentiating the vector-Jacobian product with respect to its vector.

    Example:
        >>> clnn.autograd.functional.jvp(lambda x: x ** 3, clnn.tensor([1.0, 2.0]), clnn.ones(2))
        (tensor([1., 8.]), tensor([ 3., 12.]))
    """
    with enable_grad():
        xs, many_in = _prepare(inputs, create_graph, "jvp")
        vs = _vectors(v, xs, "jvp", many_in)
        outs, many_out = _call(func, xs, "jvp", strict)
        dual = tuple(o.detach().new_zeros(o.shape).requires_grad_() for o in outs)
        back = _fill(_grads(outs, xs, dual, True), xs, strict)
        got = _fixed(_fill(_grads(back, dual, vs, create_graph), outs, strict), strict, create_graph)
    return _settle(outs, many_out, create_graph), _settle(got, many_out, create_graph)


_SINGLE = ("The Tensor returned by the function given to {} should contain a single element", "The function given to {} should return a single Tensor")


def _scalar_gradient(func, inputs, create_graph, name, strict):
    xs, many = _prepare(inputs, create_graph, name)
    outs, several = _call(func, xs, name, strict)
    if several or outs[0].numel() != 1:
        raise RuntimeError(_SINGLE[several].format(name))
    first = _of_first(_fill(_grads((outs[0],), xs, (outs[0].new_ones(outs[0].shape),), True), xs, strict), xs, strict)
    return xs, many, outs[0], first


def vhp(func, inputs, v=None, create_graph=False, strict=False, _name="vhp"):
    """(output, ``v^T H``) of a scalar function.

    Example:
        >>> clnn.autograd.functional.vhp(lambda x: (x ** 3).sum(), clnn.tensor([1.0, 2.0]), clnn.ones(2))
        (tensor(9.), tensor([ 6., 12.]))
    """
    with enable_grad():
        xs, many, out, first = _scalar_gradient(func, inputs, create_graph, _name, strict)
        got = _fill(_grads(first, xs, _vectors(v, xs, _name, many), create_graph), xs, strict)
        _fixed(got, strict, create_graph, "hessian")
    return _settle((out,), False, create_graph), _settle(got, many, create_graph)


def hvp(func, inputs, v=None, create_graph=False, strict=False):
    """(output, ``H v``) of a scalar function; the Hessian is symmetric, so this is :func:`vhp`.

    Example:
        >>> clnn.autograd.functional.hvp(lambda x: (x ** 3).sum(), clnn.tensor([1.0, 2.0]), clnn.ones(2))
        (tensor(9.), tensor([ 6., 12.]))
    """
    return vhp(func, inputs, v, create_graph, strict, "hvp")
