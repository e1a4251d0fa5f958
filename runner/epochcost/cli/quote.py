"""`epochcost quote`: the lines of a bill, for a price of the catalogue or for a bare rate."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from epochcost.cli.tables import print_table
from epochcost.errors import InputError, UsageError
from epochcost.specs.billing import BILLING_RULES, BillingName
from epochcost.units import (
    money,
    parse_decimal,
    parse_duration_seconds,
    plain,
    seconds,
    significant_places,
)

if TYPE_CHECKING:
    from epochcost.cost import Line, Quote, Usage
    from epochcost.specs.catalogue import Catalogue
    from epochcost.specs.price import Price

_MOST_RATE_PLACES = 6


@dataclass(frozen=True, slots=True)
class _Bill:
    """A quote and what it is for, in words."""

    quote: Quote
    plan: str
    note: str = ""


def quote(
    duration: Annotated[str, typer.Option(help="Time used: 428s, 90m, 2h, 1h30m.")],
    price: Annotated[str | None, typer.Option(help="Id of a price in specs/prices.")] = None,
    rate: Annotated[str | None, typer.Option(help="Amount per hour, instead of --price.")] = None,
    billing: Annotated[BillingName | None, typer.Option(help="How --rate is billed.")] = None,
    currency: Annotated[str | None, typer.Option(help="Of --rate.  [default: USD]")] = None,
    count: Annotated[int, typer.Option(help="Machines at once, each billed by itself.")] = 1,
    vcpus: Annotated[
        int | None, typer.Option(help="vCPUs of one machine, for plans per vCPU.")
    ] = None,
    runs: Annotated[int, typer.Option(help="Times in a row, each started anew.")] = 1,
    egress_gb: Annotated[
        str | None, typer.Option(help="Gigabytes out of the cloud in all, for --price.")
    ] = None,
    form: Annotated[
        Literal["text", "json"], typer.Option("--format", help="json has the exact amounts.")
    ] = "text",
) -> None:
    """Show the bill for a time of use: lines that add up to the total."""
    from epochcost.cost import Usage

    _check_options(price, rate, billing, currency)
    _check_options_of_price(price, vcpus, egress_gb)
    moved = parse_decimal(egress_gb or "0", "egress-gb")
    usage = Usage(parse_duration_seconds(duration), count, vcpus, runs=runs, egress_gb=moved)
    if price is not None:
        bill = _bill_of_price(price, usage)
    else:
        assert rate is not None, "_check_options demands it"
        assert billing is not None, "_check_options demands it"
        bill = _bill_at_rate(rate, billing, currency or "USD", usage)
    if form == "json":
        typer.echo(_as_json(bill.quote))
    else:
        _show(bill, usage)


def _check_options(
    price: str | None,
    rate: str | None,
    billing: str | None,
    currency: str | None,
) -> None:
    if (price is None) == (rate is None):
        got = "neither" if price is None else "both"
        raise UsageError(f"quote: demanded either --price ID or --rate AMOUNT; got {got}")
    if rate is not None and billing is None:
        raise UsageError(f"quote: --rate demands --billing: {', '.join(BILLING_RULES)}")
    if price is not None and (billing is not None or currency is not None):
        raise UsageError("quote: --billing and --currency belong to --rate; a price has its own")


def _check_options_of_price(price: str | None, vcpus: int | None, egress_gb: str | None) -> None:
    if price is None and vcpus is not None:
        raise UsageError("quote: --vcpus belongs to --price; a rate is per machine")
    if price is None and egress_gb is not None:
        raise UsageError("quote: --egress-gb belongs to --price; a rate is per hour")


def _bill_of_price(identifier: str, usage: Usage) -> _Bill:
    from epochcost.cost import quote as bill
    from epochcost.specs.loader import load_catalogue

    catalogue = load_catalogue(Path.cwd())
    _refuse_machine(identifier, catalogue)
    price = catalogue.price(identifier)
    place = f", {price.region}" if price.region else ""
    plan = f"{price.id}: {price.provider}{place}, {price.plan}, prices of {price.as_of}"
    note = "Assumed figures, nobody's price list." if price.assumed else ""
    return _Bill(bill(price, _with_vcpus(usage, price, catalogue)), plan, note)


def _refuse_machine(identifier: str, catalogue: Catalogue) -> None:
    """A machine's id in place of a price's is answered with the machine's prices."""
    if identifier in catalogue.hardware and identifier not in catalogue.prices:
        prices = ", ".join(price.id for price in catalogue.prices_of(identifier)) or "none"
        raise InputError(
            f"price: demanded a price; {identifier} is a machine, its prices: {prices}"
        )


def _with_vcpus(usage: Usage, price: Price, catalogue: Catalogue) -> Usage:
    """The usage with the vCPUs of the catalogue's machine, where the caller gives none."""
    if usage.vcpus is not None:
        return usage
    hardware = catalogue.machine(price.hardware)
    return replace(usage, vcpus=os.cpu_count() if hardware.detected else hardware.vcpus)


def _bill_at_rate(rate: str, billing: BillingName, currency: str, usage: Usage) -> _Bill:
    from epochcost.cost import quote_at_rate

    if re.fullmatch("[A-Z]{3}", currency) is None:
        raise InputError(f"currency: demanded three capitals, such as USD; got {currency!r}")
    amount = parse_decimal(rate, "rate")
    quoted = quote_at_rate(amount, BILLING_RULES[billing], usage, currency)
    return _Bill(quoted, f"{_rate(amount, currency)} per hour, {billing} billing")


def _as_json(quoted: Quote) -> str:
    lines = [
        {
            "label": line.label,
            "quantity": plain(line.quantity),
            "unit": line.unit,
            "rate": plain(line.rate),
            "amount": plain(line.amount),
        }
        for line in quoted.lines
    ]
    whole = {"total": plain(quoted.total), "currency": quoted.currency, "lines": lines}
    return json.dumps(whole, indent=2)


def _show(bill: _Bill, usage: Usage) -> None:
    currency, lines = bill.quote.currency, bill.quote.lines
    places = max(significant_places(line.amount, 3) for line in lines)
    typer.echo(f"{_usage_words(usage)}; {bill.plan}\n")
    total = ("total", "", "", money(bill.quote.total, currency, places))
    rows = [*(_row(line, currency, places) for line in lines), total]
    print_table(("part", "quantity", "rate", "amount"), rows)
    notes = [*_notes(bill.quote, usage), *filter(None, [bill.note])]
    if notes:
        typer.echo("\n" + "\n".join(notes))


def _usage_words(usage: Usage) -> str:
    time = f"{plain(usage.duration_seconds)} s"
    used = f"{time} on 1 machine" if usage.count == 1 else f"{usage.count:,} times {time} at once"
    return used if usage.runs == 1 else f"{used}, {usage.runs:,} runs in a row"


def _notes(quoted: Quote, usage: Usage) -> Iterator[str]:
    """What the lines do not say: the time on the wall, and what is left of a credit."""
    if quoted.elapsed_seconds != usage.duration_seconds * usage.runs:
        elapsed = seconds(float(quoted.elapsed_seconds))
        yield f"Elapsed: {elapsed}, with start-ups and what is expected of failures."
    if quoted.credit_left is not None:
        before, left = quoted.before_credit, quoted.credit_left
        yield (
            f"Before the credit: {money(before, quoted.currency)}. "
            f"Left of the credit: {money(left, quoted.currency)}."
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
