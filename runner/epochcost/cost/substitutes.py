"""The rented plans that could do an owned machine's work, and how fast their machines are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from epochcost.cost.break_even import Rent, same_kind
from epochcost.cost.speed import measured_speed
from epochcost.errors import InputError
from epochcost.results.records import Result
from epochcost.specs.catalogue import Catalogue, current_prices
from epochcost.specs.price import Price


@dataclass(frozen=True)
class Substitutes:
    """What may take the place of the owned machine of a plan."""

    catalogue: Catalogue
    own: Price
    results: Sequence[Result] = ()

    def named(self, identifier: str, speed: Decimal | None = None) -> Rent:
        """A plan by its id, at a declared speed or at what is known of its machine.

        Raises InputError where nothing is known and none is declared.
        """
        price = self.catalogue.price(identifier)
        if speed is not None:
            return Rent(price, speed, f"declared as {speed.normalize():f} times as fast")
        rent = self._known(price)
        if rent is None:
            raise InputError(
                f"{identifier}: demanded the speed of its machine beside that of {self.own.id}: "
                "the same accelerators, results of the same trial on both, or --speed; got none"
            )
        return rent

    def every(self) -> Iterator[Rent]:
        """The current rented plans of machines whose speed is known, in the owned plan's currency.

        Of one kind with the owned machine, or measured on the same work.
        """
        plans = [price for price in self.catalogue.prices.values() if price.owned is None]
        for price in current_prices(plans):
            if price.currency == self.own.currency and (rent := self._known(price)):
                yield rent

    def _known(self, price: Price) -> Rent | None:
        speed = measured_speed(self.results, self.own.hardware, price.hardware)
        if speed is not None:
            trials = "1 equal trial" if speed.trials == 1 else f"{speed.trials} equal trials"
            words = f"measured {float(speed.ratio):.3g} times as fast on {trials}"
            return Rent(price, speed.ratio, words)
        own, other = self._accelerators(self.own), self._accelerators(price)
        if price.hardware == self.own.hardware or same_kind(own, other):
            return Rent(price)
        return None

    def _accelerators(self, price: Price) -> tuple[tuple[str, int], ...]:
        machine = self.catalogue.machine(price.hardware)
        return tuple((one.name, one.count) for one in machine.accelerators)
