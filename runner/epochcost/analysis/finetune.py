"""Compute time, memory and cost of a language model's training on every machine.

Each machine gets the fastest layout that fits its memory. Times are predicted from published
trainings, none of which used ONNX Runtime.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from itertools import product, starmap
from operator import attrgetter, itemgetter

from epochcost.analysis.decoder_places import (
    UNKNOWN_PROCESSORS,
    Place,
    Refusal,
    computed_in,
    decoder_places,
    powers_of_two,
)
from epochcost.analysis.finetune_memory import (
    DEFAULT_RANK,
    MemoryPart,
    counts_of,
    memory_parts,
    needed_bytes,
)
from epochcost.analysis.inputs import Inputs
from epochcost.analysis.odds import Odds, odds, values_along
from epochcost.analysis.rows import in_currency, mark_of, usual_currency
from epochcost.cost.compare import NO_LIMITS, Candidate, Limits
from epochcost.cost.estimate import Estimate, MachineTime, Time
from epochcost.errors import InputError
from epochcost.predict.decoders.chips import chip_of
from epochcost.predict.decoders.forms import DecoderForm, form_of
from epochcost.predict.decoders.rows import Precision
from epochcost.predict.decoders.training import TrainingForecaster
from epochcost.predict.decoders.training_rows import (
    Method,
    TrainingQuestion,
    TrainingRow,
    training_rows,
)
from epochcost.predict.joint import Forecast
from epochcost.predict.process import Vector
from epochcost.specs.catalogue import current_prices
from epochcost.specs.decoder import Decoder
from epochcost.specs.hardware import Device, Hardware
from epochcost.specs.price import Price
from epochcost.statistics import first_by
from epochcost.units import MAX_DURATION_SECONDS, memory

SOFTWARE = "PyTorch"
# Tokens of a device at once: more are not faster, and larger steps of a fine-tuning learn less from
# each example.
_MOST_OF_PRETRAINING, _MOST_OF_FINE_TUNING = 65_536, 8192
_BARE = "no accelerator"
_UNTRIED = "8-bit optimizers and offloading to host memory are not considered"
# Assumed for each GPU, in bytes a second to other machines: 10 Gbit/s, and more if eight GPUs have
# NVLink. AWS states 2.5 to 12.5 Gbit/s for most GPUs, 50 for p4d and 400 for p5 and p6-b200
# (aws/karpenter-provider-aws@692ccdd062: website/content/en/docs/reference/instance-types.md).
_NETWORK, _LARGE_MACHINE_GPUS = 1.25e9, 8
_NETWORK_OF_LARGE = {"Ampere": 6.25e9, "Hopper": 50e9, "Blackwell": 50e9}
# The first GPUs with matrix units of 16 bits, and with 8-bit floats.
_LEAST_CAPABILITY: Mapping[str, str] = {"bf16": "7.0", "fp8": "8.9"}


@dataclass(frozen=True, slots=True)
class TrainingDemand:
    """A training of a model on ``total`` tokens, in sequences of ``length`` tokens.

    ``rank`` is that of LoRA adapters. ``machines`` machines of one kind train together.
    """

    model: str
    method: Method
    total: Decimal
    length: int
    precision: Precision = "bf16"
    rank: int = DEFAULT_RANK
    machines: int = 1
    limits: Limits = NO_LIMITS


@dataclass(frozen=True, slots=True)
class Way:
    """A way to split a training over the devices of a kind of machine, with its time.

    ``needed_bytes`` is the memory on each device; ``forecast`` predicts the seconds per token.
    """

    hardware: Hardware
    setting: TrainingQuestion
    needed_bytes: float
    forecast: Forecast
    time: Time

    @property
    def precision(self) -> str:
        """The precision of most arithmetic; fp16 instead of bf16 on GPUs older than Ampere."""
        capability = self.hardware.accelerators[0].compute_capability
        return computed_in(self.setting.precision, Decimal(capability) if capability else None)

    @property
    def available_bytes(self) -> float:
        """Memory of one device, in bytes."""
        return float(self.setting.device.memory_gib) * 2**30


@dataclass(frozen=True, slots=True)
class TuningOffer:
    """A way to split a training over a machine's devices, with a price of the machine."""

    way: Way
    price: Price

    @property
    def mark(self) -> str:
        """The text "predicted", with a note if the price is assumed."""
        return mark_of("predicted", self.price)


@dataclass(frozen=True, slots=True)
class FinetuneAnswer:
    """Machines and their prices for a training, and the cheapest or fastest ``choice``.

    ``offers`` are sorted by cost; those with a drawback (an assumed price, say) come last.
    ``memory`` lists what fills a device of ``choice``. ``odds`` are those of being the cheapest,
    for machines within the limits. ``published`` has trainings of this model by this method,
    ``chips`` all chips with a published training of any model.
    """

    demand: TrainingDemand
    offers: tuple[Candidate[TuningOffer], ...]
    choice: Candidate[TuningOffer]
    memory: tuple[MemoryPart, ...]
    odds: Odds[str]
    refused: tuple[Refusal, ...]
    published: tuple[TrainingRow, ...]
    chips: tuple[str, ...]

    def extrapolates(self, way: Way) -> str:
        """The chip in ``way`` if its time is extrapolated from other chips, else empty."""
        chip = way.setting.device.chip
        return "" if chip in self.chips else chip

    def published_on(self, way: Way) -> tuple[TrainingRow, ...]:
        """Published trainings of this model on the kind and number of devices in ``way``."""
        device, count = way.setting.device.id, way.setting.count
        return tuple(
            row
            for row in self.published
            if (row.question.device.id, row.question.count) == (device, count)
        )


class TuningMarket:
    """Price trainings of decoders on a project's machines; read published trainings only once."""

    def __init__(self, inputs: Inputs) -> None:
        self._catalogue = inputs.catalogue

    @cached_property
    def _rows(self) -> tuple[TrainingRow, ...]:
        return training_rows(self._catalogue)

    @cached_property
    def _places(self) -> tuple[Sequence[Place], Sequence[Refusal]]:
        return decoder_places(self._catalogue)

    @cached_property
    def _forecaster(self) -> TrainingForecaster:
        return TrainingForecaster(self._rows)

    def answer(self, demand: TrainingDemand) -> FinetuneAnswer:
        """Price a training on every kind of machine.

        Raises InputError for a spec without dimensions, and for sequences beyond the context. Also
        raises it if the model fits no machine, or if no priced machine meets the limits.
        """
        decoder, form = self._decoder(demand)
        sequences = max(int(demand.total) // demand.length, 1)
        if demand.machines > sequences:
            raise InputError(
                f"--machines {demand.machines}: expected at most {sequences}, one for each sequence"
            )
        ways, refused = self._fastest_layouts(demand, decoder, form)
        priced = self._offers_cheapest_first(demand, ways)
        usual = usual_currency(offer.cost.currency for offer in priced)
        currency, name = attrgetter("cost.currency"), attrgetter("key.way.hardware.name")
        offers, others = in_currency(usual, priced, currency, name)
        refused += starmap(Refusal, others)
        competing = [offer for offer in offers if not offer.key.price.reservation] or offers
        if not competing:
            raise InputError(
                f"{demand.model}: expected a price of a machine that trains it within 100 years, "
                "found none"
            )
        sought = f"a training of {demand.model} within the limits"
        choice = demand.limits.choice(competing, _name, sought)
        within = by_hardware([choice, *demand.limits.divided(competing)[0]])
        drawn = {offer.key.way.hardware.id: _cost_draws(offer) for offer in within}
        return FinetuneAnswer(
            demand,
            offers,
            choice,
            tuple(memory_parts(counts_of(decoder, form), choice.key.way.setting, demand.rank)),
            odds(choice.key.way.hardware.id, drawn),
            tuple(refused),
            tuple(
                row
                for row in self._rows
                if (row.question.form, row.question.method) == (form, demand.method)
            ),
            tuple(sorted({row.question.device.chip for row in self._rows})),
        )

    def seconds(self, demand: TrainingDemand) -> Mapping[str, Decimal]:
        """Predict the seconds of a training by the id of the machine, with or without a price.

        Raises InputError as `answer` does, except for prices and limits.
        """
        ways, _ = self._fastest_layouts(demand, *self._decoder(demand))
        return {way.hardware.id: way.time.mean for way in ways}

    def _decoder(self, demand: TrainingDemand) -> tuple[Decoder, DecoderForm]:
        decoder = self._catalogue.decoder(demand.model)
        form = form_of(decoder)
        if form is None:
            raise InputError(
                f"--model {demand.model}: expected hidden and parameters in its table [decoder]"
            )
        if demand.length > decoder.context:
            raise InputError(
                f"--tokens {demand.length}: expected at most {decoder.context}, the context of "
                f"{demand.model}"
            )
        return decoder, form

    def _fastest_layouts(
        self, demand: TrainingDemand, decoder: Decoder, form: DecoderForm
    ) -> tuple[list[Way], list[Refusal]]:
        """Fastest split over each machine's devices, and refusals; InputError if none can train."""
        places, unknown = self._places
        refused = [
            replace(refusal, reason=_BARE) if refusal.reason == UNKNOWN_PROCESSORS else refusal
            for refusal in unknown
        ]
        counts = counts_of(decoder, form)
        chosen: list[tuple[Hardware, TrainingQuestion, float]] = []
        shortages: list[tuple[float, Refusal]] = []
        for place in places:
            name, room = place.machine.name, place.memory_bytes
            unable = _reason_why_unable(place, demand.precision)
            if unable:
                refused.append(Refusal(name, unable))
                continue
            settings = [*_training_layouts(demand, form, place)]
            sizes = [needed_bytes(counts, setting, demand.rank) for setting in settings]
            fitting = [pair for pair in zip(settings, sizes, strict=True) if pair[1] <= room]
            if fitting:
                seconds = self._forecaster.law_seconds([setting for setting, _ in fitting])
                totals = [_tokens_of_steps(demand, setting) for setting, _ in fitting]
                machine = self._catalogue.hardware[place.machine.hardware]
                chosen.append((machine, *fitting[int((seconds * totals).argmin())]))
                continue
            needs = f"needs {memory(min(sizes))} on {_devices(settings[0].count)} {memory(room)}"
            small = Refusal(name, f"too little memory ({_UNTRIED})", needs)
            shortages.append((min(sizes) / room, small))
        if not chosen:
            raise InputError(_no_machine_message(demand, shortages))
        refused += [refusal for _, refusal in shortages]
        forecasts = self._forecaster.forecasts([setting for _, setting, _ in chosen])
        ways = []
        for (machine, setting, needed), each in zip(chosen, forecasts, strict=True):
            total = _tokens_of_steps(demand, setting)
            time = Time.from_floats(total * each.low, total * each.seconds, total * each.high)
            if time.high > MAX_DURATION_SECONDS:
                refused.append(Refusal(machine.name, "may take more than 100 years"))
            else:
                ways.append(Way(machine, setting, needed, each, time))
        return ways, refused

    def _offers_cheapest_first(
        self, demand: TrainingDemand, ways: Sequence[Way]
    ) -> tuple[Candidate[TuningOffer], ...]:
        candidates = []
        for way in ways:
            vcpus, machines = way.hardware.vcpus, demand.machines
            job = MachineTime(way.time, vcpus, accelerated=True, machines=machines)
            for price in current_prices(self._catalogue.prices_of(way.hardware.id)):
                cost = job.cost(price)
                if isinstance(cost, Estimate):
                    elapsed = job.quote(price).elapsed_seconds
                    candidates.append(Candidate(TuningOffer(way, price), elapsed, cost))
        return tuple(sorted(candidates, key=_cheapest_first))


def _tokens_of_steps(demand: TrainingDemand, setting: TrainingQuestion) -> float:
    """The tokens of a training, or of its only step if this step is not full."""
    return max(float(demand.total), setting.tokens * setting.count)


def _reason_why_unable(place: Place, precision: Precision) -> str:
    least = _LEAST_CAPABILITY[precision]
    if not isinstance(place.device, Device):
        return _BARE
    if place.capability is None or place.capability < Decimal(least):
        name = "training in 16 bits" if precision == "bf16" else precision
        return f"{name} needs an NVIDIA GPU of compute capability {least}"
    return ""


def _training_layouts(
    demand: TrainingDemand, form: DecoderForm, place: Place
) -> Iterator[TrainingQuestion]:
    assert isinstance(place.device, Device), "callers leave out machines without accelerators"
    count = place.count * demand.machines
    pretrains = demand.method == "pretraining"
    most = _MOST_OF_PRETRAINING if pretrains else _MOST_OF_FINE_TUNING
    # A device's part of a small training, rounded up to a power of two, is enough at once.
    part = math.ceil(demand.total / demand.length / count)
    at_once = min(most // demand.length, 2 * part - 1)
    batches, ways = powers_of_two(max(at_once, 1)), (False, True)
    chip = chip_of(place.device, demand.precision, count=place.count)
    linked = place.count >= _LARGE_MACHINE_GPUS and chip.hops == 1
    network = _NETWORK_OF_LARGE.get(place.device.generation, _NETWORK) if linked else _NETWORK
    for sequences, checkpointing, sharded in product(batches, ways, ways):
        if count > 1 or not sharded:
            yield TrainingQuestion(
                form=form,
                model=demand.model,
                method=demand.method,
                precision=demand.precision,
                device=place.device,
                count=count,
                length=demand.length,
                tokens=demand.length * sequences,
                recomputed=float(checkpointing),
                sharded=sharded,
                machines=demand.machines,
                network=place.count * network if demand.machines > 1 else None,
            )


def _devices(count: int) -> str:
    return "its device, which has" if count == 1 else f"each of {count} devices, which have"


def _no_machine_message(demand: TrainingDemand, shortages: Sequence[tuple[float, Refusal]]) -> str:
    if not shortages:
        return f"{demand.model}: expected a machine with GPUs for {demand.precision}, found none"
    nearest = min(shortages, key=itemgetter(0))[1]
    smaller = {"full": "--method lora, ", "lora": "--method qlora, "}.get(demand.method, "")
    return (
        f"{demand.model}: expected a machine that it fits, found none; the nearest is "
        f"{nearest.machine}: {nearest.detail}; try {smaller}a shorter --tokens or --machines above "
        f"{demand.machines}; {_UNTRIED}"
    )


def _cheapest_first(candidate: Candidate[TuningOffer]) -> tuple[bool, Decimal, Decimal]:
    return bool(candidate.key.price.reservation), candidate.cost.mean, candidate.seconds


def _name(candidate: Candidate[TuningOffer]) -> str:
    return f"{candidate.key.way.hardware.name}, {candidate.key.price.plan_text}"


def _cost_draws(candidate: Candidate[TuningOffer]) -> Vector:
    way, cost = candidate.key.way, candidate.cost
    return values_along(way.forecast.draws.values, way.time, (cost.low, cost.mean, cost.high))


def by_hardware(offers: Iterable[Candidate[TuningOffer]]) -> tuple[Candidate[TuningOffer], ...]:
    """The first of ``offers`` (priced ways to train) for each kind of machine, in their order."""
    return first_by(offers, lambda offer: offer.key.way.hardware.id)
