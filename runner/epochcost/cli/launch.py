"""`epochcost launch`: run trials of studies on other machines, by SSH, on Slurm or in a cloud."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import Annotated

import typer

from epochcost.analysis.inputs import Inputs
from epochcost.analysis.measuring_value import Prices, order_by_value
from epochcost.cli import terminal
from epochcost.cli.bundled import inputs_to_read, own_catalogue
from epochcost.cli.choices import parse_money
from epochcost.cli.interruption import INTERRUPTED, noted_signals
from epochcost.cli.terminal import RESULTS, ids, log, print_table, say
from epochcost.errors import InputError, UsageError
from epochcost.execute.graph_facts import GraphFacts
from epochcost.execute.planning import plan_elsewhere
from epochcost.fleet.engine import Engine
from epochcost.fleet.intake import Intake
from epochcost.fleet.launch import engine_of, measure_all, run_all
from epochcost.fleet.ledger import FOLDER, open_ledger
from epochcost.fleet.offers import cheapest_target, form_of, proposed_price
from epochcost.fleet.payload import build_payload
from epochcost.fleet.shell import EngineError
from epochcost.fleet.station import Launch, Station
from epochcost.plan.cell import Cell, cells_of
from epochcost.plan.make import RunRequest, why_left_out
from epochcost.results.files import unwritable, write_atomically
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.price import Price
from epochcost.specs.target import Target
from epochcost.statistics import group_by
from epochcost.units import money, render_count, seconds


def launch(
    *,
    study: terminal.Studies = None,
    model: terminal.Models = None,
    target: Annotated[
        list[str] | None,
        typer.Option(
            help="A target's id; repeatable. Default: all.", autocompletion=ids("targets")
        ),
    ] = None,
    cheapest: Annotated[
        bool, typer.Option("--cheapest", help="Rent the cheapest machine with --accelerator.")
    ] = False,
    accelerator: Annotated[
        str | None, typer.Option(metavar="NAME", help="An accelerator such as L4, for --cheapest.")
    ] = None,
    quick: terminal.Quick = False,
    plan_by_value: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Only N trials: those that improve answers most for their cost.",
        ),
    ] = None,
    cap: Annotated[
        str | None,
        typer.Option(
            metavar="AMOUNT",
            help="Highest cost of the launch, such as 5USD; required for rented machines. "
            "Default currency: that of the prices.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the trials and their highest possible cost.")
    ] = False,
    results: terminal.ResultsFolder = RESULTS,
) -> None:
    """Measure studies on other machines: by SSH, on a Slurm cluster, in a cloud.

    Example: epochcost launch --study starter --dry-run
    """
    if cheapest != (accelerator is not None) or (cheapest and target):
        raise UsageError("expected --cheapest with --accelerator and without --target")
    catalogue = own_catalogue()
    targets = _chosen_targets(catalogue, target or sorted(catalogue.targets), accelerator)
    request = RunRequest(studies=tuple(study or ()), models=tuple(model or ()), quick=quick)
    cells = _cells_to_measure(catalogue, targets, request)
    intake = Intake(catalogue, results)
    waiting = [cell for cell in cells if intake.result_of(cell) is None]
    done = len(cells) - len(waiting)
    reach = partial(engine_of, catalogue)
    engines = [reach(target) for target in targets]
    currency, most = _parse_cap(cap, [engine.tariff.price for engine in engines])
    with ThreadPoolExecutor(len(engines)) as pool:
        problems = [*filter(None, pool.map(_target_problem, engines))]
    # The highest possible cost of a trial or sweep on each kind of machine: the last of the kind.
    costs = dict(sorted((each.target.kind, each.tariff.most()) for each in engines))
    if plan_by_value:
        inputs = inputs_to_read(results, catalogue)
        waiting = _most_valuable_cells(inputs, waiting, costs, currency, plan_by_value)
    _show_plan(engines, waiting, done, costs, most)
    if problems:
        raise EngineError("\n".join(problems))
    if dry_run:
        return
    rented = [engine.target.id for engine in engines if engine.tariff.price.owned is None]
    if waiting and rented and most is None:
        raise UsageError(
            f"missing: --cap AMOUNT, such as 5{currency}, the most that this launch may cost: "
            f"{', '.join(rented)} costs money; --dry-run shows how much"
        )
    options = ("run", "--resume", *(f"--study={name}" for name in request.studies))
    options += ("--quick",) if quick else ()
    with open_ledger(catalogue.root, most) as ledger, noted_signals() as interrupted:
        folder = catalogue.root / FOLDER
        parts = Launch(folder, intake, options, waiting, ledger, reach, log)
        raise typer.Exit(_measure(parts, engines, interrupted))


def _chosen_targets(catalogue: Catalogue, names: Iterable[str], chip: str | None) -> list[Target]:
    if chip is None:
        if targets := [catalogue.target(name) for name in dict.fromkeys(names)]:
            return targets
        raise InputError(
            "specs/targets: expected a target, got none: `epochcost launch` measures on machines "
            "that a file there describes, see docs/how-to/measure-on-your-machines.md"
        )
    target = cheapest_target(catalogue, chip)
    form = form_of(catalogue, target)
    if form.casefold() != chip.casefold():
        say(f"--accelerator {chip}: takes {form}, which costs least", err=True)
    return [target]


def _parse_cap(cap: str | None, prices: Sequence[Price]) -> tuple[str, Decimal | None]:
    """The prices' currency, and the amount of ``cap`` or None; InputError if currencies differ."""
    currency, *others = sorted({price.currency for price in prices})
    if others:
        raise InputError(
            "--target: expected targets with prices in the same currency, got "
            f"{', '.join((currency, *others))}: launch them one after the other"
        )
    amount, stated = parse_money(cap, "--cap") if cap is not None else (None, None)
    if stated not in (None, currency):
        price = f"{currency}, the currency of {prices[0].id}"
        raise InputError(f"--cap: expected an amount in {price}, got {cap!r}")
    return currency, amount


def _measure(parts: Launch, engines: Sequence[Engine], interrupted: Callable[[], bool]) -> int:
    """Measure the trials and sweeps, print the outcome, and return the exit code."""
    build_payload(parts.folder / "payload")
    try:
        stations = measure_all(parts, engines, partial(run_all, interrupted))
    except KeyboardInterrupt:  # a second signal
        if left := ", ".join(parts.ledger.entries.leases):
            say(
                f"{left}: the trial may still be running, and a rented machine may still be up: "
                "the same command ends them and continues",
                err=True,
            )
        raise
    _write_proposed_prices(parts, stations)
    _show_outcome(parts, stations)
    failed = any(station.failed for station in stations)
    code = 3 if any(station.problem for station in stations) else int(failed)
    return INTERRUPTED if interrupted() else code


def _cells_to_measure(
    catalogue: Catalogue, targets: Iterable[Target], request: RunRequest
) -> list[Cell]:
    """The cells to measure: trials and sweeps of batch sizes, on each kind of machine."""
    cells: list[Cell] = []
    reasons: list[str] = []
    facts = GraphFacts(catalogue)
    for target in {target.kind: target for target in targets}.values():
        here = replace(request, providers=(target.provider,), hardware=target.hardware)
        plan = plan_elsewhere(facts, here, target.measured_runtime)
        cells += cells_of(plan, target.kind)
        reasons += (f"\n  {target.hardware}: {each}" for each in why_left_out(plan.left_out))
    if not cells:
        raise InputError(f"expected at least one trial to measure, found none{''.join(reasons)}")
    return cells


def _target_problem(engine: Engine) -> str:
    """The reason why the engine's target cannot be used; empty if it can."""
    for name in engine.target.secrets:
        if name not in os.environ:
            reason = f"secrets: expected the variable {name} in this shell, got none"
            return f"target {engine.target.id}: {reason}: export {name}=…"
    try:
        engine.check()
    except EngineError as error:
        return str(error)
    return ""


def _most_valuable_cells(
    inputs: Inputs, cells: Sequence[Cell], prices: Prices, currency: str, limit: int
) -> list[Cell]:
    """Choose the cells that help most, per dollar, to find the cheapest machine, and print why."""
    values = order_by_value(inputs, cells, prices, limit)
    for value in values:
        say(value.sentence(prices, currency), err=True)
    if not values:
        say("no measurement of these trials is expected to change an answer", err=True)
    return [cell for value in values for cell in value.cells]


def _show_plan(
    engines: Sequence[Engine], cells: Sequence[Cell], done: int, prices: Prices, cap: Decimal | None
) -> None:
    """Print a row for each target, and the highest cost of measuring each of ``cells`` once."""
    counts, rows = Counter(cell.kind for cell in cells), []
    for tariff, target in ((engine.tariff, engine.target) for engine in engines):
        currency = tariff.price.currency
        hourly, cost = (money(each, currency) for each in (tariff.cost(3600), tariff.most()))
        source = f"quoted by {target.engine.name}" if tariff.is_quoted else tariff.price.id
        rows.append((target.id, target.hardware, str(counts[target.kind]), hourly, source, cost))
    header = ("target", "machine", "trials", "an hour", "price", "a trial, at most")
    print_table(header, rows, drop=("price", "machine"))
    bound = sum((prices[cell.kind] for cell in cells), Decimal(0))
    amount, note = (bound, "") if cap is None or cap >= bound else (cap, ", the cap")
    timing = seconds(float(sum(cell.trial.expected_seconds for cell in cells)))
    extent = f": {timing} of timing, at most {money(amount, currency)}{note}"
    counted = f"{render_count(len(cells), 'trial')} to measure, {done:,} done already"
    say(f"{counted}{extent if cells else ''}")


def _show_outcome(parts: Launch, stations: Sequence[Station]) -> None:
    rows, total = [], Decimal(0)
    for target, own in group_by(stations, lambda station: station.engine.target.id).items():
        counts = (sum(each.done for each in own), sum(len(each.failed) for each in own))
        spent, currency = parts.ledger.spent(target), own[0].engine.tariff.price.currency
        rows.append((target, *map(str, counts), money(spent, currency)))
        total += spent
    print_table(("target", "done", "failed", "spent"), rows)
    say(f"{money(total, currency)} spent; {render_count(len(parts.waiting), 'trial')} left")
    if any(station.done for station in stations):
        say(f"results are in {parts.intake.results}; `epochcost check --results` lists doubts")
    for station in stations:
        for reason in filter(None, (*station.failed, station.problem)):
            say(f"{station.name}: {reason}", err=True)


def _write_proposed_prices(parts: Launch, stations: Iterable[Station]) -> None:
    for station in stations:
        if proposed := proposed_price(parts.intake.catalogue, station):
            path = parts.folder / f"{proposed[0]}.toml"
            write_atomically(path, proposed[1].encode(), unwritable)
            say(f"{path}: a price as paid; move it to specs/prices if it is right", err=True)
