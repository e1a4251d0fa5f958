"""Messages at the end of a run: agreement with fp32, rates under load, doubts."""

from __future__ import annotations

import pytest

from epochcost.cli.outcomes import (
    served_cells,
    served_words,
    show_agreements,
    show_doubts,
    show_outliers,
)
from epochcost.results.environment import Conditions
from epochcost.results.records import Agreement, OutputDifference, Result
from epochcost.results.rounds import add_round
from report_project import make_result
from served_results import served, under_load

LOGITS = OutputDifference(
    output="logits", maximum_absolute=0.25, relative_to_norm=0.0171, largest_changed=0.125
)
SCORE = OutputDifference(output="score", maximum_absolute=0.5, relative_to_norm=None)


def compared(*outputs: OutputDifference) -> Result:
    """A result with an agreement of eight examples."""
    agreement = Agreement(examples=8, outputs=outputs)
    result = make_result(batch_size=8, samples=(0.01, 0.0101) * 20)
    measurement = result.measurement.model_copy(update={"agreement": agreement})
    return result.model_copy(update={"measurement": measurement})


def test_every_output_has_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    """Its difference by norm and by element, and changed largest scores, if it has any."""
    show_agreements([compared(LOGITS, SCORE)])
    *_, logits, score = capsys.readouterr().out.splitlines()
    assert logits.split()[-4:] == ["logits", "1.71%", "0.25", "12.5%"]
    assert score.split()[-4:] == ["score", "-", "0.5", "-"]


def test_a_rate_is_told_with_its_latency_and_bound() -> None:
    """One line has all three."""
    trial = under_load(make_result()).trial
    assert served_words(trial, served()) == (
        "500 samples/s keeps 0.99 of answers within 15 ms, latency 51 ms (p99 100 ms)"
    )
    assert served_cells(served()) == ("50.5 ms", "-", "500", "100", "p99 100 ms")


def test_a_bound_that_nothing_keeps_is_told() -> None:
    """With the number of tries."""
    trial = under_load(make_result()).trial
    lost = served(kept=False)
    assert served_words(trial, lost) == (
        "no rate keeps 0.99 of answers within 15 ms, 1 run of LoadGen"
    )
    assert served_cells(lost)[-1] == "no rate meets the bound"


STEADY = (0.0100, 0.0101) * 20


def twice(result: Result) -> Result:
    """A result of two equal rounds."""
    joined = add_round(add_round(None, result.measurement, 0.1), result.measurement, 0.1)
    return result.model_copy(update={"measurement": joined})


def disturbed(batch_size: int, others_cpus: float) -> Result:
    """A result of two CPUs with steal time."""
    result = make_result(batch_size=batch_size, samples=STEADY)
    conditions = Conditions(seconds=1.0, others_cpus=others_cpus)
    measurement = result.measurement.model_copy(update={"conditions": conditions})
    return twice(result.model_copy(update={"measurement": measurement}))


def test_a_remedy_is_said_once_for_all_that_need_it(capsys: pytest.CaptureFixture[str]) -> None:
    """Each result is listed with its figure."""
    show_doubts([disturbed(32, 1.0), disturbed(64, 0.5), disturbed(128, 0.0)])
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.splitlines() == [
        "unstable:",
        "  net training cpu batch 32: other programs kept 1.0 of 2 CPUs busy",
        "  net training cpu batch 64: other programs kept 0.5 of 2 CPUs busy",
        "    remedy: end them, or measure when the machine is idle",
    ]


def test_outliers_that_weigh_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """Two slow steps that add a tenth are listed; half a percent is not."""
    heavy = make_result(samples=(*STEADY, 0.03, 0.05))
    light = make_result(batch_size=64, samples=(*STEADY, 0.012))
    show_outliers([heavy, light])
    assert capsys.readouterr().err == (
        "outliers: net training cpu batch 32: 2 of 42 samples add 12.4% to the mean, the longest "
        "5.0 medians; they stay in the mean\n"
    )
