"""Rounds: how often a run comes back to each trial, and in which order.

A machine drifts: it warms up, neighbours come and go, a governor changes its mind. Measured one
after the other, trials would meet different machines; visited in several rounds, each in an order
of its own, all of them meet all of it. With one round the order is the plan's. Pure. The number of
rounds is no part of a trial's identity.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from epochcost.plan.trial import Trial

# Fewer samples do not show how one step depends on the last.
_FEWEST_SAMPLES = 10
# A wider interval is none; also the bound of a study's own demand.
_WIDEST = Decimal("0.5")


@dataclass(frozen=True)
class Visit:
    """A round of a trial: the ``number``th of ``rounds``, counted from 1.

    ``extra`` of them are beyond the plan, whose budget the others share.
    """

    trial: Trial
    number: int = 1
    rounds: int = 1
    extra: int = 0

    @property
    def last(self) -> bool:
        """Whether the trial is finished after it."""
        return self.number >= self.rounds

    @property
    def expected_seconds(self) -> Decimal:
        """About how long the timing takes."""
        return self.trial.expected_seconds / (self.rounds - self.extra)

    @property
    def minimum_samples(self) -> int:
        """Its part of the trial's minimum of samples, at least ten."""
        planned = self.rounds - self.extra
        return max(_FEWEST_SAMPLES, math.ceil(self.trial.minimum_samples / planned))

    @property
    def relative_half_width(self) -> Decimal:
        """How narrow this round's interval must be for that of all to be as the trial demands.

        The half width of the mean of n equal rounds is that of one over √n, if they agree.
        """
        demanded = self.trial.relative_half_width
        return min(demanded * Decimal(self.rounds).sqrt(), max(demanded, _WIDEST))


def rounds_of(trial: Trial, rounds: Mapping[str, int]) -> int:
    """How often a trial is visited: as ``rounds`` says by id, once by default and under LoadGen.

    LoadGen judges a run by its own length, which must not be divided.
    """
    return rounds.get(trial.id, 1) if trial.work.scenario == "batch" else 1


def visits(
    trials: Sequence[Trial], rounds_asked: Mapping[str, int], rounds_stored: Callable[[Trial], int]
) -> Iterator[Visit]:
    """All visits of a run in their order.

    ``rounds_asked`` holds the rounds by trial's id. ``rounds_stored`` counts the stored rounds of a
    trial, when its first turn comes: those are not visited again. A trial with all of them has one
    visit, its last, in the first round, so that the run can say so.
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
    """A random order for one round, by lots drawn from the seed, the round and the trial's id."""
    return sorted(
        trials,
        key=lambda trial: hashlib.sha256(f"{trial.seed} {number} {trial.id}".encode()).digest(),
    )
