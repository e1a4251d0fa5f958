"""The rows that predictions learn from: the tables of a project, without rows that cannot be right.

Rows are judged by what all others say: a unit mixed up, tokens called samples, a row entered twice,
a machine under two names. Doubted rows are listed and not learnt from; nothing is corrected.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import tomli
from pydantic import TypeAdapter, ValidationError

from epochcost.errors import Fault, SpecError
from epochcost.graphs.profile import Profile
from epochcost.predict.design import Devices, Placed, content_of, designed
from epochcost.predict.process import (
    Design,
    Matrix,
    Scales,
    Vector,
    centred_departures,
    inverted,
    with_noise,
)
from epochcost.predict.rates import Rate, read_profiles, read_rates, without_repeats
from epochcost.results.kept import Keep
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.published import ObservationTable

Profiles = Mapping[tuple[str, str], Profile]
_FRAMEWORKS = ("PyTorch", "TensorFlow", "MXNet")
_KEPT = Keep("screened", TypeAdapter(tuple[str, tuple[int, ...]]), ("predict", "specs"))
# A row is doubted that is off by so much and by so many standard deviations of what it can be.
_LEAST_FACTOR = 2.0
_LEAST_DEVIATIONS = 4.5
# So many equal figures of two names are no chance.
_EQUAL_FIGURES = 3


def learnt_rates(
    catalogue: Catalogue, devices: Devices, cache: Path | None = None
) -> tuple[Placed, ...]:
    """What frameworks reach as they come: one rate for each work and device, whatever version.

    The software of a rate is its framework.

    Programs that vendors tuned for a device say little of what a runtime reaches untuned. Which
    rows were doubted is kept in ``cache``. Raises InputError for a table that cannot be read.
    """
    tables = [one for one in catalogue.observations.values() if not one.tuned]
    rows = _undoubted(placed_tables(catalogue, tables, devices), devices, cache)
    profiles = {
        (one.rate.model, one.rate.size): one.profile for one in rows if one.profile is not None
    }
    rates = without_repeats(
        replace(one.rate, software=framework_of(one.rate.software)) for one in rows
    )
    return tuple(placed(rates, devices, profiles)[0])


def framework_of(software: str) -> str:
    """The framework in a source's words for its software; those words where they name none."""
    said = software.casefold()
    if said.startswith("pt"):
        return "PyTorch"
    return next((name for name in _FRAMEWORKS if name.casefold() in said), software)


def _undoubted(rows: Sequence[Placed], devices: Devices, cache: Path | None) -> tuple[Placed, ...]:
    """The rows that can be right, judged table by table."""
    tables: dict[str, list[Placed]] = defaultdict(list)
    for one in rows:
        tables[one.rate.path].append(one)
    return tuple(
        one
        for table in tables.values()
        for doubts in [_doubted(table, devices, cache)]
        for at, one in enumerate(table)
        if at not in doubts
    )


def _doubted(table: Sequence[Placed], devices: Devices, cache: Path | None) -> frozenset[int]:
    """The places of the rows that cannot be right."""
    content = content_of(table, devices) if cache else None
    places = _KEPT.value(cache, content, lambda: tuple(doubted_rows(table, devices)))
    return frozenset(places)


def placed(
    rates: Iterable[Rate], devices: Devices, profiles: Profiles
) -> tuple[list[Placed], frozenset[str]]:
    """The rates of examples on devices that are known, and the names of accelerators that are not.

    How long a run took to its target says as much of the training as of the machine: left out.
    """
    found, unknown = [], set()
    for rate in rates:
        if not rate.is_of_examples:
            continue
        device = devices.named(rate.accelerator)
        if device is None:
            unknown.add(rate.accelerator)
        else:
            found.append(Placed(rate, device, profiles.get((rate.model, rate.size))))
    return found, frozenset(unknown)


def placed_tables(
    catalogue: Catalogue, tables: Iterable[ObservationTable], devices: Devices
) -> tuple[Placed, ...]:
    """The rows of some tables of a project, repeats reduced to their medians.

    Raises InputError for a table that cannot be read.
    """
    found: list[Placed] = []
    for table in tables:
        folder = catalogue.files[f"observations/{table.id}"].parent
        profiles = read_profiles(folder / table.profiles) if table.profiles else {}
        rates = without_repeats(read_rates(folder / table.table))
        found += placed(rates, devices, profiles)[0]
    return tuple(found)


def table_faults(spec: Path) -> tuple[Fault, ...]:
    """What cannot be read in the files that a spec of observations names; none for a bad spec."""
    try:
        named = ObservationTable.model_validate(tomli.loads(spec.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, tomli.TOMLDecodeError, ValidationError):
        return ()
    faults: list[Fault] = []
    for name, read in ((named.table, read_rates), (named.profiles, read_profiles)):
        if name is not None and (spec.parent / name).is_file():
            try:
                read(spec.parent / name)
            except SpecError as error:
                faults += error.faults
    return tuple(faults)


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why a row is not learnt from, and its place."""

    where: str
    reason: str


def doubted_rows(placed: Sequence[Placed], devices: Devices) -> dict[int, Doubt]:
    """By place among the rows, those that cannot be right."""
    doubts = dict(_repeated(placed))
    doubts |= {at: doubt for at, doubt in _twice_named(placed) if at not in doubts}
    sound = [at for at in range(len(placed)) if at not in doubts]
    design = designed([placed[at] for at in sound], devices)
    for at, factor in _improbable(design):
        one = placed[sound[at]].rate
        doubts[sound[at]] = Doubt(
            one.where,
            f"{one.per_second:.4g} a second of {one.model} on {one.accelerator}: other rows say "
            f"{one.per_second / factor:.4g}",
        )
    return doubts


def _repeated(placed: Sequence[Placed]) -> Iterator[tuple[int, Doubt]]:
    """Rows that say the same as an earlier one to the last digit, its machine included."""
    seen: dict[tuple[object, ...], str] = {}
    for at, one in enumerate(placed):
        rate = one.rate
        row = (rate.work, rate.accelerator, rate.count, rate.machine, rate.per_second, rate.file)
        if row in seen:
            yield at, Doubt(rate.where, f"the same as {seen[row]}")
        seen.setdefault(row, rate.where)


def _twice_named(placed: Sequence[Placed]) -> Iterator[tuple[int, Doubt]]:
    """Rows of a device whose figures are all those of another device's."""
    figures: dict[str, dict[tuple[object, ...], int]] = defaultdict(dict)
    for at, one in enumerate(placed):
        figure = (one.rate.work, one.rate.count, one.rate.per_second)
        figures[one.device.id].setdefault(figure, at)
    names = sorted(figures, key=lambda name: min(figures[name].values()))
    for number, name in enumerate(names):
        for earlier in names[:number]:
            shared = figures[name].keys() & figures[earlier].keys()
            if len(shared) >= max(_EQUAL_FIGURES, len(figures[name]) / 2):
                for key in shared:
                    at = figures[name][key]
                    yield at, Doubt(placed[at].rate.where, f"the figure of {earlier} under {name}")


def _improbable(design: Design) -> Iterator[tuple[int, float]]:
    """Rows that all others contradict, the worst first, and by which factor.

    One at a time: a row that is far off pulls at what is expected of its neighbours.
    """
    departures, _ = centred_departures(design)
    inverse = inverted(with_noise(design, Scales()))
    left = np.ones(len(departures), bool)
    while left.sum() > _EQUAL_FIGURES:
        worst, factor = _worst(inverse, np.where(left, departures - departures[left].mean(), 0))
        if worst is None:
            return
        yield worst, factor
        # The inverse of the covariance without the row, whose own row and column become 0.
        column = inverse[worst].copy()
        inverse -= np.outer(column, column / column[worst])
        inverse[worst] = inverse[:, worst] = 0
        left[worst] = False


def _worst(inverse: Matrix, departures: Vector) -> tuple[int | None, float]:
    """The row that lies farthest from what the others say of it, if any is too far.

    Rows that are left out have zeros in both.
    """
    own = np.diag(inverse)
    off = np.divide(inverse @ departures, own, out=np.zeros_like(own), where=own > 0)
    deviations = np.abs(off) * np.sqrt(own)
    deviations[np.abs(off) < math.log(_LEAST_FACTOR)] = 0
    at = int(np.argmax(deviations))
    if deviations[at] < _LEAST_DEVIATIONS:
        return None, 1.0
    return at, math.exp(float(off[at]))
