"""Classes of operators, as programs take them from ``torch._ops`` to tell what they were given."""
from ._custom import OpOverload, OpOverloadPacket

__all__ = ["HigherOrderOperator", "OpOverload", "OpOverloadPacket"]


class HigherOrderOperator:
    """An operator that takes functions: a class that nothing here is an instance of, theirs are plain functions."""
