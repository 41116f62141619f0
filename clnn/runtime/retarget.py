"""Instructions of one processor in programs for its family.

NVIDIA's OpenCL compiles for a family (``sm_90``), whose instructions all later processors have too; those that belong to one processor alone (``sm_90a``) it
refuses, and no option changes that. But what it gives as a program's binary is PTX, a text, and it builds whatever PTX it is given. So a kernel writes such
instructions as inline assembly that is a comment, ``//sm_90a:wgmma...``, with operands as usual; after the build the comments are read as what they say,
for the processor that they name.
"""
from __future__ import annotations

import re

_SAID = re.compile(r"//(sm_\w+):")
_TARGET = re.compile(r"(?m)^(\s*\.target\s+)sm_\w+")


def processor(source: str) -> str:
    """The processor whose own instructions a kernel's source spells as comments, or ""."""
    found = _SAID.search(source)
    return found.group(1) if found else ""


def retargeted(binary: bytes, name: str) -> bytes:
    """A program's PTX with the instructions for the processor ``name`` in place of the comments."""
    text = binary.decode()
    return _TARGET.sub(rf"\g<1>{name}", text.replace(f"//{name}:", ""), count=1).encode()
