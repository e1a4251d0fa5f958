"""Pinned variants of a study are run, and their results store the pinning."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from called_program import exit_code
from epochcost.execute.assignment import Assignment, Event, Finished
from epochcost.execute.planning import plan_run
from epochcost.execute.run import run_trials
from epochcost.measure.cpu import usable_cpus
from epochcost.measure.pinning import NO_PINNING, why_not_pinned
from epochcost.plan.make import LeftOut, Plan, RunRequest
from epochcost.results.store import ResultStore
from epochcost.specs.loader import load_catalogue
from sound_results import sound_results
from tiny_project import write_tiny_project

pins = pytest.mark.skipif(why_not_pinned() is not None, reason="this system pins no process")


def ignore(_: Event) -> None:
    """Ignore an event of the run."""


def project_with(root: Path, keys: str) -> Path:
    """The tiny project, with its study limited to inference and extended by ``keys``."""
    project = write_tiny_project(root)
    study = project / "specs/studies/brief.toml"
    lines = f'modes = ["inference"]\n{keys}\n[sampling]'
    study.write_text(study.read_text().replace("[sampling]", lines))
    return project


@pins
@pytest.mark.skipif(usable_cpus() < 2, reason="one CPU is all of this machine")
def test_a_pinned_trial_is_stored_with_its_cpu(tmp_path: Path) -> None:
    """The pinned trial has one CPU and one thread; the default trial is not pinned."""
    project = project_with(tmp_path, f"vcpus = [1, {usable_cpus()}]")
    catalogue = load_catalogue(project)
    trials = plan_run(catalogue, RunRequest(providers=("cpu",))).trials
    assert {trial.variant for trial in trials} == {"1 vCPU", ""}
    store = ResultStore(tmp_path / "results")
    outcomes = run_trials(Assignment(catalogue, Plan(trials), "local", store), ignore)
    results = {one.trial.variant: one.result for one in outcomes if isinstance(one, Finished)}
    pinned, plain = results["1 vCPU"].measurement.pinning, results[""].measurement.pinning
    assert plain is None
    assert pinned is not None
    assert set(pinned.cpus) < os.sched_getaffinity(0)
    assert (len(pinned.cpus), pinned.threads) == (1, 1)
    assert pinned.emulates == "a smaller instance of the same family"
    conditions = results["1 vCPU"].measurement.conditions
    assert conditions is not None
    assert conditions.others_cpus is None or conditions.others_cpus <= 1.1 * len(
        pinned.affected_cpus
    )
    assert {one.trial_id for one in sound_results(store.folder)} == {one.id for one in trials}


def test_a_system_that_cannot_pin_leaves_the_trial_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan gives the reason, and the trial does not run on all CPUs instead."""
    monkeypatch.delattr(os, "sched_setaffinity", raising=False)
    catalogue = load_catalogue(project_with(tmp_path, "vcpus = [4095]"))
    plan = plan_run(catalogue, RunRequest(providers=("cpu",)))
    assert plan.trials == ()
    assert plan.left_out == (LeftOut("tiny inference cpu batch 1, 4095 vCPU", NO_PINNING),)


def test_the_plan_shows_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Precision and CPU count are in a trial's title; ``--vcpus`` replaces the study's counts."""
    project = project_with(tmp_path, 'precisions = ["fp16"]')
    monkeypatch.chdir(project)
    assert exit_code("plan", "--provider", "cpu", "--vcpus", "4095") == 0
    shown = capsys.readouterr().out
    assert "tiny inference cpu batch 1, fp16, 4095 vCPU" in shown
    assert exit_code("plan", "--provider", "cpu") == 0
    assert "tiny inference cpu batch 1, fp16" in capsys.readouterr().out


@pytest.mark.parametrize("counts", ["1,1", "0", "a", "1,", "99999"])
def test_counts_that_are_none_are_refused(
    counts: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Invalid CPU counts are refused in one line that quotes them."""
    monkeypatch.chdir(write_tiny_project(tmp_path))
    assert exit_code("plan", "--vcpus", counts) == 1
    assert (
        f"--vcpus: expected different counts of CPUs from 1 to 4096, such as 1,2,4, got '{counts}'"
        in (capsys.readouterr().err)
    )


@pins
@pytest.mark.skipif(usable_cpus() < 2, reason="one CPU is all of this machine")
def test_a_run_pins_as_it_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """``run --vcpus 1`` measures only the variant with one CPU, and its table says so."""
    monkeypatch.chdir(project_with(tmp_path, ""))
    command = ("run", "--provider", "cpu", "--vcpus", "1", "--results", "kept", "--no-ceilings")
    assert exit_code(*command) == 0
    assert "tiny inference cpu batch 1, 1 vCPU" in capsys.readouterr().out
    (result,) = sound_results(Path("kept"))
    assert result.measurement.pinning is not None
