"""LSTM, GRU and RNN in numpy, with features that onnx 1.23.2's evaluator ignores.

The evaluator ignores sequence_lens and activations. These classes follow ONNX's definitions, for
one sequence and one step at a time. Tests also compare the outputs of these classes with the
outputs of ONNX Runtime.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx.reference.op_run import OpRun

Array = NDArray[Any]
Function = Callable[[Array], Array]
FUNCTIONS: dict[str, Function] = {
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "Tanh": np.tanh,
    "Relu": lambda x: np.maximum(x, 0),
}


class Recurrent(OpRun):
    """Loop over directions, sequences and steps; a subclass defines a step."""

    op_domain = ""
    default: tuple[str, ...] = ()

    def step(self, functions: list[Function], z: tuple[Array, ...], *state: Array) -> Any:
        """Return the new hidden state and cell state of a sequence after one step.

        ``functions`` are the activation functions. ``z`` holds the weights W and R and their
        biases. The remaining arguments are the input x, the hidden state h and the cell state c.
        """
        raise NotImplementedError

    def _run(self, x: Array, w: Array, r: Array, *optional: Array, **attributes: Any) -> Any:
        b, lengths, h0, c0 = [*optional, *[None] * 4][:4]
        (steps, batch, _), (directions, gates, hidden) = x.shape, r.shape
        b = np.zeros((directions, 2 * gates)) if b is None else b
        lengths = np.full(batch, steps) if lengths is None else lengths
        start = np.zeros((directions, batch, hidden))
        h, c = (start.copy() if v is None else v.copy() for v in (h0, c0))
        y = np.zeros((steps, directions, batch, hidden))
        names = attributes.get("activations") or self.default * directions
        count = len(self.default)
        for d in range(directions):
            functions = [FUNCTIONS[name] for name in names[d * count : (d + 1) * count]]
            backward = d == 1 or attributes.get("direction") == "reverse"
            weights = (w[d], r[d], *np.split(b[d], 2))
            for s in range(batch):
                for t in range(lengths[s])[:: -1 if backward else 1]:
                    h[d, s], c[d, s] = self.step(functions, weights, x[t, s], h[d, s], c[d, s])
                    y[t, d, s] = h[d, s]
        return (y, h, c)[: len(self.onnx_node.output)]


class RNN(Recurrent):
    """The recurrent layer without gates."""

    default = ("Tanh",)

    def step(self, functions: Any, weights: Any, x: Array, h: Array, c: Array) -> Any:
        """Compute h' = f(W x + R h + b); the cell state ``c`` stays."""
        w, r, w_b, r_b = weights
        return functions[0](w @ x + r @ h + w_b + r_b), c


class LSTM(Recurrent):
    """The long short-term memory."""

    default = ("Sigmoid", "Tanh", "Tanh")

    def step(self, functions: Any, weights: Any, x: Array, h: Array, c: Array) -> Any:
        """Compute the new states; the rows of the weights are the gates i, o, f and c."""
        (w, r, w_b, r_b), (f, g, out) = weights, functions
        z_i, z_o, z_f, z_c = np.split(w @ x + r @ h + w_b + r_b, 4)
        new = f(z_f) * c + f(z_i) * g(z_c)
        return f(z_o) * out(new), new


class GRU(Recurrent):
    """The gated recurrent unit, with the reset gate applied before or after the product with R."""

    default = ("Sigmoid", "Tanh")

    def step(self, functions: Any, weights: Any, x: Array, h: Array, c: Array) -> Any:
        """Compute the new hidden state; the rows of the weights are the gates z, r and h."""
        (w, r, w_b, r_b), (f, g) = weights, functions
        x_z, x_r, x_n = np.split(w @ x + w_b, 3)
        r_z, r_r, r_n = np.split(r, 3)
        b_z, b_r, b_n = np.split(r_b, 3)
        z, reset = f(x_z + r_z @ h + b_z), f(x_r + r_r @ h + b_r)
        if getattr(self, "linear_before_reset", 0):
            n = g(x_n + reset * (r_n @ h + b_n))
        else:
            n = g(x_n + r_n @ (reset * h) + b_n)
        return (1 - z) * n + z * h, c


RECURRENT = [GRU, LSTM, RNN]
