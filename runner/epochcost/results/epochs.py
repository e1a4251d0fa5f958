"""Whole epochs that were really run, beside which the extrapolated one can be judged. Frozen."""

from __future__ import annotations

from statistics import fmean
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]
# Longer epochs are left out unless a run allows them: ten minutes are a price that one may pay for
# knowing, an hour is not.
MOST_EPOCH_SECONDS = 600.0


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Epoch(_Record):
    """One epoch: ``seconds`` from the shuffling of the first batch to the end of the last step.

    ``waiting_seconds`` of them the device had nothing to do, because the next batch was not read
    and gathered yet.
    """

    seconds: Seconds
    waiting_seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)]


class WholeEpochs(_Record):
    """Epochs of ``steps`` full batches each, run in a process of their own after the trial.

    ``examples_on_disk`` is how many different examples the files held; an epoch of more met some of
    them again. ``left_out`` says why there are none, or not as many as asked for.
    """

    steps: Count
    examples_on_disk: Annotated[int, Field(ge=0)] = 0
    epochs: tuple[Epoch, ...] = ()
    left_out: str | None = None

    @model_validator(mode="after")
    def _something_to_say(self) -> WholeEpochs:
        if not self.epochs and self.left_out is None:
            raise ValueError("should have epochs, or the reason why there are none")
        return self

    @property
    def mean_seconds(self) -> float:
        """Of an epoch; there must be one."""
        return fmean(epoch.seconds for epoch in self.epochs)

    @property
    def waiting_share(self) -> float:
        """The part of the epochs' time that was spent waiting for data; there must be one."""
        return sum(one.waiting_seconds for one in self.epochs) / sum(e.seconds for e in self.epochs)

    def prediction_error(self, step_seconds: float) -> float:
        """By how much steps times the mean step is above the mean epoch, relative to it."""
        return self.steps * step_seconds / self.mean_seconds - 1
