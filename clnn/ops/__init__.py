"""Floor 4: every operator is declared here, one file per family. Importing this package fills ``REGISTRY``."""
from . import arithmetic, selection, functions, creation, views, reductions, matmul, conv  # noqa: F401,I001
from . import activation, softmax  # noqa: F401
from . import extremes, random  # noqa: F401
from . import symbols  # noqa: F401  (last: the operator symbols of Tensor)
