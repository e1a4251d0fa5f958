"""`epochcost data`: fetch a data set's files, import those at hand, and list what is there."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

from epochcost.cli.bundled import catalogue_to_read
from epochcost.cli.terminal import ids, print_table
from epochcost.execute.data_files import Held, import_files
from epochcost.execute.fetching import Follow, fetch_files
from epochcost.specs.reference_data import Dataset
from epochcost.train.datasets import data_path

app = typer.Typer(
    no_args_is_help=True, help="Fetch or import the files of data sets, and list them."
)
_Name = Annotated[
    str,
    typer.Argument(metavar="NAME", help="A data set's id.", autocompletion=ids("datasets")),
]
_Folder = Annotated[Path, typer.Option("--data", help="The folder of data sets.")]
_FOLDER = Path("data")


@app.callback()
def _data() -> None:
    """Fetch or import the files of data sets, and list them."""


@app.command("fetch")
def fetch(name: _Name, *, data: _Folder = _FOLDER) -> None:
    """Fetch a data set's files from their publisher.

    Example: epochcost data fetch mnist
    """
    dataset = catalogue_to_read().dataset(name)
    if dataset.generated is not None or (dataset.data is not None and dataset.data.package):
        typer.echo(f"{name}: {_origin(dataset)}, nothing to fetch")
        return
    typer.echo(f"{dataset.name}, licence: {dataset.licence or 'unknown'}", err=True)
    try:
        with _bars() as follow:
            for held in fetch_files(dataset, data, follow):
                _tell(name, held)
    except KeyboardInterrupt:
        typer.echo("interrupted; what came is kept: the same command goes on", err=True)
        raise


@app.command("import")
def import_(
    name: _Name,
    path: Annotated[
        Path, typer.Argument(metavar="PATH", help="A file of it, or a folder that has some.")
    ],
    *,
    data: _Folder = _FOLDER,
) -> None:
    """Copy files at hand into place, checked.

    Example: epochcost data import digits digits.csv.gz
    """
    dataset = catalogue_to_read().dataset(name)
    for held in import_files(dataset, path, data):
        _tell(name, held)


@app.command("list")
def list_datasets(*, data: _Folder = _FOLDER) -> None:
    """List what can be trained on, and what of it is here.

    Example: epochcost data list
    """
    known = catalogue_to_read().datasets.values()
    usable = [each for each in known if each.data is not None or each.generated is not None]
    rows = [(each.id, _present(each, data), *_size_and_licence(each)) for each in usable]
    print_table(("data set", "here", "size", "licence"), rows)


def _origin(dataset: Dataset) -> str:
    """Where the examples come from that nobody has to fetch; empty for any other."""
    if dataset.data is None:
        return "made up from a seed"
    package = (dataset.data.package or "").partition("/")[0]
    return package and f"in the Python package {package}"


def _present(dataset: Dataset, folder: Path) -> str:
    if dataset.data is None:
        return _origin(dataset)
    files = dataset.data.files
    count = sum(data_path(dataset, file, folder).is_file() for file in files)
    return (not count and _origin(dataset)) or f"{count} of {len(files)} files"


def _size_and_licence(dataset: Dataset) -> tuple[str, str]:
    if dataset.data is None:
        return "", ""
    sizes = [file.size_bytes for file in dataset.data.files]
    known = [size for size in sizes if size is not None]
    size = f"{sum(known) / 1e6:,.1f} MB" if len(known) == len(sizes) else "unknown"
    return size, dataset.licence or "unknown"


def _tell(name: str, held: Held) -> None:
    """What became of a file; where the spec has no hash, the line to add to it."""
    size, file = held.path.stat().st_size, held.declared
    if file.sha256 is not None:
        typer.echo(f"{held.path}: {held.how}, {size:,} bytes, SHA-256 as in the spec")
        return
    typer.echo(
        f"{held.path}: {held.how}, {size:,} bytes; its spec has no SHA-256. If you trust it, "
        f'add below name = "{file.name}" in specs/datasets/{name}.toml:\n'
        f'sha256 = "{held.sha256}"'
    )


@contextlib.contextmanager
def _bars() -> Iterator[Follow]:
    """A bar for each file at a terminal, a line when one begins anywhere else."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}", markup=False),
        *(BarColumn(bar_width=20), DownloadColumn(), TimeRemainingColumn()),
    )
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as progress:
        yield _shown(progress, console)


def _shown(progress: Progress, console: Console) -> Follow:
    tasks: dict[str, TaskID] = {}

    def follow(name: str, come: int, total: int | None) -> None:
        if name not in tasks:
            tasks[name] = progress.add_task(name, total=total)
            if not console.is_terminal:
                of = "an unknown number of" if total is None else f"{total:,}"
                typer.echo(f"{name}: fetching, {come:,} of {of} bytes are here", err=True)
        progress.update(tasks[name], completed=come)

    return follow
