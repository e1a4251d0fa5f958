"""Options and output that are common to the commands that list machines by cost."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Annotated

import typer

from epochcost.analysis.decoder_places import Refusal
from epochcost.cli.terminal import print_table, say
from epochcost.cost import Estimate, Time
from epochcost.cost.compare import Limits
from epochcost.errors import InputError
from epochcost.specs.price import Price
from epochcost.statistics import group_by
from epochcost.units import parse_decimal, parse_duration_seconds

_MOST_NAMED = 5
Deadline = Annotated[str | None, typer.Option(help="Longest wall time: 90m, 2h, 1h30m.")]
Budget = Annotated[
    str | None,
    typer.Option(
        help="Highest cost: 5USD. Without --deadline, the fastest affordable choice wins."
    ),
]
ShowAll = Annotated[
    bool, typer.Option("--all", help="Show all choices, and all that was left out.")
]


def limits_of(deadline: str | None, budget: str | None) -> Limits:
    """Parse the options for deadline and budget; raises InputError for an invalid value."""
    latest = None if deadline is None else parse_duration_seconds(deadline, "deadline")
    if budget is None:
        return Limits(latest)
    amount, currency = parse_money(budget, "budget")
    return Limits(latest, amount, currency or "USD")


def parse_money(text: str, name: str) -> tuple[Decimal, str | None]:
    """Parse ``5USD`` or ``5`` (currency None); raises InputError, which begins with ``name``."""
    match = re.fullmatch(r"([0-9.]+(?:[eE]\+?[0-9]+)?)\s*([A-Z]{3})?", text.strip())
    amount = parse_decimal(match[1], name) if match else Decimal(0)
    if match is None or amount <= 0:
        raise InputError(f"{name}: expected an amount above 0, such as 5USD, got {text!r:.80}")
    return amount, match[2]


def print_choices(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    beyond: Sequence[Sequence[str]] = (),
    *,
    drop: Sequence[str],
    wide: bool,
    hidden: int,
) -> None:
    """Print a table of machines, then name the command-line options that show omitted parts of it.

    ``beyond`` are the machines that miss the deadline or the budget, printed in a second table.
    ``hidden`` is the number of omitted rows. ``drop`` and ``wide`` are as for ``print_table``.
    """
    left_out = print_table(header, rows, drop=drop, wide=wide)
    more = [f"{hidden} more: --all"] if hidden > 0 else []
    if left_out:
        more.append(f"{', '.join(left_out[:2])}{', …' if left_out[2:] else ''}: --wide")
    say(f"  … {'; '.join(more)}\n" if more else "")
    if beyond:
        say("Beyond the limits:\n")
        print_table(header, beyond, drop=drop, wide=wide)
        say()


def render_range(cost: Estimate, time: Time) -> str:
    """The range of a cost, and the reason if it has no low end or no range at all."""
    if cost.between:
        few = "" if cost.bounded else ", too few samples for a lower bound"
        return f"{cost.between}{few}"
    if time.low == time.high:
        return "its time has no interval"
    return "the whole range of its time is billed the same"


def how_known(mark: str, price: Price) -> str:
    """How a cost is known: ``mark``, such as "measured", and the price's drawback, if any."""
    # The mark of an assumed price says already that the price is assumed.
    reason = "" if price.assumed else price.reservation
    return f"{mark}; {reason}" if reason else mark


def left_out_lines(refused: Sequence[Refusal], *, show_all: bool) -> Iterator[str]:
    """Yield a line for each reason why machines were left out, with the machines' names."""
    for reason, group in group_by(refused, lambda refusal: refusal.reason).items():
        named = [
            f"{refusal.machine} ({refusal.detail})" if refusal.detail else refusal.machine
            for refusal in group[: None if show_all else _MOST_NAMED]
        ]
        more = f" and {len(group) - len(named)} more: --all" if len(named) < len(group) else ""
        yield f"Left out, {reason}: {', '.join(named)}{more}"
