"""Declare options, and print tables, sentences and JSON, for several commands."""

from __future__ import annotations

import contextlib
import datetime as dt
import functools
import inspect
import json
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TextIO

import typer
from pydantic import BaseModel
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table

from epochcost.cost.estimate import Estimate, Time
from epochcost.errors import InputError
from epochcost.specs.base import NamedSpec
from epochcost.specs.document import display_path
from epochcost.specs.loader import FOLDER
from epochcost.units import plain

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

DOCS = Path("docs")
RESULTS = DOCS / "data/results"
_GAP = 2
# A table whose first column would be narrower breaks the cells of all columns.
_LEAST_WIDTH = 16


def ids(kind: str) -> Callable[[str], list[str]]:
    """Make a function that completes text to ids of a kind of spec, by names of files."""

    def complete(incomplete: str) -> list[str]:
        stems = (path.stem for path in Path(FOLDER, kind).rglob("*.toml"))
        return sorted(stem for stem in stems if stem.startswith(incomplete))

    return complete


OutputFormat = Annotated[
    Literal["text", "json"], typer.Option("--format", help="json has numbers with 18 decimals.")
]
ResultsFolder = Annotated[Path, typer.Option("--results", help="The folder of results.")]

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
HardwareId = Annotated[
    str,
    typer.Option(
        "--hardware",
        help="The id of this machine; `local`: as detected.",
        autocompletion=ids("hardware"),
    ),
]
WideTable = Annotated[
    bool, typer.Option("--wide", help="Show all columns, at any width of the terminal.")
]
Quick = Annotated[
    bool,
    typer.Option(
        "--quick",
        help="Time each trial for only a few seconds, except trials of token requests; intervals "
        "of means are wider.",
    ),
]
AsIs = Annotated[
    bool,
    typer.Option(
        "--as-is", help="Measure a machine that contradicts --hardware; results note this."
    ),
]


def with_option_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Decorate a command: each annotated field of a dataclass parameter becomes an option."""
    signature = inspect.signature(command, eval_str=True)
    parameters = signature.parameters.values()
    kinds = {each.name: each.annotation for each in parameters}
    groups: dict[str, Any] = {name: kind for name, kind in kinds.items() if is_dataclass(kind)}

    @functools.wraps(command)
    def with_options(**options: Any) -> None:
        for name, group in groups.items():
            values = {option.name: options.pop(option.name) for option in _options(group)}
            options[name] = group(**values)
        command(**options)

    flat = [
        option.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for each in parameters
        for option in (_options(groups[each.name]) if each.name in groups else (each,))
    ]
    # typer reads the options from here.
    with_options.__signature__ = signature.replace(parameters=flat)  # type: ignore[attr-defined]
    return with_options


def _options(group: Callable[..., Any]) -> Iterable[inspect.Parameter]:
    return inspect.signature(group, eval_str=True).parameters.values()


def pairs(option: str, texts: Sequence[str], example: str) -> dict[str, str]:
    """Parse a repeatable option name=value; raises InputError for other text or a repeated name."""
    values: dict[str, str] = {}
    for text in texts:
        name, _, value = text.partition("=")
        if not name or not value:
            raise InputError(f"{option}: expected name=value, such as {example}, got {text!r}")
        if name in values:
            raise InputError(f"{option}: expected each name once, got {name!r} twice")
        values[name] = value
    return values


def say(text: str = "", *, err: bool = False) -> None:
    """Print sentences; wrap them between words on a narrow terminal, but not in a pipe."""
    # A stream that was closed before the program started is None.
    stream: TextIO | None = sys.stderr if err else sys.stdout
    if stream is not None and stream.isatty():
        width = shutil.get_terminal_size().columns
        text = "\n".join(_broken(line, width) for line in text.split("\n"))
    typer.echo(text, err=err)


def log(text: str) -> None:
    """Print a line on standard error; if that is impossible, the measurement goes on."""
    with contextlib.suppress(OSError):
        say(text, err=True)


def _broken(line: str, width: int) -> str:
    indent = " " * (len(line) - len(line.lstrip()) + _GAP)
    return textwrap.fill(
        line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def print_table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    drop: Sequence[str] = (),
    wide: bool = False,
) -> tuple[str, ...]:
    """Print rows under a header, and return the columns that are omitted to fit the terminal.

    Columns in ``drop`` are omitted in order, then cells are wrapped; if ``wide``, neither happens.
    """
    console = Console(markup=False, highlight=False)
    columns = dict(zip(header, zip(*rows, strict=True), strict=True)) if rows else {}
    widths = {name: max(map(cell_len, (name, *cells))) for name, cells in columns.items()}
    left_out = [] if wide else _columns_to_omit(widths, drop, console.width)
    names = [name for name in columns if name not in left_out]
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0))
    room = console.width - _whole({name: widths[name] for name in names[1:]}) - _GAP
    has_room = room >= min(_LEAST_WIDTH, widths[names[0]]) if names else True
    for position, name in enumerate(names):
        table.add_column(
            name,
            justify="right" if position else "left",
            no_wrap=wide or (position > 0 and (has_room or _has_amounts(columns[name]))),
            overflow="fold",
        )
    for row in zip(*(columns[name] for name in names), strict=True):
        table.add_row(*row)
    console.width = max(console.width, _whole(widths)) if wide else console.width
    console.print(table)
    return tuple(left_out)


def _has_amounts(cells: Iterable[str]) -> bool:
    numbers = [cell for cell in cells if re.search("[0-9]", cell)]
    return bool(numbers) and not any(re.search("[a-z]", cell) for cell in numbers)


def _columns_to_omit(widths: Mapping[str, int], omittable: Sequence[str], room: int) -> list[str]:
    left_out = []
    for name in omittable:
        if _whole({name: widths[name] for name in widths if name not in left_out}) <= room:
            break
        left_out.append(name)
    return left_out


def _whole(widths: Mapping[str, int]) -> int:
    return sum(widths.values()) + _GAP * (len(widths) - 1)


def print_json(values: Any) -> None:
    """Print values as JSON: numbers with 18 decimals, dataclasses as objects, specs as ids.

    The low end of a time or cost is null if it is no usable bound.
    """
    typer.echo(json.dumps(values, default=_exact, indent=2))


def fields_of(value: DataclassInstance) -> dict[str, Any]:
    """The fields of a dataclass by name, without fields that are declared with ``repr=False``."""
    return {field.name: getattr(value, field.name) for field in fields(value) if field.repr}


def _exact(value: object) -> object:
    match value:
        case Decimal():
            # As many decimals as bills have.
            return plain(Decimal(f"{value:.18f}"))
        case dt.date():
            return value.isoformat()
        case Path():
            return display_path(value).as_posix()
        case NamedSpec():
            return value.id
        case BaseModel():
            return value.model_dump(mode="json")
    if is_dataclass(value) and not isinstance(value, type):
        low = {"low": value.known_low} if isinstance(value, Time | Estimate) else {}
        return fields_of(value) | low
    raise TypeError(f"expected a value that JSON or a spec has, got {type(value).__name__}")
