"""Withhold published rates, forecast them from all others, and measure the errors.

Forecasts use none of our own measurements. The module ``ratios`` tests ratios of two rates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from epochcost.predict.design import Devices, Placed, designed, group_of, model_family
from epochcost.predict.forecast import Forecast, Forecaster, has_kin
from epochcost.predict.process import Design, Labels, Vector, members, predictable

Withheld = Literal["accelerator", "generation", "model", "source"]
WITHHELD: tuple[Withheld, ...] = get_args(Withheld)
_NAMES: Mapping[Withheld, Callable[[Placed], str]] = {
    "accelerator": lambda row: " ".join(group_of(row.device)) + " GB",
    "generation": lambda row: row.device.generation,
    "model": lambda row: model_family(row.rate.model),
    "source": lambda row: row.rate.source,
}
# Models whose graphs are unknown can only be predicted from their own rows.
_BY_GRAPH: tuple[Withheld, ...] = ("model", "source")


@dataclass(frozen=True, slots=True)
class Tried:
    """A published rate, and its forecast from the rates that are not withheld.

    All rates with the same ``name`` (accelerator, generation, model or source) are withheld.
    ``forecast`` is None if no forecast is possible. ``roofline`` is log(published rate / rate by a
    roofline model), NaN or infinite if the model gives no rate.
    """

    name: str
    placed: Placed
    forecast: Forecast | None
    roofline: float

    @property
    def error(self) -> float:
        """The logarithm of published rate / forecast rate; NaN without a forecast."""
        rate = self.placed.rate.per_second
        return math.log(rate / self.forecast.per_second) if self.forecast else math.nan

    @property
    def covers(self) -> bool:
        """Whether the forecast's interval contains the published rate."""
        forecast = self.forecast
        return forecast is not None and forecast.low <= self.placed.rate.per_second <= forecast.high


@dataclass(frozen=True, slots=True)
class Errors:
    """Errors of ``rows`` forecasts: percents by which the larger of both rates exceeds the smaller.

    ``refused`` counts rates without a forecast. ``coverage`` is the share of intervals that contain
    the published rate. An interval reaches from centre / f to centre · f; ``half_width`` is the
    median of the factors f. The errors of a roofline model are None if it can predict no rate.
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
    """Errors of the rows that have a forecast; None if no row has one."""
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
    """Forecast each published rate from rates that differ from it in what ``withheld`` names.

    If that is "model" or "source", rates of models with an unknown graph are left out.
    """
    tested = [row for row in learnt if row.profile or withheld not in _BY_GRAPH]
    if not tested:
        return ()
    design, name = designed(tested, devices), _NAMES[withheld]
    names = [name(row) for row in tested]
    results: list[Forecast | None] = [None] * len(tested)
    for label in sorted(set(names)):
        rest = [row for row in learnt if name(row) != label]
        editions = {row.rate.edition for row in rest}
        places = [
            at
            for at, row in enumerate(tested)
            if names[at] == label
            if row.rate.edition in editions or (row.profile and has_kin(row.profile, rest))
        ]
        if places:
            forecasts = Forecaster(rest, devices).of([tested[at] for at in places])
            for at, forecast in zip(places, forecasts, strict=True):
                # An interval without ends says nothing.
                results[at] = forecast if forecast.low > 0 else None
    roofs = _roofline_errors(design, withheld, names)
    return tuple(map(Tried, names, tested, results, map(float, roofs)))


def _roofline_errors(design: Design, withheld: Withheld, names: Sequence[str]) -> Vector:
    """The errors log(rate / predicted rate) [n] of a roofline model whose rates are scaled.

    A row's scaling factor is fitted to rows with other ``names``: to those on the same device if
    ``withheld`` is "model", to all if it is "source", and else to those with the same ``edition``.
    An error is infinite without such rows, and NaN if the row is not `predictable`.
    """
    constants: Mapping[Withheld, Labels] = {
        "model": design.device, "source": np.zeros_like(design.device)
    }  # fmt: skip
    groups = np.unique(names, return_inverse=True)[1]
    # Rows with equal labels share a factor.
    same = constants.get(withheld, design.edition)
    departures = design.rate - design.roofline
    result: Vector = np.full(len(departures), math.nan)
    for rows in members(groups):
        for row in rows[predictable(design, rows)]:
            basis = (same == same[row]) & (groups != groups[row])
            result[row] = departures[row] - departures[basis].mean() if basis.any() else math.inf
    return result


def percent(logarithm: float) -> float:
    """Convert the log ratio of two times to the percent by which the larger exceeds the smaller."""
    return 100 * (math.exp(abs(logarithm)) - 1)


def _quantile(values: Sequence[float], share: float) -> float:
    return sorted(values)[math.ceil(share * len(values)) - 1]
