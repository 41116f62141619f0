"""Constructors from declared fields, for layers that only keep their arguments."""
import inspect

from .module import Module


def declare(cls):
    """Class decorator: build ``__init__`` from the annotated class attributes, in order, those of base classes first.

    ``alpha: float = 1.0`` becomes the argument ``alpha=1.0`` and the attribute ``self.alpha``; an annotation without a value is a
    required argument. ``_keyword_only = True`` lets all be given by name only, and a method ``_post_init`` runs at the end. With
    ``_module_repr_fields`` left alone, the repr shows all fields.
    """
    fields = dict(getattr(cls, "_fields", {}))
    for name in inspect.get_annotations(cls):
        fields[name] = cls.__dict__.get(name, inspect.Parameter.empty)
        if name in cls.__dict__:
            delattr(cls, name)  # else it would hide a buffer of that name
    cls._fields = fields
    kind = inspect.Parameter.KEYWORD_ONLY if getattr(cls, "_keyword_only", False) else inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(name, kind, default=default) for name, default in fields.items()]
    signature = inspect.Signature(parameters)

    def __init__(self, *args, **kwargs):
        Module.__init__(self)
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{cls.__name__}.__init__() {error}") from None
        bound.apply_defaults()
        for name, value in bound.arguments.items():
            setattr(self, name, value)
        if hasattr(cls, "_post_init"):
            self._post_init()

    __init__.__signature__ = inspect.Signature([inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD), *parameters])
    __init__.__qualname__ = f"{cls.__qualname__}.__init__"
    cls.__init__ = __init__
    if "_module_repr_fields" not in cls.__dict__ and not hasattr(cls, "_no_repr"):
        cls._module_repr_fields = " ".join(name + "?" * (name == "inplace") for name in fields)
    return cls
