"""What people ask the price of: a step, an epoch, a full training, a million inferences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial

from epochcost.cost.estimate import Cost, Time, billed_cost, prorated_cost
from epochcost.cost.money import exact_arithmetic
from epochcost.specs.price import Price

MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class TrainingTime:
    """How long a training takes: an epoch's time, and how many epochs; one step where known."""

    epoch: Time
    epochs: int | Decimal
    step: Time | None = None

    @classmethod
    def of_steps(cls, step: Time, steps_per_epoch: int, epochs: int) -> TrainingTime:
        """From the time of one step."""
        return cls(step.scaled(steps_per_epoch), epochs, step)

    @property
    def full(self) -> Time:
        """All epochs, one after the other."""
        return self.epoch.scaled(self.epochs)


@dataclass(frozen=True, slots=True)
class TrainingCosts:
    """The costs of a training under one plan.

    ``step`` and ``epoch`` are shares of a running job (nothing rounded up; ``step`` None where the
    step is unknown), ``epoch_alone`` is one epoch billed by itself, ``full`` the whole job's bill.
    """

    epoch: Cost
    full: Cost
    _time: TrainingTime
    _prorated: Callable[[Time], Cost] = field(compare=False, repr=False)
    _billed: Callable[[Time], Cost] = field(compare=False, repr=False)

    @property
    def step(self) -> Cost | None:
        """A step's share."""
        return None if self._time.step is None else self._prorated(self._time.step)

    @property
    def epoch_alone(self) -> Cost:
        """An epoch as a job by itself."""
        return self._billed(self._time.epoch)


def training_costs(
    price: Price | None,
    time: TrainingTime,
    *,
    vcpus: int | None = None,
    accelerated: bool = False,
) -> TrainingCosts:
    """All four costs of a training; each is Unpriced by itself where it cannot be said."""
    prorated = partial(prorated_cost, price, vcpus=vcpus, accelerated=accelerated)
    billed = partial(billed_cost, price, vcpus=vcpus, accelerated=accelerated)
    return TrainingCosts(
        epoch=prorated(time.epoch),
        full=billed(time.full),
        _time=time,
        _prorated=prorated,
        _billed=billed,
    )


def million_inferences(
    price: Price | None,
    batch: Time,
    batch_size: int,
    *,
    vcpus: int | None = None,
    accelerated: bool = False,
) -> Cost:
    """Charge a million examples served in batches of time ``batch`` on a running machine."""
    with exact_arithmetic():
        batches = Decimal(MILLION) / batch_size
    return prorated_cost(price, batch.scaled(batches), vcpus=vcpus, accelerated=accelerated)
