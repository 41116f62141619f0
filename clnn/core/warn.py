"""Warnings that point at the program's line, however many frames of clnn lie between."""
import os
import sys
import warnings

from .symbols import plain_only

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_DRIVER = PACKAGE + "_tensor" + os.sep


always = False               # what has been said is said again (set_warn_always)
_said = set()
count = 0                    # of warnings


def called_by_program():
    """Whether the operator that asks was called by the program itself, not by another part of the package."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_DRIVER):
        frame = frame.f_back
    return frame is not None and not frame.f_code.co_filename.startswith(PACKAGE)


def warn(message, category=UserWarning):
    """``warnings.warn`` at the innermost frame outside the package."""
    global count
    plain_only("a warning")
    count += 1
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def first_time(key):
    """Whether a warning is due that programs get once: ``key`` has not been asked for before."""
    plain_only("a warning")
    due = always or key not in _said
    _said.add(key)
    return due
