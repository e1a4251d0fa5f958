"""`epochcost diff`: which costs change between two git revisions, by how much and why.

As Markdown it is one comment on a pull request: its first line is a mark that no reader sees, by
which a workflow finds its own comment again, and what a file says is only ever shown as text.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

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
from epochcost.cli.terminal import print_json, say
from epochcost.cost import Cost
from epochcost.cost.estimate import Unpriced

Form = Literal["text", "markdown", "json"]
ItemT = TypeVar("ItemT")
MARKER = "<!-- epochcost diff -->"
# GitHub refuses a comment of more than 65,536 characters; the rest is left to whoever adds to it.
MOST_BYTES = 60_000
# The rows that a reader sees before unfolding the others.
_ROWS_ABOVE = 20
_MARKUP = "\\`*_[]|~"
# These marks, tags, and what GitHub finds when Markdown is done, so that entities do not hide it:
# links by themselves, people, issues, pictures of words, formulas.
_SPECIAL = re.compile(
    r"[\\`*_\[\]|~<>&@#$]|:(?=//|[\w+-]+:)|(?<=www)(?=\.)|(?<=GH)-", re.IGNORECASE
)
_NO_WIDTH = "&#8203;"
# What writes a section into so many bytes, and says how much it left out.
_Section = Callable[[int], str]


def diff(
    base: Annotated[str, typer.Argument(metavar="BASE", help="A commit, branch or tag.")],
    head: Annotated[
        str | None,
        typer.Argument(metavar="HEAD", help="Another. Default: the working tree as it is."),
    ] = None,
    form: Annotated[
        Form,
        typer.Option(
            "--format", help="A table, the text of a comment, or JSON with exact amounts."
        ),
    ] = "text",
) -> None:
    """Show which costs change between two git revisions, and why.

    Nothing is printed where nothing changes; JSON then has empty lists. The working tree is not
    touched.
    """
    with tempfile.TemporaryDirectory(prefix="epochcost-") as folder:
        found = _difference(Path(folder), base, head)
        for problem in found.problems:
            say(problem, err=True)
        _show(found, form)


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


def _show(found: Difference, form: Form) -> None:
    if form == "json":
        print_json(as_json(found), indent=1)
    elif form == "markdown":
        typer.echo(as_markdown(found), nl=False)
    elif not found.is_empty:
        _show_text(found)


def _show_text(found: Difference) -> None:
    say(f"{found.before} → {found.after}: {summary(found)}")
    costs = by_size(shown_costs(found))
    if costs:
        say("")
        typer.echo(_table([HEADER, *map(cells, costs)]), nl=False)
    sections: dict[str, Iterable[str]] = {
        "Cheapest now": map(winner_words, found.winners),
        "Predictions": prediction_words(found.predictions),
        "Changes other than costs": map(figure_words, found.figures),
    }
    for kind, files in found.results.by_kind().items():
        sections[f"Results {kind}"] = map(_file, files)
    for title, sentences in sections.items():
        for number, words in enumerate(sentences):
            say(f"  {words}" if number else f"\n{title}:\n  {words}")


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
        "sure": one.sure,
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


def as_markdown(difference: Difference) -> str:
    """The comment, at most ``MOST_BYTES`` in UTF-8; empty where nothing changes."""
    if difference.is_empty:
        return ""
    costs = by_size(shown_costs(difference))
    title = f"**{escaped(summary(difference))}**"
    between = f"Between {escaped(difference.before)} and {escaped(difference.after)}."
    head = [MARKER, "### What this changes in cost", "", f"{title}  \n{between}", ""]
    text = "\n".join(head) + "\n"
    for section in (
        _markdown_table(costs[:_ROWS_ABOVE]),
        _listed("Cheapest now", difference.winners, lambda one: escaped(winner_words(one))),
        _listed("Predictions", prediction_words(difference.predictions), escaped),
        _listed(
            "Changes other than costs",
            difference.figures,
            lambda one: escaped(figure_words(one)),
        ),
        *_results(difference),
        _folded("More costs", costs[_ROWS_ABOVE:]),
        _listed("Left out", difference.problems, escaped),
    ):
        text += section(MOST_BYTES - _size(text))
    return text


def _markdown_table(costs: Sequence[ChangedCost]) -> _Section:
    head = f"| {' | '.join(HEADER)} |\n| --- | --- | --- | ---: | ---: | ---: | --- |\n"
    return lambda room: _fitting(head, [_row(one) for one in costs], "\n", room)


def _folded(title: str, costs: Sequence[ChangedCost]) -> _Section:
    opened = f"<details><summary>{title}: {len(costs):,}</summary>\n\n"
    end = "\n</details>\n"

    def write(room: int) -> str:
        inside = _markdown_table(costs)(room - _size(opened + end))
        return f"{opened}{inside}{end}" if inside else ""

    return write


def _results(difference: Difference) -> Iterator[_Section]:
    for kind, files in difference.results.by_kind().items():
        title = f"Results {kind}: {len(files):,}"
        yield _listed(title, files, lambda one: escaped(_file(one)))


def _file(file: ResultFile) -> str:
    doubts = f" ({'; '.join(file.doubts)})" if file.doubts else ""
    return f"{file.title} on {file.hardware}{doubts}"


def _listed(title: str, items: Sequence[ItemT], words: Callable[[ItemT], str]) -> _Section:
    head = f"<details open><summary>{title}</summary>\n\n"
    end = "\n</details>\n\n"

    def write(room: int) -> str:
        inside = _fitting("", [f"- {words(one)}\n" for one in items], "", room - _size(head + end))
        return f"{head}{inside}{end}" if inside else ""

    return write


def _row(change: ChangedCost) -> str:
    return f"| {' | '.join(escaped(cell) for cell in cells(change))} |\n"


def _fitting(head: str, rows: Sequence[str], end: str, room: int) -> str:
    """As many rows as fit, and how many more there are; nothing where not one fits."""
    whole = head + "".join(rows) + end
    if not rows or _size(whole) <= room:
        return whole if rows else ""
    kept: list[str] = []
    more = "\nand {} more: `epochcost diff` lists them all\n"
    size = _size(head + end + more) + 10
    for row in rows:
        size += _size(row)
        if size > room:
            break
        kept.append(row)
    if not kept:
        return ""
    return head + "".join(kept) + more.format(f"{len(rows) - len(kept):,}") + end


def _size(text: str) -> int:
    return len(text.encode())


def escaped(text: str) -> str:
    """Text that Markdown and GitHub show as it is: no mark-up, no link, no mention."""
    return _SPECIAL.sub(_as_text, " ".join(text.split()))


def _as_text(found: re.Match[str]) -> str:
    """Behind a backslash GitHub would still see a tag, a link, a mention or a formula.

    What has no width keeps apart what it looks for; a dollar in a tag is its own way.
    """
    character = found[0]
    if character and character in _MARKUP:
        return f"\\{character}"
    if character in ("<", ">", "&"):
        return f"&#{ord(character)};"
    return "<span>$</span>" if character == "$" else f"{character}{_NO_WIDTH}"
