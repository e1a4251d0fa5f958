"""The end of a run: what may keep results from repeating, and which steps stood apart."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from epochcost.results.records import Result
from epochcost.results.stability import instabilities
from epochcost.statistics import outliers

# Below it, outliers move the mean by less than a study usually wants to know it.
_LEAST_TIME_SHARE = 0.01
_MOST_NAMED = 2


def show_doubts(results: Sequence[Result]) -> None:
    """List contradictions and instabilities; a remedy once for all results that need it."""
    for contradiction in dict.fromkeys(one for each in results for one in each.contradictions):
        typer.echo(f"measured as is: {contradiction}", err=True)
    remedies: dict[str, dict[str, list[str]]] = {}
    for result in results:
        for found in instabilities(result.measurement, result.environment):
            titles = remedies.setdefault(found.remedy, {}).setdefault(found.seen, [])
            titles.append(result.trial.title)
    for remedy, seen in remedies.items():
        lines = [f"  {_all_of(titles)}: {phrase}" for phrase, titles in seen.items()]
        typer.echo("\n".join(["unstable:", *lines, f"  remedy: {remedy}"]), err=True)


def _all_of(titles: Sequence[str]) -> str:
    """Trials of which the same is said: by their number where they are many."""
    return "; ".join(titles) if len(titles) <= _MOST_NAMED else f"{len(titles)} trials"


def show_outliers(results: Sequence[Result]) -> None:
    """List the slow steps that add more than a percent to a mean; all of them stay in it."""
    for result in results:
        found = outliers(result.measurement.samples_seconds)
        if found is not None and found.time_share >= _LEAST_TIME_SHARE:
            typer.echo(
                f"outliers: {result.trial.title}: {found.count} of {found.of} samples add "
                f"{found.time_share:.1%} to the mean, the longest {found.longest:.1f} medians; "
                "they stay in every figure",
                err=True,
            )
