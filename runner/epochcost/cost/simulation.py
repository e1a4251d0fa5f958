"""Interrupted jobs played out at random: the second way to the figures of `cost.spot`.

Shares no formula with it: every stretch, save, interruption and start happens one after the other,
and every start is rounded as it ends.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal

from epochcost.cost.rounding import billed_seconds
from epochcost.cost.spot import SpotJob
from epochcost.specs.terms import Billing


@dataclass(slots=True)
class SimulatedRun:
    """One run: seconds that machines ran, seconds billed, what was saved and worked anew."""

    running: float = 0.0
    billed: float = 0.0
    saving: float = 0.0
    interruptions: int = 0
    forced: int = 0
    lives: list[float] = field(default_factory=list)

    @property
    def starts(self) -> int:
        """How often a machine was started."""
        return len(self.lives)


def simulate_runs(
    job: SpotJob, rule: Billing, runs: int, seed: int, *, free: bool = False
) -> Iterator[SimulatedRun]:
    """Play a job so many times, always the same for one seed.

    ``free``: of a start that is interrupted only whole steps are billed.
    """
    chance = random.Random(seed)  # noqa: S311 - repeatable, and nothing secret
    for _ in range(runs):
        yield _Run(job, rule, chance, free).play()


class _Run:
    """The state of one run: work saved so far, and the age of the machine at hand."""

    def __init__(self, job: SpotJob, rule: Billing, chance: random.Random, free: bool) -> None:
        self._job, self._rule, self._chance, self._free = job, rule, chance, free
        self._rate, self._save = float(job.rate), float(job.save)
        self._lifetime = float("inf") if job.ends_in_time else float(job.lifetime or 0)
        self._saved, self._work = 0.0, float(job.work)
        self._seen = SimulatedRun()

    def play(self) -> SimulatedRun:
        """Start machines until the work is done."""
        begin = float(self._job.first_start)
        while not self._live(begin):
            begin = float(self._job.later_start)
        return self._seen

    def _live(self, begin: float) -> bool:
        """Use one machine until it ends or the work is done; says which."""
        until = self._chance.expovariate(self._rate)
        if until <= begin:
            return self._end(until, interrupted=True)
        if self._job.interval is None:
            return self._work_until(begin, until)
        return self._work_in_stretches(begin, until, float(self._job.interval))

    def _work_in_stretches(self, age: float, until: float, interval: float) -> bool:
        while True:
            left = self._work - self._saved
            last = left <= interval * (1 + 1e-12)
            length = left if last else interval + self._save
            if age + length > self._lifetime * (1 + 1e-12):
                self._seen.forced += 1
                return self._end(age, interrupted=False)
            if until <= age + length:
                return self._end(until, interrupted=True)
            age += length
            if last:
                self._end(age, interrupted=False)
                return True
            self._saved += interval
            self._seen.saving += self._save

    def _work_until(self, begin: float, until: float) -> bool:
        """Work until the notice or the last moment to save; nothing of it is lost."""
        done = begin + self._work - self._saved
        stop = self._lifetime - self._save
        if done <= min(until, self._lifetime):
            self._end(done, interrupted=False)
            return True
        ended = min(until, stop)
        self._saved += ended - begin
        self._seen.saving += self._save
        self._seen.forced += stop < until
        return self._end(ended + self._save, interrupted=until <= stop)

    def _end(self, age: float, *, interrupted: bool) -> bool:
        seen, step = self._seen, float(self._rule.increment_seconds)
        seen.lives.append(age)
        seen.running += age
        seen.interruptions += interrupted
        if interrupted and self._free:
            seen.billed += age // step * step if step else age
        else:
            seen.billed += float(billed_seconds(Decimal(repr(age)), self._rule))
        return False
