"""Compare the speed and cost of a job's variants, and of the job on several numbers of vCPUs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import groupby
from operator import attrgetter

from epochcost.analysis.observations import Observation, in_floats
from epochcost.analysis.rows import cheapest_price
from epochcost.cost.estimate import Cost, Estimate, Unpriced
from epochcost.specs.catalogue import Catalogue, current_prices
from epochcost.specs.price import Price
from epochcost.statistics.interval import Bounded, ratio

_ONE = Bounded(1, 1, 1)
_job = attrgetter("machine", "mode", "batch_size")


@dataclass(frozen=True, slots=True)
class JobCost:
    """Cost of an epoch of training, or of a million inferences, under ``price``.

    ``price`` is None if unknown. A job on a part of the machine's vCPUs pays only for this part.
    Then ``basis`` says whether ``price`` is per vCPU or in proportion to vCPUs; else it is empty.
    """

    cost: Cost
    price: Price | None
    basis: str = ""


def cheapest_plan(catalogue: Catalogue, observed: Observation) -> Price | None:
    """The current price under which a job on all CPUs and GPUs costs least; None without prices."""
    work = observed.work(observed.goals[0])
    costs = [
        (price, cost.mean)
        for price in current_prices(catalogue.prices_of(observed.machine.hardware))
        if isinstance(cost := work.cost(price), Estimate)
    ]
    return cheapest_price(costs)


def job_cost(observed: Observation, price: Price | None) -> JobCost:
    """Cost of a measured job under ``price``; a job on a part of the vCPUs pays for that part."""
    work, whole, used = observed.work(observed.goals[0]), observed.machine.vcpus, observed.vcpus
    if price is None or used in (None, whole):
        return JobCost(work.cost(price), price)
    if price.is_per_vcpu:
        return JobCost(replace(work, vcpus=used).cost(price), price, "price per vCPU")
    if whole is None:
        return JobCost(Unpriced("the machine's number of vCPUs is unknown"), price)
    # A share of a machine for a time costs as much as the machine for that share of the time.
    part = replace(work, time=work.time.scaled(Decimal(used) / whole))
    return JobCost(part.cost(price), price, "price in proportion to vCPUs")


@dataclass(frozen=True, slots=True)
class VariantRow:
    """A variant's cost, and its speed-up over the trial in default settings (None if unknown)."""

    observed: Observation
    job: JobCost
    speedup: Bounded | None = None


@dataclass(frozen=True, slots=True)
class VcpuPoint:
    """The time and cost of a job on ``vcpus`` vCPUs.

    ``speedup`` and ``relative_cost`` are relative to the fewest vCPUs; vCPUs × seconds replace
    unknown costs. ``efficiency`` is the speed-up divided by the ratio of vCPUs.
    """

    vcpus: int
    observed: Observation
    job: JobCost
    speedup: Bounded
    efficiency: float
    relative_cost: Bounded


@dataclass(frozen=True, slots=True)
class Scaling:
    """Measurements of a job on several numbers of a machine's vCPUs, the fewest vCPUs first.

    At ``cheapest``, the job costs least. ``larger_speeds`` and ``larger_costs`` are the speed and
    the cost on the most vCPUs, divided by those at ``cheapest``.
    """

    points: tuple[VcpuPoint, ...]
    cheapest: VcpuPoint
    larger_speeds: Bounded
    larger_costs: Bounded

    @classmethod
    def of(cls, points: tuple[VcpuPoint, ...]) -> Scaling:
        """Find the point at which the job costs least, and compare the most vCPUs with it."""
        best, largest = min(points, key=lambda point: point.relative_cost.mean), points[-1]
        speeds = ratio(largest.speedup, best.speedup)
        return cls(points, best, speeds, ratio(largest.relative_cost, best.relative_cost))


def comparisons(
    catalogue: Catalogue, plain: Iterable[Observation], variants: Iterable[Observation]
) -> tuple[tuple[VariantRow, ...], ...]:
    """Compare the ``variants`` of each job with the job's trial in default settings (``plain``).

    In a job's rows, the trial in default settings comes first, if there is one. Variants that
    differ only in the number of vCPUs are left out.
    """
    changed = [trial for trial in variants if not only_vcpus(trial)]
    return tuple(tuple(_compared(catalogue, trials)) for trials in _trials_by_job(plain, changed))


def scalings(
    catalogue: Catalogue, plain: Iterable[Observation], variants: Iterable[Observation]
) -> tuple[Scaling, ...]:
    """Compare the speed and cost of each job of a model on different numbers of vCPUs.

    ``plain`` has trials in default settings, on all vCPUs. Of ``variants``, only those that change
    nothing but the number of vCPUs are used. Jobs with a single number are left out.
    """
    pinned = [trial for trial in variants if only_vcpus(trial)]
    counts = map(_trials_by_vcpus, _trials_by_job(plain, pinned))
    return tuple(Scaling.of(tuple(_scaled(catalogue, each))) for each in counts if len(each) > 1)


def only_vcpus(observed: Observation) -> bool:
    """Whether a trial differs from the default settings only in the number of vCPUs."""
    return observed.vcpus is not None and observed.variant == f"{observed.vcpus} vCPU"


def _sort_key(observed: Observation) -> tuple[object, ...]:
    machine = observed.machine
    work = (machine.name, machine.hardware, machine.host, machine.device)
    variant = (observed.vcpus or 0, observed.variant, observed.software)
    return *work, observed.mode == "inference", observed.batch_size, *variant


def _trials_by_job(
    defaults: Iterable[Observation], variants: Sequence[Observation]
) -> Iterator[list[Observation]]:
    """Yield the trials of each job that has a trial in ``variants``.

    The job's measured trials in ``defaults`` come first, then its trials in ``variants``.
    """
    jobs = set(map(_job, variants))
    references = [trial for trial in defaults if trial.kind == "measured" and _job(trial) in jobs]
    for _, trials in groupby(sorted([*references, *variants], key=_sort_key), key=_job):
        yield list(trials)


def _compared(catalogue: Catalogue, trials: Sequence[Observation]) -> Iterator[VariantRow]:
    first = trials[0]
    price = cheapest_plan(catalogue, first)
    for trial in trials:
        comparable = first.variant == "" and trial is not first
        faster = ratio(first.step_interval, trial.step_interval) if comparable else None
        yield VariantRow(trial, job_cost(trial, price), faster)


def _trials_by_vcpus(trials: Sequence[Observation]) -> list[tuple[int, Observation]]:
    """Pairs of a number of vCPUs and the trial on them, the fewest vCPUs first.

    An unpinned trial counts for all vCPUs if their number is known and no trial is pinned to all.
    """
    pinned = {trial.vcpus: trial for trial in trials if trial.vcpus}
    whole = {
        trial.machine.vcpus: trial for trial in trials if not trial.vcpus and trial.machine.vcpus
    }
    return sorted((whole | pinned).items())


def _scaled(
    catalogue: Catalogue, counted: Sequence[tuple[int, Observation]]
) -> Iterator[VcpuPoint]:
    price = cheapest_plan(catalogue, counted[0][1])
    jobs = [job_cost(trial, price) for _, trial in counted]
    steps = [trial.step_interval for _, trial in counted]
    costs = _costs_or_vcpu_seconds(jobs, steps, [vcpus for vcpus, _ in counted])
    for (vcpus, trial), job, step, cost in zip(counted, jobs, steps, costs, strict=True):
        fewest = step is steps[0]
        speedup = _ONE if fewest else ratio(steps[0], step)
        relative = _ONE if fewest else ratio(cost, costs[0])
        factor = vcpus / counted[0][0]
        yield VcpuPoint(vcpus, trial, job, speedup, speedup.mean / factor, relative)


def _costs_or_vcpu_seconds(
    jobs: Sequence[JobCost], steps: Sequence[Bounded], vcpus: Sequence[int]
) -> list[Bounded]:
    costs = [in_floats(job.cost) for job in jobs if isinstance(job.cost, Estimate)]
    if len(costs) == len(jobs) and all(cost.mean for cost in costs):
        return costs
    return [
        Bounded(count * step.low, count * step.mean, count * step.high)
        for step, count in zip(steps, vcpus, strict=True)
    ]
