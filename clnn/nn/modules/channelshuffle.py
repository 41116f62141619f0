"""The home of ChannelShuffle under its usual name."""
from .pixelshuffle import ChannelShuffle

__all__ = ["ChannelShuffle"]
