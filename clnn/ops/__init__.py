"""Floor 4: every operator is declared here, one file per family. Importing this package fills ``REGISTRY``."""
from . import docs  # noqa: F401,I001  (first: declarations take their texts from it)
from . import arithmetic, selection, functions, creation, views, moves, reductions, matmul, conv, assign  # noqa: F401,I001
from . import activation, softmax, loss, criteria, ctc, distance, pooling, normalization, attention  # noqa: F401
from . import complexes  # noqa: F401
from . import extremes, linalg, norms, matrix_norms, products, random, dropout, scans  # noqa: F401
from . import indexing, scattering, joining, splitting, rearrange, padding, triangular, searching, histograms, sorting, embedding  # noqa: F401,I001
from . import recurrent, segments  # noqa: F401
from . import extras, resample, grid, fold, layers, multihead, gamma, bessel, polynomials, factorisations, symmetric, statistics  # noqa: F401
from . import fourier, spectral, layouts, fake_quantize  # noqa: F401
from . import symbols  # noqa: F401  (last: the operator symbols of Tensor)
from . import methods  # noqa: F401,I001  (what is left to document)

loaded_libraries: set = set()


def load_library(path):
    """Refused: a library of operators in C++ is linked with PyTorch's. Declare the operators with the module ``library`` instead.

    Raises:
        OSError: always, as PyTorch does for a library that it cannot load.
    """
    raise OSError(f"Could not load this library: {path}: operators compiled for PyTorch do not run on clnn; declare them with clnn's module library")


def __getattr__(name):
    """``clnn.ops.<namespace>``: operators of a program's own (module ``library``), and clnn's under ``aten``."""
    if name.startswith("_"):
        raise AttributeError(name)
    from .._custom import namespace
    return namespace(name)
