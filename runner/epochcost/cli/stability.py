"""Warnings at the end of a run: what may keep results from repeating, each with its remedy."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from epochcost.results.records import Result
from epochcost.results.stability import instabilities


def show_doubts(results: Sequence[Result]) -> None:
    """List contradictions and instabilities; a remedy once for all results that need it."""
    for contradiction in dict.fromkeys(one for each in results for one in each.contradictions):
        typer.echo(f"measured as is: {contradiction}", err=True)
    remedies: dict[str, list[str]] = {}
    for result in results:
        for found in instabilities(result.measurement, result.environment):
            remedies.setdefault(found.remedy, []).append(f"{result.trial.title}: {found.seen}")
    for remedy, seen in remedies.items():
        typer.echo("\n".join(["unstable:", *(f"  {one}" for one in seen)]), err=True)
        typer.echo(f"  remedy: {remedy}", err=True)
