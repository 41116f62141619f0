"""Operators of a program's own, compared with PyTorch's."""
import doctest
from typing import List, Optional, Sequence, Tuple

import numpy as np
import pytest

import clnn
from clnn import _custom, library


@pytest.fixture(autouse=True)
def no_trace():
    before = dict(_custom._table)
    yield
    for name in set(_custom._table) - set(before):
        _custom.forget(name)


def api(module):
    """Where programs declare their operators, in clnn or in PyTorch."""
    if module is clnn:
        return library
    from torch import library as theirs
    return theirs


def both(program):
    """What ``program(module, Tensor)`` gives with clnn and with PyTorch."""
    torch = pytest.importorskip("torch")
    return program(clnn, clnn.Tensor), program(torch, torch.Tensor)


def alike(program):
    a, b = both(program)
    assert len(a) == len(b)
    for x, y in zip(a, b):
        if isinstance(x, (str, bool, int, type(None))):
            assert x == y
        else:
            np.testing.assert_allclose(x, y, rtol=1e-6)


def crop_program(m, Tensor):
    def crop(pic: Tensor, box: Sequence[int]) -> Tensor:
        return m.from_numpy(pic.detach().numpy()[:, box[0]:box[1]].copy())
    op = api(m).custom_op("shop::crop", crop, mutates_args=())

    @op.register_fake
    def _(pic, box):
        return pic.new_empty(pic.shape[0], box[1] - box[0])

    def backward(ctx, grad):
        full = grad.new_zeros(ctx.shape)
        full[:, ctx.box[0]:ctx.box[1]] = grad
        return full, None

    def setup_context(ctx, inputs, output):
        pic, ctx.box = inputs
        ctx.shape = pic.shape
    op.register_autograd(backward, setup_context=setup_context)
    x = m.arange(12.0).reshape(3, 4).requires_grad_()
    out = m.ops.shop.crop(x, [1, 3])
    (out * out).sum().backward()
    checks = api(m).opcheck(op, (x, [1, 3]))
    meta = m.ops.shop.crop(m.empty(3, 4, device="meta"), (0, 2))
    return [out.tolist(), x.grad.tolist(), str(tuple(meta.shape)), out.requires_grad, m.ops.shop.crop.default(x, [0, 1]).tolist(), str(sorted(checks)),
            str(set(checks.values())), str(m.ops.shop.crop), op._qualname]


def test_an_operator_with_fake_and_gradient():
    alike(crop_program)


def test_gradients_are_shown_under_the_operators_name_and_overloads_are_found_by_theirs():
    torch = pytest.importorskip("torch")
    names = []
    for lib in (clnn, torch):
        custom = api(lib)
        own = custom.Library("shown_ops", "DEF")
        own.define("twice.of(Tensor x) -> Tensor")
        own.impl("twice.of", lambda x: x * 2, "CompositeExplicitAutograd")
        custom.register_autograd("shown_ops::twice.of", lambda ctx, g: g * 2, lib=own)
        names.append(lib.ops.shown_ops.twice.of(lib.ones(1, requires_grad=True)).grad_fn.name())
        with pytest.raises((RuntimeError, AttributeError)):
            custom.register_autograd("shown_ops::twice.none", lambda ctx, g: g, lib=own)
    assert names == ["GeneratedBackwardFor_shown_ops_twice_ofBackward"] * 2


def test_lists_and_defaults():
    @library.custom_op("shop::mix", mutates_args=())
    def mix(parts: List[clnn.Tensor], bias: Optional[clnn.Tensor] = None, scale: float = 2.0) -> Tuple[clnn.Tensor, clnn.Tensor]:
        total = sum(p.clone() for p in parts) * scale + (0 if bias is None else bias)
        return total, -total

    def backward(ctx, g, h):
        total = g - h
        return [total * ctx.scale for _ in range(ctx.count)], total.sum(0) if ctx.needs_input_grad[1] else None, None

    def setup(ctx, inputs, output):
        parts, bias, ctx.scale = inputs
        ctx.count = len(parts)
        assert ctx.needs_input_grad[0] == [True, True]
    mix.register_autograd(backward, setup_context=setup)
    a, b, bias = clnn.ones(2, 3, requires_grad=True), clnn.full((2, 3), 3.0, requires_grad=True), clnn.ones(3, requires_grad=True)
    u, v = mix([a, b], bias)
    (u * 2 + v).sum().backward()
    assert u.tolist() == [[9.0] * 3] * 2 and v.tolist() == [[-9.0] * 3] * 2
    assert a.grad.tolist() == b.grad.tolist() == [[2.0] * 3] * 2 and bias.grad.tolist() == [2.0] * 3
    w, _ = clnn.ops.shop.mix([a.detach()], scale=5.0)
    assert w.tolist() == [[5.0] * 3] * 2 and not w.requires_grad


def test_keyword_only_arguments():
    def program(m, Tensor):
        @api(m).custom_op("shop::turn", mutates_args=())
        def turn(x: Tensor, *, flip: bool = False) -> Tensor:
            return -x if flip else x * 1
        turn.register_autograd(lambda ctx, g: -g if ctx.flip else g, setup_context=lambda ctx, inputs, keyword_only_inputs, output: setattr(
            ctx, "flip", keyword_only_inputs["flip"]))
        a = m.ones(2, requires_grad=True)
        turn(a, flip=True).sum().backward()
        return [a.grad.tolist(), turn(a).tolist()]
    alike(program)


def test_schemas():
    def program(m, Tensor):
        def f(x: Tensor, y: Optional[Tensor], n: int, p: List[int], s: str = "a", *, b: bool = True, d: Optional[float] = None) -> Tuple[Tensor, int]:
            pass

        def g(x: Tensor, out: List[Tensor]) -> None:
            pass
        return [api(m).infer_schema(f, mutates_args=()), api(m).infer_schema(g, mutates_args={"out"}), api(m).infer_schema(g, mutates_args="unknown")]
    alike(program)
    with pytest.raises(ValueError, match="must have a type annotation"):
        library.infer_schema(lambda x: x, mutates_args=())
    with pytest.raises(ValueError, match="namespace::name"):
        library.custom_op("bare", lambda: None, mutates_args=())


def test_kernels_by_device():
    def program(m, Tensor):
        @api(m).custom_op("shop::where", mutates_args=(), device_types="cpu")
        def where(x: Tensor) -> Tensor:
            return x + 1

        @where.register_kernel("cuda")
        def _(x):
            return x + 2
        with pytest.raises(RuntimeError, match="no fake impl"):
            where(m.ones(1, device="meta"))
        return [where(m.ones(1)).tolist()]
    if clnn.get_default_device().type == "cpu":
        alike(program)
    else:
        assert program(clnn, clnn.Tensor) == [[3.0]]


def test_changing_an_argument():
    def program(m, Tensor):
        @api(m).custom_op("shop::add_one_", mutates_args={"x"})
        def add_one_(x: Tensor, n: int = 1) -> None:
            x.add_(n)
        x = m.zeros(2)
        before = x._version
        got = add_one_(x)
        m.ops.shop.add_one_(x, n=3)
        return [x.tolist(), got, x._version > before, str(api(m).opcheck(add_one_, (m.zeros(2),), test_utils="test_schema"))]
    alike(program)


def test_the_older_forms():
    def program(m, Tensor):
        lib = api(m).Library("shop", "FRAGMENT")
        lib.define("twice(Tensor x, int n=2) -> Tensor")

        @api(m).impl(lib, "twice", "CompositeExplicitAutograd")
        def _(x, n=2):
            return x * n
        if m is clnn:                                   # what it looks like may be known first
            api(m).register_fake("shop::early", lambda x: m.empty_like(x))
            api(m).define("shop::early", "(Tensor x) -> Tensor")
            assert m.ops.shop.early(m.empty(3, device="meta")).shape == (3,)
        api(m).define("shop::cube", "(Tensor x) -> Tensor")

        @api(m).impl("shop::cube", "default")
        def _(x):
            return x * x * x

        @api(m).register_fake("shop::cube")
        def _(x):
            return m.empty_like(x)
        api(m).register_autograd("shop::cube", lambda ctx, g: g * 3 * ctx.saved_tensors[0] ** 2,
                                    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0]))
        x = m.tensor([2.0], requires_grad=True)
        m.ops.shop.cube(x).backward()
        out = [m.ops.shop.twice(x.detach(), n=5).tolist(), x.grad.tolist(), m.ops.shop.twice.default(m.ones(1)).tolist(), str(m.ops.shop.cube.default)]
        lib._destroy()
        return out
    alike(program)


def test_errors():
    def program(m, Tensor):
        @api(m).custom_op("shop::plain", mutates_args=())
        def plain(x: Tensor) -> Tensor:
            return x.clone()

        @api(m).custom_op("shop::same", mutates_args=())
        def same(x: Tensor) -> Tensor:
            return x
        texts = []
        for call in (lambda: plain(m.ones(1, requires_grad=True)).backward(), lambda: plain(), lambda: plain(m.ones(1), 3), lambda: plain(m.ones(1), q=1),
                     lambda: same(m.ones(1)), lambda: m.ops.shop.nothing):
            try:
                call()
                texts.append("no error")
            except Exception as exc:
                texts.append(f"{type(exc).__name__}: {str(exc)[:28]}")
        return texts
    alike(program)


def test_opcheck_finds_faults():
    lib = library

    @lib.custom_op("shop::sneaky", mutates_args=())
    def sneaky(x: clnn.Tensor) -> clnn.Tensor:
        x.add_(1)
        return x.clone()

    @sneaky.register_fake
    def _(x):
        return clnn.empty(1, device="meta")
    with pytest.raises(lib.OpCheckError, match="not defined as mutable but was mutated"):
        lib.opcheck(sneaky, (clnn.ones(2),))
    found = lib.opcheck(sneaky, (clnn.ones(2),), raise_exception=False)
    assert found["test_autograd_registration"] == "SUCCESS" and "shape" in str(found["test_faketensor"])
    found = lib.opcheck(sneaky, (clnn.ones(2, requires_grad=True),), raise_exception=False, test_utils="test_autograd_registration")
    assert "no autograd formula" in str(found["test_autograd_registration"])


def test_with_the_rest_of_the_library():
    crop_program(clnn, clnn.Tensor)
    op = clnn.ops.shop.crop
    x = clnn.arange(12.0).reshape(3, 4)
    assert clnn.vmap(lambda t: op(t, [0, 2]))(clnn.stack([x, x])).shape == (2, 3, 2)
    assert clnn.autograd.gradcheck(lambda t: op(t, [1, 3]), (x.double().requires_grad_(),))

    class Sub(clnn.Tensor):
        pass
    assert type(op(x.as_subclass(Sub), [0, 1])) is Sub
    library.register_autocast("shop::crop", "cpu", clnn.bfloat16)
    with clnn.autocast("cpu", dtype=clnn.bfloat16):
        @library.custom_op("shop::kind", mutates_args=())
        def kind(x: clnn.Tensor) -> clnn.Tensor:
            return x * 1
        kind.register_autocast("cpu", clnn.float16)
        assert kind(x).dtype is clnn.float16
    assert clnn.ops.aten.add(x, 1)[0, 0] == 1 and str(clnn.ops.aten.mm) == "aten.mm" and clnn.ops.aten.mm is clnn.ops.aten.mm
    assert clnn.ops.aten.add.Tensor(x, x)[0, 1] == 2
    with pytest.raises(AttributeError):
        clnn.ops.aten.no_such_operator


def test_documentation():
    failed, tried = doctest.testmod(library, extraglobs={"clnn": clnn})
    assert not failed and tried > 5
    failed, tried = doctest.testmod(clnn.overrides, extraglobs={"clnn": clnn})
    assert not failed and tried >= 5
    from clnn.autograd import forward_ad
    assert not doctest.testmod(forward_ad, extraglobs={"clnn": clnn}).failed


SCHEMAS = ["f(Tensor x) -> Tensor", "f(x: Tensor) -> Tensor", "f(Foo x) -> Tensor", "f(Tensor x, int) -> Tensor", "f(Tensor x, int y=) -> Tensor", "f(Tensor x) -> Foo",
           "(Tensor x) -> Tensor", "other::f(Tensor x) -> Tensor", "f(Tensor x, int y=1, Tensor z) -> Tensor", "f(Tensor x,) -> Tensor", "f(Tensor 1x) -> Tensor", "f",
           "f(Tensor x=1) -> Tensor", "f(float x=inf) -> Tensor", "f(Tensor(a -> *) x) -> Tensor(a)[]", "f(List[int] x) -> Tensor", "f(Dict(str, Tensor) x) -> Tensor?",
           "f(Tensor[] x, int[2] y=1, float? z=None, str s='a', *, bool b=True, Scalar w=1.0, ScalarType? d=None) -> (Tensor y, int[] n)", "f(Tensor x)"]


def _pytorch():
    """PyTorch and its module of that name."""
    torch = pytest.importorskip("torch")
    from torch import library as theirs
    return torch, theirs


@pytest.mark.parametrize("at", range(len(SCHEMAS)))
def test_texts_that_are_no_schemas(at):
    def defined(torch, theirs):
        try:
            theirs.Library(f"texts{at}", "DEF").define(SCHEMAS[at])
        except RuntimeError:
            return "refused"
        return "taken"
    torch, theirs = _pytorch()
    assert defined(clnn, library) == defined(torch, theirs)


def test_arguments_are_of_the_types_of_the_schema():
    torch, theirs = _pytorch()

    def outcomes(t, lib):
        made = lib.Library("typed", "DEF")
        made.define("g(Tensor x, int n, float z=1.0, *, bool b=False) -> Tensor")
        made.define("h(Tensor[] x, int[] n, str s='a', Scalar w=1, Tensor? y=None) -> Tensor")
        made.impl("g", lambda x, n, z=1.0, *, b=False: x * n, "CPU")
        made.impl("h", lambda x, n, s="a", w=1, y=None: x[0].clone() if w else 1, "CPU")
        g, h, x, found = t.ops.typed.g, t.ops.typed.h, t.ones(1), []
        for call in (lambda: g(x, 2), lambda: g(x, 2.5), lambda: g(1, 2), lambda: g(x, "a"), lambda: g(x, 2, 1.0, True), lambda: g(x, 2, x=x), lambda: g(x, t.tensor(2)),
                     lambda: g(x, 2, "a"), lambda: g(x, None), lambda: h(x, [1]), lambda: h([x], 1), lambda: h((x,), (1,)), lambda: h([x], [1.5]),
                     lambda: h([x], [1], w="a"), lambda: h([x], [1], y=1), lambda: h([1], [1]), lambda: h([x], [1], w=1j),
                     lambda: h([x], [1], s=1), lambda: h([x], [1], w=0)):
            try:
                found.append(call().tolist())
            except RuntimeError as error:
                found.append(str(error).partition("\n")[0].partition(" Declaration")[0].strip())
        return found
    assert outcomes(clnn, library) == outcomes(torch, theirs)
