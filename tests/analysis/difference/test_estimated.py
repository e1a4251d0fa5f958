"""Differences of two revisions in estimated costs, for every amount of the table of figures."""

from __future__ import annotations

from pathlib import Path

import pytest

from epochcost.analysis.difference.rendering import cells, render_winner, shown_costs
from report_project import make_result, store_results
from revisions import PAPER, STEPS, Compare, commit, dataset_amounts, edit, write_spec

NODE = """
    id = "{name}"
    name = "A node"
    provider = "Cloud"
    vcpus = 8
    source = "a test"
    [[accelerators]]
    name = "GPU"
    count = 10
    memory_gib = 80
    peak_fp16_tflops = 100
"""
HOURLY = """
    id = "{name}"
    hardware = "{name}"
    plan = "on-demand"
    provider = "Cloud"
    amount = {amount}
    billing = "prorated"
    source = "a test"
    as_of = 2026-07-01
"""
LARGE = """
    id = "large"
    name = "Large"
    task = "language"
    example = "a token"
    source = "a test"
    declared = { parameters = 1_000_000_000, training_tokens = 1_000_000_000 }
"""


@pytest.fixture
def estimating(project: Path) -> Path:
    """The project with a model that cannot be timed, and two machines on which it is estimated."""
    write_spec(project, "models/large", LARGE)
    for name, amount in (("node", "3.60"), ("mode", "7.20")):
        write_spec(project, f"hardware/{name}", NODE.format(name=name))
        write_spec(project, f"prices/{name}", HOURLY.format(name=name, amount=amount))
    commit(project)
    return project


def test_an_estimate_follows_its_price(estimating: Path, compare: Compare) -> None:
    """The range of an estimate changes with the price, and the new cheapest machine is named."""
    edit(estimating, "prices/mode", "7.20", "1.80")
    changes = compare()
    (change,) = shown_costs(changes.costs)
    assert cells(change) == (
        "large, full training, estimated",
        "mode, cuda",
        "mode",
        "$34.29 ($24.00 to $60.00)",
        "$8.57 ($6.00 to $15.00)",
        "-$25.71 (-75.0 %)",
        "price: amount 7.2 → 1.8",
    )
    (winner,) = changes.winners
    assert render_winner(winner) == (
        "large, full training: was node, node, $17.14 ($12.00 to $30.00), estimated; "
        "is mode, mode, $8.57 ($6.00 to $15.00), estimated"
    )
    edit(estimating, "prices/mode", "1.80", "720")
    (dearer,) = shown_costs(compare().costs)
    assert cells(dearer)[4:6] == ("$3,430 ($2,400 to $6,000)", "+$3,390 (+9900.0 %)")


def test_every_amount_of_the_dataset_is_compared(estimating: Path, compare: Compare) -> None:
    """Every amount of the table of figures that new prices change is among the changes."""
    write_spec(estimating, "published/paper", PAPER)
    store_results(estimating, [make_result(mode="inference", batch_size=1, samples=STEPS)])
    commit(estimating)
    before = dataset_amounts(estimating)
    for name, old in (("local-2025", "0.90"), ("node", "3.60"), ("mode", "7.20")):
        edit(estimating, f"prices/{name}", old, "5.55")
    otherwise = dataset_amounts(estimating) - before
    assert len(otherwise) == 5
    assert otherwise <= {cost.after.cost for cost in compare().costs if cost.after}
