"""Store the data of a chart as rows, from which charts, tables and files are made.

Rows are instances of one frozen dataclass, whose annotations `Shown` say how fields appear.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Annotated, Any, Generic, Literal, TypeVar, get_type_hints

from epochcost.analysis.table.lines import Value
from epochcost.cost.estimate import WIDEST
from epochcost.report.tables import Column, Form, Table
from epochcost.units import TIME_UNITS, symbol

RowT = TypeVar("RowT")
# Low, mean and high.
Ends = tuple[float, float, float]
_ENDS = ("_low", "", "_high")
# Largest factor from a mean to the end of a bar; a few scattered samples give useless intervals.
_MOST_DRAWN = 5


@dataclass(frozen=True, slots=True)
class Shown:
    """The way to show a field: its title, its form, and the places where it appears.

    If ``bounds`` is False, tables show only the mean of an interval. In tables, floats of the form
    "number" have at most ``digits`` significant digits.
    """

    title: str
    form: Form = "text"
    place: Literal["both", "chart", "table"] = "both"
    bounds: bool = True
    digits: int = 4


MachineName = Annotated[str, Shown("Machine")]
PlanName = Annotated[str, Shown("Price plan")]
FigureKind = Annotated[str, Shown("How we know")]


@dataclass(frozen=True)
class ChartData(Generic[RowT]):
    """The rows of a chart, all of one class; amounts of money are in ``currency``."""

    rows: tuple[RowT, ...]
    currency: str = "USD"

    @cached_property
    def values(self) -> list[dict[str, Any]]:
        """The values for Altair, as a dict for each row; missing values are left out."""
        return [dict(self._chart_values(row)) for row in self.rows]

    def values_of(self, *names: str) -> list[Any]:
        """All values in the fields ``names``, including both ends of intervals."""
        columns = {f"{name}{end}" for name in names for end in _ENDS}
        return [value for row in self.values for name, value in row.items() if name in columns]

    def shown(self, name: str) -> Shown:
        """The way to show a field."""
        return next(field.display for field in self._fields if field.name == name)

    def with_tooltips(self, alt: Any, mark: Any) -> Any:
        """Add a tooltip to a mark, with each field that tables also show, in readable units."""
        shown = [field for field in self._fields if field.display.place == "both"]
        texts = {
            f"{field.name}_text": readable(field.display.form, f"datum.{field.name}", self.currency)
            for field in shown
            if field.display.form != "text"
        }
        tooltips = [_tooltip(alt, field) for field in shown]
        return mark.transform_calculate(**texts).encode(tooltip=tooltips)

    def table(self) -> Table:
        """Make a table of all rows, for readers and files."""
        listed = [field for field in self._fields if field.display.place != "chart"]
        columns = [column for field in listed for column in self._columns(field)]
        rows = (
            tuple(
                cell for field in listed for cell in _table_cells(field, getattr(row, field.name))
            )
            for row in self.rows
        )
        return Table(tuple(columns), tuple(rows))

    @cached_property
    def _fields(self) -> tuple[_RowField, ...]:
        hints = get_type_hints(type(self.rows[0]), include_extras=True).items()
        return tuple(
            _RowField(name, hint.__metadata__[-1], hint.__origin__) for name, hint in hints
        )

    def _chart_values(self, row: RowT) -> Iterator[tuple[str, Any]]:
        for field in self._fields:
            value = getattr(row, field.name)
            if field.display.place == "table" or value is None:
                continue
            if field.is_interval:
                names = (f"{field.name}{end}" for end in _ENDS)
                yield from zip(names, map(_rounded_for_chart, clip(value)), strict=True)
            else:
                is_number = isinstance(value, Decimal)
                yield field.name, _rounded_for_chart(value) if is_number else _bool_as_word(value)

    def _columns(self, field: _RowField) -> Iterator[Column]:
        name, title, form = field.name, field.display.title, field.display.form
        unit = {"seconds": "_s", "money": f"_{self.currency}"}.get(form, "")
        for end, suffix in field.column_suffixes:
            yield Column(f"{name}{end}{unit}", f"{title}{suffix}", form, currency=self.currency)


@dataclass(frozen=True, slots=True)
class _RowField:
    name: str
    display: Shown
    type: Any

    @property
    def is_interval(self) -> bool:
        return bool(self.type == Ends)

    @property
    def column_suffixes(self) -> tuple[tuple[str, str], ...]:
        """For each table column of the field, what to append to its name and title."""
        if self.is_interval and self.display.bounds:
            return ("_low", ", lower end"), ("", ""), ("_high", ", upper end")
        return (("", ""),)


def _rounded_for_chart(value: Decimal | float) -> float:
    # Charts show no finer difference.
    return float(f"{value:.9g}")


def clip(ends: Ends) -> Ends:
    """Limit an interval to 1/5 and 5 times its mean, because wider ones would dwarf all others."""
    low, mean, high = ends
    return max(low, mean / _MOST_DRAWN), mean, min(high, mean * _MOST_DRAWN)


def distinct(names: Sequence[str], long_names: Sequence[str]) -> list[str]:
    """Names for lines of a chart: short ``names``, but the long name if others have the same."""
    counts = Counter(names)
    pairs = zip(names, long_names, strict=True)
    return [name if counts[name] == 1 else long_name for name, long_name in pairs]


def readable(form: Form, value: str, currency: str = "USD") -> str:
    """Make a Vega expression that formats a number for readers, with its unit of time or currency.

    ``value`` is the Vega expression of the number.
    """
    number = f"format({value}, ',.3~r')"
    if form == "money":
        return f"'{symbol(currency)}' + (abs({value}) < 100 ? {number} : format({value}, ',.0f'))"
    if form != "seconds":
        return number
    texts = [f"format({value} * {scale:.9g}, ',.3~r') + ' {name}'" for _, scale, name in TIME_UNITS]
    ends = [f"{value} < {end:.9g} ? " for end, _, _ in TIME_UNITS[:-1]]
    return " : ".join(map("".join, zip([*ends, ""], texts, strict=True)))


def label(title: str) -> str:
    """``title`` with a small first letter; abbreviations, such as GPUs, keep their capitals."""
    return title if title[1:2].isupper() else title[0].lower() + title[1:]


def _tooltip(alt: Any, field: _RowField) -> Any:
    suffix = "" if field.display.form == "text" else "_text"
    return alt.Tooltip(f"{field.name}{suffix}:N", title=label(field.display.title))


def _table_cells(field: _RowField, value: Any) -> tuple[Value, ...]:
    if not field.is_interval:
        return (_cell(field.display, value),)
    low, mean, high = (_cell(field.display, end) for end in value)
    if not field.display.bounds:
        return (mean,)
    if value[0] == value[2]:
        return None, mean, None
    return low if value[1] <= WIDEST * value[0] else None, mean, high


def _cell(display: Shown, value: Any) -> Value:
    if isinstance(value, float):
        digits = f"{value:.{display.digits}g}" if display.form == "number" else repr(value)
        return Decimal(digits)
    text: Value = _bool_as_word(value)
    return text


def _bool_as_word(value: Any) -> Any:
    return ("yes" if value else "no") if isinstance(value, bool) else value
