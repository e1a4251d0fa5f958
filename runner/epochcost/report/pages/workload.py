"""Make the pages of workloads: a list of all, and a page for each except decoders."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from epochcost.analysis.comparisons import comparisons, scalings
from epochcost.analysis.emissions import energy_by_machine
from epochcost.analysis.estimates import states_bytes
from epochcost.analysis.observations import Observation, Workload
from epochcost.analysis.rows import Row
from epochcost.report.charts.contest import cost_ratios, finding
from epochcost.report.charts.figure import Figure
from epochcost.report.pages import decoder
from epochcost.report.pages.model import (
    about_model,
    embeds,
    job_figure,
    render_job,
    render_training,
)
from epochcost.report.pages.page import Page, Report, stem, workload_uri
from epochcost.report.ranking import Contest, contest

# Groups of models, in the order of lists, by words of their tasks.
_GROUPS: Mapping[str, tuple[str, ...]] = {
    "Images": ("image",),
    "Text": ("text", "sentence", "translation"),
    "Language models trained from scratch": ("language modelling",),
}
_DECODERS, _OTHERS, _PUBLISHED = "Language models", "Other models", "Published tables"


def pages(report: Report) -> Iterator[Page]:
    """Yield the list of workloads, and then every workload's page."""
    groups = by_group(report, report.workloads)
    decoders, published = groups.pop(_DECODERS, []), groups.pop(_PUBLISHED, [])
    yield Page(
        uri="models/index.md",
        title="Models",
        template="workloads.md.jinja",
        context={
            "groups": {
                title: [(workload, report.contests[workload]) for workload in listed]
                for title, listed in groups.items()
            },
            "published": published,
            "decoders": [
                (workload, report.tokens.get(workload.id), report.contests[workload])
                for workload in decoders
            ],
        },
        description="Every model, and the cheapest machine to train and serve it.",
    )
    for workload in report.workloads:
        about = about_model(report, workload)
        model = about["model"]
        is_decoder = model is not None and model.decoder is not None
        yield decoder.page(report, about, model) if is_decoder else _page(report, about)


def by_group(report: Report, workloads: Iterable[Workload]) -> dict[str, list[Workload]]:
    """Group workloads under titles, language models first; within a group, sort them by name."""
    groups: dict[str, list[Workload]] = {title: [] for title in (_DECODERS, *_GROUPS)}
    for workload in sorted(workloads, key=lambda workload: workload.name.casefold()):
        groups.setdefault(_group(report, workload), []).append(workload)
    return {title: listed for title, listed in groups.items() if listed}


def _group(report: Report, workload: Workload) -> str:
    if not workload.is_model:
        return _PUBLISHED
    if report.catalogue.models[workload.id].decoder is not None:
        return _DECODERS
    titles = (
        title for title, tasks in _GROUPS.items() if any(task in workload.task for task in tasks)
    )
    return next(titles, _OTHERS)


def _page(report: Report, about: Mapping[str, Any]) -> Page:
    workload = about["workload"]
    # Rows share an observation, which is expensive to hash.
    rows = report.workloads[workload]
    observed = tuple({id(row.observed): row.observed for row in rows}.values())
    return Page(
        uri=workload_uri(workload),
        title=workload.name,
        template="workload.md.jinja",
        description=_cost_sentence(report, workload),
        context={**about, **_values(report, about, rows, observed)},
        figures={
            "ratio": _main_job_cost_ratios(report, workload),
            "train": job_figure(report, workload, "train"),
            "serve": job_figure(report, workload, "serve"),
        },
    )


def _values(
    report: Report, about: Mapping[str, Any], rows: Sequence[Row], observed: Sequence[Observation]
) -> dict[str, Any]:
    workload, model, catalogue = about["workload"], about["model"], report.catalogue
    contests = report.contests[workload]
    training = contests.get("train")
    requests = contest([row for row in rows if row.observed.batch_size == 1], "million")
    timed = [row for row in rows if row.observed.kind != "predicted"]
    variants = [trial for trial in report.variants if trial.workload == workload]
    trained = [trial for trial in observed if trial.kind == "measured" and trial.mode == "training"]
    return {
        "training": training,
        "training_text": render_training(report, workload, training.goal) if training else "",
        "serving": contests.get("serve"),
        "embeds": embeds(report, workload),
        # The machines for inference at batch size 1, also by name.
        "requests": requests,
        "one_by_one": {each.name: each for each in requests.machines} if requests else {},
        "states_bytes": states_bytes(catalogue, model) if model else 0,
        "accuracy": any(
            training.model == workload.id for training in report.inputs.trainings.values()
        ),
        "trained": [row for row in timed if row.mode == "training"],
        "served": [row for row in timed if row.mode == "inference"],
        "loaded": [row for row in report.loads if row.model == workload.key],
        "drawn": energy_by_machine(catalogue, rows),
        "scalings": scalings(catalogue, observed, variants),
        "comparisons": comparisons(catalogue, observed, variants),
        "measured": [trial for trial in observed if trial.kind == "measured"],
        "sweeps": [
            limit
            for limit in report.inputs.limits.values()
            if limit.trial.model == workload.key and not limit.trial.variant
        ],
        # Batch sizes without a comparison with PyTorch near them.
        "ratio_unknown": sorted(
            {trial.batch_size for trial in trained if not _step_ratio_to_pytorch(trial)}
        ),
        "ratio_worst": max(
            (trial for trial in trained if _step_ratio_to_pytorch(trial) > 1),
            key=_step_ratio_to_pytorch,
            default=None,
        ),
        "slower_inference": report.inputs.ratios.slower_inference.get(workload.id),
        "estimated": report.estimated.get(workload.key, ()),
    }


def _main_contest(report: Report, workload: Workload) -> Contest | None:
    contests = report.contests[workload]
    machines = contests.get("train") or contests.get("serve")
    return contests.get("serve", machines) if embeds(report, workload) else machines


def _cost_sentence(report: Report, workload: Workload) -> str:
    machines = _main_contest(report, workload)
    if machines is None:
        return f"{workload.name}: no machine has a known cost."
    return f"{workload.name}: {finding(machines, render_job(report, workload, machines.goal))}."


def _main_job_cost_ratios(report: Report, workload: Workload) -> Figure | None:
    machines = _main_contest(report, workload)
    if machines is None:
        return None
    return cost_ratios(
        machines,
        identifier=f"{stem(workload)}-ratio",
        job=render_job(report, workload, machines.goal),
    )


def _step_ratio_to_pytorch(trial: Observation) -> Decimal:
    """Our step time ÷ PyTorch's; 0 if it is unknown or if batch sizes differ more than twofold."""
    return trial.step_ratio.value if trial.step_ratio and trial.step_ratio.near else Decimal(0)
