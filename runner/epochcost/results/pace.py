"""A machine's own pace, and in which samples of a result it was another.

That is the mean of the fast readings beside all its results. Stretches of samples are told by the
median of the readings around them. Fixed products are slow where the clock is lower or a neighbour
has the same core, copies where others use the memory; copies that are slow for most of a round are
one of two states of small virtual machines. How the readings are taken is left to ``measure.pace``,
what they say of a step to ``undisturbed``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from epochcost.results.conditions import Pace
from epochcost.results.records import Measurement, Result

Series = NDArray[np.float64]
# Host, runtime, CPUs that it was pinned to, and the works.
PaceKey = tuple[str, str, int | None, tuple[int, ...]]

# Of all readings of a machine this share is of its own pace, whatever else is on it, and with them
# what is slower by no more than readings of a quiet machine differ.
_FASTEST_SHARE, _SAME_PACE = 0.05, 1.15
# By what the median of a stretch's readings is at most above the machine's own pace. Of copies,
# 183 rounds on two vCPUs had up to 1.25 times it, 308 had 1.6 to 2, and 97 others (EPYC 9005).
_MOST_PRODUCT, _MOST_COPY = 1.25, 1.4
# A stretch has so many readings; a reading during which threads waited longer than this share of
# it tells of that.
_STRETCH_READINGS = 5
_MOST_WAITED_WITHIN = 0.02
_FEWEST_READINGS = 20


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
        bool(slow[readings[0]])
        for measurement, pace in read
        for slow in [_copies(measurement, pace, _MOST_COPY * copy).throughout]
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
class Stretches:
    """By stretch of neighbouring samples what was waited, None: not read, and how it was.

    ``disturbed`` where products were slow, or copies in a round whose copies mostly were not;
    ``slow_copies`` where they were for most of the round.
    """

    samples: tuple[slice, ...]
    waited_seconds: tuple[float | None, ...]
    disturbed: tuple[bool, ...]
    slow_copies: tuple[bool, ...]

    @classmethod
    def of(cls, measurement: Measurement, pace: Pace, own: OwnPace) -> Stretches:
        """The samples between one reading and the next, and after the last of a round."""
        most_product = _MOST_PRODUCT * own.product_seconds
        copies = _copies(measurement, pace, _MOST_COPY * own.copy_seconds)
        disturbed = _slow(measurement, pace, pace.product_seconds, most_product) | copies.at_times
        found: list[tuple[slice, float | None, bool, bool]] = []
        for begin, end, readings in _rounds(measurement, pace):
            for one, following in pairwise([*readings, None]):
                assert one is not None, "only the last has none that follows"
                first = pace.after_samples[one]
                last = end if following is None else pace.after_samples[following]
                waited = None if following is None else pace.waited_seconds[following]
                if last > first:
                    samples = slice(max(begin, first), last)
                    slow = bool(copies.throughout[one])
                    found.append((samples, waited, bool(disturbed[one]), slow))
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
            kept[one], copies[one] = not self.disturbed[at], self.slow_copies[at]
        # Two threads that wait at once lose the same time.
        return tuple(one for one, _ in read), np.minimum(shares, 1.0), kept, copies


def _rounds(measurement: Measurement, pace: Pace) -> Iterator[tuple[int, int, list[int]]]:
    """The samples of each round, from and to, and its readings."""
    bounds = np.cumsum([0, *measurement.samples_by_round]).tolist()
    after = np.asarray(pace.after_samples)
    for begin, end in pairwise(bounds):
        first, last = np.searchsorted(after, (begin, end)).tolist()
        yield begin, end, list(range(first, last))


class _Copies(NamedTuple):
    """By reading, whether copies were slow for most of its round, or at times and then."""

    throughout: NDArray[np.bool_]
    at_times: NDArray[np.bool_]


def _copies(measurement: Measurement, pace: Pace, most_seconds: float) -> _Copies:
    slow = _slow(measurement, pace, pace.copy_seconds, most_seconds)
    throughout = np.zeros_like(slow)
    for _, _, readings in _rounds(measurement, pace):
        throughout[readings] = bool(readings) and slow[readings].mean() > 1 / 2
    return _Copies(throughout, slow & ~throughout)


def _slow(
    measurement: Measurement, pace: Pace, seconds: Sequence[float], most_seconds: float
) -> NDArray[np.bool_]:
    """By reading, whether the work took longer around it than ``most_seconds`` at the median.

    Around it are readings of its own round. Where nobody can tell it did not: readings during which
    threads waited do not count.
    """
    spans = np.asarray(pace.product_seconds) + np.asarray(pace.copy_seconds)
    sound = np.asarray(pace.waited_within_seconds) <= _MOST_WAITED_WITHIN * spans
    found, reach = np.zeros(len(seconds), bool), _STRETCH_READINGS // 2
    for _, _, readings in _rounds(measurement, pace):
        for at, number in enumerate(readings):
            around = readings[max(0, at - reach) : at + reach + 1]
            told = [seconds[place] for place in around if sound[place]]
            found[number] = bool(told) and median(told) > most_seconds
    return found
