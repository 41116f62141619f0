"""What ``help`` says of Tensor's methods that are no operators: they are too short to hold a docstring where they are defined."""
from __future__ import annotations

from .._tensor.tensor import Tensor

_TEXTS = dict(
    apply_="Replace each element by ``fn`` of it, computed by Python; for tests and small tensors.",
    backward="Gradients of this tensor with respect to all leaves that require them, added up in their ``grad``; ``gradient`` has the shape of the tensor.",
    cpu="The tensor on the CPU device; itself when it is there.",
    cuda="The tensor on a GPU.",
    dense_dim="Number of dense dimensions, those after the sparse ones.",
    detach_="Cut this tensor off the graph that computed it.",
    dim="Number of dimensions.",
    dim_order="The dimensions from the outermost to the innermost one in memory.",
    element_size="Bytes of one element.",
    expand_as="``expand`` to the shape of ``other``.",
    get_device="Number of the device, -1 for the CPU.",
    is_complex="Whether the dtype is complex.",
    is_conj="Whether a conjugate is pending: never here, conjugates are computed at once.",
    is_contiguous="Whether the elements lie in row-major order (or that of ``memory_format``) without gaps.",
    is_distributed="Whether the tensor is spread over several machines: never.",
    is_floating_point="Whether the dtype is a float one.",
    is_neg="Whether a negative is pending: never here, negatives are computed at once.",
    is_nonzero="Whether the only element is not zero. Waits for the device.",
    is_pinned="Whether the memory is page-locked: always False.",
    is_same_size="Whether ``other`` has the same shape.",
    is_set_to="Whether ``other`` is the same region of the same storage.",
    is_shared="Whether the memory is shared between processes: always False.",
    is_signed="Whether the dtype has negative numbers.",
    map_="Replace each element by ``fn(element, element of other)``, computed by Python.",
    map2_="Replace each element by ``fn(element, element of x, element of y)``, computed by Python.",
    narrow_copy="``narrow`` as a copy.",
    new="A tensor of the same dtype and device, from sizes or data.",
    new_empty_strided="A tensor of given sizes and strides, of the same dtype and device, with any content.",
    numel="Number of elements.",
    pin_memory="The tensor itself: transfers need no page-locked copy here.",
    polygamma_="In-place form of :func:`clnn.polygamma`.",
    record_stream="Accepted for programs that name streams; memory lives as long as commands use it.",
    renorm_="In-place form of :func:`clnn.renorm`.",
    requires_grad_="Let operations on this leaf be recorded for gradients, or not; returns the tensor.",
    resize_as_="Resize to the shape of ``other``, in place.",
    share_memory_="The tensor itself, for programs that share it between processes.",
    size="The shape, or the size of dimension ``dim``.",
    sparse_dim="Number of sparse dimensions.",
    storage_offset="Where the first element lies in the storage, in elements.",
    stride="Distances of neighbours in the storage per dimension, in elements, or that of dimension ``dim``.",
    to_dense="The tensor with all its zeros, in the strided layout.",
    to_sparse_coo="The coordinates and values of what is not zero, in COO layout.",
    to_sparse_csc="The same matrix in compressed columns (CSC).",
    to_sparse_csr="The same matrix in compressed rows (CSR).",
    type_as="The tensor in the dtype and on the device of ``other``.",
    where="``self`` where ``condition`` holds, else ``other``.",
    ndimension="Number of dimensions.",
    nelement="Number of elements.",
)

for _name, _text in _TEXTS.items():
    if (_method := getattr(Tensor, _name)).__doc__ is None:
        _method.__doc__ = _text
