"""Memory formats: strides and contiguity are PyTorch's, and programs that ask for channels_last give what they give without it."""
import warnings

import numpy as np
import pytest
from scenarios import torch

import clnn

CASES = [
    "y",
    "x.contiguous(memory_format=cl)",
    "y.to(memory_format=cl) is y",
    "y.contiguous(memory_format=cl) is y",
    "t.zeros_like(y)",
    "t.empty_like(y,memory_format=t.contiguous_format)",
    "t.rand_like(y)",
    "t.randn_like(y)",
    "t.randint_like(y,3)",
    "t.full_like(y,2)",
    "t.zeros_like(x,memory_format=cl)",
    "t.empty(2,3,4,5,memory_format=cl)",
    "y.clone()",
    "y.clone(memory_format=t.contiguous_format)",
    "x.clone(memory_format=cl)",
    "y+1",
    "y+x",
    "x+y",
    "y.relu()",
    "x[0].to(memory_format=cl)",
    "x.is_contiguous(memory_format=t.preserve_format)",
    "x.is_contiguous(memory_format=t.channels_last_3d)",
    "t.zeros_like(x.transpose(0,1))",
    "t.zeros_like(x[:,::2])",
    "t.zeros_like(x[:,::2].transpose(0,3))",
    "t.zeros_like(x[:1].expand(2,3,4,5))",
    "x[:,::2].transpose(0,3).clone()",
    "x[:1].expand(2,3,4,5).clone()",
    "t.randn(2,1,4,5).is_contiguous(memory_format=cl)",
    "t.randn(2,3,1,1).is_contiguous(memory_format=cl)",
    "t.ones(2,1,4,5).to(memory_format=cl)",
    "t.ones(2,3,1,1).to(memory_format=cl)",
    "t.ones(2,3,4,5,6).to(memory_format=t.channels_last_3d)",
    "y.reshape(2,-1)",
    "y.permute(0,2,3,1).is_contiguous()",
    "y.to('cpu')",
    "y.cpu()",
    "t.ones_like(y,dtype=t.int32)",
    "y.contiguous()",
    "x.data.to(memory_format=cl)",
    "t.empty_strided((2,3),(1,2))",
    "y[0]",
    "y[:,0]",
    "t.where(y>0,y,x)",
    "x.to(y)",
    "x.type_as(y)",
    "y.dim_order()",
    "t.zeros(0,3,4,5).to(memory_format=cl)",
    "t.zeros(2,0,4,5).is_contiguous(memory_format=cl)",
    "y.to(device='cpu',memory_format=t.contiguous_format)",
    "y.to(memory_format=t.contiguous_format) is y",
    "y.to(memory_format=t.preserve_format) is y",
    "t.zeros_like(y[:,:2])",
    "t.zeros_like(y)+y",
    "y.mul_(1).add_(0)",
    "(y*2).sum((2,3))",
    "y.flatten(1)",
    "y.to('meta').stride()",
    "x.clone(memory_format=t.channels_last_3d)",
    "y.detach()[:,1:].contiguous(memory_format=cl)",
    "y.to(t.int32)",
    "x.to(t.int32, memory_format=cl)",
    "y.float(memory_format=t.contiguous_format)",
]


def _seen(t, case):
    x = t.arange(120.0).reshape(2, 3, 4, 5)
    names = dict(t=t, x=x, cl=t.channels_last, y=x.to(memory_format=t.channels_last))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            r = eval(case, names)
    except Exception as error:
        return type(error).__name__, str(error)[:60]
    if not isinstance(r, t.Tensor):
        return r
    values = None if "empty" in case or "rand" in case else r.tolist()
    return tuple(r.stride()), r.is_contiguous(), r.is_contiguous(memory_format=t.channels_last), values


@pytest.mark.parametrize("case", CASES)
def test_strides(case):
    assert _seen(clnn, case) == _seen(torch, case)


def test_a_format_that_is_none():
    with pytest.raises(TypeError):
        clnn.ones(1, 2, 3, 4).to(memory_format=3)


def test_a_model_in_channels_last():
    def run(t, last):
        t.manual_seed(0)
        net = t.nn.Sequential(t.nn.Conv2d(3, 4, 3), t.nn.ReLU())
        with t.no_grad():
            for i, p in enumerate(net.parameters()):
                p.copy_(t.cos(t.arange(float(p.numel())) + i).reshape(p.shape))
        x = t.sin(t.arange(150.0)).reshape(2, 3, 5, 5)
        if last:
            net, x = net.to(memory_format=t.channels_last), x.to(memory_format=t.channels_last)
        x.requires_grad_()
        net(x).square().sum().backward()
        return [x.grad.numpy(), *[p.grad.numpy() for p in net.parameters()]]
    for a, b, c in zip(run(clnn, True), run(clnn, False), run(torch, True)):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(a, c, rtol=1e-3, atol=1e-3)


def test_weights_keep_the_order_that_kernels_read():
    conv = clnn.nn.Conv2d(3, 4, 3).to(memory_format=clnn.channels_last)
    assert conv.weight.is_contiguous()


def test_gradients_pass_through_formats():
    x = clnn.ones(2, 3, 2, 2, requires_grad=True)
    y = x.to(memory_format=clnn.channels_last)
    assert y.is_contiguous(memory_format=clnn.channels_last) and not y.is_leaf
    (y * clnn.arange(24.0).reshape(2, 3, 2, 2)).sum().backward()
    assert x.grad.flatten().tolist() == list(range(24))
    z = clnn.ones(1, 2, 2, 2).contiguous(memory_format=clnn.channels_last).requires_grad_()
    z.pow(2).sum().backward()
    assert z.grad.tolist() == (2 * clnn.ones(1, 2, 2, 2)).tolist()
