<%inherit file="/base.cl.mako"/>\
## Normal numbers (Box & Muller 1958) as PyTorch makes them of the uniform ones that it drew: in blocks of 16, of which the first eight give the radius and
## the others the angle. Steps are +, *, fma or conversions (common/random.cl.mako), so that all drivers find the same bits.
##
## w (16 * blocks) words as float, of which the lower 24 bits count; y (16 * blocks) float
## geometry: global (ceil(blocks / per)), each work-item takes per blocks
__kernel void normals(IN(float, w), OUT(float, y), const long blocks, const long per, const float mean, const float std) {
    PTR_IN(float, w); PTR_OUT(float, y);
    const long first = get_global_id(0) * per, last = min(blocks, first + per);
    for (long b = first; b < last; b++) {
        float8 p, q;
        clnn_sequence_normals(vload8(2 * b, w), vload8(2 * b + 1, w), &p, &q);
        vstore8(fma(p, (float8)std, (float8)mean), 2 * b, y);
        vstore8(fma(q, (float8)std, (float8)mean), 2 * b + 1, y);
    }
}
