"""What was measured on a machine enters the predictions for it."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from pathlib import Path

import pytest

from epochcost.analysis.inputs import Inputs, StoredCeilings, StoredResult, read_inputs
from epochcost.analysis.observations import Observation
from epochcost.analysis.predicted import predict_times
from epochcost.execute.anchors import WORKS
from epochcost.graphs.profiling import profile_of_bound
from epochcost.results.ceilings import Anchor
from epochcost.specs.loader import load_catalogue
from kept_ceilings import make_ceilings
from report_project import make_result

ROOT = Path(__file__).parents[2]
MACHINE = "g5.xlarge"


@pytest.fixture(scope="module")
def inputs() -> Inputs:
    """The project's catalogue, without any result."""
    return read_inputs(load_catalogue(ROOT), [], ROOT / "docs")


def with_anchors(inputs: Inputs, seconds: float, **fields: object) -> Inputs:
    """The works that runs time, each at so many seconds an example and 10 TFLOP, on ``MACHINE``."""
    anchors = []
    for work in WORKS:
        profile = profile_of_bound(work.graph(1))
        passes = 3 if work.mode == "training" else 1
        took = 64 * passes * seconds * profile.flops / 1e13
        anchors.append(
            Anchor(
                work=work.name,
                mode=work.mode,
                batch_size=64,
                profile=profile,
                step_seconds=(took,) * 3,
            )
        )
    kept = make_ceilings(
        make_result().environment,
        **{
            "hardware": MACHINE,
            "provider": "cuda",
            "ceilings": (),
            "anchors": tuple(anchors),
            "measured_at": dt.datetime(2026, 11, 21, tzinfo=dt.UTC),
        }
        | fields,
    )
    return replace(inputs, ceilings=(StoredCeilings(kept, Path("cuda.json"), "cuda.json"),))


def predicted(inputs: Inputs, mode: str = "training") -> Observation:
    """ResNet-50's on the machine, at its largest batch."""
    found = predict_times(inputs, [inputs.catalogue.models["resnet50"]]).observations
    own = [one for one in found if (one.machine.hardware, one.mode) == (MACHINE, mode)]
    return max(own, key=lambda one: one.batch_size)


@pytest.mark.parametrize("mode", ["training", "inference"])
def test_anchors_of_a_machine_sharpen_its_predictions(inputs: Inputs, mode: str) -> None:
    """Anchors twice as slow make times longer; with them the interval is narrower than without."""
    plain = predicted(inputs, mode).step
    fast, slow = (predicted(with_anchors(inputs, one), mode).step for one in (4, 8))
    assert plain is not None
    assert fast is not None
    assert slow is not None
    assert 1.4 < float(slow.mean / fast.mean) < 2.1
    assert slow.high / slow.low < plain.high / plain.low


def test_anchors_of_another_provider_or_measured_as_is_say_nothing(inputs: Inputs) -> None:
    """Those of the CPU of a GPU machine, and those of a machine that is another."""
    plain = predicted(inputs)
    for fields in ({"contradictions": ("1 GPUs, not 2",)}, {"hardware": "epyc-vm-2"}):
        assert predicted(with_anchors(inputs, 8, **fields)).step == plain.step


def with_trial(inputs: Inputs, provider: str, **fields: object) -> Inputs:
    """ViT-S/16 in inference on the machine, at a tenth of an example a second."""
    result = make_result(
        model="vit-s16",
        mode="inference",
        hardware=MACHINE,
        batch_size=32,
        samples=(320.0,) * 4,
        **fields,
    )
    trial = result.trial.model_copy(update={"provider": provider})
    stored = StoredResult(result.model_copy(update={"trial": trial}), Path("one.json"), "one.json")
    return replace(inputs, stored=(stored,))


def test_plain_trials_of_other_models_count_as_anchors_do(inputs: Inputs) -> None:
    """On the GPU, with nothing that sets them apart; one that is far slower slows the others."""
    plain, slowed = (
        predicted(one, "inference").step for one in (inputs, with_trial(inputs, "cuda"))
    )
    assert plain is not None
    assert slowed is not None
    assert slowed.mean > 1.5 * float(plain.mean)
    for other in (
        with_trial(inputs, "cpu"),
        with_trial(inputs, "cuda", precision="fp16"),
    ):
        assert predicted(other, "inference").step == plain
