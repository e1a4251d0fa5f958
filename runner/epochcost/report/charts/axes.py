"""Make logarithmic axes with computed ends and round ticks, so that all renderers agree."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any

from epochcost.report.charts.data import ChartData, readable

# Leading digits of round numbers, by the largest number of decades that uses them.
_LEADS = (
    (0.7, (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0)),
    (1.6, (1.0, 2.0, 5.0)),
    (3.2, (1.0, 3.0)),
    (math.inf, (1.0,)),
)
# Least distance of ticks as a share of the axis: labels have room on a phone.
_APART = 0.12
# Margin of the domain beyond the data, as a factor.
_MARGIN = 1.5

# Seconds, minutes, hours, days and years, each up to the next.
_TIME_UNITS = tuple(pairwise((1.0, 60.0, 3600.0, 86_400.0, 31_557_600.0, math.inf)))


def log_axis(
    channel: Callable[..., Any],
    data: ChartData[Any],
    field: str,
    title: str,
    *,
    also: Iterable[float] = (),
) -> Any:
    """A logarithmic axis that covers the values of ``field`` and the values ``also``.

    ``channel`` is ``alt.X`` or ``alt.Y``. Values of 0 are at the low end. The field's form decides
    the ticks.
    """
    form, values = data.fields[field].form, data.values_of(field)
    domain = log_domain([*values, *also])
    label = readable(form, "datum.value", data.currency)
    scale = {"type": "log", "domain": domain, "nice": False}
    return channel(
        f"{field}:Q",
        scale=scale if all(values) else {**scale, "clamp": True},
        axis={
            "values": time_ticks(domain) if form == "seconds" else log_ticks(domain),
            "labelExpr": label.replace("days'", "d'").replace("years'", "y'"),
            "labelSeparation": 8,
        },
        title=f"{title} (log scale)",
    )


def log_domain(values: Iterable[float]) -> tuple[float, float]:
    """The least and the largest positive value, with margins; around 1 without such a value."""
    positive = [value for value in values if value > 0] or [1.0]
    return min(positive) / _MARGIN, max(positive) * _MARGIN


def positions(drawn: Iterable[float], values: Sequence[float], length: float) -> list[float]:
    """Positions of ``values`` in pixels on a log axis that fits ``drawn``; 0 is at the low end."""
    low, high = log_domain(drawn)
    return [length * math.log(max(value, low) / low) / math.log(high / low) for value in values]


def log_ticks(domain: tuple[float, float]) -> list[float]:
    """Ticks at powers of ten within ``domain``; a short domain also has ticks between them."""
    low, high = domain
    return _ticks_without_overlap(
        _numbers(low, high, _leads(domain)), _numbers(low, high, (1.0,)), domain
    )


def time_ticks(domain: tuple[float, float]) -> list[float]:
    """Ticks (in seconds) at round numbers of seconds, minutes, hours and so on in ``domain``."""
    low, high = domain
    ticks: list[float] = []
    for unit, end in _TIME_UNITS:
        first, last = max(low, unit if unit > 1 else low), min(high, end)
        if first < last:
            numbers = _numbers(first / unit, last / unit, _leads(domain))
            ticks += [number * unit for number in numbers if number * unit < end]
    return _ticks_without_overlap(ticks, [unit for unit, _ in _TIME_UNITS], domain)


def _numbers(low: float, high: float, leads: tuple[float, ...]) -> list[float]:
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    numbers = [float(f"{lead:g}e{exponent}") for exponent in exponents for lead in leads]
    return [number for number in numbers if low <= number <= high]


def _leads(domain: tuple[float, float]) -> tuple[float, ...]:
    decades = math.log10(domain[1] / domain[0])
    return next(leads for most, leads in _LEADS if decades <= most)


def _ticks_without_overlap(
    ticks: Sequence[float], preferred: Sequence[float], domain: tuple[float, float]
) -> list[float]:
    least = _APART * math.log(domain[1] / domain[0])
    kept: list[float] = []
    for tick in sorted(ticks, key=lambda tick: (tick not in preferred, tick)):
        if all(abs(math.log(tick / other)) >= least for other in kept):
            kept.append(tick)
    return sorted(kept)
