"""The training loop: steps until an evaluation or a saved state is due, until an aim is met.

The same training gives the same weights however often it is interrupted: what a step is fed follows
from its number alone, and everything else is in the saved state. Sessions are left to
``measure.training``, the state's file to ``state``, what is fed to ``pipeline``, when an aim
is met to ``aims``.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epochcost.errors import InputError
from epochcost.measure.training import TrainingSession
from epochcost.results.trainings import Point
from epochcost.specs.training import OnPlateau, Schedule
from epochcost.train.aims import Target
from epochcost.train.pipeline import Feed
from epochcost.train.schedule import Horizon, rate_factors
from epochcost.train.state import Progress

Arrays = Mapping[str, NDArray[Any]]
# A loss in training so many times the held-out one before the first step is of no training.
_DIVERGED = 10.0
_MOST_EXPONENT = 700.0


class TrainingDiverged(InputError):  # noqa: N818 - an outcome of a training, as people say it
    """The loss or the weights are no numbers any more, or far worse than at the start."""


@dataclass(frozen=True)
class Recipe:
    """How a training goes: its rate, its length, when it is evaluated and what ends it.

    ``patience``: how many evaluations may pass without a better one; None: any number.
    """

    schedule: Schedule
    learning_rate: Decimal
    epochs: int
    evaluate_every: int
    aim: Target | None = None
    patience: int | None = None


@dataclass(frozen=True)
class Watch:
    """Who follows a training: what saves it, what is told of each step, and what stops it.

    ``told`` gets the progress as of the last pause, the step and its loss.
    """

    save: Callable[[Progress, Arrays], None]
    told: Callable[[Progress, int, float], None]
    stopped: Callable[[], bool]
    save_seconds: float = 60.0


def train(
    recipe: Recipe, feed: Feed, session: TrainingSession, progress: Progress, watch: Watch
) -> Progress:
    """Go on until the training has its end, or somebody stops it; the last state is saved.

    Raises TrainingDiverged, which leaves the state that was saved before.
    """
    saved = time.monotonic()
    while progress.ending is None and not watch.stopped():
        if _due(recipe, feed, progress):
            progress = _evaluated(recipe, feed, session, progress)
        else:
            progress = _stepped(recipe, feed, session, progress, watch, saved)
        if time.monotonic() - saved >= watch.save_seconds:
            progress = _saved(session, progress, watch)
            saved = time.monotonic()
    return _saved(session, progress, watch)


def _due(recipe: Recipe, feed: Feed, progress: Progress) -> bool:
    """Whether the present step is to be evaluated, and was not yet."""
    if progress.curve and progress.curve[-1].step == progress.step:
        return False
    return progress.step == _next_due(recipe, feed, max(0, progress.step - 1), progress)


def _next_due(recipe: Recipe, feed: Feed, after: int, progress: Progress) -> int:
    """The first step beyond ``after`` that is evaluated; 0 where none was."""
    if not progress.curve:
        return 0
    every = recipe.evaluate_every
    due = [(after // every + 1) * every, recipe.epochs * feed.epoch_steps]
    if isinstance(recipe.schedule, OnPlateau):
        due.append(_epoch_end(feed, after))
    return min(due)


def _epoch_end(feed: Feed, step: int) -> int:
    return (step // feed.epoch_steps + 1) * feed.epoch_steps


def _stepped(
    recipe: Recipe,
    feed: Feed,
    session: TrainingSession,
    progress: Progress,
    watch: Watch,
    saved: float,
) -> Progress:
    """Take steps up to the next evaluation, the end of the epoch, a stop or a state to be saved."""
    step, (total, count) = progress.step, progress.losses
    end = min(_next_due(recipe, feed, step, progress), _epoch_end(feed, step))
    rates = rates_at(recipe, feed, np.arange(step, end), progress)
    begun, waited = time.perf_counter(), 0.0
    for loss, wait in session.losses(feed.batches(step, rates)):
        step, total, count, waited = step + 1, total + loss, count + 1, waited + wait
        if not math.isfinite(loss):
            raise _diverged(f"training loss of step {step}", loss)
        watch.told(progress, step, loss)
        if watch.stopped() or time.monotonic() - saved >= watch.save_seconds:
            break
    spent = progress.spent(steps=time.perf_counter() - begun, waiting=waited)
    return replace(spent, step=step, losses=(total, count))


def rates_at(
    recipe: Recipe, feed: Feed, steps: NDArray[np.int64], progress: Progress
) -> NDArray[np.float32]:
    """The learning rate of each of some steps."""
    horizon = Horizon(feed.epoch_steps, feed.epoch_steps * recipe.epochs)
    factors = rate_factors(recipe.schedule, steps, horizon) * progress.plateau.factor
    return np.asarray(float(recipe.learning_rate) * factors, dtype=np.float32)


def _evaluated(
    recipe: Recipe, feed: Feed, session: TrainingSession, progress: Progress
) -> Progress:
    begun = time.perf_counter()
    loss, accuracy = _held_out(feed, session)
    point = Point(
        step=progress.step,
        seconds=progress.times.steps,
        learning_rate=float(
            rates_at(recipe, feed, np.array([max(0, progress.step - 1)]), progress)[0]
        ),
        training_loss=progress.losses[0] / progress.losses[1] if progress.losses[1] else None,
        loss=loss,
        accuracy=accuracy,
    )
    trained = point.training_loss
    # Not by the held-out loss: the running means of normalisations lag behind in the first epochs.
    if progress.curve and trained and trained > _DIVERGED * max(progress.curve[0].loss, 1.0):
        raise _diverged(f"mean training loss before step {progress.step}", trained)
    after = replace(progress, curve=(*progress.curve, point), losses=(0.0, 0))
    if isinstance(recipe.schedule, OnPlateau) and progress.step % feed.epoch_steps == 0:
        after = _after_epoch(recipe, recipe.schedule, point, after)
    after = _judged(recipe, feed, after)
    return after.spent(evaluation=time.perf_counter() - begun)


def _held_out(feed: Feed, session: TrainingSession) -> tuple[float, float | None]:
    """The mean loss of all held-out examples, and the share of right answers where there are any.

    Raises TrainingDiverged where the loss is no number.
    """
    total = examples = right = answers = 0.0
    for found in session.evaluate(feed.held_out_batches()):
        size = len(next(iter(found.batch.values())))
        total, examples = total + found.loss * size, examples + size
        is_right = feed.right_answers(found.batch, found.scores)
        right, answers = right + float(is_right.sum()), answers + len(is_right)
    loss = total / examples
    if not math.isfinite(loss):
        raise _diverged("held-out loss", loss)
    return loss, right / answers if answers else None


def _after_epoch(recipe: Recipe, schedule: OnPlateau, point: Point, progress: Progress) -> Progress:
    if point.step == 0:
        return progress
    measured = point.accuracy if schedule.measure == "accuracy" else point.loss
    if schedule.measure == "perplexity":
        measured = math.exp(min(point.loss, _MOST_EXPONENT))
    if measured is None:
        raise InputError("schedule: on-plateau by accuracy demands a model that answers by classes")
    plateau = progress.plateau.after(schedule, measured)
    ended = plateau.ended(schedule, recipe.learning_rate)
    return replace(progress, plateau=plateau, ending="epochs" if ended else progress.ending)


def _judged(recipe: Recipe, feed: Feed, progress: Progress) -> Progress:
    """The ending, where the evaluation brought it."""
    ending = progress.ending
    if recipe.aim is not None and recipe.aim.met(progress.curve):
        ending = "reached"
    elif progress.step >= recipe.epochs * feed.epoch_steps:
        ending = "epochs"
    elif recipe.patience is not None and _idle(progress.curve) >= recipe.patience:
        ending = "patience"
    return replace(progress, ending=ending)


def _idle(curve: tuple[Point, ...]) -> int:
    """How many evaluations passed since the best one: by accuracy where there is one."""
    values = [point.loss if point.accuracy is None else -point.accuracy for point in curve]
    return len(values) - 1 - values.index(min(values))


def _saved(session: TrainingSession, progress: Progress, watch: Watch) -> Progress:
    """Save the state as it is; raises TrainingDiverged instead where weights are no numbers."""
    begun, values = time.perf_counter(), session.carried_values()
    for name, value in values.items():
        if not np.isfinite(value).all():
            raise _diverged(f"{name!r} after step {progress.step}", "some that are not")
    watch.save(progress, values)
    return progress.spent(saving=time.perf_counter() - begun)


def _diverged(what: str, got: object) -> TrainingDiverged:
    return TrainingDiverged(
        f"{what}: expected finite numbers, none far above those of the start, got {got}: training "
        "diverged; lower the learning rate in the model's spec"
    )
