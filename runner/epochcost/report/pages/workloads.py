"""The pages of workloads: a list of all, and one page for each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial

from epochcost.analysis.arithmetic import arithmetic_of_model, forward_shares, step_parts
from epochcost.analysis.comparisons import (
    Scaling,
    VariantComparison,
    comparisons,
    cpu_against_gpu,
    scalings,
)
from epochcost.analysis.emissions import energy_by_machine, energy_goal
from epochcost.analysis.estimates import states_bytes
from epochcost.analysis.observations import Goal, Observation, Workload
from epochcost.analysis.priced_jobs import GOAL_WORDS
from epochcost.analysis.rows import Row, group_by
from epochcost.analysis.tokens import USUAL
from epochcost.report.charts.batch_size import (
    cost_by_batch,
    sweep_by_batch,
    time_by_batch,
)
from epochcost.report.charts.cost_time import cost_against_time
from epochcost.report.charts.figure import Figure
from epochcost.report.charts.latency import latency_by_rate
from epochcost.report.charts.relative import cost_ratios, cpu_against_gpu_figure
from epochcost.report.charts.scaling import speedup_by_vcpus
from epochcost.report.pages.page import Job, Page, Report, stem, workload_uri
from epochcost.report.pages.tokens import cheapest_tokens, token_context, token_figures
from epochcost.report.ranking import contest
from epochcost.report.wording import full_training_words, goal_words
from epochcost.specs.model import Model
from epochcost.specs.published import Published


def pages(report: Report) -> Iterator[Page]:
    """The list, then every workload's page."""
    listed = sorted(report.workloads, key=lambda one: (not one.is_model, one.name.casefold()))
    yield Page(
        uri="models/index.md",
        title="Models",
        template="workloads.md.jinja",
        context={
            "listed": [
                (one, report.contests_of(one), cheapest_tokens(report, one)) for one in listed
            ],
            "request": USUAL,
        },
        description="Every model, and the cheapest machine to train and serve it.",
    )
    for workload in report.workloads:
        yield _page(report, workload)


def _page(report: Report, workload: Workload) -> Page:
    rows = report.rows_of(workload)
    # A row for each price shares its observation, whose hash would read all of it.
    observed = tuple({id(row.observed): row.observed for row in rows}.values())
    model = report.catalogue.models.get(workload.id) if workload.is_model else None
    scaled, compared = _variants(report, workload, observed)
    one_by_one = [row for row in rows if row.observed.batch_size == 1]
    requests = contest(one_by_one, "million")
    relative = cpu_against_gpu(rows, "full") or cpu_against_gpu(rows, "million")
    known = [row for row in rows if row.observed.kind != "predicted"]
    contests = report.contests_of(workload)
    serving = [row for row in report.serving if row.model == workload.id] if model else []
    return Page(
        uri=workload_uri(workload),
        title=workload.name,
        template="workload.md.jinja",
        description=f"What {workload.name} costs to train and to serve, by machine and price plan.",
        context={
            "workload": workload,
            "model": model,
            "gpus_measured": report.gpus_measured,
            "states_bytes": states_bytes(report.catalogue, model) if model else 0,
            "graph": report.inputs.graphs.get(model.graph) if model and model.graph else None,
            **_counted(report, model),
            **token_context(report, model),
            "training": contests.get("train"),
            "serving": contests.get("serve"),
            "requests": requests,
            "beside": {one.name: one for one in requests.machines} if requests else {},
            "accuracy": any(one.model == workload.id for one in report.inputs.trainings.values()),
            "trained": [row for row in known if row.mode == "training"],
            "served": [row for row in known if row.mode == "inference"],
            "without": _without(report, workload),
            "loaded": serving,
            "relative": relative,
            "forward": forward_shares(observed),
            "drawn": energy_by_machine(report.catalogue, rows, energy_goal(rows)),
            "scalings": scaled,
            "comparisons": compared,
            "measured": [one for one in observed if one.kind == "measured"],
            "ratio_unknown": _without_ratio(observed),
            "ratio_worst": _worst_ratio(observed),
            "sources": _sources(report, workload),
            "estimated": report.estimated.get(workload.id, ()) if model else (),
        },
        figures={
            **_figures(report, workload, known, observed),
            **token_figures(report, model, stem(workload)),
            "ratio": _ratio_figure(report, workload),
            "train": job_figure(report, workload, "train"),
            "serve": job_figure(report, workload, "serve"),
            "scaling": speedup_by_vcpus(scaled, identifier=f"{stem(workload)}-scaling"),
            "relative": cpu_against_gpu_figure(
                relative,
                identifier=f"{stem(workload)}-relative",
                job=goal_words(relative.goal) if relative else "",
            ),
            "latency": latency_by_rate(
                serving, identifier=f"{stem(workload)}-latency", colours=report.colours
            ),
        },
    )


def job_figure(report: Report, workload: Workload, job: Job) -> Figure | None:
    """Cost against time of training or of a million inferences, by machine; other pages load it."""
    found = report.contests_of(workload).get(job)
    if found is None:
        return None
    words = _job_words(report, workload, found.goal)
    made = cost_against_time(found, identifier=f"{stem(workload)}-{job}", job=words)
    return replace(made, scripted=True) if made else None


def _ratio_figure(report: Report, workload: Workload) -> Figure | None:
    """The cost over the cheapest's, of training or, without one, of a million inferences."""
    contests = report.contests_of(workload)
    found = contests.get("train") or contests.get("serve")
    if found is None:
        return None
    words = _job_words(report, workload, found.goal)
    return cost_ratios(found, identifier=f"{stem(workload)}-ratio", job=words)


def _job_words(report: Report, workload: Workload, goal: Goal) -> str:
    epochs = (row.observed.epochs for row in report.rows_of(workload) if row.mode == "training")
    return full_training_words(epochs) if goal == "full" else GOAL_WORDS[goal]


def _without(report: Report, workload: Workload) -> Mapping[str, tuple[str, ...]]:
    """The machines that have no time of a model, by the reason; of all, where it has none."""
    if not workload.is_model:
        return {}
    timed = {row.observed.machine.hardware for row in report.rows_of(workload)}
    hardware = report.catalogue.hardware
    why = [one for one in report.predictions.without if one.id == workload.id]
    why = why or [one for one in report.predictions.without if one.id in hardware]
    missing = [
        (name, one.reason)
        for one in why
        for name in ([one.id] if one.id in hardware else hardware)
        if name not in timed
    ]
    return {
        reason: tuple(hardware[name].name for name, _ in found)
        for reason, found in group_by(missing, lambda pair: pair[1]).items()
    }


def _counted(report: Report, model: Model | None) -> Mapping[str, object]:
    """What a pass costs, and the parts of a training step at the first batch size of the spec."""
    counted = arithmetic_of_model(report.catalogue, model, report.inputs.cache) if model else None
    if counted is None or model is None or model.training is None:
        return {"counted": counted, "parts": ()}
    return {"counted": counted, "parts": step_parts(counted, model, model.training.batch_sizes[0])}


def _variants(
    report: Report, workload: Workload, plain: Sequence[Observation]
) -> tuple[tuple[Scaling, ...], tuple[VariantComparison, ...]]:
    """How the work scales with vCPUs, and its other variants beside the plain trial."""
    found = [one for one in report.variants if one.workload == workload]
    catalogue = report.catalogue
    return scalings(catalogue, plain, found), comparisons(catalogue, plain, found)


def _measured_training(observed: Sequence[Observation]) -> list[Observation]:
    return [one for one in observed if one.kind == "measured" and one.mode == "training"]


def _without_ratio(observed: Sequence[Observation]) -> list[int]:
    """The batch sizes whose step was not compared with PyTorch, nor one within a factor of two."""
    found = _measured_training(observed)
    return sorted({one.batch_size for one in found if not (one.step_ratio and one.step_ratio.near)})


def _worst_ratio(observed: Sequence[Observation]) -> Observation | None:
    """The observation whose step loses most against PyTorch, if one loses."""
    slower = [one for one in _measured_training(observed) if _ratio(one) > 1]
    return max(slower, key=_ratio, default=None)


def _ratio(observed: Observation) -> Decimal:
    ratio = observed.step_ratio
    return ratio.value if ratio and ratio.near else Decimal(0)


def _sources(report: Report, workload: Workload) -> list[Published]:
    return [
        source
        for source in report.catalogue.published.values()
        if workload.id in {source.id, source.model}
    ]


def _figures(
    report: Report, workload: Workload, rows: Sequence[Row], observed: Sequence[Observation]
) -> Mapping[str, Figure | None]:
    name, colours = stem(workload), report.colours
    swept = partial(sweep_by_batch, limits=report.inputs.limits, colours=colours)
    observed = [one for one in observed if one.kind != "predicted"]
    return {
        "time_batch": time_by_batch(observed, identifier=f"{name}-time-batch", colours=colours),
        "rate_batch": swept("examples_per_second", observed, identifier=f"{name}-rate-batch"),
        "memory_batch": swept("peak_memory", observed, identifier=f"{name}-memory-batch"),
        "cost_batch": cost_by_batch(rows, identifier=f"{name}-cost-batch", colours=colours),
    }
