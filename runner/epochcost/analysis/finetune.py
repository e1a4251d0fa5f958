"""Training a language model on given tokens: time, memory and cost on every machine where it fits.

Fine-tuning and pre-training are one question. On each machine the fastest way that fits its memory
is taken: sequences at once, checkpointing, sharding over its devices. Times come from published
trainings (``predict.decoders.training``), none of them from ONNX Runtime.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, cached_property, partial
from itertools import product

from epochcost.analysis.finetune_memory import (
    DEFAULT_RANK,
    MemoryPart,
    TrainingSetting,
    memory_parts,
    needed_bytes,
)
from epochcost.analysis.inputs import Inputs
from epochcost.analysis.odds import Odds, odds, values_along
from epochcost.analysis.rows import mark_of
from epochcost.cost import Candidate, Estimate, Time, Usage, quote
from epochcost.errors import InputError
from epochcost.predict.decoders.forms import DecoderForm, form_of
from epochcost.predict.decoders.rows import Precision
from epochcost.predict.decoders.training import (
    TrainingForecast,
    TrainingForecaster,
    TrainingQuestion,
)
from epochcost.predict.decoders.training_rows import Method, TrainingRow, training_rows
from epochcost.predict.design import Devices
from epochcost.predict.process import Vector
from epochcost.specs.catalogue import current_prices
from epochcost.specs.decoder import Decoder
from epochcost.specs.hardware import Accelerator, Device, Hardware
from epochcost.specs.price import Price
from epochcost.units import MAX_DURATION_SECONDS, memory, money, seconds

SOFTWARE = "PyTorch"
# Tokens of a device at once: more make it no faster, and more examples of a fine-tuning in a step
# make it learn less from each.
_MOST_TOKENS: Mapping[str, int] = {"pretraining": 65_536}
_MOST_OF_FINE_TUNING = 8192
# Matrix units of 16 bits came with the first, those of 8-bit floats with the second.
_LEAST_CAPABILITY: Mapping[str, tuple[int, int]] = {"bf16": (7, 0), "fp8": (8, 9)}


@dataclass(frozen=True, slots=True)
class TrainingDemand:
    """A training of a model on ``total`` tokens in sequences of ``length``, and its limits."""

    model: str
    method: Method
    total: Decimal
    length: int
    precision: Precision = "bf16"
    rank: int = DEFAULT_RANK
    machines: int = 1
    deadline_seconds: Decimal | None = None
    budget: Decimal | None = None
    currency: str = "USD"

    @property
    def fastest(self) -> bool:
        """Whether the fastest is demanded: with a budget and no deadline."""
        return self.budget is not None and self.deadline_seconds is None

    def met_by(self, seconds: Decimal, cost: Decimal) -> bool:
        """Whether a time and a cost are within the limits."""
        late = self.deadline_seconds is not None and seconds > self.deadline_seconds
        return not late and (self.budget is None or cost <= self.budget)


@dataclass(frozen=True, slots=True)
class Way:
    """A way to train on a kind of machine: what is kept where, and how fast that is."""

    hardware: Hardware
    device: Device
    setting: TrainingSetting
    needed_bytes: float
    forecast: TrainingForecast
    time: Time

    @property
    def available_bytes(self) -> float:
        """Memory of a device."""
        return float(self.device.memory_gib) * 2**30

    @property
    def at_once(self) -> str:
        """The sequences that a device has in work, and what makes them fit."""
        setting = self.setting
        parts = str(setting.sequences), "checkpointed" * setting.checkpointing
        return ", ".join(filter(None, [*parts, "sharded" * setting.sharded]))


@dataclass(frozen=True, slots=True)
class TuningOffer:
    """A way to train, under a plan."""

    way: Way
    price: Price
    cost: Estimate

    @property
    def mark(self) -> str:
        """The kind of evidence, and whether the price is assumed."""
        return mark_of("predicted", self.price)


@dataclass(frozen=True, slots=True)
class Unfit:
    """A kind of machine that cannot do the training, and why.

    ``shortage`` is the memory that it needs in units of what it has, where that is the reason.
    """

    hardware: str
    reason: str
    shortage: float | None = None


@dataclass(frozen=True, slots=True)
class FinetuneAnswer:
    """Machines and plans for a training, cheapest first, those with a reservation last.

    ``odds`` are among machines, by their ids; ``published`` are trainings of the same model by the
    same method.
    """

    demand: TrainingDemand
    offers: tuple[Candidate[TuningOffer], ...]
    choice: Candidate[TuningOffer]
    memory: tuple[MemoryPart, ...]
    odds: Odds[str]
    unfit: tuple[Unfit, ...]
    published: tuple[TrainingRow, ...]

    def published_on(self, way: Way) -> tuple[TrainingRow, ...]:
        """Published trainings on the same devices."""
        device, count = way.device.id, way.setting.devices
        return tuple(
            row
            for row in self.published
            if row.device and (row.device.id, row.count) == (device, count)
        )


class TuningMarket:
    """Machines of a project for any training of its decoders; published ones are read once."""

    def __init__(self, inputs: Inputs) -> None:
        self._inputs = inputs

    @cached_property
    def _rows(self) -> tuple[TrainingRow, ...]:
        return training_rows(self._inputs.catalogue)

    @cached_property
    def _forecaster(self) -> TrainingForecaster:
        return TrainingForecaster(self._rows)

    def answer(self, demand: TrainingDemand) -> FinetuneAnswer:
        """Price a training on every kind of machine.

        Raises InputError for a model without a form, sequences beyond its context, a model that
        fits nowhere, and limits that nothing keeps.
        """
        inputs = self._inputs
        decoder, form = _decoder(inputs, demand)
        ways, unfit = _ways(inputs, demand, decoder, self._forecaster, form)
        offers = _offers(inputs, demand, ways)
        if not offers:
            raise InputError(_nowhere(demand, ways, unfit))
        choice = _choice(demand, offers)
        drawn = {
            offer.key.way.hardware.id: _cost_draws(offer.key)
            for offer in by_hardware([choice, *_comparable(offers, choice)])
        }
        return FinetuneAnswer(
            demand,
            offers,
            choice,
            tuple(memory_parts(decoder, choice.key.way.setting)),
            odds(choice.key.way.hardware.id, drawn),
            tuple(unfit),
            tuple(row for row in self._rows if (row.form, row.method) == (form, demand.method)),
        )


def finetune_answer(inputs: Inputs, demand: TrainingDemand) -> FinetuneAnswer:
    """The answer of a market of one question; raises as ``TuningMarket.answer`` does."""
    return TuningMarket(inputs).answer(demand)


def _decoder(inputs: Inputs, demand: TrainingDemand) -> tuple[Decoder, DecoderForm]:
    models = inputs.catalogue.models
    decoder = inputs.catalogue.model(demand.model).decoder
    form = form_of(decoder) if decoder else None
    if decoder is None or form is None:
        formed = [model.id for model in models.values() if model.decoder and form_of(model.decoder)]
        raise InputError(
            f"--model {demand.model}: expected a language model with hidden and parameters in a "
            f"table [decoder]: {', '.join(formed) or 'there is none'}"
        )
    if demand.length > decoder.context:
        raise InputError(
            f"--tokens {demand.length}: expected at most {decoder.context}, the context of "
            f"{demand.model}"
        )
    return decoder, form


def _ways(
    inputs: Inputs,
    demand: TrainingDemand,
    decoder: Decoder,
    forecaster: TrainingForecaster,
    form: DecoderForm,
) -> tuple[list[Way], list[Unfit]]:
    """The fastest way on each kind of machine, and the kinds that cannot."""
    # Machines with as many devices have the same settings.
    size_of = cache(partial(needed_bytes, decoder))
    devices, unfit = Devices(inputs.catalogue.devices.values()), []
    chosen: list[tuple[Hardware, TrainingQuestion, TrainingSetting, float]] = []
    for hardware in inputs.catalogue.hardware.values():
        device = _device(hardware, devices, demand)
        if isinstance(device, str):
            unfit.append(Unfit(hardware.id, device))
            continue
        count = hardware.accelerators[0].count * demand.machines
        room = float(device.memory_gib) * 2**30
        sized = [(setting, size_of(setting)) for setting in _settings(demand, count)]
        fitting = [(setting, size) for setting, size in sized if size <= room]
        if not fitting:
            unfit.append(_too_small(hardware, count, room, min(size for _, size in sized)))
            continue
        questions = [_question(demand, form, device, setting) for setting, _ in fitting]
        best = int(forecaster.law_seconds(questions).argmin())
        chosen.append((hardware, questions[best], *fitting[best]))
    forecasts = forecaster.forecasts([question for _, question, _, _ in chosen])
    ways = [
        Way(hardware, question.device, setting, size, forecast, _time(demand, forecast))
        for (hardware, question, setting, size), forecast in zip(chosen, forecasts, strict=True)
    ]
    return [way for way in ways if way.time.high <= MAX_DURATION_SECONDS], unfit


def _device(hardware: Hardware, devices: Devices, demand: TrainingDemand) -> Device | str:
    """The device of a machine on which the training runs, or why there is none."""
    if len(hardware.accelerators) != 1:
        return "no accelerator" if not hardware.accelerators else "accelerators of several kinds"
    gpu: Accelerator = hardware.accelerators[0]
    least = _LEAST_CAPABILITY[demand.precision]
    if _capability(gpu) < least:
        return f"{demand.precision} needs an NVIDIA GPU of compute capability {least[0]}.{least[1]}"
    return devices.named(gpu.name) or f"no specs/devices describes {gpu.name}"


def _capability(gpu: Accelerator) -> tuple[int, int]:
    major, _, minor = (gpu.compute_capability or "0.0").partition(".")
    return int(major), int(minor)


def _settings(demand: TrainingDemand, count: int) -> Iterator[TrainingSetting]:
    """Ways to keep and to compute, on so many devices."""
    most = _MOST_TOKENS.get(demand.method, _MOST_OF_FINE_TUNING) // demand.length
    batches = [2**power for power in range(max(most, 1).bit_length())]
    for sequences, checkpointing, sharded in product(batches, (False, True), (False, True)):
        if count > 1 or not sharded:
            yield TrainingSetting(
                demand.method, demand.length, sequences, checkpointing, sharded, count,
                demand.rank, demand.precision,
            )  # fmt: skip


def _question(
    demand: TrainingDemand, form: DecoderForm, device: Device, setting: TrainingSetting
) -> TrainingQuestion:
    return TrainingQuestion(
        form=form,
        model=demand.model,
        method=demand.method,
        precision=demand.precision,
        device=device,
        count=setting.devices,
        length=demand.length,
        tokens=setting.tokens,
        recomputed=float(setting.checkpointing),
        sharded=setting.sharded,
    )


def _too_small(hardware: Hardware, count: int, room: float, needed: float) -> Unfit:
    place = "its device, which has" if count == 1 else f"each of {count} devices, which have"
    return Unfit(hardware.id, f"needs {memory(needed)} on {place} {memory(room)}", needed / room)


def _time(demand: TrainingDemand, forecast: TrainingForecast) -> Time:
    total = float(demand.total)
    rates = forecast.high, forecast.tokens_per_second, forecast.low
    return Time.from_floats(*(total / rate for rate in rates))


def _offers(
    inputs: Inputs, demand: TrainingDemand, ways: Sequence[Way]
) -> tuple[Candidate[TuningOffer], ...]:
    """Each way under each current plan; plans in the currency that most have."""
    candidates = []
    for way in ways:
        for price in current_prices(inputs.catalogue.prices_of(way.hardware.id)):
            try:
                bills = [
                    quote(
                        price, Usage(end, demand.machines, way.hardware.vcpus, True), credited=False
                    )
                    for end in (way.time.low, way.time.mean, way.time.high)
                ]
            except InputError:
                continue
            low, mean, high = (bill.total for bill in bills)
            cost = Estimate(low, mean, high, price.currency, price.id, price.assumed)
            offer = TuningOffer(way, price, cost)
            candidates.append(Candidate(offer, bills[1].elapsed_seconds, cost))
    currencies = [candidate.cost.currency for candidate in candidates]
    usual = max(currencies, key=currencies.count, default="")
    same = [candidate for candidate in candidates if candidate.cost.currency == usual]
    return tuple(sorted(same, key=_cheapest_first))


def _cheapest_first(candidate: Candidate[TuningOffer]) -> tuple[bool, Decimal, Decimal]:
    return bool(candidate.key.price.reservation), candidate.cost.mean, candidate.seconds


def _comparable(
    offers: Sequence[Candidate[TuningOffer]], choice: Candidate[TuningOffer]
) -> list[Candidate[TuningOffer]]:
    """Offers that compete with the choice: those with a reservation only where it has one."""
    reserved = bool(choice.key.price.reservation)
    return [offer for offer in offers if reserved or not offer.key.price.reservation]


def _choice(
    demand: TrainingDemand, offers: Sequence[Candidate[TuningOffer]]
) -> Candidate[TuningOffer]:
    """The best offer within the limits; raises InputError naming the nearest if none is."""
    if demand.budget is not None and demand.currency != offers[0].cost.currency:
        expected = offers[0].cost.currency
        raise InputError(f"budget: expected {expected}, as the prices, got {demand.currency}")
    listed = [offer for offer in offers if not offer.key.price.reservation] or list(offers)
    met = [offer for offer in listed if demand.met_by(offer.seconds, offer.cost.mean)]
    if met:
        return min(met, key=lambda offer: offer.seconds) if demand.fastest else met[0]
    nearest = listed[0] if demand.fastest else min(listed, key=lambda offer: offer.seconds)
    offer = nearest.key
    raise InputError(
        f"expected a training of {demand.model} within the limits, found none: nearest is "
        f"{offer.way.hardware.name}, {offer.price.plan_words}: "
        f"{money(nearest.cost.mean, nearest.cost.currency)} in {seconds(float(nearest.seconds))}"
    )


def _nowhere(demand: TrainingDemand, ways: Sequence[Way], unfit: Sequence[Unfit]) -> str:
    """Why no machine has an offer, and what would be needed."""
    if ways:
        return f"{demand.model}: expected a price of {ways[0].hardware.id}, found none"
    sized = [machine for machine in unfit if machine.shortage is not None]
    if not sized:
        return f"{demand.model}: expected a machine with GPUs for {demand.precision}, found none"
    nearest = min(sized, key=lambda machine: machine.shortage or 0.0)
    smaller = {"full": "--method lora, ", "lora": "--method qlora, "}.get(demand.method, "")
    return (
        f"{demand.model} fits nowhere: nearest is {nearest.hardware}, {nearest.reason}: expected "
        f"{smaller}shorter --tokens or --machines above {demand.machines}"
    )


def _cost_draws(offer: TuningOffer) -> Vector:
    """Draws of what a training costs [DRAWS], together with those on other machines."""
    ends = (offer.cost.low, offer.cost.mean, offer.cost.high)
    return values_along(offer.way.forecast.draws.values, offer.way.time, ends)


def published_words(row: TrainingRow) -> str:
    """A published rate as a phrase."""
    name = row.device.name if row.device else row.chip
    length = f", sequences of {row.sequence:,}" if row.sequence else ""
    return (
        f"{row.tokens_per_second:,.0f} tokens a second on {row.count} {name}, {row.software}, "
        f"{row.precision}{length} ({row.source})"
    )


def by_hardware(
    offers: Sequence[Candidate[TuningOffer]],
) -> tuple[Candidate[TuningOffer], ...]:
    """The first offer of each kind of machine."""
    first: dict[str, Candidate[TuningOffer]] = {}
    for offer in offers:
        first.setdefault(offer.key.way.hardware.id, offer)
    return tuple(first.values())
