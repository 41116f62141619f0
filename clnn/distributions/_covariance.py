"""What distributions with a covariance share."""
import clnn

from .distribution import Distribution
from .utils import lazy_property


def precision_to_tril(P):
    """The Cholesky factor of the inverse of ``P``, from the factor of ``P`` turned round."""
    L = clnn.linalg.cholesky(P.flip(-2, -1)).flip(-2, -1).mT
    one = clnn.eye(P.shape[-1], dtype=P.dtype, device=P.device)
    return clnn.linalg.solve_triangular(L, one.expand(P.shape), upper=False)


class Covariance(Distribution):
    """Vectors or matrices with a covariance, given as itself, its inverse or its Cholesky factor; the others follow when they are read."""

    @staticmethod
    def _given(**matrices):
        """(name, matrix) of the one of them that is not None."""
        given = [(name, matrix) for name, matrix in matrices.items() if matrix is not None]
        if len(given) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        (name, matrix), = given
        if matrix.dim() < 2:
            raise ValueError(f"{name} must be at least two-dimensional, with optional leading batch dimensions")
        return name, matrix

    def _factor(self, name, matrix):
        """Keep the Cholesky factor of the covariance that ``matrix``, called ``name``, stands for."""
        self._unbroadcasted_scale_tril = (matrix if name == "scale_tril" else clnn.linalg.cholesky(matrix) if name == "covariance_matrix"
                                          else precision_to_tril(matrix))

    def _expanded_matrices(self, shape):
        """What a copy of another batch shape gets of them."""
        known = {n: self.__dict__[n].expand(shape) for n in ("covariance_matrix", "scale_tril", "precision_matrix") if n in self.__dict__}
        return dict(known, _unbroadcasted_scale_tril=self._unbroadcasted_scale_tril)

    @property
    def _matrix_shape(self):
        return self._batch_shape + (self._event_shape[-1],) * 2

    @lazy_property
    def scale_tril(self):
        """Cholesky factor of the covariance."""
        return self._unbroadcasted_scale_tril.expand(self._matrix_shape)

    @lazy_property
    def covariance_matrix(self):
        """Covariance."""
        L = self._unbroadcasted_scale_tril
        return (L @ L.mT).expand(self._matrix_shape)

    @lazy_property
    def precision_matrix(self):
        """Inverse of the covariance."""
        return clnn.cholesky_inverse(self._unbroadcasted_scale_tril).expand(self._matrix_shape)

    def _half_log_det(self):
        return self._unbroadcasted_scale_tril.diagonal(0, -2, -1).log().sum(-1)
