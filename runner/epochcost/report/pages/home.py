"""The home page: the cheapest, the fastest and a balanced machine for a model and a job.

Below: hourly prices of accelerators, changed prices, and the accuracy of predictions. The browser
shows other models and jobs from published data (`home.js`) and computes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from epochcost.analysis.observations import Workload
from epochcost.analysis.prediction_trust import headline
from epochcost.report.escape import one_line
from epochcost.report.list_prices import accelerators, list_prices, moved_prices
from epochcost.report.pages.page import Job, Page, Report, html, machine_uri, workload_uri
from epochcost.report.pages.workload import job_figure
from epochcost.report.ranking import Contender, Contest
from epochcost.report.wording import (
    SHAPES,
    cost_range,
    mark_words,
    plan_note,
    time_range,
    time_words,
)
from epochcost.units import software_words

URI = "data/home.js"
# The first example, if it is among the models, because every practitioner knows it.
_KNOWN = "resnet50"
_MOST_MOVED = 6
_JOBS: Mapping[Job, str] = {
    "train": "train it once",
    "serve": "answer a million requests",
    "tokens": "serve a million tokens at full load",
    "lora": "fine-tune it by LoRA",
}
# Pages on which readers enter their own numbers; else the calculator.
_OWN: Mapping[Job, str] = {"tokens": "#your-traffic", "lora": "#fine-tuning"}
_TITLES = {"cheapest": "Cheapest", "balanced": "Best trade-off", "fastest": "Fastest"}


def pages(report: Report) -> Iterator[Page]:
    """The home page."""
    contests = {
        workload: jobs for workload in report.workloads if (jobs := report.contests_of(workload))
    }
    first = _first(contests)
    job: Job = next(iter(contests[first])) if first else "train"
    kinds = [observed.kind for observed in report.observations]
    yield Page(
        uri="index.md",
        title="What does it cost to train or run your model?",
        template="home.md.jinja",
        description="The cheapest and the fastest machine for a model, at current list prices.",
        context={
            "models": sorted(
                contests, key=lambda workload: (not workload.is_model, workload.name.casefold())
            ),
            "first": first,
            "job": job,
            "jobs": _JOBS,
            "contest": contests[first][job] if first else None,
            "titles": _TITLES,
            "newest": max(
                (row.price.as_of for row in report.rows if row.price and not row.assumed),
                default=None,
            ),
            "counts": {kind: kinds.count(kind) for kind in ("measured", "published", "predicted")},
            "report": report,
            "chips": accelerators([*list_prices(report.catalogue).values()]),
            "moved": moved_prices(report.catalogue)[:_MOST_MOVED],
            "trust": headline(report.trust) if report.trust else None,
            "data": URI,
            "gpus_measured": report.gpus_measured,
        },
        figures={"answer": job_figure(report, first, job) if first else None},
    )


def _first(contests: Mapping[Workload, Mapping[Job, Contest]]) -> Workload | None:
    """The best known model, else the workload that most machines can train or serve."""
    return max(
        contests,
        key=lambda workload: (
            workload.is_model and workload.id == _KNOWN,
            sum(len(contest.competing) for contest in contests[workload].values()),
        ),
        default=None,
    )


def script(report: Report) -> str:
    """Cards of each model and job, as a script that a page from the disk can load."""
    data = {
        f"{workload.key}/{job}": _entry(report, workload, job, contest)
        for workload in report.workloads
        for job, contest in report.contests_of(workload).items()
    }
    return f"window.epochcostHome={json.dumps(data, separators=(',', ':'), ensure_ascii=False)};\n"


def _entry(report: Report, workload: Workload, job: Job, contest: Contest) -> dict[str, Any]:
    figure = job_figure(report, workload, job)
    page = html(workload_uri(workload))
    question = f"calculator.html?model={workload.key}&job={job}"
    return {
        "page": page,
        "own": page + _OWN[job] if job in _OWN else question,
        "figure": figure.id if figure else "",
        "title": figure.title if figure else "",
        "cards": {name: _card(getattr(contest, name)) for name in _TITLES},
    }


def _card(contender: Contender) -> dict[str, str]:
    ranged = contender.cost.low != contender.cost.high and contender.cost.bounded
    return {
        "cost": contender.amount,
        "machine": one_line(contender.name),
        "plan": one_line(plan_note(contender.price)),
        "page": html(machine_uri(contender.hardware)),
        "time": time_words(contender.time),
        "between": f"{cost_range(contender.cost)}, {time_range(contender.time)}" if ranged else "",
        "with": one_line(software_words(contender.software, contender.precision)),
        "mark": f"{SHAPES[contender.mark]}\N{NO-BREAK SPACE}{mark_words(contender.mark)}",
    }
