"""The pages of machines: a list of all, and one page for each kind of machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from epochcost.analysis.inputs import RESULTS_URI
from epochcost.analysis.observations import Goal, Workload
from epochcost.analysis.roofline import AchievedRate, MeasuredRoof, achieved_rates, measured_roofs
from epochcost.analysis.rows import Row, answer, group_by
from epochcost.report.charts.batch_size import time_by_batch_on_machine
from epochcost.report.charts.dots import workloads_compared
from epochcost.report.charts.figure import Figure
from epochcost.report.charts.prices import hourly
from epochcost.report.charts.roofline import roofline
from epochcost.report.pages.page import Page, Report, machine_uri
from epochcost.results.environment import Environment
from epochcost.specs.catalogue import current_prices
from epochcost.specs.hardware import Hardware
from epochcost.specs.price import Price

ValueForMoney = Literal["good", "fair", "bad", "alone"]
# Times the cheapest of all: up to which a machine is good value, and from which it is bad.
_GOOD, _BAD = 1.1, 2.0
_DEVICES = ("cuda", "cpu")


@dataclass(frozen=True)
class Standing:
    """Where a machine stands for one goal: its best, and the best of all ``machines``."""

    workload: Workload
    goal: Goal
    here: Row
    best: Row
    machines: int

    @property
    def factor(self) -> float:
        """The machine's cheapest cost over the cheapest of all."""
        ours, theirs = self.here.estimate(self.goal), self.best.estimate(self.goal)
        assert ours is not None, "a standing is among priced rows"
        assert theirs is not None, "a standing is among priced rows"
        return float(ours.mean / theirs.mean)

    @property
    def value(self) -> ValueForMoney:
        """What a reader makes of the factor; of a job timed nowhere else nothing can be said."""
        if self.machines == 1:
            return "alone"
        if self.factor <= _GOOD:
            return "good"
        return "bad" if self.factor > _BAD else "fair"


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
    rows = report.rows_on(hardware)
    prices = report.catalogue.prices_of(hardware.id)
    reached = achieved_rates(report.inputs, hardware, report.observations_on(hardware))
    roofs = {one: measured_roofs(report.inputs, hardware, one) for one in _DEVICES}
    return Page(
        uri=machine_uri(hardware.id),
        title=hardware.name,
        template="machine.md.jinja",
        description=f"What {hardware.name} costs an hour, and what it does for the money.",
        context={
            "hardware": hardware,
            "prices": prices,
            "current": current_prices(prices),
            "training": [row for row in rows if row.mode == "training"],
            "inference": [row for row in rows if row.mode == "inference"],
            "standings": sorted(_standings(report, rows), key=lambda one: one.factor),
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
            "workloads": workloads_compared(
                rows, identifier=f"machine-{hardware.id}-workloads", colours=report.colours
            ),
            "time_batch": time_by_batch_on_machine(
                report.observations_on(hardware),
                identifier=f"machine-{hardware.id}-time-batch",
            ),
        },
    )


def _roofline(
    hardware: Hardware, device: str, reached: Sequence[AchievedRate], roofs: Sequence[MeasuredRoof]
) -> Figure | None:
    mine = [one for one in reached if one.roof.device == device]
    return roofline(mine, roofs, identifier=f"machine-{hardware.id}-roofline-{device}")


def _standings(report: Report, rows: Sequence[Row]) -> Iterator[Standing]:
    here = group_by(rows, lambda row: row.observed.workload)
    for workload in report.workloads:
        for goal, among_all in report.answers_of(workload).items():
            mine, best = answer(here.get(workload, ()), goal), among_all.cheapest
            if mine and mine.cheapest and best:
                yield Standing(workload, goal, mine.cheapest.row, best.row, among_all.machines)


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
