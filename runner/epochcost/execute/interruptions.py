"""Interruptions for real: a training killed again and again, and gone on with from its saved state.

Each start is a process of its own, which SIGKILL ends as a provider would without a notice. What
was lost and what starts took is measured, to hold it to what `cost.spot` expects. When a start ends
is decided by the caller.
"""

from __future__ import annotations

import multiprocessing
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from multiprocessing.connection import Connection
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from statistics import fmean

from epochcost.cost.money import exact_arithmetic
from epochcost.cost.spot import SpotJob, SpotTime, expected_time
from epochcost.execute.training import PreparedTraining, run_repeat, state_path
from epochcost.measure.job import TrialFailed
from epochcost.results.trainings import Repeat
from epochcost.train.state import Progress
from epochcost.units import SECONDS_PER_HOUR


@dataclass(frozen=True, slots=True)
class Start:
    """One start of a training, in seconds: how long it lasted, and until its first step.

    ``lost`` is the time since the last saved state where it was interrupted, 0 where it ended.
    """

    lasted: float
    until_work: float
    lost: float
    interrupted: bool


@dataclass(frozen=True, slots=True)
class InterruptedTraining:
    """A training that was interrupted, with all its starts; ``interval_seconds`` between saves."""

    repeat: Repeat
    starts: tuple[Start, ...]
    interval_seconds: float

    @property
    def interruptions(self) -> int:
        """How often it was killed."""
        return sum(one.interrupted for one in self.starts)

    @property
    def running_seconds(self) -> float:
        """All the time that a machine ran."""
        return sum(one.lasted for one in self.starts)

    @property
    def starting_seconds(self) -> float:
        """The time in which no start had taken a step yet."""
        return sum(one.until_work for one in self.starts)

    @property
    def start_seconds(self) -> float:
        """The mean time to the first step, of the starts that came so far."""
        return fmean(one.until_work for one in self.starts if one.until_work < one.lasted)

    @property
    def rework_seconds(self) -> float:
        """What was worked and lost."""
        return sum(one.lost for one in self.starts)

    @property
    def work_seconds(self) -> float:
        """Steps and evaluations that stayed."""
        return self.repeat.step_seconds + self.repeat.evaluation_seconds

    @property
    def save_seconds(self) -> float:
        """The mean time of a save; every start that ended saved at its end, too."""
        return self.repeat.saving_seconds / max(1.0, self.work_seconds / self.interval_seconds)

    def job(self, per_hour: float) -> SpotJob:
        """The same as a job of `cost.spot`, at a rate of interruptions."""
        start = self.start_seconds
        numbers = (
            self.work_seconds,
            per_hour / SECONDS_PER_HOUR,
            start,
            start,
            self.save_seconds,
            self.interval_seconds,
        )
        return SpotJob(*(Decimal(repr(float(one))) for one in numbers))

    def expected(self, per_hour: float) -> SpotTime:
        """What the closed form expects of that job."""
        with exact_arithmetic():
            return expected_time(self.job(per_hour))


def random_ends(per_hour: float, seed: int) -> Iterator[float]:
    """After how many seconds each start is interrupted, at random at a constant rate."""
    chance = random.Random(seed)  # noqa: S311 - repeatable, and nothing secret
    while True:
        yield chance.expovariate(per_hour / SECONDS_PER_HOUR)


def run_interrupted(
    prepared: PreparedTraining, seed: int, folder: Path, ends: Iterator[float]
) -> InterruptedTraining:
    """Train to the end in as many starts as it takes; where ``ends`` has no more, none is killed.

    Raises TrialFailed where a start fails by itself.
    """
    starts: list[Start] = []
    while True:
        repeat, start = _start(prepared, seed, folder, next(ends, None))
        starts.append(start)
        if repeat is not None:
            return InterruptedTraining(repeat, tuple(starts), prepared.request.save_seconds)


def _start(
    prepared: PreparedTraining, seed: int, folder: Path, end: float | None
) -> tuple[Repeat | None, Start]:
    """One start, killed after ``end`` seconds unless it is done by then."""
    context = multiprocessing.get_context("spawn")
    ready = context.Value("d", 0.0)
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(
        target=_train, args=(prepared, seed, folder, ready, sender), daemon=True
    )
    begun = time.time()
    process.start()
    sender.close()
    try:
        done = receiver.poll(end)
        found = receiver.recv() if done else None
        ended = time.time()
    except EOFError:
        raise TrialFailed("a start of the training ended without a result") from None
    finally:
        process.kill()
        process.join()
    if isinstance(found, str):
        raise TrialFailed(found)
    return found, _timed(begun, ended, ready.value, state_path(folder), done=done)


def _timed(begun: float, ended: float, ready: float, state: Path, *, done: bool) -> Start:
    working = ready or ended
    saved = state.stat().st_mtime if state.exists() else 0.0
    lost = 0.0 if done else ended - max(working, min(saved, ended))
    return Start(ended - begun, working - begun, lost, not done)


def _train(
    prepared: PreparedTraining,
    seed: int,
    folder: Path,
    ready: Synchronized[float],
    sender: Connection,
) -> None:
    """What the process of a start does; its last word is the repeat, or why there is none."""

    def told(_progress: Progress, _step: int, _loss: float) -> None:
        if not ready.value:
            ready.value = time.time()

    try:
        sender.send(run_repeat(prepared, seed, folder, told, lambda: False))
    except Exception as error:  # a start's end is told in words, whatever it was
        sender.send(f"{type(error).__name__}: {error}")
