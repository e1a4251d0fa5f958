"""Train a model with evaluations and saved states; resuming does not change the trained weights."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epochcost.errors import InputError
from epochcost.measure.training import TrainingSession
from epochcost.results.trainings import Point
from epochcost.specs.training import Schedule
from epochcost.train.pipeline import Feed
from epochcost.train.schedule import learning_rates
from epochcost.train.state import Progress

Arrays = Mapping[str, NDArray[Any]]
# A training diverged if its loss is this multiple of the held-out loss before the first step.
_DIVERGED = 10.0
_NUMBER = r"((?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e-?[0-9]+)?)"
_FORM = re.compile(rf"\s*(?:accuracy\s*>=\s*{_NUMBER}\s*(%?)|loss\s*<=\s*{_NUMBER})\s*")


class TrainingDiverged(InputError):  # noqa: N818 - the field's name for this outcome
    """The loss or the weights are not finite, or the loss is far above its first value."""


@dataclass(frozen=True)
class Target:
    """The least held-out accuracy, or the largest held-out loss, at which a training ends."""

    measure: str
    value: float

    def met(self, curve: Sequence[Point]) -> bool:
        """Whether the last evaluation reached the target."""
        point = curve[-1]
        return point.loss <= self.value if self.measure == "loss" else point.accuracy >= self.value


def parse_target(text: str) -> Target:
    """Parse ``accuracy >= 0.98``, ``accuracy >= 98 %`` or ``loss <= 0.1``."""
    match = _FORM.fullmatch(text)
    if match is None:
        raise InputError(f"--target: expected accuracy >= SHARE or loss <= NUMBER, got {text!r}")
    accuracy, percent, loss = match.groups()
    if loss is not None:
        return Target("loss", float(loss))
    value = float(accuracy) / (100 if percent else 1)
    if not 0 < value <= 1:
        raise InputError(f"--target: expected a share from 0 to 1 or a percentage, got {text!r}")
    return Target("accuracy", value)


@dataclass(frozen=True)
class Recipe:
    """Settings of a training; ``evaluate_every`` counts steps, ``aim`` ends the training early."""

    schedule: Schedule
    learning_rate: Decimal
    epochs: int
    evaluate_every: int
    aim: Target | None = None


@dataclass(frozen=True)
class Watch:
    """Callbacks of a training: to save its state, to report each step, and to stop the training.

    ``on_step`` gets the `Progress` at the latest evaluation, save or start of an epoch, and the
    number and loss of the step. The state is saved every ``save_seconds``.
    """

    save: Callable[[Progress, Arrays], None]
    on_step: Callable[[Progress, int, float], None]
    stopped: Callable[[], bool]
    save_seconds: float = 60.0


def train(
    recipe: Recipe, feed: Feed, session: TrainingSession, progress: Progress, watch: Watch
) -> Progress:
    """Train until the end or a stop, and save; raises TrainingDiverged and keeps the last save."""
    saved = time.monotonic()
    while progress.ending is None and not watch.stopped():
        if progress.step >= _next_evaluation_step(recipe, feed, progress):
            progress = _evaluated(recipe, feed, session, progress)
        else:
            progress = _take_steps_until_due(recipe, feed, session, progress, watch, saved)
        if time.monotonic() - saved >= watch.save_seconds:
            progress = _save_state(session, progress, watch)
            saved = time.monotonic()
    return _save_state(session, progress, watch)


def _next_evaluation_step(recipe: Recipe, feed: Feed, progress: Progress) -> int:
    if not progress.curve:
        return 0
    every = recipe.evaluate_every
    due = (progress.curve[-1].step // every + 1) * every
    return min(due, recipe.epochs * feed.epoch_steps)


def _take_steps_until_due(
    recipe: Recipe,
    feed: Feed,
    session: TrainingSession,
    progress: Progress,
    watch: Watch,
    saved: float,
) -> Progress:
    """Take steps until an evaluation or a save is due, the epoch ends, or a stop is requested."""
    step, (total, count) = progress.step, progress.losses
    epoch_end = (step // feed.epoch_steps + 1) * feed.epoch_steps
    end = min(_next_evaluation_step(recipe, feed, progress), epoch_end)
    rates = rates_at(recipe, feed, np.arange(step, end))
    begun, waited = time.perf_counter(), 0.0
    for loss, wait in session.losses(feed.batches(step, rates), len(rates)):
        step, total, count, waited = step + 1, total + loss, count + 1, waited + wait
        if not math.isfinite(loss):
            raise _diverged(f"training loss of step {step}", loss)
        watch.on_step(progress, step, loss)
        if watch.stopped() or time.monotonic() - saved >= watch.save_seconds:
            break
    spent = progress.spent(steps=time.perf_counter() - begun, waiting=waited)
    return replace(spent, step=step, losses=(total, count))


def rates_at(recipe: Recipe, feed: Feed, steps: NDArray[np.int64]) -> NDArray[np.float32]:
    """The learning rate at each of ``steps``."""
    rate, total = recipe.learning_rate, feed.epoch_steps * recipe.epochs
    return learning_rates(recipe.schedule, rate, steps, feed.epoch_steps, total)


def _evaluated(
    recipe: Recipe, feed: Feed, session: TrainingSession, progress: Progress
) -> Progress:
    begun = time.perf_counter()
    loss, accuracy = _evaluate_held_out(feed, session)
    point = Point(
        step=progress.step,
        seconds=progress.times.steps,
        learning_rate=float(rates_at(recipe, feed, np.array([max(0, progress.step - 1)]))[0]),
        training_loss=progress.losses[0] / progress.losses[1] if progress.losses[1] else None,
        loss=loss,
        accuracy=accuracy,
    )
    trained = point.training_loss
    # Training loss, because running means of normalisations distort the held-out loss early on.
    if progress.curve and trained and trained > _DIVERGED * max(progress.curve[0].loss, 1.0):
        raise _diverged(f"mean training loss before step {progress.step}", trained)
    after = replace(progress, curve=(*progress.curve, point), losses=(0.0, 0))
    if recipe.aim is not None and recipe.aim.met(after.curve):
        after = replace(after, ending="reached")
    elif progress.step >= recipe.epochs * feed.epoch_steps:
        after = replace(after, ending="epochs")
    return after.spent(evaluation=time.perf_counter() - begun)


def _evaluate_held_out(feed: Feed, session: TrainingSession) -> tuple[float, float]:
    """Mean loss and accuracy on held-out examples; raises TrainingDiverged if not finite."""
    total = examples = right = answers = 0.0
    for batch, loss, scores in session.evaluate(feed.held_out_batches()):
        size = len(next(iter(batch.values())))
        total, examples = total + loss * size, examples + size
        is_right = feed.right_answers(batch, scores)
        right, answers = right + float(is_right.sum()), answers + len(is_right)
    mean_loss = total / examples
    if not math.isfinite(mean_loss):
        raise _diverged("held-out loss", mean_loss)
    return mean_loss, right / answers


def _save_state(session: TrainingSession, progress: Progress, watch: Watch) -> Progress:
    """Save the state and count the time; raises TrainingDiverged if a value is not finite."""
    begun, values = time.perf_counter(), session.carried_values()
    for name, value in values.items():
        if not np.isfinite(value).all():
            raise _diverged(f"{name!r} after step {progress.step}", "others")
    watch.save(progress, values)
    return progress.spent(saving=time.perf_counter() - begun)


def _diverged(quantity: str, got: object) -> TrainingDiverged:
    return TrainingDiverged(
        f"{quantity}: expected finite numbers, none far above those of the start, got {got}: "
        "training diverged; lower the learning rate in the model's spec"
    )
