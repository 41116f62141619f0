"""Spectral normalisation by a forward pre-hook (the older form; see utils.parametrizations.spectral_norm)."""
import clnn
from clnn.nn import functional as F
from clnn.nn.parameter import Parameter, is_lazy

__all__ = ["SpectralNorm", "SpectralNormLoadStateDictPreHook", "SpectralNormStateDictHook", "spectral_norm", "remove_spectral_norm"]


def output_dim(module):
    """The dimension of a layer's weight that belongs to its outputs."""
    from clnn.nn.modules.conv import _ConvTransposeNd

    return 1 if isinstance(module, _ConvTransposeNd) else 0


class SpectralNorm:
    """The hook: sets ``weight = weight_orig / sigma`` before each call; sigma, the largest singular value, comes from the power method."""

    _version = 1

    def __init__(self, name="weight", n_power_iterations=1, dim=0, eps=1e-12):
        if n_power_iterations <= 0:
            raise ValueError(f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}")
        self.name, self.dim, self.n_power_iterations, self.eps = name, dim, n_power_iterations, eps

    def reshape_weight_to_matrix(self, weight):
        """The weight as a matrix whose rows belong to dimension ``dim``."""
        if self.dim != 0:
            weight = weight.permute(self.dim, *[d for d in range(weight.dim()) if d != self.dim])
        return weight.reshape(weight.size(0), -1)

    def compute_weight(self, module, do_power_iteration):
        """The normalised weight; in training u and v are first improved, in place."""
        weight, u, v = (getattr(module, self.name + part) for part in ("_orig", "_u", "_v"))
        matrix = self.reshape_weight_to_matrix(weight)
        if do_power_iteration:
            with clnn.no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(F.normalize(clnn.mv(matrix.t(), u), dim=0, eps=self.eps))
                    u.copy_(F.normalize(clnn.mv(matrix, v), dim=0, eps=self.eps))
                u, v = u.clone(), v.clone()  # backward must not see later improvements
        return weight / (u * clnn.mv(matrix, v)).sum()

    def remove(self, module):
        """Make the present weight a parameter again."""
        with clnn.no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        for part in ("", "_u", "_v", "_orig"):
            delattr(module, self.name + part)
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module, inputs):
        setattr(module, self.name, self.compute_weight(module, do_power_iteration=module.training))

    @staticmethod
    def apply(module, name, n_power_iterations, dim, eps):
        """Replace the parameter by ``name_orig``, add the buffers ``name_u``, ``name_v`` and register the hooks."""
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, SpectralNorm) and hook.name == name:
                raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
        hook = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters[name]
        if weight is None:
            raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
        if is_lazy(weight):
            raise ValueError("The module passed to `SpectralNorm` can't have uninitialized parameters. Make sure to run the dummy "
                             "forward before applying spectral normalization")
        with clnn.no_grad():
            rows, cols = hook.reshape_weight_to_matrix(weight).shape
            u, v = (F.normalize(weight.new_empty(n).normal_(0, 1), dim=0, eps=eps) for n in (rows, cols))
        delattr(module, name)
        module.register_parameter(name + "_orig", weight)
        setattr(module, name, weight.detach())  # an ordinary attribute: the hook replaces it by a computed tensor
        module.register_buffer(name + "_u", u)
        module.register_buffer(name + "_v", v)
        module.register_forward_pre_hook(hook)
        module._register_state_dict_hook(SpectralNormStateDictHook(hook))
        module._register_load_state_dict_pre_hook(SpectralNormLoadStateDictPreHook(hook))
        return hook


class SpectralNormLoadStateDictPreHook:
    """Accepts state dictionaries of the first version, which saved the weight and u only."""

    def __init__(self, fn):
        self.fn = fn

    def __call__(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        version = local_metadata.get("spectral_norm", {}).get(self.fn.name + ".version", None)
        key = prefix + self.fn.name
        if version is not None and version >= 1:
            return
        if version is None and all(key + part in state_dict for part in ("_orig", "_u", "_v")) and key not in state_dict:
            return
        found = {part: key + part in state_dict for part in ("_orig", "", "_u")}
        if strict:
            missing_keys.extend(key + part for part, there in found.items() if not there)
        if not all(found.values()):
            return
        with clnn.no_grad():
            original, weight, u = (state_dict.pop(key + part) if part == "" else state_dict[key + part] for part in ("_orig", "", "_u"))
            matrix = self.fn.reshape_weight_to_matrix(original)
            sigma = (original / weight).mean()
            # the v for which u^T W v is the sigma that was saved
            v = clnn.linalg.pinv(matrix) @ u * sigma
            state_dict[key + "_v"] = v


class SpectralNormStateDictHook:
    """Writes the version into the metadata."""

    def __init__(self, fn):
        self.fn = fn

    def __call__(self, module, state_dict, prefix, local_metadata):
        versions = local_metadata.setdefault("spectral_norm", {})
        key = self.fn.name + ".version"
        if key in versions:
            raise RuntimeError(f"Unexpected key in metadata['spectral_norm']: {key}")
        versions[key] = self.fn._version


def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None):
    """Divide a parameter by its largest singular value, estimated by the power method in each training call.

    Args:
        module: the layer, which is returned.
        name: its parameter. Default: ``"weight"``.
        n_power_iterations: improvements per call. Default: 1.
        eps: smallest norm to divide by. Default: 1e-12.
        dim: dimension of the outputs; 1 for transposed convolutions, else 0.

    Source: Miyato et al., 2018 (arXiv:1802.05957).

    Example::

        >>> nn.utils.spectral_norm(nn.Linear(20, 40)).weight_u.shape
        clnn.Size([40])
    """
    SpectralNorm.apply(module, name, n_power_iterations, output_dim(module) if dim is None else dim, eps)
    return module


def remove_spectral_norm(module, name="weight"):
    """Undo :func:`spectral_norm`.

    Example:
        >>> layer = clnn.nn.utils.spectral_norm(nn.Linear(2, 2))
        >>> sorted(name for name, _ in clnn.nn.utils.remove_spectral_norm(layer).named_parameters())
        ['bias', 'weight']
    """
    found = [(key, hook) for key, hook in module._forward_pre_hooks.items() if isinstance(hook, SpectralNorm) and hook.name == name]
    if not found:
        raise ValueError(f"spectral_norm of '{name}' not found in {module}")
    key, hook = found[0]
    hook.remove(module)
    del module._forward_pre_hooks[key]
    for table, kind in ((module._state_dict_hooks, SpectralNormStateDictHook),
                        (module._load_state_dict_pre_hooks, SpectralNormLoadStateDictPreHook)):
        for key, other in list(table.items()):
            if isinstance(other, kind) and other.fn.name == name:
                del table[key]
                break
    return module
