"""Rounds: the order in which a run visits each trial several times. Pure.

A machine's speed drifts: it warms up, other programs come and go, clocks change. In several rounds,
each in another random order, all trials meet all of these conditions. A single round keeps the
plan's order. The number of rounds is no part of a trial's identity.
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
# A wider interval says nothing; a study may not demand more either.
_WIDEST = Decimal("0.5")


@dataclass(frozen=True)
class Visit:
    """A round of a trial: number ``number`` of ``rounds``, from 1.

    ``extra`` of the rounds are beyond the plan; the planned rounds share the budget.
    """

    trial: Trial
    number: int = 1
    rounds: int = 1
    extra: int = 0

    @property
    def last(self) -> bool:
        """Whether this is the trial's last round."""
        return self.number >= self.rounds

    @property
    def expected_seconds(self) -> Decimal:
        """Expected seconds of the timing."""
        return self.trial.expected_seconds / (self.rounds - self.extra)

    @property
    def minimum_samples(self) -> int:
        """The round's share of the trial's minimum of samples, at least ten."""
        planned = self.rounds - self.extra
        return max(_FEWEST_SAMPLES, math.ceil(self.trial.minimum_samples / planned))

    @property
    def relative_half_width(self) -> Decimal:
        """The half width of this round with which all rounds together reach the trial's.

        The half width of n equal rounds together is that of one over √n, if they agree.
        """
        demanded = self.trial.relative_half_width
        return min(demanded * Decimal(self.rounds).sqrt(), max(demanded, _WIDEST))


def rounds_of(trial: Trial, rounds: Mapping[str, int]) -> int:
    """The number of rounds of a trial: by its id in ``rounds``, else 1, and 1 under LoadGen.

    LoadGen judges a run by its length, which must not be divided.
    """
    return rounds.get(trial.id, 1) if trial.work.scenario == "batch" else 1


def visits(
    trials: Sequence[Trial], rounds_asked: Mapping[str, int], rounds_stored: Callable[[Trial], int]
) -> Iterator[Visit]:
    """All visits of a run in their order.

    ``rounds_asked`` holds the rounds by trial's id. ``rounds_stored`` counts a trial's stored
    rounds, which are not visited again; it is called at the trial's first turn. A trial whose
    rounds are all stored has a visit, its last, in the first round, so that the run reports it.
    """
    rounds = {trial.id: rounds_of(trial, rounds_asked) for trial in trials}
    most = max(rounds.values(), default=1)
    behind: dict[str, int] = {}
    for number in range(1, most + 1):
        for trial in _order(trials, number) if most > 1 else trials:
            planned = rounds[trial.id]
            if trial.id not in behind:
                behind[trial.id] = rounds_stored(trial)
            if behind[trial.id] >= planned:
                if number == 1:
                    yield Visit(trial, planned, planned)
            elif behind[trial.id] < number <= planned:
                yield Visit(trial, number, planned)


def _order(trials: Sequence[Trial], number: int) -> list[Trial]:
    """A random order for one round, by a hash of the seed, the round and the trial's id."""
    return sorted(
        trials,
        key=lambda trial: hashlib.sha256(f"{trial.seed} {number} {trial.id}".encode()).digest(),
    )
