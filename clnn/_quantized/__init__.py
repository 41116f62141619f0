"""Quantised tensors: integers of 8 or 32 bits with a scale and a zero point, ``number = (integer - zero_point) * scale``.

``schemes``: what scale and zero point are, and the arithmetic between numbers and integers. ``tensor``: the tensors. ``making``: the functions that make
and read them. ``forms``: what PyTorch's operators do with them. ``products``, ``functions``, ``recurrent``: ``torch.ops.quantized``, on which the modules
of ``clnn.ao.nn.quantized`` build.
"""
