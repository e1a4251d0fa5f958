"""LSTM layers whose export is one ONNX LSTM node each, with one bias vector for each gate.

Exporters import it by path. PyTorch's ``nn.LSTM`` has two bias vectors for each gate, TensorFlow's
and Keras's layers have one, plus a constant on the forget gate; ONNX's node takes both halves. Here
the first half is the parameter and the second holds the constant, so that the count of parameters
is the source's. Weights are in ONNX's order of gates (input, output, forget, cell), so that they go
into the node as they are and their gradients come out as they are.
"""

from __future__ import annotations

import math

import torch
from torch import nn

State = tuple[torch.Tensor, torch.Tensor]


class Lstm(nn.Module):
    """[time, batch, inputs] and a state (h, c) to [time, batch, units] and the state after.

    h and c are [batch, units]. With ``directions`` 2 a second LSTM runs from the last step to the
    first; outputs and states are then [..., 2 * units], the forward half first, and a state cannot
    be given. ``forget_bias`` is a constant on the forget gate.
    """

    def __init__(
        self, inputs: int, units: int, *, directions: int = 1, forget_bias: float = 0.0
    ) -> None:
        super().__init__()
        self.units, self.directions, self.forget_bias = units, directions, forget_bias
        self.input_weight = nn.Parameter(torch.empty(directions, 4 * units, inputs))
        self.state_weight = nn.Parameter(torch.empty(directions, 4 * units, units))
        self.bias = nn.Parameter(torch.empty(directions, 4 * units))
        for parameter in self.parameters():  # for the comparison of outputs only
            nn.init.uniform_(parameter, -(units**-0.5), units**-0.5)

    def forward(
        self, steps: torch.Tensor, state: State | None = None
    ) -> tuple[torch.Tensor, State]:
        """The outputs of all steps, and the state after the last."""
        if torch.onnx.is_in_onnx_export():
            return self._node(steps, state)
        if state is None:
            zeros = steps.new_zeros(steps.shape[1], self.units)
            state = zeros, zeros
        outputs, (h, c) = self._run(0, steps, state)
        if self.directions == 1:
            return outputs, (h, c)
        backward, (h_back, c_back) = self._run(1, steps.flip(0), state)
        both = torch.cat([outputs, backward.flip(0)], dim=-1)
        return both, (torch.cat([h, h_back], dim=-1), torch.cat([c, c_back], dim=-1))

    def _run(self, direction: int, steps: torch.Tensor, state: State) -> tuple[torch.Tensor, State]:
        """One direction by the equations of the layer."""
        h, c = state
        constant = torch.tensor([0.0, 0.0, self.forget_bias, 0.0]).repeat_interleave(self.units)
        outputs = []
        for step in steps:
            z = step @ self.input_weight[direction].T + h @ self.state_weight[direction].T
            i, o, f, g = (z + self.bias[direction] + constant).chunk(4, dim=-1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            outputs.append(h)
        return torch.stack(outputs), (h, c)

    def _node(self, steps: torch.Tensor, state: State | None) -> tuple[torch.Tensor, State]:
        time, batch, directions = steps.shape[0], steps.shape[1], self.directions
        h, c = (part.unsqueeze(0) for part in state) if state else (None, None)
        weights = self.input_weight, self.state_weight, self._both_biases()
        outputs, h, c = torch.onnx.ops.symbolic_multi_out(
            "LSTM",
            (steps, *weights, None, h, c),
            {
                "hidden_size": self.units,
                "direction": "forward" if directions == 1 else "bidirectional",
            },
            dtypes=(torch.float32,) * 3,
            shapes=((time, directions, batch, self.units), *((directions, batch, self.units),) * 2),
            version=18,
        )
        if directions == 1:
            return outputs.squeeze(1), (h.squeeze(0), c.squeeze(0))
        joined = outputs.transpose(1, 2).reshape(time, -1, 2 * self.units)
        return joined, (torch.cat([h[0], h[1]], -1), torch.cat([c[0], c[1]], -1))

    def _both_biases(self) -> torch.Tensor:
        """[directions, 8 * units]: the parameter, and the constant."""
        parts = [self.bias, torch.zeros(self.directions, 4 * self.units)]
        if self.forget_bias:
            forget = torch.full((self.directions, self.units), self.forget_bias)
            around = torch.zeros(self.directions, self.units)
            parts[1:] = [around, around, forget, around]
        return torch.cat(parts, dim=1)


def keras_initial(name: str, inputs: int, units: int) -> dict[str, dict[str, str | float]]:
    """Keras's first values of the LSTM called ``name``, by pattern of parameter names.

    The kernel is Glorot-uniform over all gates together. Keras draws the recurrent kernel
    orthogonal; here it is normal with the variance of an orthogonal matrix's elements.
    """
    bound = math.sqrt(6 / (inputs + 4 * units))
    return {
        f"{name}.input_weight": {"distribution": "uniform", "scale": bound},
        f"{name}.state_weight": {"distribution": "normal", "scale": (4 * units) ** -0.5},
    }
