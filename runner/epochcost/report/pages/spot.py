"""Make the page about spot machines: trainings at past prices, and unknown interruption rates."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from epochcost.analysis.replays import on_demand_per_hour, play
from epochcost.cost.bill import totals_by_rate
from epochcost.cost.lines import Usage
from epochcost.errors import InputError
from epochcost.report.pages.page import Page, Report
from epochcost.specs.catalogue import current_prices
from epochcost.specs.hardware import Hardware
from epochcost.specs.price import Price
from epochcost.units import SECONDS_PER_HOUR

_HOURS = 24
# A plan with its machine, its hour on demand (None if unknown), and the costs of a day at several
# rates of interruptions.
UnknownRate = tuple[Price, Hardware, float | None, tuple[Decimal, ...]]


def pages(report: Report) -> Iterator[Page]:
    """Yield the page about spot machines."""
    played, failures = [], []
    for spec in report.catalogue.replays.values():
        try:
            played.append(play(report.catalogue, report.observations, spec))
        except InputError as error:
            failures.append(f"{spec.name}: {error}")
    yield Page(
        uri="spot.md",
        title="Spot machines",
        template="spot.md.jinja",
        description="The cost of machines that can be interrupted, interruptions included.",
        context={
            "played": played,
            "models": report.catalogue.models,
            "hardware": report.catalogue.hardware,
            "failures": failures,
            "unknown": _unknown_interruption_rates(report),
        },
    )


def _unknown_interruption_rates(report: Report) -> list[UnknownRate]:
    catalogue, plans = report.catalogue, []
    for machine in catalogue.hardware.values():
        usage = Usage(
            Decimal(_HOURS * SECONDS_PER_HOUR), 1, machine.vcpus, bool(machine.accelerators)
        )
        for price in current_prices(catalogue.prices_of(machine.id)):
            if totals := totals_by_rate(price, usage):
                hour = on_demand_per_hour(catalogue, machine.id, price.currency)
                plans.append((price, machine, hour, tuple(total for _, total in totals)))
    return sorted(plans, key=lambda plan: (plan[3][0], plan[1].name))
