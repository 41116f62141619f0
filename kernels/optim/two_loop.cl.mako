<%inherit file="/base.cl.mako"/>\
## The two-loop recursion of L-BFGS (Nocedal and Wright, algorithm 7.4) in one launch: q becomes the inverse Hessian times q. Each pass over q adds a multiple
## of one vector and takes the product with the next.
##
## S Y (slots, n)  steps and differences of gradients; pair i, from the oldest, lies in slot (first + i) % slots
## rho (m)         1 / (s . y) of each pair;  q (n) in place;  alpha (m) scratch
## scale           of the first inverse Hessian
##
## Geometry: one work-group of L work-items.
##
## parameter  values
## T          float32 float64
## W          lanes: 8 or 16 with L = 1 (CPUs), else 1
## L          work-items: a power of 2
<%
    C, PARTS = T.c, 4 if W > 1 else 1
    V = f"{C}{W}" if W > 1 else C
    load = (lambda p: f"vload{W}(0, {p})") if W > 1 else (lambda p: f"*({p})")
    store = (lambda v, p: f"vstore{W}({v}, 0, {p})") if W > 1 else (lambda v, p: f"*({p}) = {v}")
    STEP = W * PARTS if W > 1 else L
    # what becomes of q on the way: (name, its arguments, the new values from `old`, `other` and c)
    PASSES = (("product", "", "old"), ("add", f"__global const {C}* v, const {C} c, ", "fma({}c, other, old)"), ("scaled", f"const {C} c, ", "c * old"))
%>\
% if L > 1:
static ${C} total(__local ${C}* share, const int lid, const ${C} sum) {
    share[lid] = sum;
    for (int far = ${L // 2}; far; far /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lid < far) share[lid] += share[lid + far];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const ${C} all = share[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    return all;
}
% endif
% for name, more, text in PASSES:
static ${C} ${name}(__global ${C}* q, ${more}__global const ${C}* next, const long n, __local ${C}* share, const int lid) {
    ${V} ${", ".join(f"sum{k} = 0" for k in range(PARTS))};
    long i = ${"lid" if W == 1 else "0"};
    for (; i + ${STEP if W > 1 else 1} <= n; i += ${STEP}) {
% for k in range(PARTS):
        {
            const ${V} old = ${load(f"q + i + {k * W}")}${f", other = {load(f'v + i + {k * W}')}" if name == "add" else ""};
            const ${V} new = ${text.format(f"({V})")};
% if name != "product":
            ${store("new", f"q + i + {k * W}")};
% endif
            sum${k} = fma(new, ${load(f"next + i + {k * W}")}, sum${k});
        }
% endfor
    }
% if W > 1:
    ${C} rest = 0;
    for (; i < n; i++) {
        const ${C} old = q[i]${", other = v[i]" if name == "add" else ""}, new = ${text.format("")};
        q[i] = new;
        rest = fma(new, next[i], rest);
    }
    const ${V} sum = (sum0 + sum1) + (sum2 + sum3);
<%
    half, at = W // 2, "sum"
%>\
% while half > 1:
    const ${C}${half} sum_${half} = ${at}.lo + ${at}.hi;
<% at, half = f"sum_{half}", half // 2 %>\
% endwhile
    return ${at}.x + ${at}.y + rest;
% else:
    return ${"total(share, lid, sum0)" if L > 1 else "sum0"};
% endif
}
% endfor
__kernel void two_loop(IN(${C}, S), IN(${C}, Y), IN(${C}, rho), OUT(${C}, q), OUT(${C}, alpha), const long n, const long m, const long first, const long slots,
                       const ${C} scale) {
    PTR_IN(${C}, S);
    PTR_IN(${C}, Y);
    PTR_IN(${C}, rho);
    PTR_OUT(${C}, q);
    PTR_OUT(${C}, alpha);
    const int lid = get_local_id(0);
    __local ${C} share[${L}];
#define ROW(X, i) ((X) + (first + (i)) % slots * n)
    ${C} found = product(q, ROW(S, m - 1), n, share, lid);
    for (long i = m - 1; i >= 0; i--) {
        const ${C} a = rho[i] * found;
        if (lid == 0) alpha[i] = a;
        found = add(q, ROW(Y, i), -a, ROW(S, i ? i - 1 : 0), n, share, lid);
    }
    found = scaled(q, scale, ROW(Y, 0), n, share, lid);
    for (long i = 0; i < m; i++) {
% if L > 1:
        barrier(CLK_GLOBAL_MEM_FENCE);
% endif
        found = add(q, ROW(S, i), alpha[i] - rho[i] * found, ROW(Y, i + 1 < m ? i + 1 : i), n, share, lid);
    }
}
