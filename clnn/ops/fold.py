"""Sliding blocks as columns and back, and the pixel and channel shuffles."""
