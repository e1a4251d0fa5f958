"""`epochcost data`: fetch or import the files of data sets, and list them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from epochcost.cli.bundled import catalogue_to_read
from epochcost.cli.terminal import ids, log, print_table, say
from epochcost.execute.data_files import PlacedFile, fetch_files, import_files
from epochcost.specs.reference_data import Dataset
from epochcost.train.datasets import data_path

app = typer.Typer(
    no_args_is_help=True, help="Fetch or import the files of data sets, and list them."
)
_Name = Annotated[
    str, typer.Argument(metavar="NAME", help="A data set's id.", autocompletion=ids("datasets"))
]
_Folder = Annotated[Path, typer.Option("--data", help="The folder of data sets.")]
_FOLDER = Path("data")
_GENERATED = "generated from a seed"


@app.command("fetch")
def fetch(name: _Name, *, data: _Folder = _FOLDER) -> None:
    """Fetch a data set's files from their publisher.

    Example: epochcost data fetch mnist
    """
    dataset = catalogue_to_read().dataset(name)
    if dataset.generated is not None:
        typer.echo(f"{name}: {_GENERATED}, nothing to fetch")
        return
    typer.echo(f"{dataset.name}, licence: {dataset.licence or 'unknown'}", err=True)
    for file in fetch_files(dataset, data, log):
        _print_placed_file(name, file)


@app.command("import")
def import_(
    name: _Name,
    path: Annotated[
        Path,
        typer.Argument(metavar="PATH", help="A file of the data set, or a folder with its files."),
    ],
    *,
    data: _Folder = _FOLDER,
) -> None:
    """Check your files of a data set, and copy the files into the folder of data sets.

    Example: epochcost data import digits digits.csv.gz
    """
    for file in import_files(catalogue_to_read().dataset(name), path, data):
        _print_placed_file(name, file)


@app.command("list")
def list_datasets(*, data: _Folder = _FOLDER) -> None:
    """List the data sets, and which of their files are present.

    Example: epochcost data list
    """
    datasets = catalogue_to_read().datasets.values()
    usable = [each for each in datasets if each.data is not None or each.generated is not None]
    if not usable:
        say("specs/datasets has no data set with a table [data] or [generated]")
        return
    print_table(("data set", "here", "size", "licence"), [_row(each, data) for each in usable])


def _row(dataset: Dataset, folder: Path) -> tuple[str, ...]:
    if dataset.data is None:
        return dataset.id, _GENERATED, "", ""
    files = dataset.data.files
    count = sum(data_path(dataset, file, folder).is_file() for file in files)
    stated = [file.size_bytes for file in files if file.size_bytes is not None]
    size = f"{sum(stated) / 1e6:,.1f} MB" if len(stated) == len(files) else "unknown"
    return dataset.id, f"{count} of {len(files)} files", size, dataset.licence or "unknown"


def _print_placed_file(dataset_id: str, file: PlacedFile) -> None:
    line = f"{file.path}: {file.origin}, {file.path.stat().st_size:,} bytes"
    if file.declared.sha256 is not None:
        typer.echo(f"{line}, SHA-256 as in the spec")
        return
    typer.echo(
        f"{line}; its spec has no SHA-256. If you trust the file, "
        f'add below name = "{file.declared.name}" in specs/datasets/{dataset_id}.toml:\n'
        f'sha256 = "{file.sha256}"'
    )
