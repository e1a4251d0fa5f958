"""Replay declared trainings on spot machines; `cost.replay` simulates jobs and policies."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal

from epochcost.analysis.arithmetic import BYTES_PER_NUMBER, arithmetic_of_model, optimizer_states
from epochcost.analysis.observations import KINDS, Observation
from epochcost.cost import replay
from epochcost.cost.bill import share
from epochcost.cost.estimate import Time
from epochcost.cost.lines import Usage
from epochcost.cost.market import Market
from epochcost.errors import InputError
from epochcost.specs.catalogue import Catalogue, current_prices
from epochcost.specs.model import Model
from epochcost.specs.prices.traces import Trace, read_trace
from epochcost.specs.reference_data import ReplayedJob
from epochcost.units import SECONDS_PER_HOUR

_GIGABYTE = 1e9
_STARTS = 1000
# Halvings of the logarithm between once in a hundred years and every second.
_HALVINGS = 60
_MOST_PER_HOUR, _LEAST_PER_HOUR = 3600.0, 1e-6


@dataclass(frozen=True, slots=True)
class Replayed:
    """The outcome of a replay, with a result for each policy.

    The first of ``results`` is for staying in the best zone. ``time`` excludes interruptions;
    ``kind`` says whether this time is measured, published or predicted. A checkpoint has
    ``state_gb`` gigabytes.
    """

    spec: ReplayedJob
    trace: Trace
    market: Market
    time: Time
    kind: str
    state_gb: float
    job: replay.MovingJob
    results: tuple[replay.PolicyResult, ...]

    @property
    def home(self) -> int:
        """The index in ``market.zones`` of the best zone for a training that never moves.

        The best zone has the most replays that end within the trace, then the lowest mean cost.
        """
        return self.market.zones.index(str(self.results[0].zone))

    def break_even_per_hour(self) -> float | None:
        """Interruptions an hour above which staying on spot costs more than on demand.

        None if there is no on-demand price, or if spot costs more even without interruptions.
        """
        on_demand = self.job.on_demand_cost
        if on_demand is None or self.cost_at(_LEAST_PER_HOUR) >= on_demand:
            return None
        low, high = _LEAST_PER_HOUR, _MOST_PER_HOUR
        for _ in range(_HALVINGS):
            middle = (low * high) ** 0.5
            cheaper = self.cost_at(middle) < on_demand
            low, high = (middle, high) if cheaper else (low, middle)
        return low

    def cost_at(self, per_hour: float) -> float:
        """Expected cost of the job if it stays on spot, at ``per_hour`` interruptions an hour.

        The price is the mean spot price in the zone ``home``. The saves follow Young's rule.
        """
        between = SECONDS_PER_HOUR / per_hour
        interval = max((2 * self.job.save_seconds * between) ** 0.5, 1.0)
        job = replace(self.job, interval_seconds=interval)
        return replay.expected_cost(job, per_hour, self.market.mean_price(self.home))


def play(catalogue: Catalogue, observations: Iterable[Observation], spec: ReplayedJob) -> Replayed:
    """Simulate a declared training on spot machines, over a recorded trace of prices.

    Raises InputError if no observation has the training's time, or if the trace or job is invalid.
    """
    trace = read_trace(catalogue.files[f"replays/{spec.id}"].parent / spec.trace)
    market = Market(trace)
    timed = _shortest_full_training(observations, spec)
    assert timed.full is not None, "only times of full trainings are chosen"
    state_gb = float(
        spec.state_gb or _parameters_and_states_gb(catalogue, catalogue.model(spec.model))
    )
    save = state_gb / float(spec.disk_gb_per_second)
    deadline = spec.deadline_hours
    job = replay.MovingJob(
        work_seconds=float(timed.full.mean),
        interval_seconds=float(spec.interval_seconds or replay.saving_interval(market, save)),
        save_seconds=save,
        restart_seconds=float(spec.restart_seconds),
        move_seconds=state_gb / float(spec.network_gb_per_second),
        move_charge=state_gb * float(spec.transfer_price_per_gb),
        on_demand_per_hour=on_demand_per_hour(catalogue, spec.hardware, trace.currency),
        deadline_seconds=None if deadline is None else float(deadline) * SECONDS_PER_HOUR,
    )
    results = replay.compare_policies(market, job, _STARTS)
    return Replayed(spec, trace, market, timed.full, timed.kind, state_gb, job, results)


def _shortest_full_training(observations: Iterable[Observation], spec: ReplayedJob) -> Observation:
    """Shortest measured, else published, else predicted training; InputError if there is none."""
    candidates = [
        observation
        for observation in observations
        if (observation.workload.id, observation.machine.hardware) == (spec.model, spec.hardware)
        and observation.full is not None
        and observation.epochs_known
    ]
    if not candidates:
        raise InputError(
            f"{spec.model}: expected a time of its training on {spec.hardware}, found none: "
            "measure it there"
        )
    return min(
        candidates, key=lambda timed: (KINDS.index(timed.kind), timed.full and timed.full.mean)
    )


def _parameters_and_states_gb(catalogue: Catalogue, model: Model) -> float:
    """GB of parameters and optimizer states in fp32; InputError without a graph or training."""
    counted = arithmetic_of_model(catalogue, model)
    if counted is None or model.training is None:
        raise InputError(f"{model.id}: expected a model with a graph, found none: give state_gb")
    numbers = counted.parameters * (1 + optimizer_states(model.training.optimizer))
    return numbers * BYTES_PER_NUMBER / _GIGABYTE


def on_demand_per_hour(catalogue: Catalogue, hardware: str, currency: str) -> float | None:
    """A machine's lowest on-demand price per hour in ``currency``; None without such a price."""
    machine = catalogue.machine(hardware)
    hour = Usage(Decimal(SECONDS_PER_HOUR), 1, machine.vcpus, bool(machine.accelerators))
    totals = [
        share(price, hour).total
        for price in current_prices(catalogue.prices_of(machine.id))
        if price.plan == "on-demand" and price.currency == currency and not price.flaw
    ]
    return float(min(totals)) if totals else None
