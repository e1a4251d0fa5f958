"""Measurements on a machine change the predictions for that machine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from epochcost.analysis.inputs import Inputs, StoredResult
from epochcost.analysis.observations import Observation
from epochcost.analysis.predicted import predict_times
from epochcost.plan.trial import SessionSettings
from report_project import make_result

MACHINE = "g5.xlarge"


@pytest.fixture(scope="module")
def inputs(own_inputs: Inputs) -> Inputs:
    """The project's catalogue, without results."""
    return replace(own_inputs, stored=())


def predicted(inputs: Inputs, mode: str = "training") -> Observation:
    """The prediction for ResNet-50 on the machine, at the largest batch size."""
    predictions = predict_times(inputs, [inputs.catalogue.models["resnet50"]]).observations
    mine = [row for row in predictions if (row.machine.hardware, row.mode) == (MACHINE, mode)]
    return max(mine, key=lambda row: row.batch_size)


def with_trial(inputs: Inputs, precision: str = "fp32", **settings: Any) -> Inputs:
    """Add a trial of ViT-S/16 inference on the machine's GPU, at a tenth of an example a second."""
    result = make_result(
        model="vit-s16",
        mode="inference",
        hardware=MACHINE,
        batch_size=32,
        samples=(320.0,) * 4,
        precision=precision,
    )
    session = SessionSettings(**settings)
    trial = result.trial.model_copy(update={"provider": "cuda", "session": session})
    stored = StoredResult(result.model_copy(update={"trial": trial}), Path("one.json"), "one.json")
    return replace(inputs, stored=(stored,))


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_trials_of_other_models_move_predictions(inputs: Inputs, precision: str) -> None:
    """A slow trial of another model on the GPU makes ResNet-50's prediction slower."""
    plain, slowed = (
        predicted(source, "inference").step for source in (inputs, with_trial(inputs, precision))
    )
    assert plain is not None
    assert slowed is not None
    assert slowed.mean > 1.5 * float(plain.mean)


def test_trials_with_other_settings_move_no_prediction(inputs: Inputs) -> None:
    """A trial with limited memory changes no prediction; one with a CUDA graph does."""
    limited, recorded = (
        predicted(with_trial(inputs, **settings), "inference").step
        for settings in ({"device_memory_limit_bytes": 2**30}, {"cuda_graph": True})
    )
    assert limited == predicted(inputs, "inference").step != recorded
