"""One entry of the operator table is a whole operator: function, method, in-place form, gradient, second gradient, fusion and tests.

    python examples/custom_operator.py
"""
import numpy as np

import clnn
from clnn._tensor.declare import elementwise
from clnn.testing import checks

# x^2 / (x^2 + y^2): the expression is OpenCL C, the gradient rules are tensor operations. The parameter names of a rule say what it needs:
# the gradient of the result ``g``, inputs by their names, or the result itself as ``result``.
share = elementwise(
    "square_share", "input, other", "input * input / (input * input + other * other)", result="float",
    numpy=lambda x, y: x * x / (x * x + y * y),
    vjp=dict(input=lambda g, input, other: g * 2 * input * other * other / (input * input + other * other) ** 2,
             other=lambda g, input, other: g * -2 * other * input * input / (input * input + other * other) ** 2),
    doc="The share of ``input`` in the sum of both squares.")


def main():
    x = clnn.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = clnn.tensor([[1.0], [2.0]])
    out = share(x, y)                                            # broadcast, recorded, fused with what comes next
    (out * 10).sum().backward()
    print("value     ", out.tolist())
    print("gradient  ", [round(v, 4) for v in x.grad.tolist()])
    print("as method ", clnn.tensor([3]).square_share(4).item())   # integers become floats, as the entry says
    for name, check in checks.CHECKS.items():                    # what the test suite runs for every entry
        try:
            check(share.op)
            print(f"check {name}: passed")
        except checks.NotApplicable as reason:
            print(f"check {name}: does not apply ({reason})")
    return np.asarray(out.tolist())


if __name__ == "__main__":
    main()
