"""Every example in the documentation runs and prints what it says (those of operators: test_op_docs.py); every public name has documentation."""
import doctest
import importlib
import inspect
import math
import pkgutil
import re

import pytest
from test_op_docs import Numbers

import clnn
from clnn import nn
from clnn.graph.op import REGISTRY
from clnn.testing.cases import builds_are_dear

# Where kernels are built one after another, the examples of other modules are left to the other suites.
ALWAYS = ("clnn.nn.", "clnn.func", "clnn.utils.hooks")
MODULES = ["clnn"] + [info.name for info in pkgutil.walk_packages(clnn.__path__, "clnn.")
                      if not info.name.endswith(("__main__", "tensorboard")) and (info.name.startswith(ALWAYS) or not builds_are_dear())]


@pytest.mark.share(2)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    module = importlib.import_module(name)
    names = {"clnn": clnn, "nn": nn, "math": math}
    finder = doctest.DocTestFinder(exclude_empty=True)
    runner = doctest.DocTestRunner(checker=Numbers(), optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    report = []
    for test in finder.find(module, name, globs=names):
        if test.examples and test.name.split(".")[-1] not in REGISTRY:
            runner.run(test, out=report.append)
    assert not runner.failures, "".join(report)


@pytest.mark.parametrize("name", nn.__all__)
def test_public_names_are_documented(name):
    thing = getattr(nn, name)
    assert inspect.getdoc(thing) and inspect.getdoc(thing) != inspect.getdoc(nn.Module) or thing is nn.Module


@pytest.mark.parametrize("name", ("ao.nn.intrinsic", "ao.nn.intrinsic.qat", "ao.nn.intrinsic.quantized", "ao.nn.qat", "ao.nn.quantizable", "ao.nn.quantized",
                                  "ao.nn.quantized.dynamic",
                                  "ao.nn.quantized.functional", "ao.quantization", "ao.quantization.quantize_fx", "distributions", "fft", "func", "linalg", "masked",
                                  "nn", "nn.grad", "nn.init", "nn.utils", "optim.lr_scheduler",
                                  "signal.windows", "sparse"))
def test_public_names_have_an_example(name):
    """But names that stand for others, bases that are not used by themselves, and errors."""
    module = importlib.import_module("clnn." + name)
    found = {n: getattr(module, n) for n in module.__all__ if inspect.isfunction(getattr(module, n)) or inspect.isclass(getattr(module, n))}
    silent = [n for n, thing in found.items() if ">>>" not in (thing.__doc__ or "") and not (isinstance(thing, type) and issubclass(thing, Exception))
              and not re.search(r"[Dd]eprecated name|Old name|another memory format|quantization tools|Use :class:|One step of a recurrent", thing.__doc__ or "")]
    assert not silent, silent
