"""Seconds of a trial that are not measurement, from a real quick run of the starter study.

    python benchmarks/overhead.py

Warm-up and sampling are measurement. Everything else is overhead: planning, differentiating,
drawing batches, starting a process, loading the graph, evaluating the held-out loss, storing. The
run's clock measures the total from outside.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from epochcost.execute.assignment import Assignment, Event, Finished, Outcome, Started
from epochcost.execute.planning import plan_run
from epochcost.execute.run import run_trials
from epochcost.plan.make import RunRequest
from epochcost.results.store import ResultStore
from epochcost.specs.loader import load_catalogue

ROOT = Path(__file__).parents[1]
_ROW = "{:<40} {:>9} {:>9} {:>9} {:>11} {:>6}"


@dataclass(frozen=True)
class Share:
    """Seconds of one trial, from its start to its stored result."""

    title: str
    whole: float
    warm_up: float
    sampling: float

    @property
    def overhead(self) -> float:
        """The seconds outside warm-up and sampling."""
        return self.whole - self.warm_up - self.sampling


class Stopwatch:
    """Times each trial from its start event to its end event."""

    def __init__(self) -> None:
        self.shares: list[Share] = []
        self._started = 0.0

    def __call__(self, event: Event) -> None:
        """Record the start or the end of a trial; ignore other events."""
        if isinstance(event, Started):
            self._started = time.perf_counter()
        elif isinstance(event, Finished):
            measured = event.result.measurement
            self.shares.append(
                Share(
                    event.trial.title,
                    time.perf_counter() - self._started,
                    sum(measured.warmup_seconds),
                    sum(measured.samples_seconds),
                )
            )


def main() -> None:
    """Run every quick trial of this machine and print its times."""
    catalogue = load_catalogue(ROOT)
    planned = plan_run(catalogue, RunRequest(studies=("starter",), quick=True))
    stopwatch = Stopwatch()
    with tempfile.TemporaryDirectory() as folder:
        store = ResultStore(Path(folder))
        outcomes = run_trials(Assignment(catalogue, planned, "local", store), stopwatch)
    _show(stopwatch.shares, outcomes)


def _show(shares: list[Share], outcomes: tuple[Outcome, ...]) -> None:
    print(_ROW.format("trial", "whole s", "warm-up s", "sample s", "overhead s", ""))
    for share in shares:
        print(_row(share))
    total = Share(
        "all",
        sum(share.whole for share in shares),
        sum(share.warm_up for share in shares),
        sum(share.sampling for share in shares),
    )
    print(_row(total))
    most = max(share.overhead for share in shares)
    print(f"{len(shares)} of {len(outcomes)} trials measured")
    print(f"overhead: {total.overhead / len(shares):.2f} s a trial, at most {most:.2f} s")


def _row(share: Share) -> str:
    return _ROW.format(
        share.title,
        f"{share.whole:.2f}",
        f"{share.warm_up:.2f}",
        f"{share.sampling:.2f}",
        f"{share.overhead:.2f}",
        f"{share.overhead / share.whole:.0%}",
    )


if __name__ == "__main__":
    main()
