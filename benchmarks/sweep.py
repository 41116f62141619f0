"""Some 490 calls on N x N elements against PyTorch: ``python -m benchmarks.sweep [N] [part of a call]``; prints each call, and the geometric mean."""
from __future__ import annotations

import math
import sys
import time

import clnn

from .setup import torch

SETUP = """
g = T.Generator(); g.manual_seed(0)
x, y, w = T.rand(N, N, generator=g) + 0.1, T.rand(N, N, generator=g) + 0.1, T.rand(N, N, generator=g)
v, u, k, b = x[0].clone(), y[0].clone(), T.arange(N * N).reshape(N, N) % 7, T.rand(4, N, N, generator=g)
m, i, j, h, d, e = x > 0.6, T.arange(0, N, 3), T.argsort(x, 1), x.half(), x.double(), T.complex(x, y)
c4, k3, r = T.rand(2, 4, N // 2, N // 2, generator=g), T.rand(4, 4, 3, 3, generator=g), T.rand(N, N, generator=g).requires_grad_()
spd = x @ x.t() + N * T.eye(N)
c3, k1 = T.rand(2, 4, N, generator=g), T.rand(4, 4, 3, generator=g)
words, near = T.rand(100, N, generator=g), T.randint(0, 100, (N,), generator=g)
lin, ln, bn, conv = T.nn.Linear(N, N), T.nn.LayerNorm(N), T.nn.BatchNorm1d(N), T.nn.Conv2d(4, 4, 3)
soft = T.softmax(x, 1)
labels = T.arange(N) % N
F = T.nn.functional
"""
UNARY = """abs neg exp log sqrt rsqrt sin cos tan tanh sinh cosh asin acos atan sigmoid erf erfc erfinv exp2 expm1 log2 log10 log1p floor ceil round trunc frac sign
reciprocal square relu logit lgamma digamma isnan isinf isfinite signbit deg2rad rad2deg positive sinc i0 nan_to_num""".split()
BINARY = """add sub mul div pow maximum minimum fmax fmin atan2 fmod remainder eq ne lt le gt ge hypot copysign logaddexp xlogy floor_divide
heaviside nextafter ldexp""".split()
REDUCTIONS = """sum mean amax amin prod std var logsumexp argmax argmin any all cumsum cumprod median sort argsort norm softmax log_softmax count_nonzero logcumsumexp
cummax nansum nanmean diff""".split()
ACTIVATIONS = """relu gelu silu elu selu celu leaky_relu softplus softsign mish hardswish hardsigmoid hardtanh relu6 tanhshrink softshrink hardshrink logsigmoid threshold
normalize dropout softmin glu""".split()
IN_PLACE = """add_(y) mul_(w) sub_(0.0) div_(1.0) clamp_(0,1) relu_() abs_() copy_(y) fill_(0.5) zero_()
neg_() addcmul_(y,w) lerp_(y,0.5) exp_().log_() masked_fill_(m,0.5)
add_(y,alpha=0.1) uniform_() normal_() bernoulli_(0.5) sqrt_() t_().t_() tril_()""".split()
OTHERS = """x @ y; x @ v; v @ u; T.outer(v, u); x.t() @ y; x @ y.t(); T.bmm(b, b); b @ x; T.addmm(x, y, w); T.einsum("ij,kj->ik", x, y); T.mm(x, y); T.mv(x, v)
T.dot(v, u); T.tensordot(x, y, 1); T.baddbmm(b, b, b); T.kron(x[:4, :4], y[:4, :4]); lin(x); F.linear(x, y, v); F.linear(v, x); ln(x); bn(x); conv(c4)
F.conv2d(c4, k3, padding=1); F.conv1d(c3, k1); F.layer_norm(x, (N,)); F.rms_norm(x, (N,)); F.group_norm(c4, 2)
F.batch_norm(c4, None, None, training=True); F.instance_norm(c4); F.max_pool2d(c4, 2); F.avg_pool2d(c4, 2); F.adaptive_avg_pool2d(c4, 1)
F.adaptive_max_pool2d(c4, 2); F.max_pool1d(c3, 2); F.lp_pool2d(c4, 2, 2); F.interpolate(c4, scale_factor=2)
F.interpolate(c4, scale_factor=2, mode="bilinear"); F.pad(x, (1, 1)); F.pad(c4, (1, 1, 1, 1), mode="reflect"); F.pixel_shuffle(c4, 2)
F.pixel_unshuffle(c4, 2); F.unfold(c4, 3); F.one_hot(near, 100); F.one_hot(near); F.embedding(near, words); F.cross_entropy(x, labels)
F.nll_loss(x, labels); F.mse_loss(x, y); F.l1_loss(x, y); F.smooth_l1_loss(x, y); F.huber_loss(x, y); F.binary_cross_entropy(soft, soft)
F.binary_cross_entropy_with_logits(x, w); F.kl_div(x, y); F.cosine_similarity(x, y); F.pairwise_distance(x, y); F.triplet_margin_loss(x, y, w)
F.hinge_embedding_loss(x, y); F.cosine_embedding_loss(x, y, v); F.poisson_nll_loss(x, y); F.soft_margin_loss(x, y)
F.scaled_dot_product_attention(b, b, b); F.grid_sample(c4, T.zeros(2, 4, 4, 2), align_corners=False)
F.affine_grid(b[:2, :2, :3], (2, 4, 8, 8), align_corners=False); T.cdist(x, y); x.sum(); x.mean(); x.max(); x.min(); x.std(); x.var(); x.prod()
x.norm(); x.argmax(); x.any(); m.all(); x.sum((0, 1)); x.sum(0); x.mean(0); x.max(0); x.amax(0); x.std(0); x.argmax(0); x.sum(1, keepdim=True)
x.max(1); x.min(1); x.topk(5); x.topk(3, 0); x.kthvalue(3); x.mode(); x.quantile(0.5); x.quantile(0.5, dim=1); x.median(); x.sort(0); x.unique()
k.unique(return_counts=True); k.flatten().bincount(); x.histc(10); T.histogram(x, 10); T.searchsorted(v.sort()[0], x); T.bucketize(x, v.sort()[0])
x.cumsum(0); x.cummin(1); x.trace(); x.diag(); x.diagonal(); x.tril(); x.triu(); T.diag(v); T.diag_embed(x); x.flip(0); x.flip(1); x.roll(1, 0)
x.roll(3); x.rot90(); x.repeat(2, 2); x.repeat_interleave(2, 0); x.tile(2); x.expand(4, N, N); x.t(); x.t().contiguous(); x.transpose(0, 1)
x.permute(1, 0); x.reshape(-1); x.view(-1); x.flatten(); x.squeeze(); x.unsqueeze(0); x.unfold(0, 4, 2); x.chunk(2); x.split(8); x.unbind()
T.tensor_split(x, 3); T.cat((x, y)); T.cat((x, y), 1); T.stack((x, y)); T.hstack((x, y)); T.vstack((x, y)); T.dstack((x, y)); T.column_stack((v, u))
T.block_diag(x, y); T.cartesian_prod(v[:8], u[:8]); T.combinations(v[:8]); T.meshgrid(v, u, indexing="ij"); T.broadcast_tensors(x, v); T.atleast_2d(v)
x.narrow(0, 1, 4); x.select(0, 1); x[0]; x[:, 1]; x[1:5]; x[::2]; x[:, ::2]; x[None]; x[..., 0]; x[0, 0]; x[-1]; x[i]; x[:, i]; x[i, i]; x[m]
x[[0, 2, 1]]; x[T.tensor(3)]; x[0][1]; x.index_select(0, i); x.gather(1, j); x.take(k); x.take_along_dim(j, 1); x.masked_select(m)
x.masked_fill(m, 0); x.index_fill(0, i, 1.0); x.index_add(0, i, y[i]); x.index_copy(0, i, y[i]); x.scatter(1, j, y); x.scatter_add(1, j, y)
x.scatter_reduce(1, j, y, "amax"); x.index_put((i,), v); T.where(m, x, y); T.where(m, x, 0.0); T.where(m); m.nonzero(); T.argwhere(m)
x.masked_scatter(m, y); T.clamp(x, 0, 1); x.clamp(min=0.2); x.clip(0.1, 0.5); T.lerp(x, y, 0.3); T.addcmul(x, y, w); T.addcdiv(x, y, w); x + 1; x * 2
1 - x; x / 3; 2 / x; x ** 2; x ** 0.5; 2 ** x; x // 0.3; x % 0.3; -x; x == y; x > 0.5; ~m; m & m; m | m; m ^ m; k + 1; k * k; k // 2; k % 3; k << 1
k & 3; k.sum(); k.max(); k.float(); x.long(); x.int(); x.half(); x.double(); x.bool(); x.bfloat16(); m.float(); h + h; h @ h; d + d; d @ d; e * e
e.abs(); e.real; e.angle(); e.conj(); T.view_as_real(e); T.polar(x, y); T.complex(x, y); T.fft.fft(x); T.fft.rfft(x); T.fft.ifft(e); T.fft.irfft(e)
T.fft.fft2(x); T.fft.fftshift(x); T.linalg.inv(spd); T.linalg.det(spd); T.linalg.solve(spd, v); T.linalg.cholesky(spd); T.linalg.qr(spd)
T.linalg.eigh(spd); T.linalg.svdvals(spd); T.linalg.norm(x); T.linalg.vector_norm(x, dim=1); T.linalg.matrix_norm(x); T.linalg.matrix_power(x, 3)
T.linalg.slogdet(spd); T.linalg.cross(x[:, :3], y[:, :3]); T.linalg.lstsq(spd, x)[0]; T.trapezoid(x); T.cov(x); T.corrcoef(x); T.gradient(x)
T.vander(v[:8]); T.zeros(N, N); T.ones(N, N); T.full((N, N), 2.0); T.empty(N, N); T.eye(N); T.arange(N); T.linspace(0, 1, N); T.logspace(0, 1, N)
T.zeros_like(x); T.ones_like(x); T.full_like(x, 2); T.rand(N, N); T.randn(N, N); T.randint(0, 9, (N, N)); T.randperm(N); T.rand_like(x)
T.bernoulli(x.clamp(0, 1)); T.multinomial(x[0], 5); T.multinomial(x[0], 5, replacement=True); T.normal(x, y); T.tril_indices(N, N)
T.tensor([1.0, 2.0, 3.0]); T.tensor(3.0); T.as_tensor([1, 2]); x.clone(); x.detach(); x.contiguous(); x.new_zeros(4, 4); x.tolist(); x.numpy()
(x + y).numpy(); x.sum().item(); x[0, 0].item(); bool(x[0, 0] > 0); float(x.max()); T.equal(x, y); T.allclose(x, y); x.shape; x.size(0); x.numel()
x.dim(); x.stride(); x.dtype; x.is_contiguous(); x.data_ptr(); repr(v[:4]); x.element_size(); r * 2; r.exp(); (r * 2).sum().backward()
r.sum().backward(); lin(x).sum().backward(); (r @ x).mean().backward(); T.autograd.grad((r ** 2).sum(), r); F.cross_entropy(r, labels).backward()
T.isclose(x, y); T.isin(k, i); x.type_as(h); x.to(T.float64); x.to("cpu"); x.cpu(); x.view_as(y); x.expand_as(b); x.movedim(0, 1); x.swapaxes(0, 1)
x.ravel(); x.unflatten(0, (2, -1)); x.diagonal_scatter(v); x.select_scatter(v, 0, 1); x.renorm(2, 0, 1); x.aminmax(); T.std_mean(x); T.var_mean(x, 1)
T.logsumexp(x, 0); x.softmax(0); F.gumbel_softmax(x); T.special.entr(x); T.special.erfcx(x); T.special.xlog1py(x, y); T.special.ndtr(x)
T.segment_reduce(x, "sum", lengths=T.full((N,), 1), axis=0); (x - y).abs().max(); ((x - y) ** 2).mean(); (x * y).sum(1); x * y + w
(x - x.mean(1, keepdim=True)) / x.std(1, keepdim=True); x.sigmoid() * y.tanh(); T.stack([x, y, w]).mean(0); x[i].sum(1); T.cat([x[:2], y[2:]])
(x > 0.5).float().mean(); x.argmax(1).eq(labels).sum()""".replace("\n", "; ").split("; ")


def statements():
    """The calls; those that change their operands come last."""
    yield from (f"T.{n}(x)" for n in UNARY)
    yield from (f"T.{n}(x, y)" for n in BINARY)
    yield from (f"x.{n}({'1' if n != 'norm' else 'dim=1'})" if n != "diff" else "x.diff()" for n in REDUCTIONS)
    yield from (f"F.{n}(x{', 0.5, 0.0' if n == 'threshold' else ', 1' if n in ('softmin', 'glu') else ''})" for n in ACTIVATIONS)
    yield from OTHERS
    yield from (f"x.{n}" for n in IN_PLACE)


def _runner(library, text, n):
    """A function of a number of calls."""
    place = {"T": library, "N": n}
    library.manual_seed(0)
    exec(SETUP, place)
    if text.removeprefix("x.") in IN_PLACE:
        place["x"] = place["x"].clone()
    exec(f"def run(n):\n    for _ in range(n):\n        {text}\n", place)
    return place["run"]


def _timed(run, calls, wait):
    start = time.perf_counter()
    run(calls)
    if wait is not None:
        wait()
    return (time.perf_counter() - start) / calls


def _enough(run, wait, seconds):
    """How many calls take so long, once kernels are built and repeats recorded: some of the first ones take a thousand times as long."""
    _timed(run, 12, wait)
    count = 8
    while count < 4000 and count * min(_timed(run, count, wait) for _ in range(2)) < seconds / 2:
        count *= 2
    return count


def compare(text, n, seconds=0.025, rounds=4):
    """Microseconds of one call with clnn and with PyTorch: the best of rounds that take turns."""
    runs = [(_runner(clnn, text, n), clnn.synchronize), (_runner(torch, text, n), None)]
    counts = [_enough(run, wait, seconds) for run, wait in runs]
    best = [math.inf, math.inf]
    for _ in range(rounds):
        for place, (run, wait) in enumerate(runs):
            best[place] = min(best[place], _timed(run, counts[place], wait))
    return [1e6 * t for t in best]


def main(n=64, part=""):
    logs = []
    for text in statements():
        if part not in text:
            continue
        try:
            mine, other = compare(text, n)
        except Exception as error:                                       # a call that one of the libraries refuses at this size
            print(f"{text:70s} {type(error).__name__}: {str(error)[:90]}", flush=True)
            continue
        logs.append(math.log(other / mine))
        print(f"{text:70s} {mine:10.2f} {other:10.2f} {other / mine:8.2f}", flush=True)
    print(f"{len(logs)} calls on {n} x {n}: {math.exp(sum(logs) / len(logs)):.3f} times PyTorch's speed, {sum(l < math.log(0.9) for l in logs)} below 0.9")


if __name__ == "__main__":
    main(*(int(a) if a.isdigit() else a for a in sys.argv[1:]))
