"""Inference under LoadGen: what each scenario measured, priced at the rate that it reached.

Kept apart from rows of full batches: a figure that waits for arrivals or a bound answers another
question than the cheapest million.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from epochcost.analysis.inputs import Inputs, StoredResult
from epochcost.analysis.machines import Machine
from epochcost.analysis.observations import MILLION, Evidence
from epochcost.analysis.representatives import doubts_about, representatives
from epochcost.analysis.rows import mark_of
from epochcost.cost import Cost, MachineTime, Time, Unpriced
from epochcost.cost.money import exact_arithmetic
from epochcost.plan.work import Load
from epochcost.results.served import LoadGenRun
from epochcost.specs.catalogue import current_prices
from epochcost.specs.price import Price
from epochcost.units import plain, seconds


@dataclass(frozen=True, slots=True)
class ServingRow:
    """One scenario on one machine under one price plan; ``run`` None: no rate kept the bound.

    ``work`` is a million samples at the rate of the run, ``million`` its cost. ``runs`` are
    all of the trial, ``bound_seconds`` the latency that a server has to keep.
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
    work: MachineTime | None
    million: Cost
    evidence: Evidence
    doubts: tuple[str, ...] = ()
    runs: tuple[LoadGenRun, ...] = ()
    bound_seconds: float | None = None

    @property
    def assumed(self) -> bool:
        """Whether the price is an assumption and nobody's price list."""
        return self.price is not None and self.price.assumed

    @property
    def current(self) -> bool:
        """Superseded plans are not shown here."""
        return True

    @property
    def mark(self) -> str:
        """How sure the figure is."""
        return mark_of("measured", self.price)


def serving_rows(inputs: Inputs) -> tuple[ServingRow, ...]:
    """A row for each scenario, machine and current price plan, in the order of the files.

    Of plain trials only: the whole machine is what has a price. What requests to decoders cost is
    told by their tokens (``served_tokens``).
    """
    loads = [
        stored
        for stored in inputs.stored
        if isinstance(stored.result.trial.work, Load) and not stored.result.trial.variant
    ]
    return tuple(row for stored in representatives(loads) for row in _rows(inputs, stored))


def _rows(inputs: Inputs, stored: StoredResult) -> Iterator[ServingRow]:
    result, trial = stored.result, stored.result.trial
    served, load, machine = result.measurement.served, trial.work, inputs.machine(result)
    if served is None or not isinstance(load, Load):
        return
    work = _million(served.run, machine) if served.run else None
    plans = current_prices(inputs.catalogue.prices_of(result.hardware))
    for price in plans or (None,):
        yield ServingRow(
            model=trial.model,
            task=inputs.catalogue.models[trial.model].task,
            date=result.measurement.started_at.date(),
            machine=machine,
            software=trial.runtime.replace("==", " "),
            load=_load_words(load),
            batching=_batching_words(load, trial.batch_size),
            batch_size=trial.batch_size,
            run=served.run,
            price=price,
            work=work,
            million=work.cost(price) if work else Unpriced("no rate keeps the bound"),
            evidence=Evidence("result file", stored.uri),
            doubts=doubts_about(result),
            runs=served.runs,
            bound_seconds=load.bound_seconds,
        )


def _million(run: LoadGenRun, machine: Machine) -> MachineTime:
    with exact_arithmetic():
        seconds = MILLION / Decimal(repr(run.samples_per_second))
    time = Time.exact(seconds)
    return MachineTime(time, machine.vcpus, machine.device == "cuda", shared=True)


def _load_words(load: Load) -> str:
    """The scenario, with its bound."""
    words: str = load.scenario
    if load.bound_seconds is not None and load.latency_percentile is not None:
        within = seconds(load.bound_seconds)
        words += f", {plain(load.latency_percentile * 100)} % within {within}"
    return words


def _batching_words(load: Load, most: int) -> str:
    if most == 1:
        return "one by one"
    delay = load.maximum_delay_ms
    waiting = f", after at most {seconds(float(delay) / 1e3)}" if delay else ""
    return f"up to {most} together{waiting}"
