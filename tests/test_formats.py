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
    *(f"t.nn.functional.{call}" for call in (
        "conv2d(y,w)", "conv2d(x,w)", "conv2d(x,w.to(memory_format=cl))", "conv2d(y,w[:,:,:1,:1],padding=1,stride=2)", "conv2d(y,t.ones(3,1,2,2),groups=3)",
        "conv2d(y[:,:2],w[:,:2])", "conv2d(y[0],w)", "conv_transpose2d(y,t.ones(3,4,2,2))", "max_pool2d(y,2)", "max_pool2d(y,2,return_indices=True)[1]",
        "avg_pool2d(y,2)", "adaptive_avg_pool2d(y[...,:4],2)", "adaptive_max_pool2d(y,2)", "lp_pool2d(y,1,2)",
        "max_unpool2d(*t.nn.functional.max_pool2d(y[...,:4],2,return_indices=True),2)",
        "interpolate(y,scale_factor=2)", "interpolate(y,4,mode='area')", "pad(y,(1,2))", "pad(y,(1,1,1,1),mode='reflect')", "pixel_unshuffle(y[...,:4],2)",
        "pixel_shuffle(y.repeat(1,4,1,1),2)", "channel_shuffle(y.repeat(1,2,1,1),3)")),
    "t.nn.functional.batch_norm(y,None,None,training=True).stride()",
    "t.nn.functional.batch_norm(y,t.zeros(3),t.ones(3)).stride()",
    "t.nn.functional.group_norm(y,3).stride()",
    "t.nn.functional.interpolate(y,scale_factor=2,mode='bilinear').stride()",
    "t.cat([y,y],1)",
    "t.cat([y,2*y],-1)",
    "t.cat([y,x],1)",
    "t.roll(y,1,2)",
    "t.roll(y,4,2)",
    "t.roll(x.transpose(0,1),(2,0),(1,0))",
    "x.mT.to(memory_format=t.contiguous_format)",
    "y.mT.to(memory_format=cl)",
    "x.contiguous(memory_format=t.preserve_format) is x",
    "t.nn.functional.conv3d(v,t.ones(2,3,2,2,2))",
    "t.nn.functional.max_pool3d(v,2)",
    "t.cat([v,v],1)",
    *(f"t.stack([y,y],{d})" for d in range(4)),
    "t.stack([y,x],1)",
    "one.reshape(2,-1,1,1)",
    "t.bernoulli(t.full_like(y,0.5)).stride()",
    "t.empty_like(y, memory_format=t.legacy_contiguous_format)",
    "t.nn.functional.interpolate(one.reshape(2,-1,1,1),size=(2,2))",
    "t.cat([one.reshape(2,-1,1,1).expand(2,3,4,5).contiguous(),y],1).stride()",
    "t.nn.functional.adaptive_avg_pool2d(y,1).stride()",
    "t.nn.functional.conv2d(y,t.ones(2,3,4,5)).flatten(2).transpose(1,2)",
    "t.nn.BatchNorm1d(4).eval()(x[0].transpose(0,1))",
    "t.nn.BatchNorm2d(5).eval()(x.transpose(1,3))",
    "t.nn.BatchNorm2d(3).eval()(y)",
    "t.nn.InstanceNorm1d(3,track_running_stats=True).eval()(x[0].transpose(0,1))",
    "t.nn.functional.avg_pool1d(x[:,0].transpose(1,2),2)",
    "t.nn.functional.avg_pool1d(x[:,0].transpose(1,2),3,1).transpose(1,2).is_contiguous()",
    "t.nn.functional.avg_pool1d(x[0].transpose(0,1),2)",
    "t.nn.functional.avg_pool2d(x[:,0].transpose(1,2),2)",
    "t.nn.functional.avg_pool3d(y,1)",
    "t.nn.functional.avg_pool2d(y,2)",
    "t.nn.functional.adaptive_avg_pool1d(x[:,0].transpose(1,2),2)",
    "t.tensor(a.T)",
    "t.tensor(a.transpose(2,0,1)[:,:,::2],dtype=t.float64)",
    "t.tensor(np.broadcast_to(a[0],(2,3,4)))",
    "t.FloatTensor(a.swapaxes(0,1))",
    "t.from_numpy(np.lib.stride_tricks.as_strided(a.T,writeable=False))",
    "t.tensor(a[:1].T)",
]


def _seen(t, case):
    x = t.arange(120.0).reshape(2, 3, 4, 5)
    names = dict(t=t, np=np, a=np.arange(24).reshape(2, 3, 4), x=x, cl=t.channels_last, y=x.to(memory_format=t.channels_last), w=t.arange(24.0).reshape(2, 3, 2, 2),
                 one=t.arange(6.0).reshape(2, 1, 3).transpose(1, 2), v=t.arange(162.0).reshape(2, 3, 3, 3, 3).to(memory_format=t.channels_last_3d))
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


@pytest.mark.share(2)
@pytest.mark.parametrize("case", CASES)
def test_strides(case):
    assert _seen(clnn, case) == _seen(torch, case)


@pytest.mark.share(2)
def test_views_have_the_strides_of_pytorch():
    """Those of dimensions of one element too, by which later operators tell formats."""
    draw, wrong = np.random.default_rng(0), []
    for _ in range(400):
        shape = [int(n) for n in draw.choice([1, 1, 2, 3], draw.integers(1, 5))]
        order = [int(d) for d in draw.permutation(len(shape))]
        numel = int(np.prod(shape))
        new = [int(n) for n in draw.permutation([n for n in (2,) * (numel % 2 == 0) + (1, 1, -1)])]
        seen = []
        for t in (clnn, torch):
            try:
                seen.append(tuple(t.empty(shape).permute(order).view(new).stride()))
            except RuntimeError:
                seen.append(None)
        wrong += [(shape, order, new, *seen)] if seen[0] != seen[1] else []
    assert not wrong


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


def test_weights_and_what_follows_them_lie_in_the_format_of_the_model():
    def run(t):
        net = t.nn.Sequential(t.nn.Conv2d(3, 4, 3), t.nn.BatchNorm2d(4), t.nn.ReLU(), t.nn.Conv2d(4, 2, 2)).to(memory_format=t.channels_last)
        optimizer = t.optim.SGD(net.parameters(), 0.1, momentum=0.9)
        out = net(t.ones(2, 3, 6, 6))
        out.sum().backward()
        optimizer.step()
        parameters = list(net.parameters())
        return out.stride(), [(p.stride(), p.grad.stride(), optimizer.state[p]["momentum_buffer"].stride()) for p in parameters]
    assert run(clnn) == run(torch)
    with pytest.raises(RuntimeError, match="required rank 4 tensor"):
        clnn.nn.Conv3d(1, 1, 1).to(memory_format=clnn.channels_last)
    assert clnn.nn.Linear(2, 2).to(memory_format=clnn.channels_last).weight.is_contiguous()


def test_gradients_of_images_in_channels_last():
    def run(t):
        x = t.sin(t.arange(288.0)).reshape(2, 4, 6, 6).to(memory_format=t.channels_last).requires_grad_()
        f, w = t.nn.functional, t.cos(t.arange(144.0)).reshape(4, 4, 3, 3).to(memory_format=t.channels_last).requires_grad_()
        y = f.max_pool2d(f.batch_norm(f.conv2d(t.cat([x, x * x], 1)[:, 2:6], w), None, None, training=True), 2)
        y = f.interpolate(f.pad(f.group_norm(y, 2), (1, 1)), scale_factor=2, mode="bilinear")
        got = t.autograd.grad(y.pow(3).sum(), (x, w), create_graph=True)
        return [g.detach() for g in (*got, *t.autograd.grad(got[0].square().sum(), (x, w)))]
    for a, b in zip(run(clnn), run(torch)):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=2e-3, atol=2e-3)


def test_gradients_pass_through_formats():
    x = clnn.ones(2, 3, 2, 2, requires_grad=True)
    y = x.to(memory_format=clnn.channels_last)
    assert y.is_contiguous(memory_format=clnn.channels_last) and not y.is_leaf
    (y * clnn.arange(24.0).reshape(2, 3, 2, 2)).sum().backward()
    assert x.grad.flatten().tolist() == list(range(24))
    z = clnn.ones(1, 2, 2, 2).contiguous(memory_format=clnn.channels_last).requires_grad_()
    z.pow(2).sum().backward()
    assert z.grad.tolist() == (2 * clnn.ones(1, 2, 2, 2)).tolist()


@pytest.mark.parametrize("name", ["tril", "triu", "rot90", "matrix_power", "pixel_shuffle", "channel_shuffle", "interpolate", "scatter", "scatter_add", "pinv",
                                  "svd", "rpow"])
def test_results_lie_in_rows_where_pytorchs_do(name):
    """Programs ask for views of them."""
    calls = dict(rot90=lambda t, x: t.rot90(x, 0), matrix_power=lambda t, x: t.matrix_power(x, 1), pixel_shuffle=lambda t, x: t.pixel_shuffle(x, 1),
                 channel_shuffle=lambda t, x: t.channel_shuffle(x, 1), interpolate=lambda t, x: t.nn.functional.interpolate(x[0], 4),
                 scatter=lambda t, x: x.scatter(0, t.zeros(1, 1, 1, 1).long(), 1.0),
                 scatter_add=lambda t, x: x.scatter_add(0, t.zeros(1, 1, 1, 1).long(), t.ones(1, 1, 1, 1)),
                 pinv=lambda t, x: t.linalg.pinv(x), svd=lambda t, x: t.svd(x).V, rpow=lambda t, x: 2 ** x)
    found = []
    for t in (clnn, pytest.importorskip("torch")):
        x = (t.arange(144.0).view(3, 3, 4, 4) % 7).permute(1, 0, 3, 2)
        r = calls.get(name, lambda t, x: getattr(t, name)(x))(t, x)
        found.append((r.is_contiguous(), r.view(-1).shape[0]))
    assert found[0] == found[1]


def test_one_channel_for_all_is_row_major():
    """An image of one channel that is expanded has no order of its own: results can be viewed as lines."""
    torch = pytest.importorskip("torch")

    def strides(t):
        F, x = t.nn.functional, t.arange(40.0).view(2, 1, 4, 5).expand(2, 3, 4, 5)
        lying = t.arange(120.0).view(2, 3, 4, 5).permute(0, 2, 3, 1)
        return [r.stride() for r in (F.conv2d(x, t.ones(2, 3, 2, 2)), F.max_pool2d(x, 2), F.pad(x, (1, 1)), t.cat([x, x], 1),
                                     F.one_hot(lying.long(), 120), lying.renorm(2, 0, 1),
                                     t.normal(lying, 1.0), t.poisson(lying))]
    assert strides(clnn) == strides(torch)
