"""`epochcost engine`: install the engine that serves language models, in a separate environment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer
from pydantic import TypeAdapter, ValidationError

from epochcost.cli.bundled import catalogue_to_read
from epochcost.cli.terminal import Studies, log
from epochcost.errors import InputError, UsageError
from epochcost.execute.engines import engines_of, install_engine
from epochcost.specs.requests import ENGINE, EngineName


def engine(
    name: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ENGINE]...", help=f"Such as {ENGINE}==0.18.0. Default: those of the studies."
        ),
    ] = None,
    *,
    study: Studies = None,
) -> None:
    """Fetch the engine that serves language models.

    Example: epochcost engine onnxruntime-genai==0.18.0
    """
    if name and study:
        raise UsageError("--study: cannot be combined with the name of an engine")
    engines = _require_engine_names(name) if name else _of_studies(study)
    for each in engines:
        install_engine(each, log)
    if not engines:
        typer.echo("no study sends requests to an engine")


def _of_studies(names: list[str] | None) -> Sequence[str]:
    catalogue = catalogue_to_read()
    return engines_of(catalogue.study(name) for name in names or sorted(catalogue.studies))


def _require_engine_names(names: Sequence[str]) -> Sequence[str]:
    for name in names:
        try:
            TypeAdapter(EngineName).validate_python(name)
        except ValidationError:
            raise InputError(
                f"{name}: expected an engine and its version as {ENGINE}==0.18.0"
            ) from None
    return names
