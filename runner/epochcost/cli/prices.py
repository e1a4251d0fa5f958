"""`epochcost prices`: import price tables as new price specs, which a person reviews."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer

from epochcost.cli.bundled import own_catalogue
from epochcost.cli.terminal import WideTable, print_table
from epochcost.errors import InputError, UsageError
from epochcost.report.wording import render_rate
from epochcost.results.files import unwritable, write_atomically
from epochcost.specs.prices.api_table import Commit, renewed
from epochcost.specs.prices.importing import ImportRequest, ImportResult, sort_rows
from epochcost.specs.prices.new_specs import NewSpec, new_specs
from epochcost.specs.prices.tables import read_prices, shown_sku
from epochcost.units import render_count, render_some

app = typer.Typer(no_args_is_help=True, help="Import published price tables as specs.")
_MOST_NAMES = 5
_Accept = Annotated[bool, typer.Option("--accept", help="Also write doubted prices.")]


@app.command("import")
def import_prices(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="CSV tables of prices.")],
    provider: Annotated[str, typer.Option(help="The provider of the machines: aws, gcp, azure, …")],
    as_of: Annotated[dt.datetime, typer.Option(formats=["%Y-%m-%d"], help="Day of the prices.")],
    source: Annotated[str, typer.Option(help="Source of the table: a repository or an address.")],
    region: Annotated[
        str | None,
        typer.Option(help="Only this region, including machines that have no price there yet."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Write nothing.")] = False,
    skip_faulty: Annotated[
        bool, typer.Option("--skip-faulty", help="List invalid rows and import the others.")
    ] = False,
    accept: _Accept = False,
    wide: WideTable = False,
) -> None:
    """Write a spec for each new or changed price.

    If a price is unchanged but our spec is older than 60 days, the spec gets the new date. Doubted
    prices, which are probably wrong compared with other prices, are listed and not written.

    Example: epochcost prices import vms.csv --provider aws --as-of 2026-07-20 --source
    "REPOSITORY@COMMIT, vms.csv" --dry-run
    """
    today, catalogue = dt.datetime.now(dt.UTC).date(), own_catalogue()
    request = ImportRequest(today, provider, as_of.date(), source, region)
    rows = chain.from_iterable(read_prices(path) for path in files)
    result = sort_rows(rows, catalogue, request)
    drafts = new_specs(result, catalogue, request)
    _show(result, drafts, request.as_of, wide=wide)
    _refuse_faults(result, skipped=skip_faulty)
    for draft in drafts:
        if draft.doubt:
            typer.echo(f"{'accepted' if accept else 'doubted'}: {draft.path.stem}: {draft.doubt}")
    _write_and_report(
        [draft for draft in drafts if accept or not draft.doubt], len(drafts), dry_run=dry_run
    )


def _write_and_report(specs: Sequence[NewSpec], draft_count: int, *, dry_run: bool) -> None:
    if len(specs) < draft_count:
        typer.echo(f"{draft_count - len(specs):,} doubted and not written: --accept writes them.")
    renewed = sum(spec.renewed for spec in specs)
    counted = f"{len(specs) - renewed:,} new{f', {renewed:,} dated anew' if renewed else ''}"
    if not specs:
        typer.echo("No other price is new." if draft_count else "No price is new.")
    elif dry_run:
        typer.echo(f"Dry run: {counted}, nothing written.")
    else:
        for spec in specs:
            write_atomically(spec.path, spec.text.encode(), unwritable)
        typer.echo(f"{counted}: review the files, then run `epochcost check`.")


@app.command("renew-apis")
def renew_apis(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A checkout of models.dev.")],
    commit: Annotated[str, typer.Option(help="The commit of the checkout.")],
    as_of: Annotated[dt.datetime, typer.Option(formats=["%Y-%m-%d"], help="Day of the commit.")],
    table: Annotated[str, typer.Option(help="Id of the table.")] = "models-dev",
    accept: _Accept = False,
) -> None:
    """Update the token prices in a table of specs/api-tables from a checkout of models.dev.

    Doubted prices, which are probably wrong compared with other prices, are listed and not written.

    Example: epochcost prices renew-apis models.dev --commit f3fc692299 --as-of 2026-07-02
    """
    if as_of.date() > dt.datetime.now(dt.UTC).date():
        raise UsageError(f"--as-of: expected a day in the past, got {as_of.date()}")
    catalogue = own_catalogue()
    spec = catalogue.api_table(table)
    path = catalogue.files[f"api-tables/{table}"].with_name(spec.table)
    apis = () if accept else catalogue.apis.values()
    renewal = renewed(path, folder, Commit(commit, as_of.date()), apis)
    remedy = "" if accept else ", --accept writes it"
    for name, reason in renewal.doubted.items():
        typer.echo(f"doubted: {name}: {reason}: its row stays unchanged{remedy}")
    for name in renewal.gone:
        typer.echo(f"{name}: the checkout offers it no more; its row stays unchanged, delete it")
    write_atomically(path, renewal.text.encode(), unwritable)
    typer.echo(f"{len(renewal.changed):,} changed: review {path.name}, then run `epochcost check`.")


def _show(result: ImportResult, specs: Sequence[NewSpec], day: dt.date, *, wide: bool) -> None:
    files = {spec.price.key: spec for spec in specs}
    rows = [
        (
            price.key.hardware,
            price.key.plan,
            price.key.region or "any",
            str(day),
            "none" if price.previous is None else render_rate(price.previous, price.model.currency),
            render_rate(price.amount, price.model.currency),
            files[price.key].state if price.key in files else "unchanged",
            files[price.key].path.name if price.key in files else price.previous_id or "",
        )
        for price in result.prices
    ]
    if rows:
        header = ("machine", "plan", "region", "day", "known", "listed", "what", "spec")
        print_table(header, rows, drop=("spec", "region", "day"), wide=wide)
    for reason, names in result.unmatched.items():
        examples = render_some(map(shown_sku, names), _MOST_NAMES)
        typer.echo(f"unmatched, {names.total():,}: {reason}: {examples}")


def _refuse_faults(result: ImportResult, *, skipped: bool) -> None:
    for fault in result.faults:
        typer.echo(str(fault), err=True)
    if result.faults and not skipped:
        counted = render_count(len(result.faults), "invalid row")
        raise InputError(
            f"expected valid rows of the machines in specs/hardware, got {counted}: "
            "nothing was written; correct them, or leave them out with --skip-faulty"
        )
