"""PyTorch names that programs use and that mean little here: cuda, backends, jit, version, special, hub."""
import ctypes
import hashlib
import importlib
import io
import subprocess
import sys
import warnings
from collections import OrderedDict, defaultdict, deque, namedtuple
from typing import Dict, List, Optional, Tuple

import numpy as np
import pytest

import clnn as torch

other = pytest.importorskip("torch")
V = np.linspace(-8, 8, 41).astype("float32")
U = np.linspace(0.01, 0.99, 9).astype("float32")
POSITIVE = np.array([0.01, 0.3, 1, 2.5, 7, 12, 24, 30, 55], "float32")
BESSEL = ("bessel_j0 bessel_j1 bessel_y0 bessel_y1 modified_bessel_i0 modified_bessel_i1 modified_bessel_k0 modified_bessel_k1 scaled_modified_bessel_k0 "
          "scaled_modified_bessel_k1 spherical_bessel_j0 i0e i1e erfcx").split()
UNARY = {"entr": V, "expit": V, "ndtr": V, "log_ndtr": V, "erf": V, "exp2": V, "sinc": V, "gammaln": abs(V) + 0.1, "psi": abs(V) + 0.1, "ndtri": U}
POLYNOMIALS = ["chebyshev_polynomial_t", "chebyshev_polynomial_u", "chebyshev_polynomial_v", "chebyshev_polynomial_w", "hermite_polynomial_h",
               "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p", *("shifted_chebyshev_polynomial_" + k for k in "tuvw")]


def close(a, b):
    np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=3e-6)


@pytest.mark.parametrize("name", UNARY)
def test_special(name):
    close(getattr(torch.special, name)(torch.tensor(UNARY[name])), getattr(other.special, name)(other.tensor(UNARY[name])))


def test_lgamma_to_the_last_digits():
    """A few ulp above 0, also beside its zeros 1 and 2; below, as many of the larger of 1 and the value."""
    r = np.random.default_rng(5)
    x = np.concatenate([[0, -0.0, 1, 2, 1e-45, -1e-45, 1e-30, np.inf, -np.inf, np.nan, 0.5, 1.5, 2.5, 3.5, 4.5, -1, -2, -1e10], np.exp(r.standard_normal(4000) * 3),
                        r.random(4000) * 6, 1 + r.standard_normal(500) * 1e-3, 2 + r.standard_normal(500) * 1e-3, -r.random(4000) * 20]).astype(np.float32)
    exact = torch.lgamma(torch.tensor(x.astype(np.float64))).numpy()
    want, got = exact.astype(np.float32), other.lgamma(other.tensor(x)).numpy()
    assert np.array_equal(np.isnan(got), np.isnan(want)) and np.array_equal(got[np.isinf(want)], want[np.isinf(want)])
    fine = np.isfinite(want)
    unit = np.where(x > 0, np.spacing(np.abs(want)), np.spacing(np.maximum(np.abs(want), np.float32(1)))).astype(np.float64)
    ulp = np.abs(got[fine] - exact[fine]) / unit[fine]
    assert ulp.max() <= 6, (x[fine][ulp.argmax()], ulp.max())


def test_bessel():
    for name in BESSEL:
        close(getattr(torch.special, name)(torch.tensor(POSITIVE)), getattr(other.special, name)(other.tensor(POSITIVE)))


def test_airy():
    """PyTorch's own values are some 1e-6 off below -2; there the differential equation tells."""
    x = np.array([-40, -25.1, -24.9, -9.3, -2, 0, 0.5, 4.1, 11.9, 12.1, 60, 110, np.inf, -np.inf, np.nan])
    got, want = torch.special.airy_ai(torch.tensor(x)).numpy(), other.special.airy_ai(other.tensor(x)).numpy()
    np.testing.assert_allclose(got, want, rtol=1e-12)
    h = 1e-3
    left, at, right = torch.special.airy_ai(torch.tensor([-2.5 - h, -2.5, -2.5 + h], dtype=torch.float64)).tolist()
    assert abs((left - 2 * at + right) / h ** 2 + 2.5 * at) < 1e-6 and torch.special.airy_ai(torch.tensor([1])).dtype is torch.float32


@pytest.mark.parametrize("name", ["scaled_modified_bessel_k0", "scaled_modified_bessel_k1", "erfcx"])
def test_scaled_functions_to_the_last_digits(name):
    """Floats within 5 ulp of doubles, and the special values of doubles."""
    r = np.random.default_rng(6)
    x = np.concatenate([[0, -0.0, np.inf, -np.inf, np.nan, 1e-30, 1e-10, 1e10, 3e38, 2, 1.9999999, -1, -12], np.exp(r.standard_normal(4000) * 3),
                        r.random(4000) * 4, (-r.random(2000) * 9.2) if name == "erfcx" else []]).astype(np.float32)
    exact = getattr(other.special, name)(other.tensor(x.astype(np.float64))).numpy()
    with np.errstate(over="ignore"):
        want = exact.astype(np.float32)
    got = getattr(torch.special, name)(torch.tensor(x)).numpy()
    assert np.array_equal(np.isnan(got), np.isnan(want)) and np.array_equal(got[np.isinf(want)], want[np.isinf(want)])
    fine = np.isfinite(want) & (np.abs(want) > 1e-37)
    ulp = np.abs(got[fine] - exact[fine]) / np.spacing(np.abs(want[fine])).astype(np.float64)
    assert ulp.max() <= 5, (x[fine][ulp.argmax()], ulp.max())


def test_gamma_functions():
    a, x = (g.ravel().astype("float32") for g in np.meshgrid([0.1, 1, 3, 30, 200], [0.05, 0.5, 1, 1.2, 3]))
    for name in ("gammainc", "gammaincc"):
        close(getattr(torch.special, name)(torch.tensor(a), torch.tensor(a * x)), getattr(other.special, name)(other.tensor(a), other.tensor(a * x)))
    s, q = np.array([1.5, 2, 4, 9], "float32"), np.array([0.1, 1, 7, 20], "float32")
    close(torch.special.zeta(torch.tensor(s), torch.tensor(q)), other.special.zeta(other.tensor(s), other.tensor(q)))
    for n in (2, 3, 5):
        close(torch.tensor(q).polygamma(n) / 1e3 ** (n - 1), other.tensor(q).polygamma(n) / 1e3 ** (n - 1))
    tail = np.array([1e-30, 1e-8, 0.05, 0.95, 1 - 1e-6], "float32")
    close(torch.special.ndtri(torch.tensor(tail)), other.special.ndtri(other.tensor(tail)))


@pytest.mark.parametrize("name", ["xlogy", "xlog1py"])
def test_special_pairs(name):
    a, b = np.array([0, 1, 2, 0], "float32"), np.array([0.5, 2, 3, np.nan], "float32")
    close(getattr(torch.special, name)(torch.tensor(a), torch.tensor(b)), getattr(other.special, name)(other.tensor(a), other.tensor(b)))
    close(getattr(torch.special, name)(2.0, torch.tensor(U)), getattr(other.special, name)(2.0, other.tensor(U)))


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials(name):
    for n in (0, 1, 2, 5):
        close(getattr(torch.special, name)(torch.tensor(U), n), getattr(other.special, name)(other.tensor(U), n))


def test_special_rest():
    close(torch.special.multigammaln(torch.tensor(U + 2), 3), other.special.multigammaln(other.tensor(U + 2), 3))
    x = torch.tensor([-20.0, -5.0, 0.0, 3.0], requires_grad=True)
    t = other.tensor([-20.0, -5.0, 0.0, 3.0], requires_grad=True)
    torch.special.log_ndtr(x).sum().backward()
    other.special.log_ndtr(t).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), t.grad.numpy(), rtol=2e-4, atol=1e-6)
    with pytest.raises(AttributeError):
        torch.special.nothing


NATIVES = {
    "native_layer_norm": lambda t, x, w: t.native_layer_norm(x, (6,), w, w, 1e-5), "native_batch_norm": lambda t, x, w: t.native_batch_norm(
        x, w[:5], None, w[:5] + 0, w[1:] + 0, True, 0.1, 1e-5), "native_group_norm": lambda t, x, w: t.native_group_norm(x, w[:5], None, 4, 5, 6, 5, 1e-5),
    "grid_sampler_2d": lambda t, x, w: t.grid_sampler_2d(x[None], x[None, :, :, :2], 0, 1, False), "_softmax": lambda t, x, w: t.ops.aten._softmax(x, 1, False),
    "_softmax_backward_data": lambda t, x, w: (t._softmax_backward_data(x, x, -1, t.float32), t._log_softmax_backward_data(x, x, -2, t.float32)),
    "_safe_softmax": lambda t, x, w: t._safe_softmax(t.where(x[:, :1] < 0, -float("inf"), x), -1), "norm_except_dim": lambda t, x, w: t.norm_except_dim(x, 3, 1),
    "hash_tensor": lambda t, x, w: (t.hash_tensor(x), x.hash_tensor((0, 2), keepdim=True), t.hash_tensor(w[0] > 0))}


@pytest.mark.parametrize("name", NATIVES)
def test_functions_under_layers(name):
    x, w = np.random.default_rng(7).normal(size=(4, 5, 6)).astype("float32"), np.arange(1, 7, dtype="float32")
    got, want = (NATIVES[name](t, t.tensor(x, requires_grad=name[:6] == "native"), t.tensor(w)) for t in (torch, other))
    for a, b in zip(*((r if isinstance(r, tuple) else (r,)) for r in (got, want)), strict=True):
        assert str(a.dtype)[5:] == str(b.dtype)[6:] and a.shape == b.shape and a.requires_grad == b.requires_grad
        a, b = a.detach().numpy(), b.detach().numpy()
        assert np.array_equal(a, b) if b.dtype == "uint64" else np.allclose(a, b, atol=2e-5)


def test_native_dropout_tells_what_it_kept():
    out, kept = torch.native_dropout(torch.ones(6), 0.5, True)
    assert kept.dtype is torch.bool and torch.equal(out, kept * 2.0)


def test_cuda_counts_gpus():
    gpus = [d for d in torch.devices() if d.type == "gpu"]
    assert torch.cuda.is_available() == torch.cuda.is_initialized() == torch.cuda._initialized == bool(gpus) and torch.cuda.device_count() == len(gpus)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    assert torch.ones(2).to(device).device.type == device.type
    assert torch.accelerator.is_available() == bool(gpus)
    if gpus:
        assert torch.accelerator.current_accelerator() == torch.device("cuda")
        with torch.cuda.device(0):
            assert torch.ones(1).is_cuda
    else:
        with pytest.raises(torch.DeviceError, match="no GPU"):
            torch.cuda.get_device_name(3)


def test_cuda_about_the_device():
    d = torch.get_default_device().physical
    assert torch.cuda.get_device_name() == d.name and torch.cuda.get_device_properties().total_memory == d.global_mem
    assert all(isinstance(n, int) for n in torch.cuda.get_device_capability())


def test_cuda_memory():
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    x = torch.ones(1 << 16) + 1
    torch.cuda.synchronize()
    x._storage.buffer()
    assert torch.cuda.memory_allocated() >= before + (1 << 18) and torch.cuda.max_memory_allocated() >= before + (1 << 18)
    assert torch.cuda.memory_reserved() >= torch.cuda.memory_allocated()
    free, total = torch.cuda.mem_get_info()
    assert 0 < free < total and "allocated_bytes.all.peak" in torch.cuda.memory_summary()
    torch.cuda.empty_cache()


def test_cuda_seeds():
    torch.cuda.manual_seed_all(5)
    a = torch.rand(3)
    torch.cuda.manual_seed(5)
    assert torch.equal(a, torch.rand(3))


def test_cuda_events_and_streams():
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    x = torch.ones(64, 64)
    with torch.cuda.stream(torch.cuda.Stream()):
        start.record()
        (x @ x)._storage.buffer()
        end.record()
    torch.cuda.current_stream().synchronize()
    assert end.query() and start.elapsed_time(end) >= 0
    start._time = end._time + 1                 # the driver's two callbacks overtook each other
    assert start.elapsed_time(end) == 0 and end.elapsed_time(start) > 0
    with pytest.raises(ValueError, match="enable_timing"):
        torch.cuda.Event().elapsed_time(end)


def test_cuda_amp():
    amp = importlib.import_module("clnn.cuda.amp")
    with pytest.warns(FutureWarning, match="torch.cuda.amp.autocast.*deprecated"), amp.autocast():
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype is (torch.float16 if torch.cuda.is_available() else torch.float32)
    with pytest.warns(FutureWarning, match="torch.cuda.amp.GradScaler.*deprecated"):
        assert amp.GradScaler().is_enabled() is torch.cuda.is_available()
    assert amp.GradScaler is torch.cuda.amp.GradScaler
    with torch.cuda.nvtx.range("work"):
        pass


def test_backends():
    cudnn = importlib.import_module("clnn.backends.cudnn")
    cudnn.benchmark = True
    assert torch.backends.cudnn.benchmark and not cudnn.is_available()
    with torch.backends.__allow_nonbracketed_mutation():
        torch.backends.cudnn.deterministic = torch.backends.cudnn.deterministic
    with torch.backends.cudnn.flags(enabled=False):
        assert not cudnn.enabled
    assert cudnn.enabled
    torch.backends.cudnn.benchmark = False
    torch.backends.cuda.matmul.allow_tf32 = True
    with torch.backends.cuda.sdp_kernel(enable_flash=False):
        pass
    assert not torch.backends.mps.is_available() and not torch.backends.openmp.is_available()


def test_version():
    assert torch.version.cuda is None and torch.version.__version__ == torch.__version__


def test_jit():
    @torch.jit.script
    def double(x):
        return 2 * x

    class Net(torch.nn.Module):
        @torch.jit.export
        def extra(self, x):
            return x

        @torch.jit.ignore
        def forward(self, x):
            return double(x)
    net = torch.jit.script(Net())
    assert net(3) == 6 and net.extra(1) == 1 and torch.jit.trace(net, torch.ones(1)) is net and not torch.jit.is_scripting()
    assert isinstance(net, torch.jit.ScriptModule) and not isinstance(Net(), torch.jit.ScriptModule) and torch.jit.freeze(net.eval())(3) == 6
    assert isinstance(double, torch.jit.ScriptFunction) and double.name == "double" and not isinstance(double, torch.jit.ScriptModule)
    with pytest.raises(RuntimeError, match="state_dict"):
        torch.jit.load(io.BytesIO(b"a file of something else"))


def test_jit_tells_types_with_parts():
    values = ([1], ["a"], [], {"a": 1}, {"a": "b"}, (1, "a"), (1,), None, 1, "a", torch.ones(1))
    for kind in (List[int], Dict[str, int], Tuple[int, str], Optional[int], int, torch.Tensor):
        wanted = other.Tensor if kind is torch.Tensor else kind
        for value in values:
            given = other.ones(1) if isinstance(value, torch.Tensor) else value
            assert torch.jit.isinstance(value, kind) == other.jit.isinstance(given, wanted), (value, kind)


def test_hub(tmp_path):
    source = tmp_path / "weights.pt"
    torch.save({"w": torch.ones(2)}, source)
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    named = tmp_path / f"weights-{digest[:8]}.pt"
    named.write_bytes(source.read_bytes())
    state = torch.hub.load_state_dict_from_url(named.as_uri(), model_dir=str(tmp_path / "cache"), check_hash=True)
    assert state["w"].tolist() == [1, 1] and (tmp_path / "cache" / named.name).is_file()
    with pytest.raises(RuntimeError, match="SHA-256"):
        torch.hub.download_url_to_file(named.as_uri(), str(tmp_path / "x.pt"), hash_prefix="00000000")
    assert not (tmp_path / "x.pt").exists()
    with pytest.raises(RuntimeError, match="not supported"):
        torch.hub.load("a/b", "model")


def test_storages():
    for lib in (torch, other):
        x = lib.arange(6.0)
        view = x[2:].untyped_storage()
        assert (view.nbytes(), view.size(), len(view), view.element_size()) == (24, 24, 24, 1)
        assert view.data_ptr() == x.untyped_storage().data_ptr() != x.clone().untyped_storage().data_ptr()
        assert x.storage().size() == 6 and x[1:].storage().tolist() == [0, 1, 2, 3, 4, 5] and x.storage()[3] == 3
        assert sys.getsizeof(view) - sys.getsizeof(x[:0].clone().untyped_storage()) == 24
        assert lib.is_storage(view) and x.storage().dtype is lib.float32 and isinstance(view, lib.UntypedStorage)
        assert view.tolist()[4:8] == [0, 0, 128, 63]
        assert view[4:8].tolist() == [0, 0, 128, 63] and lib.UntypedStorage([1, 2]).tolist() == [1, 2] and lib.UntypedStorage(5).nbytes() == 5
        assert lib.asarray(view[4:8], dtype=lib.uint8).view(lib.float32).tolist() == [1] and lib.empty(0).data_ptr() == 0
        assert x[1:].data_ptr() == x.data_ptr() + 4 and x.untyped_storage().data_ptr() == x.data_ptr() != (x + 1).data_ptr()
        held, x = x.data_ptr(), x.add_(1)
        assert held == x.data_ptr() and ctypes.string_at(x[1:].data_ptr(), 8) == np.array([2, 3], "float32").tobytes()


def test_typed_constructors_take_shapes():
    for lib in (torch, other):
        assert lib.FloatTensor(lib.ones(2, 3).shape).shape == (2, 3) and lib.LongTensor([2, 3]).tolist() == [2, 3] and lib.FloatTensor(2, 1).shape == (2, 1)


def test_old_constructors_hold_values_wherever_new_tensors_lie():
    for lib in (torch, other):
        with lib.device("meta"):
            made = [lib.Tensor([1.0]), lib.FloatTensor(np.ones(1)), lib.LongTensor([1]), lib.from_numpy(np.ones(1))]
            assert [t.tolist() for t in made] == [[1]] * 4 and lib.Tensor(2, 3).device.type != "meta" and lib.ones(1).device.type == "meta"


def test_what_is_asked_before_it_is_known_to_be_absent():
    from clnn.jit import _get_trace_graph
    assert torch._guards.active_fake_mode() is torch._guards.TracingContext.try_get() is None and not isinstance(1, torch._C._distributed_rpc.PyRRef)
    with pytest.raises(NotImplementedError, match="TorchDispatchMode"):
        _get_trace_graph(len)


def test_storage_of_a_file(tmp_path):
    values = np.arange(6, dtype="float32")
    (tmp_path / "values").write_bytes(values.tobytes())
    for lib in (torch, other):
        stored = lib.UntypedStorage.from_file(str(tmp_path / "values"), False, 24)
        assert stored.nbytes() == len(stored) == 24 and lib.is_storage(stored) and stored[6] == 128
        assert lib.asarray(stored[8:16], dtype=lib.uint8).view(dtype=lib.float32).tolist() == [2, 3]


class Setting(str):
    """Part of a structure, not of its leaves."""


def test_names_of_these_days():
    """What PyTorch 2.12 and 2.13 have anew."""
    for lib in (torch, other):
        assert lib.random.thread_safe_generator() is None is lib.thread_safe_generator()
        assert lib.compiler.get_default_backend() == "inductor"
        lib.compiler.set_default_backend("eager")
        assert lib.compiler.get_default_backend() == "eager" and lib.compiler.set_default_backend(None) is None
        p = lib.ones(2, 3).t().requires_grad_()
        with lib.autograd.enforce_grad_layout_policy(False):
            (p * 2).sum().backward()
        assert p.grad.tolist() == [[2, 2]] * 3
        with lib.accelerator.device_index(None):
            pass
        tree = lib.utils._pytree
        tree.register_constant(Setting)
        leaves, spec = tree.tree_flatten([Setting("fast"), 3])
        assert leaves == [3] and tree.tree_unflatten([4], spec) == ["fast", 4] and spec != tree.tree_flatten([Setting("slow"), 3])[1]
        with pytest.raises(TypeError, match="__eq__"):
            tree.register_constant(type("Plain", (), {}))
        assert lib.Event(device="cpu", enable_timing=True) is not None
        assert callable(lib.cuda.profiler.start) and lib._C._LinAlgError is lib.linalg.LinAlgError
        assert lib.nn.modules.activation.NonDynamicallyQuantizableLinear is lib.nn.modules.linear.NonDynamicallyQuantizableLinear


def test_attributes_of_script_modules():
    class Named(torch.jit.ScriptModule):
        def __init__(self):
            super().__init__()
            self.scale, self.ages = torch.jit.Attribute(0.5, float), torch.jit.Attribute({}, Dict[str, int])
            self.ages["one"] = 1
    assert Named().scale == 0.5 and Named().ages == {"one": 1}


def test_structures_of_trees_as_text():
    """Either library reads what the other wrote."""
    Pair = namedtuple("Pair", "a b")
    ours, theirs = (importlib.import_module(lib.__name__ + ".utils._pytree") for lib in (torch, other))
    for m in (ours, theirs):
        m._register_namedtuple(Pair, serialized_type_name="tests.Pair")
    for tree in ({"a": [1, (2, 3)], "b": None}, OrderedDict(x=1, y=[2]), defaultdict(list, k=[1]), deque([1, 2], maxlen=3), 5, Pair(1, [2])):
        text = ours.treespec_dumps(ours.tree_structure(tree))
        assert text == theirs.treespec_dumps(theirs.tree_structure(tree)) and ours.treespec_loads(text) == ours.tree_structure(tree)
    assert ours.treespec_loads(ours.treespec_dumps(ours.tree_structure(torch.Size([1, 2])))).num_leaves == 2
    for m in (ours, theirs):
        for error, call in ((TypeError, lambda: m.treespec_dumps(3)), (ValueError, lambda: m.treespec_loads("[3, {}]")),
                            (NotImplementedError, lambda: m.treespec_dumps(m.tree_structure(namedtuple("Other", "a")(1))))):
            with pytest.raises(error):
                call()


def test_switches_of_files():
    for lib in (torch, other):
        config = importlib.import_module(lib.__name__ + ".utils.serialization.config")
        with config.patch({"load.mmap": True, "save.compute_crc32": False}):
            assert config.load.mmap and not lib.serialization.get_crc32_options()
        assert not config.load.mmap and lib.serialization.get_crc32_options() and config.save.storage_alignment == 64
        with pytest.raises(AttributeError, match="config.save.nothing does not exist"):
            config.save.nothing = 1


def test_names_that_modules_import_themselves():
    for module, names in (("multivariate_normal", "Distribution _batch_mahalanobis"), ("studentT", "Distribution broadcast_all"),
                          ("bernoulli", "ExponentialFamily lazy_property probs_to_logits Tensor"), ("normal", "_standard_normal constraints")):
        assert all(hasattr(importlib.import_module(f"clnn.distributions.{module}"), name) for name in names.split())
    p = torch.nn.Parameter(torch.ones(2))
    assert p._cdata == p._cdata != p.data._cdata                    # Pyro tells parameters by it
    before = torch._C._jit_set_profiling_mode(False)
    assert torch._C._jit_set_profiling_mode(before) is False


def test_warnings_have_their_text_and_number():
    for lib in (torch, other):
        x = lib.ones(3, 3)
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            lib.meshgrid(x[0], x[1]), lib.meshgrid(x[0], x[1])
            x[[[0, 1], [1, 2]]]
        texts = [str(w.message).partition(" (Trig")[0] for w in seen if "meshgrid" not in str(w.message)]
        assert len(texts) == 1 and texts[0].endswith("which will result either in an error or a different result")
        assert sum("meshgrid" in str(w.message) for w in seen) <= 1


def test_helpers_that_copies_of_optimizers_and_layers_import():
    for lib in (torch, other):
        helpers = importlib.import_module(f"{lib.__name__}.optim.optimizer")
        params, grads = [lib.ones(2, dtype=lib.complex64), lib.ones(2)], [lib.zeros(2, dtype=lib.complex64), lib.zeros(2)]
        helpers._view_as_real(params, grads)
        assert [tuple(p.shape) for p in params + grads] == [(2, 2), (2,)] * 2
        assert helpers._get_value(lib.tensor(2.0)) == 2 == helpers._get_value(2) and helpers._to_scalar(lib.ones(1)).dim() == 0
        assert helpers._get_scalar_dtype() is lib.float32 and helpers._stack_if_compiling([1]) == [1]
        assert helpers._disable_dynamo_if_unsupported()(len)([1]) == 1 and type(params[0]) in helpers._foreach_supported_types
        with pytest.raises(RuntimeError, match="fused=True"):
            helpers._device_dtype_check_for_fused(lib.ones(1, dtype=lib.int64))
        layers = importlib.import_module(f"{lib.__name__}.nn.modules.transformer")
        mask = layers._generate_square_subsequent_mask(3)
        found = [layers._detect_is_causal_mask(m, hint, size) for m, hint, size in ((mask, None, None), (mask, None, 2), (mask * 0, None, 3), (None, True, 3))]
        assert found == [True, False, False, True]
        assert [layers._get_seq_len(lib.ones(*shape), True) for shape in ((4, 2), (5, 4, 2))] == [4, 4]
        with pytest.raises(ValueError, match="more than 1 value"):
            lib.nn.functional._verify_batch_size([1, 3, 1])
        with pytest.warns(UserWarning, match="Implicit dimension"):
            assert lib.nn.functional._get_softmax_dim("softmax", 4, 3) == 1


def test_modules_that_are_attributes_of_the_package():
    modules = "_VF _functorch _guards _jit_internal distributed.distributed_c10d distributed.algorithms distributed.device_mesh distributed.autograd".split()
    for name in ("clnn", "torch"):
        code = f"import {name} as t; [{', '.join(f't.{m}' for m in modules)}]; print(t._disable_dynamo(lambda: 3)(), t._tensor_str._str(t.ones(1)))"
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
        assert run.stdout == "3 tensor([1.])\n", run.stderr


def chosen(x, y: Optional[torch.Tensor] = None, n: int = 2, name: str = "a") -> Tuple[torch.Tensor, int]:
    if y is not None:
        return x * n, n
    return x, 1


def test_what_scripted_functions_and_modules_print():
    """Programs print the code and the graph; the source of the program stands for the compiler's."""
    f = torch.jit.script(chosen)
    assert f.schema == 'chosen(Tensor x, Tensor? y=None, int n=2, str name="a") -> ((Tensor, int))'
    assert f.code.startswith("def chosen(x, y") and f.code.rstrip().endswith("return x, 1") and "return" in str(f.graph)
    net = torch.jit.script(torch.nn.Linear(2, 2))
    assert net.code.startswith("def forward(self, input") and "linear" in str(net.graph)
    assert "linear" in torch.jit.trace(torch.nn.Linear(2, 2), torch.ones(1, 2)).code
