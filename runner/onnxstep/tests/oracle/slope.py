"""Slopes of a model along random directions, by central differences, with error bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from oracle.evaluators import Run
from oracle.suite import Array

# The error is the fourth power of the step plus the rounding error divided by the step. Smaller
# steps meet fewer kinks.
STEPS = (1e-5, 1e-5, 1e-6, 1e-6, 1e-7, 1e-7)
_ROUNDING = 4e-16
# If differences over one and two steps differ by more, there is a kink.
_ROUGH = 2e-6


class NotSmoothError(Exception):
    """The model has a kink or a pole within the step of the difference."""


@dataclass(frozen=True)
class Slope:
    """The slope d/dt u · f(x + t v) at t = 0, for an input x of the model f, with error bounds.

    u are cotangents of the outputs, and ``direction`` is v. ``value`` is the slope, and ``noise``
    bounds its rounding error. Tolerances are relative to ``scale`` and ``level``. ``scale`` is the
    norm of the elementwise product of u and df/dt. ``level`` is the norm of the elementwise product
    of u and f(x).
    """

    direction: Array
    value: float
    scale: float
    noise: float
    level: float


@dataclass(frozen=True)
class Slopes:
    """The slope of a model along a random direction of each input, by input name.

    Each is the slope of u · f, for the outputs f. All use the same random ``cotangents`` u, by
    output name.
    """

    by_input: Mapping[str, Slope]
    cotangents: Mapping[str, Array]


def slopes(
    run: Run, inputs: Mapping[str, Array], outputs: Sequence[str], seed: int, step: float
) -> Slopes:
    """Slopes along random directions; infinite inputs stay fixed, and infinite outputs are ignored.

    Raises NotSmoothError if the model has a kink or pole within the step.
    """
    rng = np.random.default_rng(seed)
    here = run(inputs)
    cotangents = {name: _noise(here[name], rng) for name in outputs}
    size = float(
        np.linalg.norm([np.linalg.norm(_masked_product(u, here[k])) for k, u in cotangents.items()])
    )

    def slope(name: str, v: Array) -> Slope:
        def terms(times: float) -> Array:
            """Elementwise products of the cotangents u and a central difference of the outputs f.

            The difference is (f(x + h v) - f(x - h v)) / (2 h), with a direction v. The size h is
            ``step`` multiplied by the factor ``times``.
            """
            x = inputs[name]
            after, before = (
                run({**inputs, name: x + t * v}) for t in (times * step, -times * step)
            )
            parts = [
                _masked_product(u, after[k]) - _masked_product(u, before[k])
                for k, u in cotangents.items()
            ]
            return np.concatenate([part.ravel() for part in parts]) / (2 * times * step)

        near, far = terms(1), terms(2)
        scale = float(np.linalg.norm(near))
        growth = _size(inputs[name]) / (_size(v) or 1.0)
        noise = _ROUNDING / step * (size + scale * growth)
        if not abs(float(np.sum(near - far))) <= _ROUGH * scale + 10 * noise:
            raise NotSmoothError(f"input {name!r} has a kink within the step")
        return Slope(v, float(np.sum(4 * near - far)) / 3, scale, 10 * noise, size)

    moves = {name: _noise(x, rng) * (min(_size(x), 1.0) or 1.0) for name, x in inputs.items()}
    return Slopes({name: slope(name, v) for name, v in moves.items()}, cotangents)


def _noise(x: Array, rng: np.random.Generator) -> Array:
    return np.where(np.isfinite(x), rng.standard_normal(x.shape), 0.0)


def _masked_product(u: Array, y: Array) -> Array:
    """The elementwise product of u and y, but 0 where u is 0, even if y is infinite or NaN."""
    with np.errstate(all="ignore"):
        return np.where(u == 0, 0.0, u * y)


def _size(x: Array) -> float:
    finite = x[np.isfinite(x)]
    return float(np.sqrt(np.mean(finite**2))) if finite.size else 0.0
