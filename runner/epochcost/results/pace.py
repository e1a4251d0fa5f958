"""What a step takes on its machine undisturbed, by what was read beside the samples.

Two things disturb. Others who take a CPU make the trial's threads wait, which the system counts:
a control variate, whose share of a step ``statistics.control`` takes off. What no counter of the
guest tells of, a lower clock, a neighbour behind the hypervisor, a full memory bus, makes fixed
work take longer than the machine's own pace: such stretches are left out where steps are slower in
them, too, for by how much is not known. A host that puts two vCPUs on one cache makes copies slow
and many a step fast. A machine's own pace is the mean of the fast readings beside all its results.
How the readings are taken is left to ``measure.pace``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from epochcost.results.conditions import Pace
from epochcost.results.records import Measurement, Result
from epochcost.statistics import Bounded
from epochcost.statistics.control import Slope, undisturbed_mean, without_control

Series = NDArray[np.float64]
# Host, runtime, CPUs that it was pinned to, and the works.
PaceKey = tuple[str, str, int | None, tuple[int, ...]]

# Of all readings of a machine this share is of its own pace, whatever else is on it, and with them
# what is slower by no more than readings of a quiet machine differ.
_FASTEST_SHARE, _SAME_PACE = 0.05, 1.15
# By what the median of a stretch's readings is at most above the machine's own pace: products stay
# in the caches, while copies take what the memory's pages make them take.
_MOST_PRODUCT, _MOST_COPY = 1.25, 1.4
# A stretch has so many readings; a reading during which threads waited longer than this share of
# it tells of that.
_STRETCH_READINGS = 5
_MOST_WAITED_WITHIN = 0.02
_FEWEST_READINGS = 20
# Below this share of the time nothing was disturbed; above the other what is left may be chance.
_LEAST_DISTURBED, _MOST_LEFT_OUT = 0.02, 0.8
_FEWEST_SAMPLES = 10
# Processes differ: of several one alone says too little.
_FEWEST_ROUNDS = 2
# By how much a step's logarithm grows with the share of the time that its threads wait: of seven
# models beside programs that took one of two CPUs, always or at times (docs/method/measurement.md).
_USUAL_SLOPE = Slope(1.0, 0.2)


@dataclass(frozen=True)
class OwnPace:
    """What the two works take on a machine that nothing disturbs, in seconds."""

    product_seconds: float
    copy_seconds: float


def pace_key(result: Result) -> PaceKey | None:
    """Of which machine, used how, a result's readings are; None where there are none."""
    pace, host = result.measurement.pace, result.environment
    if pace is None:
        return None
    return host.fingerprint, host.runtime, result.trial.vcpus, pace.works


def own_paces(results: Iterable[Result]) -> Mapping[PaceKey, OwnPace]:
    """The own pace of each machine, from the readings of all its results."""
    found: defaultdict[PaceKey, list[Pace]] = defaultdict(list)
    for result in results:
        key, pace = pace_key(result), result.measurement.pace
        if key is not None and pace is not None:
            found[key].append(pace)
    return {
        key: OwnPace(
            _own([each for one in paces for each in one.product_seconds]),
            _own([each for one in paces for each in one.copy_seconds]),
        )
        for key, paces in found.items()
        if sum(len(one.after_samples) for one in paces) >= _FEWEST_READINGS
    }


def _own(readings: list[float]) -> float:
    """The mean of the readings that are about as fast as the fastest."""
    times = np.asarray(readings)
    fast = np.quantile(times, _FASTEST_SHARE)
    return float(times[times <= _SAME_PACE * fast].mean())


@dataclass(frozen=True)
class Undisturbed:
    """The mean step undisturbed, and which shares of the time others took, and were left out.

    ``step`` is None where too little was left.
    """

    step: Bounded | None
    waited_share: float
    left_out_share: float


def undisturbed(result: Result, paces: Mapping[PaceKey, OwnPace]) -> Undisturbed | None:
    """The step undisturbed; None where it was that throughout, or its machine's pace is unknown."""
    found = _watched(result, paces)
    if found is None:
        return None
    times, waited, kept, stretches = found
    total = float(times.sum())
    waited_share = float(waited @ times) / total
    left_out = float(times[~kept].sum()) / total
    if waited_share + left_out < _LEAST_DISTURBED:
        return None
    # The positions that samples have among those that are kept.
    position = np.concatenate(([0], np.cumsum(kept)))
    bounds = np.cumsum([0, *result.measurement.samples_by_round])
    rounds = [int(count) for count in np.diff(position[bounds]) if count]
    few = kept.sum() < _FEWEST_SAMPLES or len(rounds) < min(_FEWEST_ROUNDS, len(bounds) - 1)
    if left_out > _MOST_LEFT_OUT or few:
        return Undisturbed(None, waited_share, left_out)
    moved = [slice(int(position[one.start]), int(position[one.stop])) for one in stretches]
    inside = [one for one in moved if one.stop > one.start]
    step = undisturbed_mean(times[kept], waited[kept], inside, rounds, _USUAL_SLOPE)
    return Undisturbed(step, waited_share, left_out)


def undisturbed_rounds(
    result: Result, paces: Mapping[PaceKey, OwnPace]
) -> tuple[float | None, ...]:
    """The mean step of each round in seconds, by one slope; None of one that is left out whole."""
    found = _watched(result, paces)
    if found is None:
        return ()
    times, waited, kept, stretches = found
    corrected, _ = without_control(times, waited, stretches, _USUAL_SLOPE)
    bounds = np.cumsum([0, *result.measurement.samples_by_round]).tolist()
    means = [corrected[begin:end][kept[begin:end]] for begin, end in pairwise(bounds)]
    return tuple(float(one.mean()) if len(one) else None for one in means)


class _Watched(NamedTuple):
    """A result's samples: seconds, the share of each that was waited, and whether it counts.

    ``stretches`` are the neighbours whose waiting was read together.
    """

    times: Series
    waited: Series
    kept: NDArray[np.bool_]
    stretches: tuple[slice, ...]


def _watched(result: Result, paces: Mapping[PaceKey, OwnPace]) -> _Watched | None:
    key, measurement = pace_key(result), result.measurement
    own, pace = (paces.get(key) if key else None), measurement.pace
    if own is None or pace is None or not measurement.samples_seconds:
        return None
    times = np.asarray(measurement.samples_seconds)
    stretches, waited, kept = _Stretches.of(measurement, pace, own).arrays(times)
    calm, _ = without_control(times, waited, stretches, _USUAL_SLOPE)
    if kept.any() and not kept.all() and calm[~kept].mean() <= calm[kept].mean():
        kept = np.ones_like(kept)
    return _Watched(times, waited, kept, stretches)


@dataclass(frozen=True)
class _Stretches:
    """By stretch of neighbouring samples: how long was waited, None: not read; and if it counts."""

    samples: tuple[slice, ...]
    waited_seconds: tuple[float | None, ...]
    counts: tuple[bool, ...]

    @classmethod
    def of(cls, measurement: Measurement, pace: Pace, own: OwnPace) -> _Stretches:
        """The samples between one reading and the next, and after the last of a round."""
        at_own = _at_own(pace, own)
        found: list[tuple[slice, float | None, bool]] = []
        for begin, end, readings in _rounds(measurement, pace):
            for one, following in pairwise([*readings, None]):
                assert one is not None, "only the last has none that follows"
                first = pace.after_samples[one]
                last = end if following is None else pace.after_samples[following]
                waited = None if following is None else pace.waited_seconds[following]
                if last > first:
                    found.append((slice(max(begin, first), last), waited, at_own[one]))
        return cls(*map(tuple, zip(*found, strict=True))) if found else cls((), (), ())

    def arrays(self, times: Series) -> tuple[tuple[slice, ...], Series, NDArray[np.bool_]]:
        """The stretches that were read to their end; by sample the share waited, and if it counts.

        After the last reading of a round as much as elsewhere is taken.
        """
        read = [
            (one, waited / float(times[one].sum()))
            for one, waited in zip(self.samples, self.waited_seconds, strict=True)
            if waited is not None
        ]
        spans = [float(times[one].sum()) for one, _ in read]
        usual = float(np.average([share for _, share in read], weights=spans)) if read else 0.0
        shares, kept = np.full(len(times), usual), np.ones(len(times), bool)
        for one, share in read:
            shares[one] = share
        for one, counts in zip(self.samples, self.counts, strict=True):
            kept[one] = counts
        # Two threads that wait at once lose the same time.
        return tuple(one for one, _ in read), np.minimum(shares, 1.0), kept


def _rounds(measurement: Measurement, pace: Pace) -> Iterator[tuple[int, int, list[int]]]:
    """The samples of each round, from and to, and its readings."""
    bounds = np.cumsum([0, *measurement.samples_by_round]).tolist()
    after = np.asarray(pace.after_samples)
    for begin, end in pairwise(bounds):
        first, last = np.searchsorted(after, (begin, end)).tolist()
        yield begin, end, list(range(first, last))


def _at_own(pace: Pace, own: OwnPace) -> list[bool]:
    """By reading, whether those around it found the machine at its own pace, or could not tell."""
    products = np.asarray(pace.product_seconds) / own.product_seconds
    copies = np.asarray(pace.copy_seconds) / own.copy_seconds
    spans = np.asarray(pace.product_seconds) + np.asarray(pace.copy_seconds)
    sound = np.asarray(pace.waited_within_seconds) <= _MOST_WAITED_WITHIN * spans
    found = []
    for number in range(len(products)):
        around = slice(max(0, number - _STRETCH_READINGS // 2), number + _STRETCH_READINGS // 2 + 1)
        told = sound[around]
        found.append(
            not told.any()
            or bool(
                np.median(products[around][told]) <= _MOST_PRODUCT
                and np.median(copies[around][told]) <= _MOST_COPY
            )
        )
    return found
