"""What a step takes on its machine undisturbed, by what was read beside the samples.

Others who take a CPU make the trial's threads wait, which the system counts: a control variate,
whose share of a step ``statistics.control`` takes off. A lower clock or a neighbour on the same
core makes fixed products take longer than the machine's own pace: such stretches are left out where
steps are slower in them, too, for by how much is not known. And small virtual machines have two
states, which mostly last as long as a process and often longer: copies are slow and steps of many
small operators fast, or the other way round. Both are the machine's, and what differs between
processes is mostly which of them they met. Copies tell, and each state counts by the share of the
time that it has in all results of the machine. What readings say of samples is left to ``pace``.
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
from epochcost.statistics import Bounded
from epochcost.statistics.control import (
    Slope,
    Standard,
    standardised,
    undisturbed_mean,
    without_control,
)

Series = NDArray[np.float64]

# A state for this share of the time is the machine's only one.
_MOSTLY = 0.95
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
    left, or of the two states of its machine ``met_one_state`` alone.
    """

    step: Bounded | None
    waited_share: float
    left_out_share: float
    slow_copies_share: float
    met_one_state: bool = False


def undisturbed(result: Result, paces: Mapping[PaceKey, OwnPace]) -> Undisturbed | None:
    """The step undisturbed; None where it was that throughout, or its machine's pace is unknown."""
    found = _watched(result, paces)
    if found is None:
        return None
    waited, left_out = found.share_of(found.waited), found.share_of(~found.kept)
    unknown = Undisturbed(None, waited, left_out, found.share_of(found.slow_copies))
    calm = found.calm()
    fewest = min(_FEWEST_ROUNDS, len(found.rounds))
    few = len(calm.times) < _FEWEST_SAMPLES or len(calm.rounds) < fewest
    if left_out > _MOST_LEFT_OUT or few:
        return unknown
    standard = calm.standard()
    if standard is None and calm.share_of_its_state < _MOSTLY:
        return replace(unknown, met_one_state=calm.in_one_state)
    if standard is None and waited + left_out < _LEAST_DISTURBED:
        return None
    standard = standard or Standard(np.ones_like(calm.times), 1.0)
    step = undisturbed_mean(
        calm.times * standard.scale, calm.waited, calm.stretches, calm.rounds, _USUAL_SLOPE
    )
    return replace(unknown, step=step.widened(standard.lengthening))


def undisturbed_rounds(
    result: Result, paces: Mapping[PaceKey, OwnPace]
) -> tuple[float | None, ...]:
    """The mean step of each round in seconds, by one slope; None of one that is left out whole."""
    found = _watched(result, paces)
    if found is None:
        return ()
    standard = found.standard()
    scale = 1.0 if standard is None else standard.scale
    corrected = found.without_waiting() * scale
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

    def standard(self) -> Standard | None:
        """What makes samples of both states alike."""
        share = self.own.slow_copies_share
        return standardised(self.without_waiting(), self.slow_copies, share, self.rounds)

    @property
    def share_of_its_state(self) -> float:
        """For which share of the time the machine is usually as it was here mostly."""
        share = self.own.slow_copies_share
        return share if self.share_of(self.slow_copies) > 1 / 2 else 1 - share

    @property
    def in_one_state(self) -> bool:
        """Whether copies were slow at all samples or at none."""
        return bool(self.slow_copies.all()) or not self.slow_copies.any()

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
    calm = found.without_waiting()
    if kept.any() and not kept.all() and calm[~kept].mean() <= calm[kept].mean():
        return replace(found, kept=np.ones_like(kept))
    return found
