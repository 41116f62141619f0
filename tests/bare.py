"""Kernels that are launched without tensors, for tests of the floor below them."""
import os

import numpy as np

from clnn.runtime import templates
from clnn.runtime.device import default_device, list_devices
from clnn.runtime.launch import launch

DEVICES = [default_device()] if os.environ.get("CLNN_DEVICE") and list_devices() else list_devices()[:4]


def upload(dev, array):
    buf = dev.alloc(array.nbytes)
    dev.write(buf, array)
    return buf


def kernel(dev, body, name="k", params="IN(float,x), OUT(float,y), const long n", fp64=False):
    pointers = "PTR_IN(float,x); PTR_OUT(float,y);" if params.startswith("IN(float,x), OUT(float,y)") else ""
    source = templates.preamble(dev, fp64, body + params) + f"__kernel void {name}({params}) {{ {pointers} long i = get_global_id(0); {body} }}"
    return dev.kernel_from_source(source, name)


def elementwise(dev, expression, x, in_type="float", out_type="float", out=np.float32, body=None, n=None):
    """y[i] = expression over x[i] through storage types; returns the array."""
    n = len(x) if n is None else n
    params = f"IN({in_type},x), OUT({out_type},y), const long n"
    text = f"PTR_IN({in_type},x); PTR_OUT({out_type},y); if (i < n) {{ {body or 'y[i] = ' + expression + ';'} }}"
    source = templates.preamble(dev, False, text) + f"__kernel void k({params}) {{ long i = get_global_id(0); {text} }}"
    y = dev.alloc(n * np.dtype(out).itemsize)
    launch(dev, dev.kernel_from_source(source, "k"), (n,), None, upload(dev, x), 0, y, 0, n)
    return dev.read(y, n * np.dtype(out).itemsize).view(out)
