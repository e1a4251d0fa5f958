"""What commands share at a terminal: options that several take, tables and JSON.

What an option says is read here where several commands read it; what it means is left to them.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.table import Table

from epochcost.errors import InputError
from epochcost.specs.loader import FOLDER
from epochcost.specs.study import MOST_BATCH, MOST_CPUS, Provider
from epochcost.units import plain

RESULTS = Path("docs/data/results")
# Wider than any table: a narrow terminal breaks long lines, and no cell is cut or left out.
_WIDTH = 400


def ids(kind: str) -> Callable[[str], list[str]]:
    """What a shell completes: the ids of a kind of spec that begin as a person has typed.

    A kind is named by its folder, and an id is the name of its file, so nothing is read.
    """

    def known(incomplete: str) -> list[str]:
        stems = (path.stem for path in Path(FOLDER, kind).rglob("*.toml"))
        return sorted(stem for stem in stems if stem.startswith(incomplete))

    return known


Format = Literal["text", "json"]
ExactFigures = Annotated[Format, typer.Option("--format", help="json has the exact figures.")]
ExactAmounts = Annotated[Format, typer.Option("--format", help="json has the exact amounts.")]
OutputFormat = Annotated[Format, typer.Option("--format", help="For a person or for a machine.")]
ResultsFolder = Annotated[
    Path, typer.Option("--results", help="The folder that keeps the results.")
]

# Options that choose what is planned, run or measured here.
Studies = Annotated[
    list[str] | None,
    typer.Option(
        "--study", help="A study's id; repeatable. Default: all.", autocompletion=ids("studies")
    ),
]
Models = Annotated[
    list[str] | None,
    typer.Option(
        "--model", help="A model's id; repeatable. Default: all.", autocompletion=ids("models")
    ),
]
ProviderName = Annotated[
    Provider | None,
    typer.Option("--provider", help="Only this execution provider; an error where it is unusable."),
]
HardwareId = Annotated[
    str,
    typer.Option(
        "--hardware",
        help="The machine that this one is; `local`: as detected.",
        autocompletion=ids("hardware"),
    ),
]
Quick = Annotated[
    bool, typer.Option("--quick", help="Seconds per trial, and a wider interval of the mean.")
]
Compliant = Annotated[
    bool,
    typer.Option(
        "--compliant", help="MLPerf's durations and counts in its scenarios: 10 min each."
    ),
]
AsIs = Annotated[
    bool,
    typer.Option("--as-is", help="Measure a machine that contradicts --hardware, and mark it."),
]
Device = Annotated[
    int | None,
    typer.Option("--device", min=0, help="The GPU by CUDA's number. Default: the study's, or 0."),
]
CpuCounts = Annotated[
    str | None,
    typer.Option(
        "--vcpus",
        help="Pin the CPU's trials to so many CPUs each, as 1,2,4. Default: the studies' vcpus.",
    ),
]
BatchSize = Annotated[
    str | None,
    typer.Option(
        "--batch-size",
        metavar="auto|N",
        help="Instead of the studies' sizes: this one, or a sweep until memory ends.",
    ),
]


def cpu_counts(text: str | None) -> tuple[int, ...]:
    """The counts of ``--vcpus``; raises InputError where one is none, or comes twice."""
    if text is None:
        return ()
    parts = [part.strip() for part in text.split(",")]
    counts = [int(part) if part.isdecimal() and len(part) < 5 else 0 for part in parts]
    if len(set(counts)) < len(counts) or not all(1 <= one <= MOST_CPUS for one in counts):
        raise InputError(
            f"--vcpus: demanded different counts of CPUs from 1 to {MOST_CPUS}, such as 1,2,4; "
            f"got {text!r:.40}"
        )
    return tuple(counts)


def batch_size_of(text: str | None) -> int | Literal["auto"] | None:
    """What ``--batch-size`` asks for; raises InputError where it is neither."""
    if text is None:
        return None
    if text == "auto":
        return "auto"
    if not (text.isdecimal() and len(text) < 9 and 1 <= int(text) <= MOST_BATCH):
        raise InputError(
            f"--batch-size: demanded auto, or a size from 1 to {MOST_BATCH}; got {text!r:.40}"
        )
    return int(text)


def pairs(option: str, given: Sequence[str], example: str) -> dict[str, str]:
    """What a repeatable option of the form name=value says; InputError unless each name is new."""
    found: dict[str, str] = {}
    for text in given:
        name, _, value = text.partition("=")
        if not name or not value:
            raise InputError(f"{option}: demanded name=value, such as {example}; got {text!r}")
        if name in found:
            raise InputError(f"{option}: demanded each name once; got {name!r} twice")
        found[name] = value
    return found


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows under a header, the first column to the left and the others to the right."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for position, name in enumerate(header):
        table.add_column(name, justify="left" if position == 0 else "right", no_wrap=position > 0)
    for row in rows:
        table.add_row(*row)
    Console(markup=False, highlight=False, width=_WIDTH).print(table)


def print_json(values: Any, indent: int = 2) -> None:
    """Print values as JSON: numbers of money by all their digits, frozen values by their fields."""
    typer.echo(json.dumps(values, default=_exact, indent=indent))


def _exact(value: object) -> object:
    match value:
        case Decimal():
            return plain(value)
        case dt.date():
            return value.isoformat()
        case Path():
            return value.as_posix()
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    raise TypeError(f"demanded a value that JSON or a spec has; got {type(value).__name__}")
