"""Where each elementwise operator is defined, for samples made automatically. A name that is not here takes any number in (-3, 3)."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Domain:
    """Floats from [low, high], integers from [first, last]; ``gap`` keeps floats that far from the halves, where rounding functions jump."""

    low: float = -3.0
    high: float = 3.0
    first: int = -9
    last: int = 9
    zero: bool = True
    gap: float = 0.04

    def floats(self, rng, shape):
        x = rng.uniform(self.low, self.high, shape)
        half = np.rint(2 * x) / 2
        near = np.abs(x - half) < self.gap
        away = np.where(half + 2 * self.gap <= self.high, half + 2 * self.gap, half - 2 * self.gap)
        x = np.where(near, away, x)
        return x if self.zero else np.where(np.abs(x) < 0.3, np.copysign(0.3, x) + x, x)

    def integers(self, rng, shape, unsigned):
        first = max(self.first, 0) if unsigned else self.first
        x = rng.integers(first, self.last + 1, shape)
        return x if self.zero else np.where(x == 0, 1, x)


ANY = Domain()
POSITIVE = Domain(0.1, 4.0, 1, 9)
UNIT = Domain(-0.94, 0.94, 0, 1)
PROBABILITY = Domain(0.06, 0.94, 0, 1)
NONZERO = Domain(zero=False)
ABOVE_ONE = Domain(1.1, 4.0, 1, 9)
COUNT = Domain(0.0, 3.0, 0, 3)
EXPONENT = Domain(-2.0, 2.0, 0, 3)
LOW, HIGH = Domain(-2.0, -0.6, 0, 2), Domain(0.7, 2.0, 3, 6)
WEIGHT = Domain(0.1, 0.9, 0, 1)
OVER_MINUS_ONE = Domain(-0.9, 4.0, 0, 9)

DOMAINS = {
    "log": (POSITIVE,), "log2": (POSITIVE,), "log10": (POSITIVE,), "sqrt": (POSITIVE,), "rsqrt": (POSITIVE,),
    "_pow_root": (POSITIVE,), "_pow_inverse_root": (POSITIVE,), "lgamma": (POSITIVE,),
    "digamma": (POSITIVE,), "log1p": (OVER_MINUS_ONE,), "asin": (UNIT,), "acos": (UNIT,), "atanh": (UNIT,), "erfinv": (UNIT,),
    "acosh": (ABOVE_ONE,), "reciprocal": (NONZERO,), "true_divide": (ANY, NONZERO), "trunc_divide": (ANY, NONZERO), "logit": (PROBABILITY,),
    "floor_divide": (ANY, NONZERO), "remainder": (ANY, NONZERO), "fmod": (ANY, NONZERO), "pow": (POSITIVE, EXPONENT), "xlogy": (ANY, POSITIVE),
    "xlog1py": (ANY, OVER_MINUS_ONE), "bitwise_left_shift": (COUNT, COUNT), "bitwise_right_shift": (COUNT, COUNT), "gcd": (ANY, NONZERO),
    "clamp_both": (ANY, LOW, HIGH), "heaviside": (ANY, ANY), "polygamma": (POSITIVE,), "entr": (POSITIVE,), "ndtri": (PROBABILITY,),
    "atan2": (NONZERO, NONZERO), "hypot": (NONZERO, NONZERO), "copysign": (NONZERO, NONZERO), "float_power": (POSITIVE, EXPONENT),
    "special_zeta": (ABOVE_ONE, POSITIVE), "gamma_grad": (POSITIVE, POSITIVE), "special_bessel_y0": (POSITIVE,), "special_bessel_y1": (POSITIVE,),
    "special_modified_bessel_k0": (POSITIVE,), "special_modified_bessel_k1": (POSITIVE,), "special_scaled_modified_bessel_k0": (POSITIVE,),
    "special_scaled_modified_bessel_k1": (POSITIVE,),
    "zeta": (ABOVE_ONE, POSITIVE), "mvlgamma": (ABOVE_ONE,), "igamma": (POSITIVE, POSITIVE), "igammac": (POSITIVE, POSITIVE),
    "div": (ANY, NONZERO), "lerp": (ANY, ANY, WEIGHT), "exp2": (ANY,), "tan": (Domain(-1.3, 1.3, -1, 1),), "sinc": (NONZERO,),
    "probability": (PROBABILITY,), "levels": (PROBABILITY,), "not_negative": (POSITIVE,),
    "bce": (PROBABILITY, PROBABILITY), "bce_target": (PROBABILITY,), "addcdiv": (ANY, ANY, NONZERO), "log_ndtr": (ANY,), "where": (ANY, ANY, ANY),
}

#: Operators whose result is drawn at random or is not defined by its inputs: only shapes and dtypes are compared.
RANDOM = {"dropout", "alpha_dropout", "feature_dropout", "feature_alpha_dropout", "dropout1d", "dropout2d", "dropout3d", "bernoulli",
          "multinomial", "normal", "uniform", "rand", "randn", "randint", "randperm", "rand_like", "randn_like", "randint_like", "poisson",
          "empty_like", "new_empty", "gumbel_softmax", "rrelu", "exponential", "geometric", "cauchy", "log_normal", "random", "gamma_draw", "standard_gamma",
          "sample_dirichlet", "svd_lowrank", "pca_lowrank"}

#: Operators for which PyTorch's answer to a batch of nothing is a quirk (or an edge of its own) and not a rule to follow.
EMPTY_DIFFERS = {"pixel_unshuffle", "histogram", "pinverse", "linalg_pinv", "linalg_cond", "linalg_lstsq", "linalg_matrix_rank"}

#: Operators whose result depends on how the input lies in memory, by definition.
MEMORY = {"as_strided", "embed_strided", "stride", "is_contiguous", "view_as_complex"}


def domains_of(op):
    """One Domain per parameter of an elementwise operator."""
    found = DOMAINS.get(op.name) or DOMAINS.get(op.name.strip("_"))
    n = len(op.params)
    return (found + (ANY,) * n)[:n] if found else (ANY,) * n
