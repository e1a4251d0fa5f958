"""The times and the priced rows of some workloads: no other is observed, counted or predicted."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from epochcost.analysis.inputs import Inputs
from epochcost.analysis.observations import Observation, observe
from epochcost.analysis.predicted import NoTime, predict_times
from epochcost.analysis.rows import Row, price_rows
from epochcost.predict.design import Precision


@dataclass(frozen=True, slots=True)
class Times:
    """Measured and published times, predicted ones of work without any, and who has none."""

    observations: tuple[Observation, ...]
    without: tuple[NoTime, ...]


def times_of(
    inputs: Inputs, workloads: Collection[str], precision: Precision | None = None
) -> Times:
    """The times of some workloads, by id, in one precision or whatever is usual.

    Raises as ``predict_times`` does.
    """
    timed = [
        one for one in observe(inputs, workloads=workloads) if precision in (None, one.precision)
    ]
    models = inputs.catalogue.models
    asked = [models[name] for name in workloads if name in models]
    predicted = predict_times(inputs, asked, precision)
    machines = {one.machine.hardware for one in timed}
    return Times(
        (*timed, *predicted.beyond(timed)),
        tuple(one for one in predicted.without if one.id not in machines),
    )


def rows_of(inputs: Inputs, workloads: Collection[str]) -> tuple[Row, ...]:
    """The times of some workloads under today's prices; raises as ``times_of`` does."""
    return price_rows(inputs.catalogue, times_of(inputs, workloads).observations)
