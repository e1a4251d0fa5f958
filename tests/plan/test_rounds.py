"""The order of visits is mixed and repeatable, and has only missing rounds."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcost.plan.make import Plan, leave_out_oversized, merge_plans
from epochcost.plan.rounds import Visit, visits
from epochcost.plan.trial import Trial
from epochcost.plan.work import STEPS


def trial(batch_size: int, seed: int = 0) -> Trial:
    """A made-up trial."""
    return Trial(
        model="net",
        mode="training",
        provider="cpu",
        batch_size=batch_size,
        seed=seed,
        runtime="onnxruntime==1.31.1",
        producer="0.1.0",
        graph_sha256="a" * 64,
        spec_sha256="b" * 64,
        relative_half_width=Decimal("0.02"),
        minimum_samples=30,
        budget_seconds=Decimal(20),
        work=STEPS,
    )


TRIALS = tuple(trial(size) for size in range(1, 9))


def schedule(
    asked: int | Mapping[str, int],
    done: Mapping[str, int] | None = None,
    trials: tuple[Trial, ...] = TRIALS,
) -> list[Visit]:
    """The visits if ``asked`` rounds are expected, of all trials or by the trial's id."""
    if isinstance(asked, int):
        asked = {one.id: asked for one in trials}
    return list(visits(trials, asked, lambda one: (done or {}).get(one.id, 0)))


def test_every_round_visits_every_trial_in_an_order_of_its_own() -> None:
    """Each round has every trial once, in an order that differs from other rounds."""
    planned = schedule(4)
    rounds = [planned[start : start + 8] for start in range(0, 32, 8)]
    assert [{visit.number for visit in one} for one in rounds] == [{1}, {2}, {3}, {4}]
    orders = [tuple(visit.trial.batch_size for visit in one) for one in rounds]
    assert all(sorted(order) == list(range(1, 9)) for order in orders)
    assert len(set(orders)) == 4


def test_the_order_follows_from_the_seed_alone() -> None:
    """The order does not depend on the order of the list, but on the seed."""
    assert schedule(3, trials=TRIALS[::-1]) == schedule(3)
    seeded = tuple(trial(size, seed=1) for size in range(1, 9))
    other = [visit.trial.batch_size for visit in schedule(3, trials=seeded)]
    assert other != [visit.trial.batch_size for visit in schedule(3)]


@given(st.lists(st.integers(1, 5), min_size=8, max_size=8), st.lists(st.integers(0, 6), min_size=8))
def test_resuming_visits_exactly_what_is_missing(asked: list[int], done: list[int]) -> None:
    """Each trial gets the rounds that are not stored. A finished trial has one visit."""
    rounds = {one.id: count for one, count in zip(TRIALS, asked, strict=True)}
    stored = {one.id: count for one, count in zip(TRIALS, done, strict=False)}
    planned = schedule(rounds, stored)
    for one in TRIALS:
        wanted, kept = rounds[one.id], stored[one.id]
        numbers = [visit.number for visit in planned if visit.trial == one]
        assert numbers == ([wanted] if kept >= wanted else list(range(kept + 1, wanted + 1)))
        assert {visit.stored for visit in planned if visit.trial == one} == {kept >= wanted}


def test_a_resumed_run_keeps_the_order_of_the_whole_one() -> None:
    """The remaining visits of each round keep their original order."""
    stored = {TRIALS[0].id: 1, TRIALS[3].id: 2}
    left = [visit for visit in schedule(2, stored) if visit.trial != TRIALS[3]]
    assert left == [
        visit
        for visit in schedule(2)
        if visit.number > stored.get(visit.trial.id, 0) and visit.trial != TRIALS[3]
    ]


@pytest.mark.parametrize(
    ("rounds", "seconds", "samples", "width"),
    [(1, 20, 30, "0.02"), (2, 10, 15, "0.028"), (4, 5, 10, "0.04"), (100, "0.2", 10, "0.2")],
)
def test_a_visit_has_its_part_of_the_trials_demands(
    rounds: int, seconds: int | str, samples: int, width: str
) -> None:
    """A visit has its part of the budget, at least ten samples, and √n times the width."""
    visit = Visit(TRIALS[0], 1, rounds)
    assert visit.expected_seconds == Decimal(seconds)
    assert visit.minimum_samples == samples
    assert round(visit.relative_half_width, 3) == Decimal(width)


def test_merged_plans_take_the_most_rounds_that_a_study_asks_for() -> None:
    """Work of several studies gets the most rounds that a study requests."""
    one, other = TRIALS[0], TRIALS[1]
    merged = merge_plans(
        [
            Plan((one, other), (), {one.id: 3}),
            Plan((one, other), (), {one.id: 2, other.id: 5}),
            Plan((one,), ()),
        ]
    )
    assert merged.rounds == {one.id: 3, other.id: 5}
    assert leave_out_oversized(merged, {}, {}).rounds == merged.rounds
