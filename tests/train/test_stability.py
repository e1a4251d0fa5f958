"""The plateau rule on curves whose stable step is known, and on what schedules do to curves."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from epochcost.results.trainings import Point
from epochcost.train.aims import Stability
from epochcost.train.stability import find_stable, is_known, last_drop

WITHIN = 0.005
STABLE = 800


def exponential(step: float) -> float:
    """From 40 points below its limit; within half a point at step 800."""
    return 0.9 - 0.4 * math.exp(-step * math.log(80) / STABLE)


def power(step: float) -> float:
    """The same as a power law."""
    return float(0.9 - 0.4 * step ** -(math.log(80) / math.log(STABLE)))


def points(
    height: Callable[[float], float], steps: range, noise: float = 0.0, seed: int = 0
) -> list[Point]:
    """Noisy evaluations at a rate that stays the same."""
    rng = np.random.default_rng(seed)
    return [point(step, height(step) + noise * rng.standard_normal()) for step in steps]


def point(step: int, accuracy: float | None, rate: float = 0.1, loss: float = 1.0) -> Point:
    """One evaluation."""
    return Point(
        step=step,
        seconds=step,
        learning_rate=rate,
        training_loss=None,
        loss=loss,
        accuracy=accuracy,
    )


@pytest.mark.parametrize("height", [exponential, power])
def test_the_step_is_that_of_the_curve(height: Callable[[float], float]) -> None:
    """Without noise to a percent; the limit as well."""
    found = find_stable(points(height, range(1, 4000, 4)), WITHIN)
    assert found is not None
    assert found.step == pytest.approx(STABLE, rel=0.01)
    assert found.limit == pytest.approx(0.9, abs=1e-3)
    assert found.after_drop is None


@pytest.mark.parametrize("height", [exponential, power])
def test_noise_widens_the_interval_and_nine_of_ten_are_near(
    height: Callable[[float], float],
) -> None:
    """Of 4,000 evaluations: the step is within 10 %, and the interval mostly has the truth."""
    found = [
        find_stable(points(height, range(1, 8000, 2), noise, seed), WITHIN)
        for noise in (0.002, 0.006)
        for seed in range(10)
    ]
    stable = [each for each in found if each is not None]
    near = [abs(each.step - STABLE) <= 0.1 * STABLE for each in stable]
    covered = [each.low_step <= STABLE <= each.high_step for each in stable]
    widths = [each.high_step - each.low_step for each in stable]
    assert sum(near) >= 18
    assert sum(covered) >= 15
    assert np.mean(widths[10:]) > 2 * np.mean(widths[:10])


def test_losses_fall_to_a_limit() -> None:
    """A curve without accuracies is judged by its loss."""
    curve = [point(step, None, loss=2 - exponential(step)) for step in range(1, 4000, 4)]
    found = find_stable(curve, WITHIN)
    assert found is not None
    assert found.step == pytest.approx(STABLE, rel=0.01)
    assert found.limit == pytest.approx(1.1, abs=1e-3)


def test_a_curve_on_its_way_is_not_known_to_be_stable() -> None:
    """Half-way there, the step may be foretold, but the curve is not there yet."""
    early = points(exponential, range(1, STABLE // 2, 4), 0.002)
    late = points(exponential, range(1, 2 * STABLE, 4), 0.002)
    for curve, known in ((early, False), (late, True)):
        found = find_stable(curve, WITHIN)
        assert found is not None
        assert is_known(found, curve[-1].step) == known
    assert not Stability().met(late[:11])


def test_a_plateau_after_a_drop_of_the_rate_says_so() -> None:
    """As in Malta et al.: the rate falls, the curve rises to a new limit at once."""
    before = points(exponential, range(0, 2000, 10), 0.002)
    after = [
        point(step, 0.95 - 0.05 * math.exp(-(step - 1990) / 40), rate=0.01)
        for step in range(2000, 4000, 10)
    ]
    found = find_stable([*before, *after], WITHIN)
    assert found is not None
    assert found.after_drop == 1990
    assert found.step == pytest.approx(1990 + 40 * math.log(10), rel=0.01)
    assert found.limit == pytest.approx(0.95, abs=1e-3)


def test_a_drop_that_changes_nothing_is_not_what_made_a_plateau() -> None:
    """The curve had its limit before, and was there at its own step."""
    before = points(exponential, range(0, 2000, 10), 0.001)
    after = [each.model_copy(update={"learning_rate": 0.01, "step": each.step + 2000}) for each in
             points(lambda _: 0.9, range(0, 2000, 10), 0.001)]  # fmt: skip
    found = find_stable([*before, *after], WITHIN)
    assert found is not None
    assert found.after_drop is None
    assert found.step == pytest.approx(STABLE, rel=0.05)


def test_of_two_drops_the_one_that_moved_the_curve_counts() -> None:
    """As of networks whose rate falls twice: the second drop adds nothing to the first."""
    first = points(lambda _: 0.8, range(10, 1000, 10), 0.001)
    rising = [
        point(step, 0.95 - 0.1 * math.exp(-(step - 1000) / 50), 0.01)
        for step in range(1010, 2000, 10)
    ]
    flat = [point(step, 0.95, 0.001) for step in range(2000, 3000, 10)]
    found = find_stable([*first, *rising, *flat], WITHIN)
    assert found is not None
    assert found.after_drop == 990
    assert found.step == pytest.approx(1000 + 50 * math.log(20), rel=0.02)


def test_only_steady_rates_drop() -> None:
    """A cosine falls all the time, a warm-up rises: neither is a drop; of stairs the last is."""
    cosine = [point(at, 0.5, 0.05 * (1.001 + math.cos(math.pi * at / 40))) for at in range(41)]
    warm = [point(at, 0.5, 0.01 * min(at + 1, 10)) for at in range(30)]
    stairs = [point(at, 0.5, 0.1 ** (1 + at // 10)) for at in range(30)]
    assert last_drop(cosine) == last_drop(warm) == 0
    assert last_drop(stairs) == 20


def test_a_curve_of_another_form_is_looked_at_from_where_it_is_of_one() -> None:
    """A plateau, a late rise and a plateau again: the end counts, not the whole."""
    curve = points(
        lambda step: 0.5 + 0.4 / (1 + math.exp(-(step - 1500) / 60)), range(1, 8000, 10), 0.002
    )
    truth = 1500 + 60 * math.log(0.395 / 0.005)
    found = find_stable(curve, WITHIN)
    assert found is not None
    assert found.limit == pytest.approx(0.9, abs=2e-3)
    assert found.step == pytest.approx(truth, rel=0.35)


def test_few_points_tell_nothing() -> None:
    """Below a dozen since the last drop there is no answer."""
    assert find_stable(points(exponential, range(0, 12)), WITHIN) is None
    assert find_stable([], WITHIN) is None
