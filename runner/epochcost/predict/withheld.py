"""Rates that were withheld and forecast from all others, as forecasts are made, and how far off.

Forecasts are made from all that is learnt, with nothing measured on the machine in question. With
how much dearer the machine is that they call cheapest; what devices cost by the hour is given.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from epochcost.predict.design import Devices, Placed, designed, group_of, model_family
from epochcost.predict.forecast import Forecast, Forecaster, has_kin
from epochcost.predict.process import Design, Labels, Vector, predictable, roofline

Withheld = Literal["accelerator", "generation", "model", "source"]
WITHHELD: tuple[Withheld, ...] = get_args(Withheld)
_NAMES: Mapping[Withheld, Callable[[Placed], str]] = {
    "accelerator": lambda row: " ".join(group_of(row.device)) + " GB",
    "generation": lambda row: row.device.generation,
    "model": lambda row: model_family(row.rate.model),
    "source": lambda row: row.rate.source,
}
# A model whose graph nobody knows is known by its other rows or not at all.
_BY_GRAPH: tuple[Withheld, ...] = ("model", "source")
# Fewer are no choice.
_LEAST_CANDIDATES = 5
_WITHIN = 0.1


@dataclass(frozen=True, slots=True)
class Tried:
    """A published rate, and what was forecast of it without all that is called ``name``.

    ``forecast`` is None where none can be given; ``roofline`` is the logarithm of true over the
    roofline's rate, NaN or infinite where that says nothing.
    """

    name: str
    placed: Placed
    forecast: Forecast | None
    roofline: float

    @property
    def error(self) -> float:
        """The logarithm of true over forecast rate; NaN without a forecast."""
        rate = self.placed.rate.per_second
        return math.log(rate / self.forecast.per_second) if self.forecast else math.nan

    @property
    def covers(self) -> bool:
        """Whether the interval holds the truth."""
        forecast = self.forecast
        return forecast is not None and forecast.low <= self.placed.rate.per_second <= forecast.high


@dataclass(frozen=True, slots=True)
class Errors:
    """How far off so many forecasts were, in percent of time (the larger over the smaller, less 1).

    ``refused`` more rows had none. ``coverage`` is the share of intervals that held the truth,
    ``half_width`` the median factor from a forecast to its ends. The roofline is that of the rows
    of which it says anything, None where there is none.
    """

    rows: int
    refused: int
    median_percent: float
    p90_percent: float
    coverage: float
    half_width: float
    roofline_median_percent: float | None
    roofline_p90_percent: float | None


def errors_of(tried: Sequence[Tried]) -> Errors | None:
    """Errors over some rows; None if no row has a forecast."""
    forecast = [row for row in tried if row.forecast]
    if not forecast:
        return None
    off = [percent(row.error) for row in forecast]
    roof = [percent(row.roofline) for row in forecast if math.isfinite(row.roofline)]
    widths = [math.sqrt(row.forecast.high / row.forecast.low) for row in forecast if row.forecast]
    return Errors(
        rows=len(forecast),
        refused=len(tried) - len(forecast),
        median_percent=round(_quantile(off, 0.5), 1),
        p90_percent=round(_quantile(off, 0.9), 1),
        coverage=round(sum(row.covers for row in forecast) / len(forecast), 3),
        half_width=round(_quantile(widths, 0.5), 2),
        roofline_median_percent=round(_quantile(roof, 0.5), 1) if roof else None,
        roofline_p90_percent=round(_quantile(roof, 0.9), 1) if roof else None,
    )


def tried(learnt: Sequence[Placed], devices: Devices, withheld: Withheld) -> tuple[Tried, ...]:
    """Every row forecast without all of its name, in order.

    Where models or sources are withheld, of works whose graphs are known.
    """
    tested = [row for row in learnt if row.profile or withheld not in _BY_GRAPH]
    if not tested:
        return ()
    design, name = designed(tested, devices), _NAMES[withheld]
    names = [name(row) for row in tested]
    results: list[Forecast | None] = [None] * len(tested)
    for label in sorted(set(names)):
        rest = [row for row in learnt if name(row) != label]
        rows = [at for at, row_name in enumerate(names) if row_name == label]
        places = list(_forecastable(tested, rows, rest))
        if places:
            forecasts = Forecaster(rest, devices).of([tested[at] for at in places])
            for at, forecast in zip(places, forecasts, strict=True):
                # An interval without ends says nothing.
                results[at] = forecast if forecast.low > 0 else None
    roofs = _roofline_errors(design, withheld, names)
    return tuple(map(Tried, names, tested, results, map(float, roofs)))


def _forecastable(
    candidates: Sequence[Placed], rows: Sequence[int], rest: Sequence[Placed]
) -> Iterator[int]:
    """Rows whose work the rest covers: the same source of that model, or kin by its graph."""
    editions = {row.rate.edition for row in rest}
    for at in rows:
        profile = candidates[at].profile
        if candidates[at].rate.edition in editions or (profile and has_kin(profile, rest)):
            yield at


def _roofline_errors(design: Design, withheld: Withheld, names: Sequence[str]) -> Vector:
    """Errors of √(peak · bandwidth) times a constant [n]: of each model, of each device, or of all.

    NaN if no other row is of the work, infinite if none shares the constant.
    """
    constants: Mapping[Withheld, Labels] = {
        "model": design.device, "source": np.zeros_like(design.device)
    }  # fmt: skip
    groups = np.unique(names, return_inverse=True)[1]
    same = constants.get(withheld, design.edition)
    departures = design.rate - roofline(design)
    result: Vector = np.full(len(departures), math.nan)
    for group in np.unique(groups):
        rows = np.flatnonzero(groups == group)
        for row in rows[predictable(design, rows)]:
            basis = (same == same[row]) & (groups != group)
            result[row] = departures[row] - departures[basis].mean() if basis.any() else math.inf
    return result


def percent(logarithm: float) -> float:
    """Percent by which the larger of two times exceeds the smaller."""
    return 100 * (math.exp(abs(logarithm)) - 1)


def _quantile(values: Sequence[float], share: float) -> float:
    """The least of the values that so large a share of them does not exceed."""
    return sorted(values)[math.ceil(share * len(values)) - 1]


@dataclass(frozen=True, slots=True)
class Regret:
    """Over ``choices`` among at least five accelerators each, by the same rows.

    ``within_a_tenth`` is the share whose pick costs at most a tenth more than the truly cheapest;
    ``median_percent`` and ``p90_percent`` say how much more it costs.
    """

    choices: int
    within_a_tenth: float
    median_percent: float
    p90_percent: float


def regrets(
    rows: Sequence[Tried], devices: Devices, hourly: Mapping[str, float]
) -> tuple[Regret, Regret]:
    """Regrets of picking the cheapest by forecasts and by the roofline; ``hourly`` is by device."""
    design = designed([row.placed for row in rows], devices)
    prices = np.array([hourly.get(row.placed.device.id, math.nan) for row in rows])
    by = ([row.error for row in rows], [row.roofline for row in rows])
    forecasts, roof = (design.rate - np.array(errors) for errors in by)
    return regret_of(design, forecasts, prices), regret_of(design, roof, prices)


def regret_of(design: Design, predicted: Vector, prices: Vector) -> Regret:
    """Regret of predicted rates (logarithms per device) at prices of a device [n]; NaN is unknown.

    Costs are those of an example: price over rate.
    """
    usable = np.isfinite(predicted) & np.isfinite(prices)
    choices: dict[tuple[int, float], list[int]] = defaultdict(list)
    for row in np.flatnonzero(usable):
        choices[int(design.edition[row]), float(design.batch[row])].append(int(row))
    over = []
    for rows in choices.values():
        true, expected = (
            _costs(design, np.log(prices) - rate, rows) for rate in (design.rate, predicted)
        )
        if len(true) >= _LEAST_CANDIDATES:
            pick = min(expected, key=expected.__getitem__)
            over.append(math.exp(true[pick] - min(true.values())) - 1)
    if not over:
        return Regret(0, 0.0, math.nan, math.nan)
    return Regret(
        len(over),
        round(sum(excess <= _WITHIN for excess in over) / len(over), 3),
        round(100 * float(np.median(over)), 1),
        round(100 * float(np.quantile(over, 0.9)), 1),
    )


def _costs(design: Design, costs: Vector, rows: Sequence[int]) -> dict[int, float]:
    """Median logarithm of the cost of each group of devices over its rows."""
    groups: dict[int, list[float]] = defaultdict(list)
    for row in rows:
        groups[int(design.group[row])].append(float(costs[row]))
    return {group: float(np.median(logarithms)) for group, logarithms in groups.items()}
