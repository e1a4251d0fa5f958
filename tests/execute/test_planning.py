"""Planning on this machine: a model or trial that is asked for by name must be in some study."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from epochcost.errors import CapabilityError, InputError
from epochcost.execute import planning
from epochcost.execute.graph_facts import GraphFacts
from epochcost.execute.planning import plan_elsewhere, plan_run, without_oversized
from epochcost.execute.sizes import cached_size
from epochcost.measure.runtime import runtime_name
from epochcost.plan.make import RunRequest
from epochcost.specs.loader import load_catalogue
from tiny_project import write_tiny_project


def test_a_model_that_no_study_measures_is_said(tmp_path: Path) -> None:
    """Asking for a model outside the chosen studies is an error that names these studies."""
    project = write_tiny_project(tmp_path)
    tiny = (project / "specs/models/tiny.toml").read_text()
    (project / "specs/models/other.toml").write_text(tiny.replace('"tiny"', '"other"', 1))
    with pytest.raises(InputError, match="expected a model of the studies brief"):
        plan_run(load_catalogue(project), RunRequest(models=("other",), providers=("cpu",)))


def test_only_the_requested_trials_are_planned(tmp_path: Path) -> None:
    """A trial is requested by its id; an id that cannot run here is refused with the reasons."""
    catalogue = load_catalogue(write_tiny_project(tmp_path))
    whole = plan_run(catalogue, RunRequest(providers=("cpu",)))
    chosen = whole.trials[1]
    plan = plan_run(catalogue, RunRequest(providers=("cpu",), trials=(chosen.id,)))
    assert plan.trials == (chosen,)
    with pytest.raises(InputError, match=r"^--trial 0123: expected the id of a trial"):
        plan_run(catalogue, RunRequest(providers=("cpu",), trials=("0123",)))


def test_a_plan_for_another_machine_is_that_of_the_machine(tmp_path: Path) -> None:
    """A trial's id follows from the other machine's runtime, not from the runtime here."""
    catalogue = load_catalogue(write_tiny_project(tmp_path))
    request = RunRequest(providers=("cpu",))
    here = plan_run(catalogue, request)
    there = plan_elsewhere(GraphFacts(catalogue), request, runtime_name())
    assert [trial.id for trial in there.trials] == [trial.id for trial in here.trials]
    arm = plan_elsewhere(GraphFacts(catalogue), request, "onnxruntime==1.2.3")
    assert {trial.runtime for trial in arm.trials} == {"onnxruntime==1.2.3"}
    assert {trial.id for trial in arm.trials}.isdisjoint(trial.id for trial in here.trials)


def test_a_machine_without_an_accelerator_has_no_trials_on_cuda(tmp_path: Path) -> None:
    """The spec of the requested machine decides, not the machine that plans."""
    project = write_tiny_project(tmp_path)
    study = project / "specs/studies/brief.toml"
    study.write_text(f'hardware = ["giant"]\n{study.read_text()}')
    request = RunRequest(providers=("cuda",), hardware="giant")
    plan = plan_elsewhere(GraphFacts(load_catalogue(project)), request)
    assert not plan.trials
    assert {each.reason for each in plan.left_out} == {"giant has no accelerator"}


def test_plan_and_run_name_the_arm_cpu_of_a_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``plan`` and ``run`` refuse CUDA for the same reason: the package needs x86-64."""
    project = write_tiny_project(tmp_path)
    local = project / "specs/hardware/local.toml"
    chip = '[[accelerators]]\nname = "GH200"\ncompute_capability = "9.0"\n'
    local.write_text(f"{local.read_text()}\n{chip}")
    catalogue, request = load_catalogue(project), RunRequest(providers=("cuda",))

    def no_cuda(_: int) -> None:
        raise CapabilityError("the runtime has no CUDA")

    monkeypatch.setattr(planning, "require_cuda", no_cuda)
    with pytest.raises(CapabilityError, match="its CPU is an Arm CPU") as refused:
        plan_run(catalogue, request)
    plan = plan_elsewhere(GraphFacts(catalogue), request)
    assert {each.reason for each in plan.left_out} == {str(refused.value)}
    assert not plan.trials


def test_a_smaller_batch_in_a_larger_precision_may_not_fit(tmp_path: Path) -> None:
    """A trial in fp16, which is compared with fp32, needs more memory than a larger fp32 batch."""
    catalogue = load_catalogue(write_tiny_project(tmp_path))
    plan = plan_run(catalogue, RunRequest(providers=("cpu",)))
    fp32 = max(plan.trials, key=lambda trial: (trial.mode, trial.batch_size))
    fp16 = fp32.model_copy(update={"batch_size": fp32.batch_size - 1, "precision": "fp16"})
    both = replace(plan, trials=(fp32, fp16))
    size = cached_size(catalogue, catalogue.model(fp32.model), {fp32.mode: {fp32.batch_size}})
    counted = size[fp32.mode]
    assert not isinstance(counted, str)
    room = {"cpu": counted[fp32.batch_size].memory_bytes("cpu")}
    assert without_oversized(GraphFacts(catalogue), both, room).trials == (fp32,)
