"""`epochcost diff`: which costs change between two git revisions, by how much and why."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from epochcost.analysis.difference.changes import ChangedCost, Difference, Winner, difference
from epochcost.analysis.difference.results import ResultFile
from epochcost.analysis.difference.revision import at_commit, in_working_tree
from epochcost.analysis.difference.words import (
    HEADER,
    by_size,
    cells,
    figure_words,
    prediction_words,
    shown_costs,
    summary,
    winner_words,
)
from epochcost.analysis.priced_jobs import PricedWork
from epochcost.cli.request_comment import TITLES, Comment, bounded, markdown, part, write_comment
from epochcost.cli.terminal import print_json, say
from epochcost.cost import Cost
from epochcost.cost.estimate import Unpriced
from epochcost.specs.wording import printable

Form = Literal["text", "markdown", "comment", "json"]


def diff(
    base: Annotated[str, typer.Argument(metavar="BASE", help="A commit, branch or tag.")],
    head: Annotated[
        str | None,
        typer.Argument(metavar="HEAD", help="Another. Default: the working tree as it is."),
    ] = None,
    form: Annotated[
        Form,
        typer.Option(
            "--format", help="A table; a comment's text or its data; or JSON with exact amounts."
        ),
    ] = "text",
) -> None:
    """Show which costs change between two git revisions, and why.

    Nothing is printed where nothing changes; JSON then has empty lists. The working tree is not
    touched.

    Example: epochcost diff main
    """
    with tempfile.TemporaryDirectory(prefix="epochcost-") as folder:
        difference = _difference(Path(folder), base, head)
        for problem in difference.problems:
            say(printable(problem), err=True)
        _show(difference, form)


def _difference(folder: Path, base: str, head: str | None) -> Difference:
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


def _show(difference: Difference, form: Form) -> None:
    if form == "json":
        print_json(as_json(difference))
    elif form == "comment":
        typer.echo(write_comment(comment_of(difference)))
    elif form == "markdown":
        typer.echo(markdown(comment_of(difference)), nl=False)
    elif not difference.is_empty:
        _show_text(difference)


def _show_text(difference: Difference) -> None:
    say(f"{difference.before} → {difference.after}: {summary(difference)}")
    costs = by_size(shown_costs(difference))
    if costs:
        say("")
        typer.echo(_table([HEADER, *map(cells, costs)]), nl=False)
    for name, sentences in _sentences(difference).items():
        if sentences and name != "left_out":
            say("\n  ".join([f"\n{TITLES[name]}:", *sentences]))


def _sentences(difference: Difference) -> dict[str, Sequence[str]]:
    """The lists under the names of a comment's parts."""
    results = {
        f"results_{kind.replace(' ', '_')}": [_file_words(file) for file in files]
        for kind, files in difference.results.by_kind().items()
    }
    return {
        "winners": [winner_words(winner) for winner in difference.winners],
        "predictions": prediction_words(difference.predictions),
        "figures": [figure_words(figure) for figure in difference.figures],
        **results,
        "left_out": difference.problems,
    }


def _file_words(file: ResultFile) -> str:
    doubts = f" ({'; '.join(file.doubts)})" if file.doubts else ""
    return printable(f"{file.title} on {file.hardware}{doubts}")


def _table(rows: Sequence[Sequence[str]]) -> str:
    """Lines with aligned columns, written at once: there may be thousands of them."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
    return "".join(f"{line}\n" for line in lines)


def as_json(difference: Difference) -> dict[str, Any]:
    """Every list is there, empty where nothing changes."""
    results = difference.results
    return {
        "before": difference.before,
        "after": difference.after,
        "costs": [_cost_change(one) for one in difference.costs],
        "winners": [_winner_as_json(one) for one in difference.winners],
        "figures": difference.figures,
        "predictions": difference.predictions,
        "results": {
            "added": results.added,
            "removed": results.removed,
            "measured_again": results.measured_again,
            "stale": results.stale,
        },
        "measured_again_unchanged": difference.unsure,
        "left_out": difference.problems,
    }


def _cost_change(one: ChangedCost) -> dict[str, Any]:
    return {
        "job": one.job,
        "before": _side(one.before),
        "after": _side(one.after),
        "change": None if one.amount is None else str(one.amount),
        "relative": one.relative,
        "why": [
            {
                "cause": reason.cause,
                "words": reason.words,
                "amount": None if reason.part is None else str(reason.part.amount),
            }
            for reason in one.reasons
        ],
        "time": one.time
        and {
            "factor": one.time.factor.mean,
            "low": one.time.factor.low,
            "high": one.time.factor.high,
            "significant": one.time.significant,
        },
    }


def _side(work: PricedWork | None) -> dict[str, Any]:
    price = work.price.id if work and work.price else None
    return {"price": price} | _cost_as_json(work.basis.cost if work else None)


def _cost_as_json(cost: Cost | None) -> dict[str, Any]:
    """The state says why there is no amount: no such plan there, or no price that is known."""
    if cost is None:
        return {"state": "absent"}
    if isinstance(cost, Unpriced):
        return {"state": "unknown", "reason": cost.reason}
    ends = {"low": str(cost.low), "mean": str(cost.mean), "high": str(cost.high)}
    return {"state": "known", **ends, "currency": cost.currency, "assumed": cost.assumed}


def _winner_as_json(one: Winner) -> dict[str, Any]:
    return {
        "subject": one.workload,
        "goal": one.goal,
        "before": _choice(one.before),
        "after": _choice(one.after),
        "wins": one.wins,
    }


def _choice(work: PricedWork | None) -> dict[str, Any] | None:
    if work is None:
        return None
    job = work.job
    return {
        "hardware": job.hardware,
        "host": job.host,
        "device": job.device,
        "batch_size": job.batch_size,
        "price": work.price.id if work.price else None,
        "source": job.source,
        **_cost_as_json(work.basis.cost),
    }


def comment_of(difference: Difference) -> Comment:
    """What a comment says of a difference; all empty if nothing changes."""
    if difference.is_empty:
        return Comment()
    costs = by_size(shown_costs(difference))
    lists = {
        name: part((sentence,) for sentence in sentences)
        for name, sentences in _sentences(difference).items()
        if sentences
    }
    return Comment(
        summary=bounded(summary(difference)),
        before=bounded(difference.before),
        after=bounded(difference.after),
        parts={**({"costs": part(map(cells, costs))} if costs else {}), **lists},
    )
