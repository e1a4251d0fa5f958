"""`epochcost build` and `epochcost serve`: build the site with MkDocs, and preview it."""

from __future__ import annotations

import errno
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from epochcost.cli.bundled import project_to_read
from epochcost.cli.interruption import end_at_signals
from epochcost.errors import CapabilityError, InputError, UsageError
from epochcost.specs.loader import BUNDLED

_CONFIG = Path("mkdocs.yml")
_REFUSED_ADDRESS = (errno.EADDRINUSE, errno.EADDRNOTAVAIL, errno.EACCES)
# A file that only a site of ours has.
_SITE_MARK = "api/v1/schema.json"
# Import name → name for pip.
_SITE_PACKAGES = {
    "mkdocs": "mkdocs",
    "material": "mkdocs-material",
    "jinja2": "jinja2",
    "altair": "altair",
    "duckdb": "duckdb",
    "vl_convert": "vl-convert-python",
}


def build(
    site_dir: Annotated[Path, typer.Option(help="The folder of the site.")] = Path("site"),
    pages_to: Annotated[
        Path | None,
        typer.Option(help="Write all pages as Markdown to this folder, and build no site."),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Fail on any warning.")] = False,
) -> None:
    """Build the site from the specs and results.

    Example: epochcost build --strict
    """
    _prepare_site_packages()
    config = _site_configuration()
    if pages_to is None:
        _require_replaceable_folder(site_dir)
        # Nothing is lost, and the reader of results would take an exception for an invalid result.
        end_at_signals()
        options = ("--site-dir", str(site_dir.absolute()), *(["--strict"] if strict else []))
        _run_mkdocs("build", "--config-file", str(config), *options)
    elif strict:
        raise UsageError("--strict: cannot be used with --pages-to, which checks no links")
    else:
        from epochcost.report.plugin import write_pages  # noqa: PLC0415

        typer.echo(f"{write_pages(config, pages_to)} files are in {pages_to}")


def serve(
    dev_addr: Annotated[
        str, typer.Option(help="Address and port of the preview.")
    ] = "127.0.0.1:8000",
) -> None:
    """Preview the site, rebuilt at every change.

    Example: epochcost serve --dev-addr 127.0.0.1:8001
    """
    _prepare_site_packages()
    port = dev_addr.rpartition(":")[2]
    if not (port.isdecimal() and int(port) < 2**16):
        raise UsageError(f"--dev-addr: expected an address and a port, got {dev_addr}")
    config = _site_configuration()
    try:
        _run_mkdocs("serve", "--config-file", str(config), "--dev-addr", dev_addr)
    except OSError as error:
        if error.errno not in _REFUSED_ADDRESS or error.filename is not None:
            raise
        raise CapabilityError(
            f"--dev-addr {dev_addr}: expected a free address of this machine, got: "
            f"{error.strerror}: name another, such as 127.0.0.1:8001"
        ) from None


def _prepare_site_packages() -> None:
    missing = [name for module, name in _SITE_PACKAGES.items() if find_spec(module) is None]
    if missing:
        raise CapabilityError(
            f"expected the packages that build the site; missing: {', '.join(missing)}. "
            f"Install them from the checkout: {sys.executable} -m pip install --editable '.[site]'"
            " (from a wheel: 'WHEEL[site]')"
        )
    # Material, the theme, prints a notice about MkDocs 2.
    os.environ["NO_MKDOCS_2_WARNING"] = "1"


def _site_configuration() -> Path:
    """Path of the MkDocs configuration of the project, or of the bundled project outside a project.

    Raises InputError if a project has no MkDocs configuration.
    """
    if _CONFIG.is_file():
        return _CONFIG
    project = project_to_read()
    if project is not BUNDLED:
        raise InputError(
            f"expected {_CONFIG} in the current folder, found none in {Path.cwd()}: run the "
            "command in the folder of the project, or make one with `epochcost init DIR`"
        )
    # Charts are cached in the current folder. Git looks for no repository above the project.
    os.environ["EPOCHCOST_CACHE"] = str(Path(".cache/epochcost/charts").absolute())
    os.environ["GIT_CEILING_DIRECTORIES"] = str(BUNDLED.parent)
    return BUNDLED / _CONFIG


def _require_replaceable_folder(folder: Path) -> None:
    if not folder.exists() or (folder / _SITE_MARK).is_file():
        return
    if not folder.is_dir() or any(folder.iterdir()):
        raise InputError(
            "--site-dir: expected a new or empty folder, or one with an earlier site of epochcost, "
            f"because the new site replaces it, got {folder}: name another folder, or remove it"
        )


def _run_mkdocs(*arguments: str) -> None:
    # Imported after the site's packages were checked and their notice silenced.
    from mkdocs.__main__ import cli  # noqa: PLC0415

    # Run in this process, so that a signal ends MkDocs too.
    try:
        cli(list(arguments), prog_name="mkdocs")
    except SystemExit as ended:
        raise typer.Exit(1 if ended.code else 0) from None
