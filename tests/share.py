"""Which driver looks at which cases. ``.ci/run`` goes through all tests on PoCL and on Intel's runtime, and most of the time goes into building kernels. Of
checks of code that knows no driver each takes a part of the cases: PoCL, which builds one kernel after another, one in ``parts``, Intel's runtime the others.
Any other driver, and a run with CLNN_TESTS=all, takes every case."""
import os


def takes(number: int, parts: int, both: bool = False) -> bool:
    """Whether the driver under test looks at case ``number``. ``both``: Intel's runtime takes PoCL's cases, too."""
    if parts == 1 or os.environ.get("CLNN_TESTS") == "all":
        return True
    from clnn.testing.cases import resolve
    flavour, first = resolve(None).flavour, number % parts == 0
    return first if flavour == "pocl" else both or not first or flavour != "intel-cpu"
