"""What all results of a host tell together: its own pace, and how much fresh processes differ.

Which results tell of which host, and a result's intervals among those of its host. The laws are in
``results.pace`` and ``statistics.process_spread``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from epochcost.results.pace import OwnPace, PaceKey, Undisturbed, own_paces, undisturbed
from epochcost.results.pace import undisturbed_rounds as rounds_undisturbed
from epochcost.results.records import Measurement, Result
from epochcost.statistics import Summary
from epochcost.statistics.process_spread import ProcessSpread, process_spread

# The machine, its provider, and to how many CPUs trials were pinned.
HostKey = tuple[str, str, int | None]
RoundMeans = Callable[[Result], Sequence[float]]


@dataclass(frozen=True)
class HostFacts:
    """By host what its results tell; nothing of one that has too few.

    ``spreads`` are of rounds as they were, ``calm_spreads`` of what they would have been
    undisturbed.
    """

    paces: Mapping[PaceKey, OwnPace]
    spreads: Mapping[HostKey, ProcessSpread]
    calm_spreads: Mapping[HostKey, ProcessSpread]

    @classmethod
    def of(cls, results: Iterable[Result]) -> HostFacts:
        """What these results tell of their hosts."""
        every = [one for one in results if one.measurement.samples_seconds]
        paces = own_paces(every)
        calm = dict(_spreads(every, lambda one: _calm_means(one, paces)))
        return cls(paces, dict(_spreads(every, _round_means)), calm)

    def summary(self, own: Summary, result: Result) -> Summary:
        """A result's own summary, with the interval that it has among those of its host."""
        spread = self.spreads.get(_key(result))
        if spread is None:
            return own
        samples = np.asarray(result.measurement.samples_seconds)
        among = spread.interval(samples, result.measurement.samples_by_round)
        return replace(own, interval=among)

    def undisturbed(self, result: Result) -> Undisturbed | None:
        """The step undisturbed, with its interval among those of its host."""
        return undisturbed(result, self.paces, self.calm_spreads.get(_key(result)))


def _key(result: Result) -> HostKey:
    trial = result.trial
    return result.environment.fingerprint, trial.provider, trial.vcpus


def _spreads(
    results: Iterable[Result], means_of: RoundMeans
) -> Iterator[tuple[HostKey, ProcessSpread]]:
    """Of each host whose results of several rounds are enough to tell."""
    found: defaultdict[HostKey, list[tuple[float, int]]] = defaultdict(list)
    for result in results:
        logarithms = np.log(means_of(result))
        if len(logarithms) > 1:
            own = float(logarithms.var(ddof=1)), len(logarithms) - 1
            found[_key(result)].append(own)
    for key, own_variances in found.items():
        variances, degrees = zip(*own_variances, strict=True)
        if (spread := process_spread(variances, degrees)) is not None:
            yield key, spread


def _round_means(result: Result) -> list[float]:
    measurement: Measurement = result.measurement
    bounds = np.cumsum([0, *measurement.samples_by_round]).tolist()
    samples = np.asarray(measurement.samples_seconds)
    return [float(samples[begin:end].mean()) for begin, end in pairwise(bounds)]


def _calm_means(result: Result, paces: Mapping[PaceKey, OwnPace]) -> list[float]:
    """Those of rounds that were not left out whole."""
    return [mean for mean in rounds_undisturbed(result, paces) if mean is not None]
