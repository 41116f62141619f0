"""Which layers in a row become one, and how."""
from __future__ import annotations

from clnn import nn
from clnn.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

from ..nn import intrinsic as nni

__all__ = ["fuse_conv_bn", "fuse_conv_bn_relu", "fuse_linear_bn", "fuse_convtranspose_bn", "get_fuser_method", "get_fuser_method_new"]
_WITH_BN = {nn.Conv1d: nni.ConvBn1d, nn.Conv2d: nni.ConvBn2d, nn.Conv3d: nni.ConvBn3d}
_WITH_BN_RELU = {nn.Conv1d: nni.ConvBnReLU1d, nn.Conv2d: nni.ConvBnReLU2d, nn.Conv3d: nni.ConvBnReLU3d}
_WITH_RELU = {nn.Conv1d: nni.ConvReLU1d, nn.Conv2d: nni.ConvReLU2d, nn.Conv3d: nni.ConvReLU3d}


def _check(is_qat, first, bn, features, same_mode=True):
    """Both layers must be in one mode, and fit."""
    if same_mode and first.training != bn.training:
        raise AssertionError("Conv and BN both must be in the same mode (train or eval).")
    if is_qat:
        if bn.num_features != features:
            raise AssertionError("Output channel of Conv2d must match num_features of BatchNorm2d")
        for name in ("affine", "track_running_stats"):
            if not getattr(bn, name):
                raise AssertionError(f"Only support fusing {type(bn).__name__} with {name} set to True")


def fuse_conv_bn(is_qat, conv, bn):
    """A convolution and batch normalisation as one: for inference one convolution, for training (``is_qat``) a pair.

    Example::

        >>> type(clnn.ao.quantization.fuse_conv_bn(False, nn.Conv2d(1, 2, 3).eval(), nn.BatchNorm2d(2).eval()))
        <class 'clnn.nn.modules.conv.Conv2d'>
    """
    _check(is_qat, conv, bn, conv.out_channels)
    if not is_qat:
        return fuse_conv_bn_eval(conv, bn)
    kind = _WITH_BN.get(type(conv))
    if kind is None:
        raise NotImplementedError(f"Cannot fuse train modules: {(conv, bn)}")
    return kind(conv, bn)


def fuse_conv_bn_relu(is_qat, conv, bn, relu):
    """:func:`fuse_conv_bn` and ReLU.

    Example::

        >>> parts = nn.Conv2d(1, 2, 3).eval(), nn.BatchNorm2d(2).eval(), nn.ReLU().eval()
        >>> type(clnn.ao.quantization.fuse_conv_bn_relu(False, *parts)).__name__
        'ConvReLU2d'
    """
    if not conv.training == bn.training == relu.training:
        raise AssertionError("Conv and BN both must be in the same mode (train or eval).")
    _check(is_qat, conv, bn, conv.out_channels)
    kind = (_WITH_BN_RELU if is_qat else _WITH_RELU).get(type(conv))
    if kind is None:
        raise NotImplementedError(f"Cannot fuse {'train' if is_qat else 'eval'} modules: {(conv, bn, relu)}")
    return kind(conv, bn, relu) if is_qat else kind(fuse_conv_bn_eval(conv, bn), relu)


def fuse_linear_bn(is_qat, linear, bn):
    """A linear layer and batch normalisation as one.

    Example::

        >>> type(clnn.ao.quantization.fuse_linear_bn(False, nn.Linear(1, 2).eval(), nn.BatchNorm1d(2).eval()))
        <class 'clnn.nn.modules.linear.Linear'>
    """
    if linear.training != bn.training:
        raise AssertionError("Linear and BN both must be in the same mode (train or eval).")
    _check(is_qat, linear, bn, linear.out_features)
    return nni.LinearBn1d(linear, bn) if is_qat else fuse_linear_bn_eval(linear, bn)


def fuse_convtranspose_bn(is_qat, convt, bn):
    """A transposed convolution and batch normalisation as one, for inference.

    Example::

        >>> type(clnn.ao.quantization.fuse_convtranspose_bn(False, nn.ConvTranspose1d(1, 2, 3).eval(), nn.BatchNorm1d(2).eval())).__name__
        'ConvTranspose1d'
    """
    if convt.training != bn.training:
        raise AssertionError("ConvTranspose and BN both must be in the same mode (train or eval).")
    if is_qat:
        raise Exception("Fusing ConvTranspose+BatchNorm not yet supported in QAT.")  # noqa: TRY002
    return fuse_conv_bn_eval(convt, bn, transpose=True)


def _pair(kind):
    def fuse(is_qat, first, second):
        return kind(first, second)
    return fuse


_DEFAULT_OP_LIST_TO_FUSER_METHOD = {
    **{key: method for dims in "123" for conv, bn in [(getattr(nn, f"Conv{dims}d"), getattr(nn, f"BatchNorm{dims}d"))]
       for key, method in (((conv, bn), fuse_conv_bn), ((conv, bn, nn.ReLU), fuse_conv_bn_relu))},
    **{(conv, nn.ReLU): _pair(kind) for conv, kind in _WITH_RELU.items()},
    (nn.Linear, nn.BatchNorm1d): fuse_linear_bn, (nn.Linear, nn.ReLU): _pair(nni.LinearReLU),
    (nn.BatchNorm2d, nn.ReLU): _pair(nni.BNReLU2d), (nn.BatchNorm3d, nn.ReLU): _pair(nni.BNReLU3d),
    **{(getattr(nn, f"ConvTranspose{dims}d"), getattr(nn, f"BatchNorm{dims}d")): fuse_convtranspose_bn for dims in "123"},
}


def get_fuser_method(op_list, additional_fuser_method_mapping=None):
    """The function that makes one layer of a tuple of classes.

    Example::

        >>> clnn.ao.quantization.get_fuser_method((nn.Conv2d, nn.BatchNorm2d)).__name__
        'fuse_conv_bn'
    """
    method = {**_DEFAULT_OP_LIST_TO_FUSER_METHOD, **(additional_fuser_method_mapping or {})}.get(op_list)
    if method is None:
        raise AssertionError(f"did not find fuser method for: {op_list} ")
    return method


def get_fuser_method_new(op_pattern, fuser_method_mapping):
    """The function for a pattern of classes.

    Example::

        >>> q = clnn.ao.quantization
        >>> q.get_fuser_method_new((nn.Linear, nn.ReLU), {(nn.Linear, nn.ReLU): q.fuse_linear_bn}).__name__
        'fuse_linear_bn'
    """
    method = fuser_method_mapping.get(op_pattern)
    if method is None:
        raise AssertionError(f"did not find fuser method for: {op_pattern} ")
    return method
