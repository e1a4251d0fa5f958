"""Make the page of prices: every price plan of each provider, with its source and date."""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from epochcost.report.list_prices import Listed, accelerators, list_prices, moved_prices
from epochcost.report.pages.page import Page, Report
from epochcost.specs.api import ApiPrice
from epochcost.specs.catalogue import Catalogue, current_prices
from epochcost.specs.hardware import Hardware
from epochcost.specs.price import Price
from epochcost.statistics import group_by
from epochcost.units import FRESH, money, today

PricedMachine = tuple[Hardware, Price]
# A source of prices older than 60 days, how they are renewed, the machines or API providers, and
# the days of the prices.
OldPrices = tuple[str, str, list[str], list[dt.date]]
# The name of a provider, its current prices, and the earlier prices that they replaced.
Provider = tuple[str, tuple[PricedMachine, ...], tuple[PricedMachine, ...]]
# A source names its publisher up to a commit or a further part; addresses have @ and commas, too.
_PUBLISHER_END = re.compile(r"@(?=[0-9a-f]{8})|[,;](?=\s)")
_PUNCTUATION = re.compile(r"[\W_]+")
# Steps that renew the prices of a source; the workflow is .github/workflows/prices.yml.
_WEEKLY = "the weekly workflow, once the source has a newer list"
_BY_HAND = "a spec with a newer source, by hand"
RENEWALS: Mapping[str, str] = {
    "aws/karpenter-provider-aws": _WEEKLY,
    "Azure/karpenter-provider-azure": _WEEKLY,
    "Cyclenerd/google-cloud-pricing-cost-calculator": _WEEKLY,
    "anomalyco/models.dev": _WEEKLY,
    "skypilot-org/skypilot-catalog": "epochcost prices import, with a newer vms.csv",
}


def pages(report: Report) -> Iterator[Page]:
    """Yield the page of prices."""
    catalogue = report.catalogue
    prices = {machine: catalogue.prices_of(machine.id) for machine in catalogue.hardware.values()}
    providers = _sorted_providers(
        [(machine, price) for machine in prices for price in prices[machine]]
    )
    chips = accelerators([*list_prices(catalogue).values()])
    yield Page(
        uri="prices.md",
        title="Prices",
        template="prices.md.jinja",
        description=f"All prices, with source and date.{_gpu_hour_sentence(chips)}",
        context={
            "chips": chips,
            "providers": providers,
            "moved": moved_prices(catalogue),
            "current": [price for _, current, _ in providers for _, price in current],
            "old": [*_old_prices_by_source(catalogue, providers)],
            "unpriced": [machine for machine, listed in prices.items() if not listed],
        },
    )


def _gpu_hour_sentence(chips: Sequence[Listed]) -> str:
    hours = dict.fromkeys(
        f"{money(hour, chip.currency)} ({chip.hardware.accelerators[0].name})"
        for chip in (*chips[-1:], *chips[:1])
        if (hour := chip.gpu_hour) is not None
    )
    return f" A GPU-hour costs at least {' to '.join(hours)}." if hours else ""


def _old_prices_by_source(
    catalogue: Catalogue, providers: Sequence[Provider]
) -> Iterator[OldPrices]:
    rented: list[tuple[Price | ApiPrice, str]] = [
        (price, hardware.name)
        for _, current, _ in providers
        for hardware, price in current
        if price.owned is None
    ]
    served = [(api, api.provider) for api in catalogue.apis.values()]
    offered = (pair for pair in (*rented, *served) if pair[0].valid_until is None)
    old = (pair for pair in offered if today() - pair[0].as_of > FRESH)
    by_source = group_by(old, lambda pair: _PUBLISHER_END.split(pair[0].source)[0])
    for source, prices in sorted(by_source.items(), key=lambda item: (-len(item[1]), item[0])):
        counts = Counter(name for _, name in prices)
        names = (f"{name} ({count})" if count > 1 else name for name, count in counts.items())
        days = [price.as_of for price, _ in prices]
        yield source, RENEWALS.get(source, _BY_HAND), sorted(names), days


def _sorted_providers(priced_machines: Sequence[PricedMachine]) -> list[Provider]:
    current = {price.id for price in current_prices(price for _, price in priced_machines)}
    # Case and punctuation of a provider's name are ignored.
    by_provider = group_by(
        priced_machines, lambda pair: _PUNCTUATION.sub("-", pair[1].provider.casefold()).strip("-")
    )
    return [
        (
            prices[0][1].provider,
            tuple(pair for pair in prices if pair[1].id in current),
            tuple(pair for pair in prices if pair[1].id not in current),
        )
        for _, prices in sorted(by_provider.items())
    ]
