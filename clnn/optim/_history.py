"""The pairs of differences that L-BFGS works with; those of few parameters are rows of two matrices."""

import numpy as np

from clnn._tensor.dispatch import run
from clnn._tensor.interop import from_array
from clnn._tensor.tensor import empty
from clnn.core import dtype as dt
from clnn.core.shape import Size
from clnn.optim._rule import number

_MOST = 1 << 15         # elements of a vector up to which one launch for all pairs takes less time than some launches for each, on all cores
_FIRST = 8              # pairs that there is room for at first


def scalar(value, like):
    """A number as a tensor of the dtype and device of ``like``."""
    return from_array(np.array(value, like.dtype.np), like._storage.device)


class History:
    """Steps and differences of gradients, the oldest first.

    ``dirs``, ``steps`` and ``ro`` are the lists that states hold: tensors, views of the rows where there are any, and 1 / (s . y) of each pair, of which
    ``numbers`` are the numbers.
    """

    def __init__(self, dirs, steps, ro):
        self.dirs, self.steps, self.ro = dirs, steps, ro
        self.numbers = [number(r) for r in ro]
        self.first, self.rows = 0, None
        if dirs and self.suits(dirs[0]):
            self._move(max(_FIRST, len(dirs)))

    def _move(self, slots):
        """Into matrices with so many rows, the oldest pair in the first; the lists stay the same objects."""
        like = self.dirs[0]
        rows = [empty(Size((slots, like.numel())), like.dtype, like._storage.device) for _ in "YS"]
        for matrix, views in zip(rows, (self.dirs, self.steps)):
            for i, v in enumerate(views):
                matrix[i].copy_(v)
            views[:] = [matrix[i] for i in range(len(views))]
        self.first, self.rows = 0, rows

    def append(self, y, s, ro, most):
        """One pair more, in place of the oldest where there are ``most``."""
        if len(self.dirs) >= most:
            del self.dirs[0], self.steps[0], self.ro[0], self.numbers[0]
            self.first += 1
        self.numbers.append(ro)
        self.ro.append(scalar(ro, y))
        count = len(self.dirs)
        if not self.suits(y) or self.rows is None or count + 1 > self.rows[0].shape[0]:
            self.dirs.append(y)
            self.steps.append(s)
            if self.suits(y):
                self._move(min(max(_FIRST, 2 * count), max(most, count + 1)))
            return
        slots = self.rows[0].shape[0]
        for matrix, views, v in zip(self.rows, (self.dirs, self.steps), (y, s)):
            row = matrix[(self.first + count) % slots]
            row.copy_(v)
            views.append(row)

    @staticmethod
    def suits(q):
        """Whether vectors like ``q`` are kept as rows. Longer ones are worked on one by one, and together might be more than one buffer can hold."""
        return q.dtype in (dt.float32, dt.float64) and q.numel() <= _MOST and q._storage.device.kind != "meta"

    def apply(self, q, scale):
        """The inverse Hessian times ``q``, which :meth:`suits` and of which nobody else has the memory; there is a pair."""
        device, m, n = q._storage.device, len(self.dirs), q.numel()
        lanes, group = (64 // q.dtype.itemsize, 1) if device.is_cpu else (1, 1 << min(device.max_work_group, 256).bit_length() - 1)
        rho = from_array(np.array(self.numbers, q.dtype.np), device)
        run(device, "optim/two_loop", dict(T=q.dtype, W=lanes, L=group), (group,), (group,), self.rows[1], self.rows[0], rho, q,
            empty(Size((m,)), q.dtype, device), n, m, self.first % self.rows[0].shape[0], self.rows[0].shape[0], q.dtype.number(scale))
        return q
