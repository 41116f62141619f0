"""GradScaler: keep small float16 gradients from vanishing by scaling the loss."""

import enum
import math

from clnn.amp.autocast_mode import _cuda_is_available
from clnn._tensor.grad_mode import no_grad
from clnn._tensor.tensor import Tensor
from clnn.core.warn import warn

_READY, _UNSCALED, _STEPPED = "ready", "unscaled", "stepped"
_MAX_FLOAT32 = 3.4028234663852886e38


class OptState(enum.Enum):
    """What a scaler has done for an optimizer since its last update."""

    READY, UNSCALED, STEPPED = 0, 1, 2


class GradScaler:
    """Scales the loss, unscales the gradients, and skips steps whose gradients are not finite.

    Args:
        device: "cuda" (the default) turns the scaler off with a warning where there is no GPU, as in PyTorch; "gpu" and "cpu" do not.
        init_scale: first scale.
        growth_factor: what the scale grows by after `growth_interval` steps without overflow.
        backoff_factor: what it shrinks by after an overflow.
        enabled: False makes all methods pass through.

    Example::

        >>> w = clnn.ones(2, requires_grad=True)
        >>> opt = clnn.optim.SGD([w], lr=0.25)
        >>> scaler = clnn.amp.GradScaler("gpu")
        >>> scaler.scale((w * w).sum()).backward()
        >>> scaler.step(opt)
        >>> scaler.update()
        >>> w
        tensor([0.5000, 0.5000], requires_grad=True)

    The scale is a number on the host; `step` waits for the gradients once, to know whether they are finite.
    """

    def __init__(self, device="cuda", init_scale=2.0 ** 16, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000, enabled=True):
        if enabled and device == "cuda" and not _cuda_is_available():
            warn("torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.")
            enabled = False
        self._device, self._enabled = device, enabled
        if enabled:
            if growth_factor <= 1.0:
                raise AssertionError("The growth factor must be > 1.0.")
            if backoff_factor >= 1.0:
                raise AssertionError("The backoff factor must be < 1.0.")
        self._scale, self._growth_factor, self._backoff_factor = float(init_scale), growth_factor, backoff_factor
        self._growth_interval, self._growth_tracker = growth_interval, 0
        self._used = False  # whether anything was scaled yet
        self._optimizers = {}  # id -> [stage, whether its gradients were not finite]

    def scale(self, outputs):
        """Multiply a tensor, or each tensor of an iterable, by the scale."""
        if not self._enabled:
            return outputs
        self._used = True
        if isinstance(outputs, Tensor):
            return outputs * self._scale
        if isinstance(outputs, (list, tuple)):
            return type(outputs)([self.scale(x) for x in outputs])
        if hasattr(outputs, "__iter__"):
            return map(self.scale, outputs)
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def _check_used(self, what):
        if not self._used:
            raise AssertionError(f"Attempted {what} but _scale is None.  This may indicate your script did not use scaler.scale(loss or outputs) earlier "
                                 "in the iteration.")

    def _stage(self, optimizer):
        return self._optimizers.setdefault(id(optimizer), [_READY, None])

    def unscale_(self, optimizer):
        """Divide the gradients of an optimizer's parameters by the scale, e.g. before clipping them."""
        if not self._enabled:
            return
        self._check_used("unscale_")
        record = self._stage(optimizer)
        if record[0] == _UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if record[0] == _STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        record[1] = self._unscale(optimizer)
        record[0] = _UNSCALED

    @no_grad()
    def _unscale(self, optimizer):
        """Unscale in place; returns whether any gradient was not finite, or None if there are no gradients."""
        inverse, marks = 1.0 / self._scale, {}
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                if p.grad.element_size() == 2 and str(p.grad.dtype).endswith(".float16"):
                    raise ValueError("Attempting to unscale FP16 gradients.")
                p.grad.mul_(inverse)
                marks.setdefault(str(p.grad.device), []).append((p.grad * 0.0).sum().float())  # NaN if any entry is Inf or NaN
        if not marks:
            return None
        import clnn
        sums = [clnn.stack(same_device).sum().item() for same_device in marks.values()]
        return not all(math.isfinite(s) for s in sums)

    def step(self, optimizer, *args, **kwargs):
        """`optimizer.step(*args)`, unless its gradients hold Inf or NaN; unscales them first if that was not done."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._check_used("step")
        record = self._stage(optimizer)
        if record[0] == _STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if record[0] == _READY:
            self.unscale_(optimizer)
        if record[1] is None:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        result = None if record[1] else optimizer.step(*args, **kwargs)
        record[0] = _STEPPED
        return result

    def update(self, new_scale=None):
        """Adapt the scale after the steps of an iteration, or set it to `new_scale`."""
        if not self._enabled:
            return
        self._check_used("update")
        if new_scale is not None:
            self._scale = float(new_scale)
            self._optimizers = {}
            return
        found = [bad for _, bad in self._optimizers.values() if bad is not None]
        if not found:
            raise AssertionError("No inf checks were recorded prior to update.")
        if any(found):
            self._scale *= self._backoff_factor
            self._growth_tracker = 0
        else:
            self._growth_tracker += 1
            if self._growth_tracker == self._growth_interval:
                self._growth_tracker = 0
                if self._scale * self._growth_factor <= _MAX_FLOAT32:
                    self._scale *= self._growth_factor
        self._optimizers = {}

    def get_scale(self):
        """The present scale; 1.0 when disabled."""
        return self._scale if self._enabled else 1.0

    def is_enabled(self):
        """Whether scaling is on."""
        return self._enabled

    def get_growth_factor(self):
        """The growth factor."""
        return self._growth_factor

    def set_growth_factor(self, new_factor):
        """Set the growth factor."""
        self._growth_factor = new_factor

    def get_backoff_factor(self):
        """The backoff factor."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor):
        """Set the backoff factor."""
        self._backoff_factor = new_factor

    def get_growth_interval(self):
        """Steps without overflow before the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval):
        """Set the growth interval."""
        self._growth_interval = new_interval

    def _get_growth_tracker(self):
        return self._growth_tracker if self._enabled else 0

    def state_dict(self):
        """The scale and its settings; empty when disabled."""
        if not self._enabled:
            return {}
        return {"scale": self._scale, "growth_factor": self._growth_factor, "backoff_factor": self._backoff_factor,
                "growth_interval": self._growth_interval, "_growth_tracker": self._growth_tracker}

    def load_state_dict(self, state_dict):
        """Restore what `state_dict()` returned."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError("The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler.")
        self._scale, self._growth_tracker = float(state_dict["scale"]), int(state_dict["_growth_tracker"])
        self._growth_factor, self._backoff_factor = state_dict["growth_factor"], state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
