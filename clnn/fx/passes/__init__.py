"""Walks over graphs."""
