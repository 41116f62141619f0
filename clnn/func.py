"""Transformations of functions: gradients, Jacobians, vectorisation, and modules as functions of their parameters.

The functions take and give tensors in nested tuples, lists and dictionaries. Derivatives come from the tape, at any depth of nesting.
"""
from __future__ import annotations

import functools

import clnn
from clnn._rearrange import rearrange
from clnn._tensor import tape
from clnn._tensor.backward import grad as _tape_grad
from clnn._tensor.grad_mode import state
from clnn._tensor.tensor import Tensor, edge
from clnn._vmap import vmap
from clnn._vmap.batched import spread, stripped, wrap
from clnn._vmap.levels import entered, here
from clnn.autograd.forward_ad import pushforward
from clnn.nn.utils import stateless
from clnn.utils._pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten, treespec_pprint

__all__ = ["functional_call", "stack_module_state", "grad", "grad_and_value", "vjp", "jvp", "jacrev", "jacfwd", "hessian", "vmap", "linearize",
           "functionalize", "rearrange", "debug_unwrap", "replace_all_batch_norm_modules_"]


def functional_call(module, parameter_and_buffer_dicts, args=None, kwargs=None, *, tie_weights=True, strict=False):
    """Call a module as if its parameters and buffers were the given tensors: see :func:`clnn.nn.utils.stateless.functional_call`.

    Example:
        >>> clnn.func.functional_call(clnn.nn.Linear(2, 1, bias=False), {"weight": clnn.ones(1, 2)}, clnn.tensor([1., 2.]))
        tensor([3.])
    """
    return stateless.functional_call(module, parameter_and_buffer_dicts, args, kwargs, tie_weights=tie_weights, strict=strict)


# -- variables of one differentiation -----------------------------------------------------------------------------------------------

def _differentiating(fn):
    """``fn`` outside of inference mode, which transformations do not know: what they give there are ordinary tensors without history (decorator)."""
    @functools.wraps(fn)
    def call(*args, **kwargs):
        if not state.inference:
            return fn(*args, **kwargs)
        with clnn.inference_mode(False), clnn.no_grad():
            return fn(*args, **kwargs)
    return call


def _variables(tree, name):
    """(the tree with fresh variables in place of its tensors, the variables). A variable of an outer graph stays part of it."""
    leaves, spec = tree_flatten(tree)
    fresh = []
    for t in leaves:
        if not isinstance(t, Tensor):
            raise ValueError(f"Thing passed to transform API must be Tensor, got {type(t)}")
        if not t.dtype.differentiable:
            if name in ("jvp", "jacfwd", "linearize"):
                raise ValueError(f"Expected primal to be floating point or complex, but got: {t.dtype}")
            raise RuntimeError("only Tensors of floating point dtype can require gradients")
        t = spread(t, here.maps) if here.maps else t               # each sample has a gradient of its own
        if t._rg:
            with clnn.enable_grad():
                fresh.append(t.view_as(t))
        else:
            fresh.append((t.clone() if t.is_inference() else t.detach()).requires_grad_())
    return tree_unflatten(fresh, spec), fresh


def _all_real(tensors, name, what):
    for i, t in enumerate(tensors):
        if t.dtype.is_complex:
            raise RuntimeError(f"{name}: Expected all {what} to be real but received complex tensor at flattened input idx: {i}")


def _outer(outputs, variables) -> bool:
    """True when the graph behind ``outputs`` also reaches leaves that are not among ``variables``."""
    outputs, variables = [t._bearer for t in outputs], [v._bearer for v in variables]
    own = {id(v) for v in variables if v._grad_fn is None}
    seen, stack = set(), [t._grad_fn for t in outputs if t._grad_fn is not None]
    if any(t._grad_fn is None and t._rg and id(t) not in own for t in outputs):
        return True
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if node.__class__ is tape.AccumulateGrad:
            if id(node.variable) not in own:
                return True
            continue
        stack += [e[0] for e in node.edges if e is not None]
    return False


def _gradients(outputs, variables, seeds, create, retain=None):
    """Gradients in the variables' shapes; zeros where an output does not depend on one."""
    pairs = [(o, s) for o, s in zip(outputs, seeds) if o._rg]
    if not pairs or not variables:
        return [clnn.zeros_like(v) for v in variables]
    got = _tape_grad([o for o, _ in pairs], variables, [s for _, s in pairs], create_graph=create, retain_graph=create if retain is None else retain,
                     allow_unused=True)
    return [clnn.zeros_like(v) if g is None else g for g, v in zip(got, variables)]


def _plain(tree, linked):
    """Results without history, unless they belong to an outer graph."""
    if linked:
        return tree
    return tree_map(lambda t: t.detach() if isinstance(t, Tensor) else t, tree)


_SPELT = {"grad": "grad_and_value(f)(*args)", "vjp": "vjp(f, *primals)", "jacrev": "vjp(f, *primals)", "jvp": "jvp(f, primals, tangents)",
          "jacfwd": "jvp(f, primals, tangents)"}


def _with_aux(result, has_aux, name):
    if not has_aux:
        return result, None
    if not (isinstance(result, tuple) and len(result) == 2):
        raise RuntimeError(f"{_SPELT.get(name, name)}: output of function f should be a tuple: (output, aux) if has_aux is True")
    return result


def _pick(args, argnums, name):
    """(arguments to differentiate, function that puts others in their place)."""
    several = isinstance(argnums, tuple)
    numbers = argnums if several else (argnums,)
    if not numbers:
        raise RuntimeError("argnums must be non-empty")
    for n in numbers:
        if not isinstance(n, int):
            raise RuntimeError(f"argnum must be int, got: {type(n)}" if several else f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
        if not -len(args) <= n < len(args):
            raise RuntimeError(f"Got argnum={n}, but only {len(args)} positional inputs")
    numbers = tuple(n % len(args) for n in numbers)
    if len(set(numbers)) < len(numbers):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")

    def put(values):
        out = list(args)
        for n, v in zip(numbers, values if several else (values,)):
            out[n] = v
        return out
    return (tuple(args[n] for n in numbers) if several else args[numbers[0]]), put


def _outputs(result, name):
    leaves, spec = tree_flatten(result)
    if name in ("vjp", "jacrev") and all(t is None for t in leaves):
        raise RuntimeError(f"vjp(f, *primals): Expected f to be a function that has non-empty output (got output = {leaves})")
    for t in leaves:
        if not isinstance(t, Tensor):
            raise RuntimeError(f"{_SPELT.get(name, name)}: expected f(*primals) to return only tensors, got unsupported type {type(t)}")
        if name in ("vjp", "jacrev") and not t.dtype.differentiable:
            raise RuntimeError(f"vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got Tensor with dtype {t.dtype}")
    return leaves, spec


# -- gradients ------------------------------------------------------------------------------------------------------------------

def grad_and_value(func, argnums=0, has_aux=False):
    """A function that gives the gradient and the value of ``func``: ``(grad, value)``, or ``(grad, (value, aux))``.

    Args:
        func: returns a tensor with one element and no dimensions, or a pair of it and ``aux`` with ``has_aux``.
        argnums: which positional argument(s) to differentiate; a tuple gives a tuple of gradients.

    Raises:
        RuntimeError: the value is no scalar, or ``argnums`` names arguments that were not given.

    Example::

        >>> clnn.func.grad_and_value(lambda x: (x ** 2).sum())(clnn.tensor([1., 3.]))
        (tensor([2., 6.]), tensor(10.))
    """
    @_differentiating
    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        name, outer_grad = "grad", state.grad
        picked, put = _pick(args, argnums, name)
        with clnn.enable_grad():
            fresh, variables = _variables(picked, name)
            value, aux = _with_aux(func(*put(fresh), **kwargs), has_aux, name)
        if not isinstance(value, Tensor):
            raise RuntimeError(f"grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got {type(value)}")
        if value.dim() != 0:
            raise RuntimeError(f"grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor with {value.dim()} dims. Maybe you wanted to "
                               "use the vjp or jacrev APIs instead?")
        if value.dtype.is_complex:
            raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {value.dtype}")
        linked = outer_grad and _outer([value], variables)
        flat = _gradients([value], variables, [clnn.ones_like(value)], linked, retain=linked or has_aux)
        gradient = tree_unflatten(flat, tree_flatten(picked)[1])
        value, aux = _plain(value, linked), _plain(aux, linked)
        return _plain(gradient, linked), (value, aux) if has_aux else value
    return wrapper


def grad(func, argnums=0, has_aux=False):
    """A function that gives the gradient of the scalar function ``func``; with ``has_aux`` the pair ``(gradient, aux)``.

    Applied repeatedly it gives higher derivatives. Arguments as for :func:`grad_and_value`.

    Example::

        >>> cube = lambda x: x ** 3
        >>> clnn.func.grad(clnn.func.grad(cube))(clnn.tensor(2.))
        tensor(12.)
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        gradient, value = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient
    return wrapper


@_differentiating
def vjp(func, *primals, has_aux=False):
    """The value of ``func`` at ``primals`` and a function for products of a vector with its Jacobian.

    Returns:
        ``(output, vjp_fn)`` or ``(output, vjp_fn, aux)``. ``vjp_fn(cotangents)`` takes what has the structure of the output and gives a tuple
        with one entry per primal. It can be called repeatedly.

    Example::

        >>> out, back = clnn.func.vjp(lambda x: x.sin(), clnn.zeros(2))
        >>> back(clnn.ones(2))
        (tensor([1., 1.]),)
    """
    outer_grad = state.grad
    with clnn.enable_grad():
        fresh, variables = _variables(primals, "vjp")
        result, aux = _with_aux(func(*fresh), has_aux, "vjp")
    outputs, spec = _outputs(result, "vjp")
    linked = outer_grad and _outer(outputs, variables)

    @_differentiating
    def vjp_fn(cotangents, retain_graph=True, create_graph=None):
        seeds, got = tree_flatten(cotangents)
        if got != spec and len(seeds) == len(outputs) == 1:
            got = spec
        if got != spec:
            raise RuntimeError("Expected pytree structure of cotangents to be the same as pytree structure of outputs to the function. cotangents: "
                               f"{treespec_pprint(got)}, primal output: {treespec_pprint(spec)}")
        for i, (s, o) in enumerate(zip(seeds, outputs)):
            if s.shape != o.shape:
                raise RuntimeError(f"Mismatch in shape: grad_output[{i}] has a shape of {s.shape} and output[{i}] has a shape of {o.shape}.")
        create = create_graph if create_graph is not None else linked or (state.grad and any(s._rg for s in seeds))
        flat = _gradients(outputs, variables, seeds, create, retain_graph)
        return _plain(tree_unflatten(flat, tree_flatten(primals)[1]), create)
    vjp_fn.outputs = outputs
    value = _plain(tree_unflatten(outputs, spec), linked)
    return (value, vjp_fn, _plain(aux, linked)) if has_aux else (value, vjp_fn)


def _pushforward(outputs, variables):
    """A function from tangents of the variables to tangents of the outputs."""
    push = pushforward([o._bearer for o in outputs], [edge(v._bearer) for v in variables])

    def dressed(tangents, create):
        return [o._dressed(t) for o, t in zip(outputs, push([v._bared(t) for v, t in zip(variables, tangents)], create))]
    return dressed


@_differentiating
def jvp(func, primals, tangents, *, strict=False, has_aux=False):
    """The value of ``func`` at ``primals`` and the product of its Jacobian with ``tangents``.

    Computed by differentiating the vector-Jacobian product, which is linear in its vector, so it costs about three evaluations.

    Returns:
        ``(output, tangent of the output)``, or with ``aux`` as a third entry.

    Example::

        >>> clnn.func.jvp(lambda x: x ** 2, (clnn.tensor([1., 2.]),), (clnn.ones(2),))
        (tensor([1., 4.]), tensor([2., 4.]))
    """
    outer_grad = state.grad
    if not isinstance(primals, tuple):
        raise RuntimeError("jvp(f, primals, tangents): Expected primals to be a tuple. E.g. it should be valid to call f(*primals).")
    given = tree_leaves(tangents)
    if tree_flatten(primals)[1] != tree_flatten(tangents)[1]:
        raise RuntimeError("jvp(f, primals, tangents): Expected primals and tangents to have the same python structure. For example, if primals is a tuple of "
                           f"3 tensors, tangents also must be. Got primals with structure {tree_flatten(primals)[1]} and tangents with structure "
                           f"{tree_flatten(tangents)[1]}")
    for what, values in (("primals", tree_leaves(primals)), ("tangents", given)):
        if not values:
            raise RuntimeError(f"jvp(f, primals, tangents): Expected {what} to contain at least one Tensor.")
        if other := [type(v) for v in values if not isinstance(v, Tensor)]:
            raise RuntimeError(f"jvp(f, primals, tangents): Expected {what} to only contain Tensors, got {other[0]}")
    for p, t in zip(tree_leaves(primals), given):
        if not p.dtype.differentiable:
            raise ValueError(f"Expected primal to be floating point or complex, but got: {p.dtype}")
        if not t.dtype.differentiable:
            raise ValueError(f"Expected tangent to be floating point or complex, but got: {t.dtype}")
        if p.shape != t.shape:
            raise RuntimeError("Trying to set a forward gradient that has a different size than that of the original Tensor, this is not supported. Tensor "
                               f"is of size {list(p.shape)} while the given forward gradient is of size {list(t.shape)}.")
    with clnn.enable_grad():
        fresh, variables = _variables(primals, "jvp")
        result, aux = _with_aux(func(*fresh), has_aux, "jvp")
        outputs, spec = _outputs(result, "jvp")
        if strict and not all(o._rg for o in outputs):
            raise RuntimeError("jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is not allowed with strict=True.")
        linked = outer_grad and (_outer(outputs, variables) or any(t._rg for t in given))
        moved = _pushforward(outputs, variables)(given, linked)
    value = _plain(tree_unflatten(outputs, spec), linked)
    tangent = _plain(tree_unflatten(moved, spec), linked)
    return (value, tangent, _plain(aux, linked)) if has_aux else (value, tangent)


@_differentiating
def linearize(func, *primals):
    """The value of ``func`` at ``primals`` and its linear part there: ``(output, jvp_fn)`` with ``jvp_fn(*tangents)``.

    Example:
        >>> output, jvp = clnn.func.linearize(lambda x: x ** 2, clnn.tensor([1.0, 2.0]))
        >>> output, jvp(clnn.ones(2))
        (tensor([1., 4.]), tensor([2., 4.]))
    """
    with clnn.enable_grad():
        fresh, variables = _variables(primals, "linearize")
        outputs, spec = _outputs(func(*fresh), "linearize")
        push = _pushforward(outputs, variables)

    @_differentiating
    def jvp_fn(*tangents):
        if tree_flatten(tangents)[1] != tree_flatten(primals)[1]:
            raise RuntimeError(f"Expected the tangents {tree_flatten(tangents)[1]} to have the same argspec as the primals {tree_flatten(primals)[1]}")
        for i, (p, t) in enumerate(zip(variables, tree_leaves(tangents))):
            for what, own, given in (("shape", p.shape, t.shape), ("dtype", p.dtype, t.dtype)):
                if own != given:
                    raise RuntimeError(f"tangent:{i} with {what} {given} in flattened pytree doesn't match the {what} {own} of the corresponding primal.")
        with clnn.enable_grad():
            return _plain(tree_unflatten(push(tree_leaves(tangents), False), spec), False)
    return _plain(tree_unflatten(outputs, spec), False), jvp_fn


# -- Jacobians ------------------------------------------------------------------------------------------------------------------

def _over_unit_vectors(like, chunk_size, differentiate):
    """``differentiate(seed)``, a list of tensors, for each unit vector in the shape of ``like``, ``chunk_size`` of them at once: along a new first dimension."""
    count = like.numel()
    eye = clnn.eye(count, dtype=like.dtype, device=like.device).reshape(count, *like.shape)
    parts = []
    for seeds in eye.split(chunk_size or max(1, count)):
        with entered(seeds.shape[0]) as level:
            parts.append([stripped(t, level, seeds.shape[0]) for t in differentiate(wrap(seeds, level))])
    return parts[0] if len(parts) == 1 else [clnn.cat(column) for column in zip(*parts)]


def _by_rows(outputs, variables, linked, chunk_size=None):
    """The table [output][variable] of Jacobians by one backward pass for all elements of an output."""
    table = []
    for o in outputs:
        rows = _over_unit_vectors(o, chunk_size, lambda seed: _gradients([o], variables, [seed], linked, True))
        table.append([r.reshape((*o.shape, *v.shape)) for r, v in zip(rows, variables)])
    return table


def _by_columns(outputs, variables, linked, chunk_size=None):
    """The same by one forward pass for all elements of a variable."""
    push = _pushforward(outputs, variables)
    table = [[None] * len(variables) for _ in outputs]
    for j, v in enumerate(variables):
        columns = _over_unit_vectors(v, chunk_size, lambda seed: push([seed if k == j else clnn.zeros_like(w) for k, w in enumerate(variables)], linked))
        for i, o in enumerate(outputs):
            table[i][j] = columns[i].movedim(0, -1).reshape((*o.shape, *v.shape))
    return table


def _jacobian(func, argnums, has_aux, name, fill, chunk_size=None):
    """What they all share; ``fill(outputs, variables, linked, chunk_size)`` gives the table [output][variable]."""
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"{name}: `chunk_size` should be greater than 0.")

    @_differentiating
    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        outer_grad = state.grad
        picked, put = _pick(args, argnums, name)
        with clnn.enable_grad():
            fresh, variables = _variables(picked, name)
            _all_real(variables, name, "inputs")
            result, aux = _with_aux(func(*put(fresh), **kwargs), has_aux, name)
            outputs, spec = _outputs(result, name)
            _all_real(outputs, name, "outputs")
            linked = outer_grad and _outer(outputs, variables)
            table = fill(outputs, variables, linked, chunk_size)
        inner = tree_flatten(picked)[1]
        jacobian = tree_unflatten([tree_unflatten(row, inner) for row in table], spec)
        jacobian = _plain(jacobian, linked)
        return (jacobian, _plain(aux, linked)) if has_aux else jacobian
    return wrapper


def jacrev(func, argnums=0, *, has_aux=False, chunk_size=None):
    """A function that gives the Jacobian of ``func`` by one backward pass with as many gradients as the output has elements: right for few outputs.

    Args:
        func: returns tensors (in any structure), or with ``has_aux`` a pair of them and ``aux``.
        argnums: which argument(s) to differentiate; a tuple gives a tuple per output.
        chunk_size: at most so many rows at once, which takes less memory; None for all.

    Shape:
        each Jacobian has the shape of the output followed by the shape of the argument.

    Example::

        >>> clnn.func.jacrev(lambda x: x ** 2)(clnn.tensor([1., 2.]))
        tensor([[2., 0.],
                [0., 4.]])
    """
    return _jacobian(func, argnums, has_aux, "jacrev", _by_rows, chunk_size)


def jacfwd(func, argnums=0, has_aux=False, *, randomness="error", chunk_size=None):
    """A function that gives the Jacobian of ``func`` by one forward pass with as many tangents as the input has elements: right for few inputs.

    Arguments, result and example as for :func:`jacrev`.

    Example:
        >>> clnn.func.jacfwd(lambda x: x ** 2)(clnn.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    return _jacobian(func, argnums, has_aux, "jacfwd", _by_columns, chunk_size)


def hessian(func, argnums=0):
    """A function that gives the matrix of second derivatives of a function: the Jacobian of its gradient, or of its Jacobian.

    The outer Jacobian goes backward from the elements of the inner one, or forward from those of the argument, whichever are fewer.

    Example::

        >>> clnn.func.hessian(lambda x: (x ** 3).sum())(clnn.tensor([1., 2.]))
        tensor([[ 6.,  0.],
                [ 0., 12.]])
    """
    def fill(outputs, variables, linked, chunk_size):
        fewer = sum(v.numel() for v in variables) < sum(o.numel() for o in outputs)
        return (_by_columns if fewer else _by_rows)(outputs, variables, linked, chunk_size)
    return _jacobian(jacrev(func, argnums), argnums, False, "jacfwd", fill)


# -- modules --------------------------------------------------------------------------------------------------------------------

def functionalize(func, *, remove="mutations"):
    """``func`` itself: clnn's operators compute out of place underneath.

    Example:
        >>> clnn.func.functionalize(lambda x: x.add_(1))(clnn.ones(2))
        tensor([2., 2.])
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(f"functionalize(f, remove='mutations'): received invalid argument for remove={remove}. Valid options are 'mutations' and "
                           "'mutations_and_views'.")
    return func


def debug_unwrap(tensor, *, recurse=True):
    """For debuggers: the tensor with the samples of all, or with ``recurse=False`` of the innermost map, along the first dimension.

    Example:
        >>> clnn.func.debug_unwrap(clnn.ones(2))
        tensor([1., 1.])
    """
    while hasattr(tensor, "level"):
        tensor = tensor.part
        if not recurse:
            break
    return tensor


def replace_all_batch_norm_modules_(root):
    """Switch off the running statistics of all batch norms below ``root``, in place, as transformations need; returns ``root``.

    Example:
        >>> net = clnn.func.replace_all_batch_norm_modules_(nn.Sequential(nn.BatchNorm1d(2)))
        >>> net[0].running_mean is None
        True
    """
    from clnn.nn.modules.batchnorm import _BatchNorm
    for module in root.modules():
        if isinstance(module, _BatchNorm):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root


def stack_module_state(models):
    """The parameters and buffers of equal modules, each name stacked along a new first dimension: (params, buffers).

    Example::

        >>> params, buffers = clnn.func.stack_module_state([clnn.nn.Linear(3, 2) for _ in range(4)])
        >>> params["weight"].shape
        clnn.Size([4, 2, 3])
    """
    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({model.training for model in models}) != 1:
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if len({type(model) for model in models}) != 1:
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")

    def stacked(members):
        columns = [dict(members(model)) for model in models]
        result = {}
        for name, first in columns[0].items():
            result[name] = clnn.stack([column[name].detach() for column in columns]).requires_grad_(first.requires_grad)
        return result

    return stacked(lambda m: m.named_parameters()), stacked(lambda m: m.named_buffers())
