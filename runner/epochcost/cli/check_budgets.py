"""`epochcost check --budgets`: which budgets of the studies are kept, with the figures."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from epochcost.cli.faults import counted, fault_as_json

if TYPE_CHECKING:
    from epochcost.report.budgets import Verdict


def check_budgets(results: Path, *, as_json: bool) -> None:
    """Print a line for each budget; exit 1 unless all are kept."""
    from epochcost.report.budgets import verdicts
    from epochcost.report.inputs import read_inputs
    from epochcost.specs.loader import load_catalogue

    inputs = read_inputs(load_catalogue(Path.cwd()), [results], results.parent.parent)
    for problem in inputs.problems:
        typer.echo(problem, err=True)
    found = verdicts(inputs)
    if as_json:
        typer.echo(json.dumps({"budgets": [_as_json(one) for one in found]}, indent=1))
    else:
        typer.echo("".join(f"{one.place}\n" for one in found), nl=False)
    typer.echo(_summary(found), err=True)
    if any(one.state != "kept" for one in found):
        raise typer.Exit(1)


def _summary(found: tuple[Verdict, ...]) -> str:
    counts = Counter(one.state for one in found)
    words = ", ".join(f"{number} {state}" for state, number in sorted(counts.items()))
    return f"{counted(len(found), 'budget')} checked{f': {words}' if words else ''}"


def _as_json(one: Verdict) -> dict[str, Any]:
    cost, limit = one.cost, one.limit
    return {
        "study": one.study,
        "model": limit.model,
        "goal": limit.goal,
        "at_most": str(limit.at_most),
        "currency": limit.currency,
        "state": one.state,
        "mean": str(cost.mean) if cost else None,
        "low": str(cost.low) if cost else None,
        "high": str(cost.high) if cost else None,
        "hardware": one.row.observed.machine.hardware if one.row else None,
        "price": one.row.price.id if one.row and one.row.price else None,
        **fault_as_json(one.place),
    }
