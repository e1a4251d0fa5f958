"""Whether the figures of one result can be true, and what of them a reviewer should look at. Pure.

What can be told from the result alone is told here; what needs the spec of the machine or of the
model is left to ``results.submissions``.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, pairwise

from epochcost.results.environment import Environment, fingerprint
from epochcost.results.records import Measurement, Result, Round
from epochcost.results.stability import instabilities
from epochcost.statistics import relative_half_width
from epochcost.units import seconds
from onnxstep.graphs.contrib import runtime_operator_names

# No earlier version of epochcost stored results: an older date is of a clock that is not set.
_FIRST_RESULT = dt.datetime(2026, 11, 1, tzinfo=dt.UTC)
# Clocks of machines that nobody keeps in step may be ahead by this much.
_MOST_AHEAD = dt.timedelta(hours=1)
# Sums of floats, and clocks that are read one after the other.
_ROUNDING = 1.01
# What the sampling phase may take besides its samples: a tenth, a quarter of a second (or of the
# phase, where it is shorter than a second) for starting and stopping what watches it, and between
# two steps some microseconds; in 641 rounds at most 6.2 %, 0.14 s and 2 us.
_MOST_BESIDES_SHARE = 0.1
_MOST_BESIDES_SECONDS = 0.25
_MOST_BETWEEN_STEPS_SECONDS = 1e-5
# Earlier versions read the machine's pace meanwhile: after a wait, for a share of the phase.
_READING_SECONDS, _READING_SHARE = 0.06, 0.05
# No host shows more to one kernel: sixteen sockets of 60 cores with two threads are 1,920.
MOST_CPUS = 2048
# No machine with a few accelerators draws more; a meter that read more counted something else.
_MOST_WATTS = 100_000
# Calling ONNX Runtime at all takes some microseconds.
_SHORTEST_STEP_SECONDS = 1e-6
# What stopped as precise was so by the statistics of its day; later ones may differ by this much.
_MOST_WIDER = 1.5
_FEWEST_TO_DIFFER = 5


def implausible_figures(result: Result, now: dt.datetime) -> Iterator[str]:
    """What cannot be true of a result, a sentence for each in the words of a fault."""
    yield from _clock(result.measurement, now)
    yield from _times(result.measurement)
    yield from _phases(result)
    yield from _served(result.measurement)
    yield from _rounds(result.measurement)
    yield from _power(result.measurement)
    yield from _machine(result)


def _clock(measurement: Measurement, now: dt.datetime) -> Iterator[str]:
    turns: tuple[Round | Measurement, ...] = measurement.rounds or (measurement,)
    last = max(one.started_at + dt.timedelta(seconds=one.wall_seconds) for one in turns)
    yield from implausible_dates("started_at", measurement.started_at, last, now)
    for one, other in pairwise(measurement.rounds):
        if other.started_at < one.started_at + dt.timedelta(seconds=one.wall_seconds):
            yield f"rounds: expected one after the other, got one at {other.started_at} too early"
            return


def implausible_dates(
    key: str, begun: dt.datetime, ended: dt.datetime, now: dt.datetime
) -> Iterator[str]:
    """What cannot be true of when something was measured, which ``key`` says."""
    if begun < _FIRST_RESULT:
        yield f"{key}: expected a date from {_FIRST_RESULT:%Y-%m-%d} on, got {begun:%Y-%m-%d}"
    if ended > now + _MOST_AHEAD:
        yield f"{key}: expected an end in the past, got {ended:%Y-%m-%d %H:%M} UTC"


def _times(measurement: Measurement) -> Iterator[str]:
    taken = sum(measurement.samples_seconds)
    total = taken + sum(measurement.warmup_seconds)
    steps = len(measurement.samples_seconds) + len(measurement.warmup_seconds)
    if total > measurement.wall_seconds * _ROUNDING:
        yield (
            f"samples_seconds: expected at most the {measurement.wall_seconds:.6g} s of the trial "
            f"in all, got {total:.6g} s with the warm-up"
        )
    if measurement.served is None and not measurement.warmup_seconds:
        yield "warmup_seconds: expected a step at least, as every trial begins with, found none"
    if measurement.steps_taken < steps:
        yield f"steps_taken: expected at least the {steps} timed, got {measurement.steps_taken}"
    fastest = min(measurement.samples_seconds, default=1.0)
    if fastest < _SHORTEST_STEP_SECONDS:
        yield f"samples_seconds: expected at least a microsecond a step, got {fastest:.3g} s"


def _phases(result: Result) -> Iterator[str]:
    """Samples fill the phase in which they were taken, and a process's phases fit its time."""
    for phase in _of_rounds(result.measurement):
        if phase.warmup + phase.samples > phase.wall_seconds * _ROUNDING:
            yield (
                f"wall_seconds: expected at least the {phase.warmup + phase.samples:.6g} s of a "
                f"round's steps, got {phase.wall_seconds:.6g} s"
            )
        if phase.seconds is None:
            continue
        if phase.samples > phase.seconds * _ROUNDING:
            yield (
                f"samples_seconds: expected at most the {phase.seconds:.6g} s of the sampling "
                f"phase in all, got {phase.samples:.6g} s"
            )
        # Between the steps of a former trial the copy of a batch may lie, whose time nobody took.
        elif not result.trial.former and phase.samples < phase.least:
            yield (
                f"samples_seconds: expected at least {phase.least:.6g} s in all of a sampling "
                f"phase of {phase.seconds:.6g} s, got {phase.samples:.6g} s"
            )
        if phase.seconds + phase.warmup > phase.wall_seconds * _ROUNDING:
            yield (
                f"conditions: expected at most the {phase.wall_seconds:.6g} s of a round, got a "
                f"sampling phase of {phase.seconds:.6g} s after {phase.warmup:.6g} s of warm-up"
            )


@dataclass(frozen=True)
class _Turn:
    """One process's sums of times, and how long its sampling phase was; None where unwatched."""

    steps: int
    samples: float
    warmup: float
    wall_seconds: float
    seconds: float | None

    @property
    def least(self) -> float:
        """What the samples of a watched phase take at least."""
        seconds = self.seconds or 0.0
        watching = _MOST_BESIDES_SECONDS * min(1.0, seconds)
        between = _MOST_BETWEEN_STEPS_SECONDS * self.steps
        reading = _READING_SECONDS + _READING_SHARE * seconds
        return seconds * (1 - _MOST_BESIDES_SHARE) - watching - between - reading


def _of_rounds(measurement: Measurement) -> Iterator[_Turn]:
    """Every round by itself; a measurement without any was one. None under LoadGen."""
    if measurement.served is not None:
        return
    samples, warmup = iter(measurement.samples_seconds), iter(measurement.warmup_seconds)
    turns: tuple[Round | Measurement, ...] = measurement.rounds or (measurement,)
    for turn, count in zip(turns, measurement.samples_by_round, strict=True):
        warm = turn.warmup_steps if isinstance(turn, Round) else len(measurement.warmup_seconds)
        yield _Turn(
            count,
            sum(islice(samples, count)),
            sum(islice(warmup, warm)),
            turn.wall_seconds,
            turn.conditions.seconds if turn.conditions else None,
        )


def _served(measurement: Measurement) -> Iterator[str]:
    """Whether LoadGen's statistics are in order, and its runs fit into the trial."""
    spent = 0.0
    for run in measurement.served.runs if measurement.served else ():
        latency = run.latency
        ordered = (
            latency.minimum_nanoseconds,
            latency.p50_nanoseconds,
            latency.p90_nanoseconds,
            latency.p99_nanoseconds,
            latency.maximum_nanoseconds,
        )
        if list(ordered) != sorted(ordered) or not (
            latency.minimum_nanoseconds <= latency.mean_nanoseconds <= latency.maximum_nanoseconds
        ):
            yield "latency: expected a minimum, percentiles and maximum that ascend, got others"
        if run.queries > run.samples:
            yield f"queries: expected at most the {run.samples} samples, got {run.queries}"
        spent += run.samples / run.samples_per_second
    if spent > measurement.wall_seconds * _ROUNDING:
        yield (
            f"runs: expected at most the {measurement.wall_seconds:.6g} s of the trial in all, "
            f"got {spent:.6g} s"
        )


def _rounds(measurement: Measurement) -> Iterator[str]:
    """What stands of all rounds together is the sum of each, or the most."""
    rounds = measurement.rounds
    if not rounds:
        return
    wall, steps = sum(one.wall_seconds for one in rounds), sum(one.steps_taken for one in rounds)
    if not math.isclose(wall, measurement.wall_seconds, rel_tol=1e-6):
        yield f"wall_seconds: expected the {wall:.6g} s of all rounds, got another sum"
    if steps != measurement.steps_taken:
        yield f"steps_taken: expected the {steps} of all rounds, got {measurement.steps_taken}"
    if rounds[0].started_at != measurement.started_at:
        yield "started_at: expected that of the first round, got another"
    peaks = [one.peak_memory_bytes for one in rounds]
    if None not in peaks and measurement.peak_memory_bytes != max(one or 0 for one in peaks):
        yield "peak_memory_bytes: expected the most of all rounds, got another"


def _power(measurement: Measurement) -> Iterator[str]:
    """Meters that read more than a machine can draw, or for longer than it was watched."""
    for energy in (measurement.energy, *(one.energy for one in measurement.rounds)):
        for reading in energy.readings if energy else ():
            if reading.watts > _MOST_WATTS:
                yield f"joules: expected at most {_MOST_WATTS:,} W, got {reading.watts:.3g} W"
            if reading.seconds > measurement.wall_seconds * _ROUNDING:
                yield (
                    f"energy.seconds: expected at most the {measurement.wall_seconds:.6g} s of the "
                    f"trial, got {reading.seconds:.6g} s"
                )


def _machine(result: Result) -> Iterator[str]:
    environment, trial = result.environment, result.trial
    yield from implausible_environment(environment)
    peak, memory_bytes = result.measurement.peak_memory_bytes, environment.memory_bytes
    if peak is not None and memory_bytes is not None and peak > memory_bytes:
        yield f"peak_memory_bytes: expected at most the machine's memory, got {peak}"
    logical = environment.logical_cpus
    if trial.vcpus is not None and trial.vcpus > logical:
        yield f"vcpus: expected at most the {logical} CPUs of the machine, got {trial.vcpus}"
    pinning = result.measurement.pinning
    if pinning is not None and len({*pinning.cpus, *pinning.siblings}) < len(
        (*pinning.cpus, *pinning.siblings)
    ):
        yield "pinning: expected each CPU once, got one twice"
    if pinning is not None and len(pinning.cpus) != trial.vcpus:
        yield f"pinning: expected the {trial.vcpus} CPUs of the trial, got {len(pinning.cpus)}"
    if trial.provider == "cuda" and trial.session.device >= len(environment.gpus):
        found = f"got {len(environment.gpus)} GPUs"
        yield f"gpus: expected the GPU {trial.session.device} that the trial used; {found}"
    placed = result.measurement.placement.nodes_by_provider
    if not any(placed.values()):
        yield "placement: expected the nodes that ran, found none"
    unknown = {
        name for operators in placed.values() for name in operators
    } - runtime_operator_names()
    if unknown:
        got = ", ".join(sorted(unknown)[:3])
        yield f"placement: expected operators of ONNX and of ONNX Runtime, got {got}"


def implausible_environment(environment: Environment) -> Iterator[str]:
    """Where a machine's description contradicts itself."""
    if environment.memory_bytes is None:
        yield "memory_bytes: expected the machine's, which its fingerprint is made of, found none"
    else:
        derived = _fingerprint(environment, environment.memory_bytes)
        if environment.fingerprint != derived:
            got = f"got {environment.fingerprint:.40}"
            yield f"fingerprint: expected {derived}, that of this CPU, memory and GPUs; {got}"
    cores, logical = environment.physical_cores, environment.logical_cpus
    if logical > MOST_CPUS:
        yield f"logical_cpus: expected at most {MOST_CPUS:,}, as no host has more, got {logical}"
    if cores is not None and cores > logical:
        yield f"physical_cores: expected at most the {logical} logical CPUs, got {cores}"


def _fingerprint(environment: Environment, memory_bytes: int) -> str:
    return fingerprint(
        environment.cpu,
        environment.physical_cores,
        environment.logical_cpus,
        memory_bytes,
        environment.gpus,
    )


def why_unwatched(measurement: Measurement) -> str | None:
    """Why its samples cannot be held against the clock of their phase; None where they can."""
    turns = measurement.rounds or (measurement,)
    if measurement.served is not None or all(one.conditions for one in turns):
        return None
    return "conditions: expected how long the sampling phase of each round took, found none"


def review_remarks(result: Result) -> Iterator[str]:
    """What a reviewer should look at, though it may well be true."""
    yield from (f"measured as is: {one}" for one in result.contradictions)
    measurement, environment = result.measurement, result.environment
    for found in instabilities(measurement, environment):
        yield f"unstable: {found.seen}"
    if environment.modified:
        yield "measured by a checkout with changes that no commit has"
    samples = measurement.samples_seconds
    if len(samples) >= _FEWEST_TO_DIFFER and samples.count(samples[0]) == len(samples):
        yield f"all {len(samples)} samples are the same: {seconds(samples[0])}"
    if samples and measurement.stop_reason == "precise":
        demanded = float(result.trial.relative_half_width)
        width = relative_half_width(samples, measurement.samples_by_round)
        if width > _MOST_WIDER * demanded:
            yield f"it stopped as precise to {demanded:.1%}, and its samples give {width:.1%}"
