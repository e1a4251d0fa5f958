"""Turn prices of the catalogue into targets, and prices that a launch paid into specs.

The cheapest offer of an accelerator becomes a target; the price that a launch paid and the start
that it measured become a price spec, which a person reviews.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from statistics import median
from typing import Any

from epochcost.errors import InputError
from epochcost.fleet.station import Station
from epochcost.fleet.tariff import Tariff, tariff_of
from epochcost.specs.catalogue import Catalogue, current_prices
from epochcost.specs.draft import successor
from epochcost.specs.hardware import Hardware
from epochcost.specs.price import Price
from epochcost.specs.target import Sky, Target
from epochcost.specs.wording import suggest_or_list
from epochcost.units import today

# SkyPilot's clouds by the provider of a price.
_CLOUDS = {
    "AWS EC2": "aws",
    "Google Compute Engine": "gcp",
    "Azure": "azure",
    "Lambda": "lambda",
    "RunPod": "runpod",
}
# Older prices say little about a machine that is rented today.
_OLDEST_DAYS = 365
# A product's name begins with its instance type: "n1-standard-8 and 1 T4, preemptible".
_INSTANCE_TYPE = re.compile(r"([A-Za-z0-9._-]+)(( and |, ).*)?")


def cheapest_target(catalogue: Catalogue, accelerator: str) -> Target:
    """The target with the lowest hourly price for a machine with an accelerator, such as L4.

    It is a target of the catalogue, or a machine that SkyPilot can rent at a current price. Raises
    InputError if no machine with the accelerator has such a price.
    """
    offers = [tariff_of(catalogue, target) for target in _targets(catalogue, accelerator)]
    if not offers:
        names = {
            chip.name for machine in catalogue.hardware.values() for chip in machine.accelerators
        }
        raise InputError(
            f"--accelerator {accelerator}: expected an accelerator of a machine with a price of "
            f"{', '.join(_CLOUDS)} or with a target{suggest_or_list(accelerator, names)}"
        )
    return min(offers, key=lambda offer: (offer.cost(3600), offer.target.id)).target


def _targets(catalogue: Catalogue, accelerator: str) -> Iterator[Target]:
    for target in catalogue.targets.values():
        if _has(catalogue.machine(target.hardware), accelerator):
            yield target
    for price in current_prices(catalogue.prices.values()):
        machine = catalogue.machine(price.hardware)
        rentable = price.provider in _CLOUDS and price.plan in ("on-demand", "spot")
        instance_type = _INSTANCE_TYPE.fullmatch(price.sku or "")
        sound = not price.doubt and (today() - price.as_of).days <= _OLDEST_DAYS
        if rentable and instance_type and sound and _has(machine, accelerator):
            yield _rented(price, instance_type[1], f"{accelerator}:{machine.accelerators[0].count}")


def _has(machine: Hardware, accelerator: str) -> bool:
    words = (re.split(r"[^a-z0-9]+", chip.name.casefold()) for chip in machine.accelerators)
    return any(accelerator.casefold() in chip for chip in words)


def _rented(price: Price, instance_type: str, accelerators: str) -> Target:
    place = "/".join(filter(None, (_CLOUDS[price.provider], price.region)))
    engine = Sky(
        name="sky",
        infra=place,
        instance_type=instance_type,
        accelerators=accelerators,
        spot=price.plan == "spot",
    )
    return Target(
        id=price.id, engine=engine, hardware=price.hardware, price=price.id, provider="cuda"
    )


@dataclass(frozen=True, slots=True)
class ProposedPrice:
    """A price spec for review: its id, and its text in TOML."""

    id: str
    text: str


def quoted(tariff: Tariff, quote: Decimal | None) -> Tariff:
    """The tariff at the hourly price that the engine quotes in dollars, if it quotes one."""
    price = tariff.price
    if quote is None or price.amount is None or price.currency != "USD":
        return tariff
    return replace(tariff, price=price.model_copy(update={"amount": quote}), is_quoted=True)


def proposed_price(catalogue: Catalogue, station: Station, day: dt.date) -> ProposedPrice | None:
    """The price spec of a day with the price paid and the start measured; None if not new."""
    tariff, starts = station.tariff, station.startup_seconds
    spec = catalogue.price(tariff.target.price)
    if spec.owned or not (starts or (tariff.is_quoted and tariff.price.amount != spec.amount)):
        return None
    identifier = f"{spec.hardware}-{spec.plan}-{day.isoformat()}"
    source = f"paid by a launch on {day.isoformat()} through {tariff.target.engine.name}"
    changed: dict[str, Any] = {
        "id": identifier,
        "amount": tariff.price.amount,
        "as_of": day,
        "source": source,
    }
    text = catalogue.files[f"prices/{spec.id}"].read_text("utf-8")
    if starts:
        changed["start.seconds"] = round(Decimal(median(starts)))
        text += "" if "[start]" in text else "\n[start]\n"
    return ProposedPrice(identifier, successor(text, changed))
