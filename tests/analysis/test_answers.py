"""Answers about a workload: which offer is chosen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from epochcost.analysis.answers import CheapestAnswer, Demand, cheapest_answer
from epochcost.analysis.inputs import Inputs
from epochcost.analysis.predicted import Times
from epochcost.analysis.times import times_of
from epochcost.cost.compare import Limits
from epochcost.errors import InputError
from report_project import inputs_of, make_result, write_project


@pytest.fixture(scope="module", name="cheapest")
def cheapest_fixture(own_inputs: Inputs) -> Callable[..., CheapestAnswer]:
    """Answers a demand for a small network of this project."""
    times = times_of(own_inputs, ["mnist-mlp"])

    def cheapest(**terms: Any) -> CheapestAnswer:
        return cheapest_answer(own_inputs.catalogue, times, Demand("mnist-mlp", **terms))

    return cheapest


def test_a_stack_that_has_no_time_has_no_offers(cheapest: Callable[..., CheapestAnswer]) -> None:
    """A software stack without a time of the workload has no offers."""
    with pytest.raises(InputError, match="expected a time of a million inferences in published"):
        cheapest(mode="inference", software="published")
    offers = cheapest(mode="inference", software="onnxruntime")
    first = cheapest(mode="training", software="published")
    chosen = (offers.choice, first.choice, *first.other_stacks)
    stacks = [candidate.key.row.observed.stack for candidate in chosen]
    assert stacks == ["onnxruntime", "published", "onnxruntime"]


def test_only_a_batch_beyond_the_source(tmp_path: Path) -> None:
    """A time at a larger batch than the source's is no answer, and the message says so."""
    inputs = inputs_of(write_project(tmp_path, [make_result(batch_size=256)]))
    catalogue = replace(inputs.catalogue, published={})
    times = times_of(replace(inputs, catalogue=catalogue), ["net"])
    with pytest.raises(InputError, match=r"only times at batch sizes above .*measure it with"):
        cheapest_answer(catalogue, times, Demand("net", "training"))


def test_other_software_keeps_to_the_limits(cheapest: Callable[..., CheapestAnswer]) -> None:
    """The offer of other software is its cheapest within the limits, or its fastest."""
    (usual,) = cheapest(mode="training", software="onnxruntime").other_stacks
    candidates = cheapest(mode="training", software="published").offers.candidates
    fastest = min(candidates, key=lambda candidate: candidate.seconds)
    assert fastest.seconds < usual.seconds
    for limits in Limits(usual.seconds - 1), Limits(None, 2 * usual.cost.mean):
        answer = cheapest(mode="training", software="onnxruntime", limits=limits)
        (other,) = answer.other_stacks
        assert limits.met_by(other)
        assert other.seconds < usual.seconds


def test_without_a_time_a_message_says_what_to_do(own_inputs: Inputs) -> None:
    """A decoder gets the commands that price its tokens, a model with a graph the runner.

    A published table gets its model, under which its times are listed.
    """
    remedies = {
        "llama-3.1-8b": "`epochcost tokens`",
        "mnist-mlp": "measure it with",
        "gpt-3": "published$",
        "woolf-2017-mnist-mlp": "choose --model mnist-mlp$",
        "ai21-2020": "published$",
    }
    for model, remedy in remedies.items():
        demand = Demand(model, "training")
        with pytest.raises(InputError, match=f"found none in the results and none in .*{remedy}"):
            cheapest_answer(own_inputs.catalogue, Times((), ()), demand)


def test_a_model_without_training_has_only_inferences(own_inputs: Inputs) -> None:
    """A measurement would not help a question about training a model that cannot be trained."""
    catalogue = own_inputs.catalogue
    untrained = catalogue.model("mnist-mlp").model_copy(update={"training": None})
    models = {**catalogue.models, "mnist-mlp": untrained}
    inference_only = replace(catalogue, models=models)
    for mode, remedy in {"epoch": "choose --mode inference$", "inference": "measure it"}.items():
        with pytest.raises(InputError, match=remedy):
            cheapest_answer(inference_only, Times((), ()), Demand("mnist-mlp", mode))


def test_a_demand_in_words() -> None:
    """Each kind of work has its article."""
    phrases = [Demand("net", mode).phrase for mode in ("training", "inference", "epoch")]
    assert phrases == ["a full training of net", "a million inferences of net", "an epoch of net"]


def test_texts_longer_than_the_model_reads(own_inputs: Inputs) -> None:
    """A text has at most the tokens that the model reads."""
    model = own_inputs.catalogue.models["minilm-l6"]
    assert Demand("minilm-l6", "inference", tokens=256).millions(model) == 2
    with pytest.raises(InputError, match=r"--tokens 257: minilm-l6 reads at most 256 tokens"):
        Demand("minilm-l6", "inference", tokens=257).millions(model)
