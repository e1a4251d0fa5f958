"""`epochcost check`: every fault of specs or results, one line each, for people, editors and CI."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from epochcost.cli.faults import counted, faults_as_json
from epochcost.errors import ModelError, UsageError

if TYPE_CHECKING:
    from epochcost.specs.loader import Checked

RESULTS = Path("docs/data/results")


class CheckFormat(StrEnum):
    """How the faults are written."""

    TEXT = "text"
    JSON = "json"


def check(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="PATH",
            help="Spec files or folders, result files with --results; all here when left out.",
        ),
    ] = None,
    results: Annotated[
        bool,
        typer.Option("--results", help="Check stored results; a named file as a submission."),
    ] = False,
    budgets: Annotated[
        bool, typer.Option("--budgets", help="Hold the studies' budgets: exit 1 where one is not.")
    ] = False,
    output: Annotated[
        CheckFormat, typer.Option("--format", help="Lines for people, or JSON.")
    ] = CheckFormat.TEXT,
) -> None:
    """Validate specs, results or budgets: a line path:line:col: message for each fault."""
    if budgets and (paths or results):
        raise UsageError("--budgets: demanded it by itself; got paths or --results as well")
    if budgets:
        from epochcost.cli.check_budgets import check_budgets

        check_budgets(RESULTS, as_json=output is CheckFormat.JSON)
    elif results:
        from epochcost.cli.check_results import check_submissions

        check_submissions(RESULTS, paths or [], as_json=output is CheckFormat.JSON)
    else:
        _check_specs(paths or [Path("specs")], output)


def _check_specs(paths: list[Path], output: CheckFormat) -> None:
    from epochcost.specs.loader import check_paths

    checked = check_paths(paths, _graph_fault)
    if output is CheckFormat.JSON:
        typer.echo(
            json.dumps({"files": len(checked.files), **faults_as_json(checked.faults)}, indent=2)
        )
    else:
        typer.echo("".join(f"{fault}\n" for fault in checked.faults), nl=False)
    typer.echo(_summary(checked), err=True)
    if checked.faults:
        raise typer.Exit(1)


def _graph_fault(path: Path) -> str | None:
    """Why an ONNX file cannot be read with its data; None where it can."""
    from epochcost.graphs.loading import external_files

    try:
        external_files(path)
    except ModelError as error:
        return str(error).removeprefix(f"{path}: ")
    return None


def _summary(checked: Checked) -> str:
    files, faults = len(checked.files), len(checked.faults)
    return f"{counted(files, 'file')} checked, {counted(faults, 'fault')}"
