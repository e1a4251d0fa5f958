"""Display running trials: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from statistics import fmean
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Column

from epochcost.cli.outcomes import render_limit, render_served
from epochcost.execute import assignment
from epochcost.plan.rounds import Visit
from epochcost.results.records import Result
from epochcost.results.rounds import round_count, summary_of, without_disturbed_rounds
from epochcost.results.stability import disturbances_of
from epochcost.units import render_count, seconds, share

# Building a graph, starting a worker and evaluating add to a trial's budget.
_OVERHEAD_SECONDS = 3.0


class TimeLeft:
    """Estimate the remaining time of a run from time budgets and the pace of finished rounds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._started = clock()
        self._waiting: list[Visit] = []
        self._ratios: list[float] = []

    def schedule(self, visits: Iterable[Visit]) -> None:
        """Replace the list of remaining visits (rounds of trials), in the order of the run."""
        self._waiting = list(visits)

    def start(self) -> None:
        """Note the current time as the start of a visit (one round of a trial)."""
        self._started = self._clock()

    def end(self, *, measured: bool, given_up: bool = False) -> None:
        """Remove the round that just ended; if ``measured``, its duration improves the estimate.

        If ``given_up``, the trial's later rounds are removed, too.
        """
        ended = self._waiting.pop(0)
        if measured and not ended.stored:
            self._ratios.append((self._clock() - self._started) / _expected_seconds(ended))
        if given_up:
            self._waiting = [later for later in self._waiting if later.trial.id != ended.trial.id]

    @property
    def text(self) -> str:
        """The estimated time until the last trial ends, in whole seconds or minutes."""
        pace = fmean(self._ratios or [1.0])
        left = pace * sum(map(_expected_seconds, self._waiting))
        left = max(0.0, left - (self._clock() - self._started))
        return f"{left:.0f} s left" if left < 120 else f"{left / 60:.0f} min left"


def _expected_seconds(visit: Visit) -> float:
    return 0.0 if visit.stored else float(visit.expected_seconds) + _OVERHEAD_SECONDS


def render_outcome(
    event: assignment.Outcome | assignment.RoundStored | assignment.Exhausted,
) -> str:
    """The outcome of a trial in one line."""
    if isinstance(event, assignment.Exhausted):
        return "out of memory, which bounds the sweep"
    if isinstance(event, assignment.Failed):
        return f"failed: {str(event.error).splitlines()[0]}{render_kept(event)}"
    measurement = event.result.measurement
    stored = "stored before, " if isinstance(event, assignment.Skipped) else ""
    if measurement.served is not None:
        return stored + render_served(event.trial, measurement.served)
    counted = without_disturbed_rounds(event.result)
    summary, rounds = summary_of(counted), round_count(counted.measurement)
    extent = f"{summary.count} samples" + (f" in {rounds} rounds" if rounds > 1 else "")
    extent += _render_disturbance(counted, round_count(measurement) - rounds)
    why = "more follow" if isinstance(event, assignment.RoundStored) else measurement.stop_reason
    width = f"±{share(summary.relative_margin, decimals=1)}"
    return f"{stored}{seconds(summary.mean)} {width} a step, {extent} ({why})"


def _render_disturbance(result: Result, uncounted_rounds: int) -> str:
    if uncounted_rounds:
        rounds = render_count(uncounted_rounds, "round")
        return f", not counting {rounds} that other programs disturbed"
    return ", disturbed by other programs" if "others" in disturbances_of(result) else ""


def _render_patience(extra_seconds: float | None) -> str:
    """Words for an additional round: the time left for further rounds; empty for None."""
    if extra_seconds is None:
        return ""
    return f", added for precision; {seconds(extra_seconds)} of --patience left"


def render_kept(event: assignment.Failed) -> str:
    """The number of rounds that a failed trial had stored, in brackets; empty for none."""
    return f" ({render_count(event.rounds_kept, 'round')} kept)" if event.rounds_kept else ""


class Display:
    """A context manager that shows the events of a run in its block."""

    def __init__(self, console: Console) -> None:
        self._left = TimeLeft(time.monotonic)
        self._live = console.is_terminal
        self._doing = ""
        self._extra = ""
        self._progress = Progress(
            MofNCompleteColumn(),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[left]}"),
            TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True)),
            console=console,
            transient=True,
            disable=not self._live,
        )
        self._task = self._progress.add_task("", total=None, left="")

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def __call__(self, event: assignment.Event) -> None:
        """Show an event of the run."""
        match event:
            case assignment.Scheduled():
                self._left.schedule(event.visits)
                self._extra = _render_patience(event.extra_seconds)
                self._progress.update(self._task, total=len(event.visits))
            case assignment.Started():
                self._start(event)
            case assignment.Advanced():
                self._advance(event)
            case assignment.Swept():
                self._say(render_limit(event.limit))
            case assignment.Waiting():
                line = f"waiting: {event.reason}; for {seconds(event.left_seconds)} at most"
                self._progress.update(self._task, description=line)
                self._say("" if self._live else f"    {line}")
            case _:
                measured = isinstance(event, assignment.Finished | assignment.RoundStored)
                self._left.end(measured=measured, given_up=isinstance(event, assignment.Failed))
                self._progress.advance(self._task)
                title = f"{event.trial.title}:" if self._live else "   "
                self._say(f"{title} {render_outcome(event)}")

    def _start(self, event: assignment.Started) -> None:
        self._left.start()
        turn = f", round {event.round} of {event.rounds}" if event.rounds > 1 else ""
        self._doing = f"{event.trial.title}{turn}"
        # Visits that a failure made unnecessary count as done.
        self._progress.update(self._task, completed=event.number - 1, total=event.total)
        self._describe("building")
        count = f"[{event.number}/{event.total}]"
        self._say("" if self._live else f"{count} {self._doing} ({self._left.text}{self._extra})")

    def _advance(self, event: assignment.Advanced) -> None:
        progress, precision = event.progress, ""
        if progress.relative_half_width is not None:
            precision = f" ±{share(progress.relative_half_width, decimals=1)}"
        counted = f", {progress.samples} steps{precision}" if progress.samples else ""
        self._describe(f"{progress.phase}{counted}")

    def _describe(self, activity: str) -> None:
        description = f"{self._doing}: {activity}"
        left = self._left.text + self._extra
        self._progress.update(self._task, description=description, left=left)

    def _say(self, line: str) -> None:
        if line:
            console = self._progress.console
            console.print(line, markup=False, highlight=False, soft_wrap=not self._live)
