"""PyTorch's backend switches. They can be set and read back; clnn's kernels are deterministic and choose their algorithm themselves.

Only ``cuda.matmul.allow_tf32`` (and ``fp32_precision``) changes what is computed: see :func:`clnn.set_float32_matmul_precision`.
"""
from __future__ import annotations

import contextlib
import sys
import types
import typing

from .core.config import config
from .core.warn import warn
from .runtime.drivers import host_flags

__path__ = []           # so that "import clnn.backends.cudnn" looks for the modules made here


class _Switches(types.ModuleType):
    """A module of switches: its attributes, and functions that change them for a ``with`` block."""

    def __init__(self, name, doc, available=False, **values):
        super().__init__(f"{__name__}.{name}", doc)
        vars(self).update(values)
        self.is_available = lambda: available
        sys.modules[self.__name__] = self

    @contextlib.contextmanager
    def flags(self, **values):
        """Set switches inside the block."""
        before = {key: getattr(self, key, None) for key in values}
        vars(self).update(values)
        try:
            yield
        finally:
            vars(self).update(before)


class _Products:
    """``cuda.matmul``: how exactly products of float32 matrices are computed, the same setting as :func:`clnn.set_float32_matmul_precision`."""

    allow_fp16_reduced_precision_reduction = allow_bf16_reduced_precision_reduction = allow_fp16_accumulation = False

    @property
    def allow_tf32(self):
        return config.matmul_precision != "highest"

    @allow_tf32.setter
    def allow_tf32(self, value):
        if not isinstance(value, bool):
            raise RuntimeError(f"set_allow_tf32_cublas expects a bool, but got {type(value).__name__}")
        config.matmul_precision = "high" if value else "highest"

    @property
    def fp32_precision(self):
        return "tf32" if self.allow_tf32 else "ieee"

    @fp32_precision.setter
    def fp32_precision(self, value):
        if value not in ("ieee", "tf32", "none"):
            raise RuntimeError(f"Unknown precision: {value}")
        self.allow_tf32 = value == "tf32"


def _vectors():
    """The widest vector instructions of the host's processor, by PyTorch's name."""
    flags = host_flags()
    return "AVX512" if {"avx512f", "avx512dq", "avx512bw", "avx512vl"} <= flags else "AVX2" if "avx2" in flags else "DEFAULT"


@contextlib.contextmanager
def _block(*args, **kwargs):
    """A block that changes nothing: attention has one implementation."""
    yield


def _old_kernels(enable_flash=True, enable_math=True, enable_mem_efficient=True, enable_cudnn=True):
    """A block that changes nothing, see ``nn.attention.sdpa_kernel``."""
    warn("`torch.backends.cuda.sdp_kernel()` is deprecated. In the future, this context manager will be removed. Please see "
         "`torch.nn.attention.sdpa_kernel()` for the new context manager, with updated signature.", FutureWarning)
    return _block()


__allow_nonbracketed_mutation = _block          # libraries open it to set switches, which are never frozen here


def _library(backend=None):
    """The library that PyTorch was asked to prefer; clnn has kernels of its own."""
    return backend


def _cannot(params, debug=False):
    """False: attention has one implementation, which takes what PyTorch's takes."""
    return False


class _Attention(typing.NamedTuple):
    """What attention would be computed of."""

    query: typing.Any
    key: typing.Any
    value: typing.Any
    attn_mask: typing.Any
    dropout: float
    is_causal: bool
    enable_gqa: bool


class _Plans:
    """``cuda.cufft_plan_cache``: plans of Fourier transforms are kernels, which are kept."""

    size, max_size = 0, 4096

    def clear(self):
        """Nothing is kept here."""

    def __getitem__(self, device):
        return self


class _Cuda(_Switches):
    """``cuda``, where older programs look for the ways to compute attention, too."""

    @property
    def SDPBackend(self):
        from .nn.attention import SDPBackend
        return SDPBackend


class _FastPath(_Switches):
    """``mha``: whether layers of transformers may take their fast path, which only PyTorch has."""

    def get_fastpath_enabled(self):
        """What was set."""
        return vars(self).get("_enabled", True)

    def set_fastpath_enabled(self, value):
        """Set it."""
        vars(self)["_enabled"] = value


class _Engine(_Switches):
    """``quantized``: the library that would compute with quantised tensors."""

    @property
    def engine(self):
        return vars(self).get("_engine", "x86")

    @engine.setter
    def engine(self, name):
        if name not in self.supported_engines:
            raise RuntimeError("quantized engine NoQEngine is not supported" if name == "none" else f"{name} is not a valid value for quantized engine")
        vars(self)["_engine"] = name


cudnn = _Switches("cudnn", "Accepted: convolutions need no library.", benchmark=False, deterministic=False, enabled=True, allow_tf32=False,
                  benchmark_limit=10, fp32_precision="ieee", version=lambda: None, is_acceptable=lambda tensor: False)
cuda = _Cuda("cuda", "Accepted: sums are always accumulated in float32 or wider.", is_built=lambda: True, sdp_kernel=_old_kernels,
                 matmul=_Products(),
                 enable_flash_sdp=lambda enabled: None, enable_mem_efficient_sdp=lambda enabled: None, enable_math_sdp=lambda enabled: None,
                 enable_cudnn_sdp=lambda enabled: None, flash_sdp_enabled=lambda: True, mem_efficient_sdp_enabled=lambda: True,
                 math_sdp_enabled=lambda: True, cudnn_sdp_enabled=lambda: False, preferred_linalg_library=_library, preferred_blas_library=_library,
                 preferred_rocm_fa_library=_library, is_flash_attention_available=lambda: False, is_ck_sdpa_available=lambda: False,
                 can_use_flash_attention=_cannot, can_use_efficient_attention=_cannot, can_use_cudnn_attention=_cannot, SDPAParams=_Attention,
                 fp16_bf16_reduction_math_sdp_allowed=lambda: False, allow_fp16_bf16_reduction_math_sdp=lambda enabled: None,
                 cufft_plan_cache=_Plans())
mha = _FastPath("mha", "Layers of transformers have one path, which is the fast one.", available=True)
nnpack = _Switches("nnpack", "Not available.", set_flags=lambda _enabled: (False,))
mps = _Switches("mps", "Not available; the Apple GPU is an OpenCL device.", is_built=lambda: False)
mkl = _Switches("mkl", "Not available.", VERBOSE_OFF=0, VERBOSE_ON=1, verbose=contextlib.nullcontext)
mkldnn = _Switches("mkldnn", "Not available.", enabled=False, deterministic=True, VERBOSE_OFF=0, VERBOSE_ON=1, VERBOSE_ON_CREATION=2, verbose=contextlib.nullcontext)
openmp = _Switches("openmp", "Not available.")
opt_einsum = _Switches("opt_einsum", "Accepted.", enabled=False, strategy=None)
quantized = _Engine("quantized", "One engine serves all names: clnn computes the same whichever is set.", supported_engines=["qnnpack", "onednn", "x86", "fbgemm"])
cpu = _Switches("cpu", "The CPU is an OpenCL device.", available=True, get_cpu_capability=_vectors)
fp32_precision = "ieee"
