"""`epochcost launch`: measure studies on other machines, through the engines of their targets."""

from __future__ import annotations

import datetime as dt
import functools
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated

import typer

from epochcost.analysis.measuring_value import MeasurableCell, order_by_value
from epochcost.cli.bundled import inputs_to_read, own_catalogue
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
from epochcost.fleet.cells import Cell, Queue, cells_of
from epochcost.fleet.collection import Intake
from epochcost.fleet.engine import Engine, EngineError
from epochcost.fleet.engines import engine_of
from epochcost.fleet.launch import measure_all, run_all
from epochcost.fleet.ledger import FOLDER, Lease, open_ledger, read_ledger
from epochcost.fleet.offers import cheapest_target, proposed_price, quoted
from epochcost.fleet.payload import build_payload
from epochcost.fleet.station import Launch, Moved, Station
from epochcost.fleet.tariff import Tariff, tariff_of
from epochcost.plan.make import RunRequest
from epochcost.results.files import write_atomically
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.target import Target
from epochcost.units import count_words, money, parse_decimal, seconds

# A target at the price that its engine quotes, and the engine.
_Reached = tuple[Tariff, Engine]


@dataclass(frozen=True, slots=True)
class Choice:
    """The options that select the cells of a launch and their order."""

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
    plan_by_value: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Only the N cells whose results help the answers most."
        ),
    ] = None
    cheapest: Annotated[
        bool, typer.Option("--cheapest", help="The cheapest machine with --accelerator.")
    ] = False
    accelerator: Annotated[
        str | None, typer.Option(metavar="NAME", help="An accelerator such as L4, for --cheapest.")
    ] = None

    @property
    def arguments(self) -> tuple[str, ...]:
        """The arguments of `epochcost run` for all cells."""
        studies = (f"--study={name}" for name in self.study or ())
        return ("run", *studies, "--resume", *(["--quick"] if self.quick else []))

    def targets(self, catalogue: Catalogue) -> list[Target]:
        """The targets; raises UsageError for options that contradict each other."""
        if self.cheapest != (self.accelerator is not None) or (self.cheapest and self.target):
            raise UsageError("expected --cheapest with --accelerator and without --target")
        if self.accelerator is not None:
            return [cheapest_target(catalogue, self.accelerator)]
        targets = [catalogue.target(name) for name in self.target or sorted(catalogue.targets)]
        if not targets:
            raise InputError(
                "specs/targets: expected a target, got none: `epochcost launch` "
                "measures on machines that a file there describes, see "
                "docs/how-to/measure-on-your-machines.md"
            )
        return targets


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
    targets = choice.targets(catalogue)
    intake = Intake(catalogue, results)
    cells = _cells(catalogue, targets, choice)
    waiting = [cell for cell in cells if intake.result_of(cell) is None]
    done = len(cells) - len(waiting)
    most = None if cap is None else parse_decimal(cap, "--cap")
    reached, problems = _reach_all(catalogue, targets)
    if choice.plan_by_value:
        waiting = _by_value(catalogue, waiting, reached, results, choice.plan_by_value)
    if output == "text":
        _show_plan(reached, waiting, done, most)
    if problems:
        raise EngineError("\n".join(problems))
    left = read_ledger(catalogue.root).entries.leases
    if dry_run or not (waiting or left):
        _show_left(left)
        return
    if waiting:
        _require_cap(reached, most)
    with open_ledger(catalogue.root, most) as ledger, noted_signals() as interrupted:
        parts = Launch(
            folder=catalogue.root.absolute() / FOLDER,
            intake=intake,
            options=choice.arguments,
            queue=Queue(waiting),
            ledger=ledger,
            on_event=_show_event,
            clock=time.time,
            pause=time.sleep,
        )
        stations = _measured(catalogue, parts, reached, interrupted)
        _show_end(stations, parts, as_json=output == "json")
        failed = any(station.failed for station in stations)
        code = 3 if any(station.problem for station in stations) else int(failed)
        raise typer.Exit(INTERRUPTED if interrupted() else code)


def _measured(
    catalogue: Catalogue,
    parts: Launch,
    reached: Iterable[_Reached],
    interrupted: Callable[[], bool],
) -> tuple[Station, ...]:
    """Measure the cells, and propose the prices that were paid."""
    build_payload(catalogue.root / FOLDER / "payload")
    run = functools.partial(run_all, interrupted)
    stations = measure_all(parts, reached, functools.partial(_reach, catalogue), run)
    _propose(catalogue, stations)
    return stations


def _require_cap(reached: Iterable[_Reached], most: Decimal | None) -> None:
    rented = [tariff.target.id for tariff, _ in reached if tariff.price.owned is None]
    if most is None and rented:
        raise UsageError(
            f"missing: --cap AMOUNT, the most that this launch may cost: {', '.join(rented)} "
            "costs money; --dry-run shows how much"
        )


def _show_left(leases: Mapping[str, Lease]) -> None:
    for name, lease in leases.items():
        since = time.strftime("%Y-%m-%d %H:%M", time.localtime(lease.since))
        say(f"{name}: up since {since}, left by a killed launch; the next launch ends it")


def _cells(catalogue: Catalogue, targets: Iterable[Target], choice: Choice) -> list[Cell]:
    """The cells of each kind of machine; raises InputError with the reasons if there are none."""
    cells: list[Cell] = []
    reasons: dict[str, None] = {}
    for target in {target.kind: target for target in targets}.values():
        request = RunRequest(
            studies=tuple(choice.study or ()),
            models=tuple(choice.model or ()),
            providers=(target.provider,),
            hardware=target.hardware,
            quick=choice.quick,
        )
        plan = plan_elsewhere(catalogue, request, target.runtime)
        cells += cells_of(plan, target.hardware)
        reasons |= {
            f"{target.hardware}: {each.what}: {each.reason}": None for each in plan.left_out
        }
    if choice.trial:
        cells = [cell for cell in cells if cell.id in choice.trial]
    if not cells:
        lines = "".join(f"\n  {reason}" for reason in reasons)
        raise InputError(f"expected at least one trial to measure, found none{lines}")
    return cells


def _reach(catalogue: Catalogue, target: Target) -> _Reached:
    engine = engine_of(target, catalogue.root / FOLDER / "payload", catalogue.root)
    return tariff_of(catalogue, target), engine


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
    """A target at the engine's own price if it states one, and why it is unusable."""
    tariff, engine = _reach(catalogue, target)
    for name in target.secrets:
        if name not in os.environ:
            reason = f"secrets: expected the variable {name} in this shell, got none"
            return (tariff, engine), f"target {target.id}: {reason}: export {name}=…"
    try:
        engine.check()
        return (quoted(tariff, engine.hourly_price()), engine), ""
    except EngineError as error:
        return (tariff, engine), str(error)


def _by_value(
    catalogue: Catalogue,
    cells: Sequence[Cell],
    reached: Iterable[_Reached],
    results: Path,
    most: int,
) -> list[Cell]:
    """The cells that help the answers most for their money, in that order; prints the reasons."""
    dollars = {tariff.target.kind: tariff.most(tariff.target.retries) for tariff, _ in reached}
    measurable: dict[MeasurableCell, Cell] = {}
    for cell in cells:
        trial = cell.trial
        work = (trial.model, trial.mode, trial.batch_size, trial.provider)
        measurable.setdefault(MeasurableCell(cell.hardware, *work, dollars[cell.kind]), cell)
    values = order_by_value(inputs_to_read(results, catalogue), list(measurable), most)
    for value in values:
        say(value.sentence, err=True)
    if not values:
        say("no measurement of these cells is expected to change an answer", err=True)
    return [measurable[value.cell] for value in values]


def _show_plan(
    reached: Iterable[_Reached], cells: Sequence[Cell], done: int, most: Decimal | None
) -> None:
    """Print the targets and the most that their cells may cost; targets alike share cells."""
    counts = Counter(cell.kind for cell in cells)
    rows = []
    worst: dict[tuple[str, str], Decimal] = {}
    for tariff, _ in reached:
        target, currency = tariff.target, tariff.price.currency
        count, each = counts[target.kind], tariff.most(target.retries)
        worst[target.kind] = max(worst.get(target.kind, Decimal(0)), count * each)
        hourly = money(tariff.cost(3600), currency)
        source = f"quoted by {target.engine.name}" if tariff.is_quoted else tariff.price.id
        cost = money(each, currency)
        rows.append((target.id, target.hardware, str(count), hourly, source, cost))
    header = ("target", "machine", "cells", "an hour", "price", "a cell, at most")
    print_table(header, rows, drop=("price", "machine"))
    bound = sum(worst.values(), Decimal(0))
    capped = most is not None and most < bound
    amount = money(most if most is not None and capped else bound, currency)
    timing = seconds(float(sum(cell.trial.expected_seconds for cell in cells)))
    counted = f"{count_words(len(cells), 'cell')} to measure, {done:,} done already"
    say(f"{counted}: {timing} of timing, at most {amount}{', the cap' if capped else ''}")


def _show_event(event: Moved) -> None:
    reason = f": {event.reason}" if event.reason else ""
    typer.echo(f"{event.target}: {event.cell}: {event.state}{reason}", err=True)


@dataclass(frozen=True, slots=True)
class TargetEnd:
    """Outcome of a target's cells; ``failed`` has titles with reasons."""

    target: str
    done: int
    failed: tuple[tuple[str, str], ...]
    spent: Decimal
    problems: tuple[str, ...]


def _show_end(stations: Sequence[Station], launch: Launch, *, as_json: bool) -> None:
    """Print a table of the targets with the money spent, and the reasons of failures."""
    ends = []
    for name in dict.fromkeys(station.tariff.target.id for station in stations):
        own = [station for station in stations if station.tariff.target.id == name]
        failed = tuple(failure for station in own for failure in station.failed)
        problems = tuple(dict.fromkeys(station.problem for station in own if station.problem))
        done = sum(station.done for station in own)
        ends.append(TargetEnd(name, done, failed, launch.ledger.spent(name), problems))
    waiting, currency = launch.queue.waiting, stations[-1].tariff.price.currency
    if as_json:
        print_json({"targets": ends, "left": [cell.id for cell in waiting], "currency": currency})
        return
    print_table(
        ("target", "done", "failed", "spent"),
        [
            (end.target, str(end.done), str(len(end.failed)), money(end.spent, currency))
            for end in ends
        ],
    )
    spent = sum((end.spent for end in ends), Decimal(0))
    say(f"{money(spent, currency)} spent; {count_words(len(waiting), 'cell')} left")
    for end in ends:
        for title, reason in end.failed:
            say(f"{end.target}: {title}: {reason}", err=True)
        for problem in end.problems:
            say(f"{end.target}: {problem}", err=True)


def _propose(catalogue: Catalogue, stations: Iterable[Station]) -> None:
    """Write price specs with the prices paid and starts measured, for a person's review."""
    for station in stations:
        price = proposed_price(catalogue, station, dt.datetime.now(dt.UTC).date())
        if price is not None:
            path = catalogue.root / FOLDER / f"{price.id}.toml"
            write_atomically(path, price.text.encode())
            say(f"{path}: a price as paid; move it to specs/prices if it is right", err=True)
