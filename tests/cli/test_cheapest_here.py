"""`epochcost cheapest` with this project's specs and results."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path

import pytest

from called_program import exit_code
from cheapest_answers import flat, read_answer


def of_this_project(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *options: str
) -> str:
    """The output of `cheapest` with this project's specs and results, by default for ResNet-50."""
    monkeypatch.chdir(Path(__file__).parents[2])
    assert exit_code("cheapest", "--model", "resnet50", *options) == 0
    return capsys.readouterr().out


def test_machines_that_nobody_measured_are_priced_by_predictions(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """ResNet-50 within a day: the choice is predicted, with a list price and an interval."""
    printed = of_this_project(monkeypatch, capsys, "--deadline", "24h", "--format", "json")
    answer = read_answer(printed)
    assert {"predicted", "published"} <= {candidate["kind"] for candidate in answer["candidates"]}
    assert not any(candidate["assumed"] for candidate in answer["candidates"])
    assert any("its price is assumed" in reason for _, reason in answer["offers"]["unpriced"])
    without = {entry["id"]: entry["reason"] for entry in answer["without"]}
    assert without["c8g.48xlarge"] == "no published time of an Arm CPU"
    choice = answer["choice"]
    assert choice["kind"] == "predicted"
    assert Decimal(choice["low"]) < Decimal(choice["cost"]) < Decimal(choice["high"])
    assert {candidate["stack"] for candidate in answer["candidates"]} == {"published"}
    (elsewhere,) = map(flat, answer["other_stacks"])
    assert (elsewhere["stack"], elsewhere["precision"]) == ("onnxruntime", "mixed")


def test_documents_of_another_length(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ten million texts of 200 tokens cost as much as 15.6 million of 128 tokens."""
    answers = []
    for question in (("--mode", "inference"), ("--count", "10M", "--tokens", "200")):
        options = ("--model", "minilm-l6", *question, "--format", "json")
        answers.append(read_answer(of_this_project(monkeypatch, capsys, *options)))
    million, texts = (answer["choice"] for answer in answers)
    assert texts["hardware"] == million["hardware"]
    assert Decimal(texts["cost"]) == pytest.approx(Decimal(million["cost"]) * 2000 / 128)


def test_other_software_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The output adds other software, within the limits if possible."""
    for limits, words in ((), ": "), (("--deadline", "1h"), ", beyond the limits: "):
        printed = of_this_project(monkeypatch, capsys, *limits)
        assert re.search(rf"With ONNX Runtime 1\.\d+, mixed precision{words}\$", printed)
