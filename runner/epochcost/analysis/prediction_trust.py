"""Measure the errors of predictions and the cost of trusting them, and store both in a file.

Pages quote the file, because the computation takes a minute. A digest reveals an outdated file.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np
from pydantic import TypeAdapter, ValidationError

from epochcost import predict
from epochcost.errors import Fault, ResultError
from epochcost.graphs import profile
from epochcost.predict.design import Devices, precision_of
from epochcost.predict.forecast import Forecast
from epochcost.predict.learnt import learnt_rates
from epochcost.predict.ratios import RatioErrors, TwoWithheld, ratio_errors
from epochcost.predict.withheld import WITHHELD, Errors, Tried, Withheld, errors_of, tried
from epochcost.specs.catalogue import Catalogue, current_prices
from epochcost.specs.price import Price
from epochcost.statistics import group_by
from epochcost.units import render_precision

TRUST_FILE = "data/prediction-trust.json"
COMMAND = "epochcost trust"
_CODE = Path(predict.__file__).parent
_PROFILE = Path(profile.__file__)
_DIGESTED = (".toml", ".csv", ".py")
# Rows of an accelerator in the file, evenly spread over its times.
_MOST_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Group:
    """Prediction errors of a group of rows, such as the rows of a withheld accelerator."""

    name: str
    errors: Errors


@dataclass(frozen=True, slots=True)
class Shown:
    """Published and predicted seconds per example on ``count`` accelerators, for a chart."""

    accelerator: str
    count: int
    source: str
    model: str
    mode: str
    seconds: float
    predicted: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Trust:
    """The contents of the file of prediction errors, which are measured by withholding rates.

    The published rates of one accelerator, generation, model or source at a time are withheld and
    predicted from all others. ``all`` has the errors of each of these four ways, over all rates.
    ``groups`` has them for each withheld accelerator, generation, model or source. ``classes`` has
    errors with a withheld accelerator, by source and mode, and by precision and mode. ``ratios``
    has errors of predicted ratios between two accelerators. ``shown`` has times for a chart.
    ``prices_of`` is the day of the newest price; prices turn ratios of rates into ratios of costs.
    ``digest`` identifies all inputs except prices.
    """

    digest: str
    prices_of: date
    all: Mapping[Withheld, Errors]
    groups: Mapping[Withheld, tuple[Group, ...]]
    classes: tuple[Group, ...]
    ratios: Mapping[TwoWithheld, RatioErrors]
    shown: tuple[Shown, ...]


_FILE = TypeAdapter(Trust)


def read_trust(docs: Path) -> Trust | None:
    """Read the file of prediction errors in ``docs``, if any; raises ResultError if invalid."""
    path = docs / TRUST_FILE
    if not path.is_file():
        return None
    try:
        return _FILE.validate_json(path.read_bytes())
    except ValidationError as error:
        raise ResultError(
            f"{path}: expected the file as `{COMMAND}` writes them, got {error}"
        ) from None


def as_text(trust: Trust) -> str:
    """Render the errors of predictions as the text of ``TRUST_FILE``."""
    return _FILE.dump_json(trust, indent=1).decode() + "\n"


def stale_fault(root: Path, docs: Path) -> Fault | None:
    """A fault if the file of prediction errors is invalid or outdated; None if it is missing."""
    path = docs / TRUST_FILE
    try:
        trust = read_trust(docs)
    except ResultError as error:
        return Fault(path, 1, 1, str(error).removeprefix(f"{path}: "))
    if trust is None or trust.digest == digest(root):
        return None
    demand = "expected numbers of the current observations, devices and code, got older ones"
    return Fault(path, 1, 1, f"{demand}: run `{COMMAND}`")


def digest(root: Path) -> str:
    """A digest of devices, published speeds and prediction code, not of comments or docstrings."""
    content = hashlib.sha256()
    folders = (root / "specs/devices", root / "specs/observations")
    specs = (path for folder in folders for path in sorted(folder.rglob("*.*")))
    for path in (*specs, *sorted(_CODE.glob("*.*")), _PROFILE):
        if path.suffix in _DIGESTED:
            text = path.read_text("utf-8", errors="replace")
            counted = _statements(text) if path.suffix == ".py" else text
            content.update(f"{path.name}\0{counted}\0".encode())
    return content.hexdigest()[:16]


def _statements(source: str) -> str:
    """The lines of a Python module without docstrings, comment lines and blank lines."""
    lines = source.splitlines()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            for at in range(node.lineno - 1, node.end_lineno or 0):
                lines[at] = ""
    return "\n".join(line for line in lines if line.strip() and line.lstrip()[0] != "#")


def trust_of(catalogue: Catalogue, say: Callable[[str], None]) -> Trust | None:
    """Withhold accelerators, generations, models and sources in turn to measure prediction errors.

    ``say`` gets the name of what is withheld next, to show progress. None without rates or prices.
    Raises InputError for a table of observations that cannot be read.
    """
    devices = Devices(catalogue.devices.values())
    learnt = learnt_rates(catalogue, devices)
    trials: dict[Withheld, tuple[Tried, ...]] = {}
    for withheld in WITHHELD:
        say(withheld)
        trials[withheld] = tried(learnt, devices, withheld)
    # The dearest first, so that the lowest price of each device stays.
    prices = sorted(_device_hour_prices(catalogue, devices), key=lambda each: -each[2])
    totals = {kind: errors for kind, rows in trials.items() if (errors := errors_of(rows))}
    if not totals or not prices:
        return None
    accelerators = trials["accelerator"]
    return Trust(
        digest=digest(catalogue.root),
        prices_of=max(price.as_of for price, _, _ in prices),
        all=totals,
        groups={kind: _groups(rows, lambda row: row.name) for kind, rows in trials.items()},
        classes=(
            *_groups(accelerators, lambda row: f"{row.placed.rate.source}, {row.placed.rate.mode}"),
            *_groups(accelerators, _precision_class),
        ),
        ratios=ratio_errors(learnt, devices, {device: each for _, device, each in prices}),
        shown=tuple(_rows_to_show(accelerators)),
    )


def _precision_class(row: Tried) -> str:
    rate = row.placed.rate
    return f"all in {render_precision(precision_of(rate.precision))}, {rate.mode}"


def _groups(rows: Sequence[Tried], name: Callable[[Tried], str]) -> tuple[Group, ...]:
    named = sorted(group_by(rows, name).items())
    groups = ((name, errors_of(members)) for name, members in named)
    return tuple(Group(name, errors) for name, errors in groups if errors)


def _rows_to_show(rows: Sequence[Tried]) -> Iterator[Shown]:
    slowest_first = sorted(rows, key=lambda row: row.placed.rate.per_second)
    shown = [_shown(row, row.forecast) for row in slowest_first if row.forecast]
    for _, members in sorted(group_by(shown, lambda row: row.accelerator).items()):
        for at in sorted({round(at) for at in np.linspace(0, len(members) - 1, _MOST_SHOWN)}):
            yield members[at]


def _shown(row: Tried, forecast: Forecast) -> Shown:
    rate = row.placed.rate
    rates = rate.per_second, forecast.per_second, forecast.high, forecast.low
    seconds = (float(f"{1 / each:.4g}") for each in rates)
    return Shown(row.name, rate.count, rate.source, rate.model, rate.mode, *seconds)


def _device_hour_prices(
    catalogue: Catalogue, devices: Devices
) -> Iterator[tuple[Price, str, float]]:
    """Yield a price, the id of its machine's accelerator, and the USD per accelerator and hour."""
    for price in current_prices(catalogue.prices.values()):
        machine = catalogue.hardware[price.hardware]
        listed = price.plan == "on-demand" and price.currency == "USD"
        sound = listed and not price.assumed and not price.flaw
        if sound and price.amount is not None and len(machine.accelerators) == 1:
            device = devices.named(machine.accelerators[0].name)
            if device is not None:
                yield price, device.id, float(price.amount) / machine.accelerators[0].count
