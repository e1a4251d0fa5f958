"""Messages at the end of a run: rates under load, and doubts."""

from __future__ import annotations

from pathlib import Path

import pytest

from epochcost.cli.outcomes import (
    render_served,
    show_doubts,
    show_outcomes,
)
from epochcost.execute.assignment import Skipped
from epochcost.plan.make import Plan
from epochcost.results.environment import Conditions
from epochcost.results.records import Result
from epochcost.results.rounds import add_round
from report_project import make_result
from served_results import behind_an_engine, served, under_load


def test_a_rate_is_told_with_its_latency_and_bound() -> None:
    """One line has the rate, the latency and the bound."""
    trial = under_load(make_result()).trial
    assert render_served(trial, served()) == (
        "500 samples/s keeps 0.99 of answers within 15 ms, latency p50 51 ms, p99 100 ms"
    )


def test_a_bound_that_nothing_keeps_is_told() -> None:
    """The line says how many runs of LoadGen failed the bound."""
    trial = under_load(make_result()).trial
    lost = served(kept=False)
    assert render_served(trial, lost) == (
        "no rate keeps 0.99 of answers within 15 ms, 1 run of LoadGen"
    )
    asked = behind_an_engine(make_result(), {})
    assert asked.measurement.served is not None
    assert render_served(asked.trial, asked.measurement.served) == (
        "no rate keeps 90 % of first tokens within 80 ms and further ones within 200 ms, "
        "1 run of LoadGen"
    )


def test_a_latency_is_not_called_a_step(capsys: pytest.CaptureFixture[str]) -> None:
    """Trials of LoadGen have a line above the table of steps."""
    results = (make_result(), under_load(make_result()))
    outcomes = [Skipped(result.trial, result) for result in results]
    show_outcomes(outcomes, Plan(()), Path("results"), "local", patient=False)
    line, header, row, *_ = capsys.readouterr().out.splitlines()
    assert " samples/s keeps 0.99 of answers within 15 ms, " in line
    assert header.startswith("trial")
    assert row.startswith("net training cpu batch 32")


STEADY = (0.0100, 0.0101) * 20


def twice(result: Result) -> Result:
    """A result of two equal rounds."""
    joined = add_round(add_round(None, result.measurement, 0.1), result.measurement, 0.1)
    return result.model_copy(update={"measurement": joined})


def disturbed(batch_size: int, others_cpus: float) -> Result:
    """A result of two rounds in which other programs used ``others_cpus`` of two CPUs."""
    result = make_result(batch_size=batch_size, samples=STEADY)
    conditions = Conditions(seconds=1.0, others_cpus=others_cpus)
    measurement = result.measurement.model_copy(update={"conditions": conditions})
    return twice(result.model_copy(update={"measurement": measurement}))


def test_a_remedy_is_said_once_for_all_that_need_it(capsys: pytest.CaptureFixture[str]) -> None:
    """Each disturbed result has a line; their remedy is printed once."""
    show_doubts([disturbed(32, 1.0), disturbed(64, 0.5), disturbed(128, 0.0)])
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.splitlines() == [
        "unstable:",
        "  net training cpu batch 32: other programs kept 1.0 of 2 CPUs busy",
        "  net training cpu batch 64: other programs kept 0.5 of 2 CPUs busy",
        "    remedy: end them, or measure when the machine is idle",
    ]
