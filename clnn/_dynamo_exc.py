"""The exceptions of ``torch._dynamo.exc`` that programs name: all are kinds of RuntimeError."""
from __future__ import annotations

import enum


class TorchDynamoException(RuntimeError):
    """What a compiler of Python raises."""


def _kind(name, base=TorchDynamoException):
    return type(name, (base,), {"__doc__": f"A kind of {base.__name__} that PyTorch's compiler alone raises.", "__module__": __name__})


InternalTorchDynamoError, ResetRequired, RestartAnalysis, ShortenTraceback, SkipFrame, TorchRuntimeError, UncapturedHigherOrderOpError, Unsupported = map(
    _kind, "InternalTorchDynamoError ResetRequired RestartAnalysis ShortenTraceback SkipFrame TorchRuntimeError UncapturedHigherOrderOpError Unsupported".split())
BackendCompilerFailed = _kind("BackendCompilerFailed", ShortenTraceback)


class InvalidBackend(TorchDynamoException):
    """The name of a backend that does not exist."""

    def __init__(self, name):
        super().__init__(f"Invalid backend: {name!r}, see `torch._dynamo.list_backends()` for available backends.".replace("torch.", "clnn."))


UserErrorType = enum.Enum("UserErrorType", "DYNAMIC_CONTROL_FLOW ANTI_PATTERN STANDARD_LIBRARY CONSTRAINT_VIOLATION DYNAMIC_DIM INVALID_INPUT INVALID_OUTPUT "
                          "UNSUPPORTED_ALIASED_MUTATED_DYNAMIC_INPUTS", module=__name__)


class UserError(TorchDynamoException):
    """A call that :func:`clnn.export.export` does not take: ``error_type`` tells the kind."""

    def __init__(self, error_type, msg, case_name=None):
        if case_name is not None:
            msg += (" " if msg.endswith(".") else "\n") + (f"For more information about this error, see: https://pytorch.org/docs/main/generated/exportdb/index.html#"
                                                           f"{case_name.replace('_', '-')}")
        super().__init__(msg)
        self.error_type, self.msg = error_type, msg
