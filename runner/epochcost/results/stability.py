"""Warnings that a measurement may not be repeatable, each with its reason and a remedy.

A disturbance that was not measured gives no warning. Warnings change no number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate, pairwise
from statistics import fmean, median
from types import MappingProxyType
from typing import Literal

from epochcost.results.environment import Conditions, Throttle
from epochcost.results.records import Measurement, Pinning, Result
from epochcost.units import seconds, share

Cause = Literal[
    "others", "steal", "quota", "throttling", "few", "timer", "threads", "process", "rounds"
]

_DISTURBANCES: frozenset[Cause] = frozenset({"others", "steal", "quota"})
# Other programs and the hypervisor take this share of CPU time; steps on all CPUs slow as much.
MOST_OTHERS_SHARE = MOST_STEAL_SHARE = 0.05
# A quota never stops a trial by chance, so even this small share of time gives a warning.
_MOST_FROZEN_SHARE = 0.01
# An interval from fewer dependent samples is too narrow (docs/explanation/measurement.md).
_FEWEST_SAMPLES = 30
# The means of short rounds often differ by less than this.
_MOST_BETWEEN_ROUNDS = 0.1
# If a step takes fewer steps of the timer, the timer's error is above one percent.
_FEWEST_TIMER_STEPS = 100


@dataclass(frozen=True, slots=True)
class Instability:
    """Why a repeated measurement may differ: a key (``cause``), a phrase and a remedy."""

    cause: Cause
    phrase: str
    remedy: str


def instabilities(result: Result) -> tuple[Instability, ...]:
    """All known reasons why a repeated measurement may differ."""
    return (
        *_excess_threads_warning(result.measurement.pinning),
        *_surroundings(result),
        *(_samples(result) if result.measurement.samples_seconds else ()),
    )


def disturbances_of(result: Result) -> frozenset[Cause]:
    """The causes that slowed all steps equally, which the confidence interval cannot show."""
    causes = frozenset(instability.cause for instability in _surroundings(result))
    return causes & _DISTURBANCES


def watched_cpus(result: Result) -> int:
    """CPUs on which other programs can slow the steps: all, or the pinned and their siblings."""
    pinned = result.measurement.pinning
    return result.environment.logical_cpus if pinned is None else len(pinned.affected_cpus)


def is_disturbed(watched: Conditions | None, cpus: int) -> bool:
    """Whether other programs used much of the time of ``cpus`` CPUs; False if unknown."""
    others = watched.others_cpus if watched else None
    return others is not None and others > MOST_OTHERS_SHARE * cpus


def _excess_threads_warning(pinning: Pinning | None) -> Iterator[Instability]:
    # Threads in a busy loop slow the other threads.
    if pinning is not None and pinning.threads > len(pinning.cpus):
        yield Instability(
            "threads",
            f"{pinning.threads} threads on {len(pinning.cpus)} vCPU",
            "leave `threads` out",
        )


def _surroundings(result: Result) -> Iterator[Instability]:
    watched, cpus = result.measurement.conditions, watched_cpus(result)
    if watched is None:
        return
    if is_disturbed(watched, cpus):
        busy = f"{watched.others_cpus:.1f} of {cpus} {'CPU' if cpus == 1 else 'CPUs'}"
        yield Instability(
            "others",
            f"other programs kept {busy} busy",
            "end them, or measure when the machine is idle",
        )
    steal = watched.steal_share
    if steal is not None and steal > MOST_STEAL_SHARE:
        yield Instability(
            "steal",
            f"noisy host ({share(steal, decimals=1)} of CPU time stolen)",
            "measure at another hour, or rent a machine whose CPUs are not shared",
        )
    frozen = watched.frozen_seconds
    if frozen is not None and frozen > _MOST_FROZEN_SHARE * watched.seconds:
        yield Instability(
            "quota",
            f"a CPU quota stopped the trial for {share(frozen / watched.seconds)} of the time",
            "raise the container's CPU limit, or use no more threads than it allows",
        )
    for reason in watched.throttles or ():
        yield Instability("throttling", *_THROTTLED[reason])


_COOL = "cool the machine better, or leave it idle between trials"
_THROTTLED: Mapping[Throttle, tuple[str, str]] = MappingProxyType(
    {
        "cpu-heat": ("the CPU lowered its clock for heat", _COOL),
        "gpu-heat": ("the GPU lowered its clocks for heat", _COOL),
        "gpu-power-cap": (
            "the GPU lowered its clocks to keep its power cap",
            "take the result as one at this cap, or raise the cap where you may",
        ),
        "gpu-power-brake": (
            "the machine told the GPU to save power",
            "look at the power supply and at what else it feeds",
        ),
        "gpu-slowdown": (
            "the GPU's hardware halved its clocks or more",
            "look at its cooling and at its power supply",
        ),
    }
)


def _samples(result: Result) -> Iterator[Instability]:
    samples, grain = result.measurement.samples_seconds, result.environment.timer_step_seconds
    if len(samples) < _FEWEST_SAMPLES:
        yield Instability(
            "few",
            f"only {len(samples)} samples",
            "raise budget_seconds in the study's [sampling], and measure without --quick",
        )
    # The shortest sample is faster to find than the median and settles nearly all measurements.
    if grain is not None and min(samples) < _FEWEST_TIMER_STEPS * grain:
        step = median(samples)
        if step < _FEWEST_TIMER_STEPS * grain:
            yield Instability(
                "timer",
                f"one step takes {seconds(step)}, the timer's own step is {seconds(grain)}",
                "take a larger batch",
            )
    yield from _rounds_apart(result.measurement)
    # A single process does not show differences between processes.
    if len(result.measurement.rounds) <= 1:
        yield Instability(
            "process",
            "measured in one process only",
            "measure in several, so that their spread counts: without --quick, and with "
            "`--rounds 3`, or `rounds = 3` in the study",
        )


def _rounds_apart(measurement: Measurement) -> Iterator[Instability]:
    samples, counts = measurement.samples_seconds, measurement.samples_by_round
    means = [fmean(samples[begin:end]) for begin, end in pairwise(accumulate(counts, initial=0))]
    change = max(means) / min(means) - 1
    if change > _MOST_BETWEEN_ROUNDS:
        yield Instability(
            "rounds",
            f"the slowest of {len(means)} rounds took {share(change)} longer than the fastest",
            "measure in more rounds (--rounds, --resume), spread over hours; look for heat, for a "
            "neighbour, or for threads placed by chance: `threads`, `vcpus`",
        )
