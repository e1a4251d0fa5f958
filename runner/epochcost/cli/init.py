"""`epochcost init`: a new project for models and prices of one's own, from a template."""

from __future__ import annotations

import json
import re
import shutil
import sys
from importlib.metadata import distribution
from pathlib import Path
from typing import Annotated

import typer

from epochcost import __version__
from epochcost.errors import CapabilityError, InputError

_REQUIREMENT = re.compile(r"^epochcost\[[a-z,]+\]$", re.MULTILINE)
_TEMPLATE = Path(__file__).parents[1] / "template"


def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A new or empty folder.")],
) -> None:
    """Make a project for your own models and prices; it builds its site at once."""
    from epochcost.specs.layout import SCHEMAS
    from epochcost.specs.schema import schema_files

    _require_empty(folder)
    try:
        shutil.copytree(_TEMPLATE, folder, dirs_exist_ok=True)
        (folder / SCHEMAS).mkdir(parents=True)
        for name, text in schema_files().items():
            (folder / SCHEMAS / name).write_text(text, "utf-8")
        origin = pinned(distribution("epochcost").read_text("direct_url.json"), __version__)
        for file in (folder / "requirements").glob("*.txt"):
            text = file.read_text("utf-8")
            file.write_text(_REQUIREMENT.sub(lambda name: name[0] + origin, text), "utf-8")
    except (OSError, shutil.Error) as error:
        raise CapabilityError(f"{folder}: cannot be written: {error}") from None
    typer.echo(f"{folder} is a project: what it costs is declared in {folder / 'specs'}")
    elsewhere = ": name a repository and a commit there before other machines install it"
    typer.echo(
        f"Its requirements/ install epochcost{origin}{elsewhere if 'file:' in origin else ''}"
    )
    typer.echo(f"Next: cd {folder} && make report{_program()}")


def pinned(origin: str | None, version: str) -> str:
    """What makes a requirement of this very program: a commit, an archive's hash or a path.

    ``origin`` is what pip noted of where it comes from (PEP 610); None: an index, by version.
    """
    if origin is None:
        return f"=={version}"
    noted = json.loads(origin)
    if "vcs_info" in noted:
        return f" @ {noted['vcs_info']['vcs']}+{noted['url']}@{noted['vcs_info']['commit_id']}"
    hashes = noted.get("archive_info", {}).get("hashes", {})
    return f" @ {noted['url']}" + (f"#sha256={hashes['sha256']}" if "sha256" in hashes else "")


def _require_empty(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or _held(folder)):
        raise InputError(
            f"{folder}: demanded a new or empty folder; got one that is in use: name another"
        )


def _held(folder: Path) -> list[Path]:
    """What stands in a folder beside git's own."""
    return [path for path in folder.iterdir() if path.name != ".git"]


def _program() -> str:
    """How `make` finds this program where the path does not lead to it."""
    return "" if shutil.which("epochcost") else f" EPOCHCOST={Path(sys.argv[0]).absolute()}"
