"""Several rounds become one measurement without loss, and sums agree."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from epochcost.results.environment import Conditions, Energy, MeteredEnergy
from epochcost.results.records import (
    DamagedResultError,
    Measurement,
    Result,
    parse_result,
    serialise_result,
)
from epochcost.results.rounds import add_round, summary_of, without_disturbed_rounds
from epochcost.statistics.summary import summarise

MakeResult = Callable[..., Result]
DEMANDED = 0.02


@pytest.fixture(name="turn")
def turn_fixture(make_result: MakeResult) -> Callable[..., Measurement]:
    """A function that makes a round's measurement with these changes."""

    def make(hour: int = 12, samples: Any = (0.1,) * 12, **changes: Any) -> Measurement:
        told = {"started_at": dt.datetime(2026, 11, 21, hour, tzinfo=dt.UTC), **changes}
        measurement = make_result().measurement
        return measurement.model_copy(update={"samples_seconds": tuple(samples), **told})

    return make


def test_samples_stand_in_the_order_of_the_rounds(turn: Callable[..., Measurement]) -> None:
    """The measurement has the samples of all rounds in order, and their number by round."""
    first = turn(1, (0.1, 0.2), warmup_seconds=(0.5, 0.4), held_out_loss_after=0.5)
    second = turn(2, (0.3, 0.4, 0.5), warmup_seconds=(), held_out_loss_after=0.4, steps_taken=9)
    joined = add_round(add_round(None, first, DEMANDED), second, DEMANDED)
    assert joined.samples_seconds == (0.1, 0.2, 0.3, 0.4, 0.5)
    assert joined.samples_by_round == (2, 3)
    assert joined.warmup_seconds == (0.5, 0.4)
    assert [one.warmup_steps for one in joined.rounds] == [2, 0]
    assert joined.started_at == first.started_at
    assert [one.started_at.hour for one in joined.rounds] == [1, 2]
    assert joined.steps_taken == first.steps_taken + 9
    assert joined.wall_seconds == 2 * first.wall_seconds
    assert joined.held_out_loss_after == 0.4
    assert [one.held_out_loss_after for one in joined.rounds] == [0.5, 0.4]


def test_the_stop_is_that_of_all_rounds(turn: Callable[..., Measurement]) -> None:
    """Rounds are precise together, or the reason is a lack of time or a difference of rounds."""
    uneven = (0.05, 0.15) * 8
    precise = add_round(turn(), turn(stop_reason="budget"), DEMANDED)
    assert precise.stop_reason == "precise"
    summary = summarise(precise.samples_seconds, precise.samples_by_round)
    assert summary.relative_half_width > DEMANDED
    assert add_round(None, turn(samples=uneven), DEMANDED).stop_reason == "rounds"
    short = add_round(turn(samples=uneven, stop_reason="budget"), turn(), DEMANDED)
    assert short.stop_reason == "budget"


def test_conditions_are_joined_over_time(turn: Callable[..., Measurement]) -> None:
    """Shares are weighted by seconds, stops are summed, and reasons and peaks are merged."""
    calm = Conditions(
        seconds=1,
        others_cpus=0.0,
        steal_share=0.0,
        frozen_seconds=0.5,
        throttles=(),
        device_memory_bytes=5 * 2**20,
        device_memory_meter="NVML",
        unknown={"device_memory_bytes": "no GPU"},
    )
    busy = calm.model_copy(
        update={
            "seconds": 3,
            "others_cpus": 1.0,
            "throttles": ("cpu-heat",),
            "device_memory_bytes": 4 * 2**20,
        }
    )
    joined = add_round(turn(conditions=calm), turn(conditions=busy), DEMANDED)
    assert joined.conditions == Conditions(
        seconds=4,
        others_cpus=0.75,
        steal_share=0.0,
        frozen_seconds=1.0,
        throttles=("cpu-heat",),
        device_memory_bytes=5 * 2**20,
        device_memory_meter="NVML",
        unknown={"device_memory_bytes": "no GPU"},
    )
    assert [one.conditions for one in joined.rounds] == [calm, busy]
    assert add_round(turn(), turn(), DEMANDED).conditions is None
    assert add_round(turn(conditions=calm), turn(), DEMANDED).conditions == calm


def test_energy_adds_up_by_meter(turn: Callable[..., Measurement]) -> None:
    """Energy and seconds are summed by meter, also if a meter was read in one round only."""
    package = MeteredEnergy(meter="RAPL", of="cpu", joules=10, seconds=1)
    board = MeteredEnergy(meter="NVML 0", of="gpu", joules=100, seconds=1)
    first = Energy(readings=(package,), unknown={"NVML 0": "busy", "dram": "not there"})
    second = Energy(readings=(package, board), unknown={"dram": "not there"})
    joined = add_round(turn(energy=first), turn(energy=second), DEMANDED)
    assert joined.energy is not None
    assert joined.energy.readings == (
        package.model_copy(update={"joules": 20.0, "seconds": 2.0}),
        board,
    )
    assert joined.energy.unknown == {"dram": "not there"}
    assert joined.energy.watts == 110


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("samples", "rounds should have 24 samples in all, not 25"),
        ("warmup_steps", "rounds should have 2 steps of warm-up in all, not 3"),
    ],
)
def test_rounds_that_do_not_add_up_are_damage(
    turn: Callable[..., Measurement], make_result: MakeResult, field: str, words: str
) -> None:
    """Rounds whose numbers do not sum to the measurement's are refused."""
    joined = add_round(turn(1), turn(2), DEMANDED)
    more = joined.rounds[1].model_copy(update={field: getattr(joined.rounds[1], field) + 1})
    edited = joined.model_copy(update={"rounds": (joined.rounds[0], more)})
    data = serialise_result(make_result().model_copy(update={"measurement": edited}))
    with pytest.raises(DamagedResultError, match=words):
        parse_result(data, Path("a.json"))


def _busy(cpus: float) -> Conditions:
    return Conditions(seconds=1, others_cpus=cpus, steal_share=0.0)


@pytest.fixture(name="measured")
def measured_fixture(
    make_result: MakeResult, turn: Callable[..., Measurement]
) -> Callable[..., Result]:
    """A function that makes a result with a round for each number of CPUs that others use."""

    def make(*busy_cpus: float) -> Result:
        joined = None
        for hour, busy in enumerate(busy_cpus):
            samples = tuple(0.1 * (1 + busy) + 0.001 * step for step in range(12))
            new = turn(hour, samples, warmup_seconds=(1 + busy,), conditions=_busy(busy))
            joined = add_round(joined, new, DEMANDED)
        return make_result().model_copy(update={"measurement": joined})

    return make


def test_disturbed_rounds_are_not_counted(measured: Callable[..., Result]) -> None:
    """A mean is of the rounds that other programs did not disturb, whatever their times are."""
    calm, mixed = measured(0.0, 0.01), measured(0.0, 1.5, 0.01)
    counted = without_disturbed_rounds(mixed)
    assert counted.measurement.samples_seconds == calm.measurement.samples_seconds
    assert counted.measurement.warmup_seconds == calm.measurement.warmup_seconds
    assert counted.measurement.conditions == calm.measurement.conditions
    assert summary_of(counted) == summary_of(calm)
    assert [len(each.measurement.rounds) for each in (mixed, counted)] == [3, 2]
    assert without_disturbed_rounds(calm) is calm


def test_the_interval_of_a_disturbed_result_contains_the_undisturbed_mean(
    measured: Callable[..., Result],
) -> None:
    """If other programs disturbed all rounds, only the interval's low end is lower."""
    disturbed = measured(0.4, 0.4)
    assert without_disturbed_rounds(disturbed) is disturbed
    plain = summarise(disturbed.measurement.samples_seconds, disturbed.measurement.samples_by_round)
    summary = summary_of(disturbed)
    assert summary.interval.low == pytest.approx(0.6 * plain.interval.low)
    assert (summary.mean, summary.interval.high) == (plain.mean, plain.interval.high)
    assert summary_of(measured(20.0, 20.0)).interval.low >= 0
