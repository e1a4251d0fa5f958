"""`epochcost results`: take over what another tool measured, and show what its tokens cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import typer

from epochcost.analysis.reported import ReportedRow, reported_rows
from epochcost.cli.bundled import inputs_to_read, own_catalogue
from epochcost.cli.terminal import (
    RESULTS,
    ExactFigures,
    ResultsFolder,
    WideTable,
    ids,
    print_json,
    print_table,
    say,
)
from epochcost.cost import Cost, Estimate
from epochcost.cost.money import require_currency
from epochcost.errors import InputError
from epochcost.results.reported import Terms, reported_runs
from epochcost.results.store import write_sidecar
from epochcost.results.tool_runs import Latency
from epochcost.units import money, parse_decimal, seconds, significant_places

app = typer.Typer(no_args_is_help=True, help="Take over results that another tool measured.")
_HEADER = (
    "machine", "load", "a million tokens", "read", "written", "first token", "90 % below",
    "a token", "price", "measured by",
)  # fmt: skip
_DROP = ("measured by", "90 % below", "price", "read", "a token", "first token")
_PERCENTS = (50, 90, 95, 99, 99.9)
_DIGITS = 5


@app.callback()
def _results() -> None:
    """Take over results that another tool measured."""


@app.command("import")
def import_(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="JSON of vLLM's bench serve, GuideLLM, AIPerf or InferenceX."
        ),
    ],
    *,
    model: Annotated[
        str, typer.Option(help="The decoder that was served.", autocompletion=ids("models"))
    ],
    hardware: Annotated[
        str, typer.Option(help="The kind of machine.", autocompletion=ids("hardware"))
    ],
    price: Annotated[
        str | None,
        typer.Option(help="The plan that you pay.", autocompletion=ids("prices")),
    ] = None,
    rate: Annotated[str | None, typer.Option(help="Or what you pay for a GPU-hour: 2.31.")] = None,
    currency: Annotated[str, typer.Option(help="The currency of --rate.")] = "USD",
    gpus: Annotated[
        int | None, typer.Option(min=1, help="GPUs that served, if the file does not say it.")
    ] = None,
    machines: Annotated[int | None, typer.Option(min=1, help="Machines that they are in.")] = None,
    software: Annotated[str, typer.Option(help="What served: vLLM 0.22.")] = "",
    precision: Annotated[str, typer.Option(help="The precision of its weights: fp8.")] = "",
    results: ResultsFolder = RESULTS,
    wide: WideTable = False,
    form: ExactFigures = "text",
) -> None:
    """Take over the file of a serving benchmark, checked and priced.

    Example: epochcost results import serve.json --model smollm2-135m --hardware g6.xlarge
    """
    catalogue = own_catalogue()
    require_currency(currency)
    gpu_hour = None if rate is None else _positive(rate)
    terms = Terms(model, hardware, gpus, machines, price, gpu_hour, currency, software, precision)
    records = reported_runs(catalogue, file, terms)
    names = {write_sidecar(results, record).name for record in records}
    rows = [
        row
        for row in reported_rows(inputs_to_read(results, catalogue), model)
        if Path(row.evidence.uri).name in names and row.record.hardware == hardware
    ]
    if form == "json":
        print_json([reported_as_json(row) for row in rows])
        return
    say(f"{model}, reported by you from {file.name}:")
    show_reported(rows, wide=wide)
    stored = "1 run is" if len(rows) == 1 else f"{len(rows)} runs are"
    say(f"{stored} in {results / hardware / records[0].folder}")


def _positive(text: str) -> Decimal:
    amount = parse_decimal(text, "rate")
    if amount <= 0:
        raise InputError(f"rate: expected a price above 0 of a GPU-hour, got {text!r:.80}")
    return amount


def show_reported(rows: Sequence[ReportedRow], *, wide: bool) -> None:
    """Print reported runs as a table, and below it what is doubted."""
    print_table(_HEADER, [_cells(row) for row in rows], drop=_DROP, wide=wide)
    for row in rows:
        for doubt in row.doubts:
            say(f"doubt: {row.place}, {row.run.load_words}: {doubt}")


def _cells(row: ReportedRow) -> tuple[str, ...]:
    run = row.run
    return (
        row.place,
        run.load_words,
        _amount(row.per_million),
        _amount(row.per_million_read),
        _amount(row.per_million_written),
        _time(run.first.percentile(50, run.requests)),
        _time(run.first.percentile(90, run.requests)),
        _time(run.token.percentile(50, run.requests)),
        row.plan,
        ", ".join(filter(None, (run.tool, run.software, run.precision))),
    )


def _amount(cost: Cost) -> str:
    if not isinstance(cost, Estimate):
        return "-"
    return money(cost.mean, cost.currency, significant_places(cost.mean, _DIGITS))


def _time(value: float | None) -> str:
    return "-" if value is None else seconds(value)


def reported_as_json(row: ReportedRow) -> dict[str, Any]:
    """A reported run with exact costs; percentiles of too few requests are null."""
    record, run = row.record, row.run
    latencies = {"first_token": run.first, "token": run.token, "request": run.whole}
    return {
        "model": record.model,
        "hardware": record.hardware,
        "machines": record.machines,
        "gpus": record.gpus,
        "evidence": row.evidence.label,
        "file": row.evidence.uri,
        "tool": run.tool,
        "served_model": run.served_model,
        "software": run.software,
        "precision": run.precision,
        "closed_loop": run.asked_per_second is None,
        "requests_per_second_asked": run.asked_per_second,
        "at_once": run.at_once,
        "requests": run.requests,
        "failed_requests": run.failed,
        "seconds": run.seconds,
        "tokens_read": run.read,
        "tokens_written": run.written,
        "plan": row.plan,
        "hour": row.hour,
        "per_million_tokens": row.per_million,
        "per_million_tokens_read": row.per_million_read,
        "per_million_tokens_written": row.per_million_written,
        **{
            f"{name}_seconds": dict(_percentiles(latency, run.requests))
            for name, latency in latencies.items()
        },
        "doubts": row.doubts,
    }


def _percentiles(latency: Latency, requests: int | None) -> Iterator[tuple[str, float | None]]:
    yield "mean", latency.mean
    for percent in _PERCENTS:
        yield f"p{percent:g}", latency.percentile(percent, requests)
