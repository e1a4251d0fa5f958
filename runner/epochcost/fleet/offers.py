"""Choose the cheapest machine before a launch, and draft a price spec after it.

The draft has the paid price and the measured start-up time. A person reviews the draft.
"""

from __future__ import annotations

import re
from decimal import Decimal
from statistics import median
from typing import Any

from epochcost.errors import InputError
from epochcost.fleet.ledger import Tariff
from epochcost.fleet.station import Station
from epochcost.specs.catalogue import Catalogue, current_prices
from epochcost.specs.draft import successor
from epochcost.specs.price import Price
from epochcost.specs.target import Sky, Target
from epochcost.specs.wording import suggest_or_list, suggestion
from epochcost.statistics import group_by
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
# SkyPilot names an accelerator by its chip; the larger forms of A100 and V100 have their memory.
_NO_PART_OF_CHIP = re.compile(
    r"^(Tesla|GRID|Quadro|RTX(?= A)) | (PCIe|SXM[0-9]?|NVL|Server)\b| \(.*\)| "
)
_LARGER_FORM = re.compile(r"\((80|32) GB\)")
# A product's name begins with its instance type: "n1-standard-8 and 1 T4, preemptible".
_INSTANCE_TYPE = re.compile(r"([A-Za-z0-9._-]+)(( and |, ).*)?")


def cheapest_target(catalogue: Catalogue, accelerator: str) -> Target:
    """The target with the lowest hourly price of all machines that have ``accelerator``.

    Only current prices in SkyPilot's clouds count, in dollars, as SkyPilot quotes. ``accelerator``
    is a chip, with or without its form factor, such as H100 SXM5 or H100. Raises InputError if no
    machine matches.
    """
    rented = (_sky_target(catalogue, price) for price in current_prices(catalogue.prices.values()))
    offers = group_by(filter(None, rented), lambda target: form_of(catalogue, target))
    called = accelerator.casefold()
    targets = [
        target
        for form, group in offers.items()
        if called in (form.casefold(), *re.findall("[a-z0-9]+", form.casefold()))
        for target in group
    ]
    if not targets:
        chips = {part for form in offers for part in form.split() if re.search("[0-9]", part)}
        near = suggestion(accelerator, chips) or suggest_or_list(accelerator, offers)
        expected = f"expected an accelerator of a machine with a price of {', '.join(_CLOUDS)}"
        raise InputError(f"--accelerator {accelerator}: {expected}{near}")
    return min(targets, key=lambda each: (Tariff.of(catalogue, each).cost(3600), each.id))


def form_of(catalogue: Catalogue, target: Target) -> str:
    """The chip and form factor of a target's accelerators, such as "H100 SXM5"."""
    return catalogue.machine(target.hardware).accelerators[0].name


def _sky_target(catalogue: Catalogue, price: Price) -> Target | None:
    """A target that SkyPilot rents at ``price``; None for an unsuitable machine or price."""
    firm = price.plan in ("on-demand", "spot") and price.currency == "USD" and not price.flaw
    recent = (today() - price.as_of).days <= _OLDEST_DAYS
    product = _INSTANCE_TYPE.fullmatch(price.sku or "")
    cloud, chips = _CLOUDS.get(price.provider), catalogue.machine(price.hardware).accelerators
    if not (firm and recent and product and cloud and chips and chips[0].compute_capability):
        return None
    chip, larger = _NO_PART_OF_CHIP.sub("", chips[0].name), _LARGER_FORM.search(chips[0].name)
    engine = Sky(
        name="sky",
        infra="/".join(filter(None, (cloud, price.region))),
        instance_type=product[1],
        accelerators=f"{chip}{f'-{larger[1]}GB' if larger else ''}:{chips[0].count}",
    )
    return Target(
        id=price.id, engine=engine, hardware=price.hardware, price=price.id, provider="cuda"
    )


def proposed_price(catalogue: Catalogue, station: Station) -> tuple[str, str] | None:
    """Id and TOML text of a price spec with the paid price and the start-up time, for review.

    None if the machine is owned, or if neither the price nor a start-up time is new.
    """
    tariff, starts, day = station.engine.tariff, station.startup_seconds, today()
    spec = catalogue.price(tariff.target.price)
    if spec.owned or not (starts or tariff.price.amount != spec.amount):
        return None
    identifier = f"{spec.hardware}-{spec.plan}-{day.isoformat()}"
    changed: dict[str, Any] = {
        "id": identifier,
        "amount": tariff.price.amount,
        "as_of": day,
        "source": f"paid by a launch on {day.isoformat()} through {tariff.target.engine.name}",
    }
    text = catalogue.files[f"prices/{spec.id}"].read_text("utf-8")
    if starts:
        changed["start.seconds"] = round(Decimal(median(starts)))
        text += "" if "start" in spec.model_fields_set else "\n[start]\n"
    return identifier, successor(text, changed)
