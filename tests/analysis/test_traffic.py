"""The few numbers that describe a decoder's times give the times of the law for any traffic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from epochcost.analysis.decoder_places import Place
from epochcost.analysis.machines import Machine
from epochcost.analysis.serving_capacity import ServedModel, question_of
from epochcost.analysis.tokens import Requests
from epochcost.analysis.traffic import DeviceTiming, predicted_timings
from epochcost.predict.decoders.law import ON_DEVICES, Law
from epochcost.predict.decoders.rows import ServingQuestion
from epochcost.predict.joint import Draws, Forecast
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.decoder import Decoder
from epochcost.specs.loader import load_catalogue

_SLOWER_UNDER_LOAD = 1.3
_ENDS = {"first": (0.8, 1.2), "token": (0.9, 1.1), "load": (0.7, 1.5)}


@pytest.fixture(scope="module", name="catalogue")
def catalogue_fixture() -> Catalogue:
    """The specs of the repository."""
    return load_catalogue(Path(__file__).parents[2])


class ByLaw:
    """Forecasts by the law alone, and 1.3 times as long under load; each kind has its range."""

    def forecasts(self, questions: Sequence[ServingQuestion]) -> list[Forecast]:
        """A forecast of each question."""
        return [self._forecast(question) for question in questions]

    def seconds(self, questions: Sequence[ServingQuestion]) -> list[float]:
        """The predicted seconds of each question."""
        return [forecast.seconds for forecast in self.forecasts(questions)]

    def _forecast(self, question: ServingQuestion) -> Forecast:
        seconds = float(np.exp(Law([question])(np.log(ON_DEVICES)))[0])
        seconds *= _SLOWER_UNDER_LOAD if question.interleaved else 1.0
        low, high = _ENDS["load" if question.interleaved else question.kind]
        return Forecast(seconds, low * seconds, high * seconds, Draws(0, (), np.zeros(1)))


def timing_of(decoder: Decoder, place: Place) -> DeviceTiming:
    """The timing of a decoder on one machine."""
    specs = SimpleNamespace(decoder=lambda _: decoder)
    market: Any = SimpleNamespace(
        inputs=SimpleNamespace(catalogue=specs, cache=None),
        forecasts_tokens=True,
        places=([place], []),
        evidence="",
        forecaster=ByLaw(),
    )
    (timing,) = predicted_timings(market, "some", "bf16")
    return timing


@example(window=128, windowed=32, power=2, prompt=9_000, output=500)
@given(
    window=st.sampled_from((None, 128, 900, 4096)),
    windowed=st.integers(1, 32),
    power=st.integers(1, 3),
    prompt=st.integers(1_000, 16_000),
    output=st.integers(1, 2_000),
)
def test_times_under_load_are_those_of_the_law(
    catalogue: Catalogue, window: int | None, windowed: int, power: int, prompt: int, output: int
) -> None:
    """Steps, cached tokens and read prompts add up to the law's times of first and other tokens."""
    layers = {"window": window, "windowed_layers": windowed if window else None}
    decoder = catalogue.decoder("llama-3.1-8b").model_copy(update=layers)
    device = catalogue.devices["h200-sxm"]
    machine = Machine("box", None, "Box", "cuda", 8)
    place = Place(machine, device, 1, float(device.memory_gib) * 2**30, Decimal("9.0"))
    timing = timing_of(decoder, place)
    form, count = timing.layouts[0].form, 2**power
    pairs = form.attended_pairs(prompt)
    read = float(np.dot(timing.read, (1, prompt, pairs)))
    in_cache = timing.cached * form.kept_tokens(prompt + output / 2)
    whole = timing.step[power] + count * in_cache + (count * read + timing.once) / output
    model = ServedModel.of("some", decoder, "bf16")
    assert model is not None
    requests = Requests(Decimal(1), prompt, output)
    asked = question_of(model, requests, timing.layouts[0], "token", count)
    (expected,) = ByLaw().forecasts([replace(asked, interleaved=True)])
    # With a window between two of the fitted lengths, the law bends between them.
    error = 0.1 if window == 4096 else 0.01
    assert timing.loaded * whole == pytest.approx(expected.seconds, rel=error)
    (expected,) = ByLaw().forecasts([replace(asked, kind="first", sequences=1, interleaved=False)])
    first = float(np.interp(read, *zip(*timing.first, strict=True)))
    assert first == pytest.approx(expected.seconds, rel=error)
    assert timing.spread == pytest.approx((0.8, 1.2, 0.9, 1.1, 0.7, 1.5))
