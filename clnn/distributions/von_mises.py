"""The von Mises distribution."""
import math

import clnn

from . import constraints
from .distribution import Scalars


def _log_bessel(x, order):
    """``log I_order(x)``, from the scaled function so that large arguments do not overflow."""
    return (clnn.special.i0e(x) if order == 0 else clnn.special.i1e(x)).log() + x


class VonMises(Scalars):
    """Angles with a density proportional to ``exp(concentration cos(x - loc))``; samples lie in [-pi, pi).

    Example:
        >>> d = clnn.distributions.VonMises(clnn.tensor(0.0), clnn.tensor(2.0))
        >>> d.log_prob(clnn.tensor(0.5)), d.variance
        (tensor(-0.9067), tensor(0.3022))
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False

    def __init__(self, loc, concentration, validate_args=None):
        self._start(validate_args, loc=loc, concentration=concentration)

    mean = mode = property(lambda self: self.loc)

    @property
    def variance(self):
        """Circular variance."""
        return 1 - (_log_bessel(self.concentration, 1) - _log_bessel(self.concentration, 0)).exp()

    def log_prob(self, value):
        k = self.concentration
        return k * clnn.cos(self._checked(value) - self.loc) - math.log(2 * math.pi) - _log_bessel(k, 0)

    def sample(self, sample_shape=()):
        """Rejection sampling, in double precision where the device has it. Best & Fisher, 1979."""
        with clnn.no_grad():
            shape = self._extended_shape(sample_shape)
            wide = clnn.float64 if self.concentration._storage.device.has_fp64 else clnn.float32
            k = self.concentration.to(wide).expand(shape)
            tau = 1 + (1 + 4 * k * k).sqrt()
            rho = 2 * k / (tau + (2 * tau).sqrt())              # (tau - sqrt(2 tau)) / (2 k) without a difference of nearly equal numbers
            r = (1 + rho * rho) / (2 * rho)
            x, done = clnn.zeros_like(k), clnn.zeros(shape, dtype=clnn.bool, device=k.device)
            while not bool(done.all()):
                u1, u2, u3 = clnn.rand((3,) + tuple(shape), dtype=k.dtype, device=k.device).unbind()
                z = clnn.cos(math.pi * u1)
                f = (1 + r * z) / (r + z)
                c = k * (r - f)
                accept = ((c * (2 - c) - u2) > 0) | ((c / u2).log() + 1 - c >= 0)
                x = clnn.where(accept, (u3 - 0.5).sign() * f.clamp(-1, 1).acos(), x)
                done = done | accept
            return ((x + math.pi + self.loc.to(wide)) % (2 * math.pi) - math.pi).to(self.loc.dtype)
