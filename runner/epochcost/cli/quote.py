"""`epochcost quote`: the lines of a bill, for a price of the catalogue or for a bare rate."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Annotated, Any

import typer

from epochcost.cli.bundled import catalogue_to_read
from epochcost.cli.quote_extras import (
    EnergyOptions,
    ProjectOptions,
    converted_as_json,
    converted_words,
    energy_as_json,
    energy_words,
    find_conversion,
    parse_day,
    project_as_json,
    project_words,
)
from epochcost.cli.terminal import (
    ExactAmounts,
    ids,
    price_words,
    print_json,
    print_table,
    say,
    with_option_groups,
)
from epochcost.cost import Line, Quote, Usage, quote_at_rate, quote_quantile
from epochcost.cost import quote as bill
from epochcost.cost.bill import NINE_OF_TEN
from epochcost.cost.currency import Conversion
from epochcost.cost.energy import EnergyUse, UnknownEnergy
from epochcost.cost.project import ProjectQuote, quote_project
from epochcost.cost.spot import SHOWN_RATES, can_be_interrupted, interrupted_at
from epochcost.errors import InputError, UsageError
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.price import Price
from epochcost.specs.terms import BILLING_RULES, BillingName
from epochcost.units import (
    money,
    parse_decimal,
    parse_duration_seconds,
    plain,
    seconds,
    share,
    significant_places,
)

_MOST_RATE_PLACES = 6


@dataclass(frozen=True, slots=True)
class _Bill:
    """A quote, what it is for, and what is shown beside it."""

    quote: Quote
    usage: Usage
    plan: str
    note: str = ""
    price: Price | None = None
    project: ProjectQuote | None = None
    conversion: Conversion | None = None
    energy: EnergyUse | UnknownEnergy | None = None


@dataclass(frozen=True, slots=True)
class UsageOptions:
    """The options that say what is used."""

    duration: Annotated[
        str | None, typer.Option(help="Time used: 428, 90m, 2h, 1h30m.  [required]")
    ] = None
    count: Annotated[int, typer.Option(help="Machines at once, each billed by itself.")] = 1
    vcpus: Annotated[int | None, typer.Option(help="vCPUs of one machine, for plans per vCPU.")] = (
        None
    )
    runs: Annotated[int, typer.Option(help="Times in a row, each started anew.")] = 1
    egress_gb: Annotated[
        str | None, typer.Option(help="Gigabytes out of the cloud in all, for --price.")
    ] = None

    def usage(self) -> Usage:
        """What they say; raises InputError where it is no time or number."""
        moved = parse_decimal(self.egress_gb or "0", "egress-gb")
        seconds_used = parse_duration_seconds(self.duration or "")
        return Usage(seconds_used, self.count, self.vcpus, runs=self.runs, egress_gb=moved)


@dataclass(frozen=True, slots=True)
class PriceOptions:
    """The options that say what is paid: a price of the catalogue, or a bare rate."""

    price: Annotated[
        str | None,
        typer.Option(help="Id of a price in specs/prices.", autocompletion=ids("prices")),
    ] = None
    rate: Annotated[str | None, typer.Option(help="Amount per hour, instead of --price.")] = None
    billing: Annotated[BillingName | None, typer.Option(help="How --rate is billed.")] = None
    currency: Annotated[
        str | None, typer.Option(help="Of --rate; with --price, show the total in it too.")
    ] = None
    rate_day: Annotated[
        str | None, typer.Option(help="Day of the exchange rate.  [default: today]")
    ] = None

    def __post_init__(self) -> None:
        if self.price is not None and self.rate is not None:
            raise UsageError("quote: expected either --price ID or --rate AMOUNT, got both")
        if self.price is not None and self.billing is not None:
            raise UsageError("quote: --billing belongs to --rate; a price has its own")


@with_option_groups
def quote(
    used: UsageOptions,
    paid: PriceOptions,
    project: ProjectOptions,
    energy: EnergyOptions,
    form: ExactAmounts = "text",
) -> None:
    """Show the bill for a time of use, line by line.

    Example: epochcost quote --price g6.xlarge-on-demand-2026-07 --duration 428s
    """
    _check_together(used, paid, project)
    usage = used.usage()
    if paid.price is not None:
        bill = _bill_of_price(paid.price, usage, project)
        if paid.currency is not None:
            day = parse_day(paid.rate_day)
            conversion = find_conversion(bill.quote, paid.currency, _catalogue(), day)
            bill = replace(bill, conversion=conversion)
    else:
        bill = _bill_at_rate(paid, usage)
    if energy.grid is not None:
        bill = replace(bill, energy=_energy(energy, bill))
    if form == "json":
        print_json(_as_json(bill))
    else:
        _show(bill)


def _check_together(used: UsageOptions, paid: PriceOptions, project: ProjectOptions) -> None:
    """Refuse what is missing, and options of one group that those of another leave no room for."""
    needed = {
        "--duration": used.duration,
        "--price ID or --rate AMOUNT": paid.price or paid.rate,
        f"--billing: {', '.join(BILLING_RULES)}": paid.billing if paid.rate else "a price's",
    }
    missing = [option for option, given in needed.items() if given is None]
    if missing:
        raise UsageError(f"quote: missing {'; '.join(missing)}")
    if paid.price is None and used.vcpus is not None:
        raise UsageError("quote: --vcpus belongs to --price; a rate is per machine")
    if paid.price is None and used.egress_gb is not None:
        raise UsageError("quote: --egress-gb belongs to --price; a rate is per hour")
    if paid.price is None and project.wanted:
        raise UsageError("quote: a project belongs to --price; use --runs with --rate")
    if project.wanted and used.runs != 1:
        raise UsageError("quote: --runs demands no project; its runs are configurations x repeats")
    if paid.rate_day is not None and (paid.price is None or paid.currency is None):
        raise UsageError("quote: --rate-day demands --price and --currency")


def _catalogue() -> Catalogue:
    return catalogue_to_read()


def _energy(options: EnergyOptions, bill: _Bill) -> EnergyUse | UnknownEnergy:
    """Of all runs: of a project, those that count and those that are expected to fail."""
    if bill.project is None:
        return options.energy(bill.price, bill.usage, Decimal(0), _catalogue())
    project = bill.project.project
    usage = replace(bill.usage, runs=project.runs)
    return options.energy(bill.price, usage, project.failures / project.runs, _catalogue())


def _bill_of_price(identifier: str, usage: Usage, planned: ProjectOptions) -> _Bill:
    catalogue = _catalogue()
    _refuse_machine(identifier, catalogue)
    price = catalogue.price(identifier)
    note = "Assumed, not a market price." if price.assumed else ""
    usage = _with_vcpus(usage, price, catalogue)
    if not planned.wanted:
        return _Bill(bill(price, usage), usage, price_words(price), note, price)
    found = quote_project(price, usage, planned.chosen())
    return _Bill(found.quote, usage, price_words(price), note, price, found)


def _refuse_machine(identifier: str, catalogue: Catalogue) -> None:
    """A machine's id in place of a price's is answered with the machine's prices."""
    if identifier in catalogue.hardware and identifier not in catalogue.prices:
        prices = ", ".join(price.id for price in catalogue.prices_of(identifier)) or "none"
        raise InputError(
            f"price: expected a price; {identifier} is a machine, its prices: {prices}"
        )


def _with_vcpus(usage: Usage, price: Price, catalogue: Catalogue) -> Usage:
    """The usage with the vCPUs of the catalogue's machine, where the caller gives none."""
    if usage.vcpus is not None:
        return usage
    hardware = catalogue.machine(price.hardware)
    return replace(usage, vcpus=os.cpu_count() if hardware.detected else hardware.vcpus)


def _bill_at_rate(paid: PriceOptions, usage: Usage) -> _Bill:
    assert paid.rate is not None, "one of both options is given"
    assert paid.billing is not None, "a rate has a billing"
    currency = paid.currency or "USD"
    if re.fullmatch("[A-Z]{3}", currency) is None:
        raise InputError(f"currency: expected three capitals, such as USD, got {currency!r}")
    amount = parse_decimal(paid.rate, "rate")
    quoted = quote_at_rate(amount, BILLING_RULES[paid.billing], usage, currency)
    return _Bill(quoted, usage, f"{_rate(amount, currency)} per hour, {paid.billing} billing")


def _as_json(bill: _Bill) -> dict[str, Any]:
    quoted = bill.quote
    whole: dict[str, Any] = {
        "total": quoted.total,
        "currency": quoted.currency,
        "lines": quoted.lines,
    }
    if bill.project is not None:
        whole["project"] = project_as_json(bill.project)
    if bill.conversion is not None:
        whole["converted"] = converted_as_json(quoted, bill.conversion)
    if bill.energy is not None:
        whole["energy"] = energy_as_json(bill.energy)
    return whole


def _show(bill: _Bill) -> None:
    currency, lines = bill.quote.currency, bill.quote.lines
    places = max(significant_places(line.amount, 3) for line in lines)
    say(f"{_usage_words(bill.usage)}; {bill.plan}\n")
    total = ("total", "", "", money(bill.quote.total, currency, places))
    rows = [*(_row(line, currency, places) for line in lines), total]
    print_table(("part", "quantity", "rate", "amount"), rows)
    notes = [*_notes(bill), *filter(None, [bill.note])]
    if notes:
        say("\n" + "\n".join(notes))


def _usage_words(usage: Usage) -> str:
    time = f"{plain(usage.duration_seconds)} s"
    used = f"{time} on 1 machine" if usage.count == 1 else f"{usage.count:,} times {time} at once"
    return used if usage.runs == 1 else f"{used}, {usage.runs:,} runs in a row"


def _notes(bill: _Bill) -> Iterator[str]:
    """What the lines do not say: the time on the wall, credit, currency, energy."""
    quoted, usage = bill.quote, bill.usage
    if bill.project is not None:
        yield from project_words(bill.project)
    elif quoted.elapsed_seconds != usage.duration_seconds * usage.runs:
        elapsed = seconds(float(quoted.elapsed_seconds))
        yield f"Elapsed: {elapsed}, with start-ups and what is expected of failures."
    if bill.project is None and bill.price is not None:
        yield from _spread_words(bill.price, bill.quote, bill.usage)
        yield from _unknown_rate_words(bill.price, usage)
    if quoted.credit_left is not None:
        before, left = quoted.before_credit, quoted.credit_left
        yield (
            f"Before the credit: {money(before, quoted.currency)}. "
            f"Left of the credit: {money(left, quoted.currency)}."
        )
    if bill.conversion is not None:
        yield converted_words(quoted, bill.conversion)
    if bill.energy is not None:
        yield from energy_words(bill.energy)


def _unknown_rate_words(price: Price, usage: Usage) -> Iterator[str]:
    """What a spot plan without a rate of interruptions costs if it has one."""
    if can_be_interrupted(price):
        costs = ", ".join(
            f"{money(bill(interrupted_at(price, rate), usage).total, price.currency)} at "
            f"{share(float(rate))}"
            for rate in SHOWN_RATES
        )
        yield (
            "How often it is taken back is unknown. By interruptions an hour, with 30 s to save "
            f"and 5 min to go on: {costs}."
        )


def _spread_words(price: Price, quoted: Quote, usage: Usage) -> Iterator[str]:
    """Between which amounts most runs lie, where interruptions make them differ."""
    if price.interruptions is None or price.interruptions.rate_per_hour == 0:
        return
    low, high = (quote_quantile(price, usage, share) for share in NINE_OF_TEN)
    amounts = " to ".join(money(one.total, quoted.currency) for one in (low, high))
    times = " to ".join(seconds(float(one.elapsed_seconds)) for one in (low, high))
    credit = " before credit" if quoted.credit_left is not None else ""
    yield (
        f"Interruptions are billed as expected: nine runs of ten cost {amounts}{credit}, "
        f"in {times}."
    )


def _row(line: Line, currency: str, places: int) -> tuple[str, str, str, str]:
    quantity = f"{line.quantity:,.{significant_places(line.quantity, 4)}f} {line.unit}"
    rate = f"{_rate(line.rate, currency)} per {line.unit}"
    return line.label, quantity, rate, money(line.amount, currency, places)


def _rate(rate: Decimal, currency: str) -> str:
    """A rate with its own decimals, as a price list prints it; long ones are shortened."""
    exact = len(plain(rate).partition(".")[2])
    shortened = max(_MOST_RATE_PLACES, significant_places(rate, 2))
    return money(rate, currency, max(2, min(exact, shortened)))
