"""The work that a study plans for a model."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from epochcost.plan.work import Load, planned_work
from epochcost.specs.model import Inference, Input, Model
from epochcost.specs.study import Scenario, Study

MODEL = Model(
    id="mlp",
    name="MLP",
    task="digits",
    example="image",
    graph="mlp.onnx",
    inputs=(Input(name="pixels"),),
    inference=Inference(batch_sizes=(1, 16), server_latency_ms=Decimal(15)),
    source="a paper",
)
EVERY: tuple[Scenario, ...] = ("batch", "offline", "server")


def study(**changes: Any) -> Study:
    """A study of one model under every scenario."""
    return Study.model_validate(
        {"id": "s", "name": "S", "models": ["mlp"], "scenarios": EVERY} | changes
    )


def by_scenario(asked: Study) -> dict[str, tuple[Load, int]]:
    """The loads of a study by scenario, each with the largest batch."""
    planned = planned_work(asked, MODEL, "inference")
    return {load.scenario: (load, most) for load, most in planned if isinstance(load, Load)}


def test_every_scenario_but_batch_is_a_load() -> None:
    """Offline and server are loads, with batches up to the model's largest."""
    found = by_scenario(study())
    assert {name: most for name, (_, most) in found.items()} == {"offline": 16, "server": 16}
    assert found["server"][0].server_latency_ms == 15


def test_the_study_overrules_the_model() -> None:
    """The study's bound and batching are used before the model's."""
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
