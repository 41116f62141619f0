"""Passes by the operators that they are for."""
