"""JAX's step: the model's graph as a function, differentiated and compiled with the update."""

from __future__ import annotations

import itertools
import os
from typing import Any

import jax
import onnx
from jax import numpy as jnp

from steps.jax_graph import Function, Value, Values
from steps.work import Term, Work

State = dict[str, Values]


class Jax:
    """JAX as ``work.Contender``. XLA uses as many threads as the process may use CPUs."""

    def __init__(self, work: Work, threads: int) -> None:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
        self._work = work
        values = {name: jnp.asarray(value) for name, value in work.weights().items()}
        self._weights = {name: values.pop(name) for name in work.trained}
        self._running = values
        self._batches = work.batches()
        self._loss: Any = None

    def start(self) -> None:
        """Create the states and the function, which is compiled at its first call."""
        work = self._work
        carried = {name: jnp.zeros(work.carried_shape) for name in work.carried}
        self._state: State = {
            "weights": self._weights,
            "running": self._running,
            "carried": carried,
            **_first_states(work, self._weights),
        }
        self._weights, self._running = {}, {}
        step = _step(work, Function(onnx.load(work.forward)))
        self._step = jax.jit(step, donate_argnums=0)
        self._fresh = itertools.cycle(self._batches)
        self._count = 0

    def __call__(self) -> None:
        """Take one step; the batch is copied as an argument."""
        self._count += 1
        self._state, self._loss = self._step(self._state, next(self._fresh), self._count)
        jax.block_until_ready((self._state, self._loss))

    def loss(self) -> float:
        """The loss of the last step."""
        return float(self._loss)


def _step(work: Work, function: Function) -> Any:
    def objective(weights: Values, state: State, batch: Values, key: Value) -> tuple[Value, Any]:
        inputs = {**weights, **state["running"], **state["carried"], **batch}
        outputs, running = function(inputs, key)
        total = sum(term.weight * _loss(term, outputs, batch) for term in work.terms)
        carried = {before: outputs[after] for before, after in work.carried.items()}
        return total, (running, carried)

    def step(state: State, batch: Values, count: Value) -> tuple[State, Value]:
        key = jax.random.fold_in(jax.random.key(0), count)
        pull = jax.value_and_grad(objective, has_aux=True)
        (loss, (running, carried)), gradients = pull(state["weights"], state, batch, key)
        moved = _moved(work, state, _clipped(gradients, work.clip_norm), count)
        statistics = {**state["running"], **running}
        return {**moved, "running": statistics, "carried": carried}, loss

    return step


def _loss(term: Term, outputs: Values, batch: Values) -> Value:
    scores, target = outputs[term.output], batch[term.target]
    if term.loss == "sigmoid_cross_entropy":
        return jnp.mean(jnp.maximum(scores, 0) - scores * target + jnp.log1p(jnp.exp(-abs(scores))))
    assert term.loss == "softmax_cross_entropy", f"no loss here is called {term.loss}"
    log_p = jax.nn.log_softmax(scores, -1)
    return -jnp.mean(jnp.take_along_axis(log_p, target[..., None], -1))


def _clipped(gradients: Values, norm: float | None) -> Values:
    """Gradients clipped by their norm, as torch.nn.utils.clip_grad_norm_ does."""
    if norm is None:
        return gradients
    total = jnp.sqrt(sum(jnp.sum(g * g) for g in gradients.values()))
    factor = jnp.minimum(1.0, norm / (total + 1e-6))
    return {name: g * factor for name, g in gradients.items()}


_STATES = {
    "sgd": ("momentum",),
    "rmsprop": ("squares",),
    "adagrad": ("squares",),
    "adadelta": ("squares", "deltas"),
    "adam": ("first", "second"),
    "adamw": ("first", "second"),
}


def _first_states(work: Work, weights: Values) -> State:
    assert work.optimizer["name"] == "sgd" or not work.optimizer.get("momentum"), "no rule for it"
    return {
        state: {name: jnp.zeros_like(value) for name, value in weights.items()}
        for state in _STATES[work.optimizer["name"]]
    }


def _moved(work: Work, state: State, gradients: Values, count: Value) -> State:
    """Weights and the optimizer's states after an update, by torch.optim's formulas."""
    names = _STATES[work.optimizer["name"]]
    rule = _RULES[work.optimizer["name"]]
    after: State = {"weights": {}, **{name: {} for name in names}}
    for name, w in state["weights"].items():
        settings = dict(work.optimizer)
        if name in work.undecayed:
            settings["weight_decay"] = 0.0
        g = gradients[name]
        if work.optimizer["name"] != "adamw" and settings.get("weight_decay"):
            g = g + settings["weight_decay"] * w
        moved = rule(
            settings, w, g, *(state[state_name][name] for state_name in names), count=count
        )
        for kind, value in zip(("weights", *names), moved, strict=True):
            after[kind][name] = value
    return after


def _sgd(settings: Any, w: Value, g: Value, v: Value, **_: Any) -> tuple[Value, ...]:
    rate, momentum = settings["learning_rate"], settings["momentum"]
    v = momentum * v + g if momentum else v
    ahead = g + momentum * v if settings["nesterov"] else v
    return w - rate * (ahead if momentum else g), v


def _rmsprop(settings: Any, w: Value, g: Value, s: Value, **_: Any) -> tuple[Value, ...]:
    s = settings["rho"] * s + (1 - settings["rho"]) * g * g
    return w - settings["learning_rate"] * g / (jnp.sqrt(s) + settings["epsilon"]), s


def _adagrad(settings: Any, w: Value, g: Value, s: Value, **_: Any) -> tuple[Value, ...]:
    s = s + g * g
    return w - settings["learning_rate"] * g / (jnp.sqrt(s) + settings["epsilon"]), s


def _adadelta(settings: Any, w: Value, g: Value, s: Value, u: Value, **_: Any) -> tuple[Value, ...]:
    rho, epsilon = settings["rho"], settings["epsilon"]
    s = rho * s + (1 - rho) * g * g
    delta = jnp.sqrt((u + epsilon) / (s + epsilon)) * g
    return w - settings["learning_rate"] * delta, s, rho * u + (1 - rho) * delta * delta


def _adam(
    settings: Any, w: Value, g: Value, m: Value, v: Value, *, count: Value
) -> tuple[Value, ...]:
    rate, beta1, beta2 = (settings[name] for name in ("learning_rate", "beta1", "beta2"))
    if settings["name"] == "adamw":
        w = w * (1 - rate * settings["weight_decay"])
    m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
    root = jnp.sqrt(v) / jnp.sqrt(1 - beta2**count) + settings["epsilon"]
    return w - rate / (1 - beta1**count) * m / root, m, v


_RULES = {
    "sgd": _sgd,
    "rmsprop": _rmsprop,
    "adagrad": _adagrad,
    "adadelta": _adadelta,
    "adam": _adam,
    "adamw": _adam,
}
