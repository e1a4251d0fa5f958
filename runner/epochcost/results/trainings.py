"""Records of real trainings: the learning curve and the times of each repeat.

A file in ``<hardware>/trainings/`` has all repeats with the same settings. Costs are not stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from epochcost.results.fields import (
    Count,
    FiniteLoss,
    Former,
    HexDigits,
    NonNegative,
    NonNegativeInt,
    Record,
    Share,
    Timestamp,
)
from epochcost.results.store import ID_DIGITS, HostSidecar
from epochcost.specs.study import Provider
from epochcost.statistics.quantiles import student_quantile

# History of TRAININGS_VERSION:
# 1  first form.
TRAININGS_VERSION = 1
# Why a training ended: it met its aim, or it ran all epochs of its recipe.
Ending = Literal["reached", "epochs"]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Point(Record):
    """A point of a learning curve: the evaluation on all held-out examples after ``step`` steps.

    ``seconds`` is the time of all steps so far, including waiting for data. ``training_loss`` is
    the mean loss over the steps since the last evaluation; None before the first step.
    """

    step: NonNegativeInt
    seconds: NonNegative
    learning_rate: NonNegative
    training_loss: FiniteLoss | None
    loss: FiniteLoss
    accuracy: Share


class Repeat(Record):
    """A training with one seed: its learning curve and its times.

    ``reached_step`` is that of the evaluation that met the aim, None if none did. ``sessions``
    counts starts and resumptions. Steps that were repeated after a crash count once.
    """

    seed: NonNegativeInt
    ending: Ending
    steps: Count
    step_seconds: NonNegative
    waiting_seconds: NonNegative
    evaluation_seconds: NonNegative
    saving_seconds: NonNegative
    sessions: Count
    reached_step: NonNegativeInt | None
    curve: Annotated[tuple[Point, ...], Field(min_length=1)]
    stable: Former = None
    weights_sha256: Sha256

    @property
    def seconds(self) -> float:
        """The billed seconds: training steps with their waits for data, evaluations, and saving."""
        return self.step_seconds + self.evaluation_seconds + self.saving_seconds

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> Repeat:
        steps = [point.step for point in self.curve]
        if steps != sorted(set(steps)) or steps[-1] > self.steps:
            raise ValueError("curve should be of ascending steps, none beyond the last")
        if self.reached_step is not None and self.reached_step not in steps:
            raise ValueError("reached_step should be that of an evaluation")
        if (self.ending == "reached") != (self.reached_step is not None):
            raise ValueError("reached_step should be there where the aim was reached")
        return self


class Trainings(HostSidecar):
    """The repeats of a training on one host; ``aim`` is the target as a text, or "all epochs".

    ``id`` is a digest of the runtime and of all settings, other than the seed, that affect the
    weights or the end.
    """

    folder: ClassVar[str] = "trainings"
    described: ClassVar[str] = "the trainings of a model"
    trainings_version: Literal[1]
    id: HexDigits
    model: str
    dataset: str
    data_sha256: Sha256
    provider: Provider
    batch_size: Count
    training_examples: Count
    held_out_examples: Count
    epoch_steps: Count
    aim: str
    measured_at: Timestamp
    repeats: Annotated[tuple[Repeat, ...], Field(min_length=1)]
    contradictions: tuple[str, ...] = ()

    @property
    def work(self) -> str:
        """The start of the file's name: model, data set, provider, batch size, digits of ``id``."""
        work = f"{self.model}-{self.dataset}-{self.provider}-b{self.batch_size}"
        return f"{work}-{self.id[:ID_DIGITS]}"

    @model_validator(mode="after")
    def _ascending_seeds(self) -> Trainings:
        seeds = [repeat.seed for repeat in self.repeats]
        if seeds != sorted(set(seeds)):
            raise ValueError("repeats should be of ascending seeds")
        return self


@dataclass(frozen=True)
class Spread:
    """Mean, and half the mean's 95 % confidence interval (Student's t)."""

    mean: float
    half_width: float | None


def spread(values: Sequence[float]) -> Spread:
    """The ``Spread`` of one or more values; for a single value only the mean is known."""
    half_width = None
    if len(values) > 1:
        quantile = student_quantile(0.975, len(values) - 1)
        half_width = quantile * stdev(values) / len(values) ** 0.5
    return Spread(fmean(values), half_width)
