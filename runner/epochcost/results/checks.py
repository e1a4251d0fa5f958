"""Checks that refuse implausible results; each check detects one kind of honest mistake.

A check yields a message if a result has the mistake that its docstring names. A careful forgery
passes; only measuring again reveals it. ``records`` and ``submissions`` check the form of a file,
and ``sidecar_faults`` checks records that are not results.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from epochcost.results.environment import Environment, fingerprint
from epochcost.results.plausibility import FlopsByModel, contradictions, example_flops, peak_flops
from epochcost.results.records import Result
from epochcost.results.rounds import without_disturbed_rounds
from epochcost.results.stability import instabilities
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.hardware import Hardware
from epochcost.specs.study import Mode
from epochcost.statistics.interval import relative_half_width
from epochcost.units import scientific, seconds, share

# The first version that stored results is of this month: an older date shows a wrong clock.
_FIRST_RESULT = dt.datetime(2026, 11, 1, tzinfo=dt.UTC)
# A clock that is not synchronised may be ahead by this much.
_MOST_AHEAD = dt.timedelta(hours=1)
# Tolerance for sums of floats and for clocks that are read one after the other.
_ROUNDING = 1.01
# Reading the conditions took at most 6.2 % of the sampling phase and 0.14 s in 641 rounds. Earlier
# versions also timed a reference loop, in at most 5 % and 0.06 s more.
_LEAST_SAMPLED_SHARE, _MOST_BESIDES_SECONDS = 0.8, 0.3
# Some stored results ended as precise under earlier statistics; today their intervals are wider, by
# at most this factor.
_MOST_WIDER = 1.5
_FEWEST_TO_DIFFER = 5


@dataclass(frozen=True)
class Claim:
    """A result to check at the time ``now``; ``counted`` caches the FLOPs of one example."""

    result: Result
    catalogue: Catalogue
    now: dt.datetime
    counted: FlopsByModel = field(default_factory=dict)


def first_fault(claim: Claim) -> str | None:
    """The message of the first check that refuses a result; None if all checks pass."""
    return next((fault for check in CHECKS for fault in check(claim)), None)


def _model(claim: Claim) -> Iterator[str]:
    """A model without a spec, or a mode that the model's spec does not have."""
    trial = claim.result.trial
    yield from unknown_model(claim.catalogue, trial.model, trial.mode)


def unknown_model(catalogue: Catalogue, name: str, mode: Mode) -> Iterator[str]:
    """Yield a message if the catalogue has no spec of the model with the mode."""
    model = catalogue.models.get(name)
    if model is None or (mode == "training" and model.training is None):
        yield f"model: expected a model whose spec has {mode}, got {name!r:.80}"


def _hardware(claim: Claim) -> Iterator[str]:
    """A machine without a spec."""
    yield from unknown_machine(claim.catalogue, claim.result.hardware)


def unknown_machine(catalogue: Catalogue, hardware: str) -> Iterator[str]:
    """Yield a message if the catalogue has no spec of the machine."""
    if hardware not in catalogue.hardware:
        yield f"hardware: expected a machine with a spec, got {hardware!r:.80}"


def _host(claim: Claim) -> Iterator[str]:
    """A result under another machine's name."""
    result = claim.result
    hardware = claim.catalogue.hardware[result.hardware]
    yield from another_machine(hardware, result.environment, result.contradictions)


def another_machine(
    hardware: Hardware, environment: Environment, stated: tuple[str, ...]
) -> Iterator[str]:
    """Yield a message if the host differs from its spec beyond the ``stated`` differences."""
    unsaid = [text for text in contradictions(hardware, environment) if text not in stated]
    if unsaid:
        yield f"environment: expected {hardware.name}, got {'; '.join(unsaid)}"


def _fingerprint(claim: Claim) -> Iterator[str]:
    """A machine whose CPU, memory or GPUs were edited."""
    yield from edited_environment(claim.result.environment)


def edited_environment(environment: Environment) -> Iterator[str]:
    """Yield a message if the fingerprint is not the hash of the stored host."""
    derived = fingerprint(
        environment.cpu,
        environment.physical_cores,
        environment.logical_cpus,
        environment.memory_bytes,
        environment.gpus,
    )
    if environment.fingerprint != derived:
        got = f"got {environment.fingerprint:.40}"
        yield f"fingerprint: expected {derived}, that of this CPU, memory and GPUs; {got}"


def _date(claim: Claim) -> Iterator[str]:
    """A machine whose clock was wrong."""
    measurement = claim.result.measurement
    turns = measurement.rounds or (measurement,)
    ended = max(turn.started_at + dt.timedelta(seconds=turn.wall_seconds) for turn in turns)
    yield from wrong_clock("started_at", measurement.started_at, ended, claim.now)


def wrong_clock(
    key: str, begun: dt.datetime, ended: dt.datetime, now: dt.datetime
) -> Iterator[str]:
    """Yield a message if times are before November 2026 or over an hour after ``now``."""
    if begun < _FIRST_RESULT:
        yield f"{key}: expected {_FIRST_RESULT:%Y-%m-%d} or later, got {begun:%Y-%m-%d}"
    if ended > now + _MOST_AHEAD:
        yield f"{key}: expected an end in the past, got {ended:%Y-%m-%d %H:%M} UTC"


def _turns(claim: Claim) -> Iterator[str]:
    """Rounds that overlap in time."""
    for turn, following in pairwise(claim.result.measurement.rounds):
        if following.started_at < turn.started_at + dt.timedelta(seconds=turn.wall_seconds):
            yield f"rounds: expected no overlap, got one that began at {following.started_at}"


def _duration(claim: Claim) -> Iterator[str]:
    """Times that are in a wrong unit or were edited."""
    measurement = claim.result.measurement
    if measurement.served is None:
        total = sum(measurement.samples_seconds) + sum(measurement.warmup_seconds)
    else:
        # LoadGen computes a server's rate from the samples without the first.
        runs = measurement.served.runs
        total = sum((run.samples - 1) / run.samples_per_second for run in runs)
    if total > measurement.wall_seconds * _ROUNDING:
        yield (
            f"wall_seconds: expected at least the {total:.6g} s that were timed, got "
            f"{measurement.wall_seconds:.6g} s"
        )


def _phase(claim: Claim) -> Iterator[str]:
    """Samples that were edited or left out."""
    measurement = claim.result.measurement
    watched = measurement.conditions
    if watched is None or measurement.served is not None:
        return
    turns, total = max(1, len(measurement.rounds)), sum(measurement.samples_seconds)
    least = _LEAST_SAMPLED_SHARE * watched.seconds - _MOST_BESIDES_SECONDS * turns
    if not least <= total <= watched.seconds * _ROUNDING:
        yield (
            f"samples_seconds: expected {max(least, 0):.6g} to {watched.seconds:.6g} s in all, as "
            f"the sampling phase took, got {total:.6g} s"
        )


def _steps(claim: Claim) -> Iterator[str]:
    """Samples that were added."""
    measurement = claim.result.measurement
    timed = len(measurement.samples_seconds) + len(measurement.warmup_seconds)
    if measurement.steps_taken < timed:
        yield f"steps_taken: expected at least the {timed} timed, got {measurement.steps_taken}"


def _sums(claim: Claim) -> Iterator[str]:
    """Rounds that were left out or added."""
    measurement, rounds = claim.result.measurement, claim.result.measurement.rounds
    if not rounds:
        return
    wall, steps = sum(turn.wall_seconds for turn in rounds), sum(t.steps_taken for t in rounds)
    if not math.isclose(wall, measurement.wall_seconds, rel_tol=1e-6):
        yield f"wall_seconds: expected the {wall:.6g} s of all rounds, got another sum"
    if steps != measurement.steps_taken:
        yield f"steps_taken: expected the {steps} of all rounds, got {measurement.steps_taken}"


def _memory(claim: Claim) -> Iterator[str]:
    """Memory in a wrong unit."""
    peak = claim.result.measurement.peak_memory_bytes
    if peak is not None and peak > (claim.result.environment.memory_bytes or math.inf):
        yield f"peak_memory_bytes: expected at most the machine's memory, got {peak}"


def _cpus(claim: Claim) -> Iterator[str]:
    """A trial that did not use the CPUs that it names."""
    trial, pinning = claim.result.trial, claim.result.measurement.pinning
    logical = claim.result.environment.logical_cpus
    if trial.vcpus is not None and trial.vcpus > logical:
        yield f"vcpus: expected at most the {logical} CPUs of the machine, got {trial.vcpus}"
    pinned = pinning and len({*pinning.cpus})
    if pinned != trial.vcpus:
        expected = f"{trial.vcpus or 'all'} CPUs, as in the trial"
        yield f"pinning: expected {expected}, got {pinned or 'all'}"


def _gpu(claim: Claim) -> Iterator[str]:
    """A CPU's result under a GPU's name."""
    trial, gpus = claim.result.trial, claim.result.environment.gpus
    if trial.provider == "cuda" and trial.session.device >= len(gpus):
        device = f"the GPU {trial.session.device} that the trial used"
        yield f"gpus: expected {device}; got {len(gpus)} GPUs"


def _placement(claim: Claim) -> Iterator[str]:
    """A result without any executed node."""
    if not any(claim.result.measurement.placement.nodes_by_provider.values()):
        yield "placement: expected the nodes that ran, got none"


def _peak(claim: Claim) -> Iterator[str]:
    """A time that is too short for the hardware."""
    trial, measured = claim.result.trial, claim.result.measurement
    example = example_flops(claim.catalogue, claim.catalogue.models[trial.model], claim.counted)
    if example is None:
        return
    if measured.served is not None:
        run = measured.served.run
        rate = example * run.samples_per_second if run else 0.0
    else:
        step_seconds = sum(measured.samples_seconds) / len(measured.samples_seconds)
        rate = example * trial.batch_size / step_seconds
    peak = peak_flops(claim.catalogue, claim.result)
    if rate > peak:
        yield (
            f"samples_seconds: expected at most {scientific(peak)} FLOP/s, what this machine can "
            f"do, got {scientific(rate)}"
        )


# Each check's docstring names what it catches; docs/how-to/review-a-result.md lists them.
CHECKS: Sequence[Callable[[Claim], Iterator[str]]] = (
    _model, _hardware, _host, _fingerprint, _date, _turns, _duration, _phase, _steps, _sums,
    _memory, _cpus, _gpu, _placement, _peak,
)  # fmt: skip


def unwatched_rounds(result: Result) -> Iterator[str]:
    """Yield a message if a round of ``result`` lacks the duration of its sampling phase."""
    measurement = result.measurement
    turns = measurement.rounds or (measurement,)
    if measurement.served is None and not all(turn.conditions for turn in turns):
        yield "conditions: expected the duration of each round's sampling phase, got none"


def review_remarks(result: Result) -> Iterator[str]:
    """Remarks for a reviewer about facts of a result that are unusual but may be true."""
    yield from (f"differs from the spec: {each}" for each in result.contradictions)
    measurement = result.measurement
    for instability in instabilities(without_disturbed_rounds(result)):
        yield f"unstable: {instability.phrase}"
    if result.environment.modified:
        yield "measured by a checkout with uncommitted changes"
    samples = measurement.samples_seconds
    if len(samples) >= _FEWEST_TO_DIFFER and samples.count(samples[0]) == len(samples):
        yield f"all {len(samples)} samples are the same: {seconds(samples[0])}"
    if samples and measurement.stop_reason == "precise":
        demanded = float(result.trial.relative_half_width)
        width = relative_half_width(samples, measurement.samples_by_round)
        if width > _MOST_WIDER * demanded:
            aim, reached = (share(each, decimals=1) for each in (demanded, width))
            yield f"stopped as precise to {aim}, but the samples give {reached}"
