"""What a step takes on its machine undisturbed, by what was read beside the samples.

Others who take a CPU make the trial's threads wait, which the system counts: a control variate,
whose share of a step ``statistics.control`` takes off. A lower clock or a neighbour on the same
core makes fixed products take longer than the machine's own pace, and others that use the memory
make copies: such stretches are left out where steps are slower in them, too, for by how much is not
known. And small virtual machines have two states, which mostly last as long as a process and often
longer: copies are slow and steps of many small operators fast, or the other way round. Both are the
machine's, and what differs between processes is mostly which of them they met. Each counts by the
share of the time that it has in all results of the machine; where one of them was not met, the
interval knows how far apart they may be. What readings say of samples is left to ``pace``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epochcost.results.pace import OwnPace, PaceKey, Stretches, pace_key
from epochcost.results.records import Result
from epochcost.statistics import Bounded, Summary
from epochcost.statistics.control import (
    Slope,
    Standard,
    standardised,
    undisturbed_mean,
    without_control,
)

Series = NDArray[np.float64]

# By how much the logarithms of a step in both states differ: the root of the mean square of the 73
# committed results of four rounds and more that met both.
_STATES_APART = 0.22
# Below this share of the time nothing was disturbed; above the other what is left may be chance.
_LEAST_DISTURBED, _MOST_LEFT_OUT = 0.02, 0.8
_FEWEST_SAMPLES = 10
# Processes differ: of several one alone says too little.
_FEWEST_ROUNDS = 2
# By how much a step's logarithm grows with the share of the time that its threads wait: of seven
# models beside programs that took one of two CPUs, always or at times (docs/method/measurement.md).
_USUAL_SLOPE = Slope(1.0, 0.2)


@dataclass(frozen=True)
class Undisturbed:
    """The mean step undisturbed, and which shares of the time were what.

    Others had the CPU, it was left out, copies were slow. ``step`` is None where too little was
    left. ``unmet_error`` is of the mean as it was, relative to it: the standard error that it has
    for a state of the machine that was not met, of which its own interval cannot know.
    """

    step: Bounded | None
    waited_share: float
    left_out_share: float
    slow_copies_share: float
    unmet_error: float


def undisturbed(result: Result, paces: Mapping[PaceKey, OwnPace]) -> Undisturbed | None:
    """The step undisturbed; None where it was that throughout, or its machine's pace is unknown."""
    found = _watched(result, paces)
    if found is None:
        return None
    waited, left_out = found.share_of(found.waited), found.share_of(~found.kept)
    slow_copies = found.share_of(found.slow_copies)
    unmet_error = 0.0 if found.standard() else found.unusual * _STATES_APART
    unknown = Undisturbed(None, waited, left_out, slow_copies, unmet_error)
    calm = found.calm()
    fewest = min(_FEWEST_ROUNDS, len(found.rounds))
    few = len(calm.times) < _FEWEST_SAMPLES or len(calm.rounds) < fewest
    if left_out > _MOST_LEFT_OUT or few:
        return unknown
    standard = calm.standard()
    if standard is None:
        if waited + left_out + calm.unusual < _LEAST_DISTURBED:
            return None
        standard = Standard(relative_error=calm.unusual * _STATES_APART)
    step = undisturbed_mean(
        calm.times, calm.waited, calm.stretches, calm.rounds, _USUAL_SLOPE, standard
    )
    return replace(unknown, step=step)


def as_it_was(summary: Summary, found: Undisturbed | None) -> Summary:
    """The samples' ``summary``, whose interval knows of a state of the machine that was not met."""
    return summary.less_sure(found.unmet_error) if found else summary


def undisturbed_rounds(
    result: Result, paces: Mapping[PaceKey, OwnPace]
) -> tuple[float | None, ...]:
    """The mean step of each round in seconds, by one slope; None of one that is left out whole."""
    found = _watched(result, paces)
    if found is None:
        return ()
    standard = found.standard() or Standard()
    corrected = found.without_waiting() * standard.scale
    bounds = np.cumsum([0, *found.rounds]).tolist()
    means = [corrected[begin:end][found.kept[begin:end]] for begin, end in pairwise(bounds)]
    return tuple(float(one.mean()) if len(one) else None for one in means)


@dataclass(frozen=True)
class _Watched:
    """A result's samples: seconds, the share of each that was waited, and whether it counts.

    ``slow_copies`` tells the state of the machine at each, ``stretches`` are the neighbours whose
    waiting was read together, and ``rounds`` the counts of samples.
    """

    times: Series
    waited: Series
    kept: NDArray[np.bool_]
    slow_copies: NDArray[np.bool_]
    stretches: tuple[slice, ...]
    rounds: tuple[int, ...]
    own: OwnPace

    def share_of(self, values: NDArray[Any]) -> float:
        """The share of the time that a share of each sample, or whether it counts, comes to."""
        return float(values @ self.times) / float(self.times.sum())

    def without_waiting(self) -> Series:
        """The samples less what was waited."""
        return without_control(self.times, self.waited, self.stretches, _USUAL_SLOPE)[0]

    @property
    def leaves_out_slower(self) -> bool:
        """Whether steps that do not count are slower than those of their state that do."""
        if self.kept.all() or not self.kept.any():
            return True
        calm, kept = self.without_waiting(), self.kept
        usual = np.full(len(calm), calm[kept].mean())
        for state in (self.slow_copies, ~self.slow_copies):
            if (kept & state).any():
                usual[state] = calm[kept & state].mean()
        return float(calm[~kept].mean()) > float(usual[~kept].mean())

    def standard(self) -> Standard | None:
        """What makes samples of both states alike."""
        share = self.own.slow_copies_share
        return standardised(self.without_waiting(), self.slow_copies, share, self.rounds)

    @property
    def unusual(self) -> float:
        """For which share of the time the machine was in another state than usual."""
        return abs(self.share_of(self.slow_copies) - self.own.slow_copies_share)

    def calm(self) -> _Watched:
        """Of the samples those that count."""
        kept = self.kept
        # The positions that samples have among those that are kept.
        position = np.concatenate(([0], np.cumsum(kept)))
        counts = np.diff(position[np.cumsum([0, *self.rounds])])
        moved = [slice(int(position[one.start]), int(position[one.stop])) for one in self.stretches]
        return _Watched(
            self.times[kept],
            self.waited[kept],
            kept[kept],
            self.slow_copies[kept],
            tuple(one for one in moved if one.stop > one.start),
            tuple(int(count) for count in counts if count),
            self.own,
        )


def _watched(result: Result, paces: Mapping[PaceKey, OwnPace]) -> _Watched | None:
    key, measurement = pace_key(result), result.measurement
    own, pace = (paces.get(key) if key else None), measurement.pace
    if own is None or pace is None or not measurement.samples_seconds:
        return None
    times = np.asarray(measurement.samples_seconds)
    stretches, waited, kept, slow = Stretches.of(measurement, pace, own).arrays(times)
    found = _Watched(times, waited, kept, slow, stretches, measurement.samples_by_round, own)
    return found if found.leaves_out_slower else replace(found, kept=np.ones_like(kept))
