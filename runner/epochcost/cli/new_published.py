"""`epochcost new published`: a published table's spec, begun with the times of its source."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from typing import Annotated, Any

import typer

from epochcost.cli.bundled import own_catalogue
from epochcost.cli.new_options import Id, Source, require, spec_values, write
from epochcost.cli.terminal import ids, pairs
from epochcost.errors import InputError
from epochcost.specs.catalogue import Catalogue
from epochcost.units import parse_duration_seconds


def published(
    identifier: Id = None,
    title: Annotated[str | None, typer.Option(help="The title of the source.")] = None,
    authors: Annotated[str | None, typer.Option(help="Who wrote it.")] = None,
    year: Annotated[str | None, typer.Option(metavar="YEAR", help="When.")] = None,
    workload: Annotated[str | None, typer.Option(help="What was run, in words.")] = None,
    model: Annotated[
        str | None, typer.Option(help="As a model here.", autocompletion=ids("models"))
    ] = None,
    source: Source = None,
    as_of: Annotated[
        str | None, typer.Option(metavar="DATE", help="The day of the source.")
    ] = None,
    timing: Annotated[
        list[str] | None,
        typer.Option(metavar="MACHINE=TIME", help="Of a machine, by its id: 8.21h; repeat."),
    ] = None,
    cost: Annotated[
        list[str] | None,
        typer.Option(metavar="MACHINE=USD", help="The cost of it that the source prints; repeat."),
    ] = None,
    per_epoch: Annotated[
        bool, typer.Option("--per-epoch", help="Both are of an epoch, not of all the work.")
    ] = False,
    batch_size: Annotated[int | None, typer.Option(min=1, help="Examples in a step.")] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Epochs of all the work.")] = None,
) -> None:
    """Begin a published table in specs/published/, with its times.

    Example: epochcost new published --id example-2026 --model mnist-cnn --title "A table"
      --authors "A. Author" --year 2026 --workload "MNIST" --source "https://example.org" --as-of
      2026-11-01 --timing p3.2xlarge=0.12h
    """
    given = {
        "id": identifier,
        "title": title,
        "authors": authors,
        "year": year,
        "workload": workload,
        "model": model,
        "source": source,
        "as_of": as_of,
    }
    optional = {"model"}
    require({key: text for key, text in given.items() if key not in optional} | {"timing": timing})
    values = spec_values("published", given)
    common = {"batch_size": batch_size, "epochs": epochs}
    known = {key: number for key, number in common.items() if number is not None}
    times, costs = (
        pairs("--timing", timing or [], "p3.2xlarge=1.5h"),
        pairs("--cost", cost or [], "a4=3.9"),
    )
    for machine in costs.keys() - times.keys():
        raise InputError(f"--cost: expected a machine of --timing, got {machine!r:.80}")
    catalogue = own_catalogue()
    values["timings"] = [
        {
            **{"id": machine, "hardware": machine, **known},
            **_time(text, per_epoch=per_epoch),
            **_price(catalogue, machine, values["as_of"]),
            **({"claims": [_cost(costs[machine], per_epoch)]} if machine in costs else {}),
        }
        for machine, text in times.items()
    ]
    write("published", values)


def _price(catalogue: Catalogue, machine: str, day: dt.date) -> dict[str, str]:
    """The newest on demand that is no later than the source, if any."""
    prices = [one for one in catalogue.prices_of(machine) if one.plan == "on-demand"]
    known = [one for one in prices if str(one.as_of) <= str(day)]
    return {"price": max(known, key=lambda one: one.as_of).id} if known else {}


def _cost(printed: str, per_epoch: bool) -> dict[str, Any]:
    formula = {"name": "bill", "epochs": 1} if per_epoch else {"name": "bill"}
    return {"label": "cost", "printed": printed, "unit": "USD", "formula": formula}


def _time(text: str, *, per_epoch: bool) -> dict[str, Decimal]:
    """With the digits and in the unit of the source where it is hours: rounding is told by them."""
    if per_epoch:
        return {"seconds_per_epoch": parse_duration_seconds(text)}
    hours = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?h(?:ours?)?", text)
    return {"hours": Decimal(hours[1])} if hours else {"seconds": parse_duration_seconds(text)}
