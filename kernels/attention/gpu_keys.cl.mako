<%inherit file="/base.cl.mako"/>\
<%namespace name="vec" file="/matmul/vec.cl.mako"/>\
<%namespace name="scores" file="/attention/scores.cl.mako"/>\
## Gradients of keys and values of attention on a GPU, and those of the scores, from which a product makes the gradient of queries: weights are computed again
## from the log of the sums, block by block (Dao, "FlashAttention-2", 2023), so that four of the five products need no memory.
##
## Q (B, H, L, E), K (B, H / groups, S, E), V (B, H / groups, S, EV), dO (B, H, L, EV) by the strides x, unit stride in the last dimension, all others and all
## offsets multiples of 4 elements; lse and delta (B * H, L): of the forward pass; sum over the head of dO * O. dK (B, H, S, E) and dV (B, H, S, EV) in float, by the
## strides y. dS (B * H, keys of the launch rounded up to BK, d.s6): gradients of the unscaled products, keys down, queries along; d.s6 is a multiple of BQ.
## Where queries do not see keys, dS is 0 from the block of d.s7 queries on that has the first key in it (d.s7 is a multiple of BQ), and not written before.
## Geometry: local (LX LY, 1), global (local * B * H, blocks of keys from d.s4 to d.s5). A work-group owns BK = LY TM keys and takes BQ = LX TN queries at a time: a
## work-item has TM x TN weights in registers, from tiles of keys (or values) and queries (or dO) in local memory, and then adds up TM rows of every LX-th vector
## of dK and dV from the weights of its rows. The tile of queries makes room for that of dO and is read again. Blocks that most queries see are started first.
##
## Rows lie in local memory as in attention/gpu.
##
## Parameter  legal values
## T          dtype row that is computed in float
## E EV       multiples of 4
## LX LY      work-items along the queries (8 or 16) and along the keys, a multiple of 8; TM TN: keys and queries of one
## MASK CAUSAL DROP  as in attention/gpu
##
## Limits: scale > 0; offsets inside a tile are 32 bits. Local memory: 4 (BK (E + EV) + BQ max(E, EV) + BQ BK) bytes, E and EV rounded up to 32.
<%
    G, BK, BQ, CE, CV = LX * LY, LY * TM, LX * TN, E // 4, EV // 4
    turn = lambda C: 0 if C % 8 else 7
    pitch = lambda C: C | 1 if C % 8 else C
    PE, PV, WT = pitch(CE), pitch(CV), LX // 4 - 1
    NE, NV = -(-CE // LX), -(-CV // LX)
    adding = scores.module.adds(MASK)
%>\
% if T.itemsize == 2:
${vec.vector_io(T, 4)}
#define READ4(p) ldv_${T.name}(p)
% else:
#define READ4(p) (*(__global const float4*)(p))
% endif
__kernel __attribute__((reqd_work_group_size(${G}, 1, 1)))
void attention_gpu_keys(IN(${T.c}, Q), IN(${T.c}, K), IN(${T.c}, V), IN(${T.c}, dO), IN(float, lse), IN(float, delta), OUT(float, dK), OUT(float, dV), OUT(float, dS),
        const long8 d, const long16 x, const long8 y, const float scale
        ${scores.parameters(MASK)}
% if DROP:
        , const long seed, const long draw, const long limit, const float gain
% endif
        ) {
    __local float4 kt[${BK * PE}], vt[${BK * PV}], xt[${BQ * max(PE, PV)}], weights[${BK * BQ // 4}];
    const int lid = get_local_id(0), tx = lid & ${LX - 1}, ty = lid >> ${LX.bit_length() - 1};
    const long L = d.s0, S = d.s1, H = d.s2, z = get_group_id(0), b = z / H, h = z % H, block = get_global_id(1), k0 = d.s4 + block * ${BK};
    const int ql = (int)x.s2, ks = (int)x.s5, vs = (int)x.s8, gl = (int)x.sb, pitch = (int)d.s6;
    __global const ${T.c}* Q = Q_p + Q_o + b * x.s0 + h * x.s1;
    __global const ${T.c}* K = K_p + K_o + b * x.s3 + h / d.s3 * x.s4 + k0 * ks;
    __global const ${T.c}* V = V_p + V_o + b * x.s6 + h / d.s3 * x.s7 + k0 * vs;
    __global const ${T.c}* dO = dO_p + dO_o + b * x.s9 + h * x.sa;
    __global const float* total = lse_p + lse_o + z * L;
    __global const float* mean = delta_p + delta_o + z * L;
    __global float* dS = dS_p + dS_o + (z * ((d.s5 - d.s4 + ${BK - 1}) / ${BK}) + block) * ${BK} * d.s6;
    __local float* weight = (__local float*)weights + ty * ${BQ} + ((tx >> 2) ^ (ty & ${WT})) * 4 + (tx & 3);
    const float unit = scale * 1.44269504f;
    const int end = (int)min(S - k0, ${BK}L);
    float4 dk[${TM * NE}], dv[${TM * NV}];
    #pragma unroll
    for (int i = 0; i < ${TM * NE}; i++) dk[i] = 0;
    #pragma unroll
    for (int i = 0; i < ${TM * NV}; i++) dv[i] = 0;
${move("K", "kt", BK, CE, "ks", "end")}
${move("V", "vt", BK, CV, "vs", "end")}
    long q0 = 0;
% if CAUSAL:
    q0 = k0 / ${BQ} * ${BQ};
    for (long q = k0 / d.s7 * d.s7; q < min(q0, L); q += ${BQ})
        for (int e = lid; e < ${BK * BQ // 4}; e += ${G}) *(__global float4*)(dS + e / ${BQ // 4} * pitch + q + e % ${BQ // 4} * 4) = 0;
    Q += q0 * ql;
    dO += q0 * gl;
% endif
    for (; q0 < L; q0 += ${BQ}) {
        const int left = (int)min(L - q0, ${BQ}L);
        float s[${TM * TN}], low[${TN}];
${"        float p[%d];" % (TM * TN) if DROP else ""}
        #pragma unroll
        for (int j = 0; j < ${TN}; j++) low[j] = tx + j * ${LX} < left ? total[q0 + tx + j * ${LX}] * -1.44269504f : -INFINITY;
        barrier(CLK_LOCAL_MEM_FENCE);
${move("Q", "xt", BQ, CE, "ql", "left")}
        barrier(CLK_LOCAL_MEM_FENCE);
${products("kt", CE)}
${scores.upright("s", MASK, CAUSAL, TM, TN, BK, "k0", f"ty + i * {LY}", "q0", f"tx + j * {LX}")}
        #pragma unroll
        for (int i = 0; i < ${TM * TN}; i++) {
            float w = exp2(${f"s[i] + low[i % {TN}]" if adding else f"fma(s[i], unit, low[i % {TN}])"});
% if DROP:
            p[i] = w;
            w = ${kept("i")} ? w * gain : 0;
% endif
            weight[i / ${TN} * ${LY * BQ} + i % ${TN} * ${LX}] = w;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
${move("dO", "xt", BQ, CV, "gl", "left")}
        #pragma unroll
        for (int j = 0; j < ${TN}; j++) low[j] = tx + j * ${LX} < left ? mean[q0 + tx + j * ${LX}] : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
${results("dv", CV, NV)}
${products("vt", CV)}
        #pragma unroll
        for (int i = 0; i < ${TM * TN}; i++) {
% if DROP:
            s[i] = p[i] * ((${kept("i")} ? s[i] * gain : 0) - low[i % ${TN}]) * scale;
% else:
            s[i] = weight[i / ${TN} * ${LY * BQ} + i % ${TN} * ${LX}] * (s[i] - low[i % ${TN}]) * scale;
% endif
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        #pragma unroll
        for (int i = 0; i < ${TM * TN}; i++) weight[i / ${TN} * ${LY * BQ} + i % ${TN} * ${LX}] = s[i];
${move("Q", "xt", BQ, CE, "ql", "left")}
        barrier(CLK_LOCAL_MEM_FENCE);
        #pragma unroll 4
        for (int e = lid; e < ${BK * BQ // 4}; e += ${G}) {
            const int r = e / ${BQ // 4}, c = e % ${BQ // 4};
            *(__global float4*)(dS + r * pitch + q0 + c * 4) = weights[r * ${BQ // 4} + (c ^ r & ${WT})];
        }
${results("dk", CE, NE)}
        Q += ${BQ} * (long)ql;
        dO += ${BQ} * (long)gl;
    }
${store("dK", "dk", "y.s0", "y.s1", "y.s2", CE, NE)}
${store("dV", "dv", "y.s3", "y.s4", "y.s5", CV, NV)}
}
## Whether the weight of score i was kept.
<%def name="kept(i)">clnn_random_word(seed, draw, (z * L + q0 + tx + ${i} % ${TN} * ${LX}) * S + k0 + ty + ${i} / ${TN} * ${LY}) < (ulong)limit</%def>
## `rows` rows of C vectors of X to a tile; those from `left` on become zeros.
<%def name="move(X, tile, rows, C, stride, left)">
        #pragma unroll 4
        for (int e = lid; e < ${rows * C}; e += ${G}) {
            const int r = e / ${C}, c = e % ${C};
            float4 v = 0;
            if (r < ${left}) v = READ4(${X} + r * ${stride} + c * 4);
            ${tile}[r * ${pitch(C)} + ${f"(c ^ r & {turn(C)})" if turn(C) else "c"}] = v;
        }
</%def>
## s[TM][TN]: rows of the tile `own` times those of xt, over C vectors.
<%def name="products(own, C)">
        #pragma unroll
        for (int i = 0; i < ${TM * TN}; i++) s[i] = 0;
        #pragma unroll 1
        for (int c = 0; c < ${C}; c++) {
            __local const float4* a = ${own} + ty * ${pitch(C)} + (c ^ ty & ${turn(C)});
            __local const float4* w = xt + tx * ${pitch(C)} + (c ^ tx & ${turn(C)});
            float4 q[${TN}];
            #pragma unroll
            for (int j = 0; j < ${TN}; j++) q[j] = w[j * ${LX * pitch(C)}];
            #pragma unroll
            for (int i = 0; i < ${TM}; i++) {
                const float4 k = a[i * ${LY * pitch(C)}];
                #pragma unroll
                for (int j = 0; j < ${TN}; j++) s[i * ${TN} + j] = fma(k.s3, q[j].s3, fma(k.s2, q[j].s2, fma(k.s1, q[j].s1, fma(k.s0, q[j].s0, s[i * ${TN} + j]))));
            }
        }
</%def>
## o[TM][N] += weights times the rows of xt, four queries at a time.
<%def name="results(o, C, N)">
        #pragma unroll 1
        for (int k = 0; k < ${BQ // 4}; k++) {
            __local const float4* a = weights + ty * ${BQ // 4} + (k ^ ty & ${WT});
            float4 w[${TM}];
            #pragma unroll
            for (int i = 0; i < ${TM}; i++) w[i] = a[i * ${LY * BQ // 4}];
            #pragma unroll
            for (int j = 0; j < ${N}; j++) {
                const int c = ${f"min(tx + j * {LX}, {C - 1})" if C % LX else f"tx + j * {LX}"};
% for u in range(4):
                const float4 x${u} = xt[(k * 4 + ${u}) * ${pitch(C)} + ${f"(c ^ k * 4 + {u} & 7)" if turn(C) else "c"}];
% endfor
                #pragma unroll
                for (int i = 0; i < ${TM}; i++)
                    ${o}[i * ${N} + j] = fma((float4)w[i].s3, x3, fma((float4)w[i].s2, x2, fma((float4)w[i].s1, x1, fma((float4)w[i].s0, x0, ${o}[i * ${N} + j]))));
            }
        }
</%def>
<%def name="store(X, o, batch, head, row, C, N)">
    {
        __global float* to = ${X}_p + ${X}_o + b * ${batch} + h * ${head} + k0 * ${row};
        #pragma unroll
        for (int i = 0; i < ${TM}; i++)
            if (ty + i * ${LY} < end) {
                #pragma unroll
                for (int j = 0; j < ${N}; j++)
                    ${f"if (tx + j * {LX} < {C}) " if C % LX else ""}*(__global float4*)(to + (ty + i * ${LY}) * ${row} + (tx + j * ${LX}) * 4) = ${o}[i * ${N} + j];
            }
    }
</%def>
