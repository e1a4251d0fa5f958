"""The page "Calculator": any job of any size, on all machines or on two, priced in the browser.

Published here, as scripts, are the times of each workload and the bill programs of the plans that
price it; the browser does the rest (`calculator.js` on `bill.js`). Times are of one epoch, or of a
batch of inferences, in seconds; money is left to the programs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from epochcost.analysis.observations import Observation, Workload
from epochcost.analysis.rows import Row, group_by
from epochcost.cost.program import Program, bill_program, share_program
from epochcost.errors import InputError
from epochcost.report.escape import one_line
from epochcost.report.pages.page import Page, Report
from epochcost.report.wording import SHAPES
from epochcost.specs.price import Price

Json = dict[str, Any]
FOLDER = "data/calculator"
_PLANS = "epochcostPlans"
_JOBS = {"training": "train", "inference": "serve"}
# Questions to begin with: words, and what the address says (calculator.js) of a model.
_EXAMPLES = (
    ("BERT fine-tuned three times a week", "bert-base-fine-tune-all", "runs=3&every=week"),
    ("p3 or g5 for ResNet-50", "resnet50", "a=p3.2xlarge&b=g5.xlarge"),
    ("ResNet-50 served at 10 requests a second", "resnet50", "job=serve&rate=10"),
)
# Where the page "Compare" was, whose addresses named two machines behind the #.
_MOVED = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Calculator</title>
<script>location.replace("calculator.html?" + location.hash.slice(1));</script>
<p>Two machines are compared by the <a href="calculator.html">calculator</a>.</p></html>
"""


def pages(report: Report) -> Iterator[Page]:
    """The one page."""
    known = {key: rows for key, rows in _rows(report).items() if rows}
    timed = {one.model for one in report.decoders}
    models = sorted(report.catalogue.models.values(), key=lambda one: one.name.casefold())
    names = {key: one_line(rows[0].observed.workload.name) for key, rows in known.items()}
    yield Page(
        uri="calculator.md",
        title="Calculator",
        template="calculator.md.jinja",
        description="What your training or serving costs, on every machine, or on two you name.",
        context={
            "workloads": sorted(names.items(), key=lambda one: one[1].casefold()),
            "start": max(known, key=lambda key: _places(known[key]), default=""),
            "examples": [one for one in _EXAMPLES if one[1] in known],
            "data": FOLDER,
            "decoders": [Workload.of_model(model) for model in models if model.id in timed],
        },
    )


def files(report: Report) -> Iterator[tuple[str, str]]:
    """A script of each workload's times, and one of all plans, by address.

    Scripts, for a page opened from the disk can load one and fetch nothing.
    """
    known = _rows(report)
    plans = {row.price.id: row.price for rows in known.values() for row in rows if row.price}
    made = {identifier: _plan(price) for identifier, price in sorted(plans.items())}
    yield f"{FOLDER}/plans.js", _script(_PLANS, {"plans": made, "shapes": dict(SHAPES)})
    for key, rows in known.items():
        yield f"{FOLDER}/{key}.js", _script(f"epochcost/{key}", _jobs(rows))
    yield "compare.html", _MOVED


def _script(name: str, value: Json) -> str:
    data = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return f'window["{name}"]={data};\n'


def _rows(report: Report) -> dict[str, list[Row]]:
    """By workload the rows that have a cost today: those that may answer and those listed apart."""
    priced = [
        row
        for row in report.rows
        if row.current
        and row.observed.epochs_known
        and row.estimate("epoch" if row.mode == "training" else "million") is not None
    ]
    groups = group_by(priced, lambda row: row.observed.workload)
    return {workload.key: list(rows) for workload, rows in groups.items()}


def _places(rows: Sequence[Row]) -> int:
    """On how many machines a reader sees the workload trained."""
    return len({row.observed.machine for row in rows if row.answers and row.mode == "training"})


def _jobs(rows: Sequence[Row]) -> Json:
    """The timings of each job, with the epochs of a training."""
    epochs = [float(row.observed.epochs) for row in rows if row.observed.epochs]
    timings: dict[str, list[Json]] = {job: [] for job in _JOBS.values()}
    for mine in group_by(rows, lambda row: id(row.observed)).values():
        timings[_JOBS[mine[0].mode]].append(_timing(mine))
    return {"epochs": epochs[0] if epochs else 1, **timings}


def _timing(rows: Sequence[Row]) -> Json:
    """One observation, with the plans that price it."""
    observed = rows[0].observed
    return {
        "machine": observed.machine.hardware,
        "name": one_line(observed.machine.name),
        "kind": observed.kind,
        "software": one_line(observed.software),
        "stack": observed.stack,
        "precision": observed.precision,
        "batch": observed.batch_size,
        "vcpus": observed.machine.vcpus or 1,
        "date": str(observed.date),
        "seconds": _seconds(observed),
        "plans": [row.price.id for row in rows if row.price],
    }


def _seconds(observed: Observation) -> list[float]:
    """The least, the mean and the most; a doubled digit would cost more than it tells."""
    time = observed.epoch if observed.mode == "training" else observed.step
    assert time is not None, "a priced row has a time"
    return [float(f"{float(end):.9g}") for end in (time.low, time.mean, time.high)]


def _plan(price: Price) -> Json:
    return {
        "name": one_line(f"{price.provider} {price.plan_words}"),
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
