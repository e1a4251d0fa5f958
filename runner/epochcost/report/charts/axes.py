"""Logarithmic axes: domains and round ticks are computed here, so that all renderers agree."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from epochcost.report.charts.data import ChartData
from epochcost.report.tables import Form
from epochcost.units import symbol

# Leading digits of round numbers, by the largest number of decades that uses them.
_LEADS = ((0.7, (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0)), (3.0, (1.0, 2.0, 5.0)), (math.inf, (1.0,)))
_MOST_TICKS = 9
# Margin of the domain beyond the data, as a factor.
_MARGIN = 1.5

# Vega expressions; `datum.value` is the tick's value.
SECONDS_LABEL = (
    "datum.value < 1e-3 ? format(datum.value * 1e6, '~g') + ' µs'"
    " : datum.value < 1 ? format(datum.value * 1e3, '~g') + ' ms'"
    " : datum.value < 60 ? format(datum.value, '~g') + ' s'"
    " : datum.value < 3600 ? format(datum.value / 60, '~g') + ' min'"
    " : datum.value < 86400 ? format(datum.value / 3600, '~g') + ' h'"
    " : datum.value < 31557600 ? format(datum.value / 86400, '~g') + ' d'"
    " : format(datum.value / 31557600, '~g') + ' y'"
)
# Seconds, minutes, hours, days and years, each up to the next.
_TIME_UNITS = (
    (1.0, 60.0), (60.0, 3600.0), (3600.0, 86_400.0), (86_400.0, 31_557_600.0),
    (31_557_600.0, math.inf),
)  # fmt: skip


_NUMBER_LABEL = "format(datum.value, ',~r')"
_BYTES_LABEL = (
    "datum.value < 1073741824 ? format(datum.value / 1048576, '.3~g') + ' MiB'"
    " : format(datum.value / 1073741824, '.3~g') + ' GiB'"
)
_LABELS: Mapping[Form, str] = {"seconds": SECONDS_LABEL, "bytes": _BYTES_LABEL}


def log_axis(
    channel: Callable[..., Any],
    data: ChartData[Any],
    field: str,
    title: str,
    *,
    also: Iterable[float] = (),
    label: str = "",
) -> Any:
    """An axis over a field's values and those of ``also``; ``channel`` is ``alt.X`` or similar.

    The field's form decides the ticks and their labels.
    """
    domain, form = log_domain([*data.values_of(field), *also]), data.form(field)
    expression = label or _LABELS.get(form, _NUMBER_LABEL)
    if form == "money":
        expression = f"'{symbol(data.currency)}' + {expression}"
    return log_scaled(
        channel, field, domain, title, _TICKS.get(form, log_ticks)(domain), expression
    )


def log_scaled(
    channel: Callable[..., Any],
    field: str,
    domain: tuple[float, float],
    title: str,
    ticks: Sequence[float],
    label: str = _NUMBER_LABEL,
    separation: int = 0,
) -> Any:
    """An axis of a domain with these ticks; labels closer than ``separation`` pixels are hidden."""
    return channel(
        f"{field}:Q",
        scale={"type": "log", "domain": domain, "nice": False},
        axis={"values": ticks, "labelExpr": label, "labelSeparation": separation},
        title=f"{title} (log scale)",
    )


def log_domain(values: Iterable[float]) -> tuple[float, float]:
    """The least and largest value, each moved outward by a margin."""
    positive = [value for value in values if value > 0]
    return min(positive) / _MARGIN, max(positive) * _MARGIN


def log_ticks(domain: tuple[float, float]) -> list[float]:
    """Round numbers in the domain: powers of ten, and more between them for a short domain."""
    low, high = domain
    return _thinned(_numbers(low, high, _leads(domain)))


def time_ticks(domain: tuple[float, float]) -> list[float]:
    """Round durations in seconds, from seconds to years."""
    low, high = domain
    ticks: list[float] = []
    for unit, end in _TIME_UNITS:
        first, last = max(low, unit if unit > 1 else low), min(high, end)
        if first < last:
            numbers = _numbers(first / unit, last / unit, _leads(domain))
            ticks += [number * unit for number in numbers if number * unit < end]
    return _thinned(ticks)


def byte_ticks(domain: tuple[float, float]) -> list[float]:
    """Powers of two in the domain, for sizes of memory."""
    low, high = (math.log2(end) for end in domain)
    return _thinned([2.0**power for power in range(math.ceil(low), math.floor(high) + 1)])


_TICKS: Mapping[Form, Callable[[tuple[float, float]], list[float]]] = {
    "seconds": time_ticks,
    "bytes": byte_ticks,
}


def _numbers(low: float, high: float, leads: tuple[float, ...]) -> list[float]:
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    numbers = [float(f"{lead:g}e{exponent}") for exponent in exponents for lead in leads]
    return [number for number in numbers if low <= number <= high]


def _leads(domain: tuple[float, float]) -> tuple[float, ...]:
    decades = math.log10(domain[1] / domain[0])
    return next(leads for most, leads in _LEADS if decades <= most)


def _thinned(ticks: list[float]) -> list[float]:
    """Drop ticks evenly until the others fit."""
    return ticks[:: math.ceil(len(ticks) / _MOST_TICKS) or 1]
