"""Building a module without the cost of its initialisation."""
import inspect

__all__ = ["skip_init"]


def skip_init(module_cls, *args, **kwargs):
    """An instance whose parameters and buffers have undefined values, on ``device`` (the default device if not given).

    Example::

        >>> nn.utils.skip_init(nn.Linear, 5, 1).weight.shape
        clnn.Size([1, 5])
    """
    from clnn.nn import init
    from clnn.nn.modules.module import Module

    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    # reset_parameters only calls functions of init: for the time of the construction they do nothing
    names = [name for name in init.__all__ if name.endswith("_")]
    saved = {name: getattr(init, name) for name in names}
    try:
        for name in names:
            setattr(init, name, lambda tensor, *a, **k: tensor)
        return module_cls(*args, **kwargs)
    finally:
        for name, function in saved.items():
            setattr(init, name, function)
