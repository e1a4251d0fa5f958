"""`epochcost launch`: measure studies on other machines, through the engines of their targets."""

from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated

import typer

from epochcost.cli.bundled import own_catalogue
from epochcost.cli.interruption import INTERRUPTED, noted_signals
from epochcost.cli.terminal import (
    RESULTS,
    OutputFormat,
    ResultsFolder,
    Studies,
    ids,
    print_json,
    print_table,
    say,
    with_option_groups,
)
from epochcost.errors import InputError, UsageError
from epochcost.execute.planning import plan_elsewhere
from epochcost.fleet.budget import Budget, Tariff
from epochcost.fleet.cells import Cell, Queue, cells_of, without_done
from epochcost.fleet.collection import Intake
from epochcost.fleet.engine import Engine, EngineError
from epochcost.fleet.engines import engine_of
from epochcost.fleet.launch import left_reservations, measure_all, run_all, tariff_of
from epochcost.fleet.ledger import FOLDER, Ledger, open_ledger, read_ledger
from epochcost.fleet.payload import build_payload
from epochcost.fleet.station import Launch, Moved, Station
from epochcost.plan.make import RunRequest
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.target import Target
from epochcost.units import count_words, money, parse_decimal


@dataclass(frozen=True, slots=True)
class Choice:
    """The options that select the cells of a launch."""

    study: Studies = None
    target: Annotated[
        list[str] | None,
        typer.Option(
            help="A target's id; repeatable. Default: all.", autocompletion=ids("targets")
        ),
    ] = None
    model: Annotated[
        list[str] | None,
        typer.Option(help="A model's id; repeatable. Default: all.", autocompletion=ids("models")),
    ] = None
    trial: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="Only the trial with this id; repeatable."),
    ] = None
    quick: Annotated[
        bool, typer.Option("--quick", help="Seconds per trial, and a wider interval of the mean.")
    ] = False

    def request(self, tariff: Tariff) -> RunRequest:
        """The request for a plan of a target's cells."""
        return RunRequest(
            studies=tuple(self.study or ()),
            models=tuple(self.model or ()),
            providers=(tariff.target.provider,),
            hardware=tariff.target.hardware,
            quick=self.quick,
        )

    @property
    def arguments(self) -> tuple[str, ...]:
        """The arguments of `epochcost run` that are equal for all cells."""
        studies = itertools.chain.from_iterable(("--study", name) for name in self.study or ())
        return ("run", *studies, "--resume", *(["--quick"] if self.quick else []))


@dataclass(frozen=True, slots=True)
class _Matrix:
    """The cells to measure, the number of cells that are done, and the reasons for others."""

    cells: tuple[Cell, ...]
    done: int
    reasons: tuple[str, ...]


@with_option_groups
def launch(
    choice: Choice,
    *,
    cap: Annotated[
        str | None,
        typer.Option(
            metavar="AMOUNT", help="Most that the launch may cost; needed for rented machines."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the cells and the most that they may cost.")
    ] = False,
    results: ResultsFolder = RESULTS,
    output: OutputFormat = "text",
) -> None:
    """Measure studies on other machines: by SSH, on a Slurm cluster, in a cloud.

    Example: epochcost launch --study starter --dry-run
    """
    if not choice.study:
        raise UsageError("missing: --study")
    catalogue = own_catalogue()
    tariffs = _tariffs(catalogue, choice.target or ())
    matrix = _matrix(catalogue, tariffs, choice, results)
    most = None if cap is None else parse_decimal(cap, "--cap")
    if output == "text":
        _show_plan(tariffs, matrix, most)
    engines = [_engine(catalogue, tariff.target) for tariff in tariffs]
    _check(engines)
    if dry_run:
        _show_left(read_ledger(catalogue.root))
        return
    _require_cap(tariffs, most)
    with open_ledger(catalogue.root) as ledger, noted_signals() as interrupted:
        build_payload(catalogue.root / FOLDER / "payload")
        parts = Launch(
            catalogue=catalogue,
            intake=Intake(catalogue, results),
            options=choice.arguments,
            queue=Queue(matrix.cells),
            budget=Budget(most, ledger.spent, left_reservations(catalogue, ledger)),
            ledger=ledger,
            on_event=_show_event,
            clock=time.time,
            pause=time.sleep,
        )
        stations = measure_all(
            parts,
            zip(tariffs, engines, strict=True),
            lambda target: _engine(catalogue, target),
            functools.partial(run_all, interrupted),
        )
        if output == "json":
            print_json(_as_json(stations, parts))
        else:
            _show_end(stations, parts)
        _exit(stations, parts, interrupted=interrupted())


def _tariffs(catalogue: Catalogue, names: Sequence[str]) -> tuple[Tariff, ...]:
    """The targets with their prices, all in the same currency."""
    targets = [catalogue.target(name) for name in names or sorted(catalogue.targets)]
    if not targets:
        raise InputError(
            "specs/targets: expected a target, found none: docs/how-to/measure-on-your-machines.md"
        )
    tariffs = tuple(tariff_of(catalogue, target) for target in targets)
    currencies = sorted({tariff.price.currency for tariff in tariffs})
    if len(currencies) > 1:
        raise InputError(
            f"--target: expected targets with prices in the same currency, got "
            f"{', '.join(currencies)}: launch them one after the other"
        )
    return tariffs


def _matrix(
    catalogue: Catalogue, tariffs: Iterable[Tariff], choice: Choice, results: Path
) -> _Matrix:
    """Plan the trials of each kind of machine once, and leave out cells that are done."""
    kinds = {(t.target.hardware, t.target.provider, t.target.runtime): t for t in tariffs}
    cells: list[Cell] = []
    reasons: dict[str, None] = {}
    for (hardware, _, runtime), tariff in kinds.items():
        plan = plan_elsewhere(catalogue, choice.request(tariff), runtime)
        cells += cells_of(plan, hardware)
        reasons |= {f"{hardware}: {each.what}: {each.reason}": None for each in plan.left_out}
    if choice.trial:
        cells = [cell for cell in cells if cell.id in choice.trial]
    waiting = without_done(cells, catalogue, results)
    if not cells:
        lines = "".join(f"\n  {reason}" for reason in reasons)
        raise InputError(f"expected at least one trial to measure, found none{lines}")
    return _Matrix(tuple(waiting), len(cells) - len(waiting), tuple(reasons))


def _engine(catalogue: Catalogue, target: Target) -> Engine:
    return engine_of(target, catalogue.root / FOLDER / "payload", catalogue.root)


def _check(engines: Sequence[Engine]) -> None:
    """Check all targets at once; raises EngineError with a line for each unusable target."""

    def problem(engine: Engine) -> str | None:
        try:
            engine.check()
        except EngineError as error:
            return str(error)
        return None

    with ThreadPoolExecutor(len(engines)) as pool:
        problems = list(filter(None, pool.map(problem, engines)))
    if problems:
        raise EngineError("\n".join(problems))


def _require_cap(tariffs: Iterable[Tariff], most: Decimal | None) -> None:
    rented = [tariff.target.id for tariff in tariffs if tariff.price.owned is None]
    if most is None and rented:
        raise UsageError(
            f"missing: --cap AMOUNT, the most that this launch may cost: {', '.join(rented)} "
            "costs money; --dry-run shows how much"
        )


def _show_plan(tariffs: Sequence[Tariff], matrix: _Matrix, most: Decimal | None) -> None:
    """Print the cells of each target, and the most that they may cost."""
    rows, total = [], Decimal(0)
    for tariff in tariffs:
        target, currency = tariff.target, tariff.price.currency
        kind = target.hardware, target.provider
        count = sum((cell.hardware, cell.trial.provider) == kind for cell in matrix.cells)
        each = tariff.most(target.retries)
        total = total + count * each
        hour = money(tariff.cost(3600), currency)
        row = (str(count), hour, money(each, currency), money(count * each, currency))
        rows.append((target.id, target.engine.name, target.hardware, *row))
    print_table(
        ("target", "engine", "machine", "cells", "an hour", "a cell, at most", "all, at most"),
        rows,
        drop=("engine", "machine"),
    )
    bound = total if most is None else min(total, most)
    say(
        f"{count_words(len(matrix.cells), 'cell')} to measure, {matrix.done:,} are done: at most "
        f"{money(bound, tariffs[0].price.currency)}"
        + (" by --cap" if most is not None and most < total else "")
    )


def _show_left(ledger: Ledger) -> None:
    for name, lease in ledger.leases.items():
        since = time.strftime("%Y-%m-%d %H:%M", time.localtime(lease.since))
        say(f"{name}: up since {since}, left by a killed launch: the next launch ends it")


def _show_event(event: Moved) -> None:
    reason = f": {event.reason}" if event.reason else ""
    typer.echo(f"{event.target}: {event.cell}: {event.state}{reason}", err=True)


def _show_end(stations: Sequence[Station], launch: Launch) -> None:
    """Print a table of the targets with the money spent, then the problems."""
    currency = stations[-1].tariff.price.currency
    spent = launch.budget.spent
    rows = [
        (
            station.tariff.target.id,
            str(station.done),
            str(len(station.failed)),
            money(spent.get(station.tariff.target.id, Decimal(0)), currency),
        )
        for station in stations
    ]
    print_table(("target", "done", "failed", "spent"), rows)
    waiting = len(list(launch.queue.waiting()))
    say(f"{money(sum(spent.values(), Decimal(0)), currency)} spent, {waiting:,} cells are left")
    for station in stations:
        for title, reason in station.failed:
            say(f"{station.tariff.target.id}: {title}: {reason}", err=True)
        if station.problem:
            say(f"{station.tariff.target.id}: {station.problem}", err=True)


def _as_json(stations: Sequence[Station], launch: Launch) -> dict[str, object]:
    return {
        "targets": [
            {
                "target": station.tariff.target.id,
                "done": station.done,
                "failed": [{"cell": cell, "reason": why} for cell, why in station.failed],
                "problem": station.problem,
                "left_behind": station.left_behind,
                "spent": launch.budget.spent.get(station.tariff.target.id, Decimal(0)),
            }
            for station in stations
        ],
        "waiting": [cell.id for cell in launch.queue.waiting()],
        "currency": stations[-1].tariff.price.currency,
    }


def _exit(stations: Sequence[Station], launch: Launch, *, interrupted: bool) -> None:
    """Exit with 130 if interrupted, 3 if a target has a problem, 1 if a cell failed."""
    if interrupted:
        raise typer.Exit(INTERRUPTED)
    if any(station.left_behind for station in stations) or any(launch.queue.waiting()):
        raise typer.Exit(3)
    if any(station.failed for station in stations):
        raise typer.Exit(1)
