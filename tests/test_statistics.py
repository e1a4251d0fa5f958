"""The interval of the mean covers the mean as promised, for independent and dependent series."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from epochcost.statistics.correlated_noise import (
    drifts_to_try,
    noise_models,
    round_variances_to_try,
)
from epochcost.statistics.interval import (
    autocorrelation_time,
    block_length,
    mean_interval,
    relative_half_width,
)
from epochcost.statistics.quantiles import quantiles, student_quantile
from epochcost.statistics.summary import outliers, summarise

TRUE_MEAN = 10.0


def traces(count: int, length: int, memory: float, skewed: bool = False) -> NDArray[np.float64]:
    """Draw ``count`` first-order autoregressive series of ``length`` around ``TRUE_MEAN``."""
    rng = np.random.default_rng(20161121)
    shocks = rng.standard_normal((count, 300 + length))
    if skewed:
        shocks = rng.exponential(1, shocks.shape) - 1
    states = np.zeros_like(shocks)
    for step in range(1, shocks.shape[1]):
        states[:, step] = memory * states[:, step - 1] + shocks[:, step]
    return TRUE_MEAN + states[:, 300:]


@pytest.mark.parametrize(
    ("length", "memory", "skewed"),
    [
        (10, 0.0, False),
        (30, 0.0, True),
        (30, 0.5, False),
        (100, 0.5, True),
        (100, 0.8, False),
        (300, 0.9, False),
        (1000, 0.9, True),
    ],
)
def test_the_interval_covers_the_mean_as_often_as_it_says(
    length: int, memory: float, skewed: bool
) -> None:
    """The 95 % interval covers the true mean in at least 90 % of 300 series."""
    intervals = [mean_interval(trace) for trace in traces(300, length, memory, skewed)]
    covered = sum(interval.low <= TRUE_MEAN <= interval.high for interval in intervals)
    assert covered / 300 >= 0.90


@pytest.mark.parametrize(("length", "memory"), [(40, 0.5), (300, 0.8), (1000, 0.0)])
def test_the_interval_is_as_uneven_as_that_of_resamples(length: int, memory: float) -> None:
    """The upper end is that of 20,000 block resamples, to a twentieth of the half width.

    An even interval would differ by a seventh at least.
    """
    times = np.exp(traces(1, length, memory, skewed=True)[0] - TRUE_MEAN)
    low, high = resampled(times, block_length(length, autocorrelation_time(times)))
    half = relative_half_width(times) * times.mean()
    uneven = 2 * (high - times.mean()) / (high - low)
    assert mean_interval(times).high == pytest.approx(times.mean() + uneven * half, abs=half / 20)


def resampled(times: NDArray[np.float64], block: int) -> tuple[float, float]:
    """The middle 95 % of the means of 20,000 resamples in blocks that wrap around."""
    rng = np.random.default_rng(1)
    starts = rng.integers(0, len(times), (20_000, len(times) // block))
    places = (starts[:, :, None] + np.arange(block)) % len(times)
    low, high = np.quantile(times[places].mean(axis=(1, 2)), (0.025, 0.975))
    return float(low), float(high)


def test_equal_times_have_an_even_interval() -> None:
    """Rounding does not make the interval of equal times uneven."""
    interval = mean_interval([0.1] * 77)
    assert interval.low == pytest.approx(0.1) == interval.high


@pytest.mark.parametrize("length", [30, 300, 3000])
def test_doubt_of_slow_wander_has_its_price(length: int) -> None:
    """The interval of independent samples is 1.2 to 1.7 times as wide as if that were known."""
    every = traces(100, length, 0.0)
    widths = [interval.high - interval.low for interval in map(mean_interval, every)]
    known = 2 * 1.96 / math.sqrt(length)
    assert 1.2 <= np.median(widths) / known <= 1.7


def test_wander_slower_than_the_series_widens_the_interval() -> None:
    """A drift of two deviations of the noise widens the interval more than fourfold."""
    noise = traces(1, 300, 0.0)[0]
    wandering = noise + np.linspace(-1, 1, 300)
    assert half_width(wandering) > 4 * half_width(noise)


def half_width(series: NDArray[np.float64]) -> float:
    """Half the width of the interval of the mean."""
    interval = mean_interval(series.tolist())
    return (interval.high - interval.low) / 2


@pytest.mark.parametrize(("rounds", "spread"), [(3, 0.0), (3, 0.5), (5, 0.5), (10, 0.1)])
def test_rounds_show_what_differs_between_processes(rounds: int, spread: float) -> None:
    """The interval covers the mean of all processes even if each process has its own mean."""
    covered = 0
    for series in range(200):
        noise = traces(1, 60 * rounds, 0.0)[0]
        rng = np.random.default_rng(series)
        own = np.repeat(rng.normal(0, spread, rounds), 60)
        interval = mean_interval(rng.permutation(noise) + own, rounds=(60,) * rounds)
        covered += interval.low <= noise.mean() <= interval.high
    assert covered >= 175


@pytest.mark.parametrize("blocks", [(20,), (6, 6, 6), (1, 9, 4)])
def test_the_noise_models_are_those_of_the_formula(blocks: tuple[int, ...]) -> None:
    """Residuals, likelihoods and variances of a few blocks equal those from the whole matrix V."""
    models, total = noise_models(blocks), sum(blocks)
    means = traces(1, total, 0.5)[0]
    residuals, rounds = models.residual_sum_of_squares(means), np.repeat(range(len(blocks)), blocks)
    lags, ones = np.abs(np.subtract.outer(range(total), range(total))), np.ones(total)
    for row, ((share, memory), drift_prior) in enumerate(drifts_to_try(total)):
        for column, (between, prior) in enumerate(round_variances_to_try(len(blocks))):
            matrix = share * np.exp(-lags / memory) + (1 - share) * np.eye(total) + between
            matrix *= rounds[:, None] == rounds
            inverse = np.linalg.inv(matrix)
            information = ones @ inverse @ ones
            errors = means - ones @ inverse @ means / information
            weight = drift_prior * prior / math.sqrt(np.linalg.det(matrix) * information)
            assert residuals[row, column] == pytest.approx(errors @ inverse @ errors)
            assert models.log_weight[row, column] == pytest.approx(math.log(weight))
            assert models.mean_variance[row, column] == pytest.approx(matrix.mean())


def test_rounds_that_agree_cost_little() -> None:
    """Ten equal rounds have an interval at most half again as wide as one process."""
    noise = traces(1, 600, 0.0)[0]
    apart = relative_half_width(noise, (60,) * 10)
    assert apart * np.mean(noise) <= 1.5 * half_width(noise)


@given(st.lists(st.floats(0.5, 2.0), min_size=6, max_size=30), st.integers(2, 6))
def test_more_rounds_narrow_the_interval(samples: list[float], rounds: int) -> None:
    """Three times as many equal rounds give a narrower interval."""
    few, many = (
        summarise(samples * count, (len(samples),) * count) for count in (rounds, 3 * rounds)
    )
    assert many.relative_half_width < few.relative_half_width


@pytest.mark.parametrize("rounds", [2, 3, 14])
def test_rounds_without_spread_may_differ_from_others(rounds: int) -> None:
    """Rounds of equal samples still get 8 % of the mean over the root of their number."""
    summary = summarise([0.25] * 10 * rounds, (10,) * rounds)
    assert summary.relative_half_width == pytest.approx(1.96 * 0.08 / math.sqrt(rounds), rel=1e-3)
    assert relative_half_width([0.25] * 10 * rounds, (10,) * rounds) == pytest.approx(0, abs=1e-9)
    assert summarise([0.25] * 10).relative_half_width == pytest.approx(0, abs=1e-9)


def test_outliers_are_counted() -> None:
    """Outliers exceed a quartile by three interquartile ranges, and the median by a tenth."""
    found = outliers([*[0.9] * 30, *[1.0] * 40, *[1.1] * 29, 1.69, 1.71])
    assert found is not None
    assert (found.count, found.of) == (1, 101)
    assert found.time_share == pytest.approx(0.71 / (27 + 40 + 31.9 + 1.69 + 1.71))
    assert found.longest == pytest.approx(1.71)
    assert outliers([*[1.0] * 9, 1.11]) is not None
    assert outliers([*[1.0] * 9, 1.09]) is None
    assert outliers([*[1.0] * 8, 1.11]) is None


@pytest.mark.parametrize("memory", [0.0, 0.5, 0.8])
def test_autocorrelation_time_is_that_of_the_process(memory: float) -> None:
    """For a first-order process the time is (1 + memory) / (1 - memory)."""
    times = [autocorrelation_time(trace) for trace in traces(30, 3000, memory)]
    assert np.mean(times) == pytest.approx((1 + memory) / (1 - memory), rel=0.2)


@given(
    st.lists(st.floats(1e-3, 10.0), min_size=2, max_size=60), st.sampled_from([1e-6, 0.5, 1024.0])
)
def test_the_interval_follows_the_unit(samples: list[float], unit: float) -> None:
    """In another unit the interval has the same ends, and it contains the mean."""
    plain = mean_interval(samples)
    scaled = mean_interval([sample * unit for sample in samples])
    size = abs(plain.high) + abs(plain.low)
    assert scaled.low == pytest.approx(plain.low * unit, abs=size * unit * 1e-6)
    assert scaled.high == pytest.approx(plain.high * unit, abs=size * unit * 1e-6)
    mean = float(np.mean(samples))
    assert plain.low <= mean * (1 + 1e-9)
    assert mean * (1 - 1e-9) <= plain.high


@given(st.integers(2, 10**6), st.floats(1, 10**7))
def test_blocks_are_never_too_few(count: int, tau: float) -> None:
    """At least four blocks remain of four or more samples, however strong the dependence."""
    length = block_length(count, tau)
    assert 1 <= length <= max(1, count // 4)


def test_one_sample_bounds_nothing() -> None:
    """The interval of a single sample is all positive numbers."""
    summary = summarise([3.0])
    assert (summary.interval.low, summary.interval.high) == (0.0, math.inf)
    assert summary.relative_half_width == math.inf


def test_a_summary_shows_mean_median_and_tail() -> None:
    """Mean, median and percentiles are of all samples, outliers included."""
    summary = summarise([1.0] * 99 + [101.0])
    assert summary.count == 100
    assert summary.mean == pytest.approx(2.0)
    assert summary.median == 1.0
    assert summary.p90 == 1.0
    assert summary.p99 == pytest.approx(2.0)
    assert summary.relative_margin == pytest.approx((summary.interval.high - 2) / 2)


@pytest.mark.parametrize(
    ("probability", "degrees", "table"),
    [
        (0.975, 1, 12.706),
        (0.975, 2, 4.303),
        (0.975, 3, 3.182),
        (0.975, 9, 2.262),
        (0.975, 999, 1.962),
        (0.995, 3, 5.841),
        (0.95, 5, 2.015),
    ],
)
def test_student_quantiles_are_those_of_the_tables(
    probability: float, degrees: int, table: float
) -> None:
    """The quantile agrees with printed tables to 1 %."""
    assert student_quantile(probability, degrees) == pytest.approx(table, rel=0.01)


@given(
    st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=60),
    st.lists(st.floats(0, 1), min_size=1, max_size=5),
)
def test_quantiles_are_numpys(values: list[float], shares: list[float]) -> None:
    """The faster quantiles equal those of NumPy's default method."""
    found = quantiles(np.array(values), shares)
    np.testing.assert_allclose(found, np.quantile(values, shares), rtol=1e-12)
