"""Make the page "Rent or buy", which compares owned machines with rented ones for equal work."""

from __future__ import annotations

from collections.abc import Iterator

from epochcost.cost.break_even import compare, rents_alike
from epochcost.report.charts.rent_or_buy import rent_or_buy
from epochcost.report.pages.page import Page, Report
from epochcost.specs.catalogue import current_prices


def pages(report: Report) -> Iterator[Page]:
    """Yield the page "Rent or buy"."""
    prices = current_prices(report.catalogue.prices.values())
    bought = [price for price in prices if price.owned]
    compared = [
        compare(price, rents_alike(report.catalogue, price))
        for price in bought
        if price.owned and not price.owned.per_vcpu
    ]
    comparisons = [comparison for comparison in compared if comparison.alternatives]
    compared_prices = [comparison.owned for comparison in comparisons]
    yield Page(
        uri="rent-or-buy.md",
        title="Rent or buy",
        template="rent_or_buy.md.jinja",
        description="The hours of use a month above which buying a machine beats renting one.",
        context={
            "comparisons": comparisons,
            "machines": report.catalogue.hardware,
            "alone": [price for price in bought if price not in compared_prices],
        },
        figures={
            comparison.owned.id: rent_or_buy(comparison, report.catalogue.hardware)
            for comparison in comparisons
        },
    )
