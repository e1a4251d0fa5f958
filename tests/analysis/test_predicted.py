"""Predicted times of the project's models on its machines: which have one, and what they say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from epochcost.analysis.inputs import Inputs, read_inputs
from epochcost.analysis.observations import Observation
from epochcost.analysis.predicted import Predictions, predict_times
from epochcost.analysis.rows import offers, price_rows
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.loader import load_catalogue

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def inputs() -> Inputs:
    """The project's catalogue and results."""
    return read_inputs(load_catalogue(ROOT), [ROOT / "docs" / "data" / "results"], ROOT / "docs")


@pytest.fixture(scope="module")
def found(inputs: Inputs) -> Predictions:
    """Predictions of ResNet-50, of BERT-base and of a small network."""
    names = ("resnet50", "bert-base", "mnist-cnn")
    return predict_times(inputs, [inputs.catalogue.models[name] for name in names])


def of(found: Predictions, model: str, hardware: str, mode: str) -> Observation:
    """What is predicted of a model, machine and mode at the largest batch."""
    mine = (
        one
        for one in found.observations
        if (one.workload.id, one.machine.hardware, one.mode) == (model, hardware, mode)
    )
    return max(mine, key=lambda one: one.batch_size)


def test_every_machine_has_a_time_or_a_reason(inputs: Inputs, found: Predictions) -> None:
    """No machine of the catalogue is silently left out, and none has both."""
    timed = {one.machine.hardware for one in found.observations}
    without = {one.id for one in found.without}
    assert timed | without >= set(inputs.catalogue.hardware)
    assert not timed & without
    assert len(timed) >= 89


def test_machines_nothing_is_known_of_are_named_with_their_reason(found: Predictions) -> None:
    """TPUs are no GPUs, nobody timed an Arm CPU, and a managed tier hides what it is made of."""
    reasons = {one.id: one.reason for one in found.without}
    assert reasons["gcp-tpu-v3-8"] == "no published time of a TPU v3, 8 cores"
    assert reasons["c8g.48xlarge"] == "no published time of an Arm CPU"
    assert reasons["cloud-ml-basic"] == "its CPUs are not known"


def test_where_the_runtime_has_no_kernels_other_software_is_named_and_answers_nothing(
    inputs: Inputs, found: Predictions
) -> None:
    """CUDA 12's package serves a V100 and a B200; a K80 has the times of a framework of 2017."""
    named = {"p3.2xlarge": "ONNX Runtime 1.26", "p6-b200.48xlarge": "ONNX Runtime 1.26"}
    for hardware, software in {**named, "p2.xlarge": "software of TensorFlow benchmarks"}.items():
        one = of(found, "resnet50", hardware, "training")
        assert one.software.startswith(software)
        assert "no kernels for compute capability" in one.unserved
        assert one.unserved in one.doubts
    rows = price_rows(inputs.catalogue, found.observations)
    assert {row.answers for row in rows if row.observed.unserved} == {False}
    offered = offers([row for row in rows if row.observed.workload.id == "resnet50"], "full")
    assert not any(one.key.row.observed.unserved for one in offered.candidates)
    apart = [one.key.row.observed.machine.hardware for one in offered.apart]
    assert {"p3.2xlarge", "p2.xlarge"} <= set(apart)
    assert len(apart) == len(set(apart))


def test_predictions_are_marked_and_never_called_measured(
    inputs: Inputs, found: Predictions
) -> None:
    """Their kind travels into every row, with the price's."""
    rows = price_rows(inputs.catalogue, found.observations)
    assert {row.mark for row in rows} == {"predicted", "predicted, price assumed"}


def test_intervals_hold_what_others_measured(found: Predictions) -> None:
    """ResNet-50 in fp32 on a T4 trains some 130 images a second in frameworks of the day."""
    step = of(found, "resnet50", "g4dn.xlarge", "training").step
    assert step is not None
    batch = of(found, "resnet50", "g4dn.xlarge", "training").batch_size
    assert batch / step.high < 130 < batch / step.low


def test_a_larger_gpu_is_predicted_to_be_faster(found: Predictions) -> None:
    """An H100 before an A100 before a T4, for both models and modes."""
    for model in ("resnet50", "bert-base"):
        for mode in ("training", "inference"):
            rates = []
            for name in ("lambda-1x-h100-sxm5", "lambda-1x-a100", "g4dn.xlarge"):
                one = of(found, model, name, mode)
                assert one.step is not None
                rates.append(one.batch_size / one.step.mean)
            assert rates == sorted(rates, reverse=True)


def test_a_batch_that_does_not_fit_the_device_is_not_predicted(found: Predictions) -> None:
    """BERT at 512 tokens trains at a smaller batch on 16 GiB than on 80 GiB."""
    small = of(found, "bert-base", "g4dn.xlarge", "training").batch_size
    large = of(found, "bert-base", "lambda-1x-h100-sxm5", "training").batch_size
    assert small < large


def test_inference_is_predicted_one_by_one_on_cpus_alone(found: Predictions) -> None:
    """What others published of GPUs is of large batches, which says little of batches of one."""
    batches: dict[str, set[int]] = {"cpu": set(), "cuda": set()}
    for one in found.observations:
        if one.mode == "inference":
            batches[one.machine.device].add(one.batch_size)
    assert 1 in batches["cpu"]
    assert min(batches["cuda"]) > 1


def test_a_prediction_gives_way_to_any_other_time(found: Predictions) -> None:
    """Of a machine and mode that has one time, no other is predicted, whatever its batch."""
    known = of(found, "resnet50", "g5.xlarge", "training")
    left = list(found.beyond([replace(known, kind="measured", batch_size=3)]))
    assert len(left) == len(found.observations) - 1
    assert known not in left


def test_cpus_are_told_by_their_vcpus_where_a_factor_of_ten_is_known(found: Predictions) -> None:
    """A small network has a time on 192 vCPUs, wide; ResNet-50 has none there, and says so."""
    step = of(found, "mnist-cnn", "c7i.48xlarge", "training").step
    assert step is not None
    assert 2 < step.high / step.low < 100
    assert of(found, "resnet50", "n1-highcpu-16", "training").software.startswith("ONNX Runtime")
    assert all(
        (one.workload.id, one.machine.hardware) != ("resnet50", "c7i.48xlarge")
        for one in found.observations
    )
    (reason,) = (
        one.reason for one in found.without if one.id == "resnet50" and "c7i" in one.reason
    )
    assert reason.endswith("not known to a factor of ten")


def test_models_without_kin_have_a_reason(inputs: Inputs) -> None:
    """On GPUs nothing is said of a tiny network and a recurrent one, and of none without graph."""
    models = [inputs.catalogue.models[name] for name in ("mnist-mlp", "lstm-char-cnn", "gpt-3")]
    found = predict_times(inputs, models)
    assert {one.machine.device for one in found.observations} == {"cpu"}
    reasons = {(one.id, one.reason.partition(",")[0]): one.reason for one in found.without}
    assert "of a model of nearly its size" in reasons["mnist-mlp", "on GPUs"]
    assert "of a recurrent model" in reasons["lstm-char-cnn", "on GPUs"]
    assert ("gpt-3", "no graph that can be counted") in reasons


def test_a_project_without_tables_predicts_nothing(inputs: Inputs) -> None:
    """Nothing follows from nothing."""
    bare = Catalogue(
        root=ROOT,
        hardware=inputs.catalogue.hardware,
        prices={},
        models=inputs.catalogue.models,
        studies={},
        published={},
    )
    found = predict_times(read_inputs(bare, [], ROOT / "docs"), [bare.models["resnet50"]])
    assert found.observations == ()
