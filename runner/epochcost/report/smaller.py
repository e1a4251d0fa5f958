"""What the same work costs on a smaller instance of a machine's family, and by which price.

Three ways, the surest first: the machine's plan is per vCPU anyway; the catalogue has the smaller
instance under the same plan; else the smaller one is taken to cost its share of the larger.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from epochcost.cost import Cost, Estimate, Time, Unpriced, million_inferences, prorated_cost
from epochcost.report.observations import Observation
from epochcost.report.subjects import Machine
from epochcost.specs.catalogue import Catalogue, current_prices
from epochcost.specs.hardware import Hardware
from epochcost.specs.price import Price

PROPORTIONAL = "price taken in proportion to vCPUs"


@dataclass(frozen=True, slots=True)
class JobCost:
    """An epoch of training or a million inferences under ``price``; ``basis``: how that was taken.

    ``basis`` is empty where the plan is of the very machine.
    """

    cost: Cost
    price: Price | None
    basis: str = ""

    @property
    def assumed(self) -> bool:
        """Whether the price is an assumption and nobody's price list."""
        return self.price is not None and self.price.assumed


def cheapest_plan(catalogue: Catalogue, observed: Observation) -> Price | None:
    """The current plan of the whole machine under which the work costs least; None without one."""
    costs = [
        (cost.mean, price)
        for price in current_prices(catalogue.prices_of(observed.machine.hardware))
        if isinstance(cost := _cost(price, observed, observed.machine.vcpus), Estimate)
    ]
    return min(costs, key=lambda one: one[0])[1] if costs else None


def job_cost(catalogue: Catalogue, observed: Observation, price: Price | None) -> JobCost:
    """The cost under a plan of the machine, on as many vCPUs as the trial was pinned to."""
    machine, vcpus = observed.machine, observed.vcpus
    if price is None:
        return JobCost(Unpriced("no price is known"), None)
    if vcpus is None or vcpus == machine.vcpus:
        return JobCost(_cost(price, observed, machine.vcpus), price)
    if price.owned is not None and price.owned.per_vcpu:
        return JobCost(_cost(price, observed, vcpus), price, "price per vCPU")
    for smaller, asked in _family_plans(catalogue, machine, vcpus, price):
        return JobCost(_cost(asked, observed, vcpus), asked, f"price of {smaller.name}")
    if machine.vcpus is None:
        return JobCost(Unpriced("how many vCPUs the machine has is not known"), price)
    share = Decimal(vcpus) / machine.vcpus
    return JobCost(_cost(price, observed, machine.vcpus, share), price, PROPORTIONAL)


def _cost(
    price: Price, observed: Observation, vcpus: int | None, share: Decimal | None = None
) -> Cost:
    """What a running machine, or a share of it, charges for an epoch or a million inferences."""
    accelerated = observed.machine.device == "cuda"
    if observed.epoch is not None:
        time = _share(observed.epoch, share)
        return prorated_cost(price, time, vcpus=vcpus, accelerated=accelerated)
    assert observed.step is not None, "a measured observation has a step"
    step, size = _share(observed.step, share), observed.batch_size
    return million_inferences(price, step, size, vcpus=vcpus, accelerated=accelerated)


def _share(time: Time, share: Decimal | None) -> Time:
    """A share of a machine for a time costs as the whole machine for that share of the time."""
    return time if share is None else time.scaled(share)


def _family_plans(
    catalogue: Catalogue, machine: Machine, vcpus: int, price: Price
) -> Iterator[tuple[Hardware, Price]]:
    """Smaller machines of the family under the same plan of the same provider and region."""
    stem = family_stem(catalogue.hardware[machine.hardware])
    for hardware in catalogue.hardware.values():
        if stem is None or hardware.vcpus != vcpus or family_stem(hardware) != stem:
            continue
        for asked in current_prices(catalogue.prices_of(hardware.id)):
            if _terms(asked) == _terms(price):
                yield hardware, asked


def _terms(price: Price) -> tuple[object, ...]:
    return price.provider, price.plan, price.region, price.currency


def family_stem(hardware: Hardware) -> str | None:
    """The id without its number of vCPUs, as clouds name families; None where it does not end so.

    Machines with an accelerator are of no family here: half of one is not half its price.
    """
    stem = hardware.id.removesuffix(f"-{hardware.vcpus}")
    return None if hardware.accelerators or stem == hardware.id else stem
