"""What a training to an accuracy takes and costs on machines of which only step times are known.

The steps are those that trainings took, on whichever machine: a step more or less does not depend
on it. Each row keeps the kind of its step time (measured, published or predicted); that its steps
were taken elsewhere is to be said beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from decimal import Decimal

from epochcost.analysis.observations import Observation
from epochcost.analysis.rows import Row, price_rows
from epochcost.cost import Time
from epochcost.results.trainings import Repeat, Trainings, spread
from epochcost.specs.catalogue import Catalogue


def price_steps(
    catalogue: Catalogue,
    trainings: Trainings,
    repeats: Sequence[Repeat],
    timed: Iterable[Observation],
) -> tuple[Row, ...]:
    """Rows whose full training is that of ``repeats``: their mean steps × each machine's step.

    Only times of the same model at the same batch size count. The interval is of both, the steps'
    spread over repeats and the step's; one repeat tells nothing of the former.
    """
    steps = spread([float(repeat.steps) for repeat in repeats])
    uneven = Decimal(repr((steps.half_width or 0.0) / steps.mean))
    fitting = (
        replace(one, epoch=_widened(one.step, uneven), epochs=Decimal(repr(steps.mean)))
        for one in timed
        if one.step is not None
        and one.mode == "training"
        and one.workload.is_model
        and (one.workload.id, one.batch_size) == (trainings.model, trainings.batch_size)
    )
    return price_rows(catalogue, fitting)


def _widened(step: Time, share: Decimal) -> Time:
    """A step's time whose interval is wider by a share of the mean, independent of its own."""

    def apart(end: Decimal) -> Decimal:
        return ((end / step.mean - 1) ** 2 + share**2).sqrt() * step.mean

    low = max(step.mean - apart(step.low), step.mean / 100)
    return Time(low, step.mean, step.mean + apart(step.high))
