"""Passes for graphs of all kinds of operators."""
