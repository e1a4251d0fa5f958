"""Forecasts of serving, learnt from published rows."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epochcost.predict.decoders.chips import CpuForm
from epochcost.predict.decoders.doubts import least_seconds
from epochcost.predict.decoders.forms import form_of
from epochcost.predict.decoders.rows import BITS, ServingQuestion, TokenRow, token_rows
from epochcost.predict.decoders.serving import ServingForecaster
from epochcost.specs.catalogue import Catalogue


@pytest.fixture(scope="module")
def rows(catalogue: Catalogue) -> tuple[TokenRow, ...]:
    """A few hundred rows of three programs on some devices and a few processors."""
    chips = {"l4", "h100-sxm5", "b200", "a10", "a100-pcie-80-gb", "xeon-8481c", "graviton3"}
    return tuple([row for row in token_rows(catalogue) if row.line.cells["chip"] in chips][::12])


@pytest.fixture(scope="module")
def forecaster(rows: tuple[TokenRow, ...]) -> ServingForecaster:
    """A forecaster that learnt from the rows."""
    return ServingForecaster(rows)


@pytest.fixture(scope="module")
def question(catalogue: Catalogue) -> ServingQuestion:
    """Time per token of Llama 3.1 8B in vLLM on one L4, for four sequences."""
    decoder = catalogue.models["llama-3.1-8b"].decoder
    assert decoder is not None
    form = form_of(decoder)
    assert form is not None
    return ServingQuestion(
        form, "llama-3.1-8b", "vLLM", "bf16", 2.0 * form.parameters, catalogue.devices["l4"],
        1, "token", 1000, 200, 4, interleaved=True,
    )  # fmt: skip


def test_rows_that_were_learnt_from_lie_in_their_ranges(
    forecaster: ServingForecaster, rows: tuple[TokenRow, ...]
) -> None:
    """At least 85 % of the learnt rows lie in the range of their forecast."""
    timed = [row for row in rows if row.seconds is not None]
    forecasts = forecaster.forecasts([row.question for row in timed])
    in_range = [
        forecast.low <= (row.seconds or 0) <= forecast.high
        for row, forecast in zip(timed, forecasts, strict=True)
    ]
    assert np.mean(in_range) >= 0.85


def test_weights_in_fp4_are_multiplied_in_16_bits_without_fp4_units(
    question: ServingQuestion, catalogue: Catalogue
) -> None:
    """On H100, a prompt with weights in fp4 is read at most at the peak rate in 16 bits."""
    prompt = replace(question, kind="first", interleaved=False, sequences=1)
    hopper, blackwell = (
        [
            least_seconds(replace(prompt, device=catalogue.devices[name], precision=precision))
            for precision in ("bf16", "fp4")
        ]
        for name in ("h100-sxm5", "b200")
    )
    assert hopper[0] == pytest.approx(hopper[1], rel=0.01)
    assert blackwell[0] > 3 * blackwell[1]


def test_seconds_alone_are_those_of_the_forecasts(
    forecaster: ServingForecaster, rows: tuple[TokenRow, ...]
) -> None:
    """Seconds without intervals are those of the forecasts, on accelerators and on CPUs."""
    questions = [row.question for row in rows[:: len(rows) // 200]]
    assert len({type(question.device) for question in questions}) == 2
    expected = [forecast.seconds for forecast in forecaster.forecasts(questions)]
    assert forecaster.seconds(questions) == pytest.approx(expected, rel=1e-9)


def test_a_device_without_rows_has_a_wider_range(
    forecaster: ServingForecaster, question: ServingQuestion, catalogue: Catalogue
) -> None:
    """The range of a device without rows is wider than that of a device with rows."""
    with_rows, unknown = forecaster.forecasts(
        [question, replace(question, device=catalogue.devices["tesla-t4"])]
    )
    assert unknown.high / unknown.low > with_rows.high / with_rows.low > 1


def test_the_run_of_a_reader_has_a_wider_range_and_the_same_ratios(
    forecaster: ServingForecaster,
    question: ServingQuestion,
    catalogue: Catalogue,
    rows: tuple[TokenRow, ...],
) -> None:
    """A time that no source measured is less certain, but not the ratio between two machines.

    The added deviation is 0.35 for tokens on one device, else 0.5. A published row has one of 0.1,
    so that no range is narrower than a factor of 1.4.
    """
    known = next(
        row.question.source
        for row in rows
        if (row.question.software, row.question.kind) == ("vLLM", "token")
    )
    machines = [question, replace(question, device=catalogue.devices["h100-sxm5"])]
    widths, deviations = {}, {}
    for source in ("", known):
        first, second = forecaster.forecasts([replace(each, source=source) for each in machines])
        widths[source] = first.high / first.low
        deviations[source] = np.std(first.draws.values - second.draws.values)
    assert widths[""] > 1.5 * widths[known] > 1.5 * 1.4
    assert deviations[""] == pytest.approx(deviations[known], rel=0.2)
    added = []
    for count in (1, 2):
        on_some = [replace(question, count=count, source=source) for source in ("", known)]
        new, old = (np.log(each.high / each.seconds) for each in forecaster.forecasts(on_some))
        added.append(new**2 - old**2)
    assert added[1] / added[0] == pytest.approx((0.5 / 0.35) ** 2)


@settings(max_examples=25, deadline=None)
@given(
    bandwidth=st.floats(50, 20_000),
    faster=st.floats(1, 10),
    software=st.sampled_from(("vLLM", "TensorRT-LLM", "llama.cpp", "something new")),
    sequences=st.sampled_from((1, 8, 300)),
    count=st.sampled_from((1, 4)),
)
def test_more_bandwidth_never_decodes_slower(
    forecaster: ServingForecaster,
    question: ServingQuestion,
    bandwidth: float,
    faster: float,
    software: str,
    sequences: int,
    count: int,
) -> None:
    """Of two devices that differ in bandwidth only, the faster memory is never slower."""
    device = question.device
    assert not isinstance(device, CpuForm)
    devices = [
        device.model_copy(update={"memory_gb_per_second": rate})
        for rate in (bandwidth, faster * bandwidth)
    ]
    changed = replace(question, software=software, sequences=sequences, count=count)
    slow, fast = forecaster.forecasts([replace(changed, device=device) for device in devices])
    assert fast.seconds <= slow.seconds * (1 + 1e-9)


@settings(deadline=None, max_examples=50)
@given(
    software=st.sampled_from(["vLLM", "llama.cpp", "TensorRT-LLM"]),
    precision=st.sampled_from(["bf16", "fp8", "int4"]),
    chip=st.sampled_from(["l4", "h100-sxm5", "b200", "geforce-rtx-4090"]),
    kind=st.sampled_from(["first", "token"]),
    sequences=st.sampled_from([1, 8, 64]),
    prompt=st.sampled_from([1, 256, 32_000]),
)
def test_nothing_is_faster_than_the_peak_rates(
    forecaster: ServingForecaster, catalogue: Catalogue, question: ServingQuestion, **changes: Any
) -> None:
    """Forecast, range and draws are no faster than the reads and the products at peak rates."""
    device = catalogue.devices[changes.pop("chip")]
    asked = replace(question, device=device, **changes)
    asked = replace(asked, weight_bytes=asked.form.parameters * BITS[asked.precision] / 8)
    [forecast] = forecaster.forecasts([asked])
    least = least_seconds(asked) * (1 - 1e-3)
    assert least < forecast.low <= forecast.seconds <= forecast.high
    assert least < forecast.seconds * np.exp(forecast.draws.values.min())


def test_one_token_more_takes_about_as_long(
    forecaster: ServingForecaster, question: ServingQuestion, catalogue: Catalogue
) -> None:
    """Reading one token more takes about as long, at each length at which rows are grouped."""
    for name, prompt in product(("l4", "h100-sxm5", "b200"), (32, 128, 2048, 8192)):
        changed = {"device": catalogue.devices[name], "kind": "first", "interleaved": False}
        asked = replace(question, **changed, sequences=1, prompt=prompt)
        less, more = forecaster.seconds([asked, replace(asked, prompt=prompt + 1)])
        assert 0.998 < more / less < 1.02, (name, prompt)


def test_draws_of_one_model_belong_together(
    forecaster: ServingForecaster, question: ServingQuestion
) -> None:
    """Two batch sizes of a machine share their draws; prefill and decoding share less."""
    low, high, first = forecaster.forecasts(
        [question, replace(question, sequences=64), replace(question, kind="first")]
    )
    assert (low.draws.seed, low.draws.weights) == (high.draws.seed, high.draws.weights)
    assert abs(np.corrcoef(low.draws.values, first.draws.values)[0, 1]) < 1


def test_no_rows_give_wide_ranges(question: ServingQuestion) -> None:
    """A forecaster without rows uses the law's priors and gives a wide range."""
    (forecast,) = ServingForecaster(()).forecasts([question])
    assert forecast.high / forecast.low > 4


def test_what_is_fitted_is_kept(
    rows: tuple[TokenRow, ...], question: ServingQuestion, tmp_path: Path
) -> None:
    """A second forecaster reads the first one's fit and gives the same forecasts."""
    few = rows[::3]
    first = ServingForecaster(few, tmp_path).forecasts([question])
    files = sorted(tmp_path.glob("serving-*.json"))
    assert len(files) == 1
    assert ServingForecaster(few, tmp_path).forecasts([question]) == first


def test_a_device_may_be_slow_under_load_only(
    rows: tuple[TokenRow, ...], question: ServingQuestion
) -> None:
    """If loads of a device take three times as long, single streams are predicted as before."""
    slowed = [
        replace(row, seconds=3 * row.seconds)
        if row.seconds and row.question.interleaved and row.question.device == question.device
        else row
        for row in rows
    ]
    alone = replace(question, sequences=1, interleaved=False)
    before, after = (
        ServingForecaster(each).forecasts([question, alone]) for each in (rows, slowed)
    )
    load, stream = (later.seconds / now.seconds for now, later in zip(before, after, strict=True))
    assert load > 1.5 * stream


@pytest.mark.parametrize(("device", "sequences"), [("l4", 128), ("h100-sxm5", 256)])
def test_rates_at_full_load_are_learnt_from(
    rows: tuple[TokenRow, ...],
    question: ServingQuestion,
    catalogue: Catalogue,
    device: str,
    sequences: int,
) -> None:
    """A row without a batch size counts as one with the most sequences that fit, at most 256.

    Sequences are powers of two. An L4 has room for 169 of 256 tokens.
    """
    asked = replace(question, device=catalogue.devices[device], prompt=128, output=128)
    line = replace(rows[0].line, cells={**rows[0].line.cells, "count": "1"})
    timed = TokenRow(line, replace(asked, sequences=sequences), sequences / 10.0, None)
    loaded = replace(
        timed, question=replace(asked, sequences=1), seconds=None, tokens_per_second=10.0
    )
    now, full, same = (
        ServingForecaster((*rows[::3], *more)).forecasts([asked])[0]
        for more in ((), (loaded,), (timed,))
    )
    assert full == same
    assert full.seconds > now.seconds


@pytest.mark.parametrize("known", [True, False])
def test_a_rate_of_several_copies_counts_as_that_of_each(
    rows: tuple[TokenRow, ...], question: ServingQuestion, known: bool
) -> None:
    """Eight devices with a copy of the model each are learnt from as one with an eighth as much."""

    def row(devices: int) -> TokenRow:
        cells = {**rows[0].line.cells, "count": str(devices)}
        asked = replace(question, sequences=4 * devices if known else 1)
        seconds = 0.1 if known else None
        return TokenRow(replace(rows[0].line, cells=cells), asked, seconds, 40.0 * devices)

    single, eight = (ServingForecaster([row(devices)]).seconds([question]) for devices in (1, 8))
    assert eight == pytest.approx(single)
