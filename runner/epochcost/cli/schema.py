"""`epochcost schema`: what specs may say, for editors as JSON Schemas and for people as a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def schema(
    to: Annotated[Path, typer.Option(help="The folder that the schemas are written to.")] = Path(
        "docs/schemas"
    ),
    reference: Annotated[
        Path | None, typer.Option(help="Also write the reference of all keys to this file.")
    ] = None,
    dictionary: Annotated[
        Path | None,
        typer.Option(help="Also write the dictionary of the site's data to this file."),
    ] = None,
) -> None:
    """Write a JSON Schema for each kind of spec, for completion and hints in an editor."""
    from epochcost.report.dataset.dictionary import dictionary_page
    from epochcost.results.atomic import write_atomically
    from epochcost.specs.schema import reference_page, schema_files

    files = schema_files()
    to.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        write_atomically(to / name, text.encode())
    typer.echo(f"{len(files)} schemas are in {to}")
    if reference is not None:
        write_atomically(reference, reference_page().encode())
        typer.echo(f"The reference is {reference}")
    if dictionary is not None:
        write_atomically(dictionary, dictionary_page().encode())
        typer.echo(f"The dictionary is {dictionary}")
