"""Options and output that are common to the commands that list machines by cost."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, TypeVar

import typer

from epochcost.analysis.decoder_places import Refusal
from epochcost.cli.terminal import RESULTS, OutputFormat, ResultsFolder, WideTable, print_table, say
from epochcost.cost.compare import Limits
from epochcost.cost.estimate import Estimate, Time
from epochcost.errors import InputError
from epochcost.specs.price import Price
from epochcost.statistics import group_by
from epochcost.units import parse_decimal, parse_duration_seconds, render_some

_MOST_NAMED = 5
_Choice = TypeVar("_Choice")


@dataclass(frozen=True, slots=True)
class LimitOptions:
    """Options that limit time and cost."""

    deadline: Annotated[str | None, typer.Option(help="Longest wall time: 90m, 2h, 1h30m.")] = None
    budget: Annotated[
        str | None,
        typer.Option(
            help="Highest cost: 5USD. Without --deadline, the fastest affordable choice wins."
        ),
    ] = None

    @property
    def limits(self) -> Limits:
        """The parsed limits; raises InputError for an invalid value."""
        latest = (
            None if self.deadline is None else parse_duration_seconds(self.deadline, "deadline")
        )
        if self.budget is None:
            return Limits(latest)
        amount, currency = parse_money(self.budget, "budget")
        return Limits(latest, amount, currency or "USD")


@dataclass(frozen=True, slots=True)
class ListOptions:
    """Options for a list of machines: the results that it uses, its length, width and format."""

    results: ResultsFolder = RESULTS
    show_all: Annotated[
        bool, typer.Option("--all", help="Show all choices, and all that was left out.")
    ] = False
    wide: WideTable = False
    form: OutputFormat = "text"


def parse_money(text: str, name: str) -> tuple[Decimal, str | None]:
    """Parse ``5USD`` or ``5`` (currency None); raises InputError, which begins with ``name``."""
    match = re.fullmatch(r"([0-9.]+(?:[eE]\+?[0-9]+)?)\s*([A-Z]{3})?", text.strip())
    amount = parse_decimal(match[1], name) if match else Decimal(0)
    if match is None or amount <= 0:
        raise InputError(f"{name}: expected an amount above 0, such as 5USD, got {text!r:.80}")
    return amount, match[2]


def print_choices(
    header: Sequence[str],
    choices: Sequence[_Choice],
    short_list: Sequence[_Choice],
    row: Callable[[_Choice], Sequence[str]],
    options: ListOptions,
    *,
    drop: Sequence[str],
    beyond: Sequence[_Choice] = (),
) -> None:
    """Print a table of machines, then name the command-line options that show omitted parts of it.

    ``choices`` are listed with --all, else ``short_list``. ``beyond`` are the machines that miss
    the deadline or the budget, listed in a second table with --all. ``drop`` is as for
    ``print_table``.
    """
    listed = choices if options.show_all else short_list
    hidden = 0 if options.show_all else len(choices) + len(beyond) - len(short_list)
    left_out = print_table(header, [row(each) for each in listed], drop=drop, wide=options.wide)
    more = [f"{hidden} more: --all"] if hidden else []
    if left_out:
        more.append(f"{', '.join(left_out[:2])}{', …' if left_out[2:] else ''}: --wide")
    say(f"  … {'; '.join(more)}\n" if more else "")
    if beyond and options.show_all:
        say("Beyond the limits:\n")
        print_table(header, [row(each) for each in beyond], drop=drop, wide=options.wide)
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
            for refusal in group
        ]
        most = len(group) if show_all else _MOST_NAMED
        remedy = ": --all" if len(group) > most else ""
        yield f"Left out, {reason}: {render_some(named, most)}{remedy}"
