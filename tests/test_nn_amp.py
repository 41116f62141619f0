"""autocast: which operators run in which precision, and training in 16 bits."""
import numpy as np
import pytest

import clnn

A, B, V = (3, 3), (1, 2, 3, 4), (3,)
# operator, its inputs' shapes, further arguments
CASES = [(name, [A], ()) for name in """exp log log1p expm1 reciprocal rsqrt tanh sigmoid sqrt sum mean prod std norm trace nn.functional.gelu
             nn.functional.softplus nn.functional.silu""".split()]
CASES += [(name, [A], (0,)) for name in "softmax log_softmax cumsum logsumexp amax".split()]
CASES += [(name, [A, A], ()) for name in """add mul div atan2 mm matmul nn.functional.mse_loss nn.functional.l1_loss nn.functional.smooth_l1_loss
             nn.functional.huber_loss nn.functional.kl_div nn.functional.poisson_nll_loss nn.functional.soft_margin_loss
             nn.functional.binary_cross_entropy_with_logits cdist nn.functional.cosine_similarity nn.functional.hinge_embedding_loss""".split()]
CASES += [("addmm", [A, A, A], ()), ("nn.functional.linear", [A, A, V], ()), ("nn.functional.prelu", [A, V], ()), ("addcmul", [A, A, A], ()),
          ("nn.functional.layer_norm", [A], ((3,),)), ("nn.functional.conv1d", [(1, 2, 4), (2, 2, 2)], ()), ("nn.functional.avg_pool2d", [B], (2,)),
          ("nn.functional.avg_pool3d", [(1, 1, 2, 2, 2)], (2,)), ("nn.functional.scaled_dot_product_attention", [B, B, B], ()),
          ("nn.functional.normalize", [A], ()), ("baddbmm", [(1, 3, 3)] * 3, ()), ("nn.functional.dropout", [A], ())]
ON_GPU = {  # PyTorch's list for GPUs, where it differs from that for CPUs
    "float32": "exp log log1p expm1 reciprocal rsqrt sum norm softmax log_softmax cumsum logsumexp nn.functional.softplus nn.functional.layer_norm "
               "nn.functional.normalize nn.functional.cosine_similarity",
    "input": "trace nn.functional.avg_pool3d",
}


def result_dtypes(lib, kind, name, shapes, rest, device):
    """The dtypes of the result for float32 inputs, 16-bit inputs, and a mixture."""
    fn = lib
    for part in name.split("."):
        fn = getattr(fn, part)
    low, full = lib.bfloat16, lib.float32
    found = []
    for dtypes in ([full] * 3, [low] * 3, [low, full, full]):
        inputs = [lib.ones(shape, dtype=dtype, device=device) for shape, dtype in zip(shapes, dtypes)]
        try:
            with lib.autocast(kind, dtype=low):
                found.append(str(fn(*inputs, *rest).dtype).split(".")[-1])
        except RuntimeError:                                             # torch wants one dtype where clnn promotes
            found.append("error")
    return found


@pytest.mark.parametrize("name, shapes, rest", CASES, ids=[c[0] for c in CASES])
def test_lists_for_cpu(name, shapes, rest):
    torch = pytest.importorskip("torch")
    expected = result_dtypes(torch, "cpu", name, shapes, rest, "cpu")
    got = result_dtypes(clnn, "cpu", name, shapes, rest, "meta")
    assert [g for g, e in zip(got, expected) if e != "error"] == [e for e in expected if e != "error"]


@pytest.mark.parametrize("name", ON_GPU["float32"].split())
def test_lists_for_gpu(name):
    shapes, rest = next(c[1:] for c in CASES if c[0] == name)
    assert set(result_dtypes(clnn, "gpu", name, shapes, rest, "meta")) == {"float32"}


def test_more_rules():
    x = clnn.ones(2, 2, dtype=clnn.bfloat16, device="meta")
    with clnn.autocast("gpu", dtype=clnn.bfloat16):
        assert (x ** 2).dtype is clnn.float32 and (2 ** x).dtype is clnn.float32 and x.exp_().dtype is clnn.bfloat16
        assert x.sum(dtype=clnn.bfloat16).dtype is clnn.bfloat16                # a dtype that was asked for wins
        assert clnn.addcmul(x, x, x.float()).dtype is clnn.float32 and clnn.addcmul(x, x, x).dtype is clnn.bfloat16
        assert (x.double() @ x.double()).dtype is clnn.float64                  # float64 stays what it is
        with pytest.raises(RuntimeError, match="unsafe to autocast"):
            clnn.nn.functional.binary_cross_entropy(x, x)
        with clnn.autocast("cpu", dtype=clnn.bfloat16):
            assert x.exp().dtype is clnn.bfloat16
        assert x.exp().dtype is clnn.float32
    assert x.exp().dtype is clnn.bfloat16


def test_gradients_come_in_the_dtype_of_the_leaves():
    w = clnn.tensor([[0.5, 2.0]], requires_grad=True)
    with clnn.autocast("gpu", dtype=clnn.bfloat16):
        y = clnn.nn.functional.mse_loss(clnn.ones(1, 1) @ w, clnn.zeros(1, 2))
        z = (w.bfloat16().exp()).sum()
    assert y.dtype is clnn.float32 and z.dtype is clnn.float32
    (y + z).backward()
    assert w.grad.dtype is clnn.float32
    assert clnn.allclose(w.grad, w.detach() + w.detach().exp(), rtol=1e-2)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_training_in_16_bits(dtype):
    """A module and its optimizer wholly in 16 bits come as close to torch's loss as that precision allows."""
    torch = pytest.importorskip("torch")

    def losses(lib):
        lib.manual_seed(0)
        net = lib.nn.Sequential(lib.nn.Linear(4, 8), lib.nn.Tanh(), lib.nn.LayerNorm(8), lib.nn.Linear(8, 1))
        with lib.no_grad():
            for i, p in enumerate(net.parameters()):
                p.copy_((lib.arange(p.numel(), dtype=lib.float32) * 0.7 + i).sin().reshape(p.shape) * 0.5)
        net.to(getattr(lib, dtype))
        optimizer = lib.optim.SGD(net.parameters(), lr=0.125, momentum=0.5)
        x = (lib.arange(32, dtype=lib.float32).reshape(8, 4) * 0.3).cos().to(getattr(lib, dtype))
        found = []
        for _ in range(8):
            optimizer.zero_grad()
            loss = (net(x) - 1).pow(2).mean()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        return found
    got, expected = losses(clnn), losses(torch)
    assert got[-1] < 0.5 * got[0]
    assert all(abs(g - e) < 0.05 * (1 + abs(e)) for g, e in zip(got, expected))


def test_other_dtypes_turn_autocast_off():
    with pytest.warns(UserWarning, match="In CPU autocast, but the target dtype is not supported. Disabling autocast.\nCPU Autocast only supports dtypes of "
                                         "[a-z]*.bfloat16, [a-z]*.float16 currently."), clnn.autocast("cpu", dtype=clnn.float64):
        assert (clnn.ones(2, 2) @ clnn.ones(2, 2)).dtype is clnn.float32


IN_FLOAT = {
    "rfft": lambda t, x: t.fft.rfft(x), "fft2": lambda t, x: t.fft.fft2(x), "irfft": lambda t, x: t.fft.irfft(x), "eigvalsh": lambda t, x: t.linalg.eigvalsh(x @ x.T),
    "view_as_complex": lambda t, x: t.view_as_complex(x.view(4, 2, 2)), "reflect": lambda t, x: t.nn.functional.pad(x, (1, 1), mode="reflect"),
    "circular": lambda t, x: t.nn.functional.pad(x, (1, 1), mode="circular"), "replicate": lambda t, x: t.nn.functional.pad(x[None], (1, 1, 1, 1), mode="replicate"),
    "reflect 3": lambda t, x: t.nn.functional.pad(x[None, None], (1,) * 6, mode="replicate"), "inv_ex": lambda t, x: t.linalg.inv_ex(x)[0],
    "unpool": lambda t, x: t.nn.functional.max_unpool1d(*t.nn.functional.max_pool1d(x, 2, return_indices=True), 2), "geqrf": lambda t, x: t.geqrf(x)[0],
    "fake": lambda t, x: t.fake_quantize_per_tensor_affine(x, 0.5, 0, 0, 255), "cholesky_inverse": lambda t, x: t.cholesky_inverse(x)}


@pytest.mark.parametrize("name", IN_FLOAT)
def test_what_runs_in_float32_on_cpus(name):
    """PyTorch's list for CPUs has transforms, factorisations and padding of edges."""
    torch = pytest.importorskip("torch")

    def outcome(t):
        x = (t.arange(16.0).reshape(4, 4).sin() + 3 * t.eye(4)).to(t.bfloat16)
        with t.autocast("cpu", dtype=t.bfloat16):
            y = IN_FLOAT[name](t, x)
        y = t.view_as_real(y) if y.is_complex() else y
        return str(y.dtype).partition(".")[2], y.float().numpy()
    (kind, got), (expected, want) = outcome(clnn), outcome(torch)
    assert kind == expected
    np.testing.assert_allclose(got, want, rtol=2e-2, atol=1e-2)
