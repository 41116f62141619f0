"""Ways of writing that programs use every day: other names of arguments, ``out=``, NumPy values among tensors, questions about dtypes."""
import copy
import importlib
import operator
import os
import re
import socket
import sys
import time

import numpy as np
import pytest
from scenarios import outcome, torch

import clnn

A = [[2.0, 1.0], [1.0, 3.0], [0.0, 1.0]]


def _gradient(t, f, values):
    x = t.tensor(values, requires_grad=True)
    f(x).sum().backward()
    return x.grad


def _weak(weak, t):
    """A dictionary whose keys are tensors themselves."""
    x, d = t.ones(2), weak.WeakIdKeyDictionary()
    d[x], d[t] = "a", "b"
    other, ref, found = d.copy(), weak.TensorWeakRef(x), [d[x], x in d, t.ones(2) in d, len(d), weak.WeakIdRef(x) == weak.WeakIdRef(x)]
    del x
    return [found, list(d.values()), len(other), ref() is None, _kinds(lambda: d[t.ones(2)])]


def _decorated(place):
    """A block as a decorator of a function and of a generator."""
    seen = []

    class block(place._DecoratorContextManager):
        def __enter__(self):
            seen.append("in")

        def __exit__(self, *error):
            seen.append("out")

    @block()
    def steps():
        yield seen.append("step")

    list(steps())
    return [block()(len)("abc"), seen[:4]]


def _texts(*calls):
    """What the error of each call says, or else that there was none."""
    texts = []
    for call in calls:
        try:
            call()
            texts.append(None)
        except Exception as error:
            texts.append(f"{type(error).__name__}: {error}")
    return texts


def _kinds(*calls):
    return [text and text.split(":")[0] for text in _texts(*calls)]


def _updated(x, *steps):
    for name, *args in steps:
        x = getattr(x, name)(*args)
    return x


def _valley(t):
    """How far L-BFGS gets in Rosenbrock's valley when its line searches come to the limit of evaluations."""
    x = t.tensor([-1.2, 1.0], requires_grad=True)
    optimizer = t.optim.LBFGS([x], lr=1, max_iter=4, max_eval=6, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
        loss.backward()
        return loss
    return [round(float(optimizer.step(closure).detach()), 2) for _ in range(3)] + [optimizer.state[x]["func_evals"]]


CALLS = {
    "size by name": lambda t: [t.zeros(size=(2, 3)), t.ones(size=[2]), t.rand(size=(2,)).shape, t.full(size=(2,), fill_value=3.0),
                               t.normal(mean=0.0, std=1.0, size=(2, 2)).shape, t.empty(size=(0, 2)), t.randint(high=2, size=(3,)).shape],
    "ends by name": lambda t: [t.arange(end=3), t.arange(start=1, end=3), t.arange(end=3, dtype=t.float32)],
    "out of factories": lambda t: [t.zeros(2, 3, out=t.empty(0)), t.arange(3, out=t.empty(3, dtype=t.int64)), t.eye(2, out=t.ones(2, 2)),
                                   t.linspace(0, 1, 3, out=t.empty(3)), t.randn(3, out=t.empty(3)).shape],
    "out of products": lambda t: [t.matmul(t.tensor(A), t.ones(2), out=t.empty(3)), t.outer(t.ones(2), t.ones(2), out=t.empty(2, 2)),
                                  t.tensordot(t.tensor(A), t.tensor(A), dims=([0], [0]), out=t.empty(2, 2))],
    "out of reductions": lambda t: [t.var(t.tensor(A), 0, out=t.empty(2)), t.amax(t.tensor(A), 1, out=t.empty(3)),
                                    t.max(t.tensor(A), 1, out=(t.empty(3), t.empty(3, dtype=t.int64)))],
    "out of triangles": lambda t: [t.tril(t.ones(2, 2), out=t.empty(2, 2)), t.diag(t.ones(2), out=t.empty(2, 2)), t.bernoulli(t.ones(2), out=t.empty(2))],
    "out of factorisations": lambda t: [t.inverse(t.eye(2) * 2, out=t.empty(2, 2)), t.linalg.svd(t.eye(2), out=(t.empty(2, 2), t.empty(2), t.empty(2, 2)))[1]],
    "input by name": lambda t: [t.inverse(input=t.eye(2)), t.logdet(input=t.eye(2)), t.det(input=t.eye(2)), t.relu(input=t.ones(1))],
    "axes": lambda t: [t.tensor(A).sum(axis=0), t.swapaxes(t.tensor(A), axis0=0, axis1=1), t.cat([t.tensor(A)] * 2, axis=1), t.tensor(A).max(axis=1)[1]],
    "no inner elements": lambda t: [t.matmul(t.ones(5, 5, 0), t.ones(0, 5)), t.matmul(t.ones(0, 5, 2), t.ones(2, 3)).shape],
    "norms of nothing": lambda t: [t.linalg.norm(t.ones(0, 3), o) for o in (1, 2, float("inf"), "nuc")] + [t.linalg.matrix_norm(t.ones(2, 0, 3), 1, keepdim=True)],
    "sums in the dtype of the target": lambda t: [t.cumsum(t.ones(3), 0, out=t.empty(3, dtype=t.int64)), t.cumprod(t.ones(3) * 1.5, 0, out=t.empty(3, dtype=t.int64))],
    "out of renorm": lambda t: [t.renorm(t.tensor(A), 2, 0, 1.0, out=t.empty(3, 2)), t.linalg.vecdot(t.tensor(A), t.tensor(A), out=t.empty(3))],
    "bounds of bool": lambda t: [t.clamp(t.tensor([True, False]), max=t.tensor(False)), t.tensor([True, False]).clamp_min(t.tensor(True))],
    "an index of nothing": lambda t: t.gather(t.ones(5), 0, t.ones(2, 0, dtype=t.int64)),
    "runs that leave rows out": lambda t: [t._segment_reduce(t.arange(20.0).reshape(10, 2), "sum", unsafe=True, **k) for k in (
        {"lengths": t.tensor([2, 3])}, {"offsets": t.tensor([1, 2, 5])})],
    "norms of no rows": lambda t: [_gradient(t, lambda w, f=f: f(t.ones(0, 1), (1,), w), [2.0]) for f in (t.nn.functional.layer_norm, t.nn.functional.rms_norm)],
    "last by -1": lambda t: [_gradient(t, lambda x: t.take_along_dim(x, t.tensor([-1, 0, -1]), 0) * t.tensor([1.0, 2.0, 4.0]), [0.0, 1.0, 2.0])],
    "output padding beyond the stride": lambda t: [t.nn.functional.conv_transpose2d(t.ones(2, 2, 4, 4), t.ones(2, 2, 4, 5), t.tensor([1.0, 2.0]), stride=2,
                                                                                  dilation=4, output_padding=3, padding=1),
                                                   t.nn.functional.conv_transpose1d(t.ones(1, 1, 3), t.ones(1, 1, 2), stride=(1,), dilation=3, output_padding=2)],
    "bicubic far outside": lambda t: [t.nn.functional.grid_sample(t.arange(16.0).view(1, 1, 4, 4), t.tensor([[[[5.0, 0.0], [-30.3, 7.1]]]]), mode="bicubic",
                                                                padding_mode=p, align_corners=a) for p in ("border", "reflection", "zeros") for a in (True, False)],
    "sections": lambda t: [t.tensor(A).split(split_size=2), t.tensor(A).tensor_split(sections=2), t.tensor(A).tensor_split(indices=[1])],
    "numpy scalars": lambda t: [t.ones(2) * np.float32(2), np.float32(2) * t.ones(2), t.arange(2) + np.int64(3), t.ones(2) / np.float64(4),
                                t.ones(2, requires_grad=True) * np.float64(2), t.arange(3) == np.int64(1), t.ones(2).clamp(max=np.float32(0.5))],
    "numpy arrays": lambda t: [t.ones(3) + np.ones(3), t.ones(2) * np.ones((2, 2), "float32"), t.ones(3) == np.ones(3), t.ones(2)[np.array([1, 0])]],
    "numpy functions": lambda t: [np.sqrt(t.ones(2) * 4), np.add(t.ones(2), 1), np.isnan(t.ones(2)), np.exp(t.zeros(()))],
    "limits": lambda t: [repr(t.finfo(d)) for d in (t.float32, t.float16, t.bfloat16)] + [repr(t.iinfo(t.int8)), t.finfo(t.float32).resolution],
    "types": lambda t: [type(t.ones(1)), t.ones(1).__class__.__name__, t.Tensor.__module__],
    "copies share": lambda t: _shallow(t),
    "one element only": lambda t: int(t.ones(2)),
    "one element only, float": lambda t: float(t.ones(0)),
    "no tensor": lambda t: t.sum([1, 2]),
    "no tensor, softmax": lambda t: t.softmax([1.0], 0),
    "rank": lambda t: [t.linalg.matrix_rank(t.eye(3), atol=0.5, rtol=0.1), t.linalg.matrix_rank(t.eye(3) * 0.3, 0.5), t.linalg.matrix_rank(t.eye(3), tol=2.0)],
    "pseudo-inverse": lambda t: [t.linalg.pinv(t.diag(t.tensor([1.0, 0.01])), **k) for k in (dict(rtol=0.1), dict(atol=0.1), {})]
    + [t.pinverse(t.diag(t.tensor([1.0, 0.01])), 0.1)],
    "least squares": lambda t: [list(t.linalg.lstsq(t.tensor(A), t.ones(3, 2), driver=d)) for d in (None, "gels", "gelsd", "gelss")],
    "least squares of vectors": lambda t: t.linalg.lstsq(t.tensor([A]), t.ones(1, 3)).solution,
    "top-level activations": lambda t: [getattr(t, n)(t.linspace(-2, 2, 5), *a) for n, a in
                                        (("relu_", ()), ("selu_", ()), ("celu_", ()), ("rrelu_", ()), ("threshold_", (0.5, 9.0)))],
    "top-level dropout": lambda t: [getattr(t, n)(t.ones(2, 3, 4), 0.5, False) for n in
                                    ("feature_alpha_dropout", "alpha_dropout_", "feature_dropout_", "feature_alpha_dropout_", "dropout_")],
    "strides": lambda t: [t.as_strided_(t.arange(6.0), (2, 2), (1, 2)), t.empty_permuted((2, 3, 4), (0, 2, 1)).stride()],
    "recurrent functions": lambda t: [list(getattr(t, n)(t.ones(3, 2, 4), s, [w(t, 0), w(t, 1), w(t, 2)[:, 0], w(t, 3)[:, 0]], True, 1, 0.0, True, False, False))
                                      for n, g in (("gru", 3), ("rnn_tanh", 1), ("rnn_relu", 1), ("lstm", 4))
                                      for w in [lambda t, k, g=g: t.full((g * 4, 4), 0.1 * k + 0.05)]
                                      for s in [t.zeros(1, 2, 4) if n != "lstm" else (t.zeros(1, 2, 4), t.ones(1, 2, 4))]],
    "cells": lambda t: [t.gru_cell(t.ones(2, 3), t.ones(2, 3), t.full((9, 3), 0.1), t.full((9, 3), 0.2)),
                        list(t.lstm_cell(t.ones(2, 3), (t.ones(2, 3), t.ones(2, 3)), t.full((12, 3), 0.1), t.full((12, 3), 0.2), t.ones(12), t.ones(12))),
                        t.rnn_tanh_cell(t.ones(2, 3), t.ones(2, 3), t.full((3, 3), 0.1), t.full((3, 3), 0.2))],
    "lists as tuples": lambda t: [x[i] for x in [t.arange(12.0).view(3, 4)] for i in (
        [[0, 1], [1, 2]], [t.tensor([0, 1]), t.tensor([1, 2])], [slice(0, 2), 1], [None, 0], [..., 1], [[0, 1]], [0, [1, 2]], [t.tensor(0), t.tensor(1)],
        [0, 1], [True, False, True], [[True, False, True]], [t.tensor(0), 1], [(0, 1), (1, 2)], [[[0, 1], [1, 2]]], np.array([[0, 1], [1, 2]]), [])],
    "lists as tuples, written": lambda t: _written(t),
    "sizes one by one": lambda t: t.ones(3).broadcast_to(2, 3),
    "dtype that is refused": lambda t: t.ones(2).long().softmax(0),
    "dtype that is refused, elementwise": lambda t: ~t.ones(2),
    "reversed": lambda t: [reversed(t.arange(3)), list(reversed(t.arange(4).view(2, 2)))],
    "sizes added": lambda t: [repr((1,) + t.Size([2])), repr(t.Size([2]) + (3,)), repr(t.Size([2]) * 2), repr(t.Size([1, 2])[1:])],
    "masked.cumsum of integers": lambda t: (lambda r: (str(r.dtype)[-5:], r))(t.masked.cumsum(t.arange(5, dtype=t.int32), 0, mask=t.arange(5) > 1)),
    "masked.logsumexp of integers": lambda t: (lambda r: (str(r.dtype)[-5:], r))(t.masked.logsumexp(t.arange(5, dtype=t.int32), 0, mask=t.arange(5) > 1)),
    "masked_scatter, broadcast": lambda t: t.zeros(3).masked_scatter(t.tensor([[True, False, True], [False, True, False]]), t.arange(6.0)),
    "covariance of integers": lambda t: [t.cov(t.tensor([[0, 2], [1, 1], [2, 0]]).T), t.corrcoef(t.tensor([[0, 1, 2], [2, 1, 0]]))],
    "asarray": lambda t: [t.asarray([1, 2], dtype=t.float32, requires_grad=True), t.asarray(np.ones(2), copy=True), t.asarray(3),
                          t.asarray(t.ones(2, requires_grad=True)), t.asarray(t.ones(2), copy=True)],
    "asarray, no copy": lambda t: t.asarray([1, 2], copy=False),
    "gradients on coordinates": lambda t: [list(t.gradient(t.tensor([4.0, 1.0, 1.0, 16.0, 3.0]), spacing=(t.tensor([-2.0, -1.0, 1.0, 4.0, 4.5]),), edge_order=e))
                                           for e in (1, 2)]
    + [list(t.gradient(t.tensor([[1.0, 2, 4, 8], [10, 20, 45, 80], [5, 4, 3, 1]]), spacing=s, edge_order=e)) for s in (2.0, [3, 0.5]) for e in (1, 2)]
    + [list(t.gradient(t.tensor([1, 2, 4, 8]))), list(t.gradient(t.arange(9.0).reshape(3, 3) ** 2, dim=1))],
    "old qr": lambda t: [list(t.qr(t.tensor(A), some=False))[1].abs(),
                         t.qr(t.tensor(A)).Q.shape, t.qr(input=t.tensor(A)).R.abs(), t.linalg.qr(t.tensor(A), mode="r").R.abs()],
    "typed constructors": lambda t: [t.FloatTensor([1, 2]), t.LongTensor(2, 0), t.BoolTensor([1, 0]), isinstance(t.ones(1), t.FloatTensor),
                                     isinstance(t.ones(1), t.LongTensor), t.ones(1).type(t.DoubleTensor), t.ones(1).type(t.LongTensor).dtype == t.int64],
    "trees": lambda t: [p.tree_map_only(int, lambda v: v + 1, {"a": [1, "x"], "b": (2.0,)}) for p in [t.utils._pytree]]
    + [t.utils._pytree.tree_any(lambda v: v == 2, [1, [2]]), t.utils._pytree.tree_all_only(int, lambda v: v > 0, [1, "a"])],
    "structures": lambda t: [[s.num_leaves, s.num_nodes, s.type, s.context, s.is_leaf(), isinstance(s, p.TreeSpec), isinstance(s.child(1), p.LeafSpec),
                              s.unflatten([1, 2, 3]), hash(s) == hash(p.tree_structure([(5, 6), 7])), p.is_namedtuple(s), p.arg_tree_leaves(1, a=[2])]
                             for p in [t.utils._pytree] for s in [p.tree_structure([(1, 2), 3])]],
    "polygamma at its poles": lambda t: [t.polygamma(2, t.tensor([0.0, -1.0, -3.0])), t.polygamma(2, t.tensor([-2, 1], dtype=t.int8))],
    "fractional pools of no samples": lambda t: [t.nn.functional.fractional_max_pool2d(t.ones(0, 1, 4, 5), 2, output_size=2).shape],
    "types of Python as dtypes": lambda t: [t.zeros(1, dtype=float), t.ones(1).to(float), t.ones(1, dtype=int), t.ones(1).to(bool),
                                             t.zeros(1, dtype=complex).dtype.itemsize],
    "parts of calls": lambda t: [t.func.functional_call(t.nn.Identity(), parameter_and_buffer_dicts={}, args=(t.ones(2),)), t.from_dlpack(t.ones(2), copy=True),
                                 t.native_group_norm(t.ones(0, 2), t.ones(2), t.ones(2), 0, 2, 1, 1, 1e-5)[0].shape,
                                 [t.backends.mha.set_fastpath_enabled(True), t.backends.mha.get_fastpath_enabled()]],
    "lists by name": lambda t: [t.flip(t.tensor(A), dims=(0, 1)), t.permute(t.tensor(A), dims=(1, 0)), t.tile(t.ones(2), dims=(2,)), t.ones(2).repeat(repeats=(2, 1)),
                                t.reshape(t.tensor(A), shape=(2, 3)), t.tensor(A).view(size=(6,)), t.broadcast_to(t.ones(2), size=(2, 2)),
                                t.ones(2).expand(size=(2, -1)), t.ones(2).new_zeros(size=(1, 2)), t.ones(2).new_full(size=(2,), fill_value=3)],
    "tensordot that broadcasts": lambda t: t.tensordot(t.ones(1, 2, 3), t.ones(4, 2, 1) * 2, dims=([0, 1], [0, 1])),
    "renorm by the greatest": lambda t: t.renorm(t.tensor(A), float("inf"), 0, 1.0),
    "diff of order 0": lambda t: t.diff(t.arange(3), n=0, prepend=t.zeros(1, dtype=t.int64)),
    "index_reduce of a scalar": lambda t: t.tensor(2.0).index_reduce(0, t.tensor([0]), t.tensor(3.0), "prod"),
    "empty matrices": lambda t: [t.linalg.pinv(t.ones(0, 0)), t.linalg.matrix_rank(t.ones(2, 0, 0)), t.linalg.pinv(t.ones(3, 0)), t.linalg.inv_ex(t.ones(2, 0, 0)).info,
                                 t.linalg.cholesky_ex(t.ones(0, 0)).info],
    "symmetric matrices": lambda t: [t.linalg.pinv(t.tensor([[2.0, 9.0], [1.0, -3.0]]), hermitian=True), t.linalg.matrix_rank(t.ones(2, 2), hermitian=True)],
    "solve_ex of vectors": lambda t: list(t.linalg.solve_ex(t.eye(2).expand(3, 2, 2) * 2, t.ones(3, 2))),
    "index_fill by a tensor, gradients": lambda t: [list(t.autograd.grad((t.index_fill(x, 1, t.tensor(i), v) * t.arange(8.0).view(2, 4)).sum(), (x, v)))
                                                    for i in ([0, 0, 1], [1]) for x in [t.zeros(2, 4, requires_grad=True)]
                                                    for v in [t.tensor(3.0, requires_grad=True)]],
    "rounded quotients, gradients": lambda t: [list(t.autograd.grad(t.div(x, y, rounding_mode=m).sum(), (x, y))) for m in ("floor", "trunc")
                                               for x in [t.tensor([3.0, 5.0], requires_grad=True)] for y in [t.tensor([2.0], requires_grad=True)]],
    "degrees of polynomials": lambda t: [t.special.chebyshev_polynomial_t(t.tensor([0.1, 0.5, 2.0]), t.tensor([0, 3, 2])),
                                         t.special.hermite_polynomial_h(t.tensor([[0.5], [1.5]]), t.tensor([1, 2, 4])),
                                         t.special.legendre_polynomial_p(0.3, t.tensor([1, 2]))],
    "assertions": lambda t: t._assert(1 > 2, "message"),
    "windows": lambda t: [getattr(t.signal.windows, n)(m, **k, sym=s) for s in (True, False) for m in (0, 1, 6, 7) for n, k in
                          (("bartlett", {}), ("blackman", {}), ("cosine", {}), ("exponential", dict(tau=2.0)), ("gaussian", dict(std=2.0)), ("hann", {}),
                           ("general_cosine", dict(a=[0.4, 0.3, 0.3])), ("general_hamming", dict(alpha=0.6)), ("hamming", {}), ("kaiser", dict(beta=3.0)),
                           ("nuttall", {}))],
    "solve, shapes": lambda t: t.linalg.solve(t.eye(4), t.ones(3, 1)),
    "solve, shapes on the right": lambda t: t.linalg.solve(t.eye(4), t.ones(4, 3), left=False),
    "solve_triangular, shapes": lambda t: t.linalg.solve_triangular(t.eye(4), t.ones(3, 2), upper=True),
    "solve_triangular, vector": lambda t: t.linalg.solve_triangular(t.eye(4), t.ones(4), upper=True),
    "one process": lambda t: _group(t),
    "kinds of errors": lambda t: _kinds(
        lambda: t.cat([]), lambda: t.stack([]), lambda: t.clamp(t.ones(2)), lambda: t.ones(2, 3).permute(0, 1, 2), lambda: t.tensor(None),
        lambda: t.ones(3).masked_select(t.ones(4).bool()), lambda: t.ones(2) * [1, 2], lambda: t.meshgrid(t.ones(2, 2), t.ones(2), indexing="ij"),
        lambda: t.utils.data.RandomSampler([]), lambda: t.zeros(2, 3).index_add_(0, t.tensor([0, 1, 0]), t.ones(2, 3)),
        lambda: t.nn.functional.ctc_loss(t.ones(5, 2, 4), t.ones(2, 3).long(), (5, 5), (4, 3)), lambda: t.ones(2).exp(1)),
    "what assert_close says": lambda t: _texts(*[lambda a=a, b=b: t.testing.assert_close(a, b) for a, b in (
        (t.tensor(1.0), t.tensor(2.0)), (1, 2), (1.0, 1.5), (t.tensor([1, 2]), t.tensor([1, 3])), (t.tensor([True]), t.tensor([False])),
        (t.ones(2).half(), t.ones(2).half() * 1.01), (t.ones(3), t.tensor([1.0, 2.0, 3.0])), ({"a": 1}, {"b": 1}))]),
    "NumPy scalars in lists": lambda t: [t.tensor([np.float32(1), 2]).dtype, t.tensor([[np.float64(1), 2]]).dtype, t.tensor([np.float16(1), 2.5]).dtype],
    "updated by arrays": lambda t: [operator.imul(operator.iadd(t.zeros(2), np.ones(2, "float32")), np.float64(3)), operator.isub(t.ones(2), np.ones((2, 2)))],
    "arguments in the old order": lambda t: _updated(t.ones(2), ("add_", 2, t.ones(2)), ("sub_", 3, t.ones(2)), ("addcmul_", 2, t.ones(2), t.ones(2)),
                                                     ("addcdiv_", 4, t.ones(2), t.ones(2) * 2), ("add", 0.5, t.ones(2))),
    "top-level norms": lambda t: [t.batch_norm(t.arange(6.0).view(3, 2), t.ones(2), None, t.zeros(2), t.ones(2), False, 0.1, 1e-5, True),
                                  t.instance_norm(t.arange(12.0).view(1, 2, 6), t.ones(2) * 2, None, None, None, True, 0.1, 1e-5, True),
                                  t.embedding(t.arange(6.0).view(3, 2), t.tensor([2, 0]))],
    "trees and their leaves": lambda t: [p.tree_map(lambda v, w: (v, w), {"a": [1, 2]}, {"a": [3, (4, 5)]}) for p in [t.utils._pytree]]
    + [t.utils._pytree.tree_leaves([1, (2, 3)], is_leaf=lambda v: isinstance(v, tuple)), t.utils._pytree.tree_map(abs, [-1, [2]], is_leaf=None)],
    "modules, repeated": lambda t: [len(list(m.modules(remove_duplicate=d))) for f in [t.nn.ReLU()] for m in [t.nn.Sequential(f, f)] for d in (True, False)],
    "questions by name": lambda t: [t.promote_types(type1=t.int8, type2=t.uint8), t.result_type(tensor=t.ones(1), other=t.tensor(1)),
                                    t.compiler.disable(lambda: 3, reason="text")(), t.nn.functional.alpha_dropout(t.ones(2))],
    "shifts too far": lambda t: [t.tensor([1, -5]) << 64, t.tensor([5, -1]) >> 70, t.tensor([3], dtype=t.int32) << t.tensor([32], dtype=t.int32),
                                 t.tensor([1]) << -1, t.tensor([-9]) >> -1, t.tensor([3], dtype=t.int8) << 6],
    "gradients at the origin": lambda t: _gradient(t, lambda x: t.atan2(x, x * 2), [0.0, 1.0]),
    "drawn from numbers without dimensions": lambda t: [t.poisson(t.tensor(0.0)), t.binomial(t.tensor(5.0), t.tensor(1.0)),
                                                        t.distributions.Poisson(t.tensor(3.0)).sample((2,)).shape],
    "no gradient through normal": lambda t: [y.requires_grad for x in [t.zeros(2, requires_grad=True)] for y in [t.normal(x, 1.0)]]
    + [_gradient(t, lambda x: t.normal(x, x + 1), [0.0, 1.0]), t.normal(0.0, 1.0, (2,), layout=t.strided).shape],
    "gradients of nothing": lambda t: [t.autograd.grad(f(x).sum(), x)[0] for f, x in (
        (lambda x: x.prod(1, keepdim=True), t.ones(3, 0, requires_grad=True)), (lambda x: x.prod(0), t.ones(0, 2, requires_grad=True)),
        (t.linalg.det, t.ones(0, 0, requires_grad=True)))],
    "windows of a number": lambda t: t.tensor(3.0).unfold(0, 1, 1),
    "histograms": lambda t: [list(t.histogram(t.ones(0), 2)), t.histogramdd(t.arange(12.0).view(2, 3, 2), (2, 2)).hist,
                             t.histogramdd(t.ones(2, 2, 1), (2,), weight=t.ones(2, 2)).hist],
    "L-BFGS out of evaluations": lambda t: _valley(t),
    "variables": lambda t: [isinstance(t.ones(1), t.autograd.Variable), isinstance(1, t.autograd.Variable)],
}


def _around(t):
    """An optimizer that holds another and never calls the base class; parameters made with the attributes of others."""
    class Around(t.optim.Optimizer):
        def __init__(self, inner):
            self.inner = inner

        def step(self, closure=None):
            return self.inner.step(closure)
    w = t.nn.Parameter(t.ones(2))
    w.sum().backward()
    Around(t.optim.SGD([w], lr=0.5)).step()
    again = type(w)(w.detach() + 1, **vars(w))
    return [w, again, again.grad]


CALLS.update({
    "optimizers around others": _around,
    "losses of one's own": lambda t: [kind(reduction="none").reduction for m in [t.nn.modules.loss] for kind in (m._Loss, m._WeightedLoss)]
    + [_kinds(lambda: t.nn.modules.loss._Loss(1, 2, 3, 4)), t.nn.modules.loss._WeightedLoss(t.ones(2)).weight],
    "weak keys": lambda t: _weak(importlib.import_module(f"{t.__name__}.utils.weak"), t),
    "blocks that decorate": lambda t: _decorated(importlib.import_module(f"{t.__name__}.utils._contextlib")),
    "seeds of workers": lambda t: [importlib.import_module(f"{t.__name__}.utils.data._utils.worker")._generate_state(2 ** 40 + 7, 3)],
    "copies of structures": lambda t: [[c == s, c.num_leaves, str(c), p.tree_unflatten([5, 6], c)] for p in [t.utils._pytree]
                                       for s in [p.tree_flatten({"a": [1, (2,)]})[1]] for c in (copy.deepcopy(s), copy.copy(s))],
    "structures of C": lambda t: [t.utils._pytree.is_structseq_instance(x) for x in (time.localtime(0), (1, 2), time.struct_time)],
    "without history": lambda t: [(x.requires_grad, x.is_leaf) if isinstance(x, t.Tensor) else x for x in
                                  t.utils.checkpoint.detach_variable((t.ones(2, requires_grad=True) * 2, t.ones(1, dtype=t.int64), "a"))],
    "pinned batches": lambda t: [importlib.import_module(f"{t.__name__}.utils.data._utils.pin_memory").pin_memory({"a": [1, ("b", 2.0)], "c": None})],
    "kinds of devices": lambda t: [str(t.device("mps")), t.device("xpu:1").index, t.device("mps") == t.device("cpu"), t.device("mps") == t.device("mps")],
})

IMPORTS = """
from torch.utils.data.dataloader import T_co; from torch._dynamo.eval_frame import is_dynamo_supported; from torch.utils._triton import has_triton
from torch import _VF; from torch._jit_internal import List, boolean_dispatch; from torch.nn.modules.rnn import apply_permutation; _VF.lstm, _VF.einsum
from torch.nn.functional import _canonical_mask, _in_projection, _in_projection_packed; from torch.nn.init import _no_grad_normal_, _no_grad_uniform_
from torch.optim.lr_scheduler import EPOCH_DEPRECATION_WARNING; from torch.serialization import default_restore_location; from torch._vmap_internals import vmap
from torch.nn.parallel.scatter_gather import is_namedtuple; from torch.utils.checkpoint import check_backward_validity; from torch.optim import _multi_tensor
import torch; torch._inductor.config.triton.unique_kernel_names = True; torch._dynamo.optimize("inductor")(abs); assert "inductor" in torch._dynamo.list_backends()
from torch.cuda.amp.common import amp_definitely_not_available; from torch.cuda import _lazy_call; from torch.utils.checkpoint import detach_variable
from torch._C._functorch import is_batchedtensor, get_unwrapped, _add_batch_dim, _remove_batch_dim; from torch._functorch.vmap import _maybe_remove_batch_dim
from torch.nn.utils._named_member_accessor import swap_tensor; from torch.nn.parameter import _ParameterMeta; from torch.distributions.kl import _KL_REGISTRY
from torch.nn.modules.module import _global_parameter_registration_hooks; from torch._ops import HigherOrderOperator, OpOverload
import torch; assert torch.qint8.itemsize == torch.quint8.itemsize == 1 and torch.qint32.is_signed and not torch.quint8.is_signed
from torch import DeviceObjType, TensorType; from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch._C import Value, Graph; import torch.utils.data._utils.pin_memory; from torch.serialization import DEFAULT_PROTOCOL
from torch.utils._pytree import _namedtuple_flatten; from torch.distributions.transforms import _clipped_sigmoid
from torch.utils.data._utils.collate import np_str_obj_array_pattern as p; assert p.search("<U3") and not p.search("<f4")
import torch.backends.cudnn as cudnn
import torch.cuda.amp as amp
from torch.cuda.amp import GradScaler, autocast, custom_bwd, custom_fwd
from torch.cuda.amp.autocast_mode import autocast
import torch.cuda.nvtx as nvtx
from torch.cuda.random import manual_seed
import torch.distributed as dist; assert dist.is_available()
import torch; from torch.distributed.tensor import DTensor, Replicate, Shard; assert Shard(0).is_shard() and not isinstance(torch.ones(1), DTensor)
from torch.distributed.tensor.placement_types import _StridedShard; from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP, MixedPrecision; from torch.distributed.fsdp.wrap import transformer_auto_wrap_policy
from torch.distributed.algorithms.join import Join; from torch.distributed.elastic.multiprocessing.errors import record
from torch.distributed.checkpoint.state_dict import get_model_state_dict; import torch.distributed.checkpoint as dcp
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.nn.functional import all_gather
from torch.distributed.distributed_c10d import _get_default_group
import torch.multiprocessing as mp; mp.get_context("spawn"), mp.spawn, mp.Process, mp.Queue
from torch.nn.parallel import DataParallel, DistributedDataParallel as DDP, data_parallel
from torch.utils.data.distributed import DistributedSampler
from torch.utils.cpp_extension import CUDA_HOME, BuildExtension, CppExtension, CUDAExtension, load, load_inline; assert CUDA_HOME is None
from torch.utils.data._utils.collate import default_collate
from torch.utils.data._utils import collate; collate.default_collate
from torch.utils import model_zoo; model_zoo.load_url
from torch.utils.dlpack import from_dlpack, to_dlpack
from torch.autograd.profiler import profile, record_function
from torch.autograd.variable import Variable
import torch.onnx; assert not torch.onnx.is_in_onnx_export()
import torch._dynamo; torch._dynamo.config.suppress_errors = True; torch._dynamo.reset()
import torch._inductor.config as config; config.coordinate_descent_tuning = True
from torch.signal.windows import hann
from torch.nn.modules.module import _addindent; assert _addindent("a\\nb", 4) == "a\\n    b"
import torch; assert torch.compiled_with_cxx11_abi()
from torch.fx.experimental.optimization import fuse, remove_dropout; from torch.export.graph_signature import InputKind
from torch.functional import einsum, norm
from torch.overrides import has_torch_function
import torch; assert not torch.mps.is_available() and not torch.xpu.is_available() and torch.cpu.is_available()
import torch; torch.Event, torch.Stream
import torch.utils.benchmark as benchmark; print(benchmark.Compare([benchmark.Timer("1 + 1", label="sum").blocked_autorange(min_run_time=0.01)]))
from torch.utils.benchmark import Timer; m = Timer("x + x", globals={"x": __import__("clnn").ones(3)}).timeit(20); assert "20 runs" in repr(m) and m.mean > 0
from torch.autograd.function import InplaceFunction, once_differentiable
from torch.serialization import add_safe_globals, safe_globals
import torch, warnings; warnings.filterwarnings("ignore", category=torch.jit.TracerWarning)
import torch; torch.cuda.FloatTensor, torch.cuda.LongTensor; assert not isinstance(torch.ones(1), torch.cuda.FloatTensor) or torch.ones(1).is_cuda
from torch.jit.annotations import BroadcastingList2, List; import torch.jit; torch.jit._script_if_tracing
from torch.onnx import operators, symbolic_opset11 as opset11; from torch.onnx.symbolic_helper import parse_args; parse_args("v")(len)
from torch.ao.quantization import DeQuantStub, QuantStub; import torch; q = torch.nn.quantized.FloatFunctional(); assert q.add(QuantStub()(torch.ones(1)), 1).item() == 2
from torch.hub import HASH_REGEX, _get_torch_home, download_url_to_file, urlparse; from torch.utils.model_zoo import tqdm
from torch.optim.optimizer import ParamsT, _default_to_fused_or_foreach, required; import torch._custom_ops, torch._subclasses.fake_tensor
import torch; k = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU); assert torch._dynamo.config.patch(a=1)(lambda: torch._dynamo.config.a)() == 1
import torch; torch.torch.Tensor; assert torch.backends.cpu.get_cpu_capability() in ("DEFAULT", "AVX2", "AVX512")
import torch; torch.compiler.set_stance("default"); torch.compiler.cudagraph_mark_step_begin(); torch.accelerator.current_device_idx
import torch; torch.ops.aten.slice.Tensor(torch.ones(3), 0, 1); torch._check(True); torch.segment_reduce
"""


def _written(t):
    got = []
    for index in ([[0, 1], [1, 2]], [t.tensor([0, 1]), t.tensor([1, 2])], [slice(0, 2), 1], [0, [1, 2]]):
        x = t.zeros(3, 4)
        x[index] = 1
        got.append(x)
    return got


def _shallow(t):
    x = t.ones(2, requires_grad=True)
    y = copy.copy(x)
    with t.no_grad():
        y += 1
    return [x, y, y.is_leaf]


def _group(t):
    with socket.socket() as free:                                           # another run of the tests may hold any fixed port
        free.bind(("localhost", 0))
        os.environ.update(MASTER_ADDR="localhost", MASTER_PORT=str(free.getsockname()[1]))
    d = t.distributed
    before = d.is_initialized()
    d.init_process_group("gloo", rank=0, world_size=1)
    x, parts, objects = t.arange(3.0), [t.zeros(3)], [None]
    d.all_reduce(x)
    d.broadcast(x, 0)
    d.barrier()
    d.all_gather(parts, x)
    d.all_gather_object(objects, {"a": 1})
    net = t.nn.parallel.DistributedDataParallel(t.nn.Linear(2, 1))
    got = [before, d.is_initialized(), d.get_rank(), d.get_world_size(), x, parts, objects, sorted(net.state_dict())]
    store = d.PrefixStore("a", d.HashStore())
    store.set("k", "v")
    w = t.nn.Parameter(t.ones(2))
    optimizer = importlib.import_module(f"{d.__name__}.optim").ZeroRedundancyOptimizer([w], t.optim.SGD, lr=0.1, momentum=0.9)
    importlib.import_module(f"{d.__name__}.nn.functional").all_reduce(w * w).sum().backward()
    optimizer.step()
    got += [store.get("k"), store.add("n", 2), store.add("n", 3), store.check(["k", "z"]), w, optimizer.param_groups[0]["lr"]]
    optimizer.consolidate_state_dict()
    got += [sorted(optimizer.state_dict()["state"][0]), d.get_process_group_ranks(d.group.WORLD), d.Backend("NCCL"), d.ReduceOp.SUM is d.ReduceOp.RedOpType.SUM]
    del store, w, optimizer
    time.sleep(0.3)     # torch's own thread drops its tensors, for which it needs the interpreter: while the group is destroyed it would wait for ever
    d.destroy_process_group()
    return got


@pytest.fixture
def as_torch():
    """clnn under the name torch; what was imported under that name is put back."""
    def mine():
        return [n for n in sys.modules if n.partition(".")[0] == "torch"]
    real = {n: sys.modules.pop(n) for n in mine()}
    sys.modules["torch"] = clnn
    yield
    for n in mine():
        del sys.modules[n]
    sys.modules.update(real)
    clnn._alias._speak("clnn")


def test_the_name_is_the_one_that_is_imported(as_torch):
    t = importlib.import_module("torch.nn") and importlib.import_module("torch")
    x = t.ones(2)
    assert (str(x.dtype), x.type(), repr(x.shape), t.__name__, type(x).__module__) == ("torch.float32", "torch.FloatTensor", "torch.Size([2])", "torch", "torch")


@pytest.mark.parametrize("line", [line for line in IMPORTS.splitlines() if line])
def test_import(line, as_torch):
    exec(line, {})
    exec(re.sub(r"\btorch\b", "clnn", line), {})


@pytest.mark.parametrize("name, why", [("package", "graphs")])
def test_missing_modules_say_why(name, why):
    with pytest.raises(ModuleNotFoundError, match=why):
        importlib.import_module(f"clnn.{name}")
    with pytest.raises(AttributeError, match=why):
        getattr(clnn, name.partition(".")[0])
    assert not hasattr(clnn, name.partition(".")[0])


def test_lists_of_tensors():
    for t in (clnn, pytest.importorskip("torch")):
        a, b = [t.tensor([1.0, 4.0]), t.tensor([-9.0])], [t.tensor([2.0, 2.0]), t.tensor([3.0])]
        got = [t._foreach_add(a, b, alpha=2), t._foreach_mul(a, [2.0, 3.0]), t._foreach_addcmul(a, b, b, 0.5), t._foreach_addcdiv(a, b, b, [1.0, 2.0]),
               t._foreach_norm(a), t._foreach_maximum(a, 0.0), t._foreach_pow(2.0, b), t._foreach_lerp(a, b, 0.25), t._foreach_clamp_min(a, 2)]
        assert t._foreach_maximum_(c := [t.zeros(2)], [t.ones(2)])[0] is c[0] and c[0].tolist() == [1, 1]
        assert t._foreach_sqrt_(b)[0] is b[0] and t._foreach_mul_(b, b)[1] is b[1]
        t._foreach_sub_(a, b, alpha=3)
        values = [[round(v, 4) for x in row for v in x.reshape(-1).tolist()] for row in (*got, a, b)]
        assert values == [[5, 8, -3], [2, 8, -27], [3, 6, -4.5], [2, 5, -7], [4.1231, 9], [1, 4, 0], [4, 4, 8], [1.25, 3.5, -6], [2, 4, 2], [-5, -2, -18], [2, 2, 3]]
        groups = t.optim.Optimizer._group_tensors_by_device_and_dtype([[a[0], b[0].double(), a[1]], [], [*b, b[0]]], with_indices=True)
        assert sorted((len(lists[0]), lists[1], [x.tolist() for x in lists[2]], at) for lists, at in groups.values()) == [
            (1, [], [b[1].tolist()], [1]), (2, [], [b[0].tolist(), b[0].tolist()], [0, 2])]
        with pytest.raises(RuntimeError, match="same number of tensors"):
            t._foreach_add(a, b[:1])
        with pytest.raises(RuntimeError, match="same number of elements as scalar list"):
            t._foreach_div(a, [])
    assert not hasattr(clnn, "_foreach_nothing")


def test_groups_of_several_are_refused():
    with pytest.raises(RuntimeError, match="world_size=2"):
        clnn.distributed.init_process_group("nccl", world_size=2, rank=0)
    with pytest.raises(ValueError, match="not been initialized"):
        clnn.distributed.get_rank()
    with pytest.raises(RuntimeError, match="one process"):
        clnn.distributed.fsdp.FullyShardedDataParallel(clnn.nn.Linear(1, 1))
    with pytest.raises(RuntimeError, match="one process"):
        clnn.distributed.init_device_mesh("cpu", (2, 1))
    mesh = clnn.distributed.init_device_mesh("cpu", (1, 1), mesh_dim_names=("data", "model"))
    assert (mesh.size(), mesh["model"].shape, mesh.get_coordinate(), mesh.ndim) == (1, (1,), [0, 0], 2)
    with pytest.raises(NotImplementedError, match="state_dict"):
        clnn.onnx.export(None, ())


def _child(i, path):
    with open(f"{path}/{i}", "w") as file:
        file.write(str(i))
    if i == 2:
        raise ValueError("as asked")
    if path.endswith("/exits"):
        sys.exit(5)


def test_spawn(tmp_path):
    clnn.multiprocessing.spawn(_child, (str(tmp_path),), nprocs=2)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["0", "1"]
    with pytest.raises(clnn.multiprocessing.ProcessRaisedException, match="as asked"):
        clnn.multiprocessing.spawn(_child, (str(tmp_path),), nprocs=3)
    (tmp_path / "exits").mkdir()
    with pytest.raises(clnn.multiprocessing.ProcessExitedException, match="terminated with exit code 5"):
        clnn.multiprocessing.spawn(_child, (str(tmp_path / "exits"),), nprocs=1)


@pytest.mark.share(3)
@pytest.mark.parametrize("name", CALLS)
def test_call(name):
    mine, theirs = outcome(CALLS[name], clnn), outcome(CALLS[name], torch)
    if isinstance(theirs, tuple) and isinstance(theirs[0], str):        # an error: its kind
        assert mine[0] == theirs[0], (mine, theirs)
    else:
        assert mine == theirs


def test_measurements_say_what_was_measured():
    shown = []
    for lib in (clnn, torch):
        b = importlib.import_module(lib.__name__ + ".utils.benchmark")
        ms = [b.Measurement(10, [1e-4 * (1 + i * 0.013 + j) for i in range(6)], b.TaskSpec("a(x)", "s", "", "L", "t", d, None, 1)) for j, d in enumerate("de")]
        wide = b.Measurement(10, [1.0, 2.0, 3.0, 9.0], b.TaskSpec("a(x)\nb", "s\nt"))
        m = b.Timer("x + x", globals={"x": lib.ones(3)}, sub_label="s", num_threads=1).timeit(5)
        table = b.Compare(ms)
        table.trim_significant_figures()
        about = [m.task_spec.stmt, m.sub_label, m.as_row_name, wide.title, wide.has_warnings, ms[0].has_warnings]
        figures = [v.significant_figures for v in (*ms, wide)] + [round(b.trim_sigfig(v, 2), 4) for v in (3.14159, 1234.0)]
        shown.append([re.sub("<.*>", "", repr(v)) for v in (*ms, wide)] + about + figures + [b.select_unit(v) for v in (1e-7, 3e-4, 2.0)] +
                     [len(b.Measurement.merge(ms + ms)[0].raw_times)] + re.findall(r"(?<=[| ])\d+\.?\d*(?= | \||$)", str(table), re.M)[-2:])
    assert [str(v) for v in shown[0]] == [str(v) for v in shown[1]]


LISTS = {
    "ones": lambda t: [t.ones(1), t.ones(1, 1)], "in lists": lambda t: [[t.ones(1)], [t.tensor(2)]], "with numbers": lambda t: [2, t.ones(1)],
    "rows first": lambda t: [[1.0, 2.0], t.ones(2)], "arrays first": lambda t: [np.ones(2), t.ones(2)], "rows": lambda t: [t.ones(2), t.ones(2)],
    "nothing": lambda t: [t.ones(0)], "row later": lambda t: [t.ones(2), [1.0, 2.0]], "types": lambda t: [t.ones(1).long(), 1.5], "flags": lambda t: (t.ones(1).bool(),),
    "text": lambda t: ["a"], "texts": lambda t: [["a", "b"]],
}


@pytest.mark.parametrize("name", LISTS)
def test_tensors_in_lists_are_numbers(name):
    """Each has one element, whatever its shape, and adds no dimension."""
    for make in (lambda t: t.tensor(LISTS[name](t)), lambda t: t.as_tensor(LISTS[name](t), dtype=t.float64), lambda t: str(t.tensor(LISTS[name](t)).dtype)):
        assert outcome(make, clnn) == outcome(make, torch)


def test_linspace_to_the_bit():
    rng = np.random.default_rng(0)
    for _ in range(50):
        start, end = rng.uniform(-10, 10, 2)
        steps = int(rng.integers(1, 200))
        for dtype in ("float32", "float64"):
            mine, theirs = (lib.linspace(start, end, steps, dtype=getattr(lib, dtype)).numpy() for lib in (clnn, torch))
            np.testing.assert_allclose(mine, theirs, rtol=0 if dtype == "float32" else 1e-15, atol=0 if dtype == "float32" else 1e-14)
    if not clnn.get_default_device().physical.has_fp64:
        return
    n = 40001                                                   # long ones are made on the device
    assert (clnn.linspace(-1, 7, n).numpy() == torch.linspace(-1, 7, n).numpy()).all()
    assert (clnn.arange(0.5, n, 1.25).numpy() == (0.5 + 1.25 * np.arange(32001)).astype(np.float32)).all()


def test_in_place_through_views_keeps_what_gradients_need():
    def run(t, name):
        w = t.tensor([[0.5, 1.0], [0.3, 0.2]], requires_grad=True)
        u = w.clone()
        u[1].mul_(2)
        getattr(u.t()[0], name)()
        u.sum().backward()
        x = t.full((2, 2), 0.5)
        x[1] += 1
        v = x[0].exp()
        x[0] = v
        return [w.grad, v, x]
    for name in ("exp_", "sigmoid_", "tanh_", "sqrt_", "relu_"):
        mine, theirs = (outcome(lambda t: run(t, name), lib) for lib in (clnn, torch))
        assert mine == theirs


WARNINGS = {
    "mse": lambda t, F: F.mse_loss(t.ones(2, 3), t.ones(3)), "kl": lambda t, F: F.kl_div(t.ones(2), t.ones(2)), "softmax": lambda t, F: F.softmax(t.ones(2)),
    "module": lambda t, F: t.nn.Softmin()(t.ones(2)), "std": lambda t, F: t.ones(1).std(), "meshgrid": lambda t, F: t.meshgrid(t.ones(2), t.ones(2)),
    "tensor": lambda t, F: t.tensor(t.ones(1)), "upsample": lambda t, F: F.upsample(t.ones(1, 1, 2, 2), scale_factor=2),
    "workers": lambda t, F: t.utils.data.DataLoader([1], num_workers=os.cpu_count() + 1),
}


@pytest.mark.parametrize("name", WARNINGS)
def test_warnings_point_here(name):
    with pytest.warns(Warning) as seen:
        WARNINGS[name](clnn, clnn.nn.functional)
    assert [w.filename for w in seen] == [__file__]
