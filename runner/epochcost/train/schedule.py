"""Compute the learning rate at every step from the schedule in the spec.

Steps count from 0. During warm-up the rate is ``(step + 1) / warm_up_steps`` of its full value. The
rate of ``on-plateau`` is constant, because a timed trial usually ends within an epoch.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal

import numpy as np
from numpy.typing import NDArray

from epochcost.specs import training as spec
from epochcost.specs.model import Training

Factors = NDArray[np.float64]


def learning_rates(
    schedule: spec.Schedule,
    learning_rate: Decimal,
    steps: NDArray[np.int64],
    epoch_steps: int,
    total_steps: int,
) -> NDArray[np.float32]:
    """The learning rate at each of ``steps``; after the end of the training, the last rate."""
    last_step = total_steps - 1
    factors = _rate_factors(schedule, np.minimum(steps, last_step), epoch_steps, last_step)
    return np.asarray(float(learning_rate) * factors, dtype=np.float32)


def trial_rates(training: Training, batch_size: int, count: int) -> NDArray[np.float32]:
    """Learning rates of the first ``count`` steps of a training with batches of ``batch_size``."""
    epoch_steps = max(1, training.examples_per_epoch // batch_size)
    rate, total = training.optimizer.learning_rate, epoch_steps * training.epochs
    return learning_rates(training.schedule, rate, np.arange(count), epoch_steps, total)


def _rate_factors(
    schedule: spec.Schedule, steps: NDArray[np.int64], epoch_steps: int, last_step: int
) -> Factors:
    """The factor by which the optimizer's learning rate is multiplied at each step."""
    match schedule:
        case spec.Constant():
            factors = _warm_up_factors(steps, schedule.warm_up_steps)
        case spec.Steps():
            factors = _factors_by_epochs(schedule, steps, epoch_steps)
        case spec.Exponential():
            factors = _exponential_factors(schedule, steps, epoch_steps)
        case spec.Falling():
            factors = _cosine_or_linear_factors(schedule, steps, last_step)
        case spec.InverseSquareRoot():
            factors = _inverse_square_root_factors(steps, schedule.warm_up_steps)
        case spec.InverseTime():
            factors = 1 / (1 + float(schedule.decay) * steps)
        case spec.OnPlateau():
            factors = np.ones(len(steps))
    return factors


def _warm_up_factors(steps: NDArray[np.int64], warm_up_steps: int) -> Factors:
    return np.minimum(1.0, (steps + 1) / max(1, warm_up_steps))


def _factors_by_epochs(schedule: spec.Steps, steps: NDArray[np.int64], epoch_steps: int) -> Factors:
    """The factor of the learning rate at each step: ``factors[i]`` after ``epochs[i]`` epochs.

    Without a warm-up, this is TensorFlow's ``piecewise_constant`` if each boundary is the last step
    before a change.
    """
    starts = [
        int((epoch * epoch_steps).to_integral_value(ROUND_CEILING)) for epoch in schedule.epochs
    ]
    levels = np.array([1.0, *map(float, schedule.factors)])
    level = levels[np.searchsorted(starts, steps, side="right")]
    return np.asarray(_warm_up_factors(steps, schedule.warm_up_steps) * level)


def _exponential_factors(
    schedule: spec.Exponential, steps: NDArray[np.int64], epoch_steps: int
) -> Factors:
    """``schedule.factor`` ** n after n intervals of ``epochs`` epochs, times the warm-up's factor.

    Without a warm-up, this equals TensorFlow's ``exponential_decay`` with ``staircase``.
    """
    interval = float(schedule.epochs * epoch_steps)
    # The quotient of a step at a boundary may come out a little below the whole number.
    intervals = np.floor(np.round(steps / interval, 9))
    decay = float(schedule.factor) ** intervals
    return np.asarray(_warm_up_factors(steps, schedule.warm_up_steps) * decay)


def _cosine_or_linear_factors(
    schedule: spec.Falling, steps: NDArray[np.int64], last_step: int
) -> Factors:
    """The factor at each step: a warm-up to 1, then a decay to ``final_factor`` at the last step.

    Cosine: Loshchilov & Hutter 2017, arXiv 1608.03983, equation 5, without restarts. Linear: as in
    the code of BERT (google-research/bert, optimization.py), but continuous at the end of the
    warm-up like ``get_linear_schedule_with_warmup`` of the package transformers.
    """
    last_warm_up_step = max(0, schedule.warm_up_steps - 1)
    decay_steps = max(1, last_step - last_warm_up_step)
    progress = np.clip((steps - last_warm_up_step) / decay_steps, 0.0, 1.0)
    is_cosine = schedule.name == "cosine"
    share = (1 + np.cos(np.pi * progress)) / 2 if is_cosine else 1 - progress
    final = float(schedule.final_factor)
    return np.asarray(
        _warm_up_factors(steps, schedule.warm_up_steps) * (final + (1 - final) * share)
    )


def _inverse_square_root_factors(steps: NDArray[np.int64], warm_up_steps: int) -> Factors:
    """The factor min(n / w, √(w / n)) at step n, counted from 1, with w steps of warm-up.

    This is equation 3 of Vaswani et al. 2017, arXiv 1706.03762, divided by its highest value,
    (d_model · w)^-1/2, which the spec's learning rate replaces.
    """
    count = steps + 1.0
    return np.minimum(count / warm_up_steps, np.sqrt(warm_up_steps / count))
