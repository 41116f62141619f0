"""Classes of programs: derived from two of ours at once, with methods named as they like, or copied from PyTorch's; each runs with both libraries."""
import importlib
import io

import pytest
from test_programs import both_agree

pytest.importorskip("torch")


def a_distribution_that_is_a_module(lib):
    torch, nn = lib.torch, lib.nn
    out = []
    for base, values in ((torch.distributions.Normal, (0.5, 2.0)), (torch.distributions.Bernoulli, (0.3,)), (torch.distributions.Gamma, (2.0, 1.0))):
        class Prior(base, nn.Module):
            def __init__(self, *values):
                nn.Module.__init__(self)
                base.__init__(self, *[torch.tensor(v) for v in values])
        prior = Prior(*values)
        torch.manual_seed(0)
        x = prior.sample((3,))
        out += [x, prior.log_prob(x), prior.entropy(), len(list(prior.parameters()))]
    return out


def moved_by_its_own_methods(lib):
    nn = lib.nn
    done = []

    class Index(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(2, 2)
            self.to("cpu")

        def to(self, device):
            return self.cpu()

        def cpu(self):
            done.append("cpu")
            return super().cpu()

        def _apply(self, fn, recurse=True):
            done.append("apply")
            return super()._apply(fn, recurse)
    Index().float()
    return [" ".join(done)]


def names_of_its_own(lib):
    """Methods and attributes with words that a base class might use itself."""
    torch, nn = lib.torch, lib.nn

    class Memory(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("rows", torch.zeros(2, 3))
            self.linear, self._check = nn.Linear(3, 2), 1

        def _refuse(self, *args):
            raise AssertionError("not to be called")

        _replace = _forget = _check_name = _get_tensor = _load_one = _has_extra = _init_hooks = _elsewhere = _repr_fields = _set_registered = _refuse
        _assign_loaded = _cast_floating = _add_call_hook = _as_one = _call_with_hooks = _persistent_state = _iter_forward_hooks = _refuse

        def forward(self, x):
            return self.linear(x + self.rows)
    m = Memory()
    with torch.no_grad():
        m.linear.weight.fill_(0.5)
        m.linear.bias.zero_()
    m.register_forward_hook(lambda module, args, out: out * 2)
    m.load_state_dict(m.double().float().state_dict())
    m.linear = nn.Sequential(m.linear)
    return [m(torch.ones(1, 3)), m.get_buffer("rows"), len(repr(m)) and ",".join(m.state_dict())]


def copied_from_pytorch(lib):
    torch, nn = lib.torch, lib.nn

    class Own(torch.optim.Optimizer):
        def __init__(self, params):
            super().__init__(params, dict(lr=0.1))

        @torch.no_grad()
        def step(self, closure=None):
            self._cuda_graph_capture_health_check()
            for group in self.param_groups:
                for p in group["params"]:
                    p.add_(p.grad, alpha=-group["lr"])
    w = nn.Parameter(torch.ones(2))
    w.grad = torch.ones(2)
    Own([w]).step()
    attention = nn.MultiheadAttention(4, 2)
    pad, square = torch.zeros(3, 5), torch.ones(5, 5)
    masks = [attention.merge_masks(*m, torch.zeros(3, 5, 4)) for m in ((None, pad), (square, None), (square, pad), (torch.ones(6, 5, 5), pad))]
    items = nn.ModuleList([nn.ReLU()] * 3)
    return [w, *[m for m, _ in masks], [kind for _, kind in masks], items._get_abs_string_index(-1)]


def private_names(lib):
    """What libraries take from modules of PyTorch that are not documented."""
    torch = lib.torch
    name = torch.__name__
    utils, files = importlib.import_module(name + "._utils"), importlib.import_module(name + ".serialization")
    function, compiled = importlib.import_module(name + ".autograd.function"), importlib.import_module(name + "._C")
    file = io.BytesIO()
    torch.save([1], file)
    file.seek(0)
    base = torch.arange(6.0)
    return [utils._rebuild_tensor(base.storage(), 1, (2, 2), (2, 1)), utils._import_dotted_name("os.path.join").__name__, files._is_zipfile(file), file.tell(),
            files._maybe_decode_ascii(b"cpu"), files.normalize_storage_type(torch.FloatStorage) is torch.FloatStorage,
            function._ContextMethodMixin is function.FunctionCtx, compiled.default_generator is torch.default_generator]


@pytest.mark.parametrize("program", [a_distribution_that_is_a_module, moved_by_its_own_methods, names_of_its_own, copied_from_pytorch, private_names])
def test_same(program):
    both_agree(program)
