"""Planning: the trials of a study, their order, and what is left out and why."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from epochcost.errors import InputError
from epochcost.plan.make import (
    QUICK_BUDGET_SECONDS,
    HostCapabilities,
    LeftOut,
    Plan,
    RunRequest,
    leave_out_oversized,
    merge_plans,
    plan_study,
    select,
)
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.model import Model
from epochcost.specs.study import Cuda, Study

HOST = HostCapabilities(hardware="local", runtime="onnxruntime 1.31.1", producer="0.1.0")
CPU_ONLY = HostCapabilities(HOST.hardware, HOST.runtime, HOST.producer, no_cuda="no GPU was found")
GRAPHS = {"mlp": "a" * 64, "cnn": "b" * 64}


def model(identifier: str, **changes: Any) -> Model:
    """A model spec with training and inference; ``changes`` replaces whole tables or fields."""
    document: dict[str, Any] = {
        "id": identifier,
        "name": identifier.upper(),
        "task": "digits",
        "example": "image",
        "graph": f"{identifier}.onnx",
        "inputs": [{"name": "pixels"}],
        "training": {
            "loss": "softmax_cross_entropy",
            "output": "logits",
            "target": {"classes": 10},
            "optimizer": {"name": "sgd", "learning_rate": Decimal("0.1")},
            "batch_sizes": [128, 32],
            "examples_per_epoch": 60_000,
            "epochs": 20,
        },
        "inference": {"batch_sizes": [1]},
        "source": "a paper",
    }
    return Model.model_validate(document | changes)


def catalogue(*models: Model) -> Catalogue:
    """A catalogue of these models only."""
    return Catalogue(
        root=Path(),
        hardware={},
        prices={},
        models={item.id: item for item in models},
        studies={},
        published={},
    )


def study(**changes: Any) -> Study:
    """A study of both models on the local machine."""
    return Study.model_validate({"id": "s", "name": "S", "models": ["mlp", "cnn"]} | changes)


BOTH = catalogue(model("mlp"), model("cnn"))


def titles(plan: Plan) -> list[str]:
    """The trials' titles, in order."""
    return [trial.title for trial in plan.trials]


def test_every_combination_cheapest_first() -> None:
    """Inference comes before training, CPU before CUDA, and small batches before large ones."""
    plan = plan_study(BOTH, study(models=["cnn", "mlp"]), HOST, graphs=GRAPHS)
    assert titles(plan) == [
        "cnn inference cpu batch 1",
        "mlp inference cpu batch 1",
        "cnn inference cuda batch 1",
        "mlp inference cuda batch 1",
        "cnn training cpu batch 32",
        "mlp training cpu batch 32",
        "cnn training cpu batch 128",
        "mlp training cpu batch 128",
        "cnn training cuda batch 32",
        "mlp training cuda batch 32",
        "cnn training cuda batch 128",
        "mlp training cuda batch 128",
    ]
    assert plan.left_out == ()


def test_an_unusable_provider_is_left_out_with_its_reason() -> None:
    """On a machine without CUDA, the CUDA work of each model and mode is left out with a reason."""
    plan = plan_study(BOTH, study(models=["mlp"]), CPU_ONLY, graphs=GRAPHS)
    assert {trial.provider for trial in plan.trials} == {"cpu"}
    assert plan.left_out == (
        LeftOut("mlp training cuda", "no GPU was found"),
        LeftOut("mlp inference cuda", "no GPU was found"),
    )


def test_an_unknown_trial_is_refused_with_each_reason_once() -> None:
    """The error has one line for each reason why the plan leaves work out."""
    plan = plan_study(BOTH, study(models=["mlp", "cnn"]), CPU_ONLY, graphs=GRAPHS)
    with pytest.raises(InputError) as refused:
        select(plan, ["0123"])
    first, *reasons = str(refused.value).splitlines()
    assert first.startswith("--trial 0123: expected the id of a trial that can run on the machine")
    assert reasons == ["  mlp training cuda and 3 more: no GPU was found"]


def test_a_mode_that_the_model_does_not_declare_is_left_out() -> None:
    """Training is left out for a model without a training table."""
    only = catalogue(model("mlp", training=None))
    plan = plan_study(only, study(models=["mlp"], providers=["cpu"]), HOST, graphs=GRAPHS)
    assert titles(plan) == ["mlp inference cpu batch 1"]
    assert plan.left_out == (
        LeftOut("mlp training cpu", "the model's spec has no table [training]"),
    )


def test_a_batch_larger_than_an_epoch_is_left_out() -> None:
    """A batch larger than an epoch is left out, since such an epoch has no step."""
    wide = study(models=["mlp"], training_batch_sizes=[32, 70_000], providers=["cpu"])
    plan = plan_study(BOTH, wide, HOST, graphs=GRAPHS)
    assert titles(plan) == ["mlp inference cpu batch 1", "mlp training cpu batch 32"]
    assert [left.what for left in plan.left_out] == ["mlp training cpu batch 70000"]


def test_other_hardware_leaves_the_study_out() -> None:
    """A study runs on the hardware that it lists only. A study for `local` runs anywhere."""
    host = HostCapabilities("p2.xlarge", HOST.runtime, HOST.producer)
    plan = plan_study(BOTH, study(hardware=["g6.xlarge"]), host, graphs=GRAPHS)
    assert plan.trials == ()
    assert plan.left_out == (
        LeftOut("study s", "it is for the hardware g6.xlarge; this run is for p2.xlarge"),
    )
    assert plan_study(BOTH, study(), host, graphs=GRAPHS).trials


def test_selection_narrows_models_and_providers() -> None:
    """Unselected work is neither planned nor reported as left out."""
    chosen = RunRequest(models=("cnn",), providers=("cpu",))
    plan = plan_study(BOTH, study(modes=["inference"]), CPU_ONLY, graphs=GRAPHS, request=chosen)
    assert titles(plan) == ["cnn inference cpu batch 1"]
    assert plan.left_out == ()


def test_quick_shrinks_sampling_and_is_another_trial() -> None:
    """Trials of a quick run have other ids, so that their results do not count as full ones."""
    full = plan_study(BOTH, study(), HOST, graphs=GRAPHS)
    quick = plan_study(BOTH, study(), HOST, graphs=GRAPHS, request=RunRequest(quick=True))
    assert titles(quick) == titles(full)
    assert not {trial.id for trial in quick.trials} & {trial.id for trial in full.trials}
    assert {trial.budget_seconds for trial in quick.trials} == {QUICK_BUDGET_SECONDS}


def test_a_quick_run_of_a_quick_study_keeps_its_rounds() -> None:
    """Both runs have the same trials, and a single round must not replace a result of three."""
    sampling = {"relative_half_width": Decimal("0.1"), "minimum_samples": 10, "budget_seconds": 2}
    brief = study(sampling=sampling, rounds=3)
    full = plan_study(BOTH, brief, HOST, graphs=GRAPHS)
    quick = plan_study(BOTH, brief, HOST, graphs=GRAPHS, request=RunRequest(quick=True))
    assert quick == full
    assert {*full.rounds.values()} == {3}


def test_a_trial_without_room_is_left_out_with_what_it_needs() -> None:
    """Only trials that exceed the machine's memory are left out."""
    plan = plan_study(BOTH, study(models=["mlp"], modes=["training"]), HOST, graphs=GRAPHS)
    needed = {trial.id: trial.batch_size * 2**28 for trial in plan.trials}
    fitting = leave_out_oversized(plan, needed, {"cpu": 8 * 2**30, "cuda": 40 * 2**30})
    assert titles(fitting) == [
        "mlp training cpu batch 32",
        "mlp training cuda batch 32",
        "mlp training cuda batch 128",
    ]
    assert fitting.left_out == (
        LeftOut("mlp training cpu batch 128", "needs about 32.0 GiB; the machine has 8.0 GiB"),
    )


def test_what_is_not_known_is_not_left_out() -> None:
    """A trial is kept if its need or the memory is unknown."""
    plan = plan_study(BOTH, study(models=["mlp"], modes=["training"]), HOST, graphs=GRAPHS)
    assert leave_out_oversized(plan, {}, {"cpu": 1, "cuda": 1}) == plan
    assert leave_out_oversized(plan, {trial.id: 2 for trial in plan.trials}, {}) == plan


SCENARIOS = ["offline", "server"]


def test_scenarios_are_planned_beside_training() -> None:
    """Inference has the study's scenarios only. Training is planned as before."""
    served = study(models=["mlp"], providers=["cpu"], scenarios=SCENARIOS)
    bounded = catalogue(
        model("mlp", inference={"batch_sizes": [4], "server_latency_ms": Decimal(15)})
    )
    plan = plan_study(bounded, served, HOST, graphs=GRAPHS)
    assert set(titles(plan)[:2]) == {"mlp offline cpu batch 4", "mlp server cpu batch 4"}
    assert titles(plan)[2:] == ["mlp training cpu batch 32", "mlp training cpu batch 128"]
    assert {trial.work.scenario for trial in plan.trials} == {"batch", *SCENARIOS}


def test_loadgen_measures_in_a_single_round() -> None:
    """A trial under LoadGen has one round, since LoadGen's runs cannot be divided."""
    served = study(models=["mlp"], modes=["inference"], scenarios=["batch", "offline"], rounds=2)
    planned = plan_study(catalogue(model("mlp")), served, HOST, graphs=GRAPHS)
    rounds = {trial.work.scenario: planned.rounds.get(trial.id, 1) for trial in planned.trials}
    assert rounds == {"batch": 2, "offline": 1}


def test_the_largest_settings_of_a_study_are_planned() -> None:
    """A trial accepts every number that a study may hold."""
    serving = {"server_latency_ms": 1_000_000, "maximum_delay_ms": 1_000_000}
    largest = study(
        models=["mlp"],
        scenarios=["batch", "server"],
        sampling={"budget_seconds": 1_000_000},
        serving=serving,
        cuda={"memory_limit_gib": Decimal("0.0625")},
    )
    trials = plan_study(BOTH, largest, HOST, graphs=GRAPHS).trials
    assert {trial.budget_seconds for trial in trials} == {1_000_000}
    assert "server" in {trial.work.scenario for trial in trials}


def test_a_server_without_a_bound_is_left_out() -> None:
    """The scenario server is left out if the model declares no bound of latency."""
    served = study(models=["mlp"], providers=["cpu"], modes=["inference"], scenarios=SCENARIOS)
    plan = plan_study(BOTH, served, HOST, graphs=GRAPHS)
    assert {trial.work.scenario for trial in plan.trials} == {"offline"}
    (left,) = plan.left_out
    assert left.what == "mlp server cpu batch 1"
    assert "write server_latency_ms" in left.reason


def test_more_cpus_than_the_machine_has_are_left_out() -> None:
    """A trial on eight CPUs is left out on a machine of two, with both numbers."""
    asked = study(vcpus=[1, 8], modes=["inference"], providers=["cpu"], models=["mlp"])
    host = replace(HOST, cpus=2)
    plan = plan_study(BOTH, asked, host, graphs=GRAPHS)
    assert [trial.vcpus for trial in plan.trials] == [1]
    assert plan.left_out == (
        LeftOut("mlp inference cpu batch 1, 8 vCPU", "needs 8 CPUs; 2 can be used"),
    )


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"cuda": Cuda(graphs=True), "providers": ["cuda"]}, "a CUDA graph has one batch size"),
    ],
)
def test_what_loadgen_cannot_do_is_left_out(changes: dict[str, Any], reason: str) -> None:
    """A CUDA graph leaves LoadGen's scenarios out, and keeps full batches."""
    asked = study(scenarios=["batch", "offline"], **changes)
    planned = plan_study(BOTH, asked, HOST, graphs=GRAPHS)
    assert {trial.work.scenario for trial in planned.trials} == {"batch"}
    assert {left.reason.find(reason) >= 0 for left in planned.left_out} == {True}


def test_a_sweep_is_planned_from_the_smallest_size() -> None:
    """A sweep is one entry from the smallest batch size to an epoch or the overall limit."""
    swept = study(
        models=["mlp"], training_batch_sizes="auto", inference_batch_sizes="auto", rounds=3
    )
    plan = plan_study(BOTH, swept, CPU_ONLY, graphs=GRAPHS)
    assert plan.trials == ()
    inference, training = plan.sweeps
    assert (inference.trial.batch_size, inference.largest) == (1, 65_536)
    assert (training.trial.batch_size, training.largest) == (32, 60_000)
    assert training.bound == "all examples of an epoch"
    assert training.rounds == 3


def test_two_studies_sweep_once() -> None:
    """Equal sweeps of two studies are swept once, in the most rounds that a study requests."""
    once = study(models=["mlp"], modes=["training"], training_batch_sizes="auto", rounds=1)
    often = study(models=["mlp"], modes=["training"], training_batch_sizes="auto", rounds=2)
    listed = study(models=["mlp"], modes=["training"], training_batch_sizes=[64])
    plan = merge_plans(
        plan_study(BOTH, each, CPU_ONLY, graphs=GRAPHS) for each in (once, often, listed)
    )
    (sweep,) = plan.sweeps
    assert sweep.rounds == 2
    assert [trial.id for trial in plan.trials] == [sweep.at(64).id]
