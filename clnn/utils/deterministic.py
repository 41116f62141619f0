"""``fill_uninitialized_memory``: kept for programs that set it; no clnn kernel reads memory that was not written."""

fill_uninitialized_memory = True
