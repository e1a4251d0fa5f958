"""The phases of a decoder as they were timed: prompts that are read, and tokens that are added.

Between the lengths that were measured times are interpolated, beyond them nothing is said. What
requests cost that are put together from phases is left to ``tokens``.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

from epochcost.analysis.inputs import Inputs, StoredResult
from epochcost.analysis.machines import Machine
from epochcost.analysis.observations import Evidence, mean_time
from epochcost.analysis.representatives import doubts_about, representatives
from epochcost.analysis.rows import group_by
from epochcost.cost import Time
from epochcost.plan.work import Phase
from epochcost.results.rounds import summary_of
from epochcost.specs.study import Precision


@dataclass(frozen=True, slots=True)
class PhaseTime:
    """One phase of a decoder as it was timed, of ``sequences`` at once, drawing ``watts``."""

    phase: Phase
    sequences: int
    step: Time
    evidence: Evidence
    doubts: tuple[str, ...] = ()
    watts: float | None = None

    @property
    def joules_per_token(self) -> float | None:
        """By token read or written; None where no meter read."""
        return None if self.watts is None else self.watts / float(self.tokens_per_second)

    @property
    def tokens_per_second(self) -> Decimal:
        """Tokens read or written, of all sequences together."""
        return self.phase.new_tokens * self.sequences / self.step.mean


@dataclass(frozen=True)
class TimedDecoder:
    """All phases of one decoder that were timed on one machine in one precision."""

    model: str
    machine: Machine
    precision: Precision
    software: str
    phases: tuple[PhaseTime, ...]

    def prefill(self, prompt: int) -> Time | None:
        """The time to read one prompt; None where no longer and no shorter one was timed."""
        return self._between("prefill", prompt, 1)

    def decode(self, context: int, sequences: int) -> Time | None:
        """The time of one more token of all sequences, with so many tokens before it."""
        return self._between("decode", context, sequences)

    @property
    def sequences(self) -> tuple[int, ...]:
        """The numbers of sequences whose decoding was timed."""
        return tuple(sorted({one.sequences for one in self.phases if one.phase.name == "decode"}))

    @cached_property
    def lengths(self) -> dict[str, tuple[int, int]]:
        """By phase the shortest and the longest that was timed."""
        named = group_by(self.phases, lambda one: one.phase.name)
        return {
            name: (min(o.phase.tokens for o in own), max(o.phase.tokens for o in own))
            for name, own in named.items()
        }

    def _between(self, name: str, tokens: int, sequences: int) -> Time | None:
        timed = sorted(
            (
                (one.phase.tokens, one.step)
                for one in self.phases
                if one.phase.name == name and one.sequences == sequences
            ),
            key=lambda one: one[0],
        )
        for (low, fast), (high, slow) in itertools.pairwise(timed):
            if low <= tokens <= high:
                return _mixed(fast, slow, Decimal(tokens - low) / (high - low))
        return next((step for length, step in timed if length == tokens), None)


def _mixed(one: Time, other: Time, share: Decimal) -> Time:
    """The time on the straight line between both, ``share`` of the way to the other."""
    return Time(
        *(
            a + (b - a) * share
            for a, b in ((one.low, other.low), (one.mean, other.mean), (one.high, other.high))
        )
    )


def timed_decoders(inputs: Inputs) -> tuple[TimedDecoder, ...]:
    """Every decoder whose phases were timed on whole machines, in the order of the files."""
    own = [
        one
        for one in inputs.stored
        if isinstance(one.result.trial.work, Phase)
        and one.result.trial.variant in ("", one.result.trial.precision)
    ]
    groups = group_by(
        representatives(own),
        lambda one: (
            one.result.trial.model,
            one.result.hardware,
            one.result.environment.fingerprint,
            one.result.trial.provider,
            one.result.trial.precision,
            one.result.trial.runtime,
        ),
    )
    return tuple(_decoder(inputs, group) for group in groups.values())


def _decoder(inputs: Inputs, stored: Sequence[StoredResult]) -> TimedDecoder:
    result, trial = stored[0].result, stored[0].result.trial
    return TimedDecoder(
        model=trial.model,
        machine=inputs.machine(result),
        precision=trial.precision,
        software=trial.runtime.replace("==", " "),
        phases=tuple(
            _phase_time(one, phase)
            for one in stored
            if isinstance(phase := one.result.trial.work, Phase)
        ),
    )


def _phase_time(stored: StoredResult, phase: Phase) -> PhaseTime:
    result = stored.result
    return PhaseTime(
        phase=phase,
        sequences=result.trial.batch_size,
        step=mean_time(summary_of(result.measurement)),
        evidence=Evidence("result file", stored.uri),
        doubts=doubts_about(result),
        watts=result.measurement.energy.watts if result.measurement.energy else None,
    )
