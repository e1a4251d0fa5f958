"""Store the data of a chart as rows, from which charts, tables and files are made.

Rows are instances of one frozen dataclass, whose annotations `Shown` say how fields appear.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from itertools import chain
from typing import Annotated, Any, Generic, Literal, TypeVar, get_type_hints

from epochcost.analysis.table.lines import Value
from epochcost.cost.estimate import WIDEST
from epochcost.report.tables import Column, Form, Table
from epochcost.units import TIME_UNITS, symbol

RowT = TypeVar("RowT")
# Low, mean and high.
Ends = tuple[float, float, float]
# What to append to the name and to the title of an interval's field for each end.
_ENDS = {"_low": ", lower end", "": "", "_high": ", upper end"}
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

    @property
    def label(self) -> str:
        """The title with a small first letter; abbreviations, such as GPUs, keep their capitals."""
        title = self.title
        return title if title[1:2].isupper() else title[0].lower() + title[1:]


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

    def values_of(self, name: str) -> list[Any]:
        """All values in the field ``name``, including both ends of intervals."""
        columns = {f"{name}{end}" for end in _ENDS}
        return [value for row in self.values for column, value in row.items() if column in columns]

    def with_tooltips(self, alt: Any, mark: Any) -> Any:
        """Add a tooltip to a mark, with each field that tables also show, in readable units."""
        shown = {name: field for name, field in self.fields.items() if field.place == "both"}
        texts = {
            f"{name}_text": readable(field.form, f"datum.{name}", self.currency)
            for name, field in shown.items()
            if field.form != "text"
        }
        tooltips = [
            alt.Tooltip(
                f"{name}_text:N" if f"{name}_text" in texts else f"{name}:N", title=field.label
            )
            for name, field in shown.items()
        ]
        return mark.transform_calculate(**texts).encode(tooltip=tooltips)

    @cached_property
    def table(self) -> Table:
        """Make a table of all rows, for readers and files."""
        listed = {name: field for name, field in self.fields.items() if field.place != "chart"}
        columns = (self._columns(name, field) for name, field in listed.items())
        rows = (
            tuple(
                cell
                for name, field in listed.items()
                for cell in _table_cells(field, getattr(row, name))
            )
            for row in self.rows
        )
        return Table(tuple(chain.from_iterable(columns)), tuple(rows))

    @cached_property
    def fields(self) -> Mapping[str, Shown]:
        """The way to show each field, by its name."""
        hints = get_type_hints(type(self.rows[0]), include_extras=True)
        return {name: hint.__metadata__[-1] for name, hint in hints.items()}

    def _chart_values(self, row: RowT) -> Iterator[tuple[str, Any]]:
        for name, field in self.fields.items():
            value = getattr(row, name)
            if field.place == "table" or value is None:
                continue
            if isinstance(value, tuple):
                names = (f"{name}{end}" for end in _ENDS)
                yield from zip(names, map(_rounded_for_chart, clip(value)), strict=True)
            else:
                is_number = isinstance(value, Decimal)
                yield name, _rounded_for_chart(value) if is_number else _bool_as_word(value)

    def _columns(self, name: str, field: Shown) -> Iterator[Column]:
        unit = {"seconds": "_s", "money": f"_{self.currency}"}.get(field.form, "")
        has_ends = field.bounds and isinstance(getattr(self.rows[0], name), tuple)
        for end, suffix in _ENDS.items() if has_ends else [("", "")]:
            title = f"{field.title}{suffix}"
            yield Column(f"{name}{end}{unit}", title, field.form, currency=self.currency)


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


def _table_cells(field: Shown, value: Any) -> tuple[Value, ...]:
    if not isinstance(value, tuple):
        return (_cell(field, value),)
    low, mean, high = (_cell(field, end) for end in value)
    if not field.bounds:
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
