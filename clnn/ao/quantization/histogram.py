"""The observer that keeps a histogram and looks for the range of numbers whose rounding costs least."""
from __future__ import annotations

import warnings

import numpy as np

import clnn

from .observer import _EPS, UniformQuantizationObserverBase
from .utils import is_per_tensor

__all__ = ["HistogramObserver"]


class HistogramObserver(UniformQuantizationObserverBase):
    """Keeps a histogram of all inputs. :meth:`calculate_qparams` narrows the range from both ends as long as the mean squared error of rounding falls.

    Args:
        bins: of the histogram. Default: 2048.
        dtype, qscheme, reduce_range, quant_min, quant_max, eps: see :class:`UniformQuantizationObserverBase`.

    Example::

        >>> observer = clnn.ao.quantization.HistogramObserver()
        >>> _ = observer(clnn.arange(256.0))
        >>> observer.calculate_qparams()
        (tensor([1.0000]), tensor([0], dtype=clnn.int32))
    """

    __module__ = UniformQuantizationObserverBase.__module__      # where PyTorch has it

    def __init__(self, bins=2048, dtype=clnn.quint8, qscheme=clnn.per_tensor_affine, reduce_range=False, quant_min=None, quant_max=None, factory_kwargs=None,
                 eps=_EPS, is_dynamic=False, **kwargs):
        self._expect_scheme(qscheme, is_per_tensor, "torch.per_tensor_symmetric and torch.per_tensor_affine")
        if is_dynamic:
            raise NotImplementedError("HistogramObserver doesn't support dynamic quantization")
        super().__init__(dtype, qscheme, reduce_range, quant_min, quant_max, factory_kwargs, eps, is_dynamic, **kwargs)
        self.bins, self.upsample_rate, self.dst_nbins = bins, 16, 2 ** (8 * dtype.itemsize)
        self.register_buffer("histogram", clnn.zeros(bins, **(factory_kwargs or {})))
        self.register_buffer("min_val", clnn.tensor(float("inf"), **(factory_kwargs or {})))
        self.register_buffer("max_val", clnn.tensor(float("-inf"), **(factory_kwargs or {})))

    def forward(self, x_orig):
        if not x_orig.numel():
            return x_orig
        x = x_orig.detach().to(self.min_val.dtype)
        low, high = (t.item() for t in clnn.aminmax(x))
        if low == float("-inf") or high == float("inf"):
            warnings.warn("torch.inf detected in input tensor, ignoring input", stacklevel=2)
            x = x[x.abs() != float("inf")]
            if not x.numel():
                return x_orig
            low, high = (t.item() for t in clnn.aminmax(x))
        before, after = self.min_val.item(), self.max_val.item()
        if before == float("inf") or after == float("-inf"):
            self._keep(clnn.histc(x, self.bins, low, high), low, high)
            return x_orig
        new_low, new_high = min(before, low), max(after, high)
        histogram = clnn.histc(x, self.bins, new_low, new_high)
        self._keep(histogram + self._spread(before, after, new_low, new_high), new_low, new_high)
        return x_orig

    def _keep(self, histogram, low, high):
        self.histogram.copy_(histogram)
        self.min_val.fill_(low)
        self.max_val.fill_(high)

    def _spread(self, before, after, low, high):
        """The histogram so far over the wider range from ``low`` to ``high``: each bin in 16 parts, which go where their middle lies."""
        if (before, after) == (low, high):
            return self.histogram
        if before == after:
            return clnn.histc(self.min_val.reshape(1), self.bins, low, high) * self.histogram.sum()
        parts = self.bins * self.upsample_rate
        width = (np.float32(after) - np.float32(before)) / np.float32(parts)
        middles = clnn.linspace(before, after, parts + 1)[:-1].numpy() + np.float32(0.5) * width
        edges = clnn.linspace(low, high, self.bins + 1).numpy()
        places = np.clip(np.searchsorted(edges, middles, side="right") - 1, 0, self.bins - 1)
        counts = np.repeat(self.histogram.cpu().numpy(), self.upsample_rate) / np.float32(self.upsample_rate)
        return clnn.tensor(np.bincount(places, counts, self.bins).astype(np.float32), device=self.histogram.device)

    # -- the search -------------------------------------------------------------------------------------------------------------------
    def _error(self, histogram, width, first, last):
        """The squared error of rounding, if the bins ``first`` to ``last`` are covered by the integers: within a bin the density is even."""
        f = np.float32
        step = width * (last - first + 1) / self.dst_nbins
        if step == 0:
            return 0.0
        begin = ((np.arange(self.bins) - first).astype(f) * f(width)).astype(f)
        end = begin + f(width)
        at, until = (np.clip(np.floor(edge / f(step)), 0, self.dst_nbins - 1).astype(f) for edge in (begin, end))
        density = histogram / f(width)

        def cubes(a, b):
            return density * ((b * b * b - a * a * a) / f(3))
        half = f(step / 2)
        total = cubes(begin - (at + f(0.5)) * f(step), half)
        total = total + (until - at - f(1)) * cubes(-half, half)
        total = total + cubes(-half, end - (until * f(step) + half))
        return float(total.sum())

    def _range(self):
        """(least, greatest) number that the integers are to cover."""
        histogram = self.histogram.cpu().numpy()
        low, high = self.min_val.item(), self.max_val.item()
        width = (high - low) / self.bins
        total, sums = float(histogram.sum()), np.cumsum(histogram, dtype=np.float64).astype(np.float32)
        alpha, beta, first, last, least = 0.0, 1.0, 0, self.bins - 1, float("inf")
        while alpha < beta:
            next_alpha, next_beta = alpha + 1e-5, beta - 1e-5
            left = min(max(first, int(np.searchsorted(sums, np.float32(next_alpha * total), "left"))), last)
            right = max(min(last, int(np.searchsorted(sums, np.float32(next_beta * total), "right")) - 1), first)
            if left - first > last - right:
                new, alpha = (left, last), next_alpha
            else:
                new, beta = (first, right), next_beta
            if new == (first, last):
                continue
            error = self._error(histogram, width, *new)
            if error > least:
                break
            least, (first, last) = error, new
        step = (np.float32(high) - np.float32(low)) / np.float32(self.bins)
        return np.float32(low) + step * np.float32(first), np.float32(low) + step * np.float32(last + 1)

    def calculate_qparams(self):
        """(scale, zero point), tensors of one element."""
        if self.min_val.item() == float("inf") and self.max_val.item() == float("-inf"):
            warnings.warn("must run observer before calling calculate_qparams. Returning default scale and zero point ", stacklevel=2)
            return clnn.tensor([1.0], device=self.min_val.device), clnn.tensor([0], device=self.min_val.device)
        if self.bins != len(self.histogram):
            raise AssertionError("The number of bins in histogram should be equal to the number of bins supplied while making this observer")
        return self._calculate_qparams(*(clnn.tensor(float(v), device=self.min_val.device) for v in self._range()))
