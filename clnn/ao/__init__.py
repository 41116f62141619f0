"""PyTorch's package around quantisation. clnn has no quantised dtypes; what stands in float models is here."""
from . import quantization

__all__ = ["quantization"]
