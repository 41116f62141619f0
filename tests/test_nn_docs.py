"""Every example in the documentation of clnn.nn runs and prints what it says; every public name has documentation."""
import doctest
import importlib
import inspect
import math
import pkgutil

import pytest

import clnn
from clnn import nn

MODULES = [info.name for info in pkgutil.walk_packages(nn.__path__, "clnn.nn.")] + ["clnn.func", "clnn.utils.hooks"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    module = importlib.import_module(name)
    names = {"clnn": clnn, "nn": nn, "math": math}
    finder = doctest.DocTestFinder(exclude_empty=True)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    report = []
    for test in finder.find(module, name, globs=names):
        if test.examples:
            runner.run(test, out=report.append)
    assert not runner.failures, "".join(report)


@pytest.mark.parametrize("name", nn.__all__)
def test_public_names_are_documented(name):
    thing = getattr(nn, name)
    assert inspect.getdoc(thing) and inspect.getdoc(thing) != inspect.getdoc(nn.Module) or thing is nn.Module
