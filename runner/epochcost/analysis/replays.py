"""Trainings on spot machines of the past: which work, saved how, over which trace, at what cost.

Reads what a replay needs of the catalogue and of known times, for the command and for the page.
How a policy acts is left to `cost.replay`, how policies compare to `cost.policies`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from types import MappingProxyType

import numpy as np

from epochcost.analysis.arithmetic import BYTES_PER_NUMBER, arithmetic_of_model, optimizer_states
from epochcost.analysis.observations import Observation
from epochcost.cost import Time, Usage, share
from epochcost.cost.market import InterruptionRate, Market
from epochcost.cost.policies import Comparison, compare_policies, saving_interval
from epochcost.cost.replay import (
    POLICIES,
    MovingJob,
    Policy,
    evenly_spaced_starts,
    expected_cost,
    replay,
)
from epochcost.errors import InputError
from epochcost.specs.catalogue import Catalogue, current_prices
from epochcost.specs.model import Model
from epochcost.specs.prices.traces import Floats, Trace, read_traces
from epochcost.specs.replay import ReplayedJob
from epochcost.units import SECONDS_PER_HOUR

POLICY_WORDS: Mapping[Policy, str] = MappingProxyType(
    {
        "stay": "staying",
        "cheapest": "moving when interrupted",
        "gap": "moving when it pays, too",
        "deadline": "falling back to on demand",
    }
)
_KINDS = ("measured", "published", "predicted")
_GIGABYTE = 1e9
_STARTS = 1000
_DRAWN_STARTS = 120
# Times the interval between saves that a job has.
_FACTORS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
# Halvings of the logarithm between once in a hundred years and every second.
_HALVINGS = 60
_MOST_PER_HOUR, _LEAST_PER_HOUR = 3600.0, 1e-6


@dataclass(frozen=True, slots=True)
class Work:
    """How long a job works, by which kind of knowledge, and how much is saved of it."""

    name: str
    time: Time
    known: str
    state_gb: float


@dataclass(frozen=True, slots=True)
class SavingTerms:
    """What saving, starting and moving take; without an interval it is Daly's optimum."""

    disk_gb_per_second: float = 0.5
    network_gb_per_second: float = 0.1
    transfer_price_per_gb: float = 0.0
    restart_seconds: float = 300.0
    interval_seconds: float | None = None
    notice_seconds: float = 0.0
    deadline_seconds: float | None = None

    def job(self, work: Work, market: Market, on_demand_per_hour: float | None) -> MovingJob:
        """The job of some work over a market; raises InputError as `MovingJob` does."""
        save = work.state_gb / self.disk_gb_per_second
        return MovingJob(
            work_seconds=float(work.time.mean),
            interval_seconds=self.interval_seconds or saving_interval(market, save),
            save_seconds=save,
            restart_seconds=self.restart_seconds,
            move_seconds=work.state_gb / self.network_gb_per_second,
            move_charge=work.state_gb * self.transfer_price_per_gb,
            on_demand_per_hour=on_demand_per_hour,
            deadline_seconds=self.deadline_seconds,
            notice_seconds=self.notice_seconds,
        )


def work_of_model(
    catalogue: Catalogue,
    observations: Iterable[Observation],
    model: Model,
    hardware: str,
    state_gb: float | None = None,
) -> Work:
    """All epochs of a model by the best known time: measured before published before predicted.

    Raises InputError where no time is known, or no size of what is saved.
    """
    found = [
        one
        for one in observations
        if (one.workload.id, one.machine.hardware) == (model.id, hardware)
        and one.full is not None
        and one.epochs_known
    ]
    if not found:
        raise InputError(
            f"{model.id}: expected a time of its training on {hardware}, found none: measure it "
            "there, or replay so many --hours"
        )
    best = min(found, key=lambda one: (_KINDS.index(one.kind), one.full and one.full.mean))
    assert best.full is not None, "chosen as it has one"
    size = state_gb or _state_gb(catalogue, model)
    return Work(f"{model.id} on {hardware}", best.full, best.kind, size)


def _state_gb(catalogue: Catalogue, model: Model) -> float:
    """Its parameters and what the optimizer keeps of each, in fp32."""
    counted = arithmetic_of_model(catalogue, model)
    if counted is None or model.training is None:
        raise InputError(f"{model.id}: expected a model with a graph, found none: give --state-gb")
    numbers = counted.parameters * (1 + optimizer_states(model.training.optimizer))
    return numbers * BYTES_PER_NUMBER / _GIGABYTE


def on_demand_per_hour(catalogue: Catalogue, hardware: str, currency: str) -> float | None:
    """The least price of an hour of a machine on demand; None where none is known."""
    machine = catalogue.machine(hardware)
    hour = Usage(Decimal(SECONDS_PER_HOUR), 1, machine.vcpus, bool(machine.accelerators))
    known = [
        share(price, hour).total
        for price in current_prices(catalogue.prices_of(machine.id))
        if price.plan == "on-demand" and price.currency == currency
    ]
    return float(min(known)) if known else None


def policies_of(job: MovingJob) -> list[Policy]:
    """Those that a job can have: a deadline needs its price on demand."""
    ready = job.on_demand_per_hour is not None and job.deadline_seconds is not None
    return [one for one in POLICIES if one != "deadline" or ready]


@dataclass(frozen=True, slots=True)
class Replayed:
    """A declared replay, played."""

    spec: ReplayedJob
    trace: Trace
    market: Market
    work: Work
    job: MovingJob
    comparison: Comparison

    @property
    def home(self) -> int:
        """The number of the zone that is best to stay in."""
        return self.market.zones.index(str(self.comparison.results[0].zone))

    def costs_by_start(self) -> Iterator[tuple[Policy, float, float]]:
        """Policy, start in seconds since 1970, and cost, of starts that end within the trace.

        A policy whose costs are those of one before it is left out.
        """
        starts = evenly_spaced_starts(self.market, self.job, _DRAWN_STARTS)
        home = np.full(len(starts), self.home)
        shown: list[Floats] = []
        for one in self.comparison.results:
            stays = one.policy == "stay"
            outcome = replay(self.market, self.job, one.policy, starts, home if stays else None)
            if any(np.array_equal(outcome.cost, before) for before in shown):
                continue
            shown.append(outcome.cost)
            for at in np.flatnonzero(outcome.finished).tolist():
                yield one.policy, self.trace.start + float(starts[at]), float(outcome.cost[at])

    def costs_by_interval(self) -> Iterator[tuple[float, float, float]]:
        """Interval in seconds, mean cost of staying as replayed, and by the closed form.

        Of the starts that end at every interval; those of one stretch, or for which half the trace
        has no room, are left out. Nothing where a notice is enough to save in.
        """
        if self.job.saves_on_notice:
            return
        jobs = [
            replace(self.job, interval_seconds=self.job.interval_seconds * factor)
            for factor in _FACTORS
        ]
        half = self.market.end / 2
        jobs = [one for one in jobs if one.undisturbed_seconds <= half and one.stretches > 1]
        if not jobs:
            return
        longest = max(jobs, key=lambda job: job.undisturbed_seconds)
        starts = evenly_spaced_starts(self.market, longest, _STARTS)
        home = np.full(len(starts), self.home)
        played = [replay(self.market, job, "stay", starts, home) for job in jobs]
        ended = np.all([one.finished for one in played], axis=0)
        rate, price = self.market.interruption_rate(self.home), self.market.mean_price(self.home)
        for job, outcome in zip(jobs, played, strict=True):
            if ended.any():
                closed = expected_cost(job, rate, price)
                yield job.interval_seconds, float(outcome.cost[ended].mean()), closed

    def break_even_per_hour(self) -> float | None:
        """Interruptions an hour from which on staying costs more than on demand.

        By the closed form at the mean price of the best zone; None where there is no price on
        demand, or spot is dearer however seldom it is interrupted. The interval is Daly's at each
        rate.
        """
        on_demand = self.comparison.on_demand
        if on_demand is None or self.cost_at(_LEAST_PER_HOUR) >= on_demand:
            return None
        low, high = _LEAST_PER_HOUR, _MOST_PER_HOUR
        for _ in range(_HALVINGS):
            middle = (low * high) ** 0.5
            cheaper = self.cost_at(middle) < on_demand
            low, high = (middle, high) if cheaper else (low, middle)
        return low

    def cost_at(self, per_hour: float) -> float:
        """What staying is expected to cost at a rate of interruptions, saving as is best then."""
        rate = InterruptionRate("", 1, 1 / per_hour)
        between = SECONDS_PER_HOUR / per_hour
        interval = max((2 * self.job.save_seconds * between) ** 0.5, 1.0)
        job = replace(self.job, interval_seconds=interval)
        return expected_cost(job, rate, self.market.mean_price(self.home))


def play(catalogue: Catalogue, observations: Sequence[Observation], spec: ReplayedJob) -> Replayed:
    """Play a declared replay; raises InputError for a trace or a job that does not do."""
    folder = catalogue.files[f"replays/{spec.id}"].parent
    trace = read_traces([folder / spec.trace], spec.zones, price=_float(spec.spot_price))
    market = Market(trace, bid=_float(spec.bid))
    model = catalogue.model(spec.model)
    work = work_of_model(catalogue, observations, model, spec.hardware, _float(spec.state_gb))
    job = _terms(spec).job(
        work, market, on_demand_per_hour(catalogue, spec.hardware, trace.currency)
    )
    compared = compare_policies(market, job, work.time, policies_of(job), _STARTS)
    return Replayed(spec, trace, market, work, job, compared)


def _terms(spec: ReplayedJob) -> SavingTerms:
    deadline = spec.deadline_hours
    return SavingTerms(
        disk_gb_per_second=float(spec.disk_gb_per_second),
        network_gb_per_second=float(spec.network_gb_per_second),
        transfer_price_per_gb=float(spec.transfer_price_per_gb),
        restart_seconds=float(spec.restart_seconds),
        interval_seconds=_float(spec.interval_seconds),
        notice_seconds=float(spec.notice_seconds),
        deadline_seconds=None if deadline is None else float(deadline) * SECONDS_PER_HOUR,
    )


def _float(value: Decimal | None) -> float | None:
    return None if value is None else float(value)
