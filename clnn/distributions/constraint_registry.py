"""Transforms from unconstrained numbers onto a constraint: ``biject_to`` (one to one) and ``transform_to`` (easy to optimise over)."""
from . import constraints, transforms


class ConstraintRegistry:
    """Links constraints to functions that make a transform onto them.

    Example:
        >>> t = clnn.distributions.transform_to(clnn.distributions.constraints.positive)
        >>> bool(t(clnn.tensor(-3.)) > 0)
        True
    """

    def __init__(self):
        self._registry = {}

    def register(self, constraint, factory=None):
        """Use ``factory(constraint) -> Transform`` for a constraint (object or class); a decorator when no factory is given."""
        if factory is None:
            return lambda f: self.register(constraint, f)
        kind = type(constraint) if isinstance(constraint, constraints.Constraint) else constraint
        if not isinstance(kind, type) or not issubclass(kind, constraints.Constraint):
            raise TypeError(f"Expected constraint to be either a Constraint subclass or instance, but got {constraint}")
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint):
        try:
            factory = self._registry[type(constraint)]
        except KeyError:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints") from None
        return factory(constraint)


biject_to, transform_to = ConstraintRegistry(), ConstraintRegistry()


def _both(*kinds):
    def decorate(factory):
        for kind in kinds:
            biject_to.register(kind, factory)
            transform_to.register(kind, factory)
        return factory
    return decorate


@_both(constraints.real)
def _real(constraint):
    return transforms.identity_transform


def _is(bound, number):
    """Whether a bound is that number; a tensor of bounds is none."""
    return isinstance(bound, (int, float)) and bound == number


@_both(constraints.positive, constraints.nonnegative)
def _exp(constraint):
    return transforms.ExpTransform()


@_both(constraints.greater_than, constraints.greater_than_eq)
def _above(constraint):
    return transforms.ComposeTransform([transforms.ExpTransform(), transforms.AffineTransform(constraint.lower_bound, 1)])


@_both(constraints.less_than)
def _below(constraint):
    return transforms.ComposeTransform([transforms.ExpTransform(), transforms.AffineTransform(constraint.upper_bound, -1)])


@_both(constraints.interval, constraints.half_open_interval)
def _between(constraint):
    if _is(constraint.lower_bound, 0) and _is(constraint.upper_bound, 1):
        return transforms.SigmoidTransform()
    low = constraint.lower_bound
    return transforms.ComposeTransform([transforms.SigmoidTransform(), transforms.AffineTransform(low, constraint.upper_bound - low)])


biject_to.register(constraints.simplex, lambda c: transforms.StickBreakingTransform())
transform_to.register(constraints.simplex, lambda c: transforms.SoftmaxTransform())


@transform_to.register(constraints.lower_cholesky)
def _cholesky(constraint):
    return transforms.LowerCholeskyTransform()


@transform_to.register(constraints.positive_definite)
@transform_to.register(constraints.positive_semidefinite)
def _definite(constraint):
    return transforms.PositiveDefiniteTransform()


@_both(constraints.corr_cholesky)
def _correlation(constraint):
    return transforms.CorrCholeskyTransform()


def _register_joined(registry):
    @registry.register(constraints.independent)
    def _independent(constraint):
        return transforms.IndependentTransform(registry(constraint.base_constraint), constraint.reinterpreted_batch_ndims)

    @registry.register(constraints.cat)
    def _cat(constraint):
        return transforms.CatTransform([registry(c) for c in constraint.cseq], constraint.dim, constraint.lengths)

    @registry.register(constraints.stack)
    def _stack(constraint):
        return transforms.StackTransform([registry(c) for c in constraint.cseq], constraint.dim)


_register_joined(biject_to)
_register_joined(transform_to)
__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]
