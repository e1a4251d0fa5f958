"""Compute the cost of tokens in runs that a reader measured with another tool."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal

from epochcost.analysis.inputs import Inputs
from epochcost.analysis.machines import Machine, published_machine
from epochcost.analysis.observations import Evidence
from epochcost.analysis.tokens import busy_per_million, hour_of
from epochcost.cost.estimate import Cost, Estimate, Unpriced
from epochcost.cost.money import exact_arithmetic
from epochcost.predict.decoders.forms import plain_name
from epochcost.results.reported import ReportedRun
from epochcost.results.tool_runs import ToolRun
from epochcost.specs.catalogue import usual_price
from epochcost.units import plain, render_count


@dataclass(frozen=True, slots=True)
class ReportedRow:
    """A reported run, with the cost of a million tokens counted in three ways.

    ``per_million`` spreads the run's whole cost over all tokens, ``per_million_read`` over the
    tokens read only, ``per_million_written`` over those written only. These costs must not be
    added. ``hour`` is the cost of an hour of all machines or GPUs of the run.
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
        """The run's figures as the tool states them."""
        return self.record.run

    @property
    def place(self) -> str:
        """The machines that served, with the number of GPUs."""
        machines, gpus = self.record.terms.machines or 1, self.record.terms.gpus
        text = self.machine.name if machines == 1 else f"{machines} of {self.machine.name}"
        return text if gpus is None else f"{text}, {render_count(gpus, 'GPU')}"

    @property
    def software(self) -> str:
        """The tool, the serving software and the precision."""
        terms, run = self.record.terms, self.run
        served = (terms.software or run.software, terms.precision or run.precision)
        return ", ".join(filter(None, (run.tool, *served)))


def reported_rows(inputs: Inputs, model: str) -> tuple[ReportedRow, ...]:
    """The reported runs of a model, by the cost of a million tokens; those without a price last."""
    records = inputs.reported.items()
    rows = [
        _row(inputs, record, inputs.uri_of(path))
        for path, record in records
        if record.model == model
    ]
    unknown = Decimal("Infinity")
    return tuple(
        sorted(rows, key=lambda row: (getattr(row.per_million, "mean", unknown), row.evidence.uri))
    )


def _row(inputs: Inputs, record: ReportedRun, uri: str) -> ReportedRow:
    machine = published_machine(inputs.catalogue.hardware[record.hardware])
    plan, hour = _plan_and_hourly_cost(inputs, record, machine)
    read, written, seconds = _tokens_and_seconds(record.run)
    return ReportedRow(
        record=record,
        machine=machine,
        plan=plan,
        hour=hour,
        per_million=_per_million(hour, read + written, seconds),
        per_million_read=_per_million(hour, read, seconds),
        per_million_written=_per_million(hour, written, seconds),
        doubts=(
            *record.run.doubts,
            *_other_model_warnings(record),
            *_idle_gpu_warnings(inputs, record),
        ),
        evidence=Evidence("reported by you", uri),
    )


def _other_model_warnings(record: ReportedRun) -> Iterator[str]:
    served, model = plain_name(record.run.served_model), plain_name(record.model)
    if served and served not in model and model not in served:
        yield f"the file is of the model {record.run.served_model}"


def _plan_and_hourly_cost(
    inputs: Inputs, record: ReportedRun, machine: Machine
) -> tuple[str, Cost]:
    """The price in words, and the hourly cost of all GPUs of the run, or of all its machines.

    The GPUs are paid if the reader states a price per GPU-hour. Otherwise the machines are paid,
    under the plan that the reader names or at the machine's usual price.
    """
    terms, catalogue = record.terms, inputs.catalogue
    price = (
        catalogue.prices[terms.price] if terms.price else usual_price(catalogue, record.hardware)
    )
    with exact_arithmetic():
        if terms.gpu_hour is not None and terms.gpus is not None:
            amount = terms.gpu_hour * terms.gpus
            cost = Estimate(amount, amount, amount, "USD", "", assumed=False)
            return f"${plain(terms.gpu_hour)} a GPU-hour", cost
        each = None if price is None else hour_of(machine, price)
        if price is None or each is None:
            return "no price", Unpriced("no price of the machine")
        amount = each * (terms.machines or 1)
        cost = Estimate(amount, amount, amount, price.currency, price.id, price.assumed)
        return ", ".join(price.provider_and_plan), cost


def _tokens_and_seconds(run: ToolRun) -> tuple[Decimal, Decimal, Decimal]:
    """Tokens read, tokens written and seconds of a run, or of one second if one is unknown."""
    if run.seconds is not None and run.read is not None and run.written is not None:
        return Decimal(run.read), Decimal(run.written), Decimal(repr(run.seconds))
    every, written = run.tokens_per_second or 0, run.written_per_second or 0
    return Decimal(repr(every)) - Decimal(repr(written)), Decimal(repr(written)), Decimal(1)


def _per_million(hour: Cost, tokens: Decimal, seconds: Decimal) -> Cost:
    if isinstance(hour, Unpriced):
        return hour
    if tokens <= 0:
        return Unpriced("the run has no such tokens")
    with exact_arithmetic():
        amount = busy_per_million(hour.mean, seconds, tokens)
    return replace(hour, low=amount, mean=amount, high=amount)


def _idle_gpu_warnings(inputs: Inputs, record: ReportedRun) -> Iterator[str]:
    accelerators = inputs.catalogue.hardware[record.hardware].accelerators
    paid = (record.terms.machines or 1) * sum(accelerator.count for accelerator in accelerators)
    gpus = record.terms.gpus
    if record.terms.gpu_hour is None and gpus is not None and gpus < paid:
        yield f"{gpus} of {paid} GPUs served, but the price covers all"
