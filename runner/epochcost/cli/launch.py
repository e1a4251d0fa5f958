"""`epochcost launch`: measure studies on other machines, through the engines of their targets."""

from __future__ import annotations

import datetime as dt
import functools
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Annotated

import typer

from epochcost.analysis.measuring_value import MeasurableCell, order_by_value
from epochcost.cli.bundled import inputs_to_read, own_catalogue
from epochcost.cli.interruption import INTERRUPTED, noted_signals
from epochcost.cli.terminal import RESULTS, ResultsFolder, Studies, ids, print_table, say
from epochcost.errors import InputError, UsageError
from epochcost.execute.planning import plan_elsewhere
from epochcost.fleet.cells import Cell, Intake, Queue, cells_of
from epochcost.fleet.engine import Engine
from epochcost.fleet.launch import ENGINES, measure_all, run_all
from epochcost.fleet.ledger import FOLDER, Tariff, open_ledger
from epochcost.fleet.offers import cheapest_target, proposed_price
from epochcost.fleet.payload import build_payload
from epochcost.fleet.shell import EngineError
from epochcost.fleet.station import Launch, Station
from epochcost.plan.make import RunRequest
from epochcost.results.files import write_atomically
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.target import Target
from epochcost.units import count_words, money, parse_decimal, seconds

# A target at the price that its engine quotes, and the engine.
_Reached = tuple[Tariff, Engine]
_NO_TARGET = (
    "specs/targets: expected a target, got none: `epochcost launch` measures on machines that a "
    "file there describes, see docs/how-to/measure-on-your-machines.md"
)


def launch(
    *,
    study: Studies = None,
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
    quick: Annotated[
        bool,
        typer.Option("--quick", help="A few seconds per trial; the interval of the mean is wider."),
    ] = False,
    plan_by_value: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Only the N trials whose results help the answers most."
        ),
    ] = None,
    cap: Annotated[
        str | None,
        typer.Option(
            metavar="AMOUNT", help="Most that the launch may cost; needed for rented machines."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the trials and the most that they may cost.")
    ] = False,
    results: ResultsFolder = RESULTS,
) -> None:
    """Measure studies on other machines: by SSH, on a Slurm cluster, in a cloud.

    Example: epochcost launch --study starter --dry-run
    """
    if not study:
        raise UsageError("missing: --study")
    if cheapest != (accelerator is not None) or (cheapest and target):
        raise UsageError("expected --cheapest with --accelerator and without --target")
    catalogue = own_catalogue()
    targets = _targets(catalogue, target, accelerator)
    intake = Intake(catalogue, results)
    cells = _cells(catalogue, targets, study, quick=quick)
    waiting = [cell for cell in cells if intake.result_of(cell) is None]
    done = len(cells) - len(waiting)
    most = None if cap is None else parse_decimal(cap, "--cap")
    reached, problems = _reach_all(catalogue, targets)
    if plan_by_value:
        waiting = _by_value(catalogue, waiting, reached, results, plan_by_value)
    _show_plan(reached, waiting, done, most)
    if problems:
        raise EngineError("\n".join(problems))
    if dry_run:
        return
    if waiting:
        _require_cap(reached, most)
    options = ("run", *(f"--study={name}" for name in study), "--resume")
    if quick:
        options = (*options, "--quick")
    with open_ledger(catalogue.root, most) as ledger, noted_signals() as interrupted:
        parts = Launch(
            folder=catalogue.root / FOLDER,
            intake=intake,
            options=options,
            queue=Queue(waiting),
            ledger=ledger,
            on_event=_show_event,
        )
        raise typer.Exit(_measure(catalogue, parts, reached, interrupted))


def _measure(
    catalogue: Catalogue,
    parts: Launch,
    reached: Sequence[_Reached],
    interrupted: Callable[[], bool],
) -> int:
    """Measure the cells (trials or sweeps) and print the outcome; return the exit code."""
    build_payload(parts.folder / "payload")
    reach = functools.partial(_reach, catalogue)
    stations = measure_all(parts, reached, reach, functools.partial(run_all, interrupted))
    _propose(catalogue, stations)
    _show_end(stations, parts, reached[0][0].price.currency)
    failed = any(station.failed for station in stations)
    code = 3 if any(station.problem for station in stations) else int(failed)
    return INTERRUPTED if interrupted() else code


def _targets(
    catalogue: Catalogue, names: list[str] | None, accelerator: str | None
) -> list[Target]:
    if accelerator is not None:
        return [cheapest_target(catalogue, accelerator)]
    targets = [catalogue.target(name) for name in names or sorted(catalogue.targets)]
    if not targets:
        raise InputError(_NO_TARGET)
    return targets


def _require_cap(reached: Iterable[_Reached], most: Decimal | None) -> None:
    rented = [tariff.target.id for tariff, _ in reached if tariff.price.owned is None]
    if most is None and rented:
        raise UsageError(
            f"missing: --cap AMOUNT, the most that this launch may cost: {', '.join(rented)} "
            "costs money; --dry-run shows how much"
        )


def _cells(
    catalogue: Catalogue, targets: Iterable[Target], studies: Sequence[str], *, quick: bool
) -> list[Cell]:
    """The trials and sweeps to measure on each kind of machine; InputError if there are none."""
    cells: list[Cell] = []
    reasons: dict[str, None] = {}
    for target in {target.kind: target for target in targets}.values():
        request = RunRequest(
            studies=tuple(studies),
            providers=(target.provider,),
            hardware=target.hardware,
            quick=quick,
        )
        plan = plan_elsewhere(catalogue, request, target.runtime)
        cells += cells_of(plan, target.hardware)
        left_out = (f"{each.what}: {each.reason}" for each in plan.left_out)
        reasons |= dict.fromkeys(f"\n  {target.hardware}: {reason}" for reason in left_out)
    if not cells:
        raise InputError(f"expected at least one trial to measure, found none{''.join(reasons)}")
    return cells


def _reach(catalogue: Catalogue, target: Target) -> _Reached:
    engine = ENGINES[target.engine.name](
        target, catalogue.root / FOLDER / "payload", catalogue.root
    )
    return Tariff.of(catalogue, target), engine


def _reach_all(catalogue: Catalogue, targets: Sequence[Target]) -> tuple[list[_Reached], list[str]]:
    """Check all targets at once; also returns a line for each unusable target."""
    with ThreadPoolExecutor(len(targets)) as pool:
        checks = list(pool.map(functools.partial(_checked, catalogue), targets))
    currencies = sorted({tariff.price.currency for (tariff, _), _ in checks})
    if len(currencies) > 1:
        raise InputError(
            "--target: expected targets with prices in the same currency, got "
            f"{', '.join(currencies)}: launch them one after the other"
        )
    return [reached for reached, _ in checks], [problem for _, problem in checks if problem]


def _checked(catalogue: Catalogue, target: Target) -> tuple[_Reached, str]:
    """A target with its price (the engine's own, if it states one), and why it is unusable."""
    tariff, engine = _reach(catalogue, target)
    for name in target.secrets:
        if name not in os.environ:
            reason = f"secrets: expected the variable {name} in this shell, got none"
            return (tariff, engine), f"target {target.id}: {reason}: export {name}=…"
    try:
        engine.check()
        return (tariff.quoted(engine.hourly_price()), engine), ""
    except EngineError as error:
        return (tariff, engine), str(error)


def _by_value(
    catalogue: Catalogue,
    cells: Sequence[Cell],
    reached: Iterable[_Reached],
    results: Path,
    most: int,
) -> list[Cell]:
    """Order cells by the expected gain of measuring them, per dollar; print the reasons."""
    dollars, currency = _most_of_a_cell(reached)
    measurable: dict[MeasurableCell, Cell] = {}
    for cell in cells:
        trial = cell.trial
        work = (trial.model, trial.mode, trial.batch_size, trial.precision, trial.provider)
        measurable.setdefault(MeasurableCell(cell.hardware, *work, dollars[cell.kind]), cell)
    values = order_by_value(inputs_to_read(results, catalogue), list(measurable), most)
    for value in values:
        say(value.sentence(currency), err=True)
    if not values:
        say("no measurement of these cells is expected to change an answer", err=True)
    return [measurable[cell] for value in values for cell in value.cells]


def _most_of_a_cell(
    reached: Iterable[_Reached],
) -> tuple[Mapping[tuple[str, str], Decimal], str]:
    """The highest cost of a cell by its kind of machine, and the currency of all prices."""
    most: dict[tuple[str, str], Decimal] = {}
    for tariff, _ in reached:
        target, currency = tariff.target, tariff.price.currency
        most[target.kind] = max(most.get(target.kind, Decimal(0)), tariff.most(target.retries))
    return most, currency


def _show_plan(
    reached: Iterable[_Reached], cells: Sequence[Cell], done: int, most: Decimal | None
) -> None:
    """Print the targets and the highest cost of their cells; targets of a kind share cells."""
    worst, currency = _most_of_a_cell(reached)
    counts = Counter(cell.kind for cell in cells)
    rows = []
    for tariff, _ in reached:
        target = tariff.target
        amounts = (tariff.cost(3600), tariff.most(target.retries))
        hourly, cost = (money(amount, currency) for amount in amounts)
        source = f"quoted by {target.engine.name}" if tariff.is_quoted else tariff.price.id
        rows.append((target.id, target.hardware, str(counts[target.kind]), hourly, source, cost))
    header = ("target", "machine", "cells", "an hour", "price", "a cell, at most")
    print_table(header, rows, drop=("price", "machine"))
    bound = sum((count * worst[kind] for kind, count in counts.items()), Decimal(0))
    capped = most is not None and most < bound
    amount = money(most if most is not None and capped else bound, currency)
    timing = seconds(float(sum(cell.trial.expected_seconds for cell in cells)))
    counted = f"{count_words(len(cells), 'cell')} to measure, {done:,} done already"
    say(f"{counted}: {timing} of timing, at most {amount}{', the cap' if capped else ''}")


def _show_event(station: str, cell: str, state: str, reason: str) -> None:
    typer.echo(f"{station}: {cell}: {state}{': ' if reason else ''}{reason}", err=True)


def _show_end(stations: Sequence[Station], parts: Launch, currency: str) -> None:
    """Print a table of the targets with the money spent, and the reasons of failures."""
    rows, total = [], Decimal(0)
    for target in dict.fromkeys(station.tariff.target.id for station in stations):
        own = [station for station in stations if station.tariff.target.id == target]
        counts = (sum(each.done for each in own), sum(len(each.failed) for each in own))
        spent = parts.ledger.spent(target)
        rows.append((target, *map(str, counts), money(spent, currency)))
        total += spent
    print_table(("target", "done", "failed", "spent"), rows)
    left = count_words(len(parts.queue.waiting), "cell")
    say(f"{money(total, currency)} spent; {left} left")
    for station in stations:
        for title, reason in station.failed:
            say(f"{station.name}: {title}: {reason}", err=True)
        if station.problem:
            say(f"{station.name}: {station.problem}", err=True)


def _propose(catalogue: Catalogue, stations: Iterable[Station]) -> None:
    """Write price specs with the prices paid and starts measured, for a person's review."""
    for station in stations:
        price = proposed_price(catalogue, station, dt.datetime.now(dt.UTC).date())
        if price is not None:
            path = catalogue.root / FOLDER / f"{price[0]}.toml"
            write_atomically(path, price[1].encode())
            say(f"{path}: a price as paid; move it to specs/prices if it is right", err=True)
