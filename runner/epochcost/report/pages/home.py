"""The first page: of a model and a job the cheapest, the fastest and the best machine between.

Below: what an hour of each accelerator costs, which prices moved, and how good predictions are. The
browser shows another model or job from what is published here (`home.js`) and computes nothing.
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
# Shown first where it is among the models: every machine learner knows it.
_KNOWN = "resnet50"
_MOST_MOVED = 6
_TITLES = {"cheapest": "Cheapest", "balanced": "Best trade-off", "fastest": "Fastest"}


def pages(report: Report) -> Iterator[Page]:
    """The first page."""
    asked = {one: found for one in report.workloads if (found := report.contests_of(one))}
    first = _first(asked)
    job: Job = "train" if first and "train" in asked[first] else "serve"
    kinds = [one.kind for one in report.observations]
    yield Page(
        uri="index.md",
        title="What does it cost to train or run your model?",
        template="home.md.jinja",
        description="The cheapest and the fastest machine for a model, at current list prices.",
        context={
            "models": sorted(asked, key=lambda one: (not one.is_model, one.name.casefold())),
            "first": first,
            "job": job,
            "found": asked[first][job] if first else None,
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


def _first(asked: Mapping[Workload, Mapping[Job, Contest]]) -> Workload | None:
    """The one that is known to all, else the one that most machines can train or serve."""
    return max(
        asked,
        key=lambda one: (
            one.is_model and one.id == _KNOWN,
            sum(len(found.competing) for found in asked[one].values()),
        ),
        default=None,
    )


def script(report: Report) -> str:
    """What is shown of each model and job, as a script, which a page from the disk can load."""
    data = {
        f"{one.key}/{job}": _shown(report, one, job, found)
        for one in report.workloads
        for job, found in report.contests_of(one).items()
    }
    return f"window.epochcostHome={json.dumps(data, separators=(',', ':'), ensure_ascii=False)};\n"


def _shown(report: Report, workload: Workload, job: Job, found: Contest) -> dict[str, Any]:
    made = job_figure(report, workload, job)
    return {
        "page": html(workload_uri(workload)),
        "figure": made.id if made else "",
        "title": made.title if made else "",
        "cards": {name: _card(getattr(found, name)) for name in _TITLES},
    }


def _card(one: Contender) -> dict[str, str]:
    ranged = one.cost.low != one.cost.high and one.cost.bounded
    return {
        "cost": one.amount,
        "machine": one_line(one.name),
        "plan": one_line(plan_note(one.price)),
        "page": html(machine_uri(one.hardware)),
        "time": time_words(one.time),
        "between": f"{cost_range(one.cost)}, {time_range(one.time)}" if ranged else "",
        "with": one_line(software_words(one.software, one.precision)),
        "mark": f"{SHAPES[one.mark]}\N{NO-BREAK SPACE}{mark_words(one.mark)}",
    }
