<%inherit file="/base.cl.mako"/>\
<%namespace name="vec" file="/matmul/vec.cl.mako"/>\
<%namespace name="scores" file="/attention/scores.cl.mako"/>\
## O = softmax(scale * Q @ K' + mask) @ V on a GPU, with memory linear in the length (online softmax over blocks of keys, sums in float).
##
## Q (B, H, L, E), K (B, H / groups, S, E), V (B, H / groups, S, EV), O (B, H, L, EV) by the strides x, unit stride in the last dimension, all others and all
## offsets multiples of 4 elements; lse (B * H, L): log of the sum of exponentials, +Inf for a query that sees no key (its output is 0).
## Geometry: local (LX LY, 1), global (local * B * H, blocks of queries). A work-group owns BQ = LY TM queries and takes BK = LX TN keys at a time: a work-item
## has TM x TN scores in registers, from tiles of queries and keys in local memory, and then TM rows of every LX-th vector of O, from the weights of
## its rows and a tile of values, which takes the place of that of keys. The blocks that see the most keys are started first.
##
## Rows lie in local memory in vectors of 4, an odd number of them apart; where a row is a multiple of 8 vectors, vector c of row r stands at c ^ r % 8
## instead. So neighbouring work-items, which read the same vector of neighbouring rows, meet different banks. Weights: at c ^ r % (LX / 4).
##
## Parameter  legal values
## T          dtype row that is computed in float
## E EV       multiples of 4
## LX LY      work-items along the keys (8 or 16) and along the queries, a multiple of 8; TM TN: rows and keys of one
## AHEAD      True: rows of the next tile are fetched before the present one is used (registers); False: when they are needed
## MASK CAUSAL  as in attention/tensor; DROP 0 | 1: weights are dropped with probability 1 - limit / 2^32
##
## Limits: scale > 0; offsets inside a tile are 32 bits. Local memory: 4 (BQ E + BK max(E, EV) + BQ BK) bytes, E rounded up to 32.
<%
    G, BQ, BK, CE, CV = LX * LY, LY * TM, LX * TN, E // 4, EV // 4
    NO = -(-CV // LX)
    turn, PE = (7, CE) if CE % 8 == 0 else (0, CE | 1)
    adding = scores.module.adds(MASK)
    piece = {"K": (CE, PE, "ks", turn), "V": (CV, CV, "vs", 0), "Q": (CE, PE, "ql", turn)}
    unit = "" if adding else " * unit"
%>\
% if T.itemsize == 2:
${vec.vector_io(T, 4)}
#define READ4(p) ldv_${T.name}(p)
#define WRITE4(p, v) stv_${T.name}(p, v)
% else:
#define READ4(p) (*(__global const float4*)(p))
#define WRITE4(p, v) (*(__global float4*)(p) = (v))
% endif
__kernel __attribute__((reqd_work_group_size(${G}, 1, 1)))
void attention_gpu(IN(${T.c}, Q), IN(${T.c}, K), IN(${T.c}, V), OUT(${T.c}, O), OUT(float, lse), const long8 d, const long16 x, const float scale
        ${scores.parameters(MASK)}
% if DROP:
        , const long seed, const long draw, const long limit, const float gain
% endif
        ) {
    __local float4 qt[${BQ * PE}], kv[${BK * max(PE, CV)}], weights[${BQ * max(BK, LX) // 4}];
    const int lid = get_local_id(0), tx = lid & ${LX - 1}, ty = lid >> ${LX.bit_length() - 1};
    const long L = d.s0, S = d.s1, H = d.s2, z = get_group_id(0), b = z / H, h = z % H, first = (d.s4 - 1 - get_global_id(1)) * ${BQ};
    const int ql = (int)x.s2, ks = (int)x.s5, vs = (int)x.s8;
    __global const ${T.c}* Q = Q_p + Q_o + b * x.s0 + h * x.s1 + first * ql;
    __global const ${T.c}* K = K_p + K_o + b * x.s3 + h / d.s3 * x.s4;
    __global const ${T.c}* V = V_p + V_o + b * x.s6 + h / d.s3 * x.s7;
    __global ${T.c}* O = O_p + O_o + b * x.s9 + h * x.sa + first * x.sb;
    __local float* part = (__local float*)weights + ty * ${LX} + tx;                              /* of a row: each work-item's number */
    __local float* weight = (__local float*)weights + ty * ${BK} + ((tx >> 2) ^ (ty & ${LX // 4 - 1})) * 4 + (tx & 3);
    const float unit = scale * 1.44269504f;
    const long seen = ${f"min(S, first + {BQ})" if CAUSAL else "S"};
    float4 o[${TM * NO}];
    float low[${TM}], l[${TM}], s[${TM * TN}];      /* low: minus the row's maximum so far, an exponent of 2 */
    #pragma unroll
    for (int i = 0; i < ${TM * NO}; i++) o[i] = 0;
    #pragma unroll
    for (int i = 0; i < ${TM}; i++) { low[i] = INFINITY; l[i] = 0; }
    {
        const int left = (int)min(L - first, ${BQ}L);
${move("Q", "qt", BQ)}
    }
% if AHEAD:
    float4 nk[${-(-BK * CE // G)}], nv[${-(-BK * CV // G)}];
    ${ahead("K", "nk", "0")}
% endif
    for (long k0 = 0; k0 < seen; k0 += ${BK}) {
        barrier(CLK_LOCAL_MEM_FENCE);
% if AHEAD:
        ${put("K", "nk")}
% else:
        {
            const int left = (int)min(seen - k0, ${BK}L);
${move("K", "kv", BK)}
        }
% endif
        barrier(CLK_LOCAL_MEM_FENCE);
% if AHEAD:
        ${ahead("V", "nv", "k0")}
% endif
${products()}
${scores.scaled("s", MASK, CAUSAL, TM, TN, BK, "first", "k0", f"ty + i * {LY}", "tx", f"j * {LX}", "L", "S", 1)}
        #pragma unroll
        for (int i = 0; i < ${TM}; i++) {
            float top = s[i * ${TN}];
            #pragma unroll
            for (int j = 1; j < ${TN}; j++) top = fmax(top, s[i * ${TN} + j]);
            part[i * ${LY * LX}] = top;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
% if AHEAD:
        ${put("V", "nv")}
% else:
        {
            const int left = (int)min(seen - k0, ${BK}L);
${move("V", "kv", BK)}
        }
% endif
${weigh()}
        barrier(CLK_LOCAL_MEM_FENCE);
        #pragma unroll
        for (int i = 0; i < ${TM}; i++) {
            #pragma unroll
            for (int j = 0; j < ${TN}; j++) {
                float w = s[i * ${TN} + j];
% if DROP:
                w = clnn_random_word(seed, draw, (z * L + first + ty + i * ${LY}) * S + k0 + tx + j * ${LX}) < (ulong)limit ? w * gain : 0;
% endif
                weight[i * ${LY * BK} + j * ${LX}] = w;
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        K += ${BK} * (long)ks;
        V += ${BK} * (long)vs;
% if AHEAD:
        ${ahead("K", "nk", f"k0 + {BK}")}
% endif
${results()}
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    #pragma unroll
    for (int i = 0; i < ${TM}; i++) part[i * ${LY * LX}] = l[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    #pragma unroll
    for (int i = 0; i < ${TM}; i++) {
        const int row = ty + i * ${LY};
        float total = 0;
        #pragma unroll
        for (int q = 0; q < ${LX // 4}; q++) {
            const float4 v = weights[ty * ${LX // 4} + i * ${LY * LX // 4} + q];
            total += v.s0 + v.s1 + (v.s2 + v.s3);
        }
        const float share = total == 0 ? 0 : 1 / total;
        if (first + row < L) {
            #pragma unroll
            for (int j = 0; j < ${NO}; j++)
                ${f"if (tx + j * {LX} < {CV}) " if CV % LX else ""}WRITE4(O + row * x.sb + (tx + j * ${LX}) * 4, o[i * ${NO} + j] * share);
            if (tx == 0) lse_p[lse_o + z * L + first + row] = total == 0 ? INFINITY : log(total) - low[i] * 0.693147181f;
        }
    }
}
## `rows` rows of X to a tile; those from `left` on become zeros.
<%def name="move(X, tile, rows)">
<% C, pitch, stride, mask = piece[X] %>\
            for (int e = lid; e < ${rows * C}; e += ${G}) {
                const int r = e / ${C}, c = e % ${C};
                float4 v = 0;
                if (r < left) v = READ4(${X} + r * ${stride} + c * 4);
                ${tile}[r * ${pitch} + ${f"(c ^ r & {mask})" if mask else "c"}] = v;
            }
</%def>
## The same in two parts, by registers `name`[].
<%def name="ahead(X, name, at)">
<% C, pitch, stride, mask = piece[X] %>\
{
            const long left = seen - (${at});
            #pragma unroll
            for (int p = 0; p < ${-(-BK * C // G)}; p++) {
                const int e = lid + p * ${G}, r = e / ${C}, c = e % ${C};
                ${name}[p] = 0;
                if (r < left) ${name}[p] = READ4(${X} + r * ${stride} + c * 4);
            }
        }
</%def>
<%def name="put(X, name)">
<% C, pitch, stride, mask = piece[X] %>\
#pragma unroll
        for (int p = 0; p < ${-(-BK * C // G)}; p++) {
            const int e = lid + p * ${G}, r = e / ${C}, c = e % ${C};
            ${f"if (e < {BK * C}) " if BK * C % G else ""}kv[r * ${pitch} + ${f"(c ^ r & {mask})" if mask else "c"}] = ${name}[p];
        }
</%def>
## Scores of the block: every vector of a row, TM queries by TN keys.
<%def name="products()">
        #pragma unroll
        for (int i = 0; i < ${TM * TN}; i++) s[i] = 0;
        #pragma unroll 2
        for (int c = 0; c < ${CE}; c++) {
            __local const float4* a = qt + ty * ${PE} + (c ^ ty & ${turn});
            __local const float4* w = kv + tx * ${PE} + (c ^ tx & ${turn});
            float4 k[${TN}];
            #pragma unroll
            for (int j = 0; j < ${TN}; j++) k[j] = w[j * ${LX * PE}];
            #pragma unroll
            for (int i = 0; i < ${TM}; i++) {
                const float4 q = a[i * ${LY * PE}];
                #pragma unroll
                for (int j = 0; j < ${TN}; j++) s[i * ${TN} + j] = fma(q.s3, k[j].s3, fma(q.s2, k[j].s2, fma(q.s1, k[j].s1, fma(q.s0, k[j].s0, s[i * ${TN} + j]))));
            }
        }
</%def>
## Scores to weights, and what was added up so far to the unit of the new maximum.
<%def name="weigh()">
        #pragma unroll
        for (int i = 0; i < ${TM}; i++) {
            float top = -INFINITY, sum = 0;
            #pragma unroll
            for (int q = 0; q < ${LX // 4}; q++) {
                const float4 v = weights[ty * ${LX // 4} + i * ${LY * LX // 4} + q];
                top = fmax(top, fmax(fmax(v.s0, v.s1), fmax(v.s2, v.s3)));
            }
            top = top${unit};
            const float base = fmin(low[i], -top), shrink = low[i] == INFINITY ? 0 : exp2(base - low[i]), shift = base == INFINITY ? 0 : base;
            #pragma unroll
            for (int j = 0; j < ${TN}; j++) {
                s[i * ${TN} + j] = exp2(${f"s[i * {TN} + j] + shift" if adding else f"fma(s[i * {TN} + j], unit, shift)"});
                sum += s[i * ${TN} + j];
            }
            low[i] = base;
            l[i] = l[i] * shrink + sum;
            #pragma unroll
            for (int j = 0; j < ${NO}; j++) o[i * ${NO} + j] *= shrink;
        }
</%def>
## O += weights @ values, four keys at a time.
<%def name="results()">
        #pragma unroll 2
        for (int k = 0; k < ${BK // 4}; k++) {
            __local const float4* a = weights + ty * ${BK // 4} + (k ^ ty & ${LX // 4 - 1});
            float4 p[${TM}];
            #pragma unroll
            for (int i = 0; i < ${TM}; i++) p[i] = a[i * ${LY * BK // 4}];
            #pragma unroll
            for (int j = 0; j < ${NO}; j++) {
                __local const float4* w = kv + k * ${4 * CV} + ${f"min(tx + j * {LX}, {CV - 1})" if CV % LX else f"tx + j * {LX}"};
% for u in range(4):
                const float4 v${u} = w[${u * CV}];
% endfor
                #pragma unroll
                for (int i = 0; i < ${TM}; i++)
                    o[i * ${NO} + j] = fma((float4)p[i].s3, v3, fma((float4)p[i].s2, v2, fma((float4)p[i].s1, v1, fma((float4)p[i].s0, v0, o[i * ${NO} + j]))));
            }
        }
</%def>
