"""``torch.utils.mobile_optimizer``: modules made ready for phones, which PyTorch's own runtime there would run."""
from __future__ import annotations

import enum

from clnn import jit

__all__ = ["LintCode", "MobileOptimizerType", "optimize_for_mobile"]


class MobileOptimizerType(enum.Enum):
    """Steps that :func:`optimize_for_mobile` may be told to leave out."""

    CONV_BN_FUSION, INSERT_FOLD_PREPACK_OPS, REMOVE_DROPOUT, FUSE_ADD_RELU, HOIST_CONV_PACKED_PARAMS, CONV_1D_TO_2D, VULKAN_AUTOMATIC_GPU_TRANSFER = range(7)


class LintCode(enum.Enum):
    """What PyTorch finds fault with in a module for phones."""

    BUNDLED_INPUT, REQUIRES_GRAD, DROPOUT, BATCHNORM = range(1, 5)


def optimize_for_mobile(script_module, optimization_blocklist=None, preserved_methods=None, backend="CPU"):
    """A scripted module in evaluation mode that computes the same.

    Example:
        >>> from clnn.utils.mobile_optimizer import optimize_for_mobile
        >>> optimize_for_mobile(clnn.jit.script(nn.Dropout(0.5)))(clnn.ones(2))
        tensor([1., 1.])
    """
    if not isinstance(script_module, jit.ScriptModule):
        raise TypeError(f"Got {type(script_module)}, but ScriptModule is expected.")
    return script_module.eval()
