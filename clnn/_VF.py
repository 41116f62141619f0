"""Functions of the package under the name by which PyTorch's own Python code calls them: ``_VF.lstm``."""


def __getattr__(name):
    import clnn
    return getattr(clnn, name)
