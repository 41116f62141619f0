"""Distances and similarities between vectors, the bilinear layer and the time-first convolution."""
