"""Summaries, formulas and examples of the operators by family, for entries without room for them; see ``clnn._tensor.explain``."""
from . import activation, algebra, arithmetic, functions, indexing, layers, losses, products, reductions, shapes, special  # noqa: F401
