"""Cost of tokens in runs that a reader measured with another tool, at the price they pay.

The bill of the whole run is shared by all tokens, by those that were read or by those that were
written: three answers to what a million cost, of which no two add up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from epochcost.analysis.inputs import RESULTS_URI, Inputs
from epochcost.analysis.machines import Machine, published_machine
from epochcost.analysis.observations import Evidence
from epochcost.analysis.tokens import hour_of
from epochcost.cost import Cost, Estimate, Unpriced
from epochcost.cost.money import exact_arithmetic
from epochcost.results.reported import ReportedRun
from epochcost.results.tool_runs import ToolRun
from epochcost.specs.catalogue import usual_price
from epochcost.specs.price import MILLION, Price
from epochcost.units import plain

_HOUR_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class ReportedRow:
    """A reported run with the cost of a million tokens, of a million read and of one written.

    ``plan`` says who pays what; ``hour`` is the cost of all its machines or GPUs for an hour.
    """

    record: ReportedRun
    machine: Machine
    plan: str
    hour: Cost
    per_million: Cost
    per_million_read: Cost
    per_million_written: Cost
    doubts: tuple[str, ...]
    evidence: Evidence

    @property
    def run(self) -> ToolRun:
        """The figures as the tool states them."""
        return self.record.run

    @property
    def place(self) -> str:
        """The machines and the GPUs of theirs that served."""
        machines, gpus = self.record.machines, self.record.gpus
        text = self.machine.name if machines == 1 else f"{machines} of {self.machine.name}"
        return text if gpus is None else f"{text}, {gpus} GPU{'s' if gpus > 1 else ''}"


def reported_rows(inputs: Inputs, model: str) -> tuple[ReportedRow, ...]:
    """The reported runs of a model, cheapest first by all tokens; runs without a price last."""
    records = inputs.reported.items()
    rows = [
        _row(inputs, record, f"{RESULTS_URI}/{record.hardware}/{record.folder}/{path.name}")
        for path, record in records
        if record.model == model
    ]
    return tuple(sorted(rows, key=lambda row: (_mean(row.per_million), row.evidence.uri)))


def _mean(cost: Cost) -> Decimal:
    return Decimal("Infinity") if isinstance(cost, Unpriced) else cost.mean


def _row(inputs: Inputs, record: ReportedRun, uri: str) -> ReportedRow:
    machine = published_machine(inputs.catalogue.hardware[record.hardware])
    price = (
        inputs.catalogue.prices[record.price]
        if record.price is not None
        else usual_price(inputs.catalogue, record.hardware)
    )
    hour = _hour(record, machine, price)
    plan = "no price" if price is None else f"{price.provider}, {price.plan_words}"
    if record.gpu_hour is not None:
        plan = f"{plain(record.gpu_hour)} {record.currency} a GPU-hour"
    read, written, seconds = _tokens(record.run)
    return ReportedRow(
        record=record,
        machine=machine,
        plan=plan,
        hour=hour,
        per_million=_per_million(hour, read + written, seconds),
        per_million_read=_per_million(hour, read, seconds),
        per_million_written=_per_million(hour, written, seconds),
        doubts=(*record.run.doubts, *_idle_gpus(inputs, record)),
        evidence=Evidence("reported by you", uri),
    )


def _hour(record: ReportedRun, machine: Machine, price: Price | None) -> Cost:
    """The cost of an hour of the run: by GPU at the reporter's rate, else of whole machines."""
    with exact_arithmetic():
        if record.gpu_hour is not None and record.gpus is not None:
            amount = record.gpu_hour * record.gpus
            return Estimate(amount, amount, amount, record.currency, "", assumed=False)
        each = None if price is None else hour_of(machine, price)
        if price is None or each is None:
            return Unpriced("no price of the machine")
        amount = each * record.machines
        return Estimate(amount, amount, amount, price.currency, price.id, price.assumed)


def _tokens(run: ToolRun) -> tuple[Decimal, Decimal, Decimal]:
    """Tokens read and written in so many seconds: by counts, else by the rates of the file."""
    counted = (run.read, run.written, run.seconds)
    rates = (run.read_per_second or 0, run.written_per_second or 0, 1)
    read, written, seconds = rates if None in counted else counted
    return Decimal(repr(read)), Decimal(repr(written)), Decimal(repr(seconds))


def _per_million(hour: Cost, tokens: Decimal, seconds: Decimal) -> Cost:
    if isinstance(hour, Unpriced):
        return hour
    if not tokens:
        return Unpriced("no such tokens")
    with exact_arithmetic():
        amount = hour.mean * seconds * MILLION / (tokens * _HOUR_SECONDS)
    return Estimate(amount, amount, amount, hour.currency, hour.price_id, hour.assumed)


def _idle_gpus(inputs: Inputs, record: ReportedRun) -> Iterator[str]:
    """A doubt where whole machines are paid and some of their GPUs did not serve."""
    accelerators = inputs.catalogue.hardware[record.hardware].accelerators
    paid = record.machines * sum(accelerator.count for accelerator in accelerators)
    if record.gpu_hour is None and record.gpus is not None and record.gpus < paid:
        yield f"{record.gpus} of {paid} GPUs served, and the price is of all"
