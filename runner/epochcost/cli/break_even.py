"""`epochcost break-even`: show the hours of use a month above which buying beats renting."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated

import typer

from epochcost.cli import terminal
from epochcost.cli.bundled import catalogue_to_read
from epochcost.cli.terminal import fields_of, ids, print_json, print_table, say
from epochcost.cost.break_even import Alternative, Comparison, compare, rents_named
from epochcost.errors import UsageError
from epochcost.measure.cpu import usable_cpus
from epochcost.units import money, parse_decimal, share

# Columns to drop on a narrow terminal, the first ones first; sentences repeat the first.
_DROP = ("buying is cheaper", "an hour")


def break_even(
    own: Annotated[
        str, typer.Option(help="Id of an owned plan in specs/prices.", autocompletion=ids("prices"))
    ],
    rent: Annotated[
        list[str] | None,
        typer.Option(
            help="Id of a rented plan.  [default: all plans of the same kind of machine]",
            autocompletion=ids("prices"),
        ),
    ] = None,
    hours_per_month: Annotated[
        str | None, typer.Option(help="Hours of use a month.  [default: the plan's utilisation]")
    ] = None,
    speed: Annotated[
        str | None, typer.Option(help="Speed of the rented machine relative to the owned machine.")
    ] = None,
    vcpus: Annotated[
        int | None, typer.Option(min=1, help="vCPUs of the machine, for plans per vCPU.")
    ] = None,
    wide: terminal.WideTable = False,
    form: terminal.OutputFormat = "text",
) -> None:
    """Show the hours of use a month above which buying is cheaper than renting.

    Example: epochcost break-even --own assumed-workstation-1x-a6000
    """
    catalogue = catalogue_to_read()
    price = catalogue.price(own)
    hardware = catalogue.machine(price.hardware)
    if speed is not None and not rent:
        raise UsageError("break-even: --speed needs --rent: it is the rented machine's speed")
    if vcpus is not None and not price.is_per_vcpu:
        raise UsageError(f"break-even: --vcpus has no effect: {own} is not a price per vCPU")
    rents = rents_named(catalogue, price, [*dict.fromkeys(rent or ())], _number(speed, "speed"))
    comparison = compare(
        price,
        rents,
        _number(hours_per_month, "hours-per-month"),
        vcpus or (usable_cpus() if hardware.detected else hardware.vcpus),
    )
    if form == "json":
        print_json(fields_of(comparison) | {"currency": price.currency})
    else:
        _show(comparison, wide=wide)


def _number(text: str | None, name: str) -> Decimal | None:
    return None if text is None else parse_decimal(text, name)


def _show(comparison: Comparison, *, wide: bool) -> None:
    owned, month, hours = comparison.owned, comparison.month, comparison.hours
    assumed = ", assumed" if owned.assumed else ""
    say(
        f"{owned.id} ({owned.provider}, {owned.as_of}{assumed}): "
        f"the whole machine costs {money(month.at(Decimal(0)), owned.currency)} a month unused and "
        f"{money(month.per_hour, owned.currency)} more for each hour of use.\n"
    )
    header = ("rented plan", "an hour", "buying is cheaper", f"{hours:.4g} h a month", "pays back")
    bought = (owned.id, "-", "-", money(month.at(hours), owned.currency), "-")
    rows = [
        (
            rented.rent.price.id,
            money(rented.month.per_hour, owned.currency),
            rented.crossing.phrase,
            money(rented.month.at(hours), owned.currency),
            rented.payback.phrase,
        )
        for rented in comparison.alternatives
    ]
    print_table(header, [bought, *rows], drop=_DROP, wide=wide)
    say("\n" + "\n".join(_break_even_sentence(rented) for rented in comparison.alternatives))
    discounted = [rented for rented in comparison.alternatives if rented.month.shares]
    for rented in discounted:
        shares = ", ".join(map(share, rented.month.shares))
        name = rented.rent.price.id
        say(f"\nSustained use of {name}: an hour costs {shares} by quarter of a month.")
    say(
        "\nRented hours are shares of a running machine, without starts, rounding, interruptions "
        "and free credit. The bill of a job has only the job's hours, and the unused hours that "
        "the utilisation adds to each: see docs/explanation/bills.md#owned-machines."
    )


def _break_even_sentence(rented: Alternative) -> str:
    price = rented.rent.price
    return (
        f"Against {price.id} ({price.as_of}{', assumed' if price.assumed else ''}; "
        f"{rented.rent.why}), buying is cheaper {rented.crossing.phrase}."
    )
