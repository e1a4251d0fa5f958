"""Make the page about spot machines: trainings at past prices, and unknown interruption rates."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from operator import itemgetter

from epochcost.analysis.replays import Replayed, on_demand_per_hour, play
from epochcost.cost import Usage, quote
from epochcost.cost.spot import SHOWN_RATES, can_be_interrupted, interrupted_at
from epochcost.errors import InputError
from epochcost.report.pages.page import Page, Report
from epochcost.specs.catalogue import current_prices
from epochcost.specs.hardware import Hardware
from epochcost.specs.price import Price
from epochcost.units import SECONDS_PER_HOUR, money, rounded, seconds, share

_HOURS = 24


# A replay, the names of its model and machine, the saving, the rate above which nothing is saved,
# and the policies' figures.
Story = tuple[Replayed, str, str, str, str, tuple[tuple[str, ...], ...]]
# A plan with its machine, the cost of a day on demand, and that at several rates of interruptions.
UnknownRate = tuple[Price, Hardware, str, tuple[str, ...]]


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
            "stories": [_story(report, replayed) for replayed in played],
            "failures": failures,
            "unknown": _unknown_interruption_rates(report),
        },
    )


def _story(report: Report, played: Replayed) -> Story:
    catalogue, currency = report.catalogue, played.trace.currency
    rows = tuple(
        (
            result.policy + (f" in {result.zone}" if result.zone else ""),
            _money(result.cost.mean, currency),
            f"{_money(result.cost.p10, currency)} to {_money(result.cost.p90, currency)}",
            _money(result.cost.worst, currency),
            seconds(result.seconds.mean),
            f"{result.interruptions:.2f}",
            f"{result.moves:.2f}",
        )
        for result in played.results
    )
    model, machine = catalogue.model(played.spec.model), catalogue.machine(played.spec.hardware)
    return played, model.name, machine.name, _render_spot_saving(played), _until(played), rows


def _render_spot_saving(played: Replayed) -> str:
    currency, on_demand = played.trace.currency, played.job.on_demand_cost
    best = min(played.results, key=lambda result: result.cost.mean)
    cost = _money(best.cost.mean, currency)
    if on_demand is None:
        return f"spot costs {cost} at best ({best.policy})"
    less, whole = 1 - best.cost.mean / on_demand, _money(on_demand, currency)
    if less <= 0:
        return f"spot saves nothing: {cost} at best, {whole} on demand"
    return f"spot saves {share(less)}: {cost} ({best.policy}), {whole} on demand"


def _until(played: Replayed) -> str:
    rate = played.break_even_per_hour()
    if rate is None:
        return ""
    observed = played.market.interruptions_per_hour(played.home)
    return f"Spot would save nothing with {rounded(rate, 2)} interruptions an hour; " + (
        f"this trace has {rounded(observed, 2)}." if observed else "this trace has none."
    )


def _unknown_interruption_rates(report: Report) -> list[UnknownRate]:
    catalogue = report.catalogue
    unknown = [
        (price, machine)
        for machine in catalogue.hardware.values()
        for price in current_prices(catalogue.prices_of(machine.id))
        if can_be_interrupted(price)
    ]
    plans = []
    for price, machine in unknown:
        usage = Usage(
            Decimal(_HOURS * SECONDS_PER_HOUR), 1, machine.vcpus, bool(machine.accelerators)
        )
        hour = on_demand_per_hour(catalogue, machine.id, price.currency)
        on_demand = "—" if hour is None else _money(hour * _HOURS, price.currency)
        totals = [quote(interrupted_at(price, rate), usage).total for rate in SHOWN_RATES]
        day = tuple(money(total, price.currency) for total in totals)
        plans.append((totals[0], machine.name, (price, machine, on_demand, day)))
    return [plan for _, _, plan in sorted(plans, key=itemgetter(0, 1))]


def _money(amount: float, currency: str) -> str:
    return money(Decimal(f"{amount:.12g}"), currency)
