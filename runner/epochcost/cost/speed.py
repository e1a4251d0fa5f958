"""How fast one machine is beside another, from the stored results of work that both did."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from statistics import fmean, geometric_mean

from epochcost.results.records import Result
from epochcost.results.store import newest


@dataclass(frozen=True, slots=True)
class Speed:
    """``ratio`` above 1: the other machine is the faster; of ``trials`` that both measured."""

    ratio: Decimal
    trials: int


def measured_speed(results: Iterable[Result], machine: str, other: str) -> Speed | None:
    """The geometric mean of the times' ratios over equal trials; None where there is none.

    Of hosts of one kind only the one that measured last speaks: figures of hosts are never pooled.
    """
    latest = newest(results)
    own, others = _means(latest, machine), _means(latest, other)
    ratios = [own[trial] / others[trial] for trial in own if trial in others]
    if machine == other or not ratios:
        return None
    return Speed(Decimal(repr(geometric_mean(ratios))), len(ratios))


def _means(results: Iterable[Result], hardware: str) -> Mapping[str, float]:
    """Mean seconds of a step by plain trial, of the host that measured last.

    Variants, such as those on some of the CPUs, do not tell how fast the whole machine is.
    """
    found = [
        result for result in results if result.hardware == hardware and not result.trial.variant
    ]
    last = max(found, key=lambda result: result.measurement.started_at, default=None)
    return {
        result.trial_id: fmean(result.measurement.samples_seconds)
        for result in found
        if last
        and result.measurement.served is None
        and result.environment.fingerprint == last.environment.fingerprint
    }
