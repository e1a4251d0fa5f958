"""The page of prices: every plan of each provider with its source and date."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from epochcost.report.escape import file_stem
from epochcost.report.pages.page import Page, Report
from epochcost.specs.catalogue import current_prices
from epochcost.specs.hardware import Hardware
from epochcost.specs.price import Price

PricedMachine = tuple[Hardware, Price]


@dataclass(frozen=True)
class Provider:
    """A provider's current prices, and those that they supersede."""

    name: str
    current: tuple[PricedMachine, ...]
    earlier: tuple[PricedMachine, ...]


def pages(report: Report) -> Iterator[Page]:
    """The page of prices."""
    catalogue = report.catalogue
    priced = [
        (hardware, price)
        for hardware in catalogue.hardware.values()
        for price in catalogue.prices_of(hardware.id)
    ]
    providers = _providers(priced)
    yield Page(
        uri="prices.md",
        title="Prices",
        template="prices.md.jinja",
        description="All prices, with source and date.",
        context={
            "providers": providers,
            "current": [price for provider in providers for _, price in provider.current],
            "unpriced": [
                machine
                for machine in catalogue.hardware.values()
                if not catalogue.prices_of(machine.id)
            ],
        },
    )


def _providers(priced: Sequence[PricedMachine]) -> list[Provider]:
    """The prices by provider, in alphabetical order; names that differ in punctuation are one."""
    current = {price.id for price in current_prices(price for _, price in priced)}
    by_provider: dict[str, list[PricedMachine]] = defaultdict(list)
    for hardware, price in priced:
        by_provider[_identifier(price.provider)].append((hardware, price))
    return [
        Provider(
            prices[0][1].provider,
            tuple(pair for pair in prices if pair[1].id in current),
            tuple(pair for pair in prices if pair[1].id not in current),
        )
        for _, prices in sorted(by_provider.items())
    ]


def _identifier(provider: str) -> str:
    return re.sub(r"[-.]+", "-", file_stem(provider.lower()))
