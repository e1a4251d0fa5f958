"""Scenarios of a study become trials with a load, each with what defines it and nothing else."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from epochcost.plan.trial import Load, Trial, study_loads
from epochcost.specs.model import Inference
from epochcost.specs.study import Scenario, Study

INFERENCE = Inference(batch_sizes=(1, 16), server_latency_ms=Decimal(15))
EVERY: tuple[Scenario, ...] = ("batch", "single-stream", "multi-stream", "offline", "server")


def study(**changes: Any) -> Study:
    """A study of one model under every scenario."""
    return Study.model_validate(
        {"id": "s", "name": "S", "models": ["mlp"], "scenarios": EVERY} | changes
    )


def by_scenario(asked: Study, *, compliant: bool = False) -> dict[str, tuple[Load, int]]:
    """The loads of a study, with the largest batch of each."""
    found = study_loads(asked, INFERENCE, compliant=compliant)
    return {load.scenario: (load, most) for load, most in found}


def test_every_scenario_but_batch_is_a_load() -> None:
    """Streams are batched by their queries, the others by the model's largest batch."""
    found = by_scenario(study())
    assert {name: most for name, (_, most) in found.items()} == {
        "single-stream": 1,
        "multi-stream": 8,
        "offline": 16,
        "server": 16,
    }
    assert found["multi-stream"][0].samples_per_query == 8
    assert found["server"][0].server_latency_ms == 15


def test_the_study_overrules_the_model() -> None:
    """The bound, the samples of a query and the policy of batching are the study's to say."""
    serving = {
        "server_latency_ms": Decimal(5),
        "latency_percentile": Decimal("0.9"),
        "samples_per_query": 4,
        "maximum_batch": 2,
        "maximum_delay_ms": Decimal(1),
    }
    found = by_scenario(study(serving=serving))
    server, most = found["server"]
    assert (server.server_latency_ms, server.latency_percentile) == (5, Decimal("0.9"))
    assert (server.maximum_delay_ms, most) == (1, 2)
    assert found["multi-stream"][1] == 2


@pytest.mark.parametrize("scenario", ["single-stream", "multi-stream", "offline"])
def test_a_servers_bound_is_nothing_to_the_others(scenario: str) -> None:
    """Changing it leaves their stored results valid."""
    loose = by_scenario(study(serving={"server_latency_ms": Decimal(99)}))
    assert loose[scenario] == by_scenario(study())[scenario]
    assert loose["server"] != by_scenario(study())["server"]


def test_the_whole_length_is_other_work() -> None:
    """Ten minutes and a few seconds are never taken for one another."""
    short, whole = by_scenario(study())["offline"][0], by_scenario(study(), compliant=True)
    assert whole["offline"][0] != short
    assert whole["offline"][0].title == "offline (compliant)"


def test_a_plain_trial_has_the_scenario_batch() -> None:
    """A trial without a load takes full batches one after the other."""
    fields: dict[str, Any] = {
        "model": "net",
        "mode": "inference",
        "provider": "cpu",
        "batch_size": 8,
        "threads": 0,
        "seed": 0,
        "runtime": "onnxruntime==1.31.1",
        "producer": "0.1.0",
        "graph_sha256": "a" * 64,
        "spec_sha256": "b" * 64,
        "relative_half_width": Decimal("0.02"),
        "minimum_samples": 30,
        "budget_seconds": Decimal(20),
    }
    assert Trial(**fields).scenario == "batch"
    loaded = Trial(**fields, load=Load(scenario="offline"))
    assert loaded.scenario == "offline"
    assert loaded.title == "net offline cpu batch 8"
    whole = Trial(**fields, load=Load(scenario="offline", compliant=True))
    assert (loaded.expected_seconds, whole.expected_seconds) == (20, 600)
    assert Trial.model_validate_json(loaded.model_dump_json()).id == loaded.id
