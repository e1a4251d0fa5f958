"""Results among those of their host: whose intervals change, and whose stay."""

from __future__ import annotations

import numpy as np
import pytest

from epochcost.results.hosts import HostFacts
from epochcost.results.records import Result
from epochcost.results.rounds import summary_of
from epochcost.statistics.process_spread import FEWEST_RESULTS
from report_project import make_result

ROUNDS, SAMPLES = 3, 10


def results_of(apart: float, *, count: int = FEWEST_RESULTS, seed: int = 1) -> list[Result]:
    """As many results whose processes differ by this share, of different batches."""
    draw = np.random.default_rng(seed)
    return [
        make_result(
            batch_size=number + 1,
            rounds=ROUNDS,
            samples=np.concatenate(
                [
                    0.01 * np.exp(draw.normal(0, apart)) * draw.normal(1, 1e-3, SAMPLES)
                    for _ in range(ROUNDS)
                ]
            ).tolist(),
        )
        for number in range(count)
    ]


def alike() -> Result:
    """A result whose three processes were alike by luck."""
    draw = np.random.default_rng(9)
    samples = 0.01 * draw.normal(1, 1e-3, ROUNDS * SAMPLES)
    return make_result(rounds=ROUNDS, samples=samples.tolist())


def half_width(result: Result, others: list[Result]) -> float:
    """Of a result's mean among others, over the mean."""
    facts = HostFacts.of([result, *others])
    return facts.summary(summary_of(result.measurement), result).relative_half_width


def test_luck_among_restless_results_promises_less() -> None:
    """Processes of this host differ by a tenth, whatever three of them said."""
    own = summary_of(alike().measurement).relative_half_width
    assert own < 0.01
    assert half_width(alike(), results_of(0.1)) > 0.05


def test_a_quiet_host_keeps_its_intervals_narrow() -> None:
    """Where processes differ by a thousandth nothing is lost by knowing it."""
    assert half_width(alike(), results_of(0.001)) < 0.005


def test_processes_apart_by_luck_are_not_wide_beyond_use() -> None:
    """Student's t of two degrees is 4.3; that of many is 2."""
    (one,) = results_of(0.05, count=1, seed=4)
    own = summary_of(one.measurement).relative_half_width
    assert half_width(one, results_of(0.05)) < own


def test_few_results_change_nothing() -> None:
    """Below twenty each stands for itself."""
    own = summary_of(alike().measurement)
    few = results_of(0.1, count=FEWEST_RESULTS - 2)
    assert HostFacts.of([alike(), *few]).summary(own, alike()) == own


@pytest.mark.parametrize("field", ["fingerprint", "vcpus"])
def test_other_hosts_change_nothing(field: str) -> None:
    """Another machine, or other CPUs of this one, have spreads of their own."""
    other = {"fingerprint": "beef" * 4, "vcpus": 1}[field]
    result = make_result(rounds=ROUNDS, samples=[0.01] * 30, **{field: other})
    facts = HostFacts.of([result, *results_of(0.1)])
    own = summary_of(result.measurement)
    assert facts.summary(own, result) == own


def test_results_of_one_round_are_among_them_too() -> None:
    """They tell nothing of the spread, and are told of it."""
    one = make_result(samples=[0.01, 0.0101] * 10)
    assert summary_of(one.measurement).relative_half_width < 0.01
    assert half_width(one, results_of(0.1)) > 0.1
