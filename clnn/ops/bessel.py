"""Bessel functions of orders 0 and 1 and the scaled complementary error function, under the names of the ``special`` module."""
from __future__ import annotations

import math

from .._tensor.declare import elementwise
from ..graph.op import REGISTRY
from .selection import where

i0, i1 = REGISTRY["i0"].fn, REGISTRY["_i1"].fn


def _special(name, expr, vjp, doc="", **kw):
    return elementwise("special_" + name, "input", expr, result="float", method=False, inplace=False, doc=doc, vjp=dict(input=vjp), **kw)


def _slope_i1e(g, input, result):
    return g * where(input.abs() > 0, i0e(input) - result * (input.sign() + 1 / where(input == 0, 1.0, input)), 0.5)


i0e = _special("i0e", "clnn_i0e(input)", lambda g, input, result: g * (i1e(input) - input.sign() * result), "``exp(-|x|) I0(x)``.")
i1e = _special("i1e", "(input == 0 ? (ACC)0 : clnn_i1e(input))", _slope_i1e, "``exp(-|x|) I1(x)``.")
erfcx = _special("erfcx", "clnn_erfcx(input)", lambda g, input, result: g * (2 * input * result - 2 / math.sqrt(math.pi)),
                 "``exp(x^2) erfc(x)``, also where erfc underflows.")
j0 = _special("bessel_j0", "clnn_j0(input)", lambda g, input: -g * j1(input), "Bessel function of the first kind, order 0.")
j1 = _special("bessel_j1", "clnn_j1(input)",
              lambda g, input, result: g * where(input == 0, 0.5, j0(input) - result / where(input == 0, 1.0, input)), "First kind, order 1.")
y0 = _special("bessel_y0", "clnn_y0(input)", lambda g, input: -g * y1(input), "Bessel function of the second kind, order 0.")
y1 = _special("bessel_y1", "clnn_y1(input)", lambda g, input, result: g * (y0(input) - result / input), "Second kind, order 1.")
k0 = _special("modified_bessel_k0", "clnn_k0e(input) * exp(-input)", lambda g, input: -g * k1(input),
              "Modified Bessel function of the second kind, order 0.")
k1 = _special("modified_bessel_k1", "clnn_k1e(input) * exp(-input)", lambda g, input, result: -g * (k0(input) + result / input),
              "Modified, second kind, order 1.")
k0e = _special("scaled_modified_bessel_k0", "clnn_k0e(input)", lambda g, input, result: g * (result - k1e(input)), "``exp(x) K0(x)``.")
k1e = _special("scaled_modified_bessel_k1", "clnn_k1e(input)", lambda g, input, result: g * (result - k0e(input) - result / input),
               "``exp(x) K1(x)``.")
spherical_j0 = _special("spherical_bessel_j0", "(isinf(input) ? 0 : fabs(input) < 0.05f ? 1 - input * input / 6 * (1 - input * input / 20) : sin(input) / input)",
                        lambda g, input, result: g * where(input.abs() < 0.05, -input / 3, (input.cos() - result) / input), "``sin(x) / x``.")
