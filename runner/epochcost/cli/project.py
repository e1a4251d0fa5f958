"""`epochcost init` and `schema`: create a project, and write the schemas of its specs."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
from importlib.metadata import distribution
from pathlib import Path
from typing import Annotated

import typer

from epochcost import __version__
from epochcost.analysis.table.columns import dictionary_page
from epochcost.errors import CapabilityError, InputError
from epochcost.results.files import unwritable, workplace, write_atomically
from epochcost.specs.draft import SCHEMAS
from epochcost.specs.schema import reference_page, schema_files

_REQUIREMENT = re.compile(r"^epochcost\[[a-z,]+\]$", re.MULTILINE)
_TEMPLATE = Path(__file__).parents[1] / "template"


def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A new or empty folder.")],
) -> None:
    """Create a project for your own models and prices.

    Example: epochcost init our-costs
    """
    _require_empty(folder)
    origin = requirement_origin(distribution("epochcost").read_text("direct_url.json"), __version__)
    place = folder.resolve()
    try:
        # In a neighbouring folder: after a kill, the same command starts again.
        with workplace(place.parent, f".{place.name[:64]}.making-") as workspace:
            _write_project(workspace / "project", origin)
            place.mkdir(exist_ok=True)
            for path in (workspace / "project").iterdir():
                path.rename(place / path.name)
    except (OSError, shutil.Error) as error:
        raise CapabilityError(f"{folder}: cannot be written: {error}") from None
    typer.echo(f"{folder} is a project: declare models and prices in {folder / 'specs'}")
    elsewhere = ": name a repository and a commit there before other machines install it"
    typer.echo(
        f"Its requirements/ install epochcost{origin}{elsewhere if 'file:' in origin else ''}"
    )
    # How `make` finds this program if it is not on the path.
    command = shlex.quote(f"EPOCHCOST={shlex.quote(sys.executable)} -m epochcost")
    program = "" if shutil.which("epochcost") else f" {command}"
    typer.echo(f"Next: cd {shlex.quote(str(folder))} && make report{program}")


def _write_project(folder: Path, version_or_address: str) -> None:
    # Workflows that build and test this package, templates of its issues, and compiled scripts.
    ours = shutil.ignore_patterns(
        "wheel.*", "weekly.*", "ISSUE_TEMPLATE", "pull_request_*", "__pycache__"
    )
    shutil.copytree(_TEMPLATE, folder, ignore=ours)
    (folder / SCHEMAS).mkdir(parents=True)
    for name, text in schema_files().items():
        (folder / SCHEMAS / name).write_text(text, "utf-8")
    for file in (folder / "requirements").glob("*.txt"):
        text = file.read_text("utf-8")
        file.write_text(_REQUIREMENT.sub(lambda name: name[0] + version_or_address, text), "utf-8")


def requirement_origin(origin: str | None, version: str) -> str:
    """The part of a pip requirement after the program's name: a version or an address.

    ``origin`` is pip's record of the origin (PEP 610); None after an installation from an index.
    """
    if origin is None:
        return f"=={version}"
    noted = json.loads(origin)
    if "vcs_info" in noted:
        return f" @ {noted['vcs_info']['vcs']}+{noted['url']}@{noted['vcs_info']['commit_id']}"
    hashes = noted.get("archive_info", {}).get("hashes", {})
    return f" @ {noted['url']}" + (f"#sha256={hashes['sha256']}" if "sha256" in hashes else "")


def _require_empty(folder: Path) -> None:
    if folder.exists() and not (
        folder.is_dir() and {path.name for path in folder.iterdir()} <= {".git"}
    ):
        raise InputError(
            f"{folder}: expected a new or empty folder, got one that is in use: name another"
        )


def schema(
    to: Annotated[Path, typer.Option(help="The folder that the schemas are written to.")] = Path(
        "docs/schemas"
    ),
    pages: Annotated[
        Path | None,
        typer.Option(help="Also write the pages on specs, data and commands to this folder."),
    ] = None,
) -> None:
    """Write JSON Schemas of the specs, for hints in an editor.

    Example: epochcost schema --to docs/schemas
    """
    files = schema_files()
    to.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        write_atomically(to / name, text.encode(), unwritable)
    typer.echo(f"{len(files)} schemas are in {to}")
    if pages is None:
        return
    # Imported here: the reference of commands imports all of them.
    from epochcost.cli.commands_page import commands_page  # noqa: PLC0415

    write_atomically(pages / "specs.md", reference_page().encode(), unwritable)
    write_atomically(pages / "data-dictionary.md", dictionary_page().encode(), unwritable)
    write_atomically(pages / "commands.md", commands_page().encode(), unwritable)
    typer.echo(f"3 pages are in {pages}")
