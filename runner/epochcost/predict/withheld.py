"""Rates that were withheld and forecast from all others, as forecasts are made, and how far off.

The whole of what is learnt is asked, with nothing measured where a forecast is for. What following
forecasts costs is left to ``regret``.
"""

from __future__ import annotations

import math
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
