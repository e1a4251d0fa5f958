"""`epochcost quote`: show the lines of a bill, at a price of the catalogue or an hourly rate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Annotated, Any

import typer

from epochcost import units
from epochcost.cli import terminal
from epochcost.cli.bundled import catalogue_to_read
from epochcost.cli.terminal import ids, print_json, print_table, say, with_option_groups
from epochcost.cost.bill import NINE_OF_TEN, quote_at_rate, quote_quantile, totals_by_rate
from epochcost.cost.bill import quote as bill_of
from epochcost.cost.lines import Line, Quote, Usage
from epochcost.errors import InputError, UsageError
from epochcost.measure.cpu import usable_cpus
from epochcost.specs.price import Price
from epochcost.specs.terms import BILLING_RULES, BillingName

_MOST_RATE_PLACES = 6


@dataclass(frozen=True, slots=True)
class QuoteOptions:
    """Options for the use of machines, and for the price: an id in the catalogue, or a rate."""

    duration: Annotated[
        str | None, typer.Option(help="Time used: 428, 90m, 2h, 1h30m.  [required]")
    ] = None
    count: Annotated[int, typer.Option(help="Machines in parallel, each with its own bill.")] = 1
    vcpus: Annotated[int | None, typer.Option(help="vCPUs of one machine, for plans per vCPU.")] = (
        None
    )
    runs: Annotated[int, typer.Option(help="Repetitions in a row, each with a new start.")] = 1
    egress_gb: Annotated[
        str | None, typer.Option(help="Gigabytes sent out of the cloud; only with --price.")
    ] = None
    price: Annotated[
        str | None,
        typer.Option(help="Id of a price in specs/prices.", autocompletion=ids("prices")),
    ] = None
    rate: Annotated[str | None, typer.Option(help="Price of an hour, instead of --price.")] = None
    billing: Annotated[BillingName | None, typer.Option(help="How --rate is billed.")] = None
    currency: Annotated[str | None, typer.Option(help="Currency of --rate.  [default: USD]")] = None

    def usage(self) -> Usage:
        """Make a ``Usage`` from the options; raises InputError for an invalid time or number."""
        moved = units.parse_decimal(self.egress_gb or "0", "egress-gb")
        seconds_used = units.parse_duration_seconds(self.duration or "")
        return Usage(seconds_used, self.count, self.vcpus, runs=self.runs, egress_gb=moved)


@dataclass(frozen=True, slots=True)
class _Bill:
    """The bill of a use of machines; ``price`` is None if the bill is at an hourly rate."""

    quote: Quote
    usage: Usage
    plan_text: str
    price: Price | None = None


@with_option_groups
def quote(asked: QuoteOptions, form: terminal.OutputFormat = "text") -> None:
    """Show the bill for a duration of use, line by line.

    Example: epochcost quote --price g6.xlarge-on-demand-2026-07 --duration 428s
    """
    _require_consistent_options(asked)
    bill = _bill_at_rate(asked) if asked.price is None else _bill_of_price(asked, asked.price)
    if form == "json":
        print_json(_bill_fields(bill))
    else:
        _show(bill)


def _require_consistent_options(asked: QuoteOptions) -> None:
    if asked.price is not None and asked.rate is not None:
        raise UsageError("quote: expected either --price ID or --rate AMOUNT, got both")
    if asked.price is not None and (asked.billing is not None or asked.currency is not None):
        raise UsageError("quote: --billing and --currency belong to --rate; a price has its own")
    needed = {
        "--duration": asked.duration,
        "--price ID or --rate AMOUNT": asked.rate if asked.price is None else asked.price,
    }
    if asked.rate is not None:
        needed[f"--billing: {', '.join(BILLING_RULES)}"] = asked.billing
    missing = [option for option, value in needed.items() if value is None]
    if missing:
        raise UsageError(f"quote: missing {'; '.join(missing)}")
    if asked.price is None and (asked.vcpus is not None or asked.egress_gb is not None):
        raise UsageError(
            "quote: --vcpus and --egress-gb belong to --price; a rate is per machine and hour"
        )


def _bill_of_price(asked: QuoteOptions, identifier: str) -> _Bill:
    catalogue, usage = catalogue_to_read(), asked.usage()
    if identifier in catalogue.hardware and identifier not in catalogue.prices:
        prices = ", ".join(price.id for price in catalogue.prices_of(identifier)) or "none"
        raise InputError(
            f"price: expected a price; {identifier} is a machine, its prices: {prices}"
        )
    price = catalogue.price(identifier)
    if usage.vcpus is None:
        machine = catalogue.machine(price.hardware)
        # A detected machine is this computer.
        usage = replace(usage, vcpus=usable_cpus() if machine.detected else machine.vcpus)
    elif not price.is_per_vcpu:
        raise UsageError(f"quote: --vcpus has no effect: {identifier} is not a price per vCPU")
    return _Bill(bill_of(price, usage), usage, _price_heading(price), price)


def _price_heading(price: Price) -> str:
    place = f", {price.region}" if price.region else ""
    heading = f"{price.id}: {price.provider}{place}, {price.plan_text}, prices of {price.as_of}"
    return ", ".join(filter(None, (heading, price.age)))


def _bill_at_rate(asked: QuoteOptions) -> _Bill:
    assert asked.rate is not None, "either --price or --rate is set"
    assert asked.billing is not None, "a rate has a billing"
    currency, usage = asked.currency or "USD", asked.usage()
    amount = units.parse_decimal(asked.rate, "rate")
    quoted = quote_at_rate(amount, BILLING_RULES[asked.billing], usage, currency)
    heading = f"{_formatted_rate(amount, currency)} per hour, {asked.billing} billing"
    return _Bill(quoted, usage, heading)


def _bill_fields(bill: _Bill) -> dict[str, Any]:
    quoted, price, usage = bill.quote, bill.price, bill.usage
    credited = quoted.credit_left is not None
    return {
        "total": quoted.total,
        "currency": quoted.currency,
        "lines": quoted.lines,
        "price": quoted.price_id,
        "as_of": quoted.as_of,
        "assumed": quoted.assumed,
        "elapsed_seconds": quoted.elapsed_seconds,
        "expected_value": price is not None
        and (_has_known_interruptions(price) or price.start.failure_probability > 0),
        "nine_of_ten": [
            {"total": end.total, "elapsed_seconds": end.elapsed_seconds}
            for end in (_nine_of_ten(price, usage) if price else ())
        ],
        "by_interruptions_per_hour": [
            {"rate": rate, "total": total}
            for rate, total in (totals_by_rate(price, usage) if price else ())
        ],
        "before_credit": quoted.before_credit if credited else None,
        "credit_left": quoted.credit_left,
    }


def _has_known_interruptions(price: Price) -> bool:
    return price.interruptions is not None and price.interruptions.rate_per_hour > 0


def _nine_of_ten(price: Price, usage: Usage) -> list[Quote]:
    """Two bills between which the bills of nine of ten runs lie, before free credit is subtracted.

    Empty if the price plan has no interruptions.
    """
    known = _has_known_interruptions(price)
    return [quote_quantile(price, usage, part) for part in NINE_OF_TEN] if known else []


def _show(bill: _Bill) -> None:
    currency, lines = bill.quote.currency, bill.quote.lines
    places = max(units.significant_places(line.amount, 3) for line in lines)
    say(f"{_render_usage(bill.usage)}; {bill.plan_text}\n")
    total = ("total", "", "", units.money(bill.quote.total, currency, places))
    rows = [*(_row(line, currency, places) for line in lines), total]
    print_table(("part", "quantity", "rate", "amount"), rows)
    notes = list(_note_sentences(bill))
    if notes:
        say("\n" + "\n".join(notes))


def _render_usage(usage: Usage) -> str:
    used = (
        f"{units.plain(usage.duration_seconds)} s on {units.render_count(usage.count, 'machine')}"
    )
    return used if usage.runs == 1 else f"{used}, {usage.runs:,} runs in a row"


def _row(line: Line, currency: str, places: int) -> tuple[str, str, str, str]:
    quantity = f"{line.quantity:,.{units.significant_places(line.quantity, 4)}f} {line.unit}"
    rate = f"{_formatted_rate(line.rate, currency)} per {line.unit}"
    return line.label, quantity, rate, units.money(line.amount, currency, places)


def _formatted_rate(rate: Decimal, currency: str) -> str:
    exact = len(units.plain(rate).partition(".")[2])
    shortened = max(_MOST_RATE_PLACES, units.significant_places(rate, 2))
    return units.money(rate, currency, max(2, min(exact, shortened)))


def _note_sentences(bill: _Bill) -> Iterator[str]:
    quoted, usage = bill.quote, bill.usage
    if quoted.elapsed_seconds != usage.duration_seconds * usage.runs:
        elapsed = units.seconds(float(quoted.elapsed_seconds))
        yield f"Elapsed: {elapsed}, with starts, checkpoints and repeated work."
    if bill.price is not None:
        yield from _interruption_sentences(bill.price, quoted, usage)
    if quoted.credit_left is not None:
        before, rest = quoted.before_credit, quoted.credit_left
        yield (
            f"Before the credit: {units.money(before, quoted.currency)}. "
            f"Left of the credit: {units.money(rest, quoted.currency)}."
        )
    if quoted.assumed:
        yield "Assumed, not a market price."


def _interruption_sentences(price: Price, quoted: Quote, usage: Usage) -> Iterator[str]:
    currency = quoted.currency
    if totals := totals_by_rate(price, usage):
        costs = ", ".join(
            f"{units.money(total, currency)} at {units.share(rate)}" for rate, total in totals
        )
        yield (
            "The rate of interruptions is unknown. Cost by interruptions an hour, with 30 s to "
            f"save and 5 min to resume: {costs}."
        )
    if ends := _nine_of_ten(price, usage):
        amounts = " to ".join(units.money(end.total, currency) for end in ends)
        times = " to ".join(units.seconds(float(end.elapsed_seconds)) for end in ends)
        credit = " before credit" if quoted.credit_left is not None else ""
        yield (
            f"The bill has the expected interruptions: nine runs of ten cost {amounts}{credit}, "
            f"in {times}."
        )
