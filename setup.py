"""The one part of the package that is compiled: where that fails, everything works without it (see clnn/core/native.py)."""
import os
import sys
import zlib
from glob import glob
from pathlib import Path

from setuptools import Extension, setup

FOLDER = "clnn/core/_native/"
SOURCES = zlib.crc32(b"".join([Path(p).read_bytes() for p in sorted(glob(FOLDER + "*.[ch]"))]))      # an older build is not used with newer sources
# what the environment asks for takes the place of Python's own options in newer setuptools, that to optimise among them
OPTIONS = [] if sys.platform == "win32" or "-O" in os.environ.get("CFLAGS", "") else ["-O3", "-fwrapv"]

setup(ext_modules=[Extension("clnn.core._native", sorted(glob(FOLDER + "*.c")), depends=glob(FOLDER + "*.h"), define_macros=[("SOURCES", f"{SOURCES}u")],
                             extra_compile_args=OPTIONS, optional=True)])
