"""Make the pages of machines: a list of all, and a page for each kind of machine."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from epochcost.analysis.machines import Machine
from epochcost.analysis.observations import Observation, Workload
from epochcost.analysis.odds import Odds, scenarios, times_over
from epochcost.analysis.roofline import achieved_rates, measured_roofs
from epochcost.analysis.rows import Row, other_currency
from epochcost.plan.variant import CUDA_NEEDS_X86
from epochcost.report.list_prices import Listed, list_prices, past_prices, same_accelerator
from epochcost.report.pages.page import Job, Page, Report, machine_uri
from epochcost.report.ranking import Contender
from epochcost.report.wording import render_times
from epochcost.results.environment import Environment
from epochcost.specs.catalogue import current_prices
from epochcost.specs.hardware import Hardware
from epochcost.specs.price import Price
from epochcost.statistics import group_by
from epochcost.units import money, render_count


@dataclass(frozen=True)
class JobHere:
    """A job at its lowest cost on a machine (``here``) and on the cheapest machine (``best``).

    ``best`` and the fastest machine are those of the model's page, whatever software is known
    ``here``. ``machines`` is the number of compared machines, ``quickest`` whether ``here`` is the
    fastest. ``odds`` is None if ``here`` is known with other software than ``best``.
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
        """The cost ``here`` ÷ ``best``; infinite if only ``best`` costs nothing, 1 if both do."""
        if self.here.cost.mean and not self.best.cost.mean:
            return math.inf
        return times_over(self.here.cost.mean, self.best.cost.mean)

    @property
    def likely(self) -> str:
        """State the 90 % interval of costs ``here`` / ``best``, and how often ``here`` is cheaper.

        Empty if the odds of ``here`` are unknown, or if ``best`` costs nothing.
        """
        if not self.best.cost.mean:
            return ""
        machine = self.here.row.observed.machine if self.here.row else None
        if self.odds is None or machine is None or machine not in self.odds.ratios:
            return ""
        low, high = map(render_times, self.odds.ratios[machine])
        cheaper = f"cheaper here in {scenarios(self.odds.cheaper[machine])}"
        return cheaper if low == high else f"{low} to {high}, {cheaper}"


def pages(report: Report) -> Iterator[Page]:
    """Yield the list of machines, those with jobs first, and then every machine's page."""
    prices = list_prices(report.catalogue)
    jobs = {
        name: sorted(
            _jobs_on_machine(report, hardware), key=lambda job: (not job.here.answers, job.factor)
        )
        for name, hardware in report.catalogue.hardware.items()
    }
    listed = sorted(prices.values(), key=lambda machine: not jobs[machine.hardware.id])
    yield Page(
        uri="machines/index.md",
        title="Machines",
        template="machines.md.jinja",
        context={
            "listed": listed,
            "jobs": jobs,
            "gpu_memory": report.gpu_memory,
            "prices": {
                name: current_prices(report.catalogue.prices_of(name))
                for name in report.catalogue.hardware
            },
        },
        description="Every machine: its CPU and accelerators, its price an hour and its jobs.",
    )
    timed = (row for row in report.rows if row.observed.kind != "predicted")
    rows = group_by(timed, lambda row: row.observed.machine.hardware)
    known = (observed for observed in report.observations if observed.kind != "predicted")
    observed = group_by(known, lambda observed: observed.machine.hardware)
    for hardware in report.catalogue.hardware.values():
        mine, timed_here = rows.get(hardware.id, ()), observed.get(hardware.id, ())
        yield _page(report, hardware, prices, jobs[hardware.id], mine, timed_here)


def _page(
    report: Report,
    hardware: Hardware,
    listed: Mapping[str, Listed],
    jobs: Sequence[JobHere],
    rows: Sequence[Row],
    observed: Sequence[Observation],
) -> Page:
    prices = report.catalogue.prices_of(hardware.id)
    current = current_prices(prices)
    compared = [job for job in jobs if job.machines > 1 and job.here.answers]
    wins = {
        "cheapest": sum(job.factor == 1 for job in compared),
        "fastest": sum(job.quickest for job in compared),
    }
    return Page(
        uri=machine_uri(hardware.id),
        title=hardware.name,
        template="machine.md.jinja",
        description=_cost_sentence(listed[hardware.id], wins, len(compared)),
        context={
            "hardware": hardware,
            "listed": listed[hardware.id],
            "prices": prices,
            "current": current,
            "then": past_prices(prices, listed[hardware.id].currency),
            "same": same_accelerator([*listed.values()], hardware),
            "jobs": jobs,
            "compared": compared,
            "wins": wins,
            "unranked": _reason_not_ranked(current, jobs, report.currency),
            "why": next(
                (gap.reason for gap in report.predictions.without if gap.id == hardware.id), ""
            ),
            "unable": _reason_not_measurable(hardware),
            "measured": any(trial.kind == "measured" for trial in observed),
            "trained_here": any(
                training.hardware == hardware.id for training in report.inputs.trainings.values()
            ),
            "training": [row for row in rows if row.mode == "training"],
            "inference": [row for row in rows if row.mode == "inference"],
            "achieved": achieved_rates(report.inputs, hardware, observed),
            "roofs": measured_roofs(report.inputs, hardware, "cpu"),
            "hosts": _latest_host_environments(report, hardware),
        },
    )


def _cost_sentence(machine: Listed, wins: Mapping[str, int], jobs: int) -> str:
    hour = "has no price on demand"
    if machine.hour is not None:
        hour = f"costs {money(machine.hour, machine.currency)} an hour on demand"
    ranks = " and ".join(f"the {rank} for {count}" for rank, count in wins.items() if count)
    of_jobs = f", and is {ranks} of {render_count(jobs, 'job')}" if ranks else ""
    return f"{machine.hardware.name} {hour}{of_jobs}."


def _reason_not_measurable(hardware: Hardware) -> str:
    for chip in hardware.accelerators:
        if not chip.compute_capability:
            return (
                "ONNX Runtime needs the compute_capability of an NVIDIA GPU, and none is known of "
                f"{chip.name}"
            )
    if hardware.is_module_with_arm:
        return CUDA_NEEDS_X86
    return ""


def _reason_not_ranked(
    prices: Sequence[Price], jobs: Sequence[JobHere], usual_currency: str | None
) -> str:
    of_prices = [price.reservation for price in prices]
    if of_prices and all(of_prices):
        return of_prices[0]
    if prices and all(price.currency != usual_currency for price in prices):
        return other_currency(prices[0].currency, usual_currency)
    sole = "no other machine has a known time of its jobs" if jobs else ""
    return next((job.here.reservation for job in jobs if not job.here.answers), sole)


def _jobs_on_machine(report: Report, hardware: Hardware) -> Iterator[JobHere]:
    for workload, contests in report.contests.items():
        for job, leading in contests.items():
            ways = (
                (contest, contender)
                for contest in (leading, *leading.beside)
                for contender in contest.machines
                if contender.hardware == hardware.id
            )
            # A job counts in the first contest that has this machine.
            for contest, here in itertools.islice(ways, 1):
                leads = contest is leading
                yield JobHere(
                    workload,
                    job,
                    here,
                    best=leading.cheapest,
                    quickest=here is leading.fastest,
                    machines=len(leading.machines) + (not leads),
                    odds=contest.odds if leads else None,
                )


def _latest_host_environments(report: Report, hardware: Hardware) -> list[Environment]:
    results = (entry.result for entry in report.inputs.stored)
    matches = (result for result in results if result.hardware == hardware.id)
    ordered = sorted(matches, key=lambda result: result.measurement.started_at)
    latest = {result.environment.fingerprint: result for result in ordered}
    return [result.environment for result in latest.values()]
