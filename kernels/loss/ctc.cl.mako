<%inherit file="/base.cl.mako"/>\
<%namespace name="vec" file="/matmul/vec.cl.mako"/>\
## Connectionist temporal classification (Graves et al., 2006): loss[n] = -log of the probability of all paths of log-probabilities x (T, N, C) that
## read as the labels of sample n once repeats and blanks are dropped. One work-item per sample walks the lattice of 2 * length + 1 states.
##   alpha (N, T, stride): log-probability of all prefixes that end in a state, kept for the backward pass
##   BACKWARD: gx = g[n] * (exp(x) - sum over states of a class of exp(alpha + beta + loss - x)), zero after the sample's end; beta (N, 2, stride)
##
## Parameter  legal values
## T          dtype row of x, gx and g; alpha, beta and loss hold its compute type; label numbers and lengths are int64
## BACKWARD   0 | 1; ZERO  0 | 1: infinite losses give no gradient
## W          states at a time: 1 (stride: states), or 8 or 16, in vectors (CPUs). Then a line has W entries that stand before its states and W after them,
##            all minus infinity (stride: states rounded up to W, and 2 W), and each sample has lines of labels and of penalties for steps over a blank
<%
    ACC = T.acc
    V = f"{ACC}{W}"
    I = "long8" if W == 8 else "int16"
    lines = W > 1
%>\
% if lines:
${vec.vector_io(T, W)}
constant ${I} lanes_of_ctc = (${I})(${", ".join(map(str, range(W)))});
static inline ${V} log_add(const ${V} a, const ${V} b, const ${V} c) {
    const ${V} h = b > c ? b : c, m = a > h ? a : h;
    return m == -INFINITY ? m : m + clnn_log(clnn_exp(a - m) + clnn_exp(b - m) + clnn_exp(c - m));
}
% endif
static inline ${ACC} log_add_one(const ${ACC} a, const ${ACC} b, const ${ACC} c) {
    const ${ACC} m = fmax(a, fmax(b, c));
    return m == -INFINITY ? m : m + log(exp(a - m) + exp(b - m) + exp(c - m));
}
#define LABEL(s) ((s) & 1 ? clamp(y[(s) >> 1], 0L, C - 1) : blank)
#define X(t, c) ${T.load}(x, ((t) * N + n) * C + (c))
__kernel void ctc(IN(${T.c}, x), IN(long, labels), IN(long, starts), IN(long, input_lengths), IN(long, label_lengths), OUT(${ACC}, alpha_all),
                  OUT(${ACC}, loss), IN(${T.c}, g), OUT(${ACC}, beta_all), OUT(${T.c}, gx), OUT(int, label_lines), OUT(${ACC}, step_lines), const long TT,
                  const long N, const long C, const long states, const long stride, const long blank, __global int* err, const int code) {
    PTR_IN(${T.c}, x);
    PTR_IN(long, labels);
    PTR_IN(long, starts);
    PTR_IN(long, input_lengths);
    PTR_IN(long, label_lengths);
    PTR_OUT(${ACC}, loss);
    const long n = get_global_id(0);
    if (n >= N) return;
    const long length = clamp(input_lengths[n], 0L, TT), count = clamp(2 * label_lengths[n] + 1, 1L, states);
    if (length != input_lengths[n]) CLNN_FAIL(err, code, input_lengths[n]);
    if (count != 2 * label_lengths[n] + 1) CLNN_FAIL(err, code, label_lengths[n]);
    __global const long* y = labels + starts[n];
    __global ${ACC}* alpha = alpha_all_p + alpha_all_o + n * TT * stride${f" + {W}" if lines else ""};
% if lines:
    /* The label of each state, and 0 or minus infinity for a step to it from the state before the last. */
    __global int* label = label_lines_p + label_lines_o + n * stride;
    __global ${ACC}* step = step_lines_p + step_lines_o + n * stride;
    for (long s = 0; s < stride; s++) {
        label[s] = s < count ? (int)LABEL(s) : (int)blank;
        step[s] = s > 1 && s < count && (s & 1) && LABEL(s) != LABEL(s - 2) ? (${ACC})0 : -INFINITY;
    }
% endif
% if not BACKWARD:
    for (long t = 0; t < length; t++) {
        __global ${ACC}* now = alpha + t * stride;
        __global const ${ACC}* old = now - stride;
% if lines:
        vstore${W}((${V})(-INFINITY), 0, now - ${W});
        for (long s = 0; s < count; s += ${W}) {
            const ${I} at = lanes_of_ctc + (${I})(s);
            ${V} a = at < (${I})(2) ? (${V})(0) : (${V})(-INFINITY);
            if (t > 0) a = log_add(vload${W}(0, old + s), vload${W}(0, old + s - 1), vload${W}(0, old + s - 2) + vload${W}(0, step + s));
            ${said()}
            vstore${W}(at < (${I})(count) ? a + v : (${V})(-INFINITY), 0, now + s);
        }
% else:
        for (long s = 0; s < count; s++) {
            ${ACC} a;
            if (t == 0) {
                a = s < 2 ? 0 : -INFINITY;
            } else {
                const int skip = s > 1 && (s & 1) && LABEL(s) != LABEL(s - 2);
                a = log_add_one(old[s], s > 0 ? old[s - 1] : -INFINITY, skip ? old[s - 2] : -INFINITY);
            }
            now[s] = a + X(t, LABEL(s));
        }
% endif
    }
    if (length == 0) {
        loss[n] = count == 1 ? 0 : INFINITY;
    } else {
        __global const ${ACC}* last = alpha + (length - 1) * stride;
        loss[n] = -log_add_one(last[count - 1], count > 1 ? last[count - 2] : -INFINITY, -INFINITY);
    }
% else:
    PTR_IN(${T.c}, g);
    PTR_OUT(${ACC}, beta_all);
    PTR_OUT(${T.c}, gx);
    const ${ACC} nll = loss[n], k = ${T.load}(g, n)${"" if ZERO else " + (nll == INFINITY ? NAN : 0)"};      // no alignment has no gradient
    const int dead = ${"nll == INFINITY" if ZERO else "0"};
    for (long t = TT - 1; t >= 0; t--) {
        const int live = t < length && !dead;
        const long row = (t * N + n) * C;
        long c = 0;
% if lines:
        for (; c + ${W} <= C; c += ${W}) stv_${T.name}(gx + row + c, live ? k * clnn_exp(ldv_${T.name}(x + row + c)) : (${V})(0));
% endif
        for (; c < C; c++) { ${T.store}(gx, row + c, live ? k * exp(${T.load}(x, row + c)) : 0); }
        if (!live) continue;
        __global ${ACC}* now = beta_all + (n * 2 + (t & 1)) * stride;
        __global const ${ACC}* next = beta_all + (n * 2 + 1 - (t & 1)) * stride;
% if lines:
        long s = 0;
        for (; s < count; s += ${W}) {
            const ${I} at = lanes_of_ctc + (${I})(s);
            ${V} b = at >= (${I})(count - 2) ? (${V})(0) : (${V})(-INFINITY);
            if (t < length - 1) b = log_add(vload${W}(0, next + s), vload${W}(0, next + s + 1), vload${W}(0, next + s + 2) + vload${W}(0, step + s + 2));
            ${said()}
            b = at < (${I})(count) ? b + v : (${V})(-INFINITY);
            vstore${W}(b, 0, now + s);
            ${ACC} share[${W}];
            vstore${W}(k * clnn_exp(vload${W}(0, alpha + t * stride + s) + b + nll - v), 0, share);
            for (int l = 0; l < (int)min(${W}L, count - s); l++) {
                const long at = row + label[s + l];
                ${T.store}(gx, at, ${T.load}(gx, at) - share[l]);
            }
        }
        vstore${W}((${V})(-INFINITY), 0, now + s);
% else:
        for (long s = 0; s < count; s++) {
            ${ACC} b;
            if (t == length - 1) {
                b = s >= count - 2 ? 0 : -INFINITY;
            } else {
                const int skip = s + 2 < count && (s & 1) && LABEL(s) != LABEL(s + 2);
                b = log_add_one(next[s], s + 1 < count ? next[s + 1] : -INFINITY, skip ? next[s + 2] : -INFINITY);
            }
            const ${ACC} v = X(t, LABEL(s));
            now[s] = b + v;
            const long at = row + LABEL(s);
            ${T.store}(gx, at, ${T.load}(gx, at) - k * exp(alpha[t * stride + s] + now[s] + nll - v));
        }
% endif
    }
% endif
}
## said: v, the log-probabilities of the labels of the states from s on.
<%def name="said()">\
${ACC} said[${W}];
            for (int l = 0; l < ${W}; l++) said[l] = X(t, label[s + l]);
            const ${V} v = vload${W}(0, said);\
</%def>
