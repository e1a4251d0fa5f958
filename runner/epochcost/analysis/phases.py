"""Collect the times of a decoder's phases: reading a prompt (prefill) and adding a token (decode).

Times are interpolated between the measured lengths of prompts and contexts, and unknown beyond.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from operator import attrgetter, itemgetter

from epochcost.analysis.inputs import Inputs, StoredResult
from epochcost.analysis.machines import Machine
from epochcost.analysis.observations import Evidence, mean_time
from epochcost.analysis.representatives import doubts_about, of_whole_machines
from epochcost.cost.estimate import Time
from epochcost.cost.tracing import where
from epochcost.plan.work import Phase
from epochcost.results.rounds import summary_of
from epochcost.specs.study import Precision
from epochcost.statistics import group_by
from epochcost.units import render_runtime


@dataclass(frozen=True, slots=True)
class PhaseTime:
    """The measured time of a phase for ``sequences`` sequences at once, and the metered power."""

    phase: Phase
    sequences: int
    step: Time
    evidence: Evidence
    doubts: tuple[str, ...] = ()
    watts: float | None = None

    @property
    def joules_per_token(self) -> float | None:
        """Energy in joules for each token that is read or written; None without a meter."""
        return None if self.watts is None else self.watts / float(self.tokens_per_second)

    @property
    def tokens_per_second(self) -> Decimal:
        """Tokens read or written a second, over all sequences."""
        return self.phase.new_tokens * self.sequences / self.step.mean


@dataclass(frozen=True)
class TimedDecoder:
    """The measured times of a decoder's phases on a machine in a precision."""

    model: str
    machine: Machine
    precision: Precision
    software: str
    phases: tuple[PhaseTime, ...]

    @property
    def sequences(self) -> tuple[int, ...]:
        """Numbers of sequences with which decoding was timed, ascending; empty without prefill."""
        if not self.steps("prefill", 1):
            return ()
        return tuple(
            sorted({timed.sequences for timed in self.phases if timed.phase.name == "decode"})
        )

    @cached_property
    def lengths(self) -> dict[str, tuple[int, int]]:
        """The shortest and the longest timed length of each phase, in tokens."""
        named = group_by(self.phases, lambda timed: timed.phase.name)
        lengths = {name: [timed.phase.tokens for timed in group] for name, group in named.items()}
        return {name: (min(tokens), max(tokens)) for name, tokens in lengths.items()}

    def steps(self, name: str, sequences: int) -> tuple[tuple[int, Time], ...]:
        """Pairs of a length (prompt or context, in tokens) and a step's time, shortest first."""
        pairs = (
            (timed.phase.tokens, timed.step)
            for timed in self.phases
            if (timed.phase.name, timed.sequences) == (name, sequences)
        )
        return tuple(sorted(pairs, key=itemgetter(0)))

    def time(self, name: str, tokens: Decimal, sequences: int) -> Time | None:
        """The time to read prompts, or to add a token to contexts; None outside timed lengths."""
        steps = self.steps(name, sequences)
        if not steps or not steps[0][0] <= tokens <= steps[-1][0]:
            return None
        return Time(*(seconds_at(points, tokens) for points in ends_of(steps)))


def ends_of(steps: Sequence[tuple[int, Time]]) -> Iterator[list[tuple[int, Decimal]]]:
    """Yield three lists of (tokens, seconds): low ends, means and high ends of the times."""
    for end in map(attrgetter, ("low", "mean", "high")):
        yield [(tokens, end(step)) for tokens, step in steps]


def seconds_at(points: Sequence[tuple[int | Decimal, Decimal]], tokens: Decimal) -> Decimal:
    """Interpolate the seconds for the length ``tokens`` between ``points`` (length, seconds).

    ``tokens`` may be an `Expression`; the result is then a formula (see `cost.tracing`).
    """
    seconds = points[0][1]
    for (low, fast), (high, slow) in itertools.pairwise(points):
        line = fast + (tokens - low) * (slow - fast) / (high - low)
        seconds = where(tokens <= low, seconds, line)
    return seconds


def timed_decoders(inputs: Inputs, model: str | None = None) -> tuple[TimedDecoder, ...]:
    """Phase times of a decoder (None: all decoders) in default settings, but any precision."""
    named = (stored for stored in inputs.stored if model in (None, stored.result.trial.model))
    groups = group_by(of_whole_machines(named, Phase), _setting)
    return tuple(_decoder(inputs, group) for group in groups.values())


# Results that agree in these facts are phases of the same decoder.
_setting = attrgetter(
    "result.trial.model", "result.hardware", "result.environment.fingerprint",
    "result.trial.provider", "result.trial.precision", "result.trial.runtime",
)  # fmt: skip


def _decoder(inputs: Inputs, stored: Sequence[StoredResult]) -> TimedDecoder:
    result, trial = stored[0].result, stored[0].result.trial
    return TimedDecoder(
        model=trial.model,
        machine=inputs.machine(result),
        precision=trial.precision,
        software=render_runtime(trial.runtime),
        phases=tuple(map(_phase_time, stored)),
    )


def _phase_time(stored: StoredResult) -> PhaseTime:
    result, phase = stored.result, stored.result.trial.work
    assert isinstance(phase, Phase), "callers choose results of phases"
    return PhaseTime(
        phase=phase,
        sequences=result.trial.batch_size,
        step=mean_time(summary_of(result)),
        evidence=Evidence("result file", stored.uri),
        doubts=doubts_about(result),
        watts=result.measurement.energy.watts if result.measurement.energy else None,
    )
