"""What a person sees while trials run: a live line on a terminal, plain lines anywhere else.

Everything goes to standard error, so that standard output holds the result and nothing else.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Column

from epochcost.cli.served import served_words
from epochcost.execute.events import Advanced, Event, Failed, Finished, Skipped, Started
from epochcost.execute.inventory import Counted
from epochcost.plan.trial import Trial
from epochcost.statistics import summarise
from epochcost.units import seconds

# Building a graph, starting a worker and evaluating come on top of a trial's budget.
_OVERHEAD_SECONDS = 3.0


class TimeLeft:
    """How long the remaining trials take: what the finished ones took, else their budgets."""

    def __init__(self, trials: Sequence[Trial], clock: Callable[[], float]) -> None:
        self._waiting = [float(trial.expected_seconds) + _OVERHEAD_SECONDS for trial in trials]
        self._clock = clock
        self._started = clock()
        self._ratios: list[float] = []

    def start(self) -> None:
        """Begin the first waiting trial."""
        self._started = self._clock()

    def end(self, *, measured: bool) -> None:
        """End it; a skipped one says nothing about how long the others take."""
        expected = self._waiting.pop(0)
        if measured:
            self._ratios.append((self._clock() - self._started) / expected)

    @property
    def seconds(self) -> float:
        """Seconds until the last trial ends, as far as is known now."""
        if not self._waiting:
            return 0.0
        pace = sum(self._ratios) / len(self._ratios) if self._ratios else 1.0
        current = self._waiting[0] * pace - (self._clock() - self._started)
        return max(0.0, current) + sum(self._waiting[1:]) * pace

    @property
    def words(self) -> str:
        """The same for people: an estimate, in whole seconds or minutes."""
        left = self.seconds
        return f"{left:.0f} s left" if left < 120 else f"{left / 60:.0f} min left"


class Display(Protocol):
    """Shows events; entered before the first and left after the last."""

    def __enter__(self) -> Self:
        """Begin to show."""
        ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave the terminal as it was found."""
        ...

    def __call__(self, event: Event) -> None:
        """Show one event."""
        ...


def display_for(trials: Sequence[Trial], console: Console) -> Display:
    """A live display on a terminal, plain lines anywhere else."""
    left = TimeLeft(trials, time.monotonic)
    return _Live(trials, left, console) if console.is_terminal else _Lines(left, console)


def outcome_words(event: Finished | Skipped | Failed) -> str:
    """What became of a trial, in one line."""
    if isinstance(event, Failed):
        return f"failed: {str(event.error).splitlines()[0]}"
    measurement = event.result.measurement
    stored = "stored before, " if isinstance(event, Skipped) else ""
    if measurement.served is not None:
        return stored + served_words(event.trial, measurement.served)
    summary = summarise(measurement.samples_seconds)
    return (
        f"{stored}{seconds(summary.mean)} ±{summary.relative_half_width:.1%} a step, "
        f"{summary.count} samples ({measurement.stop_reason})"
    )


def advance_words(event: Advanced) -> str:
    """How far a trial is."""
    progress = event.progress
    precision = (
        "" if progress.relative_half_width is None else f" ±{progress.relative_half_width:.1%}"
    )
    counted = f", {progress.samples} steps{precision}" if progress.samples else ""
    return f"{progress.phase}{counted}"


@contextlib.contextmanager
def counting(console: Console) -> Iterator[Callable[[Counted], None]]:
    """A bar over the models whose sizes are counted; nothing where nobody watches."""
    columns = MofNCompleteColumn(), BarColumn(bar_width=20), TextColumn("{task.description}")
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as progress:
        task = progress.add_task("counting the models")

        def show(counted: Counted) -> None:
            progress.update(
                task,
                completed=counted.done,
                total=counted.total,
                description=f"{counted.model} is counted",
            )

        yield show


class _Lines:
    """A line when a trial begins and one when it ends."""

    def __init__(self, left: TimeLeft, console: Console) -> None:
        self._left = left
        self._console = console

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __call__(self, event: Event) -> None:
        if isinstance(event, Started):
            self._left.start()
            self._say(f"[{event.number}/{event.total}] {event.trial.title} ({self._left.words})")
        elif not isinstance(event, Advanced):
            self._left.end(measured=isinstance(event, Finished))
            self._say(f"    {outcome_words(event)}")

    def _say(self, line: str) -> None:
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)


class _Live:
    """One bar over all trials, with what the present one is doing beside it."""

    def __init__(self, trials: Sequence[Trial], left: TimeLeft, console: Console) -> None:
        self._left = left
        self._progress = Progress(
            MofNCompleteColumn(),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[left]}"),
            TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True)),
            console=console,
            transient=True,
        )
        self._task = self._progress.add_task("", total=len(trials), left="")

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def __call__(self, event: Event) -> None:
        if isinstance(event, Started):
            self._left.start()
            self._describe(f"{event.trial.title}: building")
        elif isinstance(event, Advanced):
            self._describe(f"{event.trial.title}: {advance_words(event)}")
        else:
            self._left.end(measured=isinstance(event, Finished))
            self._progress.advance(self._task)
            self._progress.console.print(
                f"{event.trial.title}: {outcome_words(event)}", markup=False, highlight=False
            )

    def _describe(self, words: str) -> None:
        self._progress.update(self._task, description=words, left=self._left.words)
