"""What an accuracy takes: real trainings with their time and cost, and the same steps elsewhere.

Trainings are of one host; on other machines the steps that they took are priced at the time of a
step there, measured, published or predicted. How a training went is left to `results.trainings`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from epochcost.analysis.inputs import Inputs
from epochcost.analysis.rows import Row
from epochcost.cost import Usage
from epochcost.cost.bill import share_total
from epochcost.results.trainings import Repeat, Spread, Trainings, spread
from epochcost.specs.catalogue import Catalogue, current_prices
from epochcost.specs.hardware import Hardware
from epochcost.specs.model import Model
from epochcost.specs.price import Price
from epochcost.specs.published import Published, Timing
from epochcost.specs.reference_data import Dataset

_PLANS = ("on-demand", "owned")


@dataclass(frozen=True, slots=True)
class AccuracyTraining:
    """A training on a host, with its repeats.

    ``price`` is the machine's on demand or owned; None where none is known.
    """

    record: Trainings
    model: Model
    dataset: Dataset
    machine: Hardware
    price: Price | None

    @property
    def whole(self) -> bool:
        """Whether nothing but the recipe's end ended it."""
        return all(one.ending == "epochs" for one in self.record.repeats)

    @property
    def counted(self) -> tuple[Repeat, ...]:
        """The repeats that met the aim, or all where none did: time and cost are of these."""
        reached = [one for one in self.record.repeats if one.ending == "reached"]
        return tuple(reached or self.record.repeats)

    @property
    def seconds(self) -> Spread:
        """The time of one training on this machine."""
        return spread([one.seconds for one in self.counted])

    @property
    def steps(self) -> Spread:
        """The steps of one training."""
        return spread([float(one.steps) for one in self.counted])

    @property
    def accuracy(self) -> Spread | None:
        """Of the last evaluation; None of models that do not answer by classes."""
        known = [one.curve[-1].accuracy for one in self.record.repeats]
        return spread([one for one in known if one is not None]) if None not in known else None

    @property
    def stable_steps(self) -> Spread | None:
        """From which step on the curves of whole trainings are stable; None where one never is."""
        known = [one.stable.step for one in self.record.repeats if one.stable is not None]
        return spread(known) if len(known) == len(self.record.repeats) and self.whole else None

    @property
    def after_drop(self) -> bool:
        """Whether a plateau only followed a drop of the learning rate."""
        return any(one.stable and one.stable.after_drop is not None for one in self.record.repeats)

    @property
    def cost(self) -> Spread | None:
        """What one training costs at the machine's price, as a share of its time."""
        if self.price is None:
            return None
        return spread([float(self.cost_of(one.seconds)) for one in self.counted])

    def cost_of(self, seconds: float) -> Decimal:
        """What so much time costs here; there must be a price."""
        assert self.price is not None, "asked for where there is one"
        vcpus = self.machine.vcpus or self.record.environment.logical_cpus
        usage = Usage(Decimal(repr(seconds)), 1, vcpus, self.record.provider == "cuda")
        return share_total(self.price, usage)


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """The same steps on another machine: how its step is known, and what they take and cost."""

    row: Row
    seconds: float
    cost: Decimal


def accuracy_trainings(inputs: Inputs) -> tuple[AccuracyTraining, ...]:
    """Every stored training whose model, data and machine are declared, by model and batch."""
    catalogue = inputs.catalogue
    found = [
        AccuracyTraining(
            one,
            catalogue.models[one.model],
            catalogue.datasets[one.dataset],
            catalogue.hardware[one.hardware],
            _price(catalogue, one.hardware),
        )
        for one in inputs.trainings.values()
        if one.model in catalogue.models
        and one.dataset in catalogue.datasets
        and one.hardware in catalogue.hardware
    ]
    return tuple(
        sorted(
            found,
            key=lambda one: (
                one.model.name,
                one.dataset.name,
                one.machine.id,
                one.record.batch_size,
                one.record.aim,
                one.record.id,
            ),
        )
    )


def _price(catalogue: Catalogue, hardware: str) -> Price | None:
    known = [one for one in current_prices(catalogue.prices_of(hardware)) if one.plan in _PLANS]
    return min(known, key=lambda one: _PLANS.index(one.plan), default=None)


def elsewhere(training: AccuracyTraining, rows: Iterable[Row]) -> list[Elsewhere]:
    """The steps of a training on other machines at its batch size, cheapest first, one for each."""
    best: dict[str, list[Elsewhere]] = defaultdict(list)
    for row in rows:
        observed = row.observed
        fits = observed.mode == "training" and observed.batch_size == training.record.batch_size
        known = observed.step is not None and row.price is not None and row.current
        here = observed.machine.hardware == training.machine.id
        if not (fits and known) or row.reservation or here:
            continue
        assert observed.step is not None, "just asked"
        assert row.price is not None, "just asked"
        seconds = training.steps.mean * float(observed.step.mean)
        machine = observed.machine
        usage = Usage(Decimal(repr(seconds)), 1, machine.vcpus, machine.device == "cuda")
        best[machine.hardware].append(Elsewhere(row, seconds, share_total(row.price, usage)))
    cheapest = [min(found, key=lambda one: one.cost) for found in best.values()]
    return sorted(cheapest, key=lambda one: one.cost)


def published_accuracies(catalogue: Catalogue) -> Sequence[tuple[Published, Timing]]:
    """What others trained to an accuracy, as their tables have it."""
    return [
        (source, timing)
        for source in catalogue.published.values()
        for timing in source.timings
        if timing.accuracy_percent is not None
    ]
