"""``fill_uninitialized_memory``: whether :func:`clnn.empty` and its like hold NaN, or the largest integer, under deterministic algorithms."""

fill_uninitialized_memory = True
