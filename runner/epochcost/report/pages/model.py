"""Collect values that the pages of workloads and of decoders share: the model and its sources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from epochcost.analysis.arithmetic import Graph, arithmetic_of_model
from epochcost.analysis.observations import Workload
from epochcost.analysis.prediction_trust import headline
from epochcost.analysis.rows import GOAL_WORDS
from epochcost.report.charts.contest import cost_against_time
from epochcost.report.charts.figure import Figure
from epochcost.report.charts.load import load_figure
from epochcost.report.pages.page import Job, Report, stem
from epochcost.report.ranking import ContestGoal
from epochcost.report.wording import full_training_words
from epochcost.specs.model import Model
from epochcost.statistics import group_by


def about_model(report: Report, workload: Workload) -> dict[str, Any]:
    """Collect the values that all pages about a workload show, by name.

    If the workload is known only from a published table, values about the model are None.
    ``gpu_memory`` has the GiB of each machine's largest accelerator. ``without`` lists the machines
    on which the model's time is unknown, by reason. ``untimed`` is the number of these machines.
    """
    catalogue = report.catalogue
    model = _model_of(report, workload)
    without = _untimed_machines_by_reason(report, workload)
    return {
        "workload": workload,
        "model": model,
        "graph": Graph.of(catalogue.graph_path(model), {}) if model and model.graph else None,
        "counted": arithmetic_of_model(catalogue, model, report.inputs.cache) if model else None,
        "gpu_memory": report.gpu_memory,
        "without": without,
        "untimed": len({name for names in without.values() for name in names}),
        "tested": headline(report.trust) if report.trust else None,
        "sources": [
            source
            for source in catalogue.published.values()
            if workload.id in {source.id, source.model}
        ],
    }


def _model_of(report: Report, workload: Workload) -> Model | None:
    return report.catalogue.models.get(workload.id) if workload.is_model else None


def _untimed_machines_by_reason(
    report: Report, workload: Workload
) -> Mapping[str, tuple[str, ...]]:
    if not workload.is_model:
        return {}
    hardware, without = report.catalogue.hardware, report.predictions.without
    reasons = [gap for gap in without if gap.id == workload.id]
    reasons = reasons or [gap for gap in without if gap.id in hardware]
    # The machine of a row may have a longer name, which states its host.
    timed = {row.observed.machine.hardware for row in report.workloads[workload].rows}
    untimed = [machine for machine in hardware.values() if machine.id not in timed]
    missing = [
        (machine.name, gap.reason)
        for gap in reasons
        for machine in untimed
        if (not gap.machines or machine.name in gap.machines)
        and gap.device in {"", machine.device}
        and (gap.id == machine.id or gap.id not in hardware)
    ]
    groups = group_by(missing, lambda pair: pair[1]).items()
    return {reason: tuple(name for name, _ in pairs) for reason, pairs in groups}


def job_figure(report: Report, workload: Workload, job: Job) -> Figure | None:
    """Chart a job: cost against time by machine, or cost of tokens against load."""
    if job == "tokens":
        answer = report.tokens.get(workload.id)
        return load_figure(answer, f"{stem(workload)}-load") if answer else None
    machines = report.contests_of(workload).get(job)
    if machines is None:
        return None
    lora = "a fine-tuning by LoRA"
    words = lora if job == "lora" else job_words(report, workload, machines.goal)
    return cost_against_time(machines, identifier=f"{stem(workload)}-{job}", job=words)


def embeds(report: Report, workload: Workload) -> bool:
    """Whether a workload turns documents into embeddings."""
    model = _model_of(report, workload)
    return bool(model and model.tokens_per_example and "embedding" in model.task)


def training_words(report: Report, workload: Workload, goal: ContestGoal) -> str:
    """Name a training and its data, for example "Training for 90 epochs on ImageNet-1k"."""
    words = job_words(report, workload, goal)
    model = _model_of(report, workload)
    data = f" on {report.catalogue.dataset(model.dataset).name}" if model and model.dataset else ""
    return f"{words[:1].upper()}{words[1:]}{data}"


def job_words(report: Report, workload: Workload, goal: ContestGoal) -> str:
    """Name a job, for example "training for 90 epochs"."""
    if goal == "full":
        rows = report.workloads[workload].rows
        return full_training_words(row.observed.epochs for row in rows if row.mode == "training")
    if goal == "million" and embeds(report, workload):
        return "embedding a million documents"
    if goal == "million":
        return "answering a million requests"
    return next(text for name, text in GOAL_WORDS.items() if name == goal)
