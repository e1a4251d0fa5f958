"""A trial's identity."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from epochcost.plan.trial import Load, Phase, Trial, study_loads
from epochcost.specs.model import Inference
from epochcost.specs.requests import Lengths, Requests
from epochcost.specs.study import Scenario, Study
from served_results import ASKED


def trial(**changes: object) -> Trial:
    """A trial of nothing real."""
    fields: dict[str, object] = {
        "model": "net",
        "mode": "training",
        "provider": "cpu",
        "batch_size": 32,
        "threads": 0,
        "seed": 0,
        "runtime": "onnxruntime 1.31.1",
        "producer": "0.1.0",
        "graph_sha256": "a" * 64,
        "spec_sha256": "b" * 64,
        "relative_half_width": Decimal("0.02"),
        "minimum_samples": 30,
        "budget_seconds": Decimal(20),
    }
    return Trial.model_validate(fields | changes)


def test_the_id_survives_json() -> None:
    """A stored trial has the id that it had when it was planned."""
    again = Trial.model_validate_json(trial(precision="tf32", device=1).model_dump_json())
    assert again == trial(precision="tf32", device=1)
    assert again.id == trial(precision="tf32", device=1).id


def test_the_id_stays_what_it_was() -> None:
    """Results are found by ids of earlier versions, so what makes an id does not change by chance.

    Whoever adds a field on purpose leaves it out of the id where it says what was always so, or
    writes an upgrade in ``results.format`` that computes the new ids of stored trials.
    """
    assert trial().id == "4fd90bfdb5a08dcb"


def test_another_runtime_is_a_variant_and_the_installed_one_is_not() -> None:
    """The words name the runtime that a study asked for beside the installed one."""
    assert trial(runtime="onnxruntime==1.20.1").variant == ""
    other = trial(runtime="onnxruntime==1.20.1", other_runtime=True)
    assert other.variant == "onnxruntime 1.20.1"
    assert other.title.endswith(", onnxruntime 1.20.1")


def test_equal_numbers_give_equal_ids() -> None:
    """How a study writes a number says nothing about the work."""
    written = {"relative_half_width": Decimal("0.020"), "budget_seconds": Decimal("2e1")}
    assert trial(**written).id == trial().id


def test_a_changed_copy_has_an_id_of_its_own() -> None:
    """The id is read from the fields and not remembered."""
    original = trial()
    assert original.model_copy(update={"seed": original.seed + 1}).id != original.id


def test_every_field_is_part_of_the_id() -> None:
    """Changing any field names other work."""
    changes: dict[str, object] = {
        "model": "other",
        "mode": "inference",
        "provider": "cuda",
        "batch_size": 64,
        "threads": 1,
        "seed": 1,
        "runtime": "onnxruntime 1.32.0",
        "producer": "0.2.0",
        "graph_sha256": "c" * 64,
        "spec_sha256": "c" * 64,
        "relative_half_width": Decimal("0.05"),
        "minimum_samples": 10,
        "budget_seconds": Decimal(3),
        "load": Load(scenario="offline"),
        "precision": "tf32",
        "vcpus": 1,
        "quantization": "static",
        "graph_optimization": "basic",
        "spinning": False,
        "denormals_as_zero": True,
        "input_copy": "excluded",
        "cuda_graph": True,
        "device": 1,
        "device_memory_limit_bytes": 2**30,
        "other_runtime": True,
        "stored_weights": True,
        "phase": Phase(name="decode", tokens=8),
        "requests": Requests(
            prompt=Lengths(tokens=(8,)), answer=Lengths(tokens=(4,)), first_token_ms=9, token_ms=3
        ),
    }
    former = {"graph_optimization", "spinning", "denormals_as_zero", "input_copy"}
    assert set(changes) - former == set(json.loads(trial().model_dump_json()))
    ids = {trial(**{name: value}).id for name, value in changes.items()} | {trial().id}
    assert len(ids) == len(changes) + 1


INFERENCE = Inference(batch_sizes=(1, 16), server_latency_ms=Decimal(15))


EVERY: tuple[Scenario, ...] = ("batch", "offline", "server")


def study(**changes: Any) -> Study:
    """A study of one model under every scenario."""
    return Study.model_validate(
        {"id": "s", "name": "S", "models": ["mlp"], "scenarios": EVERY} | changes
    )


def by_scenario(asked: Study) -> dict[str, tuple[Load, int]]:
    """The loads of a study, with the largest batch of each."""
    found = study_loads(asked, INFERENCE)
    return {load.scenario: (load, most) for load, most in found}


def test_every_scenario_but_batch_is_a_load() -> None:
    """Both batch up to the model's largest batch."""
    found = by_scenario(study())
    assert {name: most for name, (_, most) in found.items()} == {"offline": 16, "server": 16}
    assert found["server"][0].server_latency_ms == 15


def test_the_study_overrules_the_model() -> None:
    """The bound and the policy of batching are the study's to say."""
    serving = {
        "server_latency_ms": Decimal(5),
        "latency_percentile": Decimal("0.9"),
        "maximum_batch": 2,
        "maximum_delay_ms": Decimal(1),
    }
    found = by_scenario(study(serving=serving))
    server, most = found["server"]
    assert (server.server_latency_ms, server.latency_percentile) == (5, Decimal("0.9"))
    assert (server.maximum_delay_ms, most) == (1, 2)
    assert found["offline"][1] == 2


def test_a_servers_bound_is_nothing_to_offline() -> None:
    """Changing it leaves stored results of offline valid."""
    loose = by_scenario(study(serving={"server_latency_ms": Decimal(99)}))
    assert loose["offline"] == by_scenario(study())["offline"]
    assert loose["server"] != by_scenario(study())["server"]


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
    assert loaded.expected_seconds == 20
    assert Trial.model_validate_json(loaded.model_dump_json()).id == loaded.id


def test_requests_last_as_long_as_their_bound_asks() -> None:
    """Six tries, three runs that count and a share: 220 bounds of first tokens, or the budget."""
    asked = ASKED.model_copy(update={"first_token_ms": 2000})
    assert trial(requests=asked).expected_seconds == 440
    quick = asked.model_copy(update={"first_token_ms": 1})
    assert trial(requests=quick).expected_seconds == trial().budget_seconds
