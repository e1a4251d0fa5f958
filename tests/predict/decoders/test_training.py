"""Forecasts of decoder training, learnt from published trainings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest

from epochcost.predict.decoders.forms import form_of
from epochcost.predict.decoders.training import (
    TrainingForecaster,
    TrainingQuestion,
    learnable,
    question_of,
)
from epochcost.predict.decoders.training_rows import TrainingRow, training_rows
from epochcost.specs.catalogue import Catalogue


@pytest.fixture(scope="module")
def rows(catalogue: Catalogue) -> list[TrainingRow]:
    """Published trainings that a forecaster can learn from."""
    return [row for row in training_rows(catalogue) if learnable(row)]


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
    for chip in {row.device.chip for row in rows if row.device}:
        forecaster = TrainingForecaster(
            [row for row in rows if row.device and row.device.chip != chip]
        )
        left_out = [row for row in rows if row.device and row.device.chip == chip]
        forecasts = forecaster.forecasts([question_of(row) for row in left_out])
        for row, forecast in zip(left_out, forecasts, strict=True):
            rate = row.tokens_per_second
            errors.append(abs(np.log(forecast.seconds * rate)))
            in_range.append(forecast.low <= 1 / rate <= forecast.high)
    assert len(errors) > 500
    median, high = np.expm1(np.percentile(errors, [50, 90]))
    assert median < 0.2
    assert high < 0.5
    assert 0.87 <= np.mean(in_range) <= 0.98


@pytest.mark.parametrize(
    "faster",
    [
        lambda device: {"peak_fp16_tflops": device.peak_fp16_tflops * 2},
        lambda device: {"memory_gb_per_second": device.memory_gb_per_second * 2},
    ],
)
def test_faster_devices_never_train_slower(
    faster: Callable[..., dict[str, Decimal]],
    forecaster: TrainingForecaster,
    question: TrainingQuestion,
) -> None:
    """A device with twice the peak or twice the bandwidth trains faster."""
    better = question.device.model_copy(update=faster(question.device))
    slow, fast = forecaster.forecasts([question, replace(question, device=better)])
    assert fast.seconds < slow.seconds


def test_methods_differ_by_what_they_compute(
    forecaster: TrainingForecaster, question: TrainingQuestion
) -> None:
    """QLoRA also unpacks weights; full training and checkpointing add about half a LoRA step."""
    seconds = forecaster.law_seconds(
        [
            question,
            replace(question, method="qlora"),
            replace(question, method="full"),
            replace(question, recomputed=1.0),
            replace(question, count=8, sharded=True),
        ]
    )
    lora, qlora, full, checkpointed, eight = seconds
    assert qlora > lora
    assert 1.3 * lora < full < 1.6 * lora
    assert full == pytest.approx(checkpointed, rel=0.05)
    assert lora / 8 < eight < lora


def test_ranges_belong_together(forecaster: TrainingForecaster, question: TrainingQuestion) -> None:
    """Two equal questions have the same forecast, draws and range."""
    first, second = forecaster.forecasts([question, question])
    assert first == second
    assert np.allclose(first.draws.values, second.draws.values, atol=0.01)
    assert first.low < first.seconds < first.high
