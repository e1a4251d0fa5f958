"""`epochcost diff`: show which costs change between two git revisions, by how much and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import typer

from epochcost.analysis.difference.causes import ChangedCost
from epochcost.analysis.difference.changes import Difference, compare_snapshots
from epochcost.analysis.difference.rendering import HEADER, cells, sections, shown_costs, summary
from epochcost.analysis.difference.revision import at_commit, in_working_tree
from epochcost.cli.bundled import project_to_write
from epochcost.cli.request_comment import TITLES, Comment, bounded, markdown, part, write_comment
from epochcost.cli.terminal import print_json, say
from epochcost.execute.folders import optional_cache_folder
from epochcost.specs.wording import printable


def diff(
    base: Annotated[str, typer.Argument(metavar="BASE", help="A commit, branch or tag.")],
    head: Annotated[
        str | None,
        typer.Argument(metavar="HEAD", help="Another revision. Default: the working tree."),
    ] = None,
    form: Annotated[
        Literal["text", "markdown", "comment", "json"],
        typer.Option(
            "--format",
            help="A table, a comment in Markdown, the comment's data, or JSON with exact amounts.",
        ),
    ] = "text",
) -> None:
    """Show which costs change between two git revisions, and why.

    If nothing changes, the command prints nothing, or JSON with empty lists. The working tree stays
    unchanged.

    Example: epochcost diff main
    """
    here = project_to_write().absolute()
    before = at_commit(here, base)
    after = in_working_tree(here) if head is None else at_commit(here, head)
    difference = compare_snapshots(before, after, optional_cache_folder("answers"))
    for problem in difference.problems:
        say(printable(problem), err=True)
    if form == "json":
        print_json(difference)
    elif form == "comment":
        typer.echo(write_comment(comment_of(difference)))
    elif form == "markdown":
        typer.echo(markdown(comment_of(difference)), nl=False)
    elif not difference.is_empty:
        _show_text(difference)


def _show_text(difference: Difference) -> None:
    say(f"{difference.before} → {difference.after}: {summary(difference)}")
    costs, listed = shown_costs(difference.costs), sections(difference)
    # As in a comment: predicted costs come last, because they follow from other changes.
    _show_costs([cost for cost in costs if not cost.only_predicted])
    for name, title in TITLES.items():
        if name in listed and listed[name] and name != "left_out":
            say("\n  ".join([f"\n{title}:", *map(printable, listed[name])]))
    _show_costs([cost for cost in costs if cost.only_predicted])


def _show_costs(costs: Sequence[ChangedCost]) -> None:
    if costs:
        rows = [HEADER, *map(cells, costs)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        say("")
        typer.echo("\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows))


def comment_of(difference: Difference) -> Comment:
    """Make the data of a pull-request comment; all parts are empty if nothing changes."""
    if difference.is_empty:
        return Comment()
    rows = {"costs": [*map(cells, shown_costs(difference.costs))]}
    for name, sentences in sections(difference).items():
        rows[name] = [(sentence,) for sentence in sentences]
    return Comment(
        summary=bounded(summary(difference)),
        before=bounded(difference.before),
        after=bounded(difference.after),
        parts={name: part(listed) for name, listed in rows.items() if listed},
    )
