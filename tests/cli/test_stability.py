"""What a person reads at the end of a run about results that may not repeat."""

from __future__ import annotations

import pytest

from epochcost.cli.stability import show_doubts, show_outliers
from epochcost.results.records import Conditions, Result
from epochcost.results.rounds import with_round
from report_project import make_result

STEADY = (0.0100, 0.0101) * 20


def twice(result: Result) -> Result:
    """Measured in two rounds that are alike."""
    joined = with_round(with_round(None, result.measurement, 0.1), result.measurement, 0.1)
    return result.model_copy(update={"measurement": joined})


def disturbed(batch_size: int, others_cpus: float) -> Result:
    """A result of two CPUs of which others took some."""
    result = make_result(batch_size=batch_size, samples=STEADY)
    conditions = Conditions(seconds=1.0, others_cpus=others_cpus)
    measurement = result.measurement.model_copy(update={"conditions": conditions})
    return twice(result.model_copy(update={"measurement": measurement}))


def test_a_remedy_is_said_once_for_all_that_need_it(capsys: pytest.CaptureFixture[str]) -> None:
    """Each result with its own figure."""
    show_doubts([disturbed(32, 1.0), disturbed(64, 0.5), disturbed(128, 0.0)])
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.splitlines() == [
        "unstable:",
        "  net training cpu batch 32: other programs kept 1.0 of 2 CPUs busy",
        "  net training cpu batch 64: other programs kept 0.5 of 2 CPUs busy",
        "  remedy: end them, or measure when the machine is idle",
    ]


def test_contradictions_are_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    """All trials of a run share them."""
    contradicted = twice(make_result(samples=STEADY)).model_copy(
        update={"contradictions": ("8 logical CPUs, not 4",)}
    )
    show_doubts([contradicted, contradicted])
    assert capsys.readouterr().err == "measured as is: 8 logical CPUs, not 4\n"


def test_what_is_said_of_many_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    """A run in one round makes no list of all its trials."""
    for count, named in (
        (2, "net training cpu batch 32; net training cpu batch 32"),
        (3, "3 trials"),
    ):
        show_doubts([make_result(samples=STEADY)] * count)
        assert capsys.readouterr().err.splitlines()[:2] == ["unstable:", f"  {named}: one process"]


def test_a_calm_run_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """No news is good news."""
    show_doubts([disturbed(32, 0.1)])
    assert capsys.readouterr().err == ""


def test_outliers_that_weigh_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """A tenth more for two slow steps is said; one that adds half a percent is not."""
    heavy = make_result(samples=(*STEADY, 0.03, 0.05))
    light = make_result(batch_size=64, samples=(*STEADY, 0.012))
    show_outliers([heavy, light])
    assert capsys.readouterr().err == (
        "outliers: net training cpu batch 32: 2 of 42 samples add 12.4% to the mean, the longest "
        "5.0 medians; they stay in every figure\n"
    )
