"""Questions about Triton, whose kernels do not run here."""


def has_triton() -> bool:
    """False."""
    return False


has_triton_package = has_triton
