"""Select the published rates that predictions learn from: a project's plausible rows.

A row is implausible if it copies the figures of another device, claims an impossible speed-up, or
is far from what the other rows predict. No figure is corrected.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import tomli
from pydantic import TypeAdapter, ValidationError

from epochcost.errors import Fault, SpecError
from epochcost.graphs.profile import Profile
from epochcost.predict.decoders.chips import read_processors
from epochcost.predict.decoders.forms import read_forms
from epochcost.predict.decoders.rows import OPTIONAL, REQUIRED, Names, columns_of, read_lines
from epochcost.predict.design import Devices, Placed, content_of, designed, names_precision
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
from epochcost.specs.document import key_position
from epochcost.specs.published import ObservationTable
from epochcost.specs.wording import describe, suggest_or_list
from epochcost.statistics import group_by

Profiles = Mapping[tuple[str, str], Profile]
# The most used framework first. PyTorch's graphs run in eager mode, or compiled by torch.compile.
FRAMEWORKS = ("PyTorch", "compiled PyTorch", "TensorFlow", "MXNet")
_KEPT = Keep(
    "screened", TypeAdapter(tuple[str, tuple[int, ...]]), ("graphs/profile.py", "predict", "specs")
)
# A row is doubted if it is off by this factor and by this number of standard deviations.
_LEAST_FACTOR = 2.0
_LEAST_DEVIATIONS = 4.5
# This number of equal figures under two names is no coincidence.
_EQUAL_FIGURES = 3
# n devices are no more than this many times n times as fast as one.
_MOST_SPEED_UP = 1.5
# At small batch sizes the host limits a rate, so a larger device gains less. Without the last two
# terms, the rows of one program at batch sizes from 1 to 256 contradicted each other.
_SCREENING = Scales(batch_linear=0.02, setting_batch_linear=0.063)


def learnt_rates(
    catalogue: Catalogue, devices: Devices, cache: Path | None = None
) -> tuple[Placed, ...]:
    """The plausible published rates, except of programs that vendors tuned for a device.

    Each rate's ``software`` is the framework without a version. Medians replace rates of equal
    workloads on the same number of equal devices. The folder ``cache`` stores which rows are
    implausible. Raises InputError for a table that cannot be read.
    """
    rows = [
        row
        for table in catalogue.tables_of("examples")
        # Programs that vendors tuned for a device say little about an untuned runtime.
        if not table.tuned
        for row in _plausible_rows(placed_table(catalogue, table, devices), devices, cache)
    ]
    profiles = {
        (row.rate.model, row.rate.size): row.profile for row in rows if row.profile is not None
    }
    rates = without_repeats(
        replace(row.rate, software=framework_of(row.rate.software)) for row in rows
    )
    return tuple(placed(rates, devices, profiles))


def framework_of(software: str) -> str:
    """The framework, without a version, that a source's text names; the text itself if none."""
    text = software.casefold()
    if text.startswith(("pt", "pytorch")):
        is_compiled = "dynamo" in text or "fusion" in text
        return "compiled PyTorch" if is_compiled else "PyTorch"
    return next((name for name in FRAMEWORKS if name.casefold() in text), software)


def _plausible_rows(
    table: Sequence[Placed], devices: Devices, cache: Path | None
) -> Iterator[Placed]:
    content = content_of(table, devices) if cache else None
    doubted = _KEPT.value(cache, content, lambda: tuple(doubted_rows(table, devices)))
    return (row for at, row in enumerate(table) if at not in doubted)


def placed(rates: Iterable[Rate], devices: Devices, profiles: Profiles) -> list[Placed]:
    """Find each rate's device and profile; omit unknown devices, and rates in epochs or runs."""
    return [
        Placed(rate, device, profiles.get((rate.model, rate.size)))
        for rate in rates
        if rate.is_of_examples and (device := devices.named(rate.accelerator)) is not None
    ]


def placed_table(catalogue: Catalogue, table: ObservationTable, devices: Devices) -> list[Placed]:
    """Read the rates in a project's table; repeated rates are replaced by their median.

    Omits the rates that `placed` omits. Raises InputError for a table that cannot be read.
    """
    profiles = read_profiles(catalogue.table_path(table, table.profiles)) if table.profiles else {}
    rates = without_repeats(read_rates(catalogue.table_path(table, table.table)))
    return placed(rates, devices, profiles)


def table_faults(spec: Path) -> tuple[Fault, ...]:
    """Faults of the tables that a spec of observations names; none if the spec is invalid."""
    try:
        text = spec.read_text(encoding="utf-8")
        named = ObservationTable.model_validate(tomli.loads(text))
    except (OSError, UnicodeDecodeError, tomli.TOMLDecodeError, ValidationError):
        return ()
    rows: Callable[[Path], object] = _require_precisions
    if named.kind == "tokens":
        rows = partial(read_lines, names=Names(Devices(()), {}, {}), columns=columns_of(named))
    faults = [*_unknown_columns(spec, text, named.columns)]
    for name, read in (
        (named.table, rows),
        (named.profiles, read_profiles),
        (named.decoders, read_forms),
        (named.machines, read_processors),
    ):
        if name is not None and (spec.parent / name).is_file():
            try:
                read(spec.parent / name)
            except SpecError as error:
                faults += error.faults
    return tuple(faults)


def _require_precisions(table: Path) -> None:
    """Raise SpecError for a table that cannot be read, or with an unknown precision."""
    demand = "precision: expected a text with a name such as fp32, tf32 or mixed"
    faults = [
        Fault(table, rate.line, 1, f"{demand}, got {describe(rate.precision)}")
        for rate in read_rates(table)
        if not names_precision(rate.precision)
    ]
    if faults:
        raise SpecError(faults)


def _unknown_columns(spec: Path, text: str, columns: Iterable[str]) -> Iterator[Fault]:
    known = (*REQUIRED, *OPTIONAL)
    for name in columns:
        if name not in known:
            message = f"columns.{name}: unknown column{suggest_or_list(name, known)}"
            yield Fault(spec, *key_position(text, ("columns", name)), message)


def doubted_rows(placed: Sequence[Placed], devices: Devices) -> dict[int, str]:
    """Find the implausible published rates; return a reason for each, by index in ``placed``."""
    doubts = dict(_figures_of_other_devices(placed))
    doubts |= _impossible_speed_ups(placed, doubts.keys())
    sound = [at for at in range(len(placed)) if at not in doubts]
    if not sound:
        return doubts
    design = designed([placed[at] for at in sound], devices)
    for at, factor in _contradicted_rows(design):
        rate = placed[sound[at]].rate
        doubts[sound[at]] = (
            f"{rate.per_second:.4g} a second of {rate.model} on {rate.accelerator}: other rows say "
            f"{rate.per_second / factor:.4g}"
        )
    return doubts


def _figures_of_other_devices(placed: Sequence[Placed]) -> Iterator[tuple[int, str]]:
    figures: dict[str, dict[tuple[object, ...], int]] = defaultdict(dict)
    for at, row in enumerate(placed):
        figure = (row.rate.work, row.rate.count, row.rate.per_second)
        figures[row.device.id].setdefault(figure, at)
    names = sorted(figures, key=lambda name: min(figures[name].values()))
    for number, name in enumerate(names):
        for earlier in names[:number]:
            shared = figures[name].keys() & figures[earlier].keys()
            # Probably the same device under two names.
            if len(shared) >= max(_EQUAL_FIGURES, len(figures[name]) / 2):
                for key in shared:
                    yield figures[name][key], f"the figure of {earlier} under {name}"


def _impossible_speed_ups(placed: Sequence[Placed], doubted: Set[int]) -> dict[int, str]:
    """Find rows with an impossible speed-up by more devices; return reasons by row index.

    Two rows of a workload on the same device contradict each other if m times as many devices are
    over 1.5 · m times as fast. The row with more contradictions is doubted, in a tie both rows.
    """
    sound = [at for at in range(len(placed)) if at not in doubted]
    by_work = group_by(sound, lambda at: (placed[at].rate.work, placed[at].device.id))
    reasons: dict[tuple[int, int], str] = {}
    for places in by_work.values():
        for few, many in itertools.permutations(places, 2):
            one, other = placed[few].rate, placed[many].rate
            speed_up, counts = other.per_second / one.per_second, other.count / one.count
            if counts > 1 and speed_up > _MOST_SPEED_UP * counts:
                reasons[few, many] = (
                    f"{other.count} are {speed_up:.1f} times as fast as {one.count}"
                )
    contradictions = Counter(itertools.chain.from_iterable(reasons))
    return {
        at: reason
        for pair, reason in reasons.items()
        for at in pair
        if contradictions[at] == max(contradictions[each] for each in pair)
    }


def _contradicted_rows(design: Design) -> Iterator[tuple[int, float]]:
    """Yield indices of rows far from what the others predict, worst first, with rate ÷ forecast."""
    departures, _ = centred_departures(design)
    inverse = inverted(with_noise(design, _SCREENING))
    sound = np.ones(len(departures), bool)
    # One row at a time, because an outlier distorts the predictions of similar rows.
    while sound.sum() > _EQUAL_FIGURES:
        worst, factor = _most_contradicted_row(
            inverse, np.where(sound, departures - departures[sound].mean(), 0)
        )
        if worst is None:
            return
        yield worst, factor
        # The inverse of the covariance without the row, whose own row and column become 0.
        column = inverse[worst].copy()
        inverse -= np.outer(column, column / column[worst])
        inverse[worst] = inverse[:, worst] = 0
        sound[worst] = False


def _most_contradicted_row(inverse: Matrix, departures: Vector) -> tuple[int | None, float]:
    """Index of the row farthest from what all others predict, and its rate ÷ the predicted rate.

    Distances are in predicted standard deviations. Returns (None, 1) if no row is implausible.
    ``departures`` [n] are `centred_departures`, ``inverse`` [n, n] is the inverse of their
    covariance. Rows with zeros in both are ignored.
    """
    scale = np.diag(inverse)
    off = np.divide(inverse @ departures, scale, out=np.zeros_like(scale), where=scale > 0)
    deviations = np.abs(off) * np.sqrt(scale)
    deviations[np.abs(off) < math.log(_LEAST_FACTOR)] = 0
    at = int(np.argmax(deviations))
    if deviations[at] < _LEAST_DEVIATIONS:
        return None, 1.0
    return at, math.exp(float(off[at]))
