"""Floor 0: dtypes, shapes, errors and configuration. Needs only NumPy."""
