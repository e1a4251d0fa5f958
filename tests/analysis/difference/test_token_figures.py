"""Costs of tokens in the difference between two revisions."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from epochcost.analysis.difference.changes import compare_revisions
from epochcost.analysis.difference.rendering import cells, render_prediction
from epochcost.analysis.difference.revision import Revision
from epochcost.analysis.inputs import Inputs
from epochcost.specs.catalogue import Catalogue

CARD = "workstation-1x-a6000"


@pytest.fixture(name="inputs", scope="module")
def inputs_fixture(own_inputs: Inputs) -> Inputs:
    """The project with a single decoder, and results of other machines."""
    models = {"llama-3.2-1b": own_inputs.catalogue.model("llama-3.2-1b")}
    return replace(own_inputs, catalogue=replace(own_inputs.catalogue, models=models))


class WithoutRows(Revision):
    """A revision without other figures than those of tokens."""

    rows, estimated, lines = (), {}, ()  # type: ignore[assignment]


def revision(label: str, inputs: Inputs, catalogue: Catalogue) -> Revision:
    """A revision with other specs."""
    return WithoutRows(replace(inputs, catalogue=catalogue), label=label)


def test_a_price_changes_the_costs_of_tokens_there(inputs: Inputs) -> None:
    """The purchase of a machine doubles: the tokens of every software there cost more."""
    before = inputs.catalogue
    price = before.price(f"assumed-{CARD}")
    assert price.owned is not None
    owned = price.owned.model_copy(update={"purchase": Decimal(16_000)})
    dear = {**before.prices, price.id: price.model_copy(update={"owned": owned})}
    difference = compare_revisions(
        revision("a", inputs, before), revision("b", inputs, replace(before, prices=dear))
    )
    assert {cost.figure.job.hardware for cost in difference.costs} == {CARD}
    assert all((cost.relative or 0) > 0.5 for cost in difference.costs)
    job, machine, plan, cost_before, cost_after, change, why = cells(difference.costs[0])
    assert job.startswith("llama-3.2-1b, a million tokens, 1 request/s of 1,000 tokens read and ")
    assert (machine, plan) == (f"{CARD}, cuda", f"assumed-{CARD} (assumed)")
    # One machine at any predicted time: the cost has no range.
    assert " (" not in cost_before + cost_after
    assert change.startswith("+$")
    assert why == "price: owned.purchase 8000 → 16000"
    assert not difference.prices


def test_a_new_machine_adds_predictions_of_tokens(inputs: Inputs) -> None:
    """A revision without the machine has no cost there to compare with."""
    after = inputs.catalogue
    hardware = {name: spec for name, spec in after.hardware.items() if name != CARD}
    prices = {name: price for name, price in after.prices.items() if price.hardware != CARD}
    before = replace(after, hardware=hardware, prices=prices)
    difference = compare_revisions(revision("a", inputs, before), revision("b", inputs, after))
    assert not difference.costs
    (sentence,) = render_prediction(difference)
    assert "added: " in sentence
    assert sentence.endswith(("for llama-3.2-1b", f"for {CARD}"))


def test_a_predicted_time_with_the_same_bill_is_no_change(inputs: Inputs) -> None:
    """The bandwidth of a machine changes; its tokens still cost a whole machine's price."""
    before = inputs.catalogue
    spec = before.hardware[CARD]
    (card,) = spec.accelerators
    slower = card.model_copy(update={"memory_gb_per_second": Decimal(700)})
    machines = {**before.hardware, CARD: spec.model_copy(update={"accelerators": (slower,)})}
    difference = compare_revisions(
        revision("a", inputs, before), revision("b", inputs, replace(before, hardware=machines))
    )
    assert not difference.costs
