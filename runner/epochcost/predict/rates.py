"""Read tables of published rates, and of times of an iteration, epoch or run."""

from __future__ import annotations

import datetime as dt
import math
import re
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from pathlib import Path
from typing import TypeVar

from epochcost.errors import Fault, SpecError
from epochcost.graphs.profile import Profile
from epochcost.specs.csv_rows import csv_rows
from epochcost.statistics import group_by

RowT = TypeVar("RowT")
COLUMNS = (
    "source", "date", "model", "task", "mode", "precision", "batch", "sequence_or_image",
    "software", "accelerator", "count", "machine", "metric", "value", "unit", "file", "licence",
)  # fmt: skip
MODES = {
    "infer": "inference",
    "train": "training",
    "inference": "inference",
    "training": "training",
}
# Seconds in a unit of time; all other units are rates.
_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "s/epoch": 1.0}
_VERSION = re.compile(r" v?\d+(\.\d+)*$")
# A year, month or day, or years from the first to the last.
_DATE = re.compile(r"(\d{4}-)??(?P<latest>\d{4}(-\d{2}){0,2})", re.ASCII)
_OF_AN_EPOCH_OR_RUN = frozenset({"s", "s/epoch"})


@dataclass(frozen=True, slots=True)
class Rate:
    """A published rate of a whole machine in examples, runs or epochs a second (see ``unit``).

    ``batch`` is a step's examples on one device, ``size`` a sequence's length or an image's side in
    pixels, empty if unknown. ``file`` belongs to the source, ``path`` and ``line`` to our table.
    """

    source: str
    model: str
    task: str
    mode: str
    precision: str
    batch: float | None
    size: str
    software: str
    accelerator: str
    count: int
    unit: str
    per_second: float
    file: str
    path: str
    line: int

    @property
    def work(self) -> tuple[str, ...]:
        """All facts about the workload: its ``setting``, task, input size, batch size and unit."""
        batch = "" if self.batch is None else f"{self.batch:g}"
        return (*self.setting, self.task, self.size, batch, self.unit)

    @property
    def setting(self) -> tuple[str, ...]:
        """Source, model, mode, precision and software of a rate."""
        return (self.source, self.model, self.mode, self.precision, self.software)

    @property
    def edition(self) -> tuple[str, ...]:
        """Source (including its version), model, mode, task and unit of a rate."""
        return (self.source, self.model, self.mode, self.task, self.unit)

    @property
    def family(self) -> str:
        """The source without its version: "MLPerf Inference" for every round."""
        return _VERSION.sub("", self.source)

    @property
    def is_of_examples(self) -> bool:
        """Whether the unit counts examples, instead of runs or epochs."""
        return self.unit not in _OF_AN_EPOCH_OR_RUN

    @property
    def where(self) -> str:
        """File and line of the row, for messages."""
        return f"{self.path}:{self.line}"


def read_rates(path: Path) -> tuple[Rate, ...]:
    """Read the rates in a table, in order; raises SpecError as ``read_table`` does."""
    return tuple(read_table(path, COLUMNS, lambda line, row: _rate(path, line, row), COLUMNS))


def read_profiles(path: Path) -> Mapping[tuple[str, str], Profile]:
    """Read profiles of graphs by model and input size; raises SpecError as ``read_table`` does."""
    demanded = [field.name for field in fields(Profile) if field.default is MISSING]
    return dict(read_table(path, ("model", "size", *demanded), lambda _, row: _profile(row)))


def read_table(
    path: Path,
    columns: Sequence[str],
    read_row: Callable[[int, Mapping[str, str]], RowT],
    allowed: Sequence[str] | None = None,
) -> list[RowT]:
    """Apply ``read_row`` to the line number and cells of each row of a CSV file.

    Raises a SpecError that lists missing columns, columns that are not ``allowed`` (None allows
    all) and rows that ``read_row`` refuses.
    """
    values, faults = [], []
    for row in csv_rows(path, columns, allowed):
        try:
            if isinstance(row, Fault):
                faults.append(row)
            else:
                values.append(read_row(row.line, row.cells))
        except ValueError as error:
            faults.append(Fault(path, row.line, 1, str(error)))
    if faults:
        raise SpecError(faults)
    return values


def _rate(path: Path, line: int, row: Mapping[str, str]) -> Rate:
    value = positive_number("value", row["value"])
    # Some sources write 0 for unknown.
    batch = positive_number("batch", row["batch"]) if row["batch"] not in {"", "0"} else None
    mode = MODES.get(row["mode"])
    if mode is None:
        raise ValueError(f"mode: expected infer or train, got {row['mode']!r}")
    require_past_date(row["date"])
    unit, count = row["unit"], whole_number("count", row["count"] or "1")
    if unit in _SECONDS:
        seconds = value * _SECONDS[unit]
        value = (1 if unit in _OF_AN_EPOCH_OR_RUN else batch or 1) / seconds
        # Sources state the batch of all devices beside times, that of one device beside rates.
        batch = batch and batch / count
    return Rate(
        source=row["source"],
        model=row["model"],
        task=row["task"],
        mode=mode,
        precision=row["precision"],
        batch=batch,
        size=row["sequence_or_image"],
        software=row["software"],
        accelerator=row["accelerator"],
        count=count,
        unit=unit,
        per_second=value,
        file=row["file"],
        path=str(path),
        line=line,
    )


def _profile(row: Mapping[str, str]) -> tuple[tuple[str, str], Profile]:
    names = (field.name for field in fields(Profile) if field.name in row)
    counts = {name: count_or(name, row[name], 0) for name in names}
    for name in ("flops", "moved", "parameters", "products"):
        whole_number(name, row[name])
    return (row["model"], row["size"]), Profile(**counts)


def whole_number(name: str, text: str) -> int:
    """Parse a whole number above 0; the ValueError for other text names the column ``name``."""
    value = positive_number(name, text)
    if value != int(value):
        raise ValueError(f"{name}: expected a whole number, got {text!r}")
    return int(value)


def count_or(name: str, text: str, default: int) -> int:
    """Parse a whole number as ``whole_number`` does; ``default`` if the text is empty or 0."""
    return default if text in {"", "0"} else whole_number(name, text)


def positive_number(name: str, text: str) -> float:
    """Parse a number above 0; the ValueError for other text names the column ``name``."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < math.inf:
        raise ValueError(f"{name}: expected a number above 0, got {text!r}")
    return value


def require_past_date(text: str) -> None:
    """Raise ValueError unless ``text`` is empty, a past year, month or day, or a range of years."""
    match = _DATE.fullmatch(text)
    latest = match["latest"] if match else ""
    try:
        day = dt.date.fromisoformat(latest + "-01-01"[len(latest) - 4 :])
    except ValueError:
        day = dt.date.max
    # East of UTC, tomorrow has begun.
    if text and day > dt.datetime.now(dt.UTC).date() + dt.timedelta(days=1):
        demand = "date: expected a past year, month or day, such as 2026, 2026-08 or 2026-08-31"
        raise ValueError(f"{demand}, got {text!r}")


def without_repeats(rates: Iterable[Rate]) -> tuple[Rate, ...]:
    """Merge repeated rates: one median rate for each workload, device and number of devices."""
    repeats = group_by(rates, lambda rate: (rate.work, rate.accelerator, rate.count))
    return tuple(
        replace(group[0], per_second=statistics.median(rate.per_second for rate in group))
        for group in repeats.values()
    )
