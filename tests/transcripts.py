"""What a program prints under PyTorch and under clnn, compared with the numbers masked."""
import contextlib
import io
import re

import pytest

import clnn


def masked(text):
    """A text with every number written as #, and the blanks that align numbers left out."""
    return re.sub(r"\s+#", " #", re.sub(r"-?\d+\.\d*(e[-+]\d+)?", "#", text)).replace("[ #", "[#")


def in_torch(program):
    """What ``program``, a text about ``torch``, prints under PyTorch, with its numbers masked; and the same under clnn."""
    real = pytest.importorskip("torch")
    shown = []
    for lib in (real, clnn):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(program, {"torch": lib, "nn": lib.nn, "F": lib.nn.functional})
        shown.append(masked(out.getvalue()).replace("torch", "clnn"))
    assert shown[0] == shown[1]
    return shown[1]
