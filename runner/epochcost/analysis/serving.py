"""Price inference at the rates that were measured under LoadGen, MLPerf's load generator.

LoadGen sends requests at random times with optional bounds on latency (scenario "server") or all at
once ("offline"). Module ``rows`` prices inference in full batches, without requests.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar, Literal

from epochcost.analysis.inputs import Inputs, StoredResult
from epochcost.analysis.machines import Machine
from epochcost.analysis.observations import Evidence
from epochcost.analysis.representatives import doubts_about, of_whole_machines, representatives
from epochcost.analysis.rows import cheapest_price, mark_of
from epochcost.analysis.tokens import hour_of, hourly_plans, rented_per_million
from epochcost.cost.estimate import Cost, Estimate, MachineTime, Time, Unpriced
from epochcost.cost.money import exact_arithmetic
from epochcost.plan.work import Load, Requests
from epochcost.results.environment import Energy
from epochcost.results.served import LoadGenRun, ServingRecord, TokenRun
from epochcost.specs.api import MILLION
from epochcost.specs.catalogue import current_prices
from epochcost.specs.price import Price
from epochcost.specs.study import Precision
from epochcost.statistics.quantiles import percentile_holds
from epochcost.units import plain, render_runtime, seconds

Percent = Literal[50, 90, 99]
# The search finds the highest rate within this factor (``measure.loadgen``).
_RATE_PRECISION = Decimal("1.05")


@dataclass(frozen=True, slots=True)
class ServingRow:
    """A LoadGen scenario on a machine under a price plan.

    ``run`` is the priced run, None if no rate kept the bound. ``million`` prices a million samples.
    """

    model: str
    task: str
    date: dt.date
    machine: Machine
    software: str
    load: str
    batching: str
    batch_size: int
    run: LoadGenRun | None
    price: Price | None
    million: Cost
    evidence: Evidence
    doubts: tuple[str, ...]
    # Superseded prices have no rows here.
    current: ClassVar[bool] = True

    @property
    def mark(self) -> str:
        """The text "measured", with a note if the price is assumed."""
        return mark_of("measured", self.price)


def serving_rows(inputs: Inputs) -> tuple[ServingRow, ...]:
    """Make a row for each scenario, machine and current price, in the order of the result files.

    Trials in non-default settings have no row, nor have decoders, which are priced by the token.
    """
    plain = [stored for stored in inputs.stored if not stored.result.trial.variant]
    loads = [stored for stored in plain if isinstance(stored.result.trial.work, Load)]
    return tuple(row for stored in representatives(loads) for row in _rows(inputs, stored))


def _rows(inputs: Inputs, stored: StoredResult) -> Iterator[ServingRow]:
    result, trial = stored.result, stored.result.trial
    served, load, machine = result.measurement.served, trial.work, inputs.machine(result)
    if served is None or not isinstance(load, Load):
        return
    work = _million(served.run, machine, load) if served.run else None
    plans = current_prices(inputs.catalogue.prices_of(result.hardware))
    for price in plans or (None,):
        yield ServingRow(
            model=trial.model,
            task=inputs.catalogue.models[trial.model].task,
            date=result.measurement.started_at.date(),
            machine=machine,
            software=render_runtime(trial.runtime),
            load=_render_scenario(load),
            batching=_render_batching(load, trial.batch_size),
            batch_size=trial.batch_size,
            run=served.run,
            price=price,
            million=work.cost(price) if work else Unpriced("no rate meets the bound"),
            evidence=Evidence("result file", stored.uri),
            doubts=doubts_about(result),
        )


def _million(run: LoadGenRun, machine: Machine, load: Load) -> MachineTime:
    with exact_arithmetic():
        time = Time.exact(MILLION / Decimal(repr(run.samples_per_second)))
    serving, accelerated = load.scenario == "server", machine.device == "cuda"
    return MachineTime(time, machine.vcpus, accelerated, shared=True, serving=serving)


def _render_scenario(load: Load) -> str:
    text: str = load.scenario
    if load.bound_seconds is not None and load.latency_percentile is not None:
        within = seconds(load.bound_seconds)
        text += f", {plain(load.latency_percentile * 100)} % within {within}"
    return text


def _render_batching(load: Load, most: int) -> str:
    if most == 1:
        return "one by one"
    delay = load.maximum_delay_ms
    waiting = f", after at most {seconds(float(delay) / 1e3)}" if delay else ""
    return f"up to {most} together{waiting}"


@dataclass(frozen=True, slots=True)
class ServedRate:
    """Measurements while requests arrive at a constant mean rate that the engine sustains.

    ``per_second`` is (``requests`` - 1) / ``seconds``. Requests arrive at random times, so this
    rate may differ from the intended rate: by about a tenth for a hundred requests. ``good_share``
    is the share of requests whose latencies kept their bounds; None if unknown.
    """

    per_second: Decimal
    requests: int
    tokens: TokenRun
    good_share: float | None
    seconds: float

    def first_seconds(self, percent: Percent) -> float | None:
        """A percentile of seconds to the first token; None if under three requests take longer."""
        return self._seconds(percent, self.tokens.first.percentile(percent))

    def further_seconds(self, percent: Percent) -> float | None:
        """A percentile, over all answers, of the mean seconds between tokens within an answer.

        The wait for the first token does not count. None if fewer than three answers lie beyond.
        """
        return self._seconds(percent, self.tokens.further.percentile(percent))

    def _seconds(self, percent: int, nanoseconds: int) -> float | None:
        return nanoseconds / 1e9 if percentile_holds(self.requests, percent) else None

    @property
    def written_per_second(self) -> float:
        """Tokens written a second."""
        return self.tokens.written / self.requests * float(self.per_second)


@dataclass(frozen=True)
class ServedDecoder:
    """Measurements of a decoder behind a serving engine, on a machine and in a precision.

    ``rates`` are ascending; the last is the highest at which latencies keep their bounds. ``rates``
    is empty if there is no such rate. ``joules_per_token`` counts all tokens read and written.
    """

    model: str
    date: dt.date
    machine: Machine
    precision: Precision
    software: str
    requests: Requests
    rates: tuple[ServedRate, ...]
    start_seconds: float | None
    price: Price | None
    evidence: Evidence
    doubts: tuple[str, ...] = ()
    joules_per_token: float | None = None
    meters: str = ""

    @property
    def highest(self) -> ServedRate | None:
        """Measurements at the highest rate at which latencies keep their bounds."""
        return self.rates[-1] if self.rates else None

    def per_million(self, rate: ServedRate) -> Cost:
        """Cost of a million tokens, prompts and answers together, on a machine rented for a month.

        For the highest rate, which may be 5 % too low, the low end of the cost is the mean / 1.05.
        """
        hour = None if self.price is None else hour_of(self.machine, self.price)
        if hour is None or self.price is None:
            return Unpriced("no price of the machine")
        with exact_arithmetic():
            tokens = rate.tokens.read + rate.tokens.written
            per_request = Decimal(repr(tokens / rate.requests))
            mean = rented_per_million(hour, Decimal(1), rate.per_second, per_request)
            low = mean / _RATE_PRECISION if rate == self.highest else mean
        return Estimate(low, mean, mean, self.price.currency, self.price.id, self.price.assumed)


def served_decoders(inputs: Inputs) -> Iterator[ServedDecoder]:
    """Yield decoders served on a whole machine, each at the machine's cheapest current price."""
    for stored in of_whole_machines(inputs.stored, Requests):
        result, trial, machine = stored.result, stored.result.trial, inputs.machine(stored.result)
        record, energy = result.measurement.served, result.measurement.energy or Energy()
        if record is None or not isinstance(trial.work, Requests):
            continue
        yield ServedDecoder(
            model=trial.model,
            date=result.measurement.started_at.date(),
            machine=machine,
            precision=trial.precision,
            software=render_runtime(trial.runtime),
            requests=trial.work,
            rates=tuple(_served_rates(record, trial.work)),
            start_seconds=record.start_seconds,
            price=cheapest_price(hourly_plans(inputs.catalogue, machine)),
            evidence=Evidence("result file", stored.uri),
            doubts=doubts_about(result),
            joules_per_token=_joules_per_token(record, energy),
            meters=energy.meter,
        )


def _joules_per_token(record: ServingRecord, energy: Energy) -> float | None:
    tokens = sum(run.tokens.read + run.tokens.written for run in record.runs if run.tokens)
    joules = sum(reading.joules for reading in energy.readings)
    return joules / tokens if joules and tokens else None


def _served_rates(record: ServingRecord, requests: Requests) -> Iterator[ServedRate]:
    """Yield the measurements at each rate of requests in a trial, the lowest rate first."""
    shares = [run for run in record.runs if run.purpose == "share"]
    counted = [*shares, record.run] if record.run is not None else []
    for run in sorted(counted, key=lambda run: run.samples_per_second):
        assert run.tokens is not None, "requests to a decoder are answered by tokens"
        yield ServedRate(
            per_second=Decimal(repr(run.samples_per_second)),
            requests=run.samples,
            tokens=run.tokens,
            good_share=run.tokens.good_share(requests),
            seconds=(run.samples - 1) / run.samples_per_second,
        )
