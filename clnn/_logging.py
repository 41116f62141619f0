"""Switches of PyTorch's compiler logs: accepted. :mod:`clnn.profiler` shows what runs here."""
from __future__ import annotations

import logging


def set_logs(*, all=None, modules=None, **kinds):                   # noqa: A002
    """Accepted, with any kinds of output."""


def get_loggers():
    """Loggers of the package that exist."""
    return [logging.getLogger(name) for name in logging.root.manager.loggerDict if name.partition(".")[0] == __package__]


def getArtifactLogger(module_qname, artifact_name):
    """The logger ``module_qname.__artifact_name``, as the program's own."""
    return logging.getLogger(f"{module_qname}.__{artifact_name}")
