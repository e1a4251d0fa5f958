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
    "accelerator": lambda one: " ".join(group_of(one.device)) + " GB",
    "generation": lambda one: one.device.generation,
    "model": lambda one: model_family(one.rate.model),
    "source": lambda one: one.rate.source,
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
    def held(self) -> bool:
        """Whether the interval holds the truth."""
        one = self.forecast
        return one is not None and one.low <= self.placed.rate.per_second <= one.high


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
    """Over some rows; None where none has a forecast."""
    forecast = [one for one in tried if one.forecast]
    if not forecast:
        return None
    off = [percent(one.error) for one in forecast]
    roof = [percent(one.roofline) for one in forecast if math.isfinite(one.roofline)]
    widths = [math.sqrt(one.forecast.high / one.forecast.low) for one in forecast if one.forecast]
    return Errors(
        rows=len(forecast),
        refused=len(tried) - len(forecast),
        median_percent=round(_quantile(off, 0.5), 1),
        p90_percent=round(_quantile(off, 0.9), 1),
        coverage=round(sum(one.held for one in forecast) / len(forecast), 3),
        half_width=round(_quantile(widths, 0.5), 2),
        roofline_median_percent=round(_quantile(roof, 0.5), 1) if roof else None,
        roofline_p90_percent=round(_quantile(roof, 0.9), 1) if roof else None,
    )


def tried(learnt: Sequence[Placed], devices: Devices, withheld: Withheld) -> tuple[Tried, ...]:
    """Every row forecast without all of its name, in order.

    Where models or sources are withheld, of works whose graphs are known.
    """
    asked = [one for one in learnt if one.profile or withheld not in _BY_GRAPH]
    if not asked:
        return ()
    design, name = designed(asked, devices), _NAMES[withheld]
    names = [name(one) for one in asked]
    found: list[Forecast | None] = [None] * len(asked)
    for one in sorted(set(names)):
        rest = [other for other in learnt if name(other) != one]
        rows = [at for at, other in enumerate(names) if other == one]
        said = list(_forecastable(asked, rows, rest))
        if said:
            forecasts = Forecaster(rest, devices).of([asked[at] for at in said])
            for at, forecast in zip(said, forecasts, strict=True):
                # An interval without ends says nothing.
                found[at] = forecast if forecast.low > 0 else None
    roofs = _roofline(design, withheld, names)
    return tuple(map(Tried, names, asked, found, map(float, roofs)))


def _forecastable(
    asked: Sequence[Placed], rows: Sequence[int], rest: Sequence[Placed]
) -> Iterator[int]:
    """The rows of whose work others tell: the same source of that model, or kin by its graph."""
    editions = {one.rate.edition for one in rest}
    for at in rows:
        profile = asked[at].profile
        if asked[at].rate.edition in editions or (profile and has_kin(profile, rest)):
            yield at


def _roofline(design: Design, withheld: Withheld, names: Sequence[str]) -> Vector:
    """Its constants are those of what is not withheld: of models, of devices, or one for all."""
    constants: Mapping[Withheld, Labels] = {
        "model": design.device,
        "source": np.zeros_like(design.device),
    }
    groups = np.unique(names, return_inverse=True)[1]
    return _roofline_errors(design, groups, constants.get(withheld, design.edition))


def _roofline_errors(design: Design, groups: Labels, same: Labels) -> Vector:
    """Of the rows by √(peak · bandwidth) and a constant of the rows of one label of ``same`` [n].

    NaN where no other row tells of the work, infinite where none has that label.
    """
    departures = design.rate - roofline(design)
    result: Vector = np.full(len(departures), math.nan)
    for group in np.unique(groups):
        rows = np.flatnonzero(groups == group)
        for row in rows[predictable(design, rows)]:
            others = (same == same[row]) & (groups != group)
            result[row] = departures[row] - departures[others].mean() if others.any() else math.inf
    return result


def percent(logarithm: float) -> float:
    """By how many percent the larger of two times exceeds the smaller."""
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
    """Of picking the cheapest by forecasts, and by the roofline; ``hourly`` is by device id."""
    design = designed([one.placed for one in rows], devices)
    prices = np.array([hourly.get(one.placed.device.id, math.nan) for one in rows])
    by = ([one.error for one in rows], [one.roofline for one in rows])
    forecasts, roof = (design.rate - np.array(errors) for errors in by)
    return regret_of(design, forecasts, prices), regret_of(design, roof, prices)


def regret_of(design: Design, predicted: Vector, prices: Vector) -> Regret:
    """Of logarithms of rates per device and prices of a device [n], NaN where there is none.

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
        round(sum(one <= _WITHIN for one in over) / len(over), 3),
        round(100 * float(np.median(over)), 1),
        round(100 * float(np.quantile(over, 0.9)), 1),
    )


def _costs(design: Design, costs: Vector, rows: Sequence[int]) -> dict[int, float]:
    """By group of devices, the median of a cost's logarithm over its rows."""
    groups: dict[int, list[float]] = defaultdict(list)
    for row in rows:
        groups[int(design.group[row])].append(float(costs[row]))
    return {group: float(np.median(found)) for group, found in groups.items()}
