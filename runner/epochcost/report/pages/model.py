"""Collect values that the pages of workloads and of decoders share: the model and its sources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from epochcost.analysis.arithmetic import Graph, arithmetic_of_model
from epochcost.analysis.observations import Workload
from epochcost.analysis.predicted import NoTime
from epochcost.analysis.rows import GOAL_NAMES
from epochcost.report.charts.contest import cost_against_time
from epochcost.report.charts.figure import Figure
from epochcost.report.charts.load import load_figure
from epochcost.report.pages.page import Job, Report, stem
from epochcost.report.ranking import ContestGoal
from epochcost.specs.hardware import Hardware
from epochcost.specs.model import Model
from epochcost.specs.study import Mode
from epochcost.statistics import group_by
from epochcost.units import render_count


def about_model(report: Report, workload: Workload) -> dict[str, Any]:
    """Collect the values that all pages about a workload show, by name.

    ``without`` has names of machines by the reason why their time is missing, and ``untimed`` their
    number by mode. If the workload is known only from a published table, ``model``, ``graph`` and
    ``counted`` (parameters and operations) are None.
    """
    catalogue = report.catalogue
    model = report.catalogue.models.get(workload.key)
    untimed = {mode: _untimed_machines(report, workload, mode) for mode in _modes(model)}
    return {
        "workload": workload,
        "model": model,
        "graph": Graph.of(catalogue.graph_path(model), {}) if model and model.graph else None,
        "counted": arithmetic_of_model(catalogue, model, report.inputs.cache) if model else None,
        "gpu_memory": report.gpu_memory,
        "without": _machines_by_reason(untimed),
        "untimed": {mode: len(reasons) for mode, reasons in untimed.items()},
        "tested": report.trust.all.get("accelerator") if report.trust else None,
        "sources": [
            source
            for source in catalogue.published.values()
            if workload.id in {source.id, source.model}
        ],
    }


def _modes(model: Model | None) -> list[Mode]:
    """The modes for which the page of a model lists machines."""
    if model is None:
        return []
    trains = model.training is not None or model.declared is not None
    trained: list[Mode] = ["training"] if trains else []
    return [*trained, "inference"] if model.inference is not None else trained


def _untimed_machines(
    report: Report, workload: Workload, mode: Mode
) -> Mapping[str, tuple[str, ...]]:
    """The reasons why machines have no time of a model in one mode, by the machine's name."""
    # The machine of a row may have a longer name, which states its host.
    rows = report.workloads[workload]
    timed = {row.observed.machine.hardware for row in rows if row.mode == mode}
    if mode == "training":
        timed |= {row.hardware.id for row in report.estimated.get(workload.key, ())}
    untimed = [each for each in report.catalogue.hardware.values() if each.id not in timed]
    gaps = [gap for gap in report.predictions.without if gap.mode in ("", mode)]
    of_model = [gap for gap in gaps if gap.id == workload.id]
    reasons = {
        machine.name: [gap.reason for gap in of_model if _concerns(gap, machine)]
        or [gap.reason for gap in gaps if gap.id == machine.id]
        for machine in untimed
    }
    return {name: tuple(facts) for name, facts in reasons.items() if facts}


def _concerns(gap: NoTime, machine: Hardware) -> bool:
    named = not gap.machines or machine.name in gap.machines
    return named and gap.device in {"", machine.device}


def _machines_by_reason(
    untimed: Mapping[Mode, Mapping[str, tuple[str, ...]]],
) -> Mapping[str, tuple[str, ...]]:
    """Machine names by reason; a reason that holds in only one of several modes begins with it."""
    facts = [
        ((reason, name), mode)
        for mode, reasons_of in untimed.items()
        for name, reasons in reasons_of.items()
        for reason in reasons
    ]
    machines: dict[str, list[str]] = {}
    for (reason, name), places in group_by(facts, lambda fact: fact[0]).items():
        only = f"{places[0][1]}: " if len(places) < len(untimed) else ""
        machines.setdefault(only + reason, []).append(name)
    return {reason: tuple(names) for reason, names in machines.items()}


def job_figure(report: Report, workload: Workload, job: Job) -> Figure | None:
    """Chart cost against load for the job "tokens", else against time; None if data are few."""
    if job == "tokens":
        answer = report.tokens.get(workload.id)
        return load_figure(answer, f"{stem(workload)}-load") if answer else None
    machines = report.contests[workload].get(job)
    if machines is None:
        return None
    lora = "a fine-tuning by LoRA"
    words = lora if job == "lora" else render_job(report, workload, machines.goal)
    return cost_against_time(machines, identifier=f"{stem(workload)}-{job}", job=words)


def embeds(report: Report, workload: Workload) -> bool:
    """Whether a workload turns documents into embeddings."""
    model = report.catalogue.models.get(workload.key)
    return bool(model and model.tokens_per_example and "embedding" in model.task)


def render_training(report: Report, workload: Workload, goal: ContestGoal) -> str:
    """Name a training and its data, for example "Training for 90 epochs on ImageNet-1k"."""
    words = render_job(report, workload, goal)
    model = report.catalogue.models.get(workload.key)
    data = f" on {report.catalogue.dataset(model.dataset).name}" if model and model.dataset else ""
    return f"{words[:1].upper()}{words[1:]}{data}"


def render_job(report: Report, workload: Workload, goal: ContestGoal) -> str:
    """Name a job, for example "training for 90 epochs"; "a full training" if the epochs differ."""
    if goal == "full":
        trained = [row.observed for row in report.workloads[workload] if row.mode == "training"]
        epochs = {observed.epochs for observed in trained if observed.epochs is not None}
        counted = [render_count(number, "epoch") for number in epochs]
        return f"training for {counted[0]}" if len(counted) == 1 else "a full training"
    if goal == "million" and embeds(report, workload):
        return "embedding a million documents"
    if goal == "million":
        return "answering a million requests"
    return next(text for name, text in GOAL_NAMES.items() if name == goal)
