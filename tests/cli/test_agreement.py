"""What a person reads at the end of a run in another precision."""

from __future__ import annotations

import pytest

from epochcost.cli.agreement import show_agreements
from epochcost.results.records import Agreement, OutputDifference, Result
from report_project import make_result

LOGITS = OutputDifference(
    output="logits", maximum_absolute=0.25, relative_to_norm=0.0171, largest_changed=0.125
)
SCORE = OutputDifference(output="score", maximum_absolute=0.5, relative_to_norm=None)


def compared(*outputs: OutputDifference) -> Result:
    """A result with an agreement of eight examples."""
    agreement = Agreement(examples=8, outputs=outputs, quantization="dynamic")
    result = make_result(batch_size=8, samples=(0.01, 0.0101) * 20)
    measurement = result.measurement.model_copy(update={"agreement": agreement})
    return result.model_copy(update={"measurement": measurement})


def test_every_output_has_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    """Its difference by norm and by element, and the rows whose largest changed, if it has any."""
    show_agreements([compared(LOGITS, SCORE)])
    *_, logits, score = capsys.readouterr().out.splitlines()
    assert logits.split()[-4:] == ["logits", "1.71%", "0.25", "12.5%"]
    assert score.split()[-4:] == ["score", "-", "0.5", "-"]
    assert "dynamic" in logits


def test_a_run_in_fp32_has_no_such_table(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is said where nothing was compared."""
    show_agreements([make_result(batch_size=8, samples=(0.01, 0.0101) * 20)])
    assert capsys.readouterr().out == ""


def test_words_name_the_worst_output() -> None:
    """On the page one line stands for all outputs."""
    agreement = compared(LOGITS, SCORE).measurement.agreement
    assert agreement is not None
    assert agreement.words == (
        "logits 1.7 % off fp32 on 8 examples, another largest in 12.5 % of rows, "
        "dynamic quantisation"
    )
