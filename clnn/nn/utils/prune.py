"""Pruning: parts of a parameter are held at zero by a mask.

A pruned ``weight`` is stored as the parameter ``weight_orig`` and the buffer ``weight_mask``; a forward pre-hook sets
``weight = weight_orig * weight_mask`` before each call.
"""
import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable

import clnn

__all__ = ["BasePruningMethod", "PruningContainer", "Identity", "RandomUnstructured", "L1Unstructured", "RandomStructured",
           "LnStructured", "CustomFromMask", "identity", "random_unstructured", "l1_unstructured", "random_structured", "ln_structured",
           "global_unstructured", "custom_from_mask", "remove", "is_pruned"]


class BasePruningMethod(ABC):
    """Base of all methods. A subclass sets ``PRUNING_TYPE`` (``"unstructured"``, ``"structured"`` or ``"global"``) and ``compute_mask``."""

    _tensor_name = ""
    PRUNING_TYPE = "unstructured"

    def __call__(self, module, inputs):
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t, default_mask):
        """The mask for the importance scores *t*, on top of *default_mask* (both have the shape of the parameter)."""

    def apply_mask(self, module):
        """The parameter with its mask applied."""
        if not self._tensor_name:
            raise AssertionError(f"Module {module} has to be pruned")
        mask = getattr(module, self._tensor_name + "_mask")
        orig = getattr(module, self._tensor_name + "_orig")
        return mask.to(dtype=orig.dtype) * orig

    @classmethod
    def apply(cls, module, name, *args, importance_scores=None, **kwargs):
        """Prune ``module.<name>`` by this method, on top of what is pruned already. Returns the method object.

        Args:
            args, kwargs: arguments of the method's constructor.
            importance_scores: tensor shaped like the parameter that decides instead of the values.
        """
        old = _find_hook(module, name)
        if old is not None:
            del module._forward_pre_hooks[old[0]]
        method = cls(*args, **kwargs)
        method._tensor_name = name
        original = getattr(module, name)
        scores = original if importance_scores is None else importance_scores
        if scores.shape != original.shape:
            raise AssertionError(f"importance_scores should have the same shape as parameter {name} of {module}")
        if old is None:
            default_mask = clnn.ones_like(original)
            param = module._parameters[name]
            del module._parameters[name]
            module.register_parameter(name + "_orig", param)
        else:
            container = old[1] if isinstance(old[1], PruningContainer) else PruningContainer(old[1])
            container.add_pruning_method(method)
            method = container
            default_mask = getattr(module, name + "_mask").detach().clone()
        try:
            with clnn.no_grad():
                mask = method.compute_mask(scores.detach(), default_mask=default_mask)
        except Exception:
            if old is None:  # leave the module as it was
                module.register_parameter(name, module._parameters.pop(name + "_orig"))
            raise
        module.register_buffer(name + "_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(self, t, default_mask=None, importance_scores=None):
        """The tensor *t* pruned, without touching any module."""
        scores = t if importance_scores is None else importance_scores
        if scores.shape != t.shape:
            raise AssertionError("importance_scores should have the same shape as tensor t")
        return t * self.compute_mask(scores, default_mask=clnn.ones_like(t) if default_mask is None else default_mask)

    def remove(self, module):
        """Make the pruned value permanent: an ordinary parameter again."""
        if not self._tensor_name:
            raise AssertionError(f"Module {module} has to be pruned before pruning can be removed")
        name = self._tensor_name
        weight = self.apply_mask(module)
        if hasattr(module, name):
            delattr(module, name)
        orig = module._parameters.pop(name + "_orig")
        orig.data = weight.data
        del module._buffers[name + "_mask"]
        setattr(module, name, orig)


def _find_hook(module, name):
    """(key, method) of the pruning hook of a tensor, or None."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            return key, hook
    return None


class PruningContainer(BasePruningMethod):
    """Several methods on one tensor; each decides among what the ones before left."""

    def __init__(self, *args):
        self._pruning_methods = ()
        if not isinstance(args, Iterable) or len(args) == 1 and isinstance(args[0], BasePruningMethod):
            self._tensor_name = args[0]._tensor_name
            self.add_pruning_method(args[0])
        else:
            for method in args:
                self._tensor_name = self._tensor_name or method._tensor_name
                self.add_pruning_method(method)

    def add_pruning_method(self, method):
        """Add a method for the same tensor."""
        if not isinstance(method, BasePruningMethod) and method is not None:
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method is not None and self._tensor_name != method._tensor_name:
            raise ValueError(f"Can only add pruning methods acting on the parameter named '{self._tensor_name}' to PruningContainer {self}. "
                             f"Found '{method._tensor_name}'")
        self._pruning_methods += (method,)

    def __len__(self):
        return len(self._pruning_methods)

    def __iter__(self):
        return iter(self._pruning_methods)

    def __getitem__(self, idx):
        return self._pruning_methods[idx]

    def compute_mask(self, t, default_mask):
        """The mask of the last method among the entries (or channels) that *default_mask* keeps."""
        method = self._pruning_methods[-1]
        mask = default_mask.to(dtype=t.dtype)
        if method.PRUNING_TYPE == "unstructured":
            return _masked_positions(method, t, mask)
        if method.PRUNING_TYPE == "structured":
            dim = method.dim if method.dim >= 0 else method.dim + t.dim()
            others = [d for d in range(t.dim()) if d != dim]
            kept = (mask.sum(dim=others) != 0).nonzero().flatten()
            partial = method.compute_mask(t.index_select(dim, kept), default_mask=mask.index_select(dim, kept))
            return mask.index_copy(dim, kept, partial)
        if method.PRUNING_TYPE == "global":
            return method.compute_mask(t, default_mask=mask)
        raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")


def _masked_positions(method, t, mask):
    flat = mask.reshape(-1)
    kept = (flat == 1).nonzero().flatten()
    partial = method.compute_mask(t.reshape(-1).index_select(0, kept), default_mask=flat.index_select(0, kept))
    return flat.index_copy(0, kept, partial).reshape(mask.shape)


def _zero_at(mask, positions):
    """A copy of *mask* with zeros at flat positions."""
    return mask.clone().reshape(-1).index_fill(0, positions, 0).reshape(mask.shape)


class Identity(BasePruningMethod):
    """Prunes nothing but makes the mask.

    Example:
        >>> layer = nn.Linear(2, 1, bias=False)
        >>> _ = clnn.nn.utils.prune.Identity.apply(layer, "weight")
        >>> layer.weight_mask
        tensor([[1., 1.]])
    """

    def compute_mask(self, t, default_mask):
        return default_mask

    @classmethod
    def apply(cls, module, name):
        return super().apply(module, name)


class _Entries(BasePruningMethod):
    """Single entries; a subclass gives the flat positions of those that are pruned."""

    def __init__(self, amount):
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def _positions(self, t, n):
        raise NotImplementedError

    def compute_mask(self, t, default_mask):
        n = _number_to_prune(self.amount, t.numel())
        return _zero_at(default_mask, self._positions(t, n)) if n else default_mask.clone()


class RandomUnstructured(_Entries):
    """Random entries. *amount*: a share (float) or number (int) of entries.

    Example:
        >>> layer = nn.Linear(2, 2, bias=False)
        >>> _ = clnn.nn.utils.prune.RandomUnstructured.apply(layer, "weight", amount=1)
        >>> int(layer.weight_mask.sum())
        3
    """

    def _positions(self, t, n):
        return clnn.topk(clnn.rand(t.numel(), device=t.device), n).indices

    @classmethod
    def apply(cls, module, name, amount):
        return super().apply(module, name, amount=amount)


class L1Unstructured(_Entries):
    """The entries with the smallest absolute values. *amount*: a share (float) or number (int) of entries.

    Example:
        >>> layer = nn.Linear(2, 2, bias=False)
        >>> _ = clnn.nn.utils.prune.L1Unstructured.apply(layer, "weight", amount=1)
        >>> int(layer.weight_mask.sum())
        3
    """

    def _positions(self, t, n):
        return clnn.topk(t.abs().reshape(-1), n, largest=False).indices

    @classmethod
    def apply(cls, module, name, amount, importance_scores=None):
        return super().apply(module, name, amount=amount, importance_scores=importance_scores)


class _Channels(BasePruningMethod):
    """Whole channels along ``dim``; a subclass gives the scores, of which the smallest are pruned."""

    PRUNING_TYPE = "structured"

    def _scores(self, t):
        raise NotImplementedError

    def compute_mask(self, t, default_mask):
        if t.dim() <= 1:
            raise ValueError("Structured pruning can only be applied to multidimensional tensors. Found tensor of shape "
                             f"{t.shape} with {t.dim()} dims")
        _validate_pruning_dim(t, self.dim)
        size = t.shape[self.dim]
        n = _number_to_prune(self.amount, size)
        if n == 0:
            return default_mask
        keep = clnn.ones(size, dtype=default_mask.dtype, device=t.device)
        keep = keep.index_fill(0, clnn.topk(self._scores(t), n, largest=False).indices, 0)
        shape = [1] * t.dim()
        shape[self.dim] = size
        return default_mask * keep.reshape(shape)


class RandomStructured(_Channels):
    """Random channels along *dim*. *amount*: a share (float) or number (int) of channels.

    Example:
        >>> layer = nn.Linear(2, 2, bias=False)
        >>> _ = clnn.nn.utils.prune.RandomStructured.apply(layer, "weight", amount=1, dim=0)
        >>> int(layer.weight_mask.sum())
        2
    """

    def __init__(self, amount, dim=-1):
        _validate_pruning_amount_init(amount)
        self.amount, self.dim = amount, dim

    def _scores(self, t):
        return clnn.rand(t.shape[self.dim], device=t.device)

    @classmethod
    def apply(cls, module, name, amount, dim=-1):
        return super().apply(module, name, amount=amount, dim=dim)


class LnStructured(_Channels):
    """The channels along *dim* with the smallest n-norms. *amount*: a share (float) or number (int) of channels.

    Example:
        >>> layer = nn.Linear(2, 2, bias=False)
        >>> _ = clnn.nn.utils.prune.LnStructured.apply(layer, "weight", amount=1, n=2, dim=0)
        >>> int(layer.weight_mask.sum())
        2
    """

    def __init__(self, amount, n, dim=-1):
        _validate_pruning_amount_init(amount)
        self.amount, self.n, self.dim = amount, n, dim

    def _scores(self, t):
        return _compute_norm(t, self.n, self.dim)

    @classmethod
    def apply(cls, module, name, amount, n, dim, importance_scores=None):
        return super().apply(module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores)


class CustomFromMask(BasePruningMethod):
    """A mask that is given.

    Example:
        >>> layer = nn.Linear(2, 1, bias=False)
        >>> _ = clnn.nn.utils.prune.CustomFromMask.apply(layer, "weight", clnn.tensor([[1.0, 0.0]]))
        >>> layer.weight_mask
        tensor([[1., 0.]])
    """

    PRUNING_TYPE = "global"

    def __init__(self, mask):
        self.mask = mask

    def compute_mask(self, t, default_mask):
        if default_mask.shape != self.mask.shape:
            raise AssertionError("mask and default_mask must have the same shape")
        return default_mask * self.mask.to(dtype=default_mask.dtype)

    @classmethod
    def apply(cls, module, name, mask):
        return super().apply(module, name, mask=mask)


def identity(module, name):
    """Make the mask and the hook without pruning anything; returns the module, as all functions here.

    Example::

        >>> list(nn.utils.prune.identity(nn.Linear(2, 3), 'bias').state_dict())
        ['weight', 'bias_orig', 'bias_mask']
    """
    Identity.apply(module, name)
    return module


def random_unstructured(module, name, amount):
    """Prune random entries of ``module.<name>``: a share (float) or number (int).

    Example::

        >>> int((nn.utils.prune.random_unstructured(nn.Linear(2, 3), 'weight', 2).weight == 0).sum())
        2
    """
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module, name, amount, importance_scores=None):
    """Prune the entries of ``module.<name>`` with the smallest absolute values: a share (float) or number (int).

    Example::

        >>> m = nn.utils.prune.l1_unstructured(nn.Linear(2, 3), "weight", amount=0.5)
        >>> int((m.weight == 0).sum())
        3
    """
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module, name, amount, dim):
    """Prune random channels of ``module.<name>`` along *dim*: a share (float) or number (int).

    Example::

        >>> int((nn.utils.prune.random_structured(nn.Linear(2, 3), 'weight', 1, dim=0).weight == 0).sum())
        2
    """
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(module, name, amount, n, dim, importance_scores=None):
    """Prune the channels of ``module.<name>`` along *dim* with the smallest n-norms: a share (float) or number (int).

    Example::

        >>> int((nn.utils.prune.ln_structured(nn.Linear(2, 3), 'weight', 1, n=2, dim=0).weight == 0).sum())
        2
    """
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def global_unstructured(parameters, pruning_method, importance_scores=None, **kwargs):
    """Prune several tensors together, as if they were one.

    Args:
        parameters: (module, name) pairs.
        pruning_method: an unstructured method class.
        importance_scores: dictionary from pairs to tensors that decide instead of the values.
        kwargs: arguments of the method, such as ``amount``.

    Example:
        >>> net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
        >>> clnn.nn.utils.prune.global_unstructured([(net[0], "weight"), (net[1], "weight")], clnn.nn.utils.prune.L1Unstructured, amount=3)
        >>> int(net[0].weight_mask.sum() + net[1].weight_mask.sum())
        5
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    parameters = list(parameters)
    importance_scores = {} if importance_scores is None else importance_scores
    if not isinstance(importance_scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    scores = [importance_scores.get((module, name), getattr(module, name)) for module, name in parameters]
    flat = clnn.cat([score.detach().reshape(-1) for score in scores])
    masks = [getattr(module, name + "_mask", clnn.ones_like(getattr(module, name))) for module, name in parameters]
    container = PruningContainer()
    container._tensor_name = "temp"
    method = pruning_method(**kwargs)
    method._tensor_name = "temp"
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(f'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method {pruning_method} of type '
                        f"{method.PRUNING_TYPE}")
    container.add_pruning_method(method)
    final = container.compute_mask(flat, clnn.cat([mask.reshape(-1) for mask in masks]))
    start = 0
    for module, name in parameters:
        param = getattr(module, name)
        custom_from_mask(module, name, mask=final[start:start + param.numel()].view_as(param))
        start += param.numel()


def custom_from_mask(module, name, mask):
    """Prune ``module.<name>`` where *mask* is 0.

    Example::

        >>> int((nn.utils.prune.custom_from_mask(nn.Linear(1, 2), 'bias', clnn.tensor([0, 1])).bias == 0).sum())
        1
    """
    CustomFromMask.apply(module, name, mask)
    return module


def remove(module, name):
    """Make the pruning of ``module.<name>`` permanent and drop mask and hook.

    Example::

        >>> list(nn.utils.prune.remove(nn.utils.prune.identity(nn.Linear(2, 3), 'bias'), 'bias').state_dict())
        ['weight', 'bias']
    """
    found = _find_hook(module, name)
    if found is None:
        raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")
    found[1].remove(module)
    del module._forward_pre_hooks[found[0]]
    return module


def is_pruned(module):
    """Whether a module of the tree has a pruning hook.

    Example::

        >>> nn.utils.prune.is_pruned(nn.utils.prune.identity(nn.Linear(2, 3), 'bias'))
        True
    """
    return any(isinstance(hook, BasePruningMethod) for part in module.modules() for hook in part._forward_pre_hooks.values())


def _validate_pruning_amount_init(amount):
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    if isinstance(amount, numbers.Integral) and amount < 0 or not isinstance(amount, numbers.Integral) and not 0 <= float(amount) <= 1:
        raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")


def _number_to_prune(amount, size):
    """The number of units an amount means."""
    if isinstance(amount, numbers.Integral):
        if amount > size:
            raise ValueError(f"amount={amount} should be smaller than the number of parameters to prune={size}")
        return int(amount)
    return round(amount * size)


def _validate_pruning_dim(t, dim):
    if dim >= t.dim() or dim < -t.dim():
        raise IndexError(f"Invalid index {dim} for tensor of size {t.shape}")


def _compute_norm(t, n, dim):
    """The n-norm of each channel along *dim*."""
    dims = [d for d in range(t.dim()) if d != dim % t.dim()]
    return clnn.norm(t, p=n, dim=dims)
