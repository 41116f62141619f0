"""Hooks of modules, state dictionaries and optimizers: every scenario gives the same result, or the same error, as in PyTorch."""
import warnings

import pytest

from scenarios import assert_same, net, outcome

pytestmark = pytest.mark.filterwarnings("ignore")
SCENARIOS = []


def scenario(fn):
    SCENARIOS.append(fn)
    return fn


@scenario
def state_hooks(lib):
    m, log = net(lib), []
    m.register_state_dict_pre_hook(lambda mod, prefix, keep: log.append(("pre", prefix, keep)))
    m.register_state_dict_post_hook(lambda mod, sd, prefix, meta: log.append(("post", len(sd))))
    m._register_state_dict_hook(lambda mod, sd, prefix, meta: sd.pop("seen") is None)
    m.register_load_state_dict_pre_hook(lambda mod, sd, *rest: sd.setdefault("seen", lib.ones(1)) is None)
    m.register_load_state_dict_post_hook(lambda mod, keys: keys.unexpected_keys.append("x"))
    sd = m.state_dict()
    return list(sd) if isinstance(sd, dict) else sd, log


@scenario
def load_hooks(lib):
    m, log = net(lib), []
    sd = m.state_dict()
    del sd["seen"]
    m.register_load_state_dict_pre_hook(lambda mod, d, prefix, meta, strict, missing, extra, errors: d.update({prefix + "seen": lib.ones(1)}))
    m.register_load_state_dict_post_hook(lambda mod, keys: log.append([list(keys.missing_keys), list(keys.unexpected_keys)]))
    m.load_state_dict(sd)
    return m.seen, log


@scenario
def forward_hooks_order(lib):
    m, log = lib.nn.ReLU(), []
    m.register_forward_pre_hook(lambda mod, args: log.append("pre1"))
    m.register_forward_pre_hook(lambda mod, args: (args[0] + 1,), prepend=True)
    m.register_forward_pre_hook(lambda mod, args: args[0] * 2)
    m.register_forward_hook(lambda mod, args, out: log.append(("post1", args, out)))
    m.register_forward_hook(lambda mod, args, out: out * 10, prepend=True)
    with m.register_forward_hook(lambda mod, args, out: out + 1) as handle:
        first = m(lib.tensor([1.0]))
    del handle
    return first, m(lib.tensor([1.0])), log


@scenario
def forward_hooks_with_kwargs(lib):
    m, log = net(lib), []
    m.register_forward_pre_hook(lambda mod, args, kwargs: (args, {**kwargs, "gain": 2.0}), with_kwargs=True)
    m.register_forward_hook(lambda mod, args, kwargs, out: log.append((sorted(kwargs), kwargs["gain"])), with_kwargs=True)
    return m(lib.ones(1, 2), gain=1.0), log


@scenario
def pre_hook_with_bad_result(lib):
    m = lib.nn.ReLU()
    m.register_forward_pre_hook(lambda mod, args, kwargs: 3, with_kwargs=True)
    return m(lib.ones(1))


@scenario
def always_called_hooks(lib):
    m, log = net(lib), []
    m.register_forward_hook(lambda mod, args, out: log.append(("no", out)))
    m.register_forward_hook(lambda mod, args, out: log.append(("yes", out)), always_call=True)
    try:
        m("not a tensor")
    except Exception:
        pass
    return log


@scenario
def global_hooks(lib):
    module, log = lib.nn.modules.module, []
    handles = [module.register_module_forward_pre_hook(lambda mod, args: log.append(("gpre", type(mod).__name__))),
               module.register_module_forward_hook(lambda mod, args, out: log.append(("gpost", type(mod).__name__))),
               module.register_module_parameter_registration_hook(lambda mod, name, p: log.append(("param", name))),
               module.register_module_buffer_registration_hook(lambda mod, name, p: log.append(("buffer", name))),
               module.register_module_module_registration_hook(lambda mod, name, p: log.append(("module", name))),
               module.register_module_full_backward_hook(lambda mod, gi, go: log.append(("gback", type(mod).__name__))),
               module.register_module_full_backward_pre_hook(lambda mod, go: log.append(("gbackpre", type(mod).__name__)))]
    try:
        m = net(lib)
        m.register_forward_hook(lambda mod, args, out: log.append("own"))
        m(lib.ones(1, 2)).sum().backward()
    finally:
        for handle in handles:
            handle.remove()
    n = len(log)
    net(lib)(lib.ones(1, 2)).sum().backward()
    return log, len(log) == n


@scenario
def full_backward_hooks(lib):
    m, log = lib.nn.Linear(2, 1, bias=False), []
    with lib.no_grad():
        m.weight.fill_(3.0)
    m.register_full_backward_pre_hook(lambda mod, go: log.append(("pre", go)))
    m.register_full_backward_pre_hook(lambda mod, go: (go[0] * 2,))
    m.register_full_backward_hook(lambda mod, gi, go: log.append(("first", gi, go)))
    m.register_full_backward_hook(lambda mod, gi, go: (gi[0] * 10,))
    m.register_full_backward_hook(lambda mod, gi, go: log.append(("prepended", gi)), prepend=True)
    x = lib.ones(1, 2, requires_grad=True)
    m(x).sum().backward()
    return x.grad, m.weight.grad, log


@scenario
def full_backward_hook_without_input_grad(lib):
    m, log = lib.nn.Linear(2, 1, bias=False), []
    m.register_full_backward_hook(lambda mod, gi, go: log.append((gi, go)))
    m(lib.ones(1, 2)).sum().backward()
    return log


@scenario
def full_backward_hook_many_outputs(lib):
    class Two(lib.nn.Module):
        def forward(self, x, n, y):
            return x * 2, y * 3, n

    m, log = Two(), []
    m.register_full_backward_hook(lambda mod, gi, go: log.append((gi, go)))
    x, y = lib.ones(2, requires_grad=True), lib.ones(2, requires_grad=True)
    a, b, n = m(x, 5, y)
    (a + b).sum().backward()
    return log, x.grad, y.grad, n


@scenario
def backward_hook_wrong_count(lib):
    m = lib.nn.ReLU()
    m.register_full_backward_hook(lambda mod, gi, go: (gi[0], gi[0]))
    m(lib.ones(2, requires_grad=True)).sum().backward()


@scenario
def mixing_backward_hooks(lib):
    m = lib.nn.ReLU()
    m.register_backward_hook(lambda mod, gi, go: None)
    m.register_full_backward_hook(lambda mod, gi, go: None)


@scenario
def legacy_backward_hook(lib):
    m, log = lib.nn.ReLU(), []
    m.register_backward_hook(lambda mod, gi, go: log.append((gi, go)))
    x = lib.ones(2, requires_grad=True)
    (m(x) * 2).sum().backward()
    return log, x.grad


@scenario
def legacy_backward_hooks_that_miss_something_warn(lib):
    class Two(lib.nn.Module):
        def forward(self, x):
            return x * 2, x + 1

    class Named(lib.nn.Module):
        def forward(self, x, y=2):
            return {"a": x * y}
    x, texts = lib.ones(2, 2, requires_grad=True) * 2, []
    for m, args in ((lib.nn.Linear(2, 2), (x,)), (lib.nn.Sequential(lib.nn.ReLU(), lib.nn.Tanh()), (x,)), (Two(), (x,)), (Named(), (x,)), (Named(), (x, 3))):
        m.register_backward_hook(lambda mod, gi, go: None)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            m(*args)
        texts.append([(w.category, str(w.message)) for w in caught])
    return texts


@scenario
def backward_hooks_may_return_any_sequence(lib):
    results = []
    for change in (lambda g: [g[0] * 2], lambda g: (g[0], g[0]), lambda g: (), lambda g: 3):
        for register in ("register_full_backward_hook", "register_full_backward_pre_hook"):
            m, x = lib.nn.ReLU(), lib.ones(2, requires_grad=True)
            getattr(m, register)(lambda mod, grads, *rest: change(grads))

            def grad(lib):
                m(x).sum().backward()
                return x.grad
            results.append(outcome(grad, lib))
    return results


@scenario
def unused_inputs_show_zeros_to_backward_hooks(lib):
    class First(lib.nn.Module):
        def forward(self, x, y, constant, number):
            return x * 2, y * 3

    m, log = First(), []
    m.register_full_backward_hook(lambda mod, gi, go: log.append((gi, go)))
    x, y = lib.ones(2, requires_grad=True), lib.ones(2, requires_grad=True)
    m(x, y, lib.ones(1), 5)[0].sum().backward()
    return log, x.grad, y.grad


@scenario
def double_backward_through_a_hooked_module(lib):
    m, log = lib.nn.Linear(2, 2, bias=False), []
    with lib.no_grad():
        m.weight.fill_(0.5)
    m.register_full_backward_hook(lambda mod, gi, go: log.append("hook"))
    x = lib.ones(1, 2, requires_grad=True)
    grad, = lib.autograd.grad((m(x) ** 2).sum(), x, create_graph=True)
    grad.pow(2).sum().backward()
    return x.grad, m.weight.grad, log


@scenario
def always_called_hooks_see_the_output_that_was_reached(lib):
    def broken(*args):
        raise ValueError("broken hook")

    m, log = lib.nn.Identity(), []
    m.register_forward_hook(broken)
    m.register_forward_hook(lambda mod, args, out: log.append(out), always_call=True)
    try:
        m(3)
    except ValueError as error:
        log.append(str(error))
    return log


@scenario
def optimizer_hooks_see_all_arguments(lib):
    p, log = lib.nn.Parameter(lib.ones(1)), []
    optimizer = lib.optim.SGD([p], lr=0.5)
    p.grad = lib.ones(1)
    optimizer.register_step_pre_hook(lambda opt, args, kwargs: log.append((args[0] is opt, len(args), sorted(kwargs))))
    optimizer.register_step_pre_hook(lambda opt, args, kwargs: (args, {"closure": lambda: log.append("closure")}))
    optimizer.register_step_post_hook(lambda opt, args, kwargs: log.append((len(args), sorted(kwargs))))
    optimizer.step()
    return log, p


@pytest.mark.parametrize("fn", SCENARIOS, ids=lambda fn: fn.__name__)
def test_same_as_torch(fn):
    assert_same(fn)
