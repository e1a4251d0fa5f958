"""`epochcost check`: every fault of the specs, one line each, for people, editors and CI."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from epochcost.errors import Fault
    from epochcost.specs.loader import Checked


class CheckFormat(StrEnum):
    """How the faults are written."""

    TEXT = "text"
    JSON = "json"


def check(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="PATH", help="Spec files or folders; specs/ here when left out."),
    ] = None,
    output: Annotated[
        CheckFormat, typer.Option("--format", help="Lines for people, or JSON.")
    ] = CheckFormat.TEXT,
) -> None:
    """Validate specs: a line path:line:col: message for each fault."""
    from epochcost.specs.loader import check_paths

    checked = check_paths(paths or [Path("specs")])
    typer.echo(_json(checked) if output is CheckFormat.JSON else _text(checked), nl=False)
    typer.echo(_summary(checked), err=True)
    if checked.faults:
        raise typer.Exit(1)


def _text(checked: Checked) -> str:
    return "".join(f"{fault}\n" for fault in checked.faults)


def _json(checked: Checked) -> str:
    faults = [_fields(fault) for fault in checked.faults]
    return json.dumps({"files": len(checked.files), "faults": faults}, indent=2) + "\n"


def _fields(fault: Fault) -> dict[str, str | int]:
    return {
        "path": fault.path.as_posix(),
        "line": fault.line,
        "column": fault.column,
        "message": fault.message,
    }


def _summary(checked: Checked) -> str:
    files, faults = len(checked.files), len(checked.faults)
    return f"{_counted(files, 'file')} checked, {_counted(faults, 'fault')}"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
