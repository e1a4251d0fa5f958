"""Compute time and cost of measured trainings to a target accuracy, from ``results.trainings``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from operator import attrgetter

from epochcost.analysis.inputs import Inputs
from epochcost.cost.estimate import Cost, Estimate, MachineTime, Time
from epochcost.results.trainings import Repeat, Spread, Trainings, spread
from epochcost.specs.catalogue import Catalogue, usual_price
from epochcost.specs.hardware import Hardware
from epochcost.specs.model import Model
from epochcost.specs.price import Price
from epochcost.specs.published import Published, Timing
from epochcost.specs.reference_data import Dataset

_ORDER = attrgetter(
    "model.name", "dataset.name", "machine.id", "record.batch_size", "record.aim", "record.id"
)


@dataclass(frozen=True, slots=True)
class AccuracyTraining:
    """All repeats of a model's training on a host, and the machine's usual price, if known."""

    record: Trainings
    model: Model
    dataset: Dataset
    machine: Hardware
    price: Price | None

    @property
    def whole(self) -> bool:
        """Whether every repeat ran all its epochs, and none ended at a target accuracy or loss."""
        return all(repeat.ending == "epochs" for repeat in self.record.repeats)

    @property
    def counted(self) -> tuple[Repeat, ...]:
        """The repeats to average: those that reached the target, or all repeats if none did."""
        reached = [repeat for repeat in self.record.repeats if repeat.ending == "reached"]
        return tuple(reached or self.record.repeats)

    @property
    def seconds(self) -> Spread:
        """Mean and spread of seconds over the repeats that reached the target, else over all."""
        return spread([repeat.seconds for repeat in self.counted])

    @property
    def steps(self) -> Spread:
        """Mean and spread of steps over the repeats that reached the target, or all if none did."""
        return spread([float(repeat.steps) for repeat in self.counted])

    @property
    def accuracy(self) -> Spread:
        """Accuracy of the last evaluation: mean and spread over all repeats."""
        return spread([repeat.curve[-1].accuracy for repeat in self.record.repeats])

    @property
    def cost(self) -> Spread | None:
        """Mean and spread of cost over the same repeats as ``seconds``; None if it is unknown."""
        costs = [self.cost_of(repeat.seconds) for repeat in self.counted]
        known = [float(cost.mean) for cost in costs if isinstance(cost, Estimate)]
        return spread(known) if known else None

    def cost_of(self, seconds: float) -> Cost:
        """Cost of using the machine for ``seconds``; Unpriced without an applicable price."""
        vcpus = self.machine.vcpus or self.record.environment.logical_cpus
        time, accelerated = Time.exact(Decimal(repr(seconds))), self.record.provider == "cuda"
        return MachineTime(time, vcpus, accelerated, shared=True).cost(self.price)


def accuracy_trainings(inputs: Inputs) -> tuple[AccuracyTraining, ...]:
    """Stored trainings whose model, data set and machine have specs, sorted by these three."""
    catalogue = inputs.catalogue
    trainings = [
        AccuracyTraining(
            record,
            catalogue.models[record.model],
            catalogue.datasets[record.dataset],
            catalogue.hardware[record.hardware],
            usual_price(catalogue, record.hardware),
        )
        for record in inputs.trainings.values()
        if record.model in catalogue.models
        and record.dataset in catalogue.datasets
        and record.hardware in catalogue.hardware
    ]
    return tuple(sorted(trainings, key=_ORDER))


def published_accuracies(catalogue: Catalogue) -> Sequence[tuple[Published, Timing]]:
    """Pairs (source, timing) of the published training times with a stated accuracy."""
    return [
        (source, timing)
        for source in catalogue.published.values()
        for timing in source.timings
        if timing.accuracy_percent is not None
    ]
