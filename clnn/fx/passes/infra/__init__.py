"""Passes over graphs, one after the other, and graphs in parts."""
