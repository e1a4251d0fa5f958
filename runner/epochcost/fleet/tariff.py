"""The price of a target's time."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

from epochcost.cost import MachineTime, Time, Unpriced
from epochcost.errors import InputError
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.hardware import Hardware
from epochcost.specs.price import Price
from epochcost.specs.target import Target
from epochcost.specs.terms import Start


@dataclass(frozen=True)
class Tariff:
    """The price plan of a target, which bills the time of its machine from start to end.

    ``is_quoted`` says whether its amount is the engine's own price, instead of the spec's.
    """

    target: Target
    machine: Hardware
    price: Price
    is_quoted: bool = False

    @cached_property
    def _of_whole_time(self) -> Price:
        # The time of starts and interruptions is part of the machine's time.
        return self.price.model_copy(update={"start": Start(), "interruptions": None})

    def cost(self, seconds: float) -> Decimal:
        """The bill of a machine's time; raises InputError if the plan cannot bill it."""
        if seconds <= 0:
            return Decimal(0)
        time = Time.exact(Decimal(repr(float(seconds))))
        used = MachineTime(time, self.machine.vcpus, self.machine.device == "cuda")
        cost = used.cost(self._of_whole_time)
        if isinstance(cost, Unpriced):
            raise InputError(f"target {self.target.id}: price {self.price.id}: {cost.reason}")
        return cost.mean

    def most(self, retries: int, up_seconds: float = 0) -> Decimal:
        """The highest bill of a cell with its retries, on a machine that is up for some time."""
        longer = (
            self.cost(up_seconds + self.target.attempt_seconds) if up_seconds else self._attempt
        )
        return longer + retries * self._attempt

    @cached_property
    def _attempt(self) -> Decimal:
        return self.cost(self.target.attempt_seconds)


def tariff_of(catalogue: Catalogue, target: Target) -> Tariff:
    """The tariff of a target."""
    return Tariff(target, catalogue.machine(target.hardware), catalogue.price(target.price))
