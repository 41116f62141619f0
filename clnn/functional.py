"""``torch.functional``: functions of the top level under the name of their module there."""
import clnn as _clnn

_NAMES = """atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors cartesian_prod cdist chain_matmul einsum istft lu meshgrid norm
            pca_lowrank split stft svd_lowrank tensordot unique unique_consecutive unravel_index""".split()
globals().update({name: getattr(_clnn, name) for name in _NAMES})
F = _clnn.nn.functional
