"""Short expressions of corners that programs reach, evaluated in PyTorch and in clnn: both give the same, or raise the same kind of exception."""
import warnings

import pytest

import clnn
from clnn._tensor import override

other = pytest.importorskip("torch")

# A line is an expression; ``a; b`` runs a first. T is tensor, S an identity matrix in coordinates.
LINES = r"""
torch._foreach_add([T([1.]), T([2.])], 1), torch._foreach_norm([T([3., 4.])]), torch._foreach_clone([T([1.])])
torch._foreach_sqrt([])
torch._foreach_add([T([1.])], [1., 2.])
torch.arange(np.float32(2)), torch.arange(np.float64(2)), torch.arange(np.int16(2))
torch.addmm(2, torch.ones(2, 2), 3, torch.ones(2, 2), torch.ones(2, 2)), torch.addmm(2, torch.ones(2, 2), torch.ones(2, 2), torch.ones(2, 2))
torch.ones(2, 2).addmm_(2, torch.ones(2, 2), torch.ones(2, 2)), torch.ones(2, 2).addr_(2, 3, torch.ones(2), torch.ones(2))
torch.add(torch.ones(2), 3, 4), torch.ones(2).add(1, 2), torch.addcmul(torch.ones(2), 3, torch.ones(2), torch.ones(2))
torch.add(3, torch.ones(2), torch.ones(2))
torch.sspaddmm(S, S, torch.ones(2, 2), beta=2, alpha=3), torch.sspaddmm(2, S, 3, S, torch.ones(2, 2)), S.smm(torch.ones(2, 2)), torch.saddmm(S, S, torch.ones(2, 2))
torch.smm(torch.eye(2), torch.ones(2, 2))
torch.sparse_coo_tensor([[0]], [1.]).indices(), S.float_power(2), torch.zeros(2, 2, layout=torch.sparse_csr), torch.empty(2, layout=torch.sparse_coo)
S.to_sparse_csr().stride()
torch.testing.assert_close(S, S)
torch.testing.assert_close(S, torch.eye(2))
torch.testing.assert_close(S, torch.eye(2), check_layout=False)
torch.testing.assert_close(S, 2 * S)
torch.testing.assert_close(S.to_sparse_csr(), torch.eye(2).flip(0).to_sparse_csr())
torch.full((2,), 300, dtype=torch.uint8)
torch.full((2,), 1e40)
torch.full((2,), -200, dtype=torch.uint8), torch.full((1,), inf, dtype=torch.float16), torch.full((1,), 1000.)
torch.zeros(T([2, 3]))
torch.tril_indices(-3, 3)
torch.combinations(T([1, 2, 3]), r=0), torch.block_diag(), torch.cartesian_prod(T([1, 2]))
torch.combinations(T([1, 2, 3]), r=-1)
torch.block_diag(T([[[1]]]))
torch.cartesian_prod(T([[1, 2]]))
torch.meshgrid(T([1]), T([3.]), indexing="ij")
torch.randint(0, 300, (2,), dtype=torch.uint8)
torch.randperm(300, dtype=torch.uint8)
torch.hann_window(-1)
torch.hann_window(4, dtype=torch.int32)
torch.frombuffer(bytearray(b""), dtype=torch.int16)
torch.zeros(2, 3, 4).fill_diagonal_(5)
torch.arange(3).index_add(0, T([0]), T([1]), alpha=2.5), torch.binomial(T([-2.]), T([1.]))
torch.zeros(1, 2, 1).squeeze((0, 0))
torch.arange(7).tensor_split(T([1.]))
T(1).tensor_split(2)
torch.arange(6).unfold(0, -1, 1)
torch.renorm(torch.ones(2, 2), 2, 0, -1)
x = T([0., 1., -1.], requires_grad=True); torch.autograd.grad((0. ** x).sum(), x)
y = T([5., 6., 7.]); torch.zeros(2).set_(y.storage(), 1, (2,), (1,)), torch.empty(0).set_(y.untyped_storage())
s = torch.FloatStorage([1., 2.]); s.long().tolist(), s.is_shared(), isinstance(s, torch.FloatStorage), isinstance(s, torch.LongStorage), s.type()
x = T([1., 2.]); _ = x.untyped_storage().copy_(T([7., 8.]).untyped_storage()); x, x.storage().fill_(0.).tolist(), x
g = []; x = torch.ones(2, requires_grad=True).sum(); _ = x.grad_fn.register_hook(lambda a, b: g.append((a, b))); x.backward(), g
torch.set_grad_enabled(True), repr(torch.ones(1, requires_grad=True).view(1).grad_fn.next_functions[0][0])[:16]
m, k = masked(T([1., 2., 3.]), T([True, False, True])), masked(T([[1, 2], [3, 4]]), T([[True, False], [False, False]])); m, k, m + m, 2 * m, m > 1, k[0], k[1, 0], m.sin()
m, k = masked(T([1., 2., 3.]), T([True, False, True])), masked(T([[1., 2.], [3., 4.]]), T([[True, True], [False, False]])); m.sum(), k.mean(1), k.amax(0), k.softmax(1)
k = masked(T([[1., 2.], [3., 4.]]), T([[True, True], [False, True]])); k.view(4), torch.cat([k, k]), torch.where(T([[True], [False]]), k, k + 1), k.to_tensor(7)
masked(T([1., 2.]), T([True, False])) + masked(T([1., 2.]), T([True, True]))
masked(T([1., 2.]), T([True])), 1
torch.matmul(masked(T([1., 2.]), T([True, False])), torch.ones(2))
g = masked(T([1., 2.]), T([True, False]), requires_grad=True); (g * g).sum().backward(), g.grad, g.get_data().detach(), g.get_mask()
x = torch.zeros(1, 3).expand(2, 3); _ = x.fill_(1); y = torch.ones(2, 1).expand(2, 3); _ = y.zero_(); x, y
torch.zeros(1, 3).expand(2, 3).add_(1)
torch.linalg.cond(torch.stack([torch.eye(2), torch.zeros(2, 2)]), 1), torch.svd(torch.eye(2), compute_uv=False).U, torch.linalg.cond(T([[nan, 1.], [0., 1.]]), 1)
torch.linalg.eig(T([[nan, 1.], [-1., 0.]]))
torch.zeros(3).mT
x = torch.arange(24.).view(2, 3, 4).permute(0, 2, 1); x[T([1, 1])], x[[0]], x[T([True, False])], x[T([1]), 1:]
x = torch.arange(24.).view(2, 3, 4).permute(0, 2, 1).requires_grad_(); y = x[T([1, 1])]; y.sum().backward(), x.grad, type(y.grad_fn).__name__
F.dropout(torch.zeros(2, 3, 4).permute(0, 2, 1)), F.dropout(torch.zeros(2, 3).t(), inplace=True)
a = torch.nested.nested_tensor([torch.ones(1, 2), torch.ones(3, 2)], layout=torch.jagged); b = a.transpose(1, 2); b.shape[:2], b.transpose(1, 2).shape[2], a.shape[2]
torch.zeros(3).scatter_reduce(0, T([0]), T([1.]), "max"), torch.zeros(3).scatter_reduce(0, T([0]), T([-1.]), "min", include_self=False)
torch.cholesky_solve(torch.ones(2, 1), torch.eye(3))
torch.linalg.householder_product(torch.ones(2, 3), torch.ones(2))
torch.linalg.householder_product(torch.ones(3, 2), torch.ones(3))
torch.linalg.householder_product(torch.ones(3, 2), torch.ones(2, 2))
torch.linalg.householder_product(torch.ones(3, 2).double(), torch.ones(2))
torch.linalg.lu_solve(torch.eye(2), T([1, 2], dtype=torch.int32), torch.ones(3, 1))
torch.linalg.lu_solve(torch.ones(2, 3), T([1, 2], dtype=torch.int32), torch.ones(2, 1))
torch.linalg.lu_solve(torch.eye(2), T([1, 2]), torch.ones(2, 1))
torch.lu_unpack(torch.eye(2), T([1, 2]))
x = T([[0., 1.], [1., 1.], [0., 0.]]); x.nonzero(), torch.argwhere(x), torch.where(x), torch.where(torch.arange(9000).view(90, 100) % 7 == 1), torch.nonzero(x[0])
a, b = torch.ones(2, 3, 4, requires_grad=True), torch.ones(4, 5); torch.einsum("bld,dn->bldn", a, b), torch.einsum("bld,dn->nbl", a, b), torch.einsum("bld->dlb", a)
a, b = torch.ones(2, 3, requires_grad=True), torch.ones(3, 4); torch.einsum("ij,jk,kl->il", a, b, b.t()), torch.einsum("bi,bo->boi", a, a)
x = torch.ones(2, 3, requires_grad=True); x.t().reshape(6), x.reshape(6), x.t().flatten(), x.t().contiguous().view(6)
x = torch.ones(3, requires_grad=True); y = x.exp(); _ = y.mul_(2); words(y.sum().backward)
x = torch.ones(3, requires_grad=True) * 2; y = x * x; x[0] = 5.; words(y.sum().backward)
x, w = torch.ones(3, requires_grad=True), torch.ones(3); y = x * w; _ = w.add_(1); words(y.sum().backward)
f = lambda c, x: c.mark_dirty(x) or x; A = type("A", (torch.autograd.Function,), {"forward": f}); words(lambda: A.apply(torch.ones(1, requires_grad=True)))
i = torch.inference_mode(); _ = i.__enter__(); x = torch.ones(2); _ = i.__exit__(None, None, None); words(lambda: x * torch.ones(2, requires_grad=True))
p = torch.zeros(5, 2, 4).log_softmax(2); [words(lambda: F.ctc_loss(p, torch.ones(n, dtype=torch.long), l, (3, 3))) for n, l in ((7, (5, 5)), (6, (5, -1)), (6, (5, 6)))]
D = torch.distributions; torch.vmap(lambda m: D.Bernoulli(logits=m).log_prob(torch.ones(2)))(torch.eye(2)), torch.vmap(lambda m: D.Beta(2., 1.).log_prob(m))(torch.eye(2))
D = torch.distributions; words(lambda: torch.vmap(lambda m: D.Normal(0., m, validate_args=True))(T([[0.5, -1.], [2., 0.]])))
words(lambda: torch.func.grad(lambda x: x.sum())(T([1])))
import copy; g = torch.fx.symbolic_trace(torch.nn.ReLU()); type(g).__name__, type(copy.deepcopy(g)).__name__, type(copy.copy(g)).__name__
words(lambda: torch.nn.functional.ctc_loss(torch.zeros(5, 2, 4), torch.ones(2, 3, dtype=torch.long), (5, 5), (3, 4)))
[words(lambda: torch.zeros(2, 5).scatter_add(d, torch.zeros(n, dtype=torch.long), torch.ones(k))) for d in (0, 1) for n, k in (((4, 6), (4, 5)), ((4, 5), (3, 5)))]
[words(lambda: F.grid_sample(torch.zeros(3, 3, 4, n), torch.zeros(k), align_corners=False)) for n, k in ((4, (2, 4, 4, 2)), (4, (3, 4, 4, 3)), (0, (3, 4, 4, 2)))]
words(lambda: torch.zeros(3).index_add_(0, T([0, 1]), torch.ones(3))), words(lambda: torch.zeros(3).index_copy(0, T([0, 1]), torch.ones(3)))
words(lambda: F.ctc_loss(torch.zeros(5, 3, 4), torch.ones(2, 3, dtype=torch.long), T([5, 5, 5]), T([3, 2, 1])))
x = torch.ones(3, 2, requires_grad=True); f = lambda *a: torch.vmap(lambda r: r, *a)(x); f() is x, type(torch.vmap(torch.exp)(x).grad_fn).__name__, f(0, -1).shape
x = T([1.5]).double().requires_grad_(); words(lambda: torch.autograd.gradcheck(lambda x: x.detach() + x, x))
torch.clamp(T([1., 1., nan]), nan, 2.), torch.clamp(T([1., 1.]), T([nan, 0.]), T([2., nan])), torch.clamp(T([1., 5., 0.]), 3., 2.)
F.logsigmoid(T([inf, -inf, nan, 0.]))
torch.atanh(torch.complex(T([-0.99999, -1., -0.5, 0.5]), T([1e-3, 1e-4, 0., 0.])))
(torch.polygamma(2, T([-2.01, 0.2])) / 10).long(), torch.polygamma(2, T([0., -1.]))
torch.special.gammainc(T([1e3, 1e4, 1e6, 300.]), T([1003., 10010., 1e6, 250.])), torch.special.gammaincc(T([1e3, 1e4, 1e6, 300.]), T([1003., 10010., 1e6, 250.]))
x = T([0., 1.], requires_grad=True); g, = torch.autograd.grad(torch.special.i1(x).sum(), x, create_graph=True); g, torch.autograd.grad(g.sum(), x)
x, n = T([[-1.], [0.5], [2.], [1.0001]]), T([-1, 0, 1, 5, 12, 200]); [getattr(torch.special, f"chebyshev_polynomial_{k}")(x, n) for k in "tuvw"]
x, n = T([[-1.], [0.5], [2.], [1.0001]]), T([-1, 0, 1, 5, 12, 200]); [getattr(torch.special, f"shifted_chebyshev_polynomial_{k}")(x, n) for k in "tuvw"]
x, n = T([[-1.], [0.5], [0.]]), T([-1, 0, 1, 5, 12]); s = torch.special; s.hermite_polynomial_h(x, n), s.hermite_polynomial_he(x, n)
x, n = T([[-1.], [0.5], [0.]]), T([-1, 0, 1, 5, 12]); s = torch.special; s.laguerre_polynomial_l(x, n), s.legendre_polynomial_p(x, n)
torch.special.chebyshev_polynomial_t(T([2., 1.5]), 10 ** 7), torch.special.hermite_polynomial_h(T([0.5]), 10 ** 6)
torch.hypot(T([1, 2]), 2)
torch.roll(T(1.), 1, 0)
x, m, w = torch.arange(72.).view(3, 2, 3, 4), T([3., nan, 5., nan])[::2], torch.ones(2, requires_grad=True); F.batch_norm(x, m, m, w).mean().backward(), w.grad
x, t = torch.geqrf(2 * torch.eye(2)); [y.abs().tolist() for y in (torch.ormqr(x, input2=t, input3=x), torch.cholesky_solve(x, input2=-x))]
x = torch.eye(2); torch.linalg.tensorsolve(x, other=x[0]), torch.linalg.lstsq(x, b=x[0]).solution
torch.tensor_split(torch.ones(3), tensor_indices_or_sections=T([1, 2]))
a, b = T([1., 2., 3.], requires_grad=True), T([2., 1., 3.], requires_grad=True); torch.autograd.grad(torch.nextafter(a, b).sum(), (a, b))
torch.polar(T([1, 2]), 2)
torch.alias_copy(torch.ones(2), out=torch.ones(2).double())
torch.lerp(torch.ones(2), torch.ones(2), 0.5, out=torch.ones(2).double())
torch.cumsum(torch.ones(2), 0, dtype=torch.float32, out=torch.ones(2).double())
torch.diff(T([1., 4.]), out=torch.zeros(1).double()), torch.diff(T([1, 4]), out=torch.zeros(1))
torch.hash_tensor(T([1., 2., 3.]), out=torch.zeros(0, dtype=torch.uint64))
[o.shape for o in torch.native_batch_norm(torch.ones(2, 3, 4), *[None] * 4, True, 0.1, 1e-5, out=tuple(torch.ones(0) for _ in range(3)))]
torch.hash_tensor(T([1., 2., 3.]), out=torch.zeros(0))
b = T([0., 1.]); h = torch.histogram(T([0.5]), b); _ = b.zero_(); h.bin_edges, T([2.]).__rdiv__(3.)
x = torch.eye(3)[None]; v, i = F.max_pool2d(x, 2, 1, return_indices=True); torch.ops.aten.max_pool2d_with_indices_backward(v + 1, x, [2], [1], [0], [1], False, i)
x = torch.ones(2, 2).bfloat16().requires_grad_(); g, = torch.autograd.grad(torch.addmm(x, x, x).sum(), x, create_graph=True); g + torch.autograd.grad(g.sum(), x)[0]
x = torch.ones(2, 4, 3).transpose(1, 2); [(a + b).stride() for a, b in ((torch.ones(3, 4), x), (x, torch.ones(3, 4)), (torch.ones(1).expand(2, 3, 4), x))]
x = torch.ones(4, 3).t(); torch.where(torch.ones(2, 1, 1) > 0, x, torch.ones(4)).stride(), torch.zeros_like(x[:, None].expand(3, 2, 4)).stride()
x = torch.ones(3, 4).t().requires_grad_(); x.sin().sum().backward(create_graph=True); x.grad.stride()
x, y = (torch.ones(3, 4).t().requires_grad_() for _ in range(2)); torch.autograd.grad(x.sum(), y, allow_unused=True, materialize_grads=True)[0].stride()
x = torch.ones(4, 6)[:, ::2].requires_grad_(); torch.ones(4, 4).matmul(x).t().contiguous().sum().backward(); x.grad.stride()
F.linear(torch.ones(3, 4), torch.ones(2, 3, 4))
F.linear(torch.ones(()), torch.ones(3, 4))
torch.where(torch.ones(2) > 0, torch.ones(2), (torch.ones(2),) * 2).tolist()
torch.lerp(torch.ones(2), (1., 2., 3., 4.), torch.ones(2)).tolist()
torch.full((2,), (1, 2)).tolist()
torch.ones(2).fill_((1, 2)).tolist()
torch.eye(2).repeat_interleave(np.int64(2)), torch.eye(2).repeat_interleave(np.array(2), 0)
torch.autocast("cpu", torch.bfloat16)(F.linear)(torch.ones(3, 4).double(), torch.ones(4, 4))
torch.autocast("cpu", torch.bfloat16)(torch.matmul)(torch.ones(4, 4), torch.ones(4, 4).double())
F.adaptive_avg_pool2d(torch.ones(3, 4), 1), F.adaptive_avg_pool3d(torch.ones(1, 2, 2), 1).shape
x, _ = torch.ones(3, requires_grad=True), torch.manual_seed(0); words(x.normal_), words(x.bernoulli_), words(x[:2].uniform_), torch.rand(2).tolist()
x = torch.ones(6).view(2, 3).requires_grad_(); y = torch.no_grad()(lambda: (x[:1], x.t()[0], torch.ones(2, requires_grad=True)[:1]))(); [t.requires_grad for t in y]
f = torch.no_grad()(lambda: torch.inference_mode(False)(torch.is_grad_enabled)()); f(), torch.is_grad_enabled()
f = torch.func.grad(lambda x: (x.sin() * x).sum()); g = torch.inference_mode()(lambda x: (f(x * 1), f(x)))(torch.ones(2)); [h.is_inference() for h in g], g
f = torch.inference_mode()(lambda x: torch.func.vjp(torch.sin, x)[1](x)[0]); f(torch.ones(2)).is_inference(), f(torch.ones(2))
x = torch.ones(1, 2, 2).half().requires_grad_(); g = torch.autograd.grad(torch.baddbmm(x, x, 2 * x).sum(), x, create_graph=True); g, torch.autograd.grad(g[0].sum(), x)
x = torch.arange(4.); [(f(x, T([1]), reduction=r), f(x, T([1]), reduction=r).shape) for f in (F.nll_loss, F.cross_entropy) for r in ("none", "mean", "sum")]
F.nll_loss(torch.ones(4), T([1, 2]))
F.embedding_bag(T([0, 9]), torch.ones(3, 2), T([0])).tolist()
F.hardtanh(T([1, 2]).byte(), -1, 1)
F.layer_norm(torch.ones(2, 3), 3)
F.rms_norm(torch.ones(2, 3), 3)
F.interpolate(torch.ones(1, 1, 4), size=2.5)
F.interpolate(torch.ones(1, 1, 4, 4), size=2, mode="lanczos")
torch.nn.utils.rnn.pack_padded_sequence(torch.ones(0, 2), [1, 1])
torch.nn.utils.rnn.PackedSequence(torch.ones(3))
torch.nn.GRU(3, 4, proj_size=2)
torch.nn.RNN(3, 4, sizes=2)
torch.nn.utils.convert_conv2d_weight_memory_format(torch.nn.Conv2d(1, 2, 3), torch.channels_last).weight.stride()
torch.utils.data.IterableDataset()
m = torch.nn.Linear(1, 1); p = dict(m.named_parameters()); words(lambda: torch.func.functional_call(m, (p, p), (torch.ones(1, 1),)))
torch.ops.aten.native_dropout_backward(torch.ones(2), T([True, False]), 2.), F.margin_ranking_loss(T([3]), T([2]), T([-1]))
x, y = (torch.arange(64.) * 37 % 17 - 8) / 7, (torch.arange(64.) * 29 % 23 - 11) / 3; [torch.lerp(x, y, w).view(torch.int32).tolist() for w in (0.3, 0.7, x)]
x, y = (torch.arange(64.) * 37 % 17 - 8) / 7, (torch.arange(64.) * 29 % 23 - 11) / 3; torch.addcdiv(x, y, x + 9, value=0.3).view(torch.int32).tolist()
x, s = (T([1., 1., k], requires_grad=True) for k in (1, 0)); torch.autograd.grad(x.scatter_reduce(0, T([0, 0, 1]), s, "amin", include_self=False), (x, s), x)
s = T([[1., 0.]], requires_grad=True); [torch.autograd.grad(torch.zeros(4, 5).scatter_reduce_(1, T([[0, 1]]), s, "amax", include_self=e).sum(), s) for e in (True, False)]
p = torch.zeros(4, 2, 3).log_softmax(2).requires_grad_(); torch.autograd.grad(F.ctc_loss(p, T([[1] * 3] * 2), (4, 4), (3, 2), reduction="sum"), p)[0].mul(8).round()
x = torch.arange(9.).view(1, 1, 3, 3); [F.interpolate(x, scale_factor=f).sum((0, 1, 2)) for f in (2.1, 1.05, 2.9)], F.interpolate(x[0], scale_factor=2.1).sum((0, 1))
x = torch.arange(252.).view(1, 4, 63, 1); [F.interpolate(y, scale_factor=2.01)[0, 0, :, 0] for y in (x[:, :, 1:10], x, x.to(memory_format=torch.channels_last))]
torch.ones(2).add(torch.ones(2), alpha=True)
torch.sub(T([1, 2]), T([1, 2]), alpha=True)
T([True, False]).add(T([True, True]), alpha=True), torch.ones(2).add(torch.ones(2), alpha=1)
F.softmax(torch.ones(2), 0, 3, torch.float64), F.log_softmax(torch.ones(2), 0, 3), F.softmin(torch.ones(2), 0, 3, torch.float64)
torch.cumsum(torch.ones(2), 0, dtype=1)
torch.full(2, 3)
torch.ones(2).unique("a")
torch.result_type(1, "a")
torch.can_cast(1, 2)
torch.broadcast_shapes("a")
torch.broadcast_shapes(1.5)
torch.max(torch.ones(2, 3), 0, out=(torch.ones(3).double(), T([1, 2, 3])))
torch.cummax(torch.ones(2, 3), 0, out=(torch.ones(3).double(), T([1, 2, 3])))
torch.range(0, 3, out=torch.ones(0).double()), torch.range(0, 3, out=torch.ones(0).long())
torch.exp(torch.ones(2), out=1)
x, n = torch.ones(2).bfloat16(), T([2, 3]).byte(); torch.addcmul(x, n, n, value=0.5), torch.addcmul(x.double(), n, n.half(), value=0.3), torch.addcdiv(x, n, x, value=0.3)
b, n = T([True, False]), T([2, 3]); torch.addcmul(b, b, n), torch.addcmul(b, n.half(), b, value=0.5), torch.addcmul(b, b, T(2)), torch.addcmul(n, b, b)
b = T([True, False]); torch.addcmul(b, b, b)
x = torch.ones(1, 2, 3); x.count_nonzero(0, 1), x.count_nonzero(0, True), x.count_nonzero(-1), x.count_nonzero((0, 2))
torch.ones(2, 3).count_nonzero(0, 0)
x = torch.ones(2, 3); x.amax(np.int64(1)), x.amin(np.int64(-1)), torch.amax(input=x, dim=np.int32(0))
torch.ones(0).amax([])
b = torch.zeros(8); o = b[::2]; _ = torch.add(torch.ones(3), 1, out=o); o, b, o.stride(), o._base is b, o._version
b = torch.zeros(8); o = b[6:]; _ = torch.add(torch.ones(5), 1, out=o); o, b, b.untyped_storage().nbytes()
b = torch.zeros(2).double(); v = b[1:]; _ = torch.exp(torch.zeros(4, 3), out=b); b, v
b = torch.ones(8); o = b[:3]; _ = torch.add(o.sum(), torch.ones(12), out=o); o, b
n = np.zeros(5, np.float32); t = torch.from_numpy(n); _ = torch.add(torch.ones(4), 1, out=t); t, n
torch.add(torch.ones(4), 1, out=torch.from_numpy(np.zeros(3, np.float32)))
p = torch.ones(3).requires_grad_(); f = lambda: ((p * 2).requires_grad, torch.is_grad_enabled()); torch.inference_mode()(torch.enable_grad()(f))(), f()
f, e, m = torch.is_grad_enabled, torch.enable_grad(), torch.inference_mode; i = m(); i(lambda: (e(torch.no_grad()(f))(), e(i(f))(), m(False)(f)(), f()))(), f()
p = torch.ones(3); v, w = p[0], p[1:].view(2, 1); _ = p.requires_grad_(); v.requires_grad, w.requires_grad, v.is_leaf, v.grad_fn, (w * 2).requires_grad
p = torch.ones(3); v = p[0]; _ = p.requires_grad_(), p.requires_grad_(False); v.requires_grad, v.add_(1), p
p = torch.ones(3); v = p[0]; _ = p.requires_grad_(); v.add_(1)
x = torch.ones(3, requires_grad=True); y = x * 3; x.logical_not_(), x, y.logical_and_(torch.zeros(3)), type(y.grad_fn).__name__
S = torch.Size([1, 2]); S + (3,), (3,) + S, S + S, S * 2, 2 * S, S * True, type(S[:1]), S[True], torch.Size(x for x in S), torch.Size({3: 1}), torch.Size()
torch.Size([T(3), T([4]), True, T(True)]), torch.Size(T([3, 4])), torch.Size(np.array([3, 4])) == (3, 4), torch.Size((-1,)) == (-1,)
S = torch.Size([1, 2]); words(lambda: torch.Size([1, 2.])), words(lambda: torch.Size([T([1, 2])])), words(lambda: S + (1.5,)), words(lambda: S + [3])
torch.Size([1, None])
[3] + torch.Size([1])
torch.Size([1]) * 2.
torch.Size([1]) + 2
import pickle; S = torch.Size([1, 2]); pickle.loads(pickle.dumps(S)), {S: 3}[1, 2]
""".strip().splitlines()


def shown(value):
    """What a program can see of a value, as text."""
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__}[{', '.join(map(shown, value))}]"
    if hasattr(value, "is_sparse"):
        strides = value.stride() if "strided" in str(value.layout) and value.numel() else None
        return f"{value!r} {tuple(value.shape)} {strides} {value.dtype}"
    return repr(value)


def words(call):
    """The text of what a call raises."""
    try:
        return call()
    except Exception as error:
        return str(error)


def outcome(line, lib):
    import numpy as np
    names = dict(torch=lib, np=np, T=lib.tensor, words=words, S=lib.eye(2).to_sparse(), F=lib.nn.functional, nan=float("nan"), inf=float("inf"),
                 masked=lambda *a, **k: override.activate() or lib.masked.masked_tensor(*a, **k))
    *before, last = line.split("; ")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec("\n".join(before), names)
            return shown(eval(last, names)).replace("clnn.", "torch.")
        except Exception as exc:
            return next(c.__name__ for c in type(exc).__mro__ if c.__module__ == "builtins")


@pytest.mark.parametrize("line", LINES)
def test_same(line):
    assert outcome(line, clnn) == outcome(line, other)
