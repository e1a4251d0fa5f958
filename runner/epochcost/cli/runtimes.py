"""`epochcost runtimes`: fetch the runtimes that studies compare, and list those that are here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer
from pydantic import TypeAdapter, ValidationError

from epochcost.cli.bundled import catalogue_to_read
from epochcost.cli.terminal import Studies, print_table
from epochcost.errors import InputError
from epochcost.execute.runtime_install import install_runtime
from epochcost.execute.runtimes import (
    all_environments,
    find_environment,
    missing_runtimes,
    named_runtimes,
)
from epochcost.measure.runtime import runtime_name
from epochcost.specs.requests import EngineName
from epochcost.specs.study import RuntimeName, Study

app = typer.Typer(no_args_is_help=True, help="Install other runtimes, each in its own environment.")


@app.callback()
def _runtimes() -> None:
    """Install other runtimes, each in its own environment."""


@app.command("install")
def install(
    runtime: Annotated[
        list[str] | None,
        typer.Argument(metavar="[RUNTIME]...", help="As onnxruntime==1.20.1. Default: of studies."),
    ] = None,
    *,
    study: Studies = None,
) -> None:
    """Fetch runtimes with pip, an environment for each.

    Example: epochcost runtimes install onnxruntime==1.20.1
    """
    asked = _sound(runtime) if runtime else _of_studies(study)
    for name in asked:
        install_runtime(name, _tell)
    if not asked:
        typer.echo("no study names a runtime that is not installed")


@app.command("list")
def list_runtimes() -> None:
    """List runtimes: installed, prepared, and asked for by studies.

    Example: epochcost runtimes list
    """
    rows = [(runtime_name(), "installed", "", "")]
    for found in all_environments():
        usable = find_environment(found.runtime) == found
        state = "prepared" if usable else "of another Python or other packages"
        rows.append((found.runtime, state, str(found.support.opset), str(found.folder)))
    rows += [(name, "missing", "", "") for name in missing_runtimes(_studies(None))]
    print_table(("runtime", "state", "opset", "folder"), rows)


def _of_studies(names: list[str] | None) -> tuple[str, ...]:
    return named_runtimes(_studies(names))


def _studies(names: list[str] | None) -> Sequence[Study]:
    catalogue = catalogue_to_read()
    return [catalogue.study(name) for name in names or sorted(catalogue.studies)]


def _sound(runtimes: Sequence[str]) -> Sequence[str]:
    """The names as they were given; raises InputError for one that no study could write."""
    for name in runtimes:
        try:
            TypeAdapter(RuntimeName | EngineName).validate_python(name)
        except ValidationError:
            raise InputError(
                f"{name}: expected a package and its version as onnxruntime==1.20.1, "
                "onnxruntime-gpu==1.31.1 or onnxruntime-genai==0.18.0"
            ) from None
    return runtimes


def _tell(words: str) -> None:
    typer.echo(words, err=True)
