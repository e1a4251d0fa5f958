"""Answers about a workload: which graphs are counted, and which offer is chosen."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from epochcost.analysis import arithmetic
from epochcost.analysis.answers import (
    CheapestAnswer,
    Demand,
    Times,
    cheapest_answer,
    name_of,
    times_of,
)
from epochcost.analysis.inputs import Inputs
from epochcost.analysis.rates import models_with_rates
from epochcost.analysis.rows import Offer
from epochcost.cost import Candidate
from epochcost.cost.compare import Limits
from epochcost.errors import InputError
from epochcost.graphs import profiling


@pytest.fixture(scope="module", name="inputs")
def inputs_fixture(own_inputs: Inputs, tmp_path_factory: pytest.TempPathFactory) -> Inputs:
    """The project's catalogue and results, and an empty cache."""
    return replace(own_inputs, cache=tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module", name="times")
def times_fixture(inputs: Inputs) -> Times:
    """Times of a small network, which are then cached, without earlier counts."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(arithmetic, "_memory", {})
        return times_of(inputs, ["mnist-mlp"])


@pytest.fixture(scope="module", autouse=True)
def without_counts_fixture() -> Iterator[None]:
    """Hide the stored counts of graphs, as in a user's project."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arithmetic, "_read_stored_counts", lambda _: {})
        yield


@pytest.fixture(name="counted")
def counted_fixture(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the file names of the graphs that are counted from now on."""
    counted: list[str] = []
    compute = profiling.computed_in_copies

    def record(calls: Sequence[Callable[[], bytes]]) -> tuple[bytes | None, ...]:
        counted.extend(call.args[0].path.name for call in calls)  # type: ignore[attr-defined]
        return compute(calls)

    monkeypatch.setattr(profiling, "computed_in_copies", record)
    monkeypatch.setattr(arithmetic, "_memory", {})
    return counted


def test_a_question_counts_no_graph_that_it_does_not_need(
    inputs: Inputs, counted: list[str]
) -> None:
    """Only the graphs of the model in question and of models with rates are counted."""
    times_of(replace(inputs, cache=None), ["gpt2-xl"])
    models = inputs.catalogue.models
    needed = {models[name].graph for name in (*models_with_rates(inputs), "gpt2-xl")}
    assert "gpt2_xl.onnx" in counted
    assert set(counted) <= {Path(str(graph)).name for graph in needed}
    assert "llama3_1_70b.onnx" not in counted


def test_a_second_question_counts_nothing(inputs: Inputs, times: Times, counted: list[str]) -> None:
    """All counts are in the cache, and the second answer equals the first in every draw."""
    again = times_of(inputs, ["mnist-mlp"])
    assert counted == []
    assert again == times
    for first, second in zip(again.observations, times.observations, strict=True):
        assert (first.draws is None) == (second.draws is None)
        if first.draws is not None and second.draws is not None:
            assert first.draws.values.tolist() == second.draws.values.tolist()


def _cheapest(inputs: Inputs, **terms: Any) -> CheapestAnswer:
    return cheapest_answer(inputs, Demand("mnist-mlp", **terms))


def test_a_stack_that_has_no_time_has_no_offers(inputs: Inputs) -> None:
    """A software stack without a time of the workload has no offers."""
    with pytest.raises(InputError, match="expected a time of a million inferences in published"):
        _cheapest(inputs, mode="inference", software="published")
    offers = _cheapest(inputs, mode="inference", software="onnxruntime")
    first = _cheapest(inputs, mode="training", software="published")
    chosen = (offers.choice, first.choice, *first.other_stacks)
    stacks = [candidate.key.row.observed.stack for candidate in chosen]
    assert stacks == ["onnxruntime", "published", "onnxruntime"]


def test_the_choice_keeps_to_the_limits(inputs: Inputs) -> None:
    """The choice is the cheapest within the limits; if there is none, the nearest is named."""
    candidates = _cheapest(inputs, mode="training").offers.candidates
    cheapest, fastest = candidates[0], min(candidates, key=lambda candidate: candidate.seconds)

    def decide(deadline: Decimal | None, budget: Decimal | None) -> Candidate[Offer]:
        return Limits(deadline, budget).choice(candidates, name_of, "a training")

    assert decide(None, None) is cheapest
    assert decide(fastest.seconds, None) is fastest
    assert decide(None, cheapest.cost.mean) in candidates
    nearest = re.escape(name_of(fastest))
    for limits in ((Decimal(0), None), (fastest.seconds, Decimal(0))):
        with pytest.raises(InputError, match=f"found none: nearest is {nearest}"):
            decide(*limits)
