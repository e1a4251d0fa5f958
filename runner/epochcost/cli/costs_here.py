"""The end of a run in money: what each job costs here and where it is cheapest; noise; the site."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path

from epochcost.analysis.answers import rows_of
from epochcost.analysis.observations import Goal
from epochcost.analysis.rows import GOAL_WORDS, Row, answer
from epochcost.cli.bundled import inputs_to_read
from epochcost.cli.terminal import say
from epochcost.results.records import Result
from epochcost.results.stability import instabilities
from epochcost.specs.catalogue import Catalogue
from epochcost.units import money, seconds


def show_costs(catalogue: Catalogue, results: Path, measured: Sequence[Result]) -> None:
    """Two lines for each job of the results, then how many are noisy and how the site is made."""
    if not measured:
        return
    known = dict.fromkeys(one.trial.model for one in measured)
    decoders = [model for model in known if catalogue.model(model).decoder is not None]
    models = [model for model in known if model not in decoders]
    # What was measured as the machine at hand may be declared under another name.
    hosts = {one.environment.fingerprint for one in measured}
    rows = rows_of(inputs_to_read(results, catalogue), models) if models else ()
    say("\nWhat it costs:")
    for model in models:
        of_model = [row for row in rows if row.observed.workload.id == model]
        here = [row for row in of_model if row.observed.machine.host in hosts and row.current]
        for goal in _goals(here):
            say("\n".join(_lines(here, of_model, goal)))
    for model in decoders:
        say(f"  by the token: `epochcost tokens --model {model} --requests 0.1/s`")
    noisy = sum(bool(instabilities(one.measurement, one.environment)) for one in measured)
    if noisy:
        say(
            f"{noisy} of {len(measured)} results are noisy, as said above: the same run without "
            "--resume measures them again"
        )
    say("The site: `epochcost build` writes it into site/, `epochcost serve` shows it")


def _goals(here: Sequence[Row]) -> Iterator[Goal]:
    known = {goal for row in here for goal in row.observed.goals if row.time(goal)}
    if known & {"full", "epoch"}:
        yield "full" if "full" in known else "epoch"
    if "million" in known:
        yield "million"


def _lines(here: Sequence[Row], rows: Sequence[Row], goal: Goal) -> Iterator[str]:
    """The cheapest batch here, then the cheapest machine at a list price, where one is known."""
    own = min((row for row in here if row.time(goal)), key=lambda row: _cost_first(row, goal))
    yield f"  {own.observed.workload.name}, {GOAL_WORDS[goal]}, here: {_said(own, goal)}"
    same = [row for row in rows if row.observed.stack == own.observed.stack]
    listed = answer([row for row in same if row.price and not row.price.reservation], goal)
    if listed is None or listed.cheapest is None:
        yield "    no time on a machine with a list price is known"
        return
    row = listed.cheapest.row
    assert row.price is not None, "only rows with a price are asked"
    place = f"{row.observed.machine.name}, {row.price.plan}"
    yield f"    cheapest at a list price: {_said(row, goal)} on {place} ({row.mark})"


def _cost_first(row: Row, goal: Goal) -> tuple[Decimal, Decimal]:
    cost, time = row.estimate(goal), row.time(goal)
    endless = Decimal("Infinity")
    return cost.mean if cost else endless, time.mean if time else endless


def _said(row: Row, goal: Goal) -> str:
    cost, time = row.estimate(goal), row.time(goal)
    assert time is not None, "asked for where a time is known"
    took = seconds(float(time.mean))
    if cost is None:
        return f"{took}, without a price"
    assumed = " (assumed price)" if row.assumed else ""
    return f"{money(cost.mean, cost.currency)} in {took}{assumed}"
