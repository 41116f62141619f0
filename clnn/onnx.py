"""PyTorch's ``onnx`` names: nothing can be exported, but a program that could export need not."""


def is_in_onnx_export() -> bool:
    """False."""
    return False


def export(*args, **kwargs):
    """Raises: clnn records launches of kernels, from which no ONNX graph can be made."""
    raise NotImplementedError("onnx.export: clnn cannot write ONNX graphs; save the state_dict with clnn.save, load it into the same model under PyTorch "
                              "and export it there")


dynamo_export = export
