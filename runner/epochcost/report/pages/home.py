"""The first page: of a model and a job the cheapest, the fastest and the best machine between.

Below: what an hour of each accelerator costs, which prices moved, and how good predictions are. The
browser shows another model or job from what is published here (`home.js`) and computes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from epochcost.analysis.observations import Workload
from epochcost.analysis.prediction_trust import headline
from epochcost.report.charts.prices import hourly
from epochcost.report.escape import one_line
from epochcost.report.pages.machines import Listed, listed
from epochcost.report.pages.page import Job, Page, Report, machine_uri, workload_uri
from epochcost.report.pages.workloads import job_figure
from epochcost.report.ranking import Contender, Contest
from epochcost.report.wording import SHAPES, cost_range, mark_words, time_range, time_words
from epochcost.specs.catalogue import current_prices, supersedes
from epochcost.specs.hardware import Hardware
from epochcost.specs.price import Price

URI = "data/home.js"
# Shown first where it is among the models: every machine learner knows it.
_KNOWN = "resnet50"
_MOST_MOVED, _MOST_CHIPS = 6, 12
_TITLES = {"cheapest": "Cheapest", "balanced": "Best trade-off", "fastest": "Fastest"}


@dataclass(frozen=True)
class Moved:
    """A price that took the place of an older one of the same plan."""

    hardware: Hardware
    price: Price
    before: Decimal
    now: Decimal

    @property
    def change(self) -> Decimal:
        """The relative change of an hour's price."""
        return self.now / self.before - 1


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
            "newest": max((row.price.as_of for row in report.rows if row.price), default=None),
            "counts": {kind: kinds.count(kind) for kind in ("measured", "published", "predicted")},
            "report": report,
            "chips": _chips(report),
            "moved": moved_prices(report)[:_MOST_MOVED],
            "trust": headline(report.inputs.trust) if report.inputs.trust else None,
            "data": URI,
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
        f"{_key(one)}/{job}": _shown(report, one, job, found)
        for one in report.workloads
        for job, found in report.contests_of(one).items()
    }
    return f"window.epochcostHome={json.dumps(data, separators=(',', ':'), ensure_ascii=False)};\n"


def _key(workload: Workload) -> str:
    return workload.id if workload.is_model else f"published/{workload.id}"


def _shown(report: Report, workload: Workload, job: Job, found: Contest) -> dict[str, Any]:
    made = job_figure(report, workload, job)
    return {
        "page": workload_uri(workload).removesuffix("md") + "html",
        "figure": made.id if made else "",
        "title": made.title if made else "",
        "cards": {name: _card(getattr(found, name)) for name in _TITLES},
    }


def _card(one: Contender) -> dict[str, str]:
    ranged = one.cost.low != one.cost.high and one.cost.bounded
    return {
        "cost": one.amount,
        "machine": one_line(one.name),
        "plan": one_line(f"{one.price.provider}, {one.price.plan}"),
        "page": machine_uri(one.hardware).removesuffix("md") + "html",
        "time": time_words(one.time),
        "between": f"{cost_range(one.cost)}, {time_range(one.time)}" if ranged else "",
        "mark": f"{SHAPES[one.mark]}\N{NO-BREAK SPACE}{mark_words(one.mark)}",
    }


def _chips(report: Report) -> list[Listed]:
    """The cheapest hour of the accelerators that most machines have, the dearest first."""
    found: dict[str, list[Listed]] = {}
    for hardware in report.catalogue.hardware.values():
        one = listed(report, hardware)
        # A core of a TPU is no GPU.
        if one.gpu_hour is not None and all(
            chip.compute_capability for chip in hardware.accelerators
        ):
            found.setdefault(hardware.accelerators[0].name, []).append(one)
    common = sorted(found.values(), key=len, reverse=True)[:_MOST_CHIPS]
    cheapest = (min(some, key=lambda one: one.gpu_hour or 0) for some in common)
    return sorted(cheapest, key=lambda one: one.gpu_hour or 0, reverse=True)


def moved_prices(report: Report) -> list[Moved]:
    """The prices that took the place of others, the last first."""
    found = []
    for hardware in report.catalogue.hardware.values():
        prices = report.catalogue.prices_of(hardware.id)
        for price in current_prices(prices):
            older = [one for one in prices if supersedes(price, one)]
            before = hourly(max(older, key=lambda one: one.as_of)) if older else None
            now = hourly(price)
            if now is not None and before and now != before and not price.assumed:
                found.append(Moved(hardware, price, before, now))
    return sorted(found, key=lambda one: one.price.as_of, reverse=True)
