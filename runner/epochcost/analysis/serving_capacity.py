"""Predict how many requests a second a machine answers, and with how many copies of the model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from operator import attrgetter
from typing import TypeVar

import numpy as np

from epochcost.analysis.decoder_places import Place, Refusal, computed_in, powers_of_two
from epochcost.analysis.tokens import Capacity, Deployment, Requests
from epochcost.cost.estimate import Time
from epochcost.predict.decoders.chips import CpuForm
from epochcost.predict.decoders.forms import DecoderForm, form_of
from epochcost.predict.decoders.law import BYTES_OF_16_BITS, USABLE_MEMORY
from epochcost.predict.decoders.rows import BITS, Kind, ServingQuestion
from epochcost.predict.decoders.serving import ServingForecaster
from epochcost.predict.joint import Forecast
from epochcost.predict.process import Vector
from epochcost.specs.decoder import Decoder, ServedPrecision
from epochcost.statistics import group_by
from epochcost.units import either
from epochcost.units import memory as render_memory

ValueT = TypeVar("ValueT", float, Vector)


@dataclass(frozen=True, slots=True)
class Engine:
    """Software that serves decoders, and the devices that it supports.

    ``capabilities`` has the least NVIDIA compute capability of each precision, ``on_processors``
    the precisions on CPUs. At most ``most_sequences`` sequences are decoded at once.
    """

    name: str
    capabilities: Mapping[str, Decimal]
    most_sequences: int
    on_processors: tuple[str, ...] = ()

    def serves(self, place: Place, precision: str) -> bool:
        """Whether the engine serves in a precision on a machine."""
        if isinstance(place.device, CpuForm):
            return precision in self.on_processors
        least = self.capabilities.get(precision)
        capability = place.capability
        return least is not None and capability is not None and capability >= least


def _least(**capabilities: str) -> Mapping[str, Decimal]:
    return {name: Decimal(text) for name, text in capabilities.items()}


# From docs.vllm.ai (supported hardware) and nvidia.github.io/TensorRT-LLM (support matrix). Older
# devices run bf16 as fp16, and fp8 for weights only. The sequences fit published rates at full load
# best, without rows of the model on the chip (benchmarks/token_prediction.py --held-out full-load;
# of 64, 128 and 256); llama.cpp published one stream. vLLM refuses MXFP4 below 8.0 (vllm issue
# 23203). TensorRT-LLM's NVFP4 needs the fp4 units of Blackwell. A machine is predicted under the
# first engine that it supports: the cheapest of several predictions would be the luckiest.
ENGINES = (
    Engine(
        "vLLM", _least(bf16="7.0", fp8="7.5", int8="7.5", int4="7.0", fp4="8.0"), 128, ("bf16",)
    ),
    Engine("llama.cpp", _least(int4="5.0", fp4="5.0"), 1, ("int4", "fp4")),
    Engine("TensorRT-LLM", _least(bf16="8.0", fp8="8.9", int8="8.0", int4="8.0", fp4="10.0"), 256),
)


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A decoder in a precision; ``heads`` counts its key-value heads, 1 for latent attention."""

    name: str
    form: DecoderForm
    precision: ServedPrecision
    heads: int

    @classmethod
    def of(cls, name: str, decoder: Decoder, precision: ServedPrecision) -> ServedModel | None:
        """The decoder of a model; None if its spec lacks ``hidden`` or ``parameters``."""
        form = form_of(decoder)
        heads = 1 if decoder.key_value_rank else decoder.key_value_heads
        return None if form is None else cls(name, form, precision, heads)

    @property
    def weight_bytes(self) -> float:
        """Bytes of all weights."""
        return self.form.parameters * BITS[self.precision] / 8

    def cached_bytes(self, devices: int) -> float:
        """Bytes that one token takes in the caches of all ``devices`` devices together.

        If there are more devices than ``heads``, several devices store copies of a head.
        """
        held_by_all = max(1.0, devices / self.heads)
        return self.form.cached_numbers_per_token * BYTES_OF_16_BITS * held_by_all


@dataclass(frozen=True, slots=True)
class Layout:
    """Copies of a model on a machine, each on ``devices`` devices and with its own cache.

    A copy's cache has space for ``room`` tokens if every layer stores all of them. Layers with a
    window store only the latest tokens of a sequence.
    """

    place: Place
    engine: Engine
    form: DecoderForm
    devices: int
    room: float

    def deployment(self, precision: str) -> Deployment:
        """The machine, software and copies of this layout, with the precision of its arithmetic."""
        place, software = self.place, self.engine.name
        computed = computed_in(precision, place.capability)
        return Deployment(place.machine, computed, software, "predicted", self.copies, self.devices)

    @property
    def copies(self) -> int:
        """Number of copies of the model on the machine."""
        return self.place.count // self.devices

    def sequences(self, requests: Requests) -> list[int]:
        """Numbers of sequences at once: 1, 2, 4, ... up to the limit of the cache or engine."""
        most = min(self.room // self.form.kept_tokens(requests.tokens), self.engine.most_sequences)
        return powers_of_two(int(most))

    def cached_tokens(self, requests: Requests, sequences: int) -> float:
        """Number of tokens of each prompt that need no computation, because the cache has them.

        A prompt's last token is always computed. Other limits are ``requests.cached_share`` and the
        space that ``sequences`` requests at once leave in the cache.
        """
        spare = max(0.0, self.room / sequences - self.form.kept_tokens(requests.tokens))
        return min(float(requests.cached_share) * requests.prompt, requests.prompt - 1.0, spare)


def layouts_of(model: ServedModel, place: Place, engine: Engine) -> Iterator[Layout]:
    """Yield layouts with 1, 2, 4, ... devices a copy; ``room`` < 0 if the weights do not fit."""
    for devices in powers_of_two(place.count):
        spare = USABLE_MEMORY * place.memory_bytes * devices - model.weight_bytes
        yield Layout(place, engine, model.form, devices, spare / model.cached_bytes(devices))


@dataclass(frozen=True, slots=True)
class _LayoutForecast:
    """A layout in which each copy serves ``sequences`` at once, with the forecasts of its phases.

    ``lone_token`` is the time of a token of a single sequence. ``token`` is the time in which every
    sequence gets a token, while the server also reads new prompts.
    """

    layout: Layout
    sequences: int
    output: int
    first_token: Forecast
    lone_token: Forecast
    token: Forecast

    def request_seconds(self, first_token_seconds: ValueT, token_seconds: ValueT) -> ValueT:
        """The machine's seconds per request: a request's seconds / the requests served at once."""
        if self.sequences == 1:
            return (first_token_seconds + (self.output - 1) * token_seconds) / self.layout.copies
        return self.output * token_seconds / (self.sequences * self.layout.copies)

    @property
    def predicted_seconds(self) -> float:
        return self.request_seconds(self.first_token.seconds, self.token.seconds)

    @property
    def latencies(self) -> tuple[float, float]:
        """Seconds to the first token, and mean seconds between tokens of a sequence after it."""
        first, alone = self.first_token.seconds, self.lone_token.seconds
        if self.sequences == 1 or self.output == 1:
            return first, alone
        whole = self.output * self.token.seconds - first
        return first, max(alone, whole / (self.output - 1))

    @property
    def capacity(self) -> Capacity:
        """The capacity of the machine in this layout, from the forecast times."""
        first, token, seconds = self.first_token, self.token, self.predicted_seconds
        drawn = self.request_seconds(
            first.seconds * np.exp(first.draws.values), token.seconds * np.exp(token.draws.values)
        )
        _, between = self.latencies
        slower = between / token.seconds
        return Capacity(
            sequences=self.sequences,
            first=Time.from_floats(first.low, first.seconds, first.high),
            token=Time.from_floats(slower * token.low, between, slower * token.high),
            request=Time.from_floats(
                self.request_seconds(first.low, token.low),
                seconds,
                self.request_seconds(first.high, token.high),
            ),
            draws=np.log(drawn / seconds),
        )


def question_of(
    model: ServedModel,
    requests: Requests,
    layout: Layout,
    kind: Kind,
    sequences: int,
    cached: float = 0.0,
) -> ServingQuestion:
    """Make a forecaster's question about the time of one phase of a request.

    The phase "first" (``kind``) lasts to the answer's first token, "token" from one token to the
    next. The cache already has ``cached`` tokens of each prompt.
    """
    return ServingQuestion(
        form=model.form,
        model=model.name,
        software=layout.engine.name,
        precision=model.precision,
        weight_bytes=model.weight_bytes,
        device=layout.place.device,
        count=layout.devices,
        kind=kind,
        prompt=requests.prompt,
        output=requests.output,
        sequences=sequences,
        interleaved=sequences > 1,
        cached=cached,
    )


def predicted_capacities(
    forecaster: ServingForecaster, model: ServedModel, layouts: Iterable[Layout], requests: Requests
) -> tuple[list[tuple[Deployment, Capacity]], list[Refusal]]:
    """Choose the layout that answers most requests, for each machine and engine.

    Machines on which no layout keeps the latency bounds of ``requests`` are returned as refusals.
    """
    options = _layout_forecasts(forecaster, model, layouts, requests)
    capacities, refusals = [], []
    served = group_by(options, attrgetter("layout.place.machine", "layout.engine.name"))
    for alike in served.values():
        sufficient = [option for option in alike if requests.bounds_met(*option.latencies)]
        if sufficient:
            best = min(sufficient, key=lambda option: option.predicted_seconds)
            capacities.append((best.layout.deployment(model.precision), best.capacity))
        else:
            name, times = alike[0].layout.place.machine.name, [each.latencies for each in alike]
            refusals.append(Refusal.too_slow(name, times))
    return capacities, refusals


def _layout_forecasts(
    forecaster: ServingForecaster, model: ServedModel, layouts: Iterable[Layout], requests: Requests
) -> Iterator[_LayoutForecast]:
    """Yield a forecast for each layout and each number of sequences that a copy serves at once."""
    options = []
    for layout in layouts:
        for sequences in layout.sequences(requests):
            cached = layout.cached_tokens(requests, sequences)
            ask = partial(question_of, model, requests, layout, cached=cached)
            phases = ask("first", 1), ask("token", 1), ask("token", sequences)
            options.append((layout, sequences, phases))
    questions = dict.fromkeys(question for *_, phases in options for question in phases)
    forecasts = dict(zip(questions, forecaster.forecasts([*questions]), strict=True))
    for layout, sequences, phases in options:
        first, alone, token = (forecasts[question] for question in phases)
        yield _LayoutForecast(layout, sequences, requests.output, first, alone, token)


def fitting(
    model: ServedModel, places: Iterable[Place], engines: Sequence[Engine], requests: Requests
) -> tuple[list[Layout], list[Refusal]]:
    """Layouts in which each copy has room for a request, and refusals of the other machines.

    The engine of a machine is the first of ``engines`` that serves the precision on the machine.
    """
    names = either([engine.name for engine in engines])
    unserved = f"not served by {names} in {model.precision}" if names else "not measured"
    kept = model.form.kept_tokens(requests.tokens)
    needed = (model.weight_bytes + model.cached_bytes(1) * kept) / USABLE_MEMORY
    too_large = f"does not fit: weights and a request need {render_memory(needed)}"
    layouts, refusals = [], []
    for place in places:
        serving = [engine for engine in engines if engine.serves(place, model.precision)]
        options = [each for engine in serving[:1] for each in layouts_of(model, place, engine)]
        large = [layout for layout in options if layout.room >= kept]
        layouts += large
        if not serving:
            known = isinstance(place.device, CpuForm) or place.capability is not None
            more = "" if known else ": no compute_capability is known of its accelerator"
            refusals.append(Refusal(place.machine.name, f"{unserved}{more}"))
        elif not large:
            has = f"has {render_memory(place.memory_bytes * place.count)}"
            refusals.append(Refusal(place.machine.name, too_large, has))
    return layouts, refusals
