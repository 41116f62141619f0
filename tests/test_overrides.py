"""Functions taken over by subclasses of Tensor, by other classes and by modes, as PyTorch does it."""
import copy
import inspect
import pickle

import numpy as np
import pytest

import clnn
from clnn._tensor import override
from clnn.overrides import TorchFunctionMode, handle_torch_function, has_torch_function, resolve_name


def scalar_tensor_class():
    """A multiple of the identity with a table of its own functions."""
    handled = {}

    class Scalar:
        def __init__(self, n, value):
            self.n, self.value = n, value

        def dense(self):
            return self.value * clnn.eye(self.n)

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if func not in handled or not all(issubclass(t, (clnn.Tensor, cls)) for t in types):
                return NotImplemented
            return handled[func](*args, **(kwargs or {}))

    def implements(func):
        def register(own):
            handled[func] = own
            return own
        return register
    return Scalar, implements


def test_functions_of_a_class_that_is_no_tensor():
    Scalar, implements = scalar_tensor_class()
    implements(clnn.mean)(lambda x: x.value / x.n)
    for add in (clnn.add, clnn.Tensor.add):
        implements(add)(lambda a, b: Scalar(a.n, a.value + b.value) if type(a) is type(b) else clnn.add(
            *[t.dense() if isinstance(t, Scalar) else t for t in (a, b)]))
    implements(clnn.nn.functional.softplus)(lambda x: "softplus")
    implements(clnn.cat)(lambda parts, dim=0: ("cat", len(parts), dim))
    implements(clnn.view_as_real)(lambda x: "view")
    implements(clnn.Tensor.mul_)(lambda a, b: "in place")
    d = Scalar(3, 2)
    assert clnn.mean(d) == 2 / 3
    for first, expected in ((lambda: clnn.add(d, d).value, 4), (lambda: float(clnn.add(d, clnn.ones(3, 3)).sum()), 15.0),
                            (lambda: float((clnn.ones(3, 3) + d).sum()), 15.0), (lambda: clnn.nn.functional.softplus(d), "softplus"),
                            (lambda: clnn.cat([clnn.ones(1), d], dim=1), ("cat", 2, 1)), (lambda: clnn.view_as_real(d), "view"),
                            (lambda: clnn.ones(2).mul_(d), "in place")):
        override.deactivate()                       # each must also work as the first call of a program
        assert first() == expected
        assert first() == expected
    with pytest.raises(TypeError, match="Multiple dispatch failed for 'clnn.mul'"):
        clnn.mul(d, 3)
    with pytest.raises(TypeError, match="Multiple dispatch failed for 'clnn.stack'"):
        clnn.stack([d, d])
    with pytest.raises(TypeError, match="Multiple dispatch failed for 'clnn.Tensor.mul'"):
        clnn.ones(1).mul(d)
    with pytest.raises(TypeError, match=r"unsupported operand type\(s\) for \*: 'Tensor' and 'Scalar'"):
        clnn.ones(1) * d


def test_a_class_tells_methods_from_functions():
    """As MONAI's ``MetaTensor`` does, which calls the one in what it makes of the other."""
    for lib in (clnn, pytest.importorskip("torch")):
        told = []

        class Log(lib.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                told.append("function" if func in (lib.unbind, lib.exp, lib.add) else "method" if func in (lib.Tensor.unbind, lib.Tensor.exp, lib.Tensor.add) else func)
                return super().__torch_function__(func, types, args, kwargs)
        x = lib.ones(2).as_subclass(Log)
        for call in (lambda: x.unbind(0), lambda: lib.unbind(x, 0), lambda: x.exp(), lambda: lib.exp(x), lambda: x + 1, lambda: lib.add(x, 1)):
            call()
        assert told == ["method", "function"] * 3
    for name in "unbind add relu sum mul_ exp_ positive where".split():
        method = getattr(clnn.Tensor, name)
        assert method is not getattr(clnn, name, None) and pickle.loads(pickle.dumps(method)) is method


def test_other_errors_stay():
    with pytest.raises(TypeError, match="must be Tensor, not str"):
        clnn.mul("a", clnn.ones(1))
    with pytest.raises(TypeError, match="must be Tensor, not int"):
        clnn.sum(3)
    assert not override.active


def test_results_keep_the_subclass():
    class Sub(clnn.Tensor):
        pass

    class SubSub(Sub):
        pass

    class Other(clnn.Tensor):
        pass
    x = clnn.tensor([1.0, 2.0]).as_subclass(Sub)
    for r in (x + 1, 1 + x, x[0], x.sum(), clnn.stack([clnn.ones(2), x]), x.max(0).values, x.view(2, 1), x.detach(), x.data, x.T, clnn.zeros_like(x),
              clnn.add(Sub([0]), SubSub([1])).as_subclass(Sub), clnn.nn.Linear(2, 1)(x)):
        assert type(r) is Sub
    assert type(Sub([0]) + SubSub([1])) is SubSub and type(x.numpy()).__name__ == "ndarray" and type(x.tolist()) is list
    assert repr(x) == "Sub([1., 2.])"
    assert type(clnn.tensor(x)) is clnn.Tensor                # a factory looks at values only
    with pytest.raises(TypeError, match="unsupported operand type"):
        x + Other([1.0, 1.0])
    with pytest.raises(TypeError, match="Multiple dispatch failed"):
        x.add(Other([1.0, 1.0]))
    x.tag = "mine"
    for again in (copy.deepcopy(x), copy.copy(x)):
        assert type(again) is Sub and again.tag == "mine" and again.tolist() == [1.0, 2.0]
    with clnn._C.DisableTorchFunctionSubclass():
        assert type(x + 1) is clnn.Tensor


def test_a_subclass_has_history():
    class Sub(clnn.Tensor):
        pass
    leaf = clnn.ones(2, requires_grad=True)
    s = leaf.as_subclass(Sub)
    (s * s * 3).sum().backward()
    assert leaf.grad.tolist() == [6.0, 6.0] and type(leaf.grad) is clnn.Tensor and not s.is_leaf
    own = clnn.Tensor._make_subclass(Sub, clnn.ones(2), True)
    out = (own.exp() * own).sum()
    out.backward()
    assert type(out) is Sub and own.is_leaf and type(own.grad) is clnn.Tensor
    p = clnn.nn.Parameter(Sub([1.0, 2.0]))
    assert type(p) is Sub and isinstance(p, clnn.nn.Parameter) and type(p * 1) is Sub
    base = clnn.zeros(2, 2).as_subclass(Sub)
    base[0].add_(1)
    assert base.tolist() == [[1, 1], [0, 0]]
    got, = clnn.autograd.grad((own * clnn.ones(2)).sum(), own)
    assert got.tolist() == [1.0, 1.0]


def test_a_class_sees_methods_functions_and_properties():
    seen = []

    class Log(clnn.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append((func, len(args), kwargs))
            return super().__torch_function__(func, types, args, kwargs)
    x = clnn.ones(2).as_subclass(Log)
    for call, func, count in ((lambda: x + 1, clnn.Tensor.add, 2), (lambda: 1 - x, clnn.Tensor.__rsub__, 2), (lambda: x[0], clnn.Tensor.__getitem__, 2),
                              (lambda: x.shape, clnn.Tensor.shape.__get__, 1), (lambda: x.grad, clnn.Tensor.grad.__get__, 1),
                              (lambda: x.dtype, clnn.Tensor.dtype.__get__, 1), (lambda: clnn.relu(x), clnn.relu, 1), (lambda: len(x), clnn.Tensor.__len__, 1),
                              (lambda: x.add_(1), clnn.Tensor.add_, 2), (lambda: float(x.sum()), clnn.Tensor.sum, 1), (lambda: -x, clnn.Tensor.neg, 1)):
        seen.clear()
        call()
        assert seen[0][0] == func and seen[0][1] == count
    seen.clear()
    clnn.sum(x, dim=0, keepdim=True)
    assert seen == [(clnn.sum, 1, {"dim": 0, "keepdim": True})]
    x.requires_grad = True
    assert seen[-1][0] == clnn.Tensor.requires_grad.__set__


def test_a_mode_sees_every_call():
    names = []

    class Log(TorchFunctionMode):
        def __init__(self, mark):
            self.mark = mark

        def __torch_function__(self, func, types, args=(), kwargs=None):
            names.append(self.mark + resolve_name(func).rpartition(".")[2])
            return func(*args, **(kwargs or {}))
    with Log("a"):
        x = clnn.rand(2, requires_grad=True)
        with Log("b"):
            (x * 2).sum()
        x.sum().backward()
    assert names == ["arand", "bmul", "amul", "bsum", "asum", "asum", "abackward"]
    assert clnn.overrides._get_current_function_mode() is None

    class Swap(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return clnn.mul(*args) if func is clnn.add else func(*args, **(kwargs or {}))
    with Swap():
        assert float(clnn.add(clnn.tensor(3.0), 4)) == 12.0
        with clnn._C.DisableTorchFunction():
            assert float(clnn.add(clnn.tensor(3.0), 4)) == 7.0


def test_a_function_of_ones_own():
    class Sub(clnn.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return "taken" if func is twice else super().__torch_function__(func, types, args, kwargs)

    def twice(x):
        if has_torch_function((x,)):
            return handle_torch_function(twice, (x,), x)
        return x * 2
    assert twice(Sub([1.0])) == "taken" and twice(clnn.ones(1)).tolist() == [2.0]
    wrapped = clnn.overrides.wrap_torch_function(lambda x: (x,))(lambda x: x * 3)
    assert wrapped(clnn.ones(1)).tolist() == [3.0]


def test_questions():
    o = clnn.overrides
    table = o.get_overridable_functions()
    assert clnn.add in table[clnn] and clnn.Tensor.shape.__get__ in table[clnn.Tensor] and clnn.zeros not in table[clnn]
    assert clnn.zeros in o.get_ignored_functions() and clnn.manual_seed in o.get_ignored_functions() | {clnn.manual_seed}
    assert resolve_name(clnn.Tensor.shape.__get__) == "clnn.Tensor.shape.__get__" and resolve_name(clnn.linalg.vecdot) == "clnn.linalg.vecdot"
    assert o.is_tensor_method_or_property(clnn.Tensor.add_) and not o.is_tensor_method_or_property(clnn.nn.functional.softplus)
    assert o.is_tensor_like(clnn.ones(1)) and not o.is_tensor_like(3)
    stand_ins = o.get_testing_overrides()
    assert stand_ins[clnn.cat]() == -1 and list(inspect.signature(stand_ins[clnn.cat]).parameters) == list(inspect.signature(clnn.cat).parameters)


def test_the_check_comes_and_goes():
    function, code, names = clnn.mm, clnn.mm.__code__, list(inspect.signature(clnn.mm).parameters)
    override.activate()
    assert clnn.mm is function and clnn.mm.__code__ is not code and list(inspect.signature(clnn.mm).parameters) == names
    assert clnn.mm(clnn.ones(1, 2), clnn.ones(2, 1)).item() == 2.0 and clnn.ones(2).shape == (2,)
    assert pickle.loads(pickle.dumps(clnn.ones(2))).tolist() == [1.0, 1.0]
    override.deactivate()
    assert clnn.mm.__code__ is code and not override.active


def test_parameters_are_plain():
    p = clnn.nn.Parameter(clnn.ones(2))

    class Mine(clnn.nn.Parameter):
        pass
    assert type(p + 1) is clnn.Tensor and type(Mine(clnn.ones(2)) + 1) is clnn.Tensor
    assert not has_torch_function((p, Mine(clnn.ones(1)), clnn.ones(1), 3, [p]))


def test_other_ways_to_write_the_method():
    class Instance(clnn.Tensor):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return "instance"

    class Off(clnn.Tensor):
        __torch_function__ = clnn._C._disabled_torch_function_impl

    class Static:
        @staticmethod
        def __torch_function__(func, types, args=(), kwargs=None):
            return func.__name__, args[1:]
    assert clnn.ones(1).as_subclass(Instance) + 1 == "instance"
    assert type(clnn.ones(1).as_subclass(Off) + 1) is clnn.Tensor
    assert clnn.sub(Static(), 3) == ("sub", (3,))


def test_a_class_with_a_shape_of_its_own():
    class Image(clnn.Tensor):
        def __new__(cls, data):
            return clnn.as_tensor(data).as_subclass(cls)

        @property
        def shape(self):
            with clnn._C.DisableTorchFunctionSubclass():
                return super().shape
    t = Image([[1.0, 2.0]])
    assert t.shape == (1, 2) and type(t * 2) is Image and (t * 2).tolist() == [[2.0, 4.0]] and t.T.shape == (2, 1)
    leaf = clnn.ones(1, requires_grad=True)
    assert leaf.as_subclass(Image).grad_fn.name() == "AliasBackward0"


def test_copies_are_of_the_class_whatever_its_functions_give():
    for m in (clnn, pytest.importorskip("torch")):
        class Plain(m.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                with m._C.DisableTorchFunctionSubclass():
                    return func(*args, **(kwargs or {}))
        x = m.ones(2).as_subclass(Plain)
        x.note = "kept"
        assert type(x + 1) is m.Tensor and type(copy.copy(x)) is Plain and copy.copy(x).note == "kept"


def test_own_classes_ask_for_nothing():
    import clnn.nn.attention.bias
    import clnn.sparse  # noqa: F401
    for cls in (clnn.nn.Parameter, clnn.nn.UninitializedBuffer, clnn.nn.attention.bias.CausalBias):
        assert cls.__torch_function__ is override.disabled
    assert not override.active


def test_attributes_may_be_replaced_as_a_whole():
    """A program that copies one tensor's attributes to another leaves the history of both alone, also in methods that it adds to Tensor."""
    class Tagged(clnn.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            result = super().__torch_function__(func, types, args, kwargs or {})
            if isinstance(result, Tagged):
                result.adopt(args[0])
            return result

    class Tags:
        def copy_tags(self, other):
            self.__dict__.update({k: copy.deepcopy(v) for k, v in other.__dict__.items()})

    class Copying(Tags, clnn.Tensor):
        adopt = Tags.copy_tags

    x = clnn.ones(2, requires_grad=True).as_subclass(Copying)
    x.__dict__["tags"] = [1]
    y = x * 3
    y.adopt(x)
    assert (y.tags, vars(y), y.requires_grad) == ([1], {"tags": [1]}, True) and vars(y).pop("tags") == [1] and not hasattr(y, "tags")
    assert clnn.autograd.grad(y.sum(), x)[0].tolist() == [3, 3]
    clnn.Tensor.adopt = lambda self, other: setattr(self, "__dict__", dict(other.__dict__))
    clnn.alias_of = clnn.Tensor.as_subclass
    try:
        x = clnn.ones(3, requires_grad=True)
        t = x.as_subclass(Tagged)
        t.tag = "a"
        y = (t * 2).sum()
        assert type(y) is Tagged and y.tag == "a" and y.requires_grad and type(clnn.alias_of(y, clnn.Tensor)) is clnn.Tensor
        y.backward()
        assert x.grad.tolist() == [2, 2, 2]
    finally:
        del clnn.Tensor.adopt, clnn.alias_of


def test_symbols_have_pytorchs_names():
    torch = pytest.importorskip("torch")

    def told(m):
        names = []

        class Told(m.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                names.append(func.__name__)
                return super().__torch_function__(func, types, args, kwargs)
        x, n = m.ones(2).as_subclass(Told), m.ones(2, dtype=m.int64).as_subclass(Told)
        results = [1 - x, x == x, x ** 2, 2 ** x, 2 / x, x // 2, 1 // x, ~n, x.type(m.float32)]
        return names[:len(results)]
    assert told(clnn) == told(torch)


def test_helpers_of_a_module_are_no_functions_of_it():
    """A mode is told of what a program calls, not of what that takes to do it."""
    names = []

    class Watch(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            names.append(resolve_name(func))
            return func(*args, **(kwargs or {}))
    with Watch():
        float(clnn.from_numpy(np.ones(1, "float32")))
    assert not [n for n in names if n and ".fft." in n]


def test_the_protocol_of_a_class_may_change():
    class Changing(clnn.Tensor):
        pass

    x = clnn.ones(2).as_subclass(Changing)
    assert type(x + 1) is Changing
    Changing.__torch_function__ = classmethod(lambda cls, func, types, args=(), kwargs=None: "mine")
    assert x + 1 == clnn.add(x, 1) == "mine"
    Changing.__torch_function__ = clnn._C._disabled_torch_function_impl
    assert type(x + 1) is clnn.Tensor


def test_attributes_are_no_function_to_take_over():
    for lib in (clnn, pytest.importorskip("torch")):
        told = []

        class Tagged(lib.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                told.append(func)
                result = super().__torch_function__(func, types, args, kwargs)
                result.__dict__ = dict(args[0].__dict__)
                return result
        x = lib.ones(2).as_subclass(Tagged)
        x.tag = 1
        assert (x + 1).tag == 1 and len(told) == 1


TOLD = [lambda m, F, x: F.relu(x), lambda m, F, x: F.softmax(x, 1, 4), lambda m, F, x: F.dropout(x, 0.3), lambda m, F, x: F.layer_norm(x, (4,), bias=None),
        lambda m, F, x: F.cross_entropy(input=x, target=x), lambda m, F, x: F.l1_loss(x, x), lambda m, F, x: F.gelu(x), lambda m, F, x: F.normalize(x, 1),
        lambda m, F, x: F.max_pool2d(x, 2), lambda m, F, x: F.batch_norm(x, None, None), lambda m, F, x: F.linear(x, x), lambda m, F, x: m.split(x, 2),
        lambda m, F, x: m.norm(x), lambda m, F, x: m.tensordot(x, x, 1), lambda m, F, x: m.cdist(x, x), lambda m, F, x: m.unique(x, return_counts=True),
        lambda m, F, x: m.sum(x, 1), lambda m, F, x: m.linalg.norm(x), lambda m, F, x: m.special.i0e(x), lambda m, F, x: m.linalg.svd(A=x)]


def test_what_a_class_is_told_as_in_pytorch():
    texts = []
    for m in (pytest.importorskip("torch"), clnn):
        class Asked:
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None, m=m):
                name = m.overrides.resolve_name(func)
                return NotImplemented if name.endswith(".relu") else [name, len(args), {k: type(v).__name__ for k, v in (kwargs or {}).items()}]

        def told(call, x):
            try:
                return call(m, m.nn.functional, x)
            except TypeError as error:
                return str(error)
        override.deactivate()
        texts.append([told(call, Asked()) for call in TOLD])
        seen = []
        own = type("Own", (m.Tensor,), {"__torch_function__": classmethod(lambda cls, f, types, args=(), kwargs=None: seen.append((len(args), kwargs)))})
        x = m.ones(4, 4).as_subclass(own)
        x.split(2), x.norm(), x.unique(), x.split(2, 1)
        texts[-1] += seen
    for want, got in zip(*texts):
        assert str(got).replace("clnn.", "torch.") == str(want)
    assert len(texts[0]) == len(texts[1]) == len(TOLD) + len(seen)
