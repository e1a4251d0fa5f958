"""Whether the figures of one result can be true, and what of them a reviewer should look at. Pure.

What can be told from the result alone is told here; what needs the spec of the machine or of the
model is left to ``execute.submissions``.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from itertools import pairwise

from epochcost.results.fingerprint import fingerprint
from epochcost.results.records import Environment, Measurement, Result, Round
from epochcost.results.stability import instabilities
from epochcost.results.summary import summary_of
from epochcost.units import seconds

# No earlier version of epochcost stored results: an older date is of a clock that is not set.
_FIRST_RESULT = dt.datetime(2026, 11, 1, tzinfo=dt.UTC)
# Clocks of machines that nobody keeps in step may be ahead by this much.
_MOST_AHEAD = dt.timedelta(hours=1)
# Sums of floats, and clocks that are read one after the other.
_ROUNDING = 1.01
# Calling ONNX Runtime at all takes some microseconds.
_SHORTEST_STEP_SECONDS = 1e-6
# What stopped as precise was so by the statistics of its day; later ones may differ by this much.
_MOST_WIDER = 1.5
_FEWEST_TO_DIFFER = 5


def implausible(result: Result, now: dt.datetime) -> Iterator[str]:
    """What cannot be true of a result, each as a sentence in the words of a fault."""
    yield from _clock(result.measurement, now)
    yield from _times(result.measurement)
    yield from _machine(result)


def _clock(measurement: Measurement, now: dt.datetime) -> Iterator[str]:
    turns: tuple[Round | Measurement, ...] = measurement.rounds or (measurement,)
    last = max(one.started_at + _duration(one.wall_seconds) for one in turns)
    yield from implausible_dates("started_at", measurement.started_at, last, now)
    for one, other in pairwise(measurement.rounds):
        if other.started_at < one.started_at + _duration(one.wall_seconds):
            yield f"rounds: demanded one after the other; got one at {other.started_at} too early"
            return


def implausible_dates(
    key: str, begun: dt.datetime, ended: dt.datetime, now: dt.datetime
) -> Iterator[str]:
    """What cannot be true of when something was measured, which ``key`` says."""
    if begun < _FIRST_RESULT:
        yield f"{key}: demanded a date from {_FIRST_RESULT:%Y-%m-%d} on; got {begun:%Y-%m-%d}"
    if ended > now + _MOST_AHEAD:
        yield f"{key}: demanded an end in the past; got {ended:%Y-%m-%d %H:%M} UTC"


def _duration(wall_seconds: float) -> dt.timedelta:
    """A duration of any finite float, at most a century."""
    return dt.timedelta(seconds=min(wall_seconds, 100 * 366 * 86_400.0))


def _times(measurement: Measurement) -> Iterator[str]:
    taken = sum(measurement.samples_seconds)
    total = taken + sum(measurement.warmup_seconds)
    steps = len(measurement.samples_seconds) + len(measurement.warmup_seconds)
    if total > measurement.wall_seconds * _ROUNDING:
        yield (
            f"samples_seconds: demanded at most the {measurement.wall_seconds:.6g} s of the trial "
            f"in all; got {total:.6g} s with the warm-up"
        )
    watched = measurement.conditions
    if watched is not None and taken > watched.seconds * _ROUNDING:
        yield (
            f"samples_seconds: demanded at most the {watched.seconds:.6g} s of the sampling "
            f"phase in all; got {taken:.6g} s"
        )
    if measurement.steps_taken < steps:
        yield f"steps_taken: demanded at least the {steps} timed; got {measurement.steps_taken}"
    fastest = min(measurement.samples_seconds, default=1.0)
    if fastest < _SHORTEST_STEP_SECONDS:
        yield f"samples_seconds: demanded at least a microsecond a step; got {fastest:.3g} s"


def _machine(result: Result) -> Iterator[str]:
    environment, trial = result.environment, result.trial
    yield from implausible_environment(environment)
    peak, memory_bytes = result.measurement.peak_memory_bytes, environment.memory_bytes
    if peak is not None and memory_bytes is not None and peak > memory_bytes:
        yield f"peak_memory_bytes: demanded at most the machine's memory; got {peak}"
    logical = environment.logical_cpus
    if trial.vcpus is not None and trial.vcpus > logical:
        yield f"vcpus: demanded at most the {logical} CPUs of the machine; got {trial.vcpus}"
    if trial.provider == "cuda" and trial.session.device >= len(environment.gpus):
        found = f"got {len(environment.gpus)} GPUs"
        yield f"gpus: demanded the GPU {trial.session.device} that the trial used; {found}"
    if not any(result.measurement.placement.nodes_by_provider.values()):
        yield "placement: demanded the nodes that ran; got none"


def implausible_environment(environment: Environment) -> Iterator[str]:
    """Where a machine's description contradicts itself."""
    if environment.memory_bytes is not None:
        derived = _fingerprint(environment, environment.memory_bytes)
        if environment.fingerprint != derived:
            got = f"got {environment.fingerprint:.40}"
            yield f"fingerprint: demanded {derived}, that of this CPU, memory and GPUs; {got}"
    cores, logical = environment.physical_cores, environment.logical_cpus
    if cores is not None and cores > logical:
        yield f"physical_cores: demanded at most the {logical} logical CPUs; got {cores}"


def _fingerprint(environment: Environment, memory_bytes: int) -> str:
    return fingerprint(
        environment.cpu,
        environment.physical_cores,
        environment.logical_cpus,
        memory_bytes,
        environment.gpus,
    )


def remarkable(result: Result) -> Iterator[str]:
    """What a reviewer should look at, though it may well be true."""
    yield from (f"measured as is: {one}" for one in result.contradictions)
    measurement, environment = result.measurement, result.environment
    for found in instabilities(measurement, environment):
        yield f"unstable: {found.seen}"
    if environment.modified:
        yield "measured by a checkout with changes that no commit has"
    samples = measurement.samples_seconds
    if len(samples) >= _FEWEST_TO_DIFFER and len(set(samples)) == 1:
        yield f"all {len(samples)} samples are the same: {seconds(samples[0])}"
    if samples and measurement.stop_reason == "precise":
        width, demanded = summary_of(measurement).relative_half_width, result.trial
        if width > _MOST_WIDER * float(demanded.relative_half_width):
            yield (
                f"it stopped as precise to {float(demanded.relative_half_width):.1%}, and its "
                f"samples give {width:.1%}"
            )
