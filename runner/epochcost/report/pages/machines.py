"""The pages of machines: a list of all, and one page for each kind of machine."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from epochcost.analysis.inputs import RESULTS_URI
from epochcost.analysis.machines import Machine
from epochcost.analysis.observations import Observation, Workload
from epochcost.analysis.odds import Odds, scenarios
from epochcost.analysis.roofline import achieved_rates, measured_roofs
from epochcost.analysis.rows import Row, group_by
from epochcost.report.charts.batch_size import time_by_batch_on_machine
from epochcost.report.list_prices import Listed, list_prices, past_prices, same_accelerator
from epochcost.report.pages.page import Job, Page, Report, machine_uri
from epochcost.report.ranking import Contender
from epochcost.results.environment import Environment
from epochcost.specs.catalogue import current_prices
from epochcost.specs.hardware import Hardware
from epochcost.specs.price import Price


@dataclass(frozen=True)
class JobHere:
    """What a job costs on a machine at its cheapest, and on the cheapest of all ``machines``.

    ``odds`` are those of the cheapest.
    """

    workload: Workload
    job: Job
    here: Contender
    best: Contender
    quickest: bool
    machines: int
    odds: Odds[Machine] | None

    @property
    def factor(self) -> float:
        """The machine's cost over the least of all."""
        return float(self.here.cost.mean / self.best.cost.mean) if self.best.cost.mean else 1.0

    @property
    def likely(self) -> str:
        """Nine of ten joint draws of the factor, and how often it is below 1; empty of none."""
        machine = self.here.row.observed.machine if self.here.row else None
        if self.odds is None or machine is None or machine not in self.odds.ratios:
            return ""
        low, _, high = self.odds.ratios[machine]
        cheaper = f"cheaper here in {scenarios(self.odds.cheaper[machine])}"
        return cheaper if low == high else f"{low:.3g} to {high:.3g}, {cheaper}"


def pages(report: Report) -> Iterator[Page]:
    """The list, those with results first, then every machine's page."""
    prices = list_prices(report.catalogue)
    results = Counter(one.machine.hardware for one in report.observations)
    listed = sorted(prices.values(), key=lambda one: not results[one.hardware.id])
    yield Page(
        uri="machines/index.md",
        title="Machines",
        template="machines.md.jinja",
        context={"listed": listed, "results": results},
        description="Every machine: its CPU and accelerators, its price an hour and its results.",
    )
    timed = (row for row in report.rows if row.observed.kind != "predicted")
    rows = group_by(timed, lambda row: row.observed.machine.hardware)
    observed = group_by(report.observations, lambda one: one.machine.hardware)
    for hardware in report.catalogue.hardware.values():
        mine, timed_here = rows.get(hardware.id, ()), observed.get(hardware.id, ())
        yield _page(report, hardware, prices, mine, timed_here)


def _page(
    report: Report,
    hardware: Hardware,
    listed: Mapping[str, Listed],
    rows: Sequence[Row],
    observations: Sequence[Observation],
) -> Page:
    prices = report.catalogue.prices_of(hardware.id)
    current = current_prices(prices)
    observed = [one for one in observations if one.kind != "predicted"]
    reached = achieved_rates(report.inputs, hardware, observed)
    jobs = sorted(_jobs(report, hardware), key=lambda one: (not one.here.answers, one.factor))
    return Page(
        uri=machine_uri(hardware.id),
        title=hardware.name,
        template="machine.md.jinja",
        description=f"What {hardware.name} costs an hour, and what you get for the money.",
        context={
            "hardware": hardware,
            "listed": listed[hardware.id],
            "prices": prices,
            "current": current,
            "then": past_prices(prices),
            "same": same_accelerator([*listed.values()], hardware),
            "jobs": jobs,
            "compared": [one for one in jobs if one.machines > 1 and one.here.answers],
            "unranked": _unranked(current, jobs),
            "why": next(
                (one.reason for one in report.predictions.without if one.id == hardware.id), ""
            ),
            "measured": any(one.kind == "measured" for one in observed),
            "training": [row for row in rows if row.mode == "training"],
            "inference": [row for row in rows if row.mode == "inference"],
            "achieved": reached,
            "roofs": measured_roofs(report.inputs, hardware, "cpu"),
            "hosts": _hosts(report, hardware),
            "elsewhere": _elsewhere(report, hardware),
        },
        figures={
            "time_batch": time_by_batch_on_machine(
                observed, identifier=f"machine-{hardware.id}-time-batch"
            ),
        },
    )


def _unranked(prices: Sequence[Price], jobs: Sequence[JobHere]) -> str:
    """Why none of its jobs is compared: its prices, or what is wrong with the nearest job."""
    of_prices = [one.reservation for one in prices]
    if of_prices and all(of_prices):
        return of_prices[0]
    return next((remark for one in jobs for remark in one.here.remarks), "")


def _jobs(report: Report, hardware: Hardware) -> Iterator[JobHere]:
    """Every training and every million requests that the machine has a time for.

    In the software whose answer is known best of those that have one.
    """
    for workload in report.workloads:
        for job, known in report.contests_of(workload).items():
            ways = (
                (found, one)
                for found in (known, *known.beside)
                for one in found.machines
                if one.hardware == hardware.id
            )
            for found, here in itertools.islice(ways, 1):
                quickest = here is found.fastest
                machines = len(found.machines)
                yield JobHere(workload, job, here, found.cheapest, quickest, machines, found.odds)


def _elsewhere(report: Report, hardware: Hardware) -> list[Hardware]:
    """The machines that hosts measured as this one are declared as, where results stand."""
    folder = f"{RESULTS_URI}/{hardware.id}/"
    stored = (one for one in report.inputs.stored if one.uri.startswith(folder))
    declared = dict.fromkeys(one.result.hardware for one in stored)
    return [report.catalogue.hardware[one] for one in declared if one != hardware.id]


def _hosts(report: Report, hardware: Hardware) -> list[Environment]:
    """The latest environment of each host that was measured."""
    stored = (one.result for one in report.inputs.stored if one.result.hardware == hardware.id)
    ordered = sorted(stored, key=lambda one: one.measurement.started_at)
    latest = {one.environment.fingerprint: one for one in ordered}
    return [result.environment for result in latest.values()]
