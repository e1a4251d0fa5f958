"""The page of prices: every plan with its source and date."""

from __future__ import annotations

from collections.abc import Iterator

from epochcost.report.figures.dots import hourly_prices
from epochcost.report.pages.page import Page, Report
from epochcost.report.rows import current_prices


def pages(report: Report) -> Iterator[Page]:
    """The one page."""
    catalogue = report.catalogue
    priced = [
        (hardware, price)
        for hardware in catalogue.hardware.values()
        for price in catalogue.prices_of(hardware.id)
    ]
    yield Page(
        uri="prices.md",
        title="Prices",
        template="prices.md.jinja",
        description="Every price plan that the report uses, with its source and date.",
        context={
            "prices": priced,
            "current": current_prices(price for _, price in priced),
            "unpriced": [
                one for one in catalogue.hardware.values() if not catalogue.prices_of(one.id)
            ],
        },
        figures={
            "hourly": hourly_prices(
                [(hardware.name, price) for hardware, price in priced],
                identifier="prices-hourly",
                colours=report.colours,
            )
        },
    )
