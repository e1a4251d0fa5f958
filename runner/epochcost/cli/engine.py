"""`epochcost engine`: install the engine that serves language models, in a separate environment."""

from __future__ import annotations

from typing import Annotated

import typer
from pydantic import TypeAdapter, ValidationError

from epochcost.cli.terminal import log
from epochcost.errors import InputError
from epochcost.execute.engines import install_engine
from epochcost.specs.requests import ENGINE, EngineName


def engine(
    name: Annotated[str, typer.Argument(metavar="ENGINE", help=f"Such as {ENGINE}==0.18.0.")],
) -> None:
    """Fetch the engine that serves language models.

    Example: epochcost engine onnxruntime-genai==0.18.0
    """
    try:
        TypeAdapter(EngineName).validate_python(name)
    except ValidationError:
        raise InputError(
            f"{name}: expected an engine and its version as {ENGINE}==0.18.0"
        ) from None
    install_engine(name, log)
