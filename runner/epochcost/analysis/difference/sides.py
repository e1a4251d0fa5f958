"""The two sides of a comparison: the priced work and the rows of each revision, where they differ.

A result of equal content is read once, and its statistics are computed once, for both.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from pydantic import ValidationError

from epochcost.analysis.difference.revision import Snapshot
from epochcost.analysis.estimates import estimated_rows, trains_large_models
from epochcost.analysis.inputs import (
    Inputs,
    StepRatios,
    StoredCeilings,
    StoredResult,
    declared_machines,
    missing_spec,
    with_declared_machine,
    with_declared_machines,
)
from epochcost.analysis.observations import (
    Observation,
    ResultStatistics,
    StatisticsOf,
    observe,
    observe_variants,
)
from epochcost.analysis.predicted import Predictions, predict_times
from epochcost.analysis.priced_jobs import (
    PricedWork,
    estimated_work,
    hourly_work,
    priced_work,
    served_work,
    sources_of,
)
from epochcost.analysis.representatives import representatives
from epochcost.analysis.rows import Row, price_rows
from epochcost.errors import InputError, ResultError
from epochcost.results.ceilings import FOLDER, Ceilings
from epochcost.results.fields import read_record
from epochcost.results.format import DamagedResultError, parse_result
from epochcost.results.records import Result
from epochcost.specs.base import Identity
from epochcost.specs.catalogue import Catalogue


@dataclass(frozen=True)
class Side:
    """One revision: its priced work that may differ, and all rows of the workloads concerned.

    ``rows`` are all of plain trials, by workload, and ``estimated_rows`` what stands for them where
    nobody timed a model, cheapest first; ``stored`` are by the result file's path, and ``doubts``
    are those of observed results, by their address.
    """

    catalogue: Catalogue
    work: tuple[PricedWork, ...]
    rows: Mapping[str, tuple[Row, ...]]
    estimated: Mapping[str, tuple[PricedWork, ...]]
    stored: Mapping[str, StoredResult]
    ratios: StepRatios
    doubts: Mapping[str, tuple[str, ...]]
    problems: tuple[str, ...]

    @property
    def inputs(self) -> Inputs:
        """What was read of the revision, ceilings and limits left out."""
        return Inputs(self.catalogue, tuple(self.stored.values()), self.ratios, {}, ())


@dataclass(frozen=True)
class Scope:
    """What a comparison has to look at: machines whose bills may differ, and workloads.

    ``predicted``: what predictions cost may differ too, and they learn from all results.
    """

    hardware: frozenset[str]
    workloads: frozenset[str]
    predicted: bool


def both_sides(before: Snapshot, after: Snapshot) -> tuple[Side, Side]:
    """Both revisions, read and priced as far as they can differ."""
    scope = _scope(before, after)
    results: dict[str, Result | str] = {}
    old, new = (_read(snapshot, scope, results) for snapshot in (before, after))
    common, see = _common(old, new), _seen_once()
    shared = _observed(after.catalogue, (new.newest[uri] for uri in common), see)
    own = [_observed(one.catalogue, one.newest_but(common), see) for one in (old, new)]
    if scope.predicted:
        shared, own = _with_predicted((before, after), (old, new), shared, own)
    repriced = [one for one in shared if one.machine.hardware in scope.hardware]
    same = [one for one in shared if one.machine.hardware not in scope.hardware]
    rows = price_rows(after.catalogue, same)
    one, other = (
        _side(found, scope, (*repriced, *mine), rows)
        for found, mine in zip((old, new), own, strict=True)
    )
    return one, other


_Observations = tuple[Observation, ...]


def _with_predicted(
    snapshots: tuple[Snapshot, Snapshot],
    found: tuple[_Found, _Found],
    shared: _Observations,
    own: Sequence[_Observations],
) -> tuple[_Observations, list[_Observations]]:
    """The observations of both sides and of each, with what is predicted of work without any.

    Variants are no time of the plain work.
    """
    (before, after), (old, new) = snapshots, found
    later = _predictions(after, new)
    earlier = later if before.timed_by == after.timed_by else _predictions(before, old)
    guessed = []
    for predicted, side, mine in zip((earlier, later), found, own, strict=True):
        plain = [one for one in (*shared, *mine) if not one.variant]
        guessed.append(tuple(predicted.beyond((*plain, *side.published))))
    alike = {*guessed[0]} & {*guessed[1]}
    return (
        (*shared, *(one for one in guessed[1] if one in alike)),
        [
            (*mine, *(one for one in others if one not in alike))
            for mine, others in zip(own, guessed, strict=True)
        ],
    )


def _predictions(snapshot: Snapshot, found: _Found) -> Predictions:
    """Raises InputError where a table that they learn from cannot be read."""
    catalogue, stored = found.catalogue, tuple(found.stored.values())
    at = declared_machines(catalogue, stored)
    ceilings = tuple(
        replace(one, ceilings=with_declared_machine(one.ceilings, catalogue, at))
        for one in _ceilings(snapshot)
    )
    inputs = replace(_inputs(catalogue, stored), ceilings=ceilings, cache=snapshot.cache)
    try:
        return predict_times(inputs, catalogue.models.values())
    except InputError as error:
        words = str(error).replace(f"{catalogue.root}/", "")
        raise InputError(f"{snapshot.label}: {words}") from None


def _ceilings(snapshot: Snapshot) -> Iterator[StoredCeilings]:
    """What hosts do at most, as far as it can be read and belongs to a machine."""
    kept = [path for path in snapshot.measured if path.split("/")[-2] == FOLDER]
    for path, data in snapshot.contents(kept):
        with contextlib.suppress(ValidationError):
            one = read_record(Ceilings, data)
            if one.hardware == path.split("/")[-3] and one.hardware in snapshot.catalogue.hardware:
                yield StoredCeilings(one, Path(path), path.removeprefix("docs/"))


def _seen_once() -> StatisticsOf:
    """Sees each result once: another spec of its model changes no statistics of it."""
    known: dict[Identity[Result], ResultStatistics] = {}

    def see(result: Result) -> ResultStatistics:
        key = Identity(result)
        if key not in known:
            known[key] = ResultStatistics.of(result)
        return known[key]

    return see


@dataclass(frozen=True)
class _Found:
    """What one revision holds of the scope: ``newest`` by address, the latest of each trial."""

    catalogue: Catalogue
    stored: Mapping[str, StoredResult]
    newest: Mapping[str, StoredResult]
    ratios: StepRatios
    problems: tuple[str, ...]

    @cached_property
    def published(self) -> tuple[Observation, ...]:
        return observe(_inputs(self.catalogue, ()))

    def newest_but(self, common: frozenset[str]) -> Iterator[StoredResult]:
        return (one for uri, one in self.newest.items() if uri not in common)


def _common(old: _Found, new: _Found) -> frozenset[str]:
    """The results whose observations are the same on both sides."""
    return frozenset(
        uri
        for uri, one in new.newest.items()
        if (twin := old.newest.get(uri)) is not None
        and twin.result is one.result
        and _same_specs(old.catalogue, new.catalogue, one.result)
    )


def _scope(before: Snapshot, after: Snapshot) -> Scope:
    """Machines with another spec or price; workloads with another spec, result or such machine.

    Which grid feeds a machine is not known, so another grid concerns all of them.
    """
    one, other = before.catalogue, after.catalogue
    prices = _changed(one.prices, other.prices)
    machines = {*one.hardware, *other.hardware}
    if one.grids == other.grids:
        machines = {*_changed(one.hardware, other.hardware)}
    hardware = machines | {
        price.hardware
        for catalogue in (one, other)
        for name, price in catalogue.prices.items()
        if name in prices
    }
    models = {*one.models, *other.models}
    workloads = {name for name in models if before.work_of(name) != after.work_of(name)}
    for snapshot, twin in ((before, after), (after, before)):
        for path, blob in snapshot.results.items():
            if twin.results.get(path) != blob or path.split("/")[-2] in hardware:
                workloads |= models_of(path, models)
    tables = _changed(one.published, other.published)
    for catalogue in (one, other):
        for source in catalogue.published.values():
            if source.id in tables or any(row.hardware in hardware for row in source.timings):
                workloads.add(source.model or source.id)
    workloads |= _estimated_on(before, hardware) | _estimated_on(after, hardware)
    learnt = one.observations or other.observations
    predicted = bool(learnt and (prices or before.timed_by != after.timed_by))
    return Scope(
        frozenset(hardware), frozenset(workloads | models if predicted else workloads), predicted
    )


def _estimated_on(snapshot: Snapshot, hardware: Iterable[str]) -> set[str]:
    """Models without a timed training that may be estimated on a machine of these."""
    catalogue = snapshot.catalogue
    machines = (catalogue.hardware[name] for name in hardware if name in catalogue.hardware)
    if not any(map(trains_large_models, machines)):
        return set()
    timed = {path.rsplit("/", 1)[-1].partition("-training-")[0] for path in snapshot.results}
    return {
        model.id
        for model in catalogue.models.values()
        if (model.declared or model.training) and model.id not in timed
    }


def _changed(one: Mapping[str, object], other: Mapping[str, object]) -> frozenset[str]:
    return frozenset(name for name in {*one, *other} if one.get(name) != other.get(name))


def models_of(path: str, models: Iterable[str]) -> frozenset[str]:
    """The model in a result file's name; all of them where the name tells of none."""
    name = path.rsplit("/", 1)[-1]
    known = frozenset(models)
    parts = name.split("-")
    for length in range(len(parts) - 1, 0, -1):
        model = "-".join(parts[:length])
        if model in known and parts[length] in {"training", "inference"}:
            return frozenset({model})
    return known


def _read(snapshot: Snapshot, scope: Scope, read: dict[str, Result | str]) -> _Found:
    """The results of the workloads in scope, and sentences on those that are none.

    ``read`` keeps what each content turned out to be, for the other side.
    """
    models = {*snapshot.catalogue.models}
    wanted = {
        path: blob
        for path, blob in snapshot.results.items()
        if models_of(path, models) & scope.workloads
    }
    unread = {blob: path for path, blob in wanted.items() if blob not in read}
    for path, data in snapshot.contents(unread.values()):
        read[wanted[path]] = _parsed(data, Path(path))
    stored: dict[str, StoredResult] = {}
    problems: list[str] = []
    for path, blob in wanted.items():
        result = read[blob]
        problem = result if isinstance(result, str) else _misplaced(result, path, snapshot)
        if isinstance(result, str) or problem is not None:
            problems.append(f"{snapshot.label}: {problem} (left out)")
        else:
            stored[path] = StoredResult(result, Path(path), path.removeprefix("docs/"))
    ratios = _ratios(snapshot, problems)
    catalogue = snapshot.catalogue
    housed = with_declared_machines(
        catalogue, stored.values(), declared_machines(catalogue, stored.values())
    )
    newest = {one.uri: one for one in _representatives(housed)}
    held = dict(zip(stored, housed, strict=True))
    return _Found(catalogue, held, newest, ratios, tuple(problems))


def _ratios(snapshot: Snapshot, problems: list[str]) -> StepRatios:
    try:
        return snapshot.ratios
    except ResultError as error:
        problems.append(f"{snapshot.label}: {error} (left out)")
        return StepRatios()


def _parsed(data: bytes, path: Path) -> Result | str:
    try:
        return parse_result(data, path)
    except DamagedResultError as error:
        return str(error)


def _misplaced(result: Result, path: str, snapshot: Snapshot) -> str | None:
    folder = path.split("/")[-2]
    if result.hardware != folder:
        return f"{path}: expected hardware {folder!r} in this folder, got {result.hardware!r}"
    reason = missing_spec(result, snapshot.catalogue)
    return None if reason is None else f"{path}: {reason}"


def _representatives(stored: Iterable[StoredResult]) -> tuple[StoredResult, ...]:
    return representatives([one for one in stored if one.result.measurement.served is None])


def _same_specs(one: Catalogue, other: Catalogue, result: Result) -> bool:
    model, hardware = result.trial.model, result.hardware
    return (one.models[model], one.hardware[hardware]) == (
        other.models[model],
        other.hardware[hardware],
    )


def _observed(
    catalogue: Catalogue,
    stored: Iterable[StoredResult],
    see: StatisticsOf,
) -> tuple[Observation, ...]:
    inputs = _inputs(replace(catalogue, published={}), stored)
    return (*observe(inputs, see), *observe_variants(inputs, see))


def _inputs(catalogue: Catalogue, stored: Iterable[StoredResult]) -> Inputs:
    return Inputs(catalogue, tuple(stored), StepRatios(), {}, ())


def _side(
    found: _Found, scope: Scope, measured: Sequence[Observation], same: Sequence[Row]
) -> Side:
    """``same`` are rows of both sides: they may be the cheapest, and do not differ."""
    concerned = [one for one in found.published if one.workload.id in scope.workloads]
    rows = price_rows(found.catalogue, [*measured, *concerned])
    stored = {one.uri: one for one in found.stored.values()}
    served = [one for one in stored.values() if one.result.measurement.served is not None]
    models = {
        name: model for name, model in found.catalogue.models.items() if name in scope.workloads
    }
    untimed = {
        model: tuple(estimated_work(model, row) for row in guessed)
        for model, guessed in estimated_rows(
            _inputs(replace(found.catalogue, models=models), ()), (*same, *rows)
        ).items()
    }
    return Side(
        catalogue=found.catalogue,
        work=(
            *priced_work(found.catalogue, rows, stored, sources_of(found.published)),
            *served_work(_inputs(found.catalogue, served)),
            *(one for guessed in untimed.values() for one in guessed),
            *hourly_work(found.catalogue, scope.hardware),
        ),
        rows=_by_workload((*same, *rows)),
        estimated=untimed,
        stored=found.stored,
        ratios=found.ratios,
        doubts={one.evidence.uri: one.doubts for one in measured},
        problems=found.problems,
    )


def _by_workload(rows: Iterable[Row]) -> Mapping[str, tuple[Row, ...]]:
    """Rows of plain trials; variants are never the cheapest."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        if not row.observed.variant:
            found.setdefault(row.observed.workload.id, []).append(row)
    return {workload: tuple(rows) for workload, rows in found.items()}
