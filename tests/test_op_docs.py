"""Every public operator says what it computes and shows it; every example runs and prints what it says."""
import doctest
import importlib
import inspect
import pkgutil
import re

import pytest

import clnn
import clnn.fft
import clnn.linalg
import clnn.nn
import clnn.ops.docs
import clnn.special
from clnn._tensor.declare import elementwise
from clnn._tensor.explain import TEXTS, explain
from clnn.graph.op import REGISTRY

PUBLIC = {name: op for name, op in REGISTRY.items() if name == op.name and (not name.startswith("_") or ">>>" in op.doc) and op.fn.__module__.startswith("clnn.")}
NUMBER = re.compile(r"-?\d+\.\d*(?:e[-+]?\d+)?|-?\d+")
TABLES = [info.name for info in pkgutil.iter_modules(clnn.ops.docs.__path__)]


class Numbers(doctest.OutputChecker):
    """The same text, with numbers that agree up to what devices compute differently."""

    def check_output(self, want, got, optionflags):
        if NUMBER.sub("#", want).split() != NUMBER.sub("#", got).split():
            want, got = (NUMBER.sub(" # ", text).replace(" ", "") for text in (want, got)) if self.close(want, got) else (want, got)
            return want == got
        return self.close(want, got)

    @staticmethod
    def close(want, got):
        return [float(x) for x in NUMBER.findall(got)] == pytest.approx([float(x) for x in NUMBER.findall(want)], rel=1e-3, abs=1e-4)


def table_of(op):
    """The table that documents ``op``; the rest have their examples in the body."""
    return next((t for t in TABLES if f'explain("{op.name}",' in sources()[t]), "bodies")


def sources(known={}):
    if not known:
        known.update({t: inspect.getsource(importlib.import_module(f"clnn.ops.docs.{t}")) for t in TABLES})
    return known


@pytest.mark.filterwarnings("ignore")
@pytest.mark.share(2)
@pytest.mark.parametrize("table", [*TABLES, "bodies"])
def test_examples(table):
    parser, report = doctest.DocTestParser(), []
    runner = doctest.DocTestRunner(checker=Numbers(), optionflags=doctest.NORMALIZE_WHITESPACE)
    tried = 0
    for name, op in PUBLIC.items():
        if table_of(op) == table:
            runner.run(parser.get_doctest(op.fn.__doc__, {"clnn": clnn}, name, None, None), out=report.append)
            tried += 1
    assert tried and not runner.failures, "".join(report)


def test_every_operator_is_explained():
    silent = [name for name, op in PUBLIC.items() if "\n\nExample:\n    >>> " not in op.fn.__doc__]
    assert not silent, f"without an example: {silent}"
    summaries = {name: op.fn.__doc__.split("\n\n")[0] for name, op in PUBLIC.items()}
    terse = [name for name, text in summaries.items() if len(text) < 9 or text[-1] not in ".:"]
    assert not terse, f"without a summary: {terse}"
    assert not TEXTS, f"explained, but not declared: {list(TEXTS)}"


@pytest.mark.parametrize("module", [clnn, clnn.nn.functional, clnn.linalg, clnn.special, clnn.fft, clnn.Tensor], ids=lambda m: m.__name__)
def test_other_names_have_the_same_documentation(module):
    silent = [name for name, thing in vars(module).items() if not name.startswith("_") and inspect.isfunction(thing) and not inspect.getdoc(thing)]
    assert not silent, f"without documentation in {module.__name__}: {silent}"
    assert all(getattr(module, n).__doc__ is REGISTRY[n].fn.__doc__ for n in ("softmax", "exp", "log_softmax") if getattr(module, n, None) is REGISTRY[n].fn)


def test_an_entry_completes_its_documentation():
    try:
        with pytest.raises(ValueError, match="already"):
            for _ in range(2):
                explain("third_power", "``x * x * x``.", "clnn.tensor([2.]).third_power()", "tensor([8.])")
        cube = elementwise("third_power", "input", "input * input * input", aliases=("third",), doc="The third power.", dtypes=clnn.core.dtype.FLOATS)
        plain = elementwise("fourth_power", "input", "input * input", inplace=False, example=("1 + 1", "2"), doc="Text.\n\n    Args:\n        input: any.\n    ")
        assert cube.__doc__ == clnn.Tensor.third.__doc__ == (
            "The third power.\n\n``x * x * x``.\n\nOther names: third. In place: ``Tensor.third_power_``. Takes floats. No gradient.\n\n"
            "Example:\n    >>> clnn.tensor([2.]).third_power()\n    tensor([8.])")
        assert plain.__doc__ == "Text.\n\nArgs:\n    input: any.\n\nNo gradient.\n\nExample:\n    >>> 1 + 1\n    2"
    finally:
        TEXTS.pop("third_power", None)
        for name in ("third_power", "third", "fourth_power", "third_power_", "third_"):
            REGISTRY.pop(name, None)
            if hasattr(clnn.Tensor, name):
                delattr(clnn.Tensor, name)
