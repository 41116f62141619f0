"""Tools around models: data loading, hooks."""
