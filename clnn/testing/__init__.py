"""Tools for tests: ``assert_close`` and ``make_tensor`` for users, and the checks that are derived from the operator table.

``cases`` turns the entries of ``REGISTRY`` into sample calls, ``checks`` proves one property of an operator each; ``tests/test_ops.py`` runs
every check on every entry. A new operator gets all of them by being declared.
"""
from __future__ import annotations

from .compare import assert_allclose, assert_close
from .create import make_tensor
from .file_check import FileCheck

__all__ = ["FileCheck", "assert_allclose", "assert_close", "make_tensor"]
