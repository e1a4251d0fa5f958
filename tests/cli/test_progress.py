"""The progress display of trials, with a fake clock."""

from __future__ import annotations

import io
from decimal import Decimal

import pytest
from rich.console import Console

from epochcost.cli.progress import Display, TimeLeft, render_outcome
from epochcost.errors import ModelError
from epochcost.execute.assignment import (
    Advanced,
    Event,
    Failed,
    Finished,
    RoundStored,
    Scheduled,
    Skipped,
    Started,
)
from epochcost.measure.job import Progress
from epochcost.plan.rounds import Visit
from epochcost.plan.trial import Trial
from epochcost.results.environment import Conditions
from epochcost.results.records import Result
from epochcost.results.rounds import add_round
from report_project import make_result

# First estimate for a trial with this budget: 7 s and 3 s of overhead.
BUDGET_SECONDS = 7
EXPECTED_SECONDS = 10


def result() -> Result:
    """The result of the first trial: four steps of exactly 2 ms."""
    return make_result(batch_size=1, samples=(0.002,) * 4)


TRIALS = tuple(
    make_result(batch_size=size).trial.model_copy(
        update={"budget_seconds": Decimal(BUDGET_SECONDS)}
    )
    for size in (1, 2, 3)
)


EVENTS: tuple[Event, ...] = (
    Scheduled(tuple(Visit(trial) for trial in TRIALS)),
    Started(TRIALS[0], 1, 3),
    Advanced(
        TRIALS[0],
        Progress(phase="sampling", samples=40, relative_half_width=0.031, budget_seconds=7),
    ),
    Finished(TRIALS[0], result()),
    Started(TRIALS[1], 2, 3),
    Skipped(TRIALS[1], result()),
    Started(TRIALS[2], 3, 3),
    Failed(TRIALS[2], ModelError("it broke\nin two lines")),
)


class CountingClock:
    """A clock that a test advances."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        """Return the current time in seconds."""
        return self.seconds


def time_left(trials: tuple[Trial, ...], clock: CountingClock | None = None) -> TimeLeft:
    """The estimate before each of ``trials`` is measured once."""
    estimate = TimeLeft(clock or CountingClock())
    estimate.schedule(Visit(trial) for trial in trials)
    return estimate


def test_time_left_starts_from_the_budgets() -> None:
    """Before any measurement, each trial takes its budget plus overhead."""
    assert time_left(TRIALS).text == f"{3 * EXPECTED_SECONDS} s left"
    assert time_left(TRIALS * 5).text == "2 min left"


def test_time_left_leaves_out_stored_trials() -> None:
    """A resumed run expects time only for the trials that it measures."""
    estimate = TimeLeft(clock := CountingClock())
    estimate.schedule([Visit(TRIALS[0], stored=True), Visit(TRIALS[1], stored=True)])
    assert estimate.text == "0 s left"
    clock.seconds = 1
    estimate.end(measured=True)  # its file was removed after the run began
    estimate.schedule([Visit(TRIALS[0], stored=True), Visit(TRIALS[1])])
    estimate.start()
    assert estimate.text == f"{EXPECTED_SECONDS} s left"


def test_time_left_learns_from_finished_trials() -> None:
    """If the first trial takes half of its estimate, the other estimates are halved."""
    clock = CountingClock()
    estimate = time_left(TRIALS, clock)
    estimate.start()
    clock.seconds = EXPECTED_SECONDS / 2
    estimate.end(measured=True)
    estimate.start()
    assert estimate.text == f"{EXPECTED_SECONDS} s left"


def console_output(*, terminal: bool) -> str:
    """What the display prints for ``EVENTS``."""
    output = io.StringIO()
    console = Console(file=output, force_terminal=terminal, width=120, color_system=None)
    with Display(console) as display:
        for event in EVENTS:
            display(event)
    return output.getvalue()


def test_plain_lines_where_nobody_watches() -> None:
    """Without a terminal, each start and end of a trial is a plain line."""
    lines = console_output(terminal=False).splitlines()
    assert [line.split(" (")[0] for line in lines] == [
        "[1/3] net training cpu batch 1",
        "    2 ms ±0.0 % a step, 4 samples",
        "[2/3] net training cpu batch 2",
        "    stored before, 2 ms ±0.0 % a step, 4 samples",
        "[3/3] net training cpu batch 3",
        "    failed: it broke",
    ]
    assert lines[0].endswith("(30 s left)")


def test_a_terminal_shows_what_is_being_measured() -> None:
    """A terminal shows finished trials, failed trials and the count."""
    text = console_output(terminal=True)
    assert "net training cpu batch 1: 2 ms ±0.0 % a step, 4 samples (precise)" in text
    assert "net training cpu batch 3: failed: it broke" in text
    assert "3/3" in text


def test_disturbed_rounds_are_named() -> None:
    """A line says how many rounds do not count, or that other programs disturbed all of them."""
    busy = Conditions(seconds=1, others_cpus=1.0)
    disturbed = result().measurement.model_copy(update={"conditions": busy})
    twice = add_round(disturbed, result().measurement, 0.02)
    endings = [
        render_outcome(Finished(TRIALS[0], result().model_copy(update={"measurement": each})))
        for each in (disturbed, twice)
    ]
    assert endings == [
        "2 ms ±75.0 % a step, 4 samples, disturbed by other programs (precise)",
        "2 ms ±0.0 % a step, 4 samples, not counting 1 round that other programs disturbed "
        "(precise)",
    ]


def rounds_of_two() -> list[Event]:
    """Events of two trials with two rounds, of which the first fails in its second round."""
    turns = [Visit(TRIALS[0], 1, 2), Visit(TRIALS[1], 1, 2), Visit(TRIALS[0], 2, 2)]
    return [
        Scheduled((*turns, Visit(TRIALS[1], 2, 2))),
        Started(TRIALS[0], 1, 4, 1, 2),
        RoundStored(TRIALS[0], result()),
        Started(TRIALS[1], 2, 4, 1, 2),
        Failed(TRIALS[1], ModelError("it broke")),
        Started(TRIALS[0], 3, 4, 2, 2),
        Failed(TRIALS[0], ModelError("it broke later"), rounds_kept=1),
    ]


@pytest.mark.parametrize("terminal", [False, True])
def test_rounds_are_told(terminal: bool) -> None:
    """The display shows the round, whether more follow, and the kept rounds of a failed trial."""
    output = io.StringIO()
    console = Console(file=output, force_terminal=terminal, width=120, color_system=None)
    with Display(console) as display:
        for event in rounds_of_two():
            display(event)
    text = output.getvalue()
    assert "net training cpu batch 1, round 2 of 2" in text
    assert "4 samples (more follow)" in text
    assert "failed: it broke later (1 round kept)" in text


def test_an_added_round_shows_the_remaining_patience() -> None:
    """A round that is added for precision says so, with the time that may still be spent."""
    output = io.StringIO()
    with Display(Console(file=output, width=120, color_system=None)) as display:
        display(Scheduled((Visit(TRIALS[0], 3, 3, 1),), extra_seconds=840))
        display(Started(TRIALS[0], 1, 1, 3, 3))
    line = output.getvalue()
    assert "round 3 of 3" in line
    assert "added for precision; 14 min of --patience left)" in line
