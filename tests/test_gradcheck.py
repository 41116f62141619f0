"""What ``gradcheck`` and ``gradgradcheck`` ask of a function, and in which words they refuse."""
import warnings

import pytest
from scenarios import assert_same


def _made(t, forward, backward):
    return type("Made", (t.autograd.Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)}).apply


def _hooked(hook):
    def fn(x):
        y = x.clone()
        y.register_hook(hook)
        return y
    return fn


def _undefined(g):
    if g is None:
        raise RuntimeError("undefined")


CHECKS = {
    "right": lambda t, x: t.autograd.gradcheck(t.sin, x),
    "without the gradient": lambda t, x: t.autograd.gradcheck(_hooked(lambda g: g + 0.01), (x,), atol=0.1),
    "undefined gradients": lambda t, x: t.autograd.gradcheck(_hooked(_undefined), (x,)),
    "not to be checked": lambda t, x: t.autograd.gradcheck(_hooked(_undefined), (x,), check_undefined_grad=False),
    "layout": lambda t, x: t.autograd.gradcheck(_made(t, lambda c, x: x.clone(), lambda c, g: g.to_sparse()), (x,)),
    "zero stride": lambda t, x: t.autograd.gradcheck(t.sin, (x[:1].expand(2, 2),), raise_exception=False),
    "narrow": lambda t, x: t.autograd.gradcheck(lambda x: x * 2, (x.detach().float().requires_grad_(),), atol=0.1),
    "sparse output": lambda t, x: t.autograd.gradcheck(lambda x: x.to_sparse(), (x,), raise_exception=False),
    "sparse input": lambda t, x: t.autograd.gradcheck(lambda x: x.to_dense(), (x.detach().to_sparse().requires_grad_(),)),
    "masked": lambda t, x: t.autograd.gradcheck(lambda x: x.to_dense(), (x.detach().to_sparse().requires_grad_(),), masked=True),
    "nothing": lambda t, x: t.autograd.gradcheck(t.sin, (x,), check_backward_ad=False),
    "batched without backward": lambda t, x: t.autograd.gradcheck(t.sin, (x,), check_backward_ad=False, check_forward_ad=True, check_batched_grad=True),
    "batched forward": lambda t, x: t.autograd.gradcheck(t.sin, (x,), check_batched_forward_grad=True),
    "batched": lambda t, x: t.autograd.gradcheck(t.sin, (x,), check_batched_grad=True),
    "numbers": lambda t, x: t.autograd.gradcheck(lambda x: (x * 2, 3), (x,)),
    "second": lambda t, x: t.autograd.gradgradcheck(lambda x: x ** 3, (x,), gen_non_contig_grad_outputs=True, check_fwd_over_rev=True),
    "second of nothing": lambda t, x: t.autograd.gradgradcheck(t.sin, (x,), check_rev_over_rev=False),
    "second without backward": lambda t, x: t.autograd.gradgradcheck(t.sin, (x,), check_rev_over_rev=False, check_fwd_over_rev=True),
}


@pytest.mark.parametrize("name", CHECKS)
def test_checks(name):
    def run(t):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            try:
                got = CHECKS[name](t, t.tensor([0.5, 1.5], dtype=t.float64, requires_grad=True))
            except (RuntimeError, ValueError, AssertionError, AttributeError) as error:
                got = next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins"), str(error)
        return got, [str(w.message) for w in seen if "gradient" in str(w.message)]
    assert_same(run)
