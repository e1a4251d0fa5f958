"""Each optimizer's updates agree with its formula, evaluated in float64, over many steps.

The formulas return the updated weights and change ``states`` in place.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from graph_text import run
from onnxstep import Adadelta, Adagrad, Adam, Momentum, RmsProp, Sgd
from onnxstep.builder import Builder
from onnxstep.forward import Forward, close_model
from onnxstep.optimizers import Optimizer
from onnxstep.update import Transition, updates

STEPS, RATE, SIZE = 100, 0.05, 7
Array = np.ndarray


def decayed(w: Array, g: Array, decay: float) -> Array:
    """The gradient ``g`` plus ``decay`` times the weights, as PyTorch defines weight decay."""
    return g + decay * w


def sgd(w: Array, g: Array, _: list[Array], __: int) -> Array:
    """The weights after one update by torch.optim.SGD(weight_decay=0.1)."""
    return w - RATE * decayed(w, g, 0.1)


def momentum(w: Array, g: Array, states: list[Array], _: int) -> Array:
    """The weights after one update by torch.optim.SGD(momentum=0.9)."""
    states[0] = 0.9 * states[0] + g
    return w - RATE * states[0]


def nesterov(w: Array, g: Array, states: list[Array], _: int) -> Array:
    """The weights after torch.optim.SGD(momentum=0.9, nesterov=True, weight_decay=0.1)."""
    g = decayed(w, g, 0.1)
    states[0] = 0.9 * states[0] + g
    return w - RATE * (g + 0.9 * states[0])


def rmsprop(w: Array, g: Array, states: list[Array], _: int) -> Array:
    """The weights after one update by torch.optim.RMSprop(alpha=0.95, eps=1e-6)."""
    states[0] = 0.95 * states[0] + 0.05 * g**2
    return w - RATE * g / (np.sqrt(states[0]) + 1e-6)


def rmsprop_momentum(w: Array, g: Array, states: list[Array], _: int) -> Array:
    """Weights after torch.optim.RMSprop(alpha=0.95, eps=1e-3, momentum=0.9, weight_decay=0.1)."""
    g = decayed(w, g, 0.1)
    states[0] = 0.95 * states[0] + 0.05 * g**2
    states[1] = 0.9 * states[1] + g / (np.sqrt(states[0]) + 1e-3)
    return w - RATE * states[1]


def adagrad(w: Array, g: Array, states: list[Array], _: int) -> Array:
    """The weights after one update by torch.optim.Adagrad()."""
    states[0] = states[0] + g**2
    return w - RATE * g / (np.sqrt(states[0]) + 1e-10)


def adadelta(w: Array, g: Array, states: list[Array], _: int) -> Array:
    """The weights after one update by torch.optim.Adadelta(rho=0.95, eps=1e-6)."""
    states[0] = 0.95 * states[0] + 0.05 * g**2
    d = np.sqrt(states[1] + 1e-6) / np.sqrt(states[0] + 1e-6) * g
    states[1] = 0.95 * states[1] + 0.05 * d**2
    return w - RATE * d


def adam(w: Array, g: Array, states: list[Array], step: int) -> Array:
    """The weights after one update by torch.optim.Adam(weight_decay=0.1)."""
    return adam_step(w, decayed(w, g, 0.1), states, step)


def adamw(w: Array, g: Array, states: list[Array], step: int) -> Array:
    """The weights after one update by torch.optim.AdamW(weight_decay=0.1)."""
    return adam_step(w * (1 - RATE * 0.1), g, states, step)


def adam_step(w: Array, g: Array, states: list[Array], step: int) -> Array:
    """The weights after one update by Adam without weight decay.

    The function also updates ``states``. ``step`` counts from 1.
    """
    states[0] = 0.9 * states[0] + 0.1 * g
    states[1] = 0.999 * states[1] + 0.001 * g**2
    denominator = np.sqrt(states[1]) / np.sqrt(1 - 0.999**step) + 1e-8
    return w - RATE / (1 - 0.9**step) * states[0] / denominator


def graph_of(optimizer: Optimizer) -> tuple[onnx.ModelProto, list[Transition]]:
    """Return a model of one update, and the input and output of each updated value."""
    op = Builder([helper.make_opsetid("", 21)], 10)
    w, g = (op.input(name, (SIZE,), TensorProto.FLOAT) for name in "wg")
    rate = op.input("rate", (), TensorProto.FLOAT)
    moves = list(updates(op, optimizer, {w.name: g}, rate))
    inputs = [g, rate, *(move.before for move in moves)]
    outputs = [move.after for move in moves]
    return close_model(Forward(op, (), (), {}), inputs, outputs, "update"), moves


CASES = {
    "sgd": (Sgd(weight_decay=0.1), sgd),
    "momentum": (Momentum(0.9), momentum),
    "nesterov": (Momentum(0.9, nesterov=True, weight_decay=0.1), nesterov),
    "rmsprop": (RmsProp(0.95, 1e-6), rmsprop),
    "rmsprop with momentum": (
        RmsProp(0.95, 1e-3, momentum=0.9, weight_decay=0.1),
        rmsprop_momentum,
    ),
    "adagrad": (Adagrad(), adagrad),
    "adagrad from one": (Adagrad(initial_accumulator=1.0), adagrad),
    "adadelta": (Adadelta(0.95, 1e-6), adadelta),
    "adam": (Adam(weight_decay=0.1), adam),
    "adamw": (Adam(weight_decay=0.1, decoupled=True), adamw),
}


@pytest.mark.parametrize(("optimizer", "formula"), CASES.values(), ids=CASES)
def test_an_optimizer_follows_its_formula(optimizer: Optimizer, formula: Callable) -> None:
    """After 100 random gradients, the parameter equals that of ``formula`` within rounding."""
    rng = np.random.default_rng(3)
    model, moves = graph_of(optimizer)
    exact = rng.standard_normal(SIZE)
    exact_states = [np.full(SIZE, optimizer.initial_state) for _ in optimizer.states]
    carried = {
        move.before.name: np.full(
            move.before.shape,
            move.carried.fill,
            helper.tensor_dtype_to_np_dtype(move.before.elem_type),
        )
        for move in moves
    }
    carried["w"] = exact.astype(np.float32)
    for step in range(1, STEPS + 1):
        gradient = rng.standard_normal(SIZE).astype(np.float32)
        exact = formula(exact, gradient.astype(np.float64), exact_states, step)
        got = run(model, {"g": gradient, "rate": np.array(RATE, np.float32), **carried})
        carried = {move.before.name: got[move.after.name] for move in moves}
    np.testing.assert_allclose(carried["w"], exact, rtol=2e-5, atol=2e-6)
