"""`epochcost diff`: which costs change between two git revisions, by how much and why."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from epochcost.report.difference.words import (
    HEADER,
    by_size,
    cells,
    recomputed_words,
    shown_costs,
    summary,
    winner_words,
)

if TYPE_CHECKING:
    from epochcost.report.difference.changes import Difference

Form = Literal["text", "markdown", "json"]


def diff(
    base: Annotated[str, typer.Argument(metavar="BASE", help="A commit, branch or tag.")],
    head: Annotated[
        str | None,
        typer.Argument(metavar="HEAD", help="Another. Default: the working tree as it stands."),
    ] = None,
    form: Annotated[
        Form,
        typer.Option(
            "--format", help="A table, the text of a comment, or JSON with exact amounts."
        ),
    ] = "text",
) -> None:
    """Show which costs change between two git revisions, by how much and why.

    Nothing is printed where nothing changes; JSON then has empty lists. The working tree is not
    touched.
    """
    with tempfile.TemporaryDirectory(prefix="epochcost-") as folder:
        found = _difference(Path(folder), base, head)
        for problem in found.problems:
            typer.echo(problem, err=True)
        _show(found, form)


def _difference(folder: Path, base: str, head: str | None) -> Difference:
    from epochcost.report.difference.changes import difference
    from epochcost.report.difference.revision import at_commit, in_working_tree

    here = Path.cwd()
    before = at_commit(here, base, _made(folder / "before"))
    if head is None:
        after = in_working_tree(here)
    else:
        after = at_commit(here, head, _made(folder / "after"))
    return difference(before, after)


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _show(found: Difference, form: Form) -> None:
    if form == "json":
        from epochcost.cli.diff_json import as_json

        typer.echo(json.dumps(as_json(found), indent=1))
    elif form == "markdown":
        from epochcost.cli.diff_markdown import as_markdown

        typer.echo(as_markdown(found), nl=False)
    elif not found.is_empty:
        _show_text(found)


def _show_text(found: Difference) -> None:
    typer.echo(f"{found.before} → {found.after}: {summary(found)}")
    costs = by_size(shown_costs(found))
    if costs:
        typer.echo("")
        typer.echo(_table([HEADER, *map(cells, costs)]), nl=False)
    if found.winners:
        typer.echo("\nCheapest now:")
    for winner in found.winners:
        typer.echo(f"  {winner_words(winner)}")
    if found.recomputed:
        typer.echo("\nPublished figures, recomputed:")
    for figure in found.recomputed:
        typer.echo(f"  {recomputed_words(figure)}")
    for kind, files in found.results.by_kind().items():
        typer.echo(f"\nResults {kind}:")
        for file in files:
            doubts = f" ({'; '.join(file.doubts)})" if file.doubts else ""
            typer.echo(f"  {file.title} on {file.hardware}{doubts}")


def _table(rows: Sequence[Sequence[str]]) -> str:
    """Lines with aligned columns, written at once: there may be thousands of them."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
    return "".join(f"{line}\n" for line in lines)
