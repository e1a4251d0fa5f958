"""Whole epochs that were really run, beside which the extrapolated one can be judged. Frozen."""

from __future__ import annotations

from statistics import fmean

from pydantic import model_validator

from epochcost.results.fields import Count, FiniteSeconds, NotNegative, Record, Whole

# Longer epochs are left out unless a run allows them: ten minutes are a price that one may pay for
# knowing, an hour is not.
MOST_EPOCH_SECONDS = 600.0


class Epoch(Record):
    """One epoch: ``seconds`` from the shuffling of the first batch to the end of the last step.

    ``waiting_seconds`` of them the device had nothing to do, because the next batch was not read
    and gathered yet. ``parts_seconds`` are of its tenths, between which it paused for samples; none
    where it had fewer than ten steps.
    """

    seconds: FiniteSeconds
    waiting_seconds: NotNegative
    parts_seconds: tuple[FiniteSeconds, ...] = ()


class WholeEpochs(Record):
    """Epochs of ``steps`` full batches each, run in a process of their own after the trial.

    In pauses of them that process sampled ``sampled_steps`` steps, ``step_seconds`` on average, by
    which its epochs are foretold: another process, or another minute, would differ for reasons that
    are no epoch's. None in results from before these were stored; there it is the trial's mean that
    foretells.

    ``examples_on_disk`` is how many different examples the files held; an epoch of more met some of
    them again. ``left_out`` says why there are none, or not as many as asked for.
    """

    steps: Count
    examples_on_disk: Whole = 0
    epochs: tuple[Epoch, ...] = ()
    left_out: str | None = None
    sampled_steps: Count | None = None
    step_seconds: FiniteSeconds | None = None

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

    def foretold_seconds(self, trial_step_seconds: float) -> float:
        """Steps times the mean step of the epochs' own process, else that of the trial."""
        return self.steps * (self.step_seconds or trial_step_seconds)

    def prediction_error(self, trial_step_seconds: float) -> float:
        """By how much the foretold epoch is above the mean one, relative to it."""
        return self.foretold_seconds(trial_step_seconds) / self.mean_seconds - 1

    def process_difference(self, trial_step_seconds: float) -> float | None:
        """By how much this process's mean step is above the trial's, relative to it."""
        return None if self.step_seconds is None else self.step_seconds / trial_step_seconds - 1
