"""Test cases of activation functions that cover all branches of the gradient rules."""

from __future__ import annotations

from gradient_check import Case

# An even number of elements spread evenly over both signs, none near 0.
X = {"x": (4, 5)}
CASES = [
    *(Case(op, {"x": (2, 3, 2)}, low=0.1, high=2.0) for op in ("Sigmoid", "Tanh")),
    *(
        Case(op, X, low=-3.0, high=3.0)
        for op in ("Relu", "LeakyRelu", "Elu", "Selu", "Softplus", "Softsign")
    ),
    Case("LeakyRelu", X, {"alpha": 1.5}, name="steep"),
    Case("Elu", X, {"alpha": 0.3}, name="alpha"),
    Case("Selu", X, {"alpha": 0.3, "gamma": 2.0}, name="alpha_gamma"),
    *(
        Case("PRelu", {"x": (2, 3, 4), "slope": slope}, opset=opset)
        for slope in [(2, 3, 4), (3, 1), (1,), ()]
        for opset in (13, 21)
    ),
    Case("ThresholdedRelu", X, low=-3.0, high=3.0),
    Case("ThresholdedRelu", X, {"alpha": -0.22}, name="below_zero"),
    Case("Shrink", X, low=-1.1, high=1.3),
    Case("Shrink", X, {"lambd": 0.3, "bias": 0.2}, name="bias"),
    Case("HardSigmoid", X, low=-4.0, high=4.0),
    Case("HardSigmoid", X, {"alpha": 0.7, "beta": 0.3}, low=-4.0, high=4.0, name="alpha_beta"),
    *(Case("HardSwish", X, low=-5.0, high=5.0, opset=opset) for opset in (17, 22)),
    Case("Gelu", X, low=-3.0, high=3.0),
    Case("Gelu", X, {"approximate": "tanh"}, low=-3.0, high=3.0, name="tanh"),
    Case("Softmax", {"x": (2, 3, 4)}, {"axis": 1}),
    Case("LogSoftmax", {"x": (2, 3, 4)}),
]
