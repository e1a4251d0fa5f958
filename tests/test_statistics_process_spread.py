"""How much fresh processes differ on a host: functions by table, the fit, and what it covers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from epochcost.statistics import mean_interval
from epochcost.statistics.process_spread import (
    FEWEST_RESULTS,
    ProcessSpread,
    _digamma,
    _inverse_trigamma,
    _trigamma,
    process_spread,
)
from epochcost.statistics.quantiles import student_quantile

# One over a chi-square of two degrees about 5 %: most processes differ by little, some by a lot.
DEGREES, DEVIATION = 2.0, 0.05


def drawn_rounds(draw: np.random.Generator, results: int, rounds: int) -> np.ndarray:
    """Logarithms of round means [results, rounds], of a host whose results differ so."""
    variances = DEGREES * DEVIATION**2 / draw.chisquare(DEGREES, results)
    return draw.normal(0, np.sqrt(variances)[:, None], (results, rounds))


def fitted(logarithms: np.ndarray) -> ProcessSpread:
    """What the results tell together."""
    rounds = logarithms.shape[1]
    found = process_spread(logarithms.var(axis=1, ddof=1).tolist(), [rounds - 1] * len(logarithms))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("place", "first", "second"),
    [
        (0.5, -1.9635100260214235, 4.934802200544679),
        (1.0, -0.5772156649015329, 1.6449340668482264),
        (2.5, 0.7031566406452432, 0.4903577561002348),
        (10.0, 2.251752589066721, 0.1051663356816857),
    ],
)
def test_functions_are_those_of_the_table(place: float, first: float, second: float) -> None:
    """Digamma and trigamma to eight digits, and trigamma's inverse back again."""
    assert _digamma(place) == pytest.approx(first, abs=1e-7)
    assert _trigamma(place) == pytest.approx(second, rel=1e-7)
    assert _inverse_trigamma(second) == pytest.approx(place, rel=1e-6)


def test_the_spread_of_a_host_is_found_again() -> None:
    """Of five thousand results both parameters to a tenth."""
    found = fitted(drawn_rounds(np.random.default_rng(1), 5000, 3))
    assert found.degrees == pytest.approx(DEGREES, rel=0.1)
    assert math.sqrt(found.variance) == pytest.approx(DEVIATION, rel=0.1)


def test_equal_hosts_are_known_well() -> None:
    """Where all results have one variance it is worth as many degrees as are ever given."""
    draw = np.random.default_rng(2)
    found = fitted(draw.normal(0, 0.03, (400, 3)))
    assert found.degrees > 30
    assert math.sqrt(found.variance) == pytest.approx(0.03, rel=0.1)


def test_few_results_tell_nothing() -> None:
    """Each then stands for itself."""
    assert process_spread([0.01] * (FEWEST_RESULTS - 1), [2] * (FEWEST_RESULTS - 1)) is None


@pytest.mark.parametrize("rounds", [1, 2, 3, 6])
def test_intervals_hold_the_mean_as_often_as_they_claim(rounds: int) -> None:
    """Of a host whose results differ in how much their processes do."""
    draw = np.random.default_rng(rounds)
    spread = fitted(drawn_rounds(draw, 300, 3))
    held = 0
    for logarithms in drawn_rounds(draw, 1000, rounds):
        noise = draw.normal(0, 1e-4, (rounds, 12))
        samples = np.exp(logarithms[:, None] + noise).ravel()
        interval = spread.interval(samples, [12] * rounds)
        held += interval.low <= 1.0 <= interval.high
    assert 930 <= held <= 975


def test_noise_within_rounds_is_never_forgotten() -> None:
    """A host of equal processes does not make few scattered samples precise."""
    draw = np.random.default_rng(5)
    samples = draw.normal(1, 0.3, 30)
    known = ProcessSpread(1e-8, 100.0)
    interval = known.interval(samples, [10, 10, 10])
    alone = mean_interval(samples)
    assert interval.high - interval.low > 0.5 * (alone.high - alone.low)


def test_a_quiet_host_makes_intervals_narrow() -> None:
    """Three rounds that are 1 % apart by luck, on a host that is known to differ by 0.3 %."""
    quiet = ProcessSpread(0.003**2, 50.0)
    samples = np.repeat([1.0, 1.005, 1.01], 20) * (1 + 1e-4 * np.tile([1, -1], 30))
    among = quiet.interval(samples, [20, 20, 20])
    alone = mean_interval(samples, rounds=[20, 20, 20])
    assert among.high - among.low < (alone.high - alone.low) / 2


def test_degrees_between_whole_numbers() -> None:
    """Student's quantile falls with the degrees, and meets the whole ones (0.975: 12.7, 4.30)."""
    places = np.linspace(0.5, 8, 60)
    found = [student_quantile(0.975, place) for place in places.tolist()]
    assert found == sorted(found, reverse=True)
    # By numerical integration of the density.
    assert student_quantile(0.975, 1.5) == pytest.approx(6.09, rel=0.05)
    assert student_quantile(0.975, 3.64) == pytest.approx(2.887, rel=0.01)
