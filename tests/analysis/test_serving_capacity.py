"""Predicted capacity of machines: memory, hand-computed sums, bounds, and monotony."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcost.analysis.decoder_places import Place
from epochcost.analysis.machines import Machine
from epochcost.analysis.serving_capacity import (
    ENGINES,
    Engine,
    ServedModel,
    fitting,
    layouts_of,
    predicted_capacities,
)
from epochcost.analysis.tokens import Capacity, Deployment, Requests, machines_for
from epochcost.predict.decoders.rows import ServingQuestion
from epochcost.predict.decoders.serving import ServingForecaster
from epochcost.predict.joint import DRAWS, Draws, Forecast
from epochcost.specs.decoder import Decoder, ServedPrecision
from epochcost.specs.hardware import Device

_GIB = 2**30
VLLM = ENGINES[0]
# A token takes 2 · 10 · 4 · 50 numbers of two bytes of cache: 8,000 bytes.
DECODER = Decoder(
    layers=10,
    heads=8,
    key_value_heads=4,
    head_size=50,
    vocabulary=1000,
    context=4096,
    hidden=400,
    parameters=1_000_000_000,
)
DEVICE = Device(
    id="card",
    name="Card",
    chip="Card",
    generation="Ampere",
    memory_gib=Decimal(4),
    memory_gb_per_second=Decimal(500),
    peak_fp32_tflops=Decimal(20),
    peak_fp16_tflops=Decimal(100),
    source="made up for a test",
)


def model(precision: ServedPrecision = "bf16") -> ServedModel:
    """A model of a billion parameters."""
    served = ServedModel.of("billion", DECODER, precision)
    assert served is not None
    return served


def place(count: int = 1, gib: float = 4, capability: str = "8.0") -> Place:
    """A machine with some accelerators."""
    device = DEVICE.model_copy(update={"memory_gib": Decimal(str(gib))})
    machine = Machine("box", None, "Box", "cuda", 8)
    return Place(machine, device, count, gib * _GIB, Decimal(capability))


class Made:
    """Synthetic forecasts: a prompt takes 0.1 s, a token 10 ms plus 1 ms for each more sequence."""

    def forecasts(self, questions: Sequence[ServingQuestion]) -> list[Forecast]:
        """Ranges of a fifth to either side; two devices take three fifths of the time."""
        return [self._forecast(question) for question in questions]

    def _forecast(self, question: ServingQuestion) -> Forecast:
        seconds = 0.1 if question.kind == "first" else 0.009 + 0.001 * question.sequences
        if question.sequences > 1:
            seconds += 0.1 * question.sequences / question.output
        seconds *= 0.6 ** np.log2(question.count)
        draws = Draws(0, (), np.linspace(-0.1, 0.1, DRAWS))
        return Forecast(seconds, seconds / 1.2, seconds * 1.2, draws)


REQUESTS = Requests(Decimal(1), 1000, 100)


def best(
    at: Place, requests: Requests = REQUESTS, precision: ServedPrecision = "bf16"
) -> tuple[Deployment, Capacity] | None:
    """The best capacity with vLLM; None if there is none."""
    layouts, _ = fitting(model(precision), [at], [VLLM], requests)
    capacities, _ = predicted_capacities(Made(), model(precision), layouts, requests)
    return capacities[0] if capacities else None


def test_memory_decides_how_many_sequences_there_are() -> None:
    """0.9 · 4 GiB minus 2 GB of weights hold 1.87 GB of cache, 212 requests of 8.8 MB.

    Eight devices store four heads twice.
    """
    (layout,) = layouts_of(model(), place(), VLLM)
    assert layout.room == pytest.approx((0.9 * 4 * _GIB - 2e9) / 8000)
    *_, eight = layouts_of(model(), place(8), VLLM)
    assert eight.room == pytest.approx((8 * 0.9 * 4 * _GIB - 2e9) / 16_000)
    assert max(layout.sequences(REQUESTS)) == 128
    assert list(layout.sequences(replace(REQUESTS, prompt=10_000))) == [1, 2, 4, 8, 16]
    assert list(layout.sequences(replace(REQUESTS, prompt=100_000, output=1))) == [1, 2]


def test_a_request_is_its_prompt_and_its_tokens() -> None:
    """128 at once: a token takes 9 + 128 ms, and 128 prompts of 0.1 s in a hundred tokens."""
    answer = best(place())
    assert answer is not None
    deployment, capacity = answer
    assert (deployment.software, deployment.precision, deployment.kind) == (
        "vLLM", "bf16", "predicted",
    )  # fmt: skip
    assert capacity.sequences == 128
    token = 0.009 + 0.128 + 0.128
    assert float(capacity.request.mean) == pytest.approx(100 * token / 128)
    assert float(capacity.first.mean) == pytest.approx(0.1)
    assert float(capacity.token.mean) == pytest.approx((100 * token - 0.1) / 99)
    assert float(capacity.token.high) == pytest.approx(1.2 * (100 * token - 0.1) / 99)
    assert float(capacity.request.high) == pytest.approx(1.2 * 100 * token / 128)
    assert capacity.draws is not None
    assert np.std(capacity.draws) == pytest.approx(0.2 / np.sqrt(12), rel=0.1)


def test_a_bound_on_tokens_leaves_fewer_sequences() -> None:
    """One sequence takes 10 ms a token, two 11 ms and one prompt in a hundred tokens."""
    for bound, sequences in (("0.0105", 1), ("0.0125", 2), ("0.009", None)):
        answer = best(place(), replace(REQUESTS, token_seconds=Decimal(bound)))
        assert (answer and answer[1].sequences) == sequences
    alone = best(place(), replace(REQUESTS, token_seconds=Decimal("0.0105")))
    assert alone is not None
    assert float(alone[1].request.mean) == pytest.approx(0.1 + 99 * 0.01)


def test_devices_hold_copies_or_share_one() -> None:
    """Two devices on one copy do less than two copies; if a copy does not fit, they share."""
    answer = best(place(count=4))
    assert answer is not None
    assert (answer[0].copies, answer[0].tensor_parallel) == (4, 1)
    alone = best(place())
    assert alone is not None
    assert answer[1].request.mean * 4 == pytest.approx(alone[1].request.mean)
    small = best(place(count=4, gib=2))
    assert small is not None
    assert (small[0].copies, small[0].tensor_parallel) == (2, 2)
    quick = best(place(count=4), replace(REQUESTS, first_seconds=Decimal("0.05")))
    assert quick is not None
    assert (quick[0].copies, quick[0].tensor_parallel) == (1, 4)


def test_who_is_left_out_is_said_with_its_reason() -> None:
    """Too old for the software, too small for the weights, too slow for the bounds."""
    layouts, refusals = fitting(
        model(), [place(), place(gib=2), place(capability="6.0")], [VLLM], REQUESTS
    )
    assert len(layouts) == 1
    small, old = refusals
    assert small.reason == "does not fit: weights and a request need 2.1 GiB"
    assert small.detail == "has 2.0 GiB"
    _, (long,) = fitting(model(), [place(gib=2)], [VLLM], replace(REQUESTS, prompt=100_000))
    assert long.reason == "does not fit: weights and a request need 2.9 GiB"
    assert old.reason == "not served by vLLM in bf16"
    _, (turing,) = fitting(model("fp4"), [place(capability="7.5")], [VLLM], REQUESTS)
    assert turing.reason == "not served by vLLM in fp4"
    unstated = replace(place(), capability=None)
    _, (unknown,) = fitting(model(), [unstated], [VLLM], REQUESTS)
    assert unknown.reason == f"{old.reason}: no compute_capability is known of its accelerator"
    hurried = replace(REQUESTS, first_seconds=Decimal("0.01"))
    capacities, (late,) = predicted_capacities(Made(), model(), layouts, hurried)
    assert capacities == []
    assert late.detail == "first token 100 ms, each further 10 ms"


def test_fewer_bits_fit_where_more_do_not() -> None:
    """A billion weights of half a byte with scales fit into 1 GiB, of two bytes they do not."""
    assert best(place(gib=1)) is None
    assert best(place(gib=1), precision="int4") is not None


REAL = ServingForecaster(())


def real(at: Place, requests: Requests) -> list[tuple[Deployment, Capacity]]:
    """Capacities by the uncorrected law, in every software."""
    layouts, _ = fitting(model(), [at], ENGINES, requests)
    return predicted_capacities(REAL, model(), layouts, requests)[0]


_SHARES = st.decimals(0, 1, places=2)
_LENGTHS = st.integers(1, 3000)


@given(prompt=_LENGTHS, output=st.integers(1, 1000), shares=st.tuples(_SHARES, _SHARES))
def test_a_cached_prompt_never_costs_more(
    prompt: int, output: int, shares: tuple[Decimal, Decimal]
) -> None:
    """A larger cached share takes less time for a request."""
    seconds = [
        min(
            float(capacity.request.mean)
            for _, capacity in real(
                place(count=2), Requests(Decimal(1), prompt, output, cached_share=share)
            )
        )
        for share in sorted(shares)
    ]
    assert seconds[1] <= seconds[0] * (1 + 1e-9)


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: str(engine.name))
def test_the_last_token_of_a_prompt_is_never_cached(engine: Engine) -> None:
    """A prompt that is wholly in the cache takes as long as one that lacks only its last token."""
    whole = replace(REQUESTS, prompt=500, cached_share=Decimal(1))
    layouts = [*layouts_of(model(), place(), engine)]
    first, almost = (
        predicted_capacities(REAL, model(), layouts, requests)[0][0][1].first
        for requests in (whole, replace(whole, cached_share=Decimal("0.998")))
    )
    assert first == almost
    assert first.mean > 0


@given(
    gib=st.floats(0.5, 200),
    more=st.floats(1, 10),
    count=st.sampled_from([1, 2, 4, 8]),
    prompt=_LENGTHS,
    precision=st.sampled_from(["bf16", "fp8", "int4"]),
)
def test_more_memory_never_fits_less(
    gib: float, more: float, count: int, prompt: int, precision: ServedPrecision
) -> None:
    """A machine with more memory holds at least as many copies and sequences."""
    requests = replace(REQUESTS, prompt=prompt)
    less, larger = (
        fitting(model(precision), [place(count, size)], ENGINES, requests)[0]
        for size in (gib, gib * more)
    )
    layouts = {(layout.engine.name, layout.devices): layout for layout in larger}
    for layout in less:
        again = layouts[layout.engine.name, layout.devices]
        assert set(layout.sequences(requests)) <= set(again.sequences(requests))


@given(rates=st.tuples(*[st.decimals("0.001", "0.799", places=3)] * 2), prompt=_LENGTHS)
def test_a_machine_with_less_to_do_never_costs_less_a_token(
    rates: tuple[Decimal, Decimal], prompt: int
) -> None:
    """While one machine suffices (80 % busy), the cost of a token rises as the load falls."""
    (_, capacity), *_ = real(place(), replace(REQUESTS, prompt=prompt))
    low, high = (rate * capacity.per_second for rate in sorted(rates))
    costs = [machines_for(rate, capacity.request.mean) / rate for rate in (low, high)]
    assert costs[0] >= costs[1]
