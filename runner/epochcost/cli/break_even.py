"""`epochcost break-even`: after how many hours of use a month buying beats renting."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import typer

from epochcost.cli.bundled import catalogue_to_read, results_to_read
from epochcost.cli.terminal import (
    RESULTS,
    ExactFigures,
    WideTable,
    ids,
    print_json,
    print_table,
    say,
)
from epochcost.cost import break_even as cost
from epochcost.cost.break_even import (
    BreakEven,
    MonthlyCost,
    Payback,
    Rent,
    Substitutes,
    buying_words,
    payback_words,
)
from epochcost.cost.owned import HOURS_PER_CALENDAR_MONTH
from epochcost.errors import InputError, UsageError
from epochcost.results.store import load_all
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.price import Price
from epochcost.units import money, parse_decimal

# What goes first where the terminal is too narrow; sentences below the table say the first.
_DROP = ("buying is cheaper", "an hour")


@dataclass(frozen=True, slots=True)
class _Compared:
    """A rented plan beside the owned one."""

    rent: Rent
    month: MonthlyCost
    crossing: BreakEven
    payback: Payback


@dataclass(frozen=True, slots=True)
class _Question:
    """The owned plan, the hours of a month, and what it is compared with."""

    own: Price
    month: MonthlyCost
    hours: Decimal
    compared: tuple[_Compared, ...]


def break_even(
    own: Annotated[
        str, typer.Option(help="Id of an owned plan in specs/prices.", autocompletion=ids("prices"))
    ],
    rent: Annotated[
        list[str] | None,
        typer.Option(
            help="Id of a rented plan.  [default: all of the same kind of machine]",
            autocompletion=ids("prices"),
        ),
    ] = None,
    hours_per_month: Annotated[
        str | None, typer.Option(help="Hours of use.  [default: the plan's utilisation]")
    ] = None,
    speed: Annotated[
        str | None, typer.Option(help="How fast the rented machine is, the owned one being 1.")
    ] = None,
    vcpus: Annotated[
        int | None, typer.Option(min=1, help="vCPUs of the machine, for plans per vCPU.")
    ] = None,
    results: Annotated[Path, typer.Option(help="Folder of results, for speeds.")] = RESULTS,
    wide: WideTable = False,
    form: ExactFigures = "text",
) -> None:
    """Say from how many hours of use a month buying is cheaper.

    Example: epochcost break-even --own assumed-workstation-1x-a6000
    """
    catalogue = catalogue_to_read()
    price = catalogue.price(own)
    factor = None if speed is None else parse_decimal(speed, "speed")
    rents = _rents(catalogue, price, rent or (), factor, results)
    question = _question(catalogue, price, rents, hours_per_month, vcpus)
    if form == "json":
        print_json(_as_json(question))
    else:
        _show(question, wide=wide)


def _question(
    catalogue: Catalogue,
    own: Price,
    rents: Iterable[Rent],
    hours_per_month: str | None,
    vcpus: int | None,
) -> _Question:
    hardware = catalogue.machine(own.hardware)
    units = vcpus or (os.cpu_count() if hardware.detected else hardware.vcpus)
    month = cost.monthly_owned(own, units)
    assert own.owned is not None, "monthly_owned demands it"
    if hours_per_month is None:
        hours = HOURS_PER_CALENDAR_MONTH * own.owned.utilisation
    else:
        hours = parse_decimal(hours_per_month, "hours-per-month")
    cost.check_hours(hours)
    compared = [
        _Compared(
            rent,
            cost.monthly_rented(rent),
            cost.break_even(own, rent, units),
            cost.payback(own, rent, hours, units),
        )
        for rent in rents
    ]
    return _Question(
        own, month, hours, tuple(sorted(compared, key=lambda one: one.month.at(hours)))
    )


def _rents(
    catalogue: Catalogue,
    own: Price,
    named: Sequence[str],
    speed: Decimal | None,
    results: Path,
) -> list[Rent]:
    """The named plans, or all current ones of the same kind; each with its speed."""
    if speed is not None and not named:
        raise UsageError("break-even: --speed demands --rent, whose machine's speed it is")
    substitutes = Substitutes(catalogue, own, load_all(results_to_read(results)).results)
    rents = [substitutes.rent(identifier, speed) for identifier in named]
    rents = rents or list(substitutes.rents())
    if not rents:
        raise InputError(
            f"{own.id}: expected a rented plan of a machine with the same accelerators, or results "
            "of the same trial on both, found none: name one with --rent, and its --speed"
        )
    return rents


def _as_json(question: _Question) -> dict[str, Any]:
    own, hours = question.own, question.hours
    return {
        "own": own.id,
        "currency": own.currency,
        "assumed": own.assumed,
        "as_of": own.as_of,
        "hours_per_month": hours,
        "fixed_per_month": question.month.at(Decimal(0)),
        "per_hour": question.month.per_hour,
        "at_these_hours": question.month.at(hours),
        "rented": [_one_as_json(one, hours) for one in question.compared],
    }


def _one_as_json(one: _Compared, hours: Decimal) -> dict[str, Any]:
    return {
        "price": one.rent.price.id,
        "as_of": one.rent.price.as_of,
        "assumed": one.rent.price.assumed,
        "speed": one.rent.speed,
        "speed_known_by": one.rent.why,
        "fixed_per_month": one.month.at(Decimal(0)),
        "per_hour": one.month.per_hour,
        "at_these_hours": one.month.at(hours),
        "buying_is_cheaper": one.crossing.outcome,
        "break_even_hours_per_month": one.crossing.hours,
        "payback_years": one.payback.years,
        "pays_by_resale_only": one.payback.by_resale,
        "owned_over_life": one.payback.owned_in_all,
        "rented_over_life": one.payback.rented_in_all,
    }


def _show(question: _Question, *, wide: bool) -> None:
    own, hours = question.own, question.hours
    assumed = ", assumed" if own.assumed else ""
    say(
        f"{own.id} ({own.provider}, {own.as_of}{assumed}): "
        f"{money(question.month.at(Decimal(0)), own.currency)} a month unused and "
        f"{money(question.month.per_hour, own.currency)} more for each hour of use.\n"
    )
    header = ("rented plan", "an hour", "buying is cheaper", f"{hours:.4g} h a month", "pays back")
    bought = (own.id, "-", "-", money(question.month.at(hours), own.currency), "-")
    rows = [bought, *(_row(one, hours) for one in question.compared)]
    print_table(header, rows, drop=_DROP, wide=wide)
    say("\n" + "\n".join(_sentence(one) for one in question.compared))
    say(
        "\nRented hours are shares of a running machine, without starts, rounding, interruptions "
        "and free credit."
    )


def _row(one: _Compared, hours: Decimal) -> tuple[str, ...]:
    currency = one.rent.price.currency
    return (
        one.rent.price.id,
        money(one.month.per_hour, currency),
        buying_words(one.crossing),
        money(one.month.at(hours), currency),
        payback_words(one.payback),
    )


def _sentence(one: _Compared) -> str:
    """The answer as one would say it."""
    price = one.rent.price
    return (
        f"Against {price.id} ({price.as_of}{', assumed' if price.assumed else ''}; "
        f"{one.rent.why}), buying is cheaper {buying_words(one.crossing)}."
    )
