"""The pages of machines: a list of all, and one page for each kind of machine."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from epochcost.analysis.inputs import RESULTS_URI
from epochcost.analysis.observations import Workload
from epochcost.analysis.roofline import AchievedRate, MeasuredRoof, achieved_rates, measured_roofs
from epochcost.report.charts.batch_size import time_by_batch_on_machine
from epochcost.report.charts.figure import Figure
from epochcost.report.charts.prices import hourly
from epochcost.report.charts.roofline import roofline
from epochcost.report.pages.page import Job, Page, Report, machine_uri
from epochcost.report.ranking import Contender
from epochcost.results.environment import Environment
from epochcost.specs.catalogue import current_prices, supersedes
from epochcost.specs.hardware import Hardware
from epochcost.specs.price import Price

_DEVICES = ("cuda", "cpu")
_MOST_ELSEWHERE = 8


@dataclass(frozen=True)
class JobHere:
    """What a job costs on a machine at its cheapest, and on the cheapest of all ``machines``."""

    workload: Workload
    job: Job
    here: Contender
    best: Contender
    quickest: bool
    machines: int

    @property
    def factor(self) -> float:
        """The machine's cost over the least of all."""
        return float(self.here.cost.mean / self.best.cost.mean) if self.best.cost.mean else 1.0


@dataclass(frozen=True)
class PriceThen:
    """A list price on demand on a day, and its share of the highest, in percent."""

    day: dt.date
    hour: Decimal
    percent: int


@dataclass(frozen=True)
class Listed:
    """A machine of the list; ``hour`` is its list price on demand in US dollars."""

    hardware: Hardware
    results: int
    hour: Decimal | None

    @property
    def gpu_hour(self) -> Decimal | None:
        """The same of each of its accelerators."""
        count = sum(one.count for one in self.hardware.accelerators)
        return self.hour / count if self.hour is not None and count else None


def pages(report: Report) -> Iterator[Page]:
    """The list, those with results first, then every machine's page."""
    machines = [listed(report, one) for one in report.catalogue.hardware.values()]
    yield Page(
        uri="machines/index.md",
        title="Machines",
        template="machines.md.jinja",
        context={"listed": sorted(machines, key=lambda one: not one.results)},
        description="Every machine: its CPU and accelerators, its price an hour and its results.",
    )
    for hardware in report.catalogue.hardware.values():
        yield _page(report, hardware)


def listed(report: Report, hardware: Hardware) -> Listed:
    """A machine with its cheapest list price on demand."""
    prices = current_prices(report.catalogue.prices_of(hardware.id))
    hours = (hourly(one) for one in prices if _on_demand(one))
    least = min((hour for hour in hours if hour is not None), default=None)
    return Listed(hardware, len(report.observations_on(hardware)), least)


def _on_demand(price: Price) -> bool:
    return price.plan == "on-demand" and price.currency == "USD" and not price.assumed


def _page(report: Report, hardware: Hardware) -> Page:
    rows = [row for row in report.rows_on(hardware) if row.observed.kind != "predicted"]
    prices = report.catalogue.prices_of(hardware.id)
    observed = [one for one in report.observations_on(hardware) if one.kind != "predicted"]
    reached = achieved_rates(report.inputs, hardware, observed)
    roofs = {one: measured_roofs(report.inputs, hardware, one) for one in _DEVICES}
    jobs = sorted(_jobs(report, hardware), key=lambda one: (not one.here.answers, one.factor))
    return Page(
        uri=machine_uri(hardware.id),
        title=hardware.name,
        template="machine.md.jinja",
        description=f"What {hardware.name} costs an hour, and what you get for the money.",
        context={
            "hardware": hardware,
            "listed": listed(report, hardware),
            "prices": prices,
            "current": current_prices(prices),
            "then": _history(prices),
            "same": _same_accelerator(report, hardware),
            "jobs": jobs,
            "compared": [one for one in jobs if one.machines > 1 and one.here.answers],
            "why": next(
                (one.reason for one in report.predictions.without if one.id == hardware.id), ""
            ),
            "measured": any(one.kind == "measured" for one in observed),
            "training": [row for row in rows if row.mode == "training"],
            "inference": [row for row in rows if row.mode == "inference"],
            "achieved": reached,
            "roofs": roofs["cpu"],
            "hosts": _hosts(report, hardware),
            "elsewhere": _elsewhere(report, hardware),
        },
        figures={
            **{
                f"roofline_{device}": _roofline(hardware, device, reached, roofs[device])
                for device in _DEVICES
            },
            "time_batch": time_by_batch_on_machine(
                observed, identifier=f"machine-{hardware.id}-time-batch"
            ),
        },
    )


def _jobs(report: Report, hardware: Hardware) -> Iterator[JobHere]:
    """Every training and every million requests that the machine has a time for."""
    for workload in report.workloads:
        for job, found in report.contests_of(workload).items():
            here = next((one for one in found.machines if one.hardware == hardware.id), None)
            if here is not None:
                quickest = here is found.fastest
                machines = len(found.machines)
                yield JobHere(workload, job, here, found.cheapest, quickest, machines)


def _history(prices: Sequence[Price]) -> list[PriceThen]:
    """The list prices on demand in the region of today's, the oldest first."""
    today = [one for one in current_prices(prices) if _on_demand(one)]
    if not today:
        return []
    past = [one for one in prices if _on_demand(one) and supersedes(today[0], one)]
    hours = [(one.as_of, hour) for one in (*past, today[0]) if (hour := hourly(one)) is not None]
    most = max((hour for _, hour in hours), default=Decimal(0))
    return [PriceThen(day, hour, round(100 * hour / most)) for day, hour in sorted(hours) if most]


def _same_accelerator(report: Report, hardware: Hardware) -> list[Listed]:
    """The machines with the same accelerator by their price of a GPU-hour, the cheapest first."""
    names = {one.name for one in hardware.accelerators}
    if len(names) != 1:
        return []
    others = (
        listed(report, one)
        for one in report.catalogue.hardware.values()
        if {chip.name for chip in one.accelerators} == names
    )
    priced = sorted(
        (one for one in others if one.gpu_hour is not None), key=lambda one: one.gpu_hour or 0
    )
    kept = [one for one in priced[:_MOST_ELSEWHERE] if one.hardware is not hardware]
    own = [one for one in priced if one.hardware is hardware]
    return sorted([*kept, *own], key=lambda one: one.gpu_hour or 0) if own and kept else []


def _roofline(
    hardware: Hardware, device: str, reached: Sequence[AchievedRate], roofs: Sequence[MeasuredRoof]
) -> Figure | None:
    mine = [one for one in reached if one.roof.device == device]
    return roofline(mine, roofs, identifier=f"machine-{hardware.id}-roofline-{device}")


def _elsewhere(report: Report, hardware: Hardware) -> list[Hardware]:
    """The machines that hosts measured as this one are declared as, where results stand."""
    folder = f"{RESULTS_URI}/{hardware.id}/"
    stored = (one for one in report.inputs.stored if one.uri.startswith(folder))
    declared = dict.fromkeys(one.result.hardware for one in stored)
    return [report.catalogue.hardware[one] for one in declared if one != hardware.id]


def _hosts(report: Report, hardware: Hardware) -> list[Environment]:
    """The latest environment of each host that was measured."""
    mine = report.results_on(hardware)
    ordered = sorted(mine, key=lambda one: one.measurement.started_at)
    latest = {one.environment.fingerprint: one for one in ordered}
    return [result.environment for result in latest.values()]
