"""Decide the order in which a run measures its trials, each in several rounds.

Each round has its own random order, so a drift of the machine's speed affects all trials alike. A
run with a single round follows the plan's order.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from epochcost.plan.trial import Trial

# Fewer samples do not show the correlation between steps.
_FEWEST_SAMPLES = 10
# The widest useful interval; a study may not accept a wider interval either.
_WIDEST = Decimal("0.5")


@dataclass(frozen=True)
class Visit:
    """Round ``number`` (from 1) of the ``rounds`` in which a trial is measured.

    ``rounds`` includes ``extra`` rounds, which were added for precision. The other rounds share the
    trial's time budget equally, and an extra round has as much time. If ``stored``, all results are
    stored already, and this visit only reports the trial.
    """

    trial: Trial
    number: int = 1
    rounds: int = 1
    extra: int = 0
    stored: bool = False

    @property
    def last(self) -> bool:
        """Whether this is the trial's last round."""
        return self.number >= self.rounds

    @property
    def expected_seconds(self) -> Decimal:
        """Expected duration of this round, in seconds."""
        return self.trial.expected_seconds / (self.rounds - self.extra)

    @property
    def minimum_samples(self) -> int:
        """The trial's minimum of samples divided by the planned rounds, but at least ten."""
        planned = self.rounds - self.extra
        return max(_FEWEST_SAMPLES, math.ceil(self.trial.minimum_samples / planned))

    @property
    def relative_half_width(self) -> Decimal:
        """The relative half width of the mean time's interval at which this round may stop.

        All rounds together have an interval that is narrower by √``rounds``, so each round may stop
        earlier. The result is at most ``_WIDEST``, but never less than the trial demands.
        """
        demanded = self.trial.relative_half_width
        return min(demanded * Decimal(self.rounds).sqrt(), max(demanded, _WIDEST))


def visits(
    trials: Sequence[Trial], rounds_asked: Mapping[str, int], rounds_stored: Callable[[Trial], int]
) -> Iterator[Visit]:
    """Yield the rounds of a run in order: round 1 of each trial, then round 2, and so on.

    ``rounds_asked`` is by trial id, by default 1. Rounds that are stored already are left out. A
    trial whose rounds are all stored gets one visit with the mark ``stored``.
    """
    rounds = {trial.id: rounds_asked.get(trial.id, 1) for trial in trials}
    stored = {trial.id: rounds_stored(trial) for trial in trials}
    most = max(rounds.values(), default=1)
    for number in range(1, most + 1):
        for trial in _shuffled_trials(trials, number) if most > 1 else trials:
            planned = rounds[trial.id]
            if number == 1 and stored[trial.id] >= planned:
                # So that the run can report the trial.
                yield Visit(trial, planned, planned, stored=True)
            elif stored[trial.id] < number <= planned:
                yield Visit(trial, number, planned)


def _shuffled_trials(trials: Sequence[Trial], round_number: int) -> list[Trial]:
    return sorted(
        trials,
        key=lambda trial: hashlib.sha256(
            f"{trial.seed} {round_number} {trial.id}".encode()
        ).digest(),
    )
