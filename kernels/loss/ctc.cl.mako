<%inherit file="/base.cl.mako"/>\
## Connectionist temporal classification (Graves et al., 2006): loss[n] = -log of the probability of all paths of log-probabilities x (T, N, C) that
## read as the labels of sample n once repeats and blanks are dropped. One work-item per sample walks the lattice of 2 * length + 1 states.
##   alpha (N, T, states): log-probability of all prefixes that end in a state, kept for the backward pass
##   BACKWARD: gx = g[n] * (exp(x) - sum over states of a class of exp(alpha + beta + loss - x)), zero after the sample's end; beta (N, 2, states)
##
## Parameter  legal values
## T          dtype row of x, gx and g; alpha, beta and loss hold its compute type; label numbers and lengths are int64
## BACKWARD   0 | 1; ZERO  0 | 1: infinite losses give no gradient
<% ACC = T.acc %>\
static inline ${ACC} log_add(const ${ACC} a, const ${ACC} b, const ${ACC} c) {
    const ${ACC} m = fmax(a, fmax(b, c));
    return m == -INFINITY ? m : m + log(exp(a - m) + exp(b - m) + exp(c - m));
}
#define LABEL(s) ((s) & 1 ? clamp(y[(s) >> 1], 0L, C - 1) : blank)
#define X(t, c) ${T.load}(x, ((t) * N + n) * C + (c))
__kernel void ctc(IN(${T.c}, x), IN(long, labels), IN(long, starts), IN(long, input_lengths), IN(long, label_lengths), OUT(${ACC}, alpha_all),
                  OUT(${ACC}, loss), IN(${T.c}, g), OUT(${ACC}, beta_all), OUT(${T.c}, gx), const long TT, const long N, const long C,
                  const long states, const long blank, __global int* err, const int code) {
    PTR_IN(${T.c}, x);
    PTR_IN(long, labels);
    PTR_IN(long, starts);
    PTR_IN(long, input_lengths);
    PTR_IN(long, label_lengths);
    PTR_OUT(${ACC}, alpha_all);
    PTR_OUT(${ACC}, loss);
    const long n = get_global_id(0);
    if (n >= N) return;
    const long length = clamp(input_lengths[n], 0L, TT), count = clamp(2 * label_lengths[n] + 1, 1L, states);
    if (length != input_lengths[n]) CLNN_FAIL(err, code, input_lengths[n]);
    if (count != 2 * label_lengths[n] + 1) CLNN_FAIL(err, code, label_lengths[n]);
    __global const long* y = labels + starts[n];
    __global ${ACC}* alpha = alpha_all + n * TT * states;
% if not BACKWARD:
    for (long t = 0; t < length; t++) {
        __global ${ACC}* now = alpha + t * states;
        for (long s = 0; s < count; s++) {
            ${ACC} a;
            if (t == 0) {
                a = s < 2 ? 0 : -INFINITY;
            } else {
                __global const ${ACC}* old = now - states;
                const int skip = s > 1 && (s & 1) && LABEL(s) != LABEL(s - 2);
                a = log_add(old[s], s > 0 ? old[s - 1] : -INFINITY, skip ? old[s - 2] : -INFINITY);
            }
            now[s] = a + X(t, LABEL(s));
        }
    }
    if (length == 0) {
        loss[n] = count == 1 ? 0 : INFINITY;
    } else {
        __global const ${ACC}* last = alpha + (length - 1) * states;
        loss[n] = -log_add(last[count - 1], count > 1 ? last[count - 2] : -INFINITY, -INFINITY);
    }
% else:
    PTR_IN(${T.c}, g);
    PTR_OUT(${ACC}, beta_all);
    PTR_OUT(${T.c}, gx);
    const ${ACC} nll = loss[n], k = ${T.load}(g, n);
    const int dead = ${"nll == INFINITY" if ZERO else "0"};
    for (long t = TT - 1; t >= 0; t--) {
        const int live = t < length && !dead;
        for (long c = 0; c < C; c++) ${T.store}(gx, (t * N + n) * C + c, live ? k * exp(X(t, c)) : 0);
        if (!live) continue;
        __global ${ACC}* now = beta_all + (n * 2 + (t & 1)) * states;
        __global const ${ACC}* next = beta_all + (n * 2 + 1 - (t & 1)) * states;
        for (long s = 0; s < count; s++) {
            ${ACC} b;
            if (t == length - 1) {
                b = s >= count - 2 ? 0 : -INFINITY;
            } else {
                const int skip = s + 2 < count && (s & 1) && LABEL(s) != LABEL(s + 2);
                b = log_add(next[s], s + 1 < count ? next[s + 1] : -INFINITY, skip ? next[s + 2] : -INFINITY);
            }
            const ${ACC} v = X(t, LABEL(s));
            now[s] = b + v;
            const long at = (t * N + n) * C + LABEL(s);
            ${T.store}(gx, at, ${T.load}(gx, at) - k * exp(alpha[t * states + s] + now[s] + nll - v));
        }
    }
% endif
}
