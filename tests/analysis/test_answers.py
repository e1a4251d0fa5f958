"""What is cheapest, what is fastest, and what else may be."""

from __future__ import annotations

from pathlib import Path

from epochcost.analysis.rows import Row, answer, on_frontier
from epochcost.report.pages.page import Report
from report_project import inputs_of, make_result, write_project


def rows_of(report: Report, subject: str) -> list[Row]:
    """The rows of a workload."""
    return [row for row in report.rows if row.observed.subject.id == subject]


def test_an_assumed_answer_comes_with_a_listed_one(report: Report) -> None:
    """The cheapest is at an assumed price, so the cheapest at a price list stands beside it."""
    found = answer(rows_of(report, "net"), "epoch")
    assert found is not None
    assert found.cheapest is not None
    assert found.cheapest.row.assumed
    assert found.listed is not None
    assert found.listed.row.price is not None
    assert found.listed.row.price.id == "box-2026"
    assert found.machines == 2


def test_superseded_prices_are_no_candidates(report: Report) -> None:
    """Nobody can buy at a price of 2016."""
    found = answer(rows_of(report, "paper"), "full")
    assert found is not None
    assert found.cheapest is not None
    assert found.cheapest.row.current
    assert found.listed is None


def test_a_batch_beyond_the_source_answers_nothing(tmp_path: Path) -> None:
    """Its epoch is the cheapest, but how many of them a training takes at it nobody has said."""
    large = make_result(batch_size=256, samples=(0.011, 0.012, 0.011, 0.012))
    report = Report(inputs_of(write_project(tmp_path, [make_result(), large])))
    rows = rows_of(report, "net")
    for goal in ("epoch", "full"):
        found = answer(rows, goal)
        assert found is not None
        assert found.cheapest is not None
        assert (found.cheapest.row.observed.batch_size, found.fastest.row.observed.batch_size) == (
            32,
            32,
        )
        assert all(row.observed.batch_size == 32 for row in on_frontier(rows, goal))
    (doubts,) = {row.observed.doubts for row in rows if row.observed.batch_size == 256}
    assert doubts[-1] == "more epochs may be needed: the source trains at batches of up to 128"


def test_nothing_timed_is_no_answer(report: Report) -> None:
    """A model without a figure has no answer to any goal."""
    assert answer(rows_of(report, "silent"), "epoch") is None


def test_rivals_are_those_whose_intervals_overlap(tmp_path: Path) -> None:
    """Two hosts with nearly the same step times cannot be told apart."""
    near = make_result(fingerprint="beef" * 4, samples=(0.0101, 0.0111, 0.0121, 0.0111))
    report = Report(inputs_of(write_project(tmp_path, [make_result(), near])))
    found = answer(rows_of(report, "net"), "epoch")
    assert found is not None
    assert [row.observed.machine.host for row in found.rivals] == ["beef" * 4]


def test_the_frontier_loses_to_nobody(report: Report) -> None:
    """No row beats one of the frontier in both time and cost."""
    rows = rows_of(report, "net")
    frontier = on_frontier(rows, "full")
    assert frontier
    for row in frontier:
        time, cost = row.time("full"), row.estimate("full")
        assert time is not None
        assert cost is not None
        for other in report.rows_of(row.observed.subject):
            theirs, price = other.time("full"), other.estimate("full")
            if other.current and theirs and price:
                assert not (theirs.mean < time.mean and price.mean < cost.mean)
