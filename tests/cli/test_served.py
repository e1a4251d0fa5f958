"""The words for what LoadGen measured."""

from __future__ import annotations

from epochcost.cli.served import served_cells, served_words
from report_project import make_result
from served_results import served, under_load


def test_a_rate_is_told_with_its_latency_and_bound() -> None:
    """One line for a person who waits."""
    trial = under_load(make_result()).trial
    assert served_words(trial, served()) == (
        "500 samples/s keeps 0.99 of answers within 15 ms, latency 51 ms (p99 100 ms)"
    )
    assert served_cells(served()) == ("50.5 ms", "-", "500", "100", "p99 100 ms")


def test_a_bound_that_nothing_keeps_is_told() -> None:
    """With how often it was tried."""
    trial = under_load(make_result()).trial
    lost = served(kept=False)
    assert served_words(trial, lost) == (
        "no rate keeps 0.99 of answers within 15 ms, 1 run of LoadGen"
    )
    assert served_cells(lost)[-1] == "no rate keeps the bound"
