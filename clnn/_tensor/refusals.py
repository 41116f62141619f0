"""What PyTorch refuses though the kernels here could compute it, in one table: dtypes of the first tensor, and numbers where it wants tensors.

``declare.py`` reads it: an entry need not say it, and a program that runs here runs there.
"""
from __future__ import annotations

import functools
import inspect
import sys

from ..core import dtype as dt
from ..core.warn import called_by_program, first_time, warn
from ..graph.op import REGISTRY
from .grad_mode import state
from .rules import parameter_names
from .tensor import Tensor

_BOOL = (dt.bool_,)
_WHOLE, _LOW = (dt.bool_, *dt.INTS), (dt.float16, dt.bfloat16)
_DTYPES = ((_BOOL, """abs trace prelu floor ceil trunc round positive dot vdot inner _clamp_min _clamp_max _clamp_both _clamp_min_number
                      _clamp_max_number _clamp_both_number _trunc_divide _pow bitwise_left_shift
                      bitwise_right_shift corrcoef cov isin kthvalue median nanmedian topk threshold hardtanh relu6 index_reduce bucketize
                      searchsorted trapezoid cumulative_trapezoid linalg_vander max_pool1d max_pool2d max_pool3d"""),
           (_WHOLE, """hypot logaddexp logaddexp2 igamma igammac lerp stft glu gaussian_nll_loss soft_margin_loss multi_margin_loss
                       multilabel_margin_loss adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d segment_reduce orgqr"""),
           (_WHOLE + _LOW, "cholesky_inverse cholesky_solve ormqr lu_solve linalg_lu_solve triangular_solve"),
           (_WHOLE, "fake_quantize_per_tensor_affine grouped_mm"), (dt.INTS, "max_pool1d"),
           (dt.INTS, "prelu max_unpool1d max_unpool2d max_unpool3d _im2col linalg_solve_triangular"))
REFUSED: dict = {}
for _rows, _names in _DTYPES:
    for _name in _names.split():
        REFUSED[_name] = (*REFUSED.get(_name, ()), *_rows)

# What PyTorch says of complex numbers and of bools, where it is no kernel that lacks the dtype but the operator that asks.
_UNSUPPORTED = "Unsupported input type encountered for {op}(): {dtype}"
_COMPLEX = {_UNSUPPORTED: "isin", "{op}(): does not support complex input": "argmax argmin",
            " Sort does not support complex dtypes on CPU": "argsort sort msort",
            " topk does not support complex dtypes on CPU": "topk",
            "cdist only supports floating-point dtypes, X1 got: {dtype}": "cdist",
            "expected common dtype to be floating point, yet common dtype is {dtype}": "cosine_similarity",
            "{op} is not supported for complex tensors.": "deg2rad rad2deg",
            "{op} not implemented for complex tensors.": "fmax fmin maximum minimum",
            "torch.frexp() only supports floating-point dtypes": "frexp",
            "heaviside is not yet implemented for complex tensors.": "heaviside",
            "{op} does not support complex inputs.": "isneginf isposinf",
            "kl_div: Complex inputs not supported.": "kl_div",
            "nansum on CPU does not support complex inputs": "nanmean nansum",
            "quantile() input tensor must be either float or double dtype": "nanquantile quantile",
            "pdist only supports floating-point dtypes": "pdist"}
_BOOLS = {_UNSUPPORTED: "isin", "cov(): bool dtype is not supported for input": "corrcoef cov",
          "Bool inputs not supported for hardtanh": "hardtanh relu6",
          "Boolean inputs not supported for relu": "relu",
          "The `+` operator, on a bool tensor is not supported.": "positive",
          "topk does not support bool dtypes on CPU": "topk",
          "trapezoid: received a bool input for `y`, but bool is not supported": "trapezoid"}
_MEAN = "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: {dtype}"
_BOOLS[_MEAN] = _averages = "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d"
_COMPLEX, _BOOLS, _INTEGERS = ({name: words for words, names in table.items() for name in names.split()} for table in (_COMPLEX, _BOOLS, {_MEAN: _averages}))

# By operator, which of the first two arguments may be a number: none, or the second one.
_TENSORS = dict.fromkeys("""atan2 fmax fmin gcd lcm heaviside hypot igamma igammac logaddexp logaddexp2 logical_and logical_or logical_xor maximum minimum
                            nextafter complex polar ldexp dist kl_div soft_margin_loss poisson_nll_loss pairwise_distance""".split(), 2)
_FIRST = dict.fromkeys("eq ne lt le gt ge fmod copysign rsub clamp_min clamp_max clamp".split(), 1)
TENSORS = {**_TENSORS, **_FIRST}
# Whose ``out=`` has to have the dtype of the result; all others convert.
EXACT = frozenset("""abs addbmm addmm addmv all aminmax any amax amin argmax argmin baddbmm bitwise_not bmm bucketize ceil cross det diag dot
                     fix floor frac gather heaviside inner inverse isin linalg_cholesky linalg_cholesky_ex linalg_cross linalg_eigh linalg_eigvalsh
                     linalg_inv_ex linalg_ldl_factor linalg_ldl_factor_ex linalg_ldl_solve linalg_lu linalg_lu_factor linalg_lu_factor_ex linalg_lu_solve
                     linalg_matrix_norm linalg_multi_dot linalg_norm linalg_qr linalg_slogdet linalg_solve linalg_solve_ex linalg_solve_triangular
                     linalg_svd linalg_svdvals linalg_vector_norm logcumsumexp lu_solve linear masked_select matmul matrix_power mm msort multinomial mv
                     nonzero norm qr scatter_add scatter_reduce searchsorted slogdet svd take_along_dim tensordot tril triu vdot
                     avg_pool2d avg_pool3d complex conj_physical float_power frexp gelu hardshrink histc histogram index_add index_copy index_reduce
                     index_select isneginf isposinf log_softmax logsigmoid lu_unpack nan_to_num nanquantile narrow_copy neg ormqr polar quantile
                     round scatter sgn sign signbit clamp clamp_min clamp_max slice_scatter softmax softplus softshrink take triangular_solve trunc where""".split())
# Which take no ``out=``: functions of PyTorch's ``nn.functional`` alone, and those of tensors that have no such form.
NO_OUT = frozenset("""adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d affine_grid argsort
                      argwhere as_strided_scatter atleast_1d atleast_2d atleast_3d avg_pool1d batch_norm bilinear binary_cross_entropy bincount block_diag
                      binary_cross_entropy_with_logits broadcast_tensors cdist celu channel_shuffle combinations conj constant_pad_nd conv1d conv2d conv3d
                      conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d corrcoef cosine_embedding_loss cosine_similarity count_nonzero cov
                      cross_entropy ctc_loss diag_embed diagflat diagonal_scatter dist einsum elu embedding embedding_bag fake_quantize_per_channel_affine
                      fake_quantize_per_tensor_affine flip fliplr flipud fold gaussian_nll_loss glu grid_sample group_norm hardsigmoid hardswish hardtanh
                      hinge_embedding_loss huber_loss imag index_fill index_put instance_norm interpolate isfinite isinf isnan isreal istft kl_div l1_loss
                      layer_norm leaky_relu linalg_matrix_exp linalg_vander linear_cross_entropy local_response_norm lp_pool1d lp_pool2d lp_pool3d
                      margin_ranking_loss masked_scatter matrix_exp max_pool1d max_pool2d max_pool3d mish moveaxis movedim mse_loss multi_margin_loss
                      multilabel_margin_loss multilabel_soft_margin_loss native_channel_shuffle nll_loss one_hot pad pairwise_distance pdist
                      pixel_shuffle pixel_unshuffle poisson_nll_loss positive prelu put ravel real relu relu6 repeat_interleave resolve_conj resolve_neg
                      rms_norm roll rot90 rrelu segment_reduce select_scatter selu silu smooth_l1_loss soft_margin_loss softmin softsign split_with_sizes stft
                      tanhshrink tile trace trapezoid trapz tril_indices triplet_margin_loss triplet_margin_with_distance_loss triu_indices unique
                      var_mean std_mean unique_consecutive unravel_index""".split())
_WIDENED = frozenset("mean var std logsumexp nansum nanmean".split())
_ALONG = frozenset("sum prod median nanmedian".split())           # those that take one along a dimension only
# How PyTorch's operators say so, where they have words of their own.
_WORDS = {"Found dtype {out} but expected {own}": "abs ceil clamp clamp_min clamp_max conj_physical fix floor frac neg round sgn sign trunc",
          "{op} does not support non-boolean outputs.": "isneginf isposinf signbit",
          "{op} only supports bool tensor for result, got: {out}": "all any",
          "{op}: Expected out tensor to have scalar type {own} but got scalar type{out}": "nonzero",
          "{op}(): self and result must have the same scalar type": "index_select masked_select",
          "{op}: dtype of out: {out} should be same as input: {own}": "nan_to_num",
          "{op} is not yet implemented for tensors with different dtypes.": "heaviside",
          "result dtype {out} does not match input dtype {own}": "dot vdot",
          "Expected out type to be {own} but got {out}": "where",
          "Expected object of scalar type {own} but got scalar type {out} for argument 'out'": "complex polar",
          "Expected the dtype for input and out to match, but got {own} for input's dtype and {out} for out's dtype.": "amax amin",
          "tensordot: Expected the output tensor to have dtype {own}, but got an output tensor with dtype {out}": "inner tensordot",
          "take(): self and out expected to have the same dtype, but got self.dtype = {own} and out.dtype = {out}": "take",
          "the output given to {op} has dtype {out} but the operation's result requires dtype {own}": "float_power"}
_WORDS = {name: words for words, names in _WORDS.items() for name in names.split()}
# Of these, whose elements do not lie where they were read: ``out=`` may not be an operand.
MOVED = frozenset("gather index_add index_select masked_select take take_along_dim".split())
# Made of others, but elementwise: an operand that is ``out=`` keeps its shape.
BROADCAST = frozenset("add sub div pow nextafter lcm addcmul addcdiv lerp where clamp clamp_min clamp_max xlog1py float_power".split())
_KINDS = {dt.bool_: "bool", dt.int64: "int"}


# Functions that give way to others: PyTorch says so once to a program that calls them.
_GOING = dict(qr="linalg.qr", cholesky="linalg.cholesky", lu="linalg.lu_factor / torch.linalg.lu_factor_ex", triangular_solve="linalg.solve_triangular",
              lu_solve="linalg.lu_solve")
DEPRECATED = {name: f"torch.{name} is deprecated in favor of torch.{new} and will be removed in a future PyTorch release."
              for name, new in _GOING.items()}
_INSTEAD = dict(qr=("Q, R = torch.qr(A, some)", "Q, R = torch.linalg.qr(A, 'reduced' if some else 'complete')"),
                cholesky=("L = torch.cholesky(A)", "L = torch.linalg.cholesky(A)"),
                lu=("LU, pivots = torch.lu(A, compute_pivots)", "LU, pivots = torch.linalg.lu_factor(A, compute_pivots)"),
                triangular_solve=("X = torch.triangular_solve(B, A).solution", "X = torch.linalg.solve_triangular(A, B)."),
                lu_solve=("X = torch.lu_solve(B, LU, pivots)", "X = torch.linalg.lu_solve(LU, pivots, B)"))
_BEFORE = dict(qr="The boolean parameter 'some' has been replaced with a string parameter 'mode'.\n",
               triangular_solve="torch.linalg.solve_triangular has its arguments reversed and does not return a copy of one of the inputs.\n",
               lu_solve="Note that torch.linalg.lu_solve has its arguments reversed.\n")
for _name, (_old, _new) in _INSTEAD.items():
    DEPRECATED[_name] = DEPRECATED[_name].replace(" and", "and" if _name.endswith("solve") else " and", 1) \
        + f"\n{_BEFORE.get(_name, '')}{_old}\nshould be replaced with\n{_new}"
DEPRECATED["cholesky"] += ("\nand\nU = torch.cholesky(A, upper=True)\nshould be replaced with\nU = torch.linalg.cholesky(A).mH\n"
                           "This transform will produce equivalent results for all valid (symmetric positive definite) inputs.")
DEPRECATED["lu"] += ("\nand\nLU, pivots, info = torch.lu(A, compute_pivots, get_infos=True)\nshould be replaced with\n"
                     "LU, pivots, info = torch.linalg.lu_factor_ex(A, compute_pivots)")
DEPRECATED["chain_matmul"] = ("torch.chain_matmul is deprecated and will be removed in a future PyTorch release. Use torch.linalg.multi_dot instead, which accepts "
                              "a list of two or more tensors rather than multiple parameters.")


def constant(name, argument, tensor):
    """Refuse a tensor that asks for a gradient where there is none."""
    if tensor is not None and tensor._rg and state.grad:
        raise RuntimeError(f"The function '{name}' is not differentiable with respect to argument '{argument}'. This input cannot have requires_grad True.")


def _spelled(op):
    """The operator's name as the program wrote it: the function of an in-place form is called by that form (cold, so that the frame can be asked)."""
    caller = sys._getframe(3).f_code
    return op.name + "_" * (caller.co_name == "inplace" and caller.co_filename.endswith("declare.py"))


def _old_order(name, factors, given, operands):
    rest = ", ".join([f"Tensor {p}" for p in operands])
    before, named = ", ".join([f"Number {f}" for f in given]), ", ".join([f"Number {f} = 1" for f in factors])
    return (f"This overload of {name} is deprecated:\n\t{name}({before}, {rest})\nConsider using one of the following signatures instead:\n"
            f"\t{name}({rest}, *, {named})")


def in_old_order(op, factors, args):
    """The arguments of a call with factors before the operands that they scale, by name; None for any other call. PyTorch says once that it is old."""
    if len(factors) == 1 and len(args) == len(op.params) and isinstance(args[1], Tensor) and not args[1].dim() and not args[1].requires_grad:
        args = (args[0], args[1].item(), *args[2:])
    operands = [a for a in args if isinstance(a, Tensor)]
    numbers = [a for a in args if isinstance(a, (int, float, complex))]
    if not numbers or len(operands) + len(numbers) != len(args) or (operands and args[0] is not operands[0] and len(factors) == 1):
        return None
    operands += numbers[len(factors):]
    if len(operands) != len([p for p in op.params if p not in factors]):
        return None
    if first_time("old order"):
        warn(_old_order(_spelled(op), factors, factors[:len(args) - len(operands)], [p for p in op.params[1:] if p not in factors]))
    return {**dict(zip(op.params, operands)), **dict(zip(factors, numbers))}


def no_number(op, at: int, kind: str):
    name = op.params[at]
    return TypeError(f"{op.name}(): argument '{name}' (position {at + 1}) must be Tensor, not {kind}")


def in_words(op, dtype):
    """The error of an operator that itself asks for other dtypes than ``dtype``, None of one whose kernels lack it."""
    name = op.name.lstrip("_")
    table = _COMPLEX if dtype.is_complex else _BOOLS if dtype is dt.bool_ else _INTEGERS if dtype.category == dt.INT else {}
    return RuntimeError(table[name].format(op=name, dtype=dt.SPOKEN[dtype.name])) if name in table else None


def declared(op) -> None:
    """Take the dtypes that the table refuses from those that ``op`` declares."""
    less = REFUSED.get(op.name)
    if less:
        op.dtypes = tuple([d for d in op.dtypes or dt.REAL + (dt.COMPLEXES if op.complex else ()) if d not in less])


def of_tensors(op, rule):
    """The result rule of an elementwise operator, which refuses numbers where the table does."""
    count = TENSORS.get(op.name)
    if not count:
        return rule

    def call(common, kinds):
        for at in range(count):
            if kinds[at] % 3 == 0:
                row = dt.ALL[kinds[at] // 3]
                raise no_number(op, at, _KINDS.get(row, "complex" if row.is_complex else "float"))
        return rule(common, kinds)
    return call


def same_dtype(op, out, result, given=()) -> None:
    """Raise when the target ``out`` of an operator in ``EXACT`` has another dtype than its result. ``given``: its arguments."""
    if op.name.startswith("clamp") and any([isinstance(a, Tensor) and a is not out for a in given[1:]]):             # bounds that are tensors convert
        return
    for o, r in zip(out, result) if isinstance(out, (tuple, list)) else ((out, result),):
        if isinstance(o, Tensor) and isinstance(r, Tensor) and o.dtype is not r.dtype and not (o.dtype is dt.uint8 and op.name in ("all", "any")):
            if op.name in _WORDS:
                raise RuntimeError(_WORDS[op.name].format(op=op.name, out=dt.SPOKEN[o.dtype.name], own=dt.SPOKEN[r.dtype.name]))
            raise RuntimeError(f"Expected out tensor to have dtype {spoken(r.dtype)}, but got {spoken(o.dtype)} instead ({op.name})")


# Of the linear algebra: what PyTorch calls the function, and its result, where the target of ``out=`` cannot hold that.
_CASTS = dict(linalg_tensorsolve="tensorsolve result", linalg_tensorinv="tensorinv result", linalg_eig="torch.linalg.eig eigenvalues",
              linalg_eigvals="torch.linalg.eigvals eigenvalues", pinverse="linalg.pinv result", linalg_cond="linalg.cond result",
              orgqr="torch.linalg.householder_product result", cholesky_solve="cholesky_solve result", cholesky_inverse="cholesky_inverse result",
              geqrf="torch.geqrf a")


def castable(op, out, result) -> None:
    """Raise where a function of ``_CASTS`` gives numbers that its target has no dtype for."""
    if op.name in _CASTS:
        for o, r in zip(out, result) if isinstance(out, (tuple, list)) else ((out, result),):
            if isinstance(o, Tensor) and r.dtype.category > o.dtype.category:
                name, what = _CASTS[op.name].split()
                raise RuntimeError(f"{name}: Expected {what} to be safely castable from {dt.SPOKEN[r.dtype.name]} dtype, but got {what} with dtype "
                                   f"{dt.SPOKEN[o.dtype.name]}")


def no_out(name) -> bool:
    """Whether the function ``name`` takes no ``out=``, or not always."""
    return name in NO_OUT or name in _ALONG


def takes_out(op, args, kwargs) -> None:
    """Raise where the operator has no form with ``out=`` in PyTorch, or none without a dimension."""
    if op.name in NO_OUT:
        raise TypeError(f"{op.name}() got an unexpected keyword argument 'out'")
    if op.name in _ALONG and len(args) < 2 and "dim" not in kwargs and "axis" not in kwargs:
        raise TypeError(f"{op.name}() received an invalid combination of arguments - got (Tensor, out=Tensor), but expected a dimension beside out")


def widened(op, out, args):
    """The operands of a reduction into memory of a wider dtype, in which it is then computed."""
    first = args[0] if args else None
    if op.name not in _WIDENED or not isinstance(out, Tensor) or not isinstance(first, Tensor) or not out.dtype.is_floating_point:
        return args
    wide = not first.dtype.is_complex and out.dtype.itemsize > first.dtype.itemsize or op.name == "logsumexp" and first.dtype.category < dt.FLOAT
    return (first.to(out.dtype), *args[1:]) if wide and (first.dtype.is_floating_point or op.name == "logsumexp") else args


def dtype_into(out, dtype):
    """The dtype to compute a sum in: ``dtype``, or where that is not said, the dtype of the target ``out``, as in PyTorch."""
    if out is None or dtype is None:
        return dtype if out is None else out.dtype
    if dt.as_dtype(dtype) is not out.dtype:
        raise RuntimeError(f"Expected out tensor to have dtype {spoken(dt.as_dtype(dtype))}, but got {spoken(out.dtype)} instead")
    return dtype


def spoken(row) -> str:
    return dt.IN_C.get(row.name, row.name)


# Parameters that PyTorch takes True and False for, and no other values that are true or false.
_FLAGS = frozenset("""keepdim descending largest stable ceil_mode count_include_pad unbiased equal_nan hermitian unitriangular full_matrices is_causal
                      scale_grad_by_freq log_target log_input zero_infinity swap return_inverse return_counts out_int32 train training""".split())
_COUNTS = frozenset("padding_idx ignore_index groups decimals".split())         # and integers for, but neither fractions nor these
_NO_COUNT = (float, bool, str)
_NONE = type(None)
# What a dimension that is given must not be: where PyTorch has a form without one, None does not stand for that.
_DIMS = dict.fromkeys("prod median nanmedian".split(), ("int", None, (_NONE,))) | dict(logsumexp=("tuple of ints", None, (_NONE,)), aminmax=("int", None, (tuple, list)))


def _refused(name, param, body):
    """(what the argument has to be, the only class or None, classes that it must not be) of a parameter; None where that is not looked at."""
    if param in _FLAGS:
        optional = inspect.signature(body).parameters[param].default is None
        return "bool", (bool, _NONE) if optional else (bool,), ()
    if param in _COUNTS:
        return "int", None, _NO_COUNT
    if param == "dim" and name in _DIMS:
        return _DIMS[name]
    return None


def _typed(name, body):
    """(position, name, what it has to be, only classes, other classes) of those parameters of ``body``."""
    rows = [(at, p, _refused(name, p, body)) for at, p in enumerate(parameter_names(body))]
    return tuple([(at, p, *row) for at, p, row in rows if row is not None])


def _check_types(name, typed, args, kwargs):
    for at, param, what, only, never in typed:
        if at < len(args):
            value = args[at]
        elif param in kwargs:
            value = kwargs[param]
        else:
            continue
        if value.__class__ not in only if only is not None else value.__class__ in never:
            raise TypeError(f"{name.lstrip('_')}(): argument '{param}' must be {what}, not {type(value).__name__}")


def guarded(name, body, seldom=False):
    """The body of the operator ``name``, which refuses what the table does before it computes. It goes below what repeats calls, which asks no body.
    ``seldom``: it is repeated, so that what its arguments are can be looked at, too."""
    less, count, waiting, typed = REFUSED.get(name), TENSORS.get(name, 0), name in DEPRECATED, _typed(name, body) if seldom else ()
    if not less and not count and not waiting and not typed:
        return body

    @functools.wraps(body)
    def call(*args, **kwargs):
        op = REGISTRY[name]
        if waiting and called_by_program() and first_time(name):
            warn(DEPRECATED[name])
        if typed:
            _check_types(name, typed, args, kwargs)
        for at in range(min(count, len(args))):
            if isinstance(args[at], (int, float, complex)):
                raise no_number(op, at, type(args[at]).__name__)
        first = args[0] if args else kwargs.get(op.params[0])
        if less and isinstance(first, Tensor) and first.dtype in less:
            from .elementwise import unsupported
            raise unsupported(op, first.dtype)
        return body(*args, **kwargs)
    return call
