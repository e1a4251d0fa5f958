"""Everything of a catalogue and its results that has a cost, each by a key that revisions share.

A key says what is done, on which machine, to which end; the price stands beside it. What changed
between two revisions is asked of ``changes``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from types import MappingProxyType
from typing import Literal

from epochcost.analysis.comparisons import PROPORTIONAL, job_cost
from epochcost.analysis.estimates import EstimatedRow
from epochcost.analysis.inputs import Inputs, StoredResult
from epochcost.analysis.machines import Machine
from epochcost.analysis.observations import Goal, Observation
from epochcost.analysis.rows import Row
from epochcost.analysis.serving import ServingRow, serving_rows
from epochcost.cost import MachineTime, Time
from epochcost.cost.difference import Basis
from epochcost.specs.catalogue import Catalogue, current_prices
from epochcost.specs.hardware import Hardware
from epochcost.specs.price import Price
from epochcost.specs.study import Mode
from epochcost.units import SECONDS_PER_HOUR

JobGoal = Goal | Literal["hour"]
GOAL_WORDS: Mapping[JobGoal, str] = MappingProxyType(
    {
        "epoch": "one epoch",
        "full": "full training",
        "million": "a million inferences",
        "hour": "an hour",
    }
)
# The source of a figure that nobody timed.
ESTIMATED = "estimated from FLOPs"
# How the source of a predicted figure begins, which names the software.
PREDICTED = "predicted: "
_HOUR = Time.exact(Decimal(SECONDS_PER_HOUR))


@dataclass(frozen=True, slots=True)
class JobKey:
    """One piece of work on one machine, to one end.

    ``variant`` and ``load`` are empty for plain trials; ``source`` names a published table's row,
    is ESTIMATED for what nobody timed, PREDICTED and the software for what was predicted, and empty
    for what was measured. ``threads`` 0: all cores.
    An hour of a machine is of no workload and mode; estimates have no batch size.
    """

    workload: str
    mode: Mode | None
    goal: JobGoal
    batch_size: int | None
    device: str
    hardware: str
    host: str | None
    threads: int
    variant: str
    load: str
    source: str

    @property
    def work(self) -> tuple[object, ...]:
        """The job whatever its goal."""
        return tuple(getattr(self, name) for name in self.__slots__ if name != "goal")


def machine_words(one: JobKey | Machine) -> str:
    """The machine's id, the host of it that measured, and the device."""
    host = f" (host {one.host[:4]})" if one.host else ""
    return f"{one.hardware}{host}, {one.device}"


@dataclass(frozen=True, slots=True)
class PricedWork:
    """A job under one price plan; ``current``: no newer price of that plan is known.

    ``stored`` is the result that was read, None for any other figure.
    """

    job: JobKey
    basis: Basis
    current: bool
    stored: StoredResult | None

    @property
    def price(self) -> Price | None:
        """The plan; None where none is known."""
        return self.basis.price

    @property
    def estimated(self) -> bool:
        """Whether nobody timed it, and its cost follows from operations and peaks."""
        return self.job.source == ESTIMATED

    @property
    def predicted(self) -> bool:
        """Whether nobody timed it, and its cost follows from times of others."""
        return self.job.source.startswith(PREDICTED)


def priced_work(
    catalogue: Catalogue,
    rows: Iterable[Row],
    stored: Mapping[str, StoredResult],
    sources: Mapping[int, str],
) -> Iterator[PricedWork]:
    """Each row, once for each goal that it is about; variants for the one that their pages price.

    ``stored`` is by the address of the evidence, ``sources`` as ``sources_of`` gives them.
    """
    for row in rows:
        found = stored.get(row.observed.evidence.uri)
        source = sources.get(id(row.observed), "")
        if row.observed.variant:
            yield _variant_work(catalogue, row, found)
            continue
        for goal in row.observed.goals:
            yield work_of(row, goal, found, source)


def _variant_work(catalogue: Catalogue, row: Row, stored: StoredResult | None) -> PricedWork:
    """A variant under a plan of its machine, as `smaller` prices as many vCPUs as it had."""
    observed, machine = row.observed, row.observed.machine
    goal = observed.goals[0]
    basis, found = _basis(row, goal), job_cost(catalogue, observed, row.price)
    if found.basis == PROPORTIONAL and observed.vcpus and machine.vcpus and basis.step:
        share = Decimal(observed.vcpus) / machine.vcpus
        work = replace(basis.work, time=basis.work.time.scaled(share))
        basis = replace(basis, cost=found.cost, work=work, step=basis.step.scaled(share))
    else:
        work = replace(basis.work, vcpus=observed.vcpus or machine.vcpus)
        basis = replace(basis, cost=found.cost, price=found.price, work=work)
    return PricedWork(_job(observed, goal, stored, ""), basis, row.current, stored)


def work_of(
    row: Row, goal: Goal, stored: StoredResult | None = None, source: str = ""
) -> PricedWork:
    """A row for one of the goals that it is about."""
    job = _job(row.observed, goal, stored, source)
    return PricedWork(job, _basis(row, goal), row.current, stored)


def estimated_work(model: str, row: EstimatedRow) -> PricedWork:
    """A full training that nobody timed, on one machine under one plan."""
    work = MachineTime(row.time, row.hardware.vcpus, accelerated=True)
    basis = Basis(row.cost, work, None, row.price)
    device, hardware = row.hardware.device, row.hardware.id
    job = JobKey(model, "training", "full", None, device, hardware, None, 0, "", "", ESTIMATED)
    return PricedWork(job, basis, current=True, stored=None)


def hourly_work(catalogue: Catalogue, hardware: Iterable[str]) -> Iterator[PricedWork]:
    """An hour of each machine under each of its plans, whether anything is timed or not."""
    for machine in (catalogue.hardware[name] for name in hardware if name in catalogue.hardware):
        prices = catalogue.prices_of(machine.id)
        today = current_prices(prices)
        for price in prices or (None,):
            yield _an_hour(machine, price, current=price is None or price in today)


def _an_hour(machine: Hardware, price: Price | None, *, current: bool) -> PricedWork:
    work = MachineTime(_HOUR, machine.vcpus, machine.device == "cuda", shared=True)
    basis = Basis(work.cost(price), work, None, price)
    job = JobKey("", None, "hour", None, machine.device, machine.id, None, 0, "", "", "")
    return PricedWork(job, basis, current, stored=None)


def sources_of(published: Iterable[Observation]) -> Mapping[int, str]:
    """What tells a published figure from every other, by ``id`` of the observation.

    Rows of a table that differ in nothing that a job has are numbered in the table's order.
    """
    seen: Counter[tuple[object, ...]] = Counter()
    sources: dict[int, str] = {}
    for one in published:
        machine = one.machine.hardware, one.machine.device
        key = (one.evidence, one.workload.id, machine, one.batch_size, one.software)
        seen[key] += 1
        number = f" #{seen[key]}" if seen[key] > 1 else ""
        sources[id(one)] = f"{one.evidence.label}: {one.software}{number}"
    return sources


def _source(observed: Observation) -> str:
    """What tells a figure that nobody here measured from others of the same work and machine."""
    match observed.kind:
        case "measured":
            return ""
        case "published":
            return f"{observed.software}, {observed.precision}"
        case "predicted":
            return PREDICTED + observed.software


def _job(observed: Observation, goal: Goal, stored: StoredResult | None, source: str) -> JobKey:
    return JobKey(
        workload=observed.workload.id,
        mode=observed.mode,
        goal=goal,
        batch_size=observed.batch_size,
        device=observed.machine.device,
        hardware=observed.machine.hardware,
        host=observed.machine.host,
        threads=0 if stored is None else stored.result.trial.session.threads,
        variant=observed.variant,
        load="",
        source=source or _source(observed),
    )


def _basis(row: Row, goal: Goal) -> Basis:
    cost = row.cost(goal)
    assert cost is not None, "a row has a cost of each goal that it is about"
    return Basis(cost, row.observed.work(goal), row.observed.step, row.price)


def served_work(inputs: Inputs) -> Iterator[PricedWork]:
    """Every scenario of LoadGen at the rate that it reached, which no interval bounds."""
    stored = {one.uri: one for one in inputs.stored}
    for row in serving_rows(inputs):
        if row.work is not None:
            yield _served(row, row.work, stored[row.evidence.uri])


def _served(row: ServingRow, work: MachineTime, stored: StoredResult) -> PricedWork:
    trial, machine = stored.result.trial, row.machine
    job = JobKey(
        workload=row.model,
        mode="inference",
        goal="million",
        batch_size=trial.batch_size,
        device=machine.device,
        hardware=machine.hardware,
        host=machine.host,
        threads=trial.session.threads,
        variant=trial.variant,
        load=row.load,
        source="",
    )
    return PricedWork(job, Basis(row.million, work, None, row.price), row.current, stored)
