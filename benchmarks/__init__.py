"""Benchmarks: ``python -m benchmarks`` prints one table. See ``__main__``."""
