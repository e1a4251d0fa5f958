"""What a step takes on its machine undisturbed, by what was read beside the samples.

Others who take a CPU make the trial's threads wait, which the system counts: a control variate,
whose share of a step ``statistics.control`` takes off. A lower clock or a neighbour on the same
core makes fixed products take longer than the machine's own pace: such stretches are left out where
steps are slower in them, too, for by how much is not known. And small virtual machines have two
states, which mostly last as long as a process and often longer: copies are slow and steps of many
small operators fast, or the other way round. Both are the machine's, and what differs between
processes is mostly which of them they met. Copies tell, and each state counts by the share of the
time that it has in all results of the machine. How the readings are taken is left to
``measure.pace``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epochcost.results.conditions import Pace
from epochcost.results.records import Measurement, Result
from epochcost.statistics import Bounded
from epochcost.statistics.control import (
    Slope,
    Standard,
    standardised,
    undisturbed_mean,
    without_control,
)

Series = NDArray[np.float64]
# Host, runtime, CPUs that it was pinned to, and the works.
PaceKey = tuple[str, str, int | None, tuple[int, ...]]

# Of all readings of a machine this share is of its own pace, whatever else is on it, and with them
# what is slower by no more than readings of a quiet machine differ.
_FASTEST_SHARE, _SAME_PACE = 0.05, 1.15
# By what the median of a stretch's readings is at most above the machine's own pace. Of copies,
# 183 rounds on two vCPUs had up to 1.25 times it, 308 had 1.6 to 2, and 97 others (EPYC 9005).
_MOST_PRODUCT, _MOST_COPY = 1.25, 1.4
# A state for this share of the time is the machine's only one.
_MOSTLY = 0.95
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
    """What the two works take on a machine that nothing disturbs, in seconds.

    Copies are slow for ``slow_copies_share`` of the time, each round of its results counting alike.
    """

    product_seconds: float
    copy_seconds: float
    slow_copies_share: float


def pace_key(result: Result) -> PaceKey | None:
    """Of which machine, used how, a result's readings are; None where there are none."""
    pace, host = result.measurement.pace, result.environment
    if pace is None:
        return None
    return host.fingerprint, host.runtime, result.trial.vcpus, pace.works


def own_paces(results: Iterable[Result]) -> Mapping[PaceKey, OwnPace]:
    """The own pace of each machine, from the readings of all its results."""
    found: defaultdict[PaceKey, list[tuple[Measurement, Pace]]] = defaultdict(list)
    for result in results:
        key, pace = pace_key(result), result.measurement.pace
        if key is not None and pace is not None:
            found[key].append((result.measurement, pace))
    return {
        key: _own_pace(read)
        for key, read in found.items()
        if sum(len(pace.after_samples) for _, pace in read) >= _FEWEST_READINGS
    }


def _own_pace(read: Sequence[tuple[Measurement, Pace]]) -> OwnPace:
    product = _own([each for _, pace in read for each in pace.product_seconds])
    copy = _own([each for _, pace in read for each in pace.copy_seconds])
    rounds = [
        float(slow[readings].mean())
        for measurement, pace in read
        for slow in [_slow(measurement, pace, pace.copy_seconds, _MOST_COPY * copy)]
        for _, _, readings in _rounds(measurement, pace)
        if readings
    ]
    return OwnPace(product, copy, float(np.mean(rounds)))


def _own(readings: list[float]) -> float:
    """The mean of the readings that are about as fast as the fastest."""
    times = np.asarray(readings)
    fast = np.quantile(times, _FASTEST_SHARE)
    return float(times[times <= _SAME_PACE * fast].mean())


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
    stretches, waited, kept, slow = _Stretches.of(measurement, pace, own).arrays(times)
    found = _Watched(times, waited, kept, slow, stretches, measurement.samples_by_round, own)
    calm = found.without_waiting()
    if kept.any() and not kept.all() and calm[~kept].mean() <= calm[kept].mean():
        return replace(found, kept=np.ones_like(kept))
    return found


@dataclass(frozen=True)
class _Stretches:
    """By stretch of neighbouring samples what was waited, None: not read, and what was slow."""

    samples: tuple[slice, ...]
    waited_seconds: tuple[float | None, ...]
    slow_products: tuple[bool, ...]
    slow_copies: tuple[bool, ...]

    @classmethod
    def of(cls, measurement: Measurement, pace: Pace, own: OwnPace) -> _Stretches:
        """The samples between one reading and the next, and after the last of a round."""
        most_product = _MOST_PRODUCT * own.product_seconds
        products = _slow(measurement, pace, pace.product_seconds, most_product)
        copies = _slow(measurement, pace, pace.copy_seconds, _MOST_COPY * own.copy_seconds)
        found: list[tuple[slice, float | None, bool, bool]] = []
        for begin, end, readings in _rounds(measurement, pace):
            for one, following in pairwise([*readings, None]):
                assert one is not None, "only the last has none that follows"
                first = pace.after_samples[one]
                last = end if following is None else pace.after_samples[following]
                waited = None if following is None else pace.waited_seconds[following]
                if last > first:
                    samples = slice(max(begin, first), last)
                    found.append((samples, waited, bool(products[one]), bool(copies[one])))
        return cls(*map(tuple, zip(*found, strict=True))) if found else cls((), (), (), ())

    def arrays(
        self, times: Series
    ) -> tuple[tuple[slice, ...], Series, NDArray[np.bool_], NDArray[np.bool_]]:
        """The stretches that were read to their end; by sample what was waited, and its states.

        These are the share that was waited, whether the sample counts, and whether copies were
        slow. After the last reading of a round as much as elsewhere was waited.
        """
        read = [
            (one, waited / float(times[one].sum()))
            for one, waited in zip(self.samples, self.waited_seconds, strict=True)
            if waited is not None
        ]
        spans = [float(times[one].sum()) for one, _ in read]
        usual = float(np.average([share for _, share in read], weights=spans)) if read else 0.0
        shares, kept = np.full(len(times), usual), np.ones(len(times), bool)
        copies = np.zeros(len(times), bool)
        for one, share in read:
            shares[one] = share
        for at, one in enumerate(self.samples):
            kept[one], copies[one] = not self.slow_products[at], self.slow_copies[at]
        # Two threads that wait at once lose the same time.
        return tuple(one for one, _ in read), np.minimum(shares, 1.0), kept, copies


def _rounds(measurement: Measurement, pace: Pace) -> Iterator[tuple[int, int, list[int]]]:
    """The samples of each round, from and to, and its readings."""
    bounds = np.cumsum([0, *measurement.samples_by_round]).tolist()
    after = np.asarray(pace.after_samples)
    for begin, end in pairwise(bounds):
        first, last = np.searchsorted(after, (begin, end)).tolist()
        yield begin, end, list(range(first, last))


def _slow(
    measurement: Measurement, pace: Pace, seconds: Sequence[float], most_seconds: float
) -> NDArray[np.bool_]:
    """By reading, whether the work took longer around it than ``most_seconds`` at the median.

    Around it are readings of its own round. Where nobody can tell it did not: readings during which
    threads waited do not count.
    """
    times = np.asarray(seconds)
    spans = np.asarray(pace.product_seconds) + np.asarray(pace.copy_seconds)
    sound = np.asarray(pace.waited_within_seconds) <= _MOST_WAITED_WITHIN * spans
    found, reach = np.zeros(len(times), bool), _STRETCH_READINGS // 2
    for _, _, readings in _rounds(measurement, pace):
        for at, number in enumerate(readings):
            around = readings[max(0, at - reach) : at + reach + 1]
            told = times[around][sound[around]]
            found[number] = len(told) > 0 and np.median(told) > most_seconds
    return found
