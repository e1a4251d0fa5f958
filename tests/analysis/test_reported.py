"""Costs of tokens in imported runs, compared with a published cost and hand-computed sums."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from epochcost.analysis.inputs import Inputs, read_inputs
from epochcost.analysis.reported import ReportedRow, reported_rows
from epochcost.analysis.token_answers import TokenMarket
from epochcost.analysis.tokens import Requests
from epochcost.cost.estimate import Cost, Estimate, Unpriced
from epochcost.results.reported import Terms, reported_runs
from epochcost.results.store import write_sidecar
from epochcost.units import money
from tool_exports import AGGREGATE, VLLM, rack_project, write_export


def reported(root: Path, document: object, **terms: Any) -> Inputs:
    """The inputs of a project into which a tool's export was imported."""
    catalogue = rack_project(root)
    results = root / "docs/data/results"
    hardware, export = terms.pop("hardware", "rack"), write_export(root, document)
    for record in reported_runs(catalogue, export, "tiny", hardware, Terms(**terms)):
        write_sidecar(results, record)
    return read_inputs(catalogue, [results], root / "docs")


def only_row(root: Path, document: object, **terms: Any) -> ReportedRow:
    """The only reported row of an export."""
    (row,) = reported_rows(reported(root, document, **terms), "tiny")
    return row


def amount(cost: Cost) -> Decimal:
    """The amount of a cost that is known exactly."""
    assert isinstance(cost, Estimate)
    assert cost.low == cost.mean == cost.high
    return cost.mean


def test_the_published_run_is_reproduced_to_the_digit(tmp_path: Path) -> None:
    """InferenceX's gpt-oss-120b, 16 GPUs at $2.31 an hour: $1.7194 a million, $3.4388 of output."""
    row = only_row(tmp_path, VLLM, gpus=16, gpu_hour=Decimal("2.31"))
    assert (amount(row.hour), row.plan) == (Decimal("36.96"), "$2.31 a GPU-hour")
    assert money(amount(row.per_million), places=4) == "$1.7194"
    assert money(amount(row.per_million_written), places=4) == "$3.4388"
    assert money(amount(row.per_million_read), places=4) == "$3.4388"
    seconds = Decimal("109.75491525093094")
    by_hand = Decimal("2.31") * 16 * seconds / 3600 / 655_360 * 1_000_000
    assert abs(amount(row.per_million) - by_hand) < Decimal("1e-20")
    other_model = "the file is of the model openai/gpt-oss-120b"
    assert (row.place, row.doubts) == ("2 of A rack, 16 GPUs", (other_model,))
    assert row.evidence.label == "reported by you"


def test_whole_machines_are_paid_at_a_plan(tmp_path: Path) -> None:
    """Two racks of 8 GPUs at $16 an hour are paid, though only 9 GPUs served; a doubt says so."""
    row = only_row(tmp_path, VLLM, gpus=9)
    assert (amount(row.hour), row.plan) == (32, "Cloud, on-demand")
    assert row.doubts[1:] == ("9 of 16 GPUs served, but the price covers all",)


def test_rates_a_gpu_become_those_of_all(tmp_path: Path) -> None:
    """Rates per GPU are multiplied by 8 GPUs of $2 an hour: 1,256 tokens a second in all."""
    row = only_row(tmp_path, AGGREGATE, price="rack-11-01")
    assert float(amount(row.per_million)) == pytest.approx(16e6 / 3600 / 1256)
    assert float(amount(row.per_million_written)) == pytest.approx(16e6 / 3600 / 140)
    assert float(amount(row.per_million_read)) == pytest.approx(16e6 / 3600 / 1116)


def test_without_a_price_or_tokens_there_is_no_cost(tmp_path: Path) -> None:
    """The cost is unknown without a price, and the cost of tokens read without tokens read."""
    row = only_row(tmp_path, VLLM | {"total_input_tokens": 0}, hardware="giant")
    assert isinstance(row.per_million, Unpriced)
    (tmp_path / "priced").mkdir()
    priced = only_row(tmp_path / "priced", VLLM | {"total_input_tokens": 0})
    assert isinstance(priced.per_million_read, Unpriced)
    assert amount(priced.per_million) == amount(priced.per_million_written)


def test_the_answer_on_tokens_lists_reported_runs(tmp_path: Path) -> None:
    """Reported runs are listed with timed machines, the cheapest first."""
    runs = [VLLM, VLLM | {"max_concurrency": 64, "total_input_tokens": 655_360}]
    answer = TokenMarket(reported(tmp_path, runs)).answer("tiny", Requests(Decimal(1), 100, 50))
    assert [row.run.at_once for row in answer.reported] == [64, 32]
    assert answer.offers


def test_a_record_of_a_missing_price_is_a_problem(tmp_path: Path) -> None:
    """A record whose price has no spec is left out, and a message names the file."""
    inputs = reported(tmp_path, VLLM, price="rack-11-01")
    (path,) = inputs.reported
    path.write_text(path.read_text().replace('"rack-11-01"', '"gone"'))
    again = read_inputs(inputs.catalogue, inputs.folders, tmp_path / "docs")
    (problem,) = again.problems
    assert problem == f"{path}: price: expected a price of rack, got 'gone' (left out of the site)"
    assert not again.reported
