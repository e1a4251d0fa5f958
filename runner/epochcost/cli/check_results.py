"""`epochcost check --results`: faults of result files, and what a reviewer should look at."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from epochcost.cli.faults import counted, faults_as_json
from epochcost.units import seconds

if TYPE_CHECKING:
    from epochcost.execute.submissions import CheckedResults, Submission
    from epochcost.statistics import Summary

# A reason that many files share is read once.
_MOST_NAMED = 3


def check_submissions(root: Path, paths: list[Path], *, as_json: bool) -> None:
    """Print the faults; exit 1 where there is one."""
    from epochcost.execute.submissions import check_results
    from epochcost.specs.loader import load_catalogue

    checked = check_results(load_catalogue(Path.cwd()), root, paths)
    if as_json:
        typer.echo(json.dumps(_as_json(checked), indent=1))
    else:
        _show(checked, named=bool(paths))
    files, faults = counted(checked.files, "result"), counted(len(checked.faults), "fault")
    typer.echo(f"{files} checked, {faults}", err=True)
    if checked.faults:
        raise typer.Exit(1)


def _show(checked: CheckedResults, *, named: bool) -> None:
    for fault in checked.faults:
        typer.echo(str(fault))
    for one in checked.submissions if named else ():
        typer.echo(f"{one.path}: {_figures(one)}")
    _show_remarks(checked)


def _show_remarks(checked: CheckedResults) -> None:
    from epochcost.execute.submissions import remarks_of

    found = remarks_of(checked.submissions)
    if found:
        typer.echo("To look at:")
    for remark, paths in found.items():
        names = ", ".join(str(path) for path in paths[:_MOST_NAMED])
        more = len(paths) - _MOST_NAMED
        typer.echo(f"  {remark}: {names}{f' and {more} more' if more > 0 else ''}")


def _figures(one: Submission) -> str:
    """The statistics, computed anew from the raw samples."""
    title = f"{one.title} on {one.hardware}"
    if one.summary is None:
        return f"{title}, under LoadGen"
    low, mean, high = (seconds(value) for value in _interval(one.summary))
    return f"{title}: a step takes {mean} ({low} to {high}), {one.summary.count} samples"


def _interval(summary: Summary) -> tuple[float, float, float]:
    return summary.interval.low, summary.mean, summary.interval.high


def _as_json(checked: CheckedResults) -> dict[str, Any]:
    return {
        "files": checked.files,
        **faults_as_json(checked.faults),
        "results": [_result_as_json(one) for one in checked.submissions],
    }


def _result_as_json(one: Submission) -> dict[str, Any]:
    low, mean, high = _interval(one.summary) if one.summary else (None, None, None)
    return {
        "path": one.path.as_posix(),
        "trial": one.title,
        "hardware": one.hardware,
        "samples": one.summary.count if one.summary else 0,
        "mean_seconds": mean,
        "low_seconds": low,
        "high_seconds": high,
        "remarks": list(one.remarks),
    }
