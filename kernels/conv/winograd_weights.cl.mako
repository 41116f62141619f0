<%inherit file="/base.cl.mako"/>\
## Weights for conv/winograd: U[g, :, m, c] = G w G' of the 3 x 3 weights w of (m, c), as 16 planes.
##
## X: weight element of row m, channel c, tap t at X[g * d.s2 + m * d.s3 + c * d.s4 + t], t counted from the end where d.s5 is 1
## (the flipped weights of an input gradient). Geometry: global (C, M, groups), any local size.
__kernel void conv_winograd_weights(IN(float, X), OUT(float, U), const long8 d) {
    const long C = d.s0, M = d.s1, c = get_global_id(0), m = get_global_id(1), g = get_global_id(2);
    if (c >= C || m >= M) return;
    __global const float* restrict w = X_p + X_o + g * d.s2 + m * d.s3 + c * d.s4;
    const int flip = (int)d.s5;
% for t in range(9):
    const float w${t} = flip ? w[${8 - t}] : w[${t}];
% endfor
% for j in range(3):
    const float a0${j} = w${j}, a1${j} = 0.5f * (w${j} + w${3 + j} + w${6 + j}), a2${j} = 0.5f * (w${j} - w${3 + j} + w${6 + j}), a3${j} = w${6 + j};
% endfor
    __global float* restrict u = U_p + U_o + (g * 16 * M + m) * C + c;
    const long plane = M * C;
% for i in range(4):
    u[${4 * i} * plane] = a${i}0;
    u[${4 * i + 1} * plane] = 0.5f * (a${i}0 + a${i}1 + a${i}2);
    u[${4 * i + 2} * plane] = 0.5f * (a${i}0 - a${i}1 + a${i}2);
    u[${4 * i + 3} * plane] = a${i}2;
% endfor
}
