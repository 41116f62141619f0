"""Reductions, running reductions, norms and statistics."""
from ..._tensor.explain import explain

explain("mean", "``sum(x) / N``. Integers need ``dtype``, a float one; NaN of no elements.",
        "clnn.mean(clnn.tensor([1., 2., 6.]))", "tensor(3.)")
explain("nansum", "", 'clnn.nansum(clnn.tensor([1., float("nan"), 2.]))', "tensor(3.)")
explain("nanmean", "``nansum(x) / count of what is not NaN``; NaN where there is none.",
        'clnn.nanmean(clnn.tensor([1., float("nan"), 3.]))', "tensor(2.)")
explain("count_nonzero", "", "clnn.count_nonzero(clnn.tensor([1., 0., 2.]))", "tensor(2)")
explain("prod", "``x_1 x_2 ... x_N``; 1 of no elements.", "clnn.prod(clnn.tensor([2., 3., 4.]))", "tensor(24.)")
explain("var", "``correction=0`` (``unbiased=False``) is the variance of the numbers themselves; NaN where N is not above the correction.",
        "clnn.var(clnn.tensor([1., 2., 3., 4.]))", "tensor(1.6667)")
explain("std", "``sqrt(sum((x - mean)^2) / max(0, N - correction))``.",
        "clnn.std(clnn.tensor([1., 2., 3., 4.]))", "tensor(1.2910)")
explain("var_mean", "The pair of :func:`var` and :func:`mean` of the same elements, from one pass.",
        "clnn.var_mean(clnn.tensor([1., 2., 3.]))", "(tensor(1.), tensor(2.))")
explain("std_mean", "The pair of :func:`std` and :func:`mean` of the same elements, from one pass.",
        "clnn.std_mean(clnn.tensor([1., 2., 3.]))", "(tensor(1.), tensor(2.))")
explain("any", "``x_1 or x_2 or ... or x_N``; False of no elements.", "clnn.any(clnn.tensor([False, True]))", "tensor(True)")
explain("all", "``x_1 and x_2 and ... and x_N``; True of no elements.", "clnn.all(clnn.tensor([False, True]))", "tensor(False)")
explain("sum_to_size", "", "clnn.ones(2, 3).sum_to_size(1, 3)", "tensor([[2., 2., 2.]])")
explain("amax", "", "clnn.amax(clnn.tensor([[1., 5.], [7., 2.]]), 1)", "tensor([5., 7.])")
explain("amin", "", "clnn.amin(clnn.tensor([[1., 5.], [7., 2.]]), 1)", "tensor([1., 2.])")
explain("aminmax", "Over one dimension, or over all elements; NaN wins in both.",
        "clnn.aminmax(clnn.tensor([3., 1., 2.])).max", "tensor(3.)")
explain("min", "", "clnn.tensor([[1., 5.], [7., 2.]]).min(1).values", "tensor([1., 2.])")
explain("argmax", "", "clnn.argmax(clnn.tensor([1., 5., 2.]))", "tensor(1)")
explain("argmin", "", "clnn.argmin(clnn.tensor([4., 1., 2.]))", "tensor(1)")
explain("cumprod", "``y_i = x_1 x_2 ... x_i``.", "clnn.cumprod(clnn.tensor([1., 2., 3.]), 0)", "tensor([1., 2., 6.])")
explain("logcumsumexp", "``y_i = ln(exp(x_1) + ... + exp(x_i))``.",
        "clnn.logcumsumexp(clnn.tensor([0., 0., 0.]), 0)", "tensor([0.0000, 0.6931, 1.0986])")
explain("cummax", "``y_i = max(x_1, ..., x_i)``; NaN wins.",
        "clnn.cummax(clnn.tensor([1., 3., 2.]), 0).values", "tensor([1., 3., 3.])")
explain("cummin", "``y_i = min(x_1, ..., x_i)``; NaN wins.",
        "clnn.cummin(clnn.tensor([3., 1., 2.]), 0).values", "tensor([3., 1., 1.])")
explain("diff", "``y_i = x_(i + 1) - x_i``; ``prepend`` and ``append`` are joined to the input first.",
        "clnn.diff(clnn.tensor([1., 4., 9.]))", "tensor([3., 5.])")
explain("trapezoid", "``sum over i of (x_(i + 1) - x_i) (y_i + y_(i + 1)) / 2``.",
        "clnn.trapezoid(clnn.tensor([1., 2., 3.]))", "tensor(4.)")
explain("cumulative_trapezoid", "One value fewer than samples: the integral up to each of them but the first.",
        "clnn.cumulative_trapezoid(clnn.tensor([1., 2., 3.]))", "tensor([1.5000, 4.0000])")
explain("linalg_vector_norm", "", "clnn.linalg.vector_norm(clnn.tensor([3., 4.]))", "tensor(5.)")
explain("dist", "``(sum |input - other|^p)^(1/p)`` over all elements, after broadcasting.",
        "clnn.dist(clnn.tensor([1., 2.]), clnn.tensor([4., 6.]))", "tensor(5.)")
explain("logsumexp", "``m + ln(sum(exp(x - m)))`` with ``m = max(x)``.",
        "clnn.logsumexp(clnn.tensor([0., 0.]), 0)", "tensor(0.6931)")
explain("cov", "``C = sum over n of (x_n - mean) (x_n - mean)^H / (N - correction)``; ``fweights`` repeat an observation, ``aweights`` weigh it.",
        "clnn.cov(clnn.tensor([[1., 2., 3.], [3., 2., 1.]]))", "tensor([[ 1., -1.],\n        [-1.,  1.]])")
explain("corrcoef", "``R_ij = C_ij / sqrt(C_ii C_jj)`` with C of :func:`cov`, in [-1, 1].",
        "clnn.corrcoef(clnn.tensor([[1., 2., 3.], [3., 2., 1.]]))", "tensor([[ 1., -1.],\n        [-1.,  1.]])")
explain("quantile", "", "clnn.quantile(clnn.tensor([1., 2., 3., 4.]), 0.5)", "tensor(2.5000)")
explain("nanquantile", "", 'clnn.nanquantile(clnn.tensor([1., float("nan"), 3.]), 0.5)', "tensor(2.)")
explain("median", "", "clnn.median(clnn.tensor([3., 1., 2.]))", "tensor(2.)")
explain("nanmedian", "Lower median of what is not NaN; with ``dim`` also its position.",
        'clnn.nanmedian(clnn.tensor([3., float("nan"), 2.]))', "tensor(2.)")
explain("mode", "", "clnn.mode(clnn.tensor([1., 2., 2.])).values", "tensor(2.)")
explain("bincount", "", "clnn.bincount(clnn.tensor([0, 1, 1, 3]))", "tensor([1, 2, 0, 1])")
explain("histc", "", "clnn.histc(clnn.tensor([1., 2., 1.]), 4, 0, 3)", "tensor([0., 2., 1., 0.])")
explain("histogram", "", "clnn.histogram(clnn.tensor([1., 2., 1.]), 4, range=(0., 3.)).hist", "tensor([0., 2., 1., 0.])")
