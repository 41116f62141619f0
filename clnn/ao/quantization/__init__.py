"""Eager quantisation as in ``torch.ao.quantization``: observers, settings, and what prepares and converts models.

Example::

    >>> net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    >>> small = clnn.ao.quantization.quantize_dynamic(net, {nn.Linear}, dtype=clnn.qint8)
    >>> small[0].weight().dtype, small(clnn.randn(3, 4)).shape
    (clnn.qint8, clnn.Size([3, 2]))
"""
from __future__ import annotations

from . import fake_quantize, fuse_modules as _fuse, fuser_method_mappings, observer, qconfig, qconfig_mapping, quantization_mappings, quantize as _quantize  # noqa: F401
from . import stubs, utils  # noqa: F401
from .fake_quantize import *  # noqa: F401,F403
from .fuse_modules import fuse_modules, fuse_modules_qat  # noqa: F401
from .fuser_method_mappings import *  # noqa: F401,F403
from .histogram import HistogramObserver  # noqa: F401
from .observer import *  # noqa: F401,F403
from .observer import _PartialWrapper
from .qconfig import *  # noqa: F401,F403
from .qconfig_mapping import *  # noqa: F401,F403
from .quant_type import QuantType  # noqa: F401
from .quantization_mappings import *  # noqa: F401,F403
from .quantize import *  # noqa: F401,F403
from .quantize import quantize  # noqa: F401
from .stubs import DeQuantStub, QuantStub, QuantWrapper  # noqa: F401
from .utils import MatchAllNode, Pattern, get_combined_dict  # noqa: F401

ObserverOrFakeQuantize = observer.ObserverBase | fake_quantize.FakeQuantizeBase
for _part in (observer, fake_quantize):                         # ``default_observer`` and the others of its kind
    globals().update({_n: _v for _n, _v in vars(_part).items() if isinstance(_v, _PartialWrapper) or _n.startswith("default_")})


def default_eval_fn(model, calib_data):
    """Run ``model`` on the inputs of ``calib_data``, pairs of an input and a target.

    Example::

        >>> clnn.ao.quantization.default_eval_fn(nn.ReLU(), [(clnn.ones(1), 0)])
    """
    for data, _ in calib_data:
        model(data)


__all__ = [_n for _n in dict(globals()) if not _n.startswith("_") and _n != "annotations"]
