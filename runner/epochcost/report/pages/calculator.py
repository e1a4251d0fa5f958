"""The page "Calculator": any size of job, priced in the browser by the cost engine's formulas.

Published here are timed work and the bill programs of the plans that price it; the browser does the
rest (`calculator.js` on `bill.js`). Times are of one epoch, or of a million inferences, in seconds;
money is left to the programs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Any

from epochcost.analysis.observations import Goal
from epochcost.analysis.rows import Row
from epochcost.cost.program import Program, bill_program, share_program
from epochcost.errors import InputError
from epochcost.report.escape import one_line
from epochcost.report.pages.page import Page, Report
from epochcost.specs.price import Price

Json = dict[str, Any]
URI = "data/calculator.js"


def pages(report: Report) -> Iterator[Page]:
    """The one page."""
    known = calculator_data(report.rows)
    yield Page(
        uri="calculator.md",
        title="Calculator",
        template="calculator.md.jinja",
        description="What a training or serving job of your size costs, on every machine and plan.",
        context={"works": known["works"], "start": known["start"], "data": URI},
    )


def script(rows: Iterable[Row]) -> str:
    """The data as a script, for a page opened from the disk can load one and fetch nothing."""
    data = json.dumps(calculator_data(rows), separators=(",", ":"), allow_nan=False)
    return f"window.epochcostCalculator={data};\n"


def calculator_data(rows: Iterable[Row]) -> Json:
    """All work that may answer and has a price, by workload and mode, with its bill programs."""
    priced = [row for row in rows if row.answers and row.estimate(_goal(row)) is not None]
    plans = {row.price.id: row.price for row in priced if row.price is not None}
    groups = groupby(sorted(priced, key=_work_id), key=_work_id)
    works = [_work(identifier, list(group)) for identifier, group in groups]
    return {
        "start": max(works, key=_places)["id"] if works else "",
        "works": sorted(works, key=lambda work: (work["mode"] != "training", work["name"])),
        "plans": {identifier: _plan(price) for identifier, price in sorted(plans.items())},
    }


def _goal(row: Row) -> Goal:
    return "epoch" if row.observed.mode == "training" else "million"


def _work_id(row: Row) -> str:
    return f"{row.observed.workload.id}/{row.observed.mode}"


def _work(identifier: str, rows: list[Row]) -> Json:
    observed = rows[0].observed
    epochs = [row.observed.epochs for row in rows if row.observed.epochs is not None]
    verb = "train" if observed.mode == "training" else "serve"
    return {
        "id": identifier,
        "name": f"{one_line(observed.workload.name)}: {verb}",
        "mode": observed.mode,
        "size": float(epochs[0]) if epochs else 1.0,
        "timings": list(_timings(rows)),
    }


def _places(work: Json) -> tuple[bool, int]:
    """What a reader sees first: a training, timed on many machines."""
    return work["mode"] == "training", len({timing["machine"] for timing in work["timings"]})


def _timings(rows: list[Row]) -> Iterator[Json]:
    """One for each machine and batch size, with the plans that price it."""
    found: dict[int, Json] = {}
    for row in rows:
        assert row.price is not None, "an estimate has a price"
        timing = found.setdefault(id(row.observed), _timing(row))
        timing["plans"].append(row.price.id)
    yield from found.values()


def _timing(row: Row) -> Json:
    observed, time = row.observed, row.time(_goal(row))
    assert time is not None, "a priced row has a time"
    return {
        "machine": one_line(observed.machine.name),
        "page": f"machines/{observed.machine.hardware}.html",
        "kind": observed.kind,
        "batch": observed.batch_size,
        "vcpus": observed.machine.vcpus or 1,
        "date": str(observed.date),
        "seconds": [float(end) for end in (time.low, time.mean, time.high)],
        "plans": [],
    }


def _plan(price: Price) -> Json:
    return {
        "name": one_line(f"{price.provider} {price.plan}"),
        "kind": price.plan,
        "region": one_line(price.region or ""),
        "as_of": str(price.as_of),
        "assumed": price.assumed,
        "currency": price.currency,
        "bill": _program(bill_program, price),
        "share": _program(share_program, price),
    }


def _program(made: Callable[[Price], Program], price: Price) -> Json | None:
    """The program, or nothing where the plan has no such bill."""
    try:
        program: Json = made(price).json
    except InputError:
        return None
    return {key: program[key] for key in ("inputs", "values", "lines", "elapsed_seconds")}
