"""Graph modules as packages of Python code: ``GraphModule.to_folder``."""
from __future__ import annotations

import os
from pathlib import Path

import clnn
from clnn import nn
from clnn.core.config import config
from clnn.core.warn import warn

from .graph_module import GraphModule

# Layers whose printed form makes them anew.
_PRINTED = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


def write(module, folder, name):
    """The package: ``__init__.py``, ``module.py``, ``state_dict.pt`` and a file for each child that no text makes."""
    folder, lines, by_file, parts = Path(folder), [], [], ""
    os.makedirs(folder, exist_ok=True)
    clnn.save(module.state_dict(), folder / "state_dict.pt")
    spoken = config.spoken
    for child, m in module.named_children():
        said = ""
        if isinstance(m, _PRINTED):
            text = repr(m)
        elif isinstance(m, GraphModule):                        # a package of its own
            write(m, folder / child, child)
            text, parts = f"{child}()", parts + f"from .{child} import {child}\n"
        else:
            clnn.save(m, folder / f"{child}.pt")
            by_file.append(child)
            shown = " ".join(repr(m).split("\n"))
            text, said = f"{spoken}.load(r'{folder / f'{child}.pt'}', weights_only=False)", f" # {shown}"
        lines.append(f"setattr(self, '{child}', {text}){said}")
    for kind, make in (("_buffers", "self.register_buffer('{0}', {1})"), ("_parameters", "setattr(self, '{0}', {2}.nn.Parameter({1}))")):
        for key, t in getattr(module, kind).items():
            if t is not None:
                empty = f"{spoken}.empty({list(t.shape)}, dtype={str(t.dtype).replace('clnn.', spoken + '.')})"
                lines.append(make.format(key, empty, spoken))
    lines.append(f"self.load_state_dict({spoken}.load(r'{folder / 'state_dict.pt'}'))")
    body = "\n".join("        " + line for line in lines)
    code = "\n".join("    " + line if line.strip() else "" for line in module.code.split("\n"))
    (folder / "module.py").write_text(f"import {spoken}\nfrom math import inf, nan\nfrom {spoken} import device\nfrom {spoken}.nn import *\n{parts}\n\n"
                                      f"class {name}({spoken}.nn.Module):\n    def __init__(self):\n        super().__init__()\n{body}\n{code}\n")
    (folder / "__init__.py").write_text("from .module import *\n")
    if by_file:
        warn("Was not able to save the following children modules as reprs -saved as pickled files instead: "
             f"{by_file}")
