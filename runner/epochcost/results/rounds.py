"""Join the rounds of a trial into one measurement, and summarise that measurement.

All pages use ``summary_of``, so that all intervals include the variance between rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import chain, compress, islice
from statistics import fmean
from typing import Any, TypeVar

from epochcost.results.environment import Conditions, Energy, MeteredEnergy
from epochcost.results.records import Measurement, Result, Round, StopReason
from epochcost.results.stability import is_disturbed, watched_cpus
from epochcost.statistics.interval import Interval, relative_half_width
from epochcost.statistics.summary import Summary, summarise

ValueT = TypeVar("ValueT")
Joined = Callable[[Sequence[ValueT]], ValueT]


def round_count(measurement: Measurement) -> int:
    """The number of a measurement's rounds, each of which ran in a new process."""
    return max(1, len(measurement.rounds))


def add_round(earlier: Measurement | None, new: Measurement, demanded: float) -> Measurement:
    """Append ``new`` as the last round of a measurement; ``earlier`` is None for the first round.

    Sampling ends as "precise" if the relative half-width of the mean's confidence interval is at
    most ``demanded``. The first ``agreement`` is kept. Other fields that cannot be joined, such as
    losses, come from ``new``.
    """
    parts = [new] if earlier is None else [earlier, new]
    rounds = tuple(turn for part in parts for turn in _as_rounds(part))
    joined = Measurement.model_validate(
        dict(new)
        | {
            "started_at": parts[0].started_at,
            "wall_seconds": sum(part.wall_seconds for part in parts),
            "warmup_seconds": tuple(each for part in parts for each in part.warmup_seconds),
            "samples_seconds": tuple(each for part in parts for each in part.samples_seconds),
            "steps_taken": sum(part.steps_taken for part in parts),
            "peak_memory_bytes": _join_if_all_known(
                max, (part.peak_memory_bytes for part in parts)
            ),
            "agreement": parts[0].agreement or new.agreement,
            "conditions": _joined_conditions(rounds),
            "energy": _joined_energy(rounds),
            "rounds": rounds,
        }
    )
    return joined.model_copy(update={"stop_reason": _stop_reason(joined, demanded)})


def _as_rounds(measurement: Measurement) -> tuple[Round, ...]:
    if measurement.rounds:
        return measurement.rounds
    # A measurement without rounds is a single round.
    same = {
        name: getattr(measurement, name)
        for name in Round.model_fields.keys() & Measurement.model_fields.keys()
    }
    counted = {
        "warmup_steps": len(measurement.warmup_seconds),
        "samples": len(measurement.samples_seconds),
    }
    return (Round(**same, **counted),)


def _stop_reason(measurement: Measurement, demanded_half_width: float) -> StopReason:
    half_width = relative_half_width(measurement.samples_seconds, measurement.samples_by_round)
    if half_width <= demanded_half_width:
        return "precise"
    short = any(turn.stop_reason == "budget" for turn in measurement.rounds)
    return "budget" if short else "rounds"


def _joined_conditions(rounds: Sequence[Round]) -> Conditions | None:
    by_round = [turn.conditions for turn in rounds if turn.conditions]
    if not by_round:
        return None
    fullest = max(by_round, key=lambda conditions: conditions.device_memory_bytes or 0)
    mean = partial(fmean, weights=[conditions.seconds for conditions in by_round])

    def joined(join: Joined[Any], name: str) -> Any:
        return _join_if_all_known(join, [getattr(conditions, name) for conditions in by_round])

    return Conditions(
        seconds=sum(conditions.seconds for conditions in by_round),
        others_cpus=joined(mean, "others_cpus"),
        steal_share=joined(mean, "steal_share"),
        frozen_seconds=joined(sum, "frozen_seconds"),
        throttles=joined(_distinct_items, "throttles"),
        devices=joined(_distinct_items, "devices"),
        device_memory_bytes=fullest.device_memory_bytes,
        device_memory_meter=fullest.device_memory_meter,
        unknown={name: why for conditions in by_round for name, why in conditions.unknown.items()},
    )


def _distinct_items(lists: Iterable[tuple[ValueT, ...]]) -> tuple[ValueT, ...]:
    return tuple(dict.fromkeys(chain.from_iterable(lists)))


def _join_if_all_known(join: Joined[ValueT], values: Iterable[ValueT | None]) -> ValueT | None:
    every = list(values)
    present = [value for value in every if value is not None]
    return join(present) if len(present) == len(every) else None


def _joined_energy(rounds: Sequence[Round]) -> Energy | None:
    by_round = [turn.energy for turn in rounds if turn.energy]
    if not by_round:
        return None
    totals: dict[tuple[str, str], MeteredEnergy] = {}
    for reading in (each for energy in by_round for each in energy.readings):
        key = reading.meter, reading.of
        totals[key] = _sum(totals[key], reading) if key in totals else reading
    read = {meter for meter, _ in totals}
    unknown = {name: why for energy in by_round for name, why in energy.unknown.items()}
    never_read = {name: why for name, why in unknown.items() if name not in read}
    return Energy(readings=tuple(totals.values()), unknown=never_read)


def _sum(first: MeteredEnergy, second: MeteredEnergy) -> MeteredEnergy:
    joules, seconds = first.joules + second.joules, first.seconds + second.seconds
    return first.model_copy(update={"joules": joules, "seconds": seconds})


def without_disturbed_rounds(result: Result) -> Result:
    """The result without its rounds that other programs disturbed, unless these are all rounds.

    The choice depends on the CPU load, never on measured times, so that the mean has no bias.
    """
    measurement = result.measurement
    cpus = watched_cpus(result)
    calm = [not is_disturbed(turn.conditions, cpus) for turn in measurement.rounds]
    if all(calm) or not any(calm):
        return result
    rounds = tuple(compress(measurement.rounds, calm))
    warmups = [turn.warmup_steps for turn in measurement.rounds]
    changes = {
        "samples_seconds": _times_of_chosen_rounds(
            measurement.samples_seconds, measurement.samples_by_round, calm
        ),
        "warmup_seconds": _times_of_chosen_rounds(measurement.warmup_seconds, warmups, calm),
        "conditions": _joined_conditions(rounds),
        "energy": _joined_energy(rounds),
        "rounds": rounds,
    }
    return result.model_copy(update={"measurement": measurement.model_copy(update=changes)})


def _times_of_chosen_rounds(
    times: Sequence[float], counts_by_round: Sequence[int], chosen: Sequence[bool]
) -> tuple[float, ...]:
    following = iter(times)
    return tuple(
        chain.from_iterable(compress([[*islice(following, n)] for n in counts_by_round], chosen))
    )


def summary_of(result: Result) -> Summary:
    """Compute the mean of a result's sampled times, its confidence interval, and percentiles.

    Much CPU use by other programs lowers the interval's low end. LoadGen's results are not
    accepted.
    """
    measurement = result.measurement
    watched, cpus = measurement.conditions, watched_cpus(result)
    others = watched.others_cpus if watched and is_disturbed(watched, cpus) else None
    return _summary(measurement.samples_seconds, measurement.samples_by_round, others or 0.0, cpus)


# A summary takes milliseconds, many pages show it, and two revisions share most results.
@lru_cache(maxsize=4096)
def _summary(
    samples: tuple[float, ...], rounds: tuple[int, ...], others_cpus: float, cpus: int
) -> Summary:
    """Summarise times; the low end falls by the time that steps may have lost to other programs."""
    summary = summarise(samples, rounds)
    # A step waits for its slowest thread, which may share its CPU with all other programs.
    # Convolutions on 2 CPUs beside busy loops, 27 November 2026: with 0.1, 0.23, 0.36, 0.72, 0.92
    # and 1.33 busy CPUs, steps lost 10, 22, 37, 56, 68 and 76 % of their speed.
    lost = min(others_cpus, (1 + others_cpus / cpus) / 2, 1.0)
    interval = Interval(summary.interval.low * (1 - lost), summary.interval.high)
    return replace(summary, interval=interval)
