"""When two measured times may be called different."""

from __future__ import annotations

from epochcost.statistics.interval import FEWEST_ROUNDS, LEAST_EFFECT, Bounded, time_change


def test_apart_and_large() -> None:
    """Intervals well apart make a change that is said."""
    found = time_change(Bounded(9.9, 10, 10.1), Bounded(11.9, 12, 12.1), rounds=FEWEST_ROUNDS)
    assert found.significant
    assert found.factor.low < 1.2 < found.factor.high


def test_apart_and_small() -> None:
    """A change that is sure but small is not said."""
    after = 10 * (1 + LEAST_EFFECT / 2)
    assert not time_change(
        Bounded(9.999, 10, 10.001), Bounded(after, after, after), rounds=3
    ).significant


def test_large_and_not_apart() -> None:
    """A large change between wide intervals is not said."""
    assert not time_change(Bounded(5, 10, 20), Bounded(6, 12, 24), rounds=3).significant


def test_an_unbounded_time() -> None:
    """Nothing is said beside an interval that reaches to nothing."""
    assert not time_change(Bounded(0, 10, 30), Bounded(19, 20, 21), rounds=3).significant


def test_single_rounds() -> None:
    """Intervals of single processes do not hold across processes, however far they are apart."""
    slow, fast = Bounded(0.313, 0.391, 0.469), Bounded(0.058, 0.0658, 0.074)
    assert time_change(slow, fast, rounds=2).significant
    assert not time_change(slow, fast, rounds=1).significant
