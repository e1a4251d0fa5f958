"""The identity of a trial."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from pydantic import ValidationError

from epochcost.plan.trial import Trial
from epochcost.plan.work import Load, Phase, Requests
from epochcost.specs.requests import Lengths
from served_results import ASKED


def trial(**changes: object) -> Trial:
    """A made-up trial."""
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


def test_the_id_stays_what_it_was() -> None:
    """The id of a trial is that of earlier versions, by which stored results are found.

    A new field must be left out of the id if it has the value of all earlier trials, or else
    ``results.records`` must compute new ids of stored trials.
    """
    assert trial().id == "4fd90bfdb5a08dcb"


def test_every_field_is_part_of_the_id() -> None:
    """A change of any field gives another id."""
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
        "precision": "tf32",
        "vcpus": 1,
        "cuda_graph": True,
        "device": 1,
        "device_memory_limit_bytes": 2**30,
        "stored_weights": True,
    }
    requests = Requests(
        prompt=Lengths(tokens=(8,)), answer=Lengths(tokens=(4,)), first_token_ms=9, token_ms=3
    )
    kinds = (Load(scenario="offline"), Phase(name="decode", tokens=8), requests)
    stored = set(json.loads(trial().model_dump_json()))
    assert set(changes) == stored - {"load", "phase", "requests"}
    ids = {trial(**{name: value}).id for name, value in changes.items()} | {trial().id}
    assert len(ids | {trial(work=kind).id for kind in kinds}) == len(changes) + 1 + len(kinds)


def test_a_trial_under_load_is_stored_flat() -> None:
    """A trial's load is stored as a key beside the other keys."""
    assert trial().work.scenario == "batch"
    loaded = trial(mode="inference", batch_size=8, work=Load(scenario="offline"))
    assert loaded.title == "net offline cpu batch 8"
    assert loaded.expected_seconds == 20
    stored = json.loads(loaded.model_dump_json())
    assert (stored["load"]["scenario"], stored["phase"], stored["requests"]) == (
        "offline",
        None,
        None,
    )
    assert Trial.model_validate_json(loaded.model_dump_json()).id == loaded.id


def test_a_stored_load_names_no_kind() -> None:
    """A stored load with a key for its kind is refused, since its own key tells the kind."""
    stored = json.loads(trial(mode="inference", work=Load(scenario="offline")).model_dump_json())
    stored["load"]["kind"] = "steps"
    with pytest.raises(ValidationError, match="load should have no key 'kind'"):
        Trial.model_validate(stored)


def test_requests_come_back_with_the_load_that_they_make() -> None:
    """Requests are stored with the load that follows from them, and read back."""
    asked = trial(mode="inference", work=ASKED)
    stored = json.loads(asked.model_dump_json())
    assert stored["load"]["server_latency_ms"] == str(ASKED.first_token_ms)
    again = Trial.model_validate_json(asked.model_dump_json())
    assert (again.work, again.id) == (ASKED, asked.id)
