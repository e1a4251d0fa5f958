"""Forecasts of decoder training, learnt from published trainings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epochcost.predict.decoders.forms import DecoderForm, form_of
from epochcost.predict.decoders.training import Efficiencies, Law, TrainingForecaster
from epochcost.predict.decoders.training_rows import (
    Method,
    TrainingQuestion,
    TrainingRow,
    training_rows,
)
from epochcost.specs.catalogue import Catalogue


@pytest.fixture(scope="module")
def rows(catalogue: Catalogue) -> list[TrainingRow]:
    """Published trainings that a forecaster can learn from."""
    return [row for row in training_rows(catalogue) if row.learnable]


@pytest.fixture(scope="module")
def forecaster(rows: list[TrainingRow]) -> TrainingForecaster:
    """A forecaster that learnt from all ``rows``."""
    return TrainingForecaster(rows)


@pytest.fixture(scope="module")
def question(catalogue: Catalogue) -> TrainingQuestion:
    """LoRA of Llama 3.1 8B on one A10G, with four sequences of 512 tokens in a batch."""
    decoder = catalogue.models["llama-3.1-8b"].decoder
    form = form_of(decoder) if decoder else None
    assert form is not None
    device = catalogue.devices["a10g"]
    return TrainingQuestion(form, "llama-3.1-8b", "lora", "bf16", device, 1, 512, 2048)


def test_chips_without_rows_are_forecast(rows: list[TrainingRow]) -> None:
    """With each chip withheld, errors are small and ranges contain about nine in ten rows."""
    errors, in_range = [], []
    for chip in {row.question.device.chip for row in rows}:
        forecaster = TrainingForecaster([row for row in rows if row.question.device.chip != chip])
        left_out = [row for row in rows if row.question.device.chip == chip]
        forecasts = forecaster.forecasts([row.question for row in left_out])
        for row, forecast in zip(left_out, forecasts, strict=True):
            rate = row.tokens_per_second
            errors.append(abs(np.log(forecast.seconds * rate)))
            in_range.append(forecast.low <= 1 / rate <= forecast.high)
    assert len(errors) > 500
    median, high = np.expm1(np.percentile(errors, [50, 90]))
    assert median < 0.2
    assert high < 0.5
    assert 0.87 <= np.mean(in_range) <= 0.98


@pytest.mark.parametrize("rate", ["peak_fp16_tflops", "memory_gb_per_second"])
def test_faster_devices_never_train_slower(
    forecaster: TrainingForecaster, question: TrainingQuestion, rate: str
) -> None:
    """A device with twice the peak or twice the bandwidth trains faster."""
    better = question.device.model_copy(update={rate: 2 * getattr(question.device, rate)})
    slow, fast = forecaster.forecasts([question, replace(question, device=better)])
    assert fast.seconds < slow.seconds


_FORMS = st.builds(
    lambda layers, width, share, experts: DecoderForm(
        layers=layers,
        hidden=128 * width,
        attention=128 * width,
        parameters=12 * layers * (128 * width) ** 2,
        active_parameters=int(12 * layers * (128 * width) ** 2 * (share if experts else 1)),
        cached_numbers_per_token=256 * layers * width,
        vocabulary=128_000,
        experts=experts,
        experts_per_token=min(experts, 4),
    ),
    layers=st.integers(1, 128),
    width=st.integers(2, 128),
    share=st.floats(0.03, 1.0),
    experts=st.sampled_from((0, 8, 256)),
)


@settings(deadline=None, max_examples=100)
@given(
    form=_FORMS,
    method=st.sampled_from(("pretraining", "full", "lora", "qlora")),
    precision=st.sampled_from(("bf16", "fp8")),
    chip=st.sampled_from(("geforce-rtx-3090", "l4", "a100-sxm4-80-gb", "h100-sxm5", "b200")),
    count=st.sampled_from((1, 8, 1024)),
    length=st.sampled_from((128, 2048, 131_072)),
    recomputed=st.sampled_from((0.0, 1.0)),
    sharded=st.booleans(),
)
def test_nothing_is_faster_than_the_peak_rates(
    forecaster: TrainingForecaster, catalogue: Catalogue, chip: str, **asked: Any
) -> None:
    """Forecast, range and draws are no faster than the products and attention at peak rates."""
    device, form = catalogue.devices[chip], asked["form"]
    tokens = 2 * asked["length"]
    question = TrainingQuestion(model="any", device=device, tokens=tokens, **asked)
    half = eighth = float(device.peak_fp16_tflops or 0) * 1e12
    if question.precision == "fp8" and question.method != "qlora" and device.generation != "Ampere":
        eighth = float(device.peak_int8_tops or 0) * 1e12
    # Two for each direction, and two for the gradients of weights that change.
    each = (4 if question.frozen else 6) + 2 * question.recomputed
    attention = (3 + question.recomputed) * 2 * question.length * form.hidden * form.layers
    least = (each * form.active_parameters / eighth + attention / half) / question.count
    least *= 1 - 1e-3
    [forecast] = forecaster.forecasts([question])
    assert least < forecast.low <= forecast.seconds <= forecast.high
    assert least < forecast.seconds * np.exp(forecast.draws.values.min())


TWO_MACHINES = {"method": "full", "count": 16, "machines": 2, "network": 1.25e9}


@pytest.mark.parametrize(
    ("model", "changes", "passes"),
    [
        ("llama-3.1-8b", {}, 2),
        ("llama-3.1-8b", {"method": "qlora", "recomputed": 1.0}, 3),
        ("llama-3.1-8b", {"method": "pretraining", "precision": "fp8"}, 3),
        ("llama-3.1-8b", TWO_MACHINES, 3),
        ("mixtral-8x7b", {"method": "full", "count": 4}, 3),
        ("mixtral-8x7b", {**TWO_MACHINES, "sharded": True}, 3),
    ],
    ids=["LoRA", "QLoRA", "compiled", "copies", "experts", "shared experts"],
)
def test_seconds_by_hand(
    question: TrainingQuestion,
    catalogue: Catalogue,
    model: str,
    changes: dict[str, Any],
    passes: int,
) -> None:
    """Seconds per token of 4 sequences of 512 tokens on H100s equal the documented formula.

    Copies send 2 bytes of each gradient and receive 2 of each sum. If experts are shared, weights
    that are not experts' are gathered in each pass, and tokens travel to two experts and back.
    """
    decoder, device = catalogue.models[model].decoder, catalogue.devices["h100-sxm5"]
    form = form_of(decoder) if decoder else None
    assert form is not None
    asked = replace(question, form=form, device=device, **changes)
    e = Efficiencies(0.6, 0.8, 1e-3, 0.9, 20.0, 1.5, 1.03, 0.5, 0.7, 60.0, 0.15)
    half, bandwidth, tokens = 989.4e12, 3.35e12, 2048
    rate = half * (2 * 0.8 if asked.precision == "fp8" else 1)
    products = 2 * form.active_parameters * passes / rate * (half / bandwidth / 150) ** 0.15
    backwards = 4 if changes.get("recomputed") else 3
    attention = 2 * 512 * form.hidden * form.layers * backwards
    computed = products + attention / (150 * bandwidth * half) ** 0.5 / e.attention
    activations = passes * form.layers * form.hidden + form.vocabulary / 3
    busy = computed / e.products + e.traffic * activations / bandwidth
    busy *= (1.5 if form.experts else 1) * e.doubling ** np.log2(asked.count)
    read = 2 * min(form.parameters, 4 * form.active_parameters) * e.weights
    read += form.parameters * e.unpacking * (asked.method == "qlora")
    busy += passes * read / bandwidth / tokens
    sent = 2 * 2 * form.parameters / 1.25e9 / tokens if asked.network else 0
    if asked.sharded:
        sent = 2 * passes * asked.gathered_parameters / 1.25e9 / tokens
        sent += 2 * form.hidden * 2 * form.layers * 2 * 2 * 15 / 16 / (1.25e9 * 2 / 16)
    layers = e.layer * passes * form.layers / tokens
    layers *= 0.3 if asked.method == "pretraining" else 1
    seconds = (max(busy, sent / e.link) + layers) / asked.count
    assert float(np.exp(Law([asked])(np.log(e)))[0]) == pytest.approx(seconds, rel=1e-3)


def test_experts_stay_on_their_devices(question: TrainingQuestion, catalogue: Catalogue) -> None:
    """Only the other weights of Mixtral 8x7B are gathered; more devices than experts share them."""
    decoder = catalogue.models["mixtral-8x7b"].decoder
    form = form_of(decoder) if decoder else None
    assert form is not None
    experts = 32 * 8 * 3 * 4096 * 14336
    assert form.expert_parameters == pytest.approx(experts, rel=1e-3)
    eight = replace(question, form=form, count=8, sharded=True)
    assert eight.gathered_parameters == pytest.approx(form.parameters - experts, rel=0.02)
    sixteen = replace(eight, count=16)
    shared = sixteen.gathered_parameters - eight.gathered_parameters
    assert shared == pytest.approx(experts / 8, rel=1e-3)
    # A dense model of the same size and work gathers all its weights.
    dense = replace(eight, form=replace(form, experts=0, experts_per_token=0))
    assert dense.gathered_parameters == form.parameters


def test_machines_may_hold_different_layers(
    forecaster: TrainingForecaster, question: TrainingQuestion
) -> None:
    """A slow network slows a sharded fine-tuning down, and a pre-training much less."""
    alone = replace(question, count=64, sharded=True, machines=8)
    slow = replace(alone, network=5e9)

    def slowdown(method: Method) -> float:
        settings = [replace(each, method=method) for each in (alone, slow)]
        fast, over_network = forecaster.law_seconds(settings)
        return float(over_network / fast)

    assert slowdown("full") > 2
    assert slowdown("pretraining") < 1.3


def test_ranges_belong_together(forecaster: TrainingForecaster, question: TrainingQuestion) -> None:
    """Two equal questions have the same forecast, draws and range."""
    first, second = forecaster.forecasts([question, question])
    assert first == second
    assert np.allclose(first.draws.values, second.draws.values, atol=0.01)
    assert first.low < first.seconds < first.high
