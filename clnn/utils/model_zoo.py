"""The older name of :func:`clnn.hub.load_state_dict_from_url`, as in ``torch.utils.model_zoo``."""
from ..hub import load_state_dict_from_url as load_url

__all__ = ["load_url"]


def __getattr__(name):
    if name == "tqdm":                      # libraries take it from here
        from ..hub import tqdm
        return tqdm
    raise AttributeError(f"module 'clnn.utils.model_zoo' has no attribute {name!r}")
