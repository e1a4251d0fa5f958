"""Each reason to doubt a measurement is named with a figure and a remedy."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from epochcost.results.environment import Conditions
from epochcost.results.records import Measurement, Pinning, Result
from epochcost.results.rounds import add_round
from epochcost.results.stability import Cause, Instability, instabilities

MakeResult = Callable[..., Result]
CALM = Conditions(
    seconds=10.0, others_cpus=0.05, steal_share=0.001, frozen_seconds=0.0, throttles=()
)


@pytest.fixture(name="judged")
def judged_fixture(make_result: MakeResult) -> Callable[..., tuple[Instability, ...]]:
    """A function to the warnings of a calm measurement with changes, but for the one process."""
    steady = tuple(1 + 0.01 * np.random.default_rng(0).normal(size=60))

    def judge(samples: Any = steady, grain: float | None = 1e-7, **conditions: Any) -> Any:
        result = make_result()
        measurement = result.measurement.model_copy(
            update={
                "samples_seconds": tuple(float(one) for one in samples),
                "conditions": CALM.model_copy(update=conditions),
            }
        )
        environment = result.environment.model_copy(update={"timer_step_seconds": grain})
        update = {"measurement": measurement, "environment": environment}
        found = instabilities(result.model_copy(update=update))
        return tuple(one for one in found if one.cause != "process")

    return judge


def test_a_calm_machine_gives_no_warning(judged: Callable[..., Any]) -> None:
    """Small disturbances give no warning."""
    assert judged() == ()


@pytest.mark.parametrize(
    ("conditions", "cause", "seen"),
    [
        ({"others_cpus": 0.7}, "others", "other programs kept 0.7 of 2 CPUs busy"),
        ({"steal_share": 0.068}, "steal", "noisy host (6.8 % of CPU time"),
        ({"frozen_seconds": 1.5}, "quota", "for 15 % of the time"),
        ({"throttles": ("cpu-heat",)}, "throttling", "the CPU lowered its clock for heat"),
        ({"throttles": ("gpu-power-cap",)}, "throttling", "power cap"),
    ],
)
def test_each_condition_is_named(
    judged: Callable[..., Any], conditions: dict[str, Any], cause: Cause, seen: str
) -> None:
    """The warning has the observed figure and a remedy."""
    (found,) = judged(**conditions)
    assert found.cause == cause
    assert seen in found.phrase
    assert found.remedy


@pytest.mark.parametrize(
    ("samples", "cause", "seen"),
    [
        ([1.0] * 29, "few", "only 29 samples"),
        ([1e-6] * 60, "timer", "the timer's own step is 0.1 µs"),
    ],
)
def test_samples_that_are_few_or_short_are_named(
    judged: Callable[..., Any], samples: Any, cause: Cause, seen: str
) -> None:
    """Few samples or very short ones give one warning with a figure."""
    (found,) = judged(samples)
    assert found.cause == cause
    assert seen in found.phrase


def test_the_load_of_a_pinned_trial_is_judged_by_its_own_cpus(make_result: MakeResult) -> None:
    """Half a CPU of other load is too much for one pinned core, even on 64 CPUs."""
    result = make_result()
    conditions = CALM.model_copy(update={"others_cpus": 0.5})
    large = result.environment.model_copy(update={"logical_cpus": 64})

    def others(pinned: Pinning | None) -> list[str]:
        fields = {"conditions": conditions, "pinning": pinned}
        busy = result.measurement.model_copy(update=fields)
        changed = result.model_copy(update={"measurement": busy, "environment": large})
        return [one.phrase for one in instabilities(changed) if one.cause == "others"]

    pinned = Pinning(cpus=(0,), siblings=(32,), cores=1, threads=1)
    assert others(pinned) == ["other programs kept 0.5 of 2 CPUs busy"]
    assert others(None) == []


def test_more_threads_than_cpus_are_warned_of(make_result: MakeResult) -> None:
    """More threads than pinned CPUs give a warning."""
    result = make_result()
    for threads, expected in ((2, []), (3, ["3 threads on 2 vCPU"])):
        pinned = Pinning(cpus=(0, 1), threads=threads)
        crowded = result.measurement.model_copy(update={"pinning": pinned})
        found = instabilities(result.model_copy(update={"measurement": crowded}))
        assert [one.phrase for one in found if one.cause == "threads"] == expected


@pytest.fixture(name="in_rounds")
def in_rounds_fixture(make_result: MakeResult) -> Callable[..., tuple[Instability, ...]]:
    """A function to the warnings of rounds with these means, each with thirty steady samples."""

    def judge(*means: float) -> tuple[Instability, ...]:
        noise = np.random.default_rng(0)
        joined: Measurement | None = None
        for mean in means:
            samples = tuple((mean * (1 + 0.02 * noise.normal(size=30))).tolist())
            turn = make_result().measurement.model_copy(update={"samples_seconds": samples})
            joined = add_round(joined, turn, 0.02)
        assert joined is not None
        return instabilities(make_result().model_copy(update={"measurement": joined}))

    return judge


@pytest.mark.parametrize("means", [(1.0, 1.0, 1.2), (1.2, 1.0, 1.0), (1.0, 1.0, 1.0, 1.2, 1.0)])
def test_rounds_that_differ_are_named(in_rounds: Callable[..., Any], means: Any) -> None:
    """One warning compares the slowest and the fastest round, in any order."""
    (found,) = in_rounds(*means)
    assert found.cause == "rounds"
    assert re.match(rf"the slowest of {len(means)} rounds took (19|2[01]) % longer", found.phrase)
    assert "--rounds" in found.remedy


def test_one_process_is_said_with_the_remedy(in_rounds: Callable[..., Any]) -> None:
    """A single process gives a warning, however narrow its interval, and two processes do not."""
    (found,) = in_rounds(1.0)
    assert found.cause == "process"
    assert "`--rounds 3`" in found.remedy
    assert in_rounds(1.0, 1.0) == ()
