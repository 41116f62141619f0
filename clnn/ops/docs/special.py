"""Special functions: gamma, Bessel, zeta."""
from ..._tensor.explain import explain

explain("i0", "``I0(x) = sum over k of (x^2 / 4)^k / (k!)^2``.", "clnn.i0(clnn.tensor([0., 1.]))", "tensor([1.0000, 1.2661])")
explain("_i1", "Modified Bessel function of the first kind, order 1: ``I1(x)``, the derivative of ``I0``.",
        "clnn.special.i1(clnn.tensor([0., 1.]))", "tensor([0.0000, 0.5652])")
explain("igamma", "", "clnn.igamma(clnn.tensor([1., 2.]), clnn.tensor([1., 2.]))", "tensor([0.6321, 0.5940])")
explain("igammac", "", "clnn.igammac(clnn.tensor([1., 2.]), clnn.tensor([1., 2.]))", "tensor([0.3679, 0.4060])")
explain("mvlgamma", "``ln(pi^(p (p - 1) / 4)) + sum over i of ln Gamma(x + (1 - i) / 2)`` for i = 1 ... p.",
        "clnn.mvlgamma(clnn.tensor([2., 3.]), 2)", "tensor([0.4516, 1.5502])")
explain("polygamma", "", "clnn.polygamma(1, clnn.tensor([1., 2.]))", "tensor([1.6449, 0.6449])")
explain("special_zeta", "", "clnn.special.zeta(clnn.tensor([2., 4.]), clnn.tensor([1., 1.]))", "tensor([1.6449, 1.0823])")
explain("special_i0e", "", "clnn.special.i0e(clnn.tensor([0., 1.]))", "tensor([1.0000, 0.4658])")
explain("special_i1e", "", "clnn.special.i1e(clnn.tensor([0., 1.]))", "tensor([0.0000, 0.2079])")
explain("special_erfcx", "", "clnn.special.erfcx(clnn.tensor([0., 1.]))", "tensor([1.0000, 0.4276])")
explain("special_bessel_j0", "", "clnn.special.bessel_j0(clnn.tensor([0., 1.]))", "tensor([1.0000, 0.7652])")
explain("special_bessel_j1", "The Bessel function ``J1(x)``.",
        "clnn.special.bessel_j1(clnn.tensor([0., 1.]))", "tensor([0.0000, 0.4401])")
explain("special_bessel_y0", "-inf at 0, NaN below.", "clnn.special.bessel_y0(clnn.tensor([1., 2.]))", "tensor([0.0883, 0.5104])")
explain("special_bessel_y1", "The Bessel function ``Y1(x)``: -inf at 0, NaN below.",
        "clnn.special.bessel_y1(clnn.tensor([1., 2.]))", "tensor([-0.7812, -0.1070])")
explain("special_modified_bessel_k0", "inf at 0, NaN below.",
        "clnn.special.modified_bessel_k0(clnn.tensor([1., 2.]))", "tensor([0.4210, 0.1139])")
explain("special_modified_bessel_k1", "The modified Bessel function ``K1(x)``: inf at 0, NaN below.",
        "clnn.special.modified_bessel_k1(clnn.tensor([1., 2.]))", "tensor([0.6019, 0.1399])")
explain("special_scaled_modified_bessel_k0", "Without the underflow of ``K0`` for large x.",
        "clnn.special.scaled_modified_bessel_k0(clnn.tensor([1., 2.]))", "tensor([1.1445, 0.8416])")
explain("special_scaled_modified_bessel_k1", "Without the underflow of ``K1`` for large x.",
        "clnn.special.scaled_modified_bessel_k1(clnn.tensor([1., 2.]))", "tensor([1.6362, 1.0335])")
explain("special_spherical_bessel_j0", "The spherical Bessel function of order 0; 1 at 0.",
        "clnn.special.spherical_bessel_j0(clnn.tensor([0., 1.]))", "tensor([1.0000, 0.8415])")
