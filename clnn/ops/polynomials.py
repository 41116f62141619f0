"""Orthogonal polynomials of any degree, one per element; ``clnn.special`` has the functions, which add the gradient."""
from __future__ import annotations

import numpy as np

from .._tensor.declare import elementwise


def _samples():
    x = np.array([-1.0, -0.6, 0.0, 0.3, 1.0, 1.2])
    return [((x, np.array([0.0, 1.0, 2.0, 5.0, 3.0, 4.0])), {}), ((x[:, None], np.array([-1.0, 2.0, 7.0, 11.0])), {})]


for _name in ("chebyshev_polynomial_t", "chebyshev_polynomial_u", "chebyshev_polynomial_v", "chebyshev_polynomial_w", "hermite_polynomial_h",
              "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p"):
    elementwise("_" + _name, "input, n", f"clnn_{_name.replace('_polynomial', '')}(input, n)", result="float", method=False, inplace=False, gradcheck=False,
                torch=f"special.{_name}", samples=_samples, doc="Polynomial number ``n``, without a gradient.")
