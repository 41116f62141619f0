## Powers, error functions and the logarithm of Gamma of doubles: what pow.cl.mako, math.cl.mako and inverse.cl.mako have for floats, as in double.cl.mako.
## Largest errors in ulp: pow 1.5, erf 4, erfc 5; lgamma as many as 5 of the larger of 1 and the value
##   pow       2^(y log2(x)) with the logarithm in two doubles; follows C99 for zeros, infinities, NaN and negative bases
##   erf       x P(x x) / Q(x x); erfc: exp(-x x) times a polynomial in 2 x / (x + 4.5) - 1, after Shepherd and Laframboise (1981)
##   lgamma    a polynomial around 2, to which up to two steps of the recurrence lead, Stirling's series from 4.5 on, reflection below 0
<%namespace name="math" file="/common/math.cl.mako"/>
<%!
    # (atanh(s) / s - 1 - s^2 / 3) / s^4 in s^2; erf; exp(x x) erfc(x) (1 + x / 4.5); lgamma(2 + t) / t; Stirling's series; sin(pi g) / (pi g) in g^2
    POW = (0.20000000000000015, 0.1428571428566855, 0.11111111135843023, 0.09090904079516628, 0.07692790427019792, 0.06642883325576854, 0.06457933755586856)
    ERF_P = (1.1283791670955126, 0.22314175168935838, 0.06701858253753518, 0.00712407177140014, 0.0008920345730675775, 6.102580462460978e-05,
             4.27616992973031e-06, 1.9378332945929545e-07, 8.137010200020642e-09, 2.2409750826027371e-10, 5.018482891027012e-12, 4.596228071856515e-14,
             7.828991269210788e-17)
    ERF_Q = (1.0, 0.5310875618731368, 0.13642285964147857, 0.022488598392093162, 0.0026597708765441156, 0.00023881353447448696, 1.6774041272991422e-05,
             9.337669119337832e-07, 4.1120947509318226e-08, 1.4037336914729903e-09, 3.5181170430813956e-11, 5.671050020371062e-13,
             2.4681017495892426e-15, 1.1085794060065545e-18)
    ERFCX = (0.24496960854768282, -0.22331710680923386, 0.18532249824103408, -0.1395835545810525, 0.0949511727752219, -0.057894217015214224,
             0.03127588452503818, -0.014697938953206029, 0.005821992702728109, -0.0018242266945740692, 0.00037853782320520043, -5.965748056303033e-06,
             -3.166484926851534e-05, 1.1774027930136236e-05, -6.080275814571464e-07, -1.0758868713397289e-06, 3.5589560611050625e-07, 3.9598384381319415e-08,
             -5.107601991505419e-08, 4.668774269231631e-09, 5.2948784722602746e-09, -1.2212636719720976e-09, -3.4721876155144835e-10, 1.1968949162227551e-10)
    LGAMMA = (0.42278433509846713, 0.32246703342411326, -0.06735230105319831, 0.02058080842778056, -0.007385551028649637, 0.0028905103310243956,
              -0.0011927539127608786, 0.0005096695156568221, -0.00022315473512129425, 9.945767032176914e-05, -4.492653158149745e-05, 2.0505614998318335e-05,
              -9.437234037036798e-06, 4.38460094592632e-06, -2.049763633198585e-06, 9.202871136798174e-07, -4.2002598714782185e-07, 2.7852225448639645e-07,
              -1.4330778965049804e-07)
    STIRLING = (0.0833333333333333, -0.002777777777739575, 0.000793650779589088, -0.000595235728397131, 0.0008415326784324129, -0.0019054823088300423,
                0.005993432776489993, -0.020307098253611554, 0.04535838490984896)
    SINE = (1.0, -1.6449340668482262, 0.8117424252833373, -0.19075182412143044, 0.026147847804529042, -0.002346080886820869, 0.00014842780086673572,
            -6.9720004809012655e-06, 2.4493080813680035e-07)
%>
//@ clnn_erf
<%math:own_double>
CLNN_FN F clnn_erf(F x) {
    F a = fabs(x);
    a = select(a, (F)(5.93), (I)(a > 5.93));
    const F z = a * a, y = a * (${math.module.horner("z", ERF_P, "")} / ${math.module.horner("z", ERF_Q, "")});
    return copysign(select(y, (F)(1.0), (I)(y > 1.0)), x);
}
</%math:own_double>
//@ clnn_erfcx_part_
% if USE_FP64:
% for F, _, _ in math.module.DOUBLES:
/* exp(x x) erfc(x) for x >= 0 */
static inline __attribute__((overloadable)) ${F} clnn_erfcx_part_(${F} x) {
    const ${F} r = 1.0 / (x + 4.5), u = fma(x + x, r, (${F})(-1.0));
    return ${math.module.horner("u", ERFCX, "", F)} * (4.5 * r);
}
% endfor
% endif
//@ clnn_erfc
<%math:own_double>
CLNN_FN F clnn_erfc(F x) {
    F a = fabs(x);
    a = select(a, (F)(28.0), (I)(a > 28.0));
    const F s = a * a, e = clnn_erfcx_part_(a) * clnn_exp(-s), p = fma(-e, fma(a, a, -s), e);   /* with what the square lost */
    return select(select(p, 2.0 - p, (I)(x < 0.0)), x, (I)(x != x));
}
</%math:own_double>
//@ clnn_pow
<%math:own_double>
CLNN_FN I clnn_whole_(F a) {     /* whether a >= 0 is a whole number */
    const F t = a + 0x1p52;
    return (I)((a >= 0x1p52) | (t - 0x1p52 == a));
}
CLNN_FN F clnn_pow(F x, F y) {
    const F a = fabs(x), big = fabs(y);
    const I tiny = (I)(a < 2.2250738585072014e-308);
    const I u = as_I(select(a, a * 0x1p54, tiny)), k = (u - 0x3fe6a09e667f3bcdL) >> 52;
    const F m = as_F(u - (k << 52)), e = (as_F(k + 0x4338000000000000L) - 0x1.8p52) - select((F)(0.0), (F)(54.0), tiny);
    /* s + s_low = (m - 1) / (m + 1) and its square */
    const F f = m - 1.0, g = m + 1.0, g_low = m - (g - 1.0), s = f / g, s_low = fma(-s, g_low, fma(-s, g, f)) / g;
    const F z = s * s, z_low = fma(s, s, -z) + 2.0 * s * s_low;
    /* log2(m) = 2 / log(2) * (s + s z (1/3 + z q)) */
    const F q = z * ${math.module.horner("z", POW, "")}, third = q + 0.3333333333333333, third_low = (q - (third - 0.3333333333333333)) + 1.850371707708594e-17;
    const F p = z * third, p_low = fma(z, third, -p) + fma(z, third_low, z_low * third);
    const F w = s * p, w_low = fma(s, p, -w) + fma(s, p_low, fma(s_low, p, s_low));
    const F l = s + w, l_low = (w - (l - s)) + w_low;
    const F h = l * 2.8853900817779268, h_low = fma(l, (F)(2.8853900817779268), -h) + fma(l, (F)(4.0710547481862066e-17), l_low * 2.8853900817779268);
    const F v = e + h, v_low = (h - (v - e)) + h_low;
    /* t + t_low = y log2(a) */
    const F c = select(y, copysign((F)(0x1p70), y), (I)(big > 0x1p70));
    F t = c * v, t_low = fma(c, v, -t) + c * v_low;
    const I end = (I)((a == 0.0) | (a == INFINITY)), out = end | (I)(fabs(t) > 2000.0);
    const F side = select(t, select(c, -c, (I)(a == 0.0)), end);
    t = select(t, copysign((F)(2000.0), side), out);
    t_low = select(t_low, (F)(0.0), out);
    const F n = t + 0x1.8p52, r = (t - (n - 0x1.8p52)) + t_low;
    F value = clnn_scaled_(clnn_exp2_part_(r), n);
    const I whole = clnn_whole_(big), odd = whole & ~clnn_whole_(big * 0.5) & (I)1;
    value = as_F(as_I(value) ^ (as_I(x) & (odd << 63)));
    value = select(value, (F)(NAN), (I)((x < 0.0) & (a != INFINITY)) & ~whole);
    value = select(value, x + y, (I)((x != x) | (y != y)));
    return select(value, (F)(1.0), (I)((x == 1.0) | (y == 0.0) | ((a == 1.0) & (big == INFINITY))));
}
</%math:own_double>
//@ clnn_lgamma
<%math:own_double also="CLNN_INTEL_CPU">
CLNN_FN F clnn_lgamma(F x) {
    const I below = (I)(x < 0.0);
    const F size = fabs(x), a = select(size, size + 1.0, below);        /* Gamma(-s) s = -Gamma(1 - s) ..., without what may underflow */
    const I large = (I)(a >= 4.5), up = (I)(a < 1.5), up2 = (I)(a < 0.5), down = (I)(a >= 2.5), down2 = (I)(a >= 3.5);
    F t = a - select(select(select(select((F)(2.0), (F)(1.0), up), (F)(0.0), up2), (F)(3.0), down), (F)(4.0), down2);
    t = select(t, (F)(0.0), large);
    F steps = select(select((F)(1.0), a, up), a - 1.0, down);
    steps = select(select(steps, a * (a + 1.0), up2), (a - 1.0) * (a - 2.0), down2);
    const F l = clnn_log(select(steps, a, large)), small = fma(t, ${math.module.horner("t", LGAMMA, "")}, select(l, -l, up));
    const F r = 1.0 / a, z = r * r;
    const F series = fma(a - 0.5, l - 1.0, fma(r, ${math.module.horner("z", STIRLING, "")}, (F)(0.4189385332046727)));
    F result = select(small, series, large);
    /* sin(pi s) / pi from the distance to the nearest whole number, by which all above 2^52 are met */
    const F whole = (size + 0x1p52) - 0x1p52, g = select(fabs(size - whole), (F)(0.0), (I)(size >= 0x1p52));
    const F y = g * g, sine = g * ${math.module.horner("y", SINE, "")};
    result = select(result, -clnn_log(sine) - result, below);
    return select(result, (F)(INFINITY), (I)(size == INFINITY));
}
</%math:own_double>
