## rows_exp, exp for arguments <= 0 (x less its maximum), 2 ulp. Where the driver's exp does not vectorise well (PoCL), and for vectors,
## branch-free code: 2^k * e^r with k rounded by adding a large number, whose low bits then are the exponent; results below 8e-39 become 0.
<%def name="functions(ACC, vectors)">
% if ACC == "float":
% for F, I in [("float", "int")] + ([("float16", "int16")] if vectors else []):
${"#ifdef CLNN_OWN_MATH" if F == "float" else ""}
static inline ${"__attribute__((overloadable))" if vectors else ""} ${F} rows_exp(const ${F} x) {
    const ${F} c = -104.0f > x ? (${F})-104.0f : x;                           /* a NaN stays one */
    const ${F} t = fma(c, (${F})1.44269504f, (${F})12583039.0f), k = t - 12583039.0f;
    ${F} r = fma(k, (${F})-0.693359375f, c);
    r = fma(k, (${F})2.12194440e-4f, r);
    ${F} q = fma(r, fma(r, (${F})0.001394644786f, (${F})0.008366582376f), (${F})0.04166628206f);
    q = fma(r, fma(r, q, (${F})0.1666654300f), (${F})0.5000000062f);
    q = fma(r * r, q, r);
    const ${F} s = as_${F}(max(as_${I}(t), (${I})0x4b400000) << 23);
    return fma(q, s, s);
}
% if F == "float":
#else
${"static inline __attribute__((overloadable)) float rows_exp(const float x) { return exp(x); }" if vectors else "#define rows_exp exp"}
#endif
% endif
% endfor
% else:
#define rows_exp exp
% endif
</%def>
