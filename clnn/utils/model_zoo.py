"""The older name of :func:`clnn.hub.load_state_dict_from_url`, as in ``torch.utils.model_zoo``."""
from ..hub import load_state_dict_from_url as load_url

__all__ = ["load_url"]
