"""Result files against the project: whose model, whose machine, how much arithmetic a second.

What a file by itself must be is said in ``results.submission``, what its figures must be in
``results.submission_figures``. Nothing is run, and no package that measures is needed.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from epochcost.errors import Fault, InputError, ModelError
from epochcost.execute.peak import Counted, implausible_rate
from epochcost.execute.plausibility import contradictions
from epochcost.execute.submitted_ceilings import ceiling_faults
from epochcost.plan.digests import graph_digests, work_sha256
from epochcost.results.ceilings import FOLDER as CEILINGS
from epochcost.results.format import DamagedResultError
from epochcost.results.limits import FOLDER as LIMITS
from epochcost.results.limits import load_limits
from epochcost.results.records import Result
from epochcost.results.store import load_all
from epochcost.results.submission import read_submission
from epochcost.results.submission_figures import implausible, remarkable
from epochcost.results.summary import summary_of
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.document import displayed
from epochcost.statistics import Summary

# Fewer times may agree by chance where the timer is coarse.
_FEWEST_TO_COPY = 3


@dataclass(frozen=True)
class Submission:
    """A sound result: its statistics recomputed from the samples, and what to look at."""

    path: Path
    result: Result
    summary: Summary | None
    remarks: tuple[str, ...]


@dataclass(frozen=True)
class CheckedResults:
    """What was looked at: how many files, those that are sound, and a fault for each other."""

    files: int
    submissions: tuple[Submission, ...]
    faults: tuple[Fault, ...]


@dataclass(frozen=True)
class _Project:
    """What results are held against; ``named``: the files were asked for one by one."""

    catalogue: Catalogue
    now: dt.datetime
    named: bool
    machines: Mapping[str, int] = field(default_factory=dict)
    works: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    counted: Counted = field(default_factory=dict)


def check_results(
    catalogue: Catalogue, root: Path, paths: Sequence[Path] = (), now: dt.datetime | None = None
) -> CheckedResults:
    """Check result files below ``root``: those named, else all.

    A named file is a submission and has to be of the model as it stands; in a whole folder older
    results are welcome and remarked on. Raises InputError for a path without a result file.
    """
    files = _files(root, paths)
    read = [_read(path, root) for path in files]
    results = {path: one for path, one in zip(files, read, strict=True) if isinstance(one, Result)}
    everything = {**_others(root, results.values()), **results} if paths else results
    hosts = Counter(one.hardware for one in everything.values())
    project = _Project(catalogue, now or dt.datetime.now(dt.UTC), bool(paths), hosts)
    copies = _copies(everything)
    faults = [one for one in read if isinstance(one, Fault)]
    submissions = []
    for path, result in results.items():
        found = next(_faults(result, project, copies.get(path)), None)
        if found is None:
            submissions.append(_submission(path, result, project))
        else:
            faults.append(Fault(displayed(path), 1, 1, found))
    faults += [] if paths else [_shown(one) for one in _beside(project, root)]
    return CheckedResults(len(files), tuple(submissions), tuple(sorted(faults)))


def _beside(project: _Project, root: Path) -> Iterator[Fault]:
    """What is wrong with the ends of sweeps and the ceilings that are kept beside results."""
    yield from load_limits(root).faults
    yield from ceiling_faults(project.catalogue, root, project.now)


def _files(root: Path, paths: Sequence[Path]) -> tuple[Path, ...]:
    """Every result file, whether or not it can be read."""
    if not paths:
        return tuple(sorted(root.glob("*/*.json")))
    found: list[Path] = []
    for path in paths:
        inside = sorted(path.rglob("*.json")) if path.is_dir() and not path.is_symlink() else [path]
        inside = [one for one in inside if one.parent.name not in (LIMITS, CEILINGS)]
        if not inside or not (path.exists() or path.is_symlink()):
            demanded = f"demanded a result file or a folder of them below {root}"
            raise InputError(f"{displayed(path)}: {demanded}; got nothing there")
        found += inside
    return tuple(dict.fromkeys(found))


def _read(path: Path, root: Path) -> Result | Fault:
    try:
        return read_submission(path, root)
    except DamagedResultError as error:
        return _shown(error.fault)


def _shown(fault: Fault) -> Fault:
    return Fault(displayed(fault.path), fault.line, fault.column, fault.message)


def _identity(result: Result) -> tuple[str, str, str]:
    return result.hardware, result.environment.fingerprint, result.trial_id


def _others(root: Path, named: Iterable[Result]) -> dict[Path, Result]:
    """What stands in the folder beside the files that were named."""
    asked = {_identity(one) for one in named}
    others = (one for one in load_all(root).results if _identity(one) not in asked)
    return {root / f"{number}": one for number, one in enumerate(others)}


def _copies(results: Mapping[Path, Result]) -> Mapping[Path, str]:
    """Files whose samples are those of another result, to the last digit."""
    first: dict[tuple[float, ...], Result] = {}
    copies = {}
    for path, result in results.items():
        samples = result.measurement.samples_seconds
        twin = first.setdefault(samples, result)
        if len(samples) >= _FEWEST_TO_COPY and _identity(twin) != _identity(result):
            copies[path] = f"{twin.trial.title} on {twin.hardware}"
    return copies


def _faults(result: Result, project: _Project, copied: str | None) -> Iterator[str]:
    catalogue, trial = project.catalogue, result.trial
    model, hardware = catalogue.models.get(trial.model), catalogue.hardware.get(result.hardware)
    if model is None or (trial.mode == "training" and model.training is None):
        yield f"model: demanded one whose spec has {trial.mode}; got {trial.model!r:.80}"
        return
    if hardware is None:
        yield f"hardware: demanded a machine with a spec; got {result.hardware!r:.80}"
        return
    yield from implausible(result, project.now)
    found = contradictions(hardware, result.environment)
    unsaid = [words for words in found if words not in result.contradictions]
    if unsaid:
        yield f"environment: demanded {hardware.name}; got {'; '.join(unsaid)}"
    if copied is not None:
        yield f"samples_seconds: demanded times of its own; got those of {copied}"
    if project.named:
        yield from _of_other_work(result, project)
    yield from implausible_rate(catalogue, result, project.counted)


def _of_other_work(result: Result, project: _Project) -> Iterator[str]:
    """Whether the ONNX file and the spec are those that stand here."""
    trial = result.trial
    graph, work = _works(result, project)
    if trial.graph_sha256 != graph:
        yield f"graph_sha256: demanded that of the model's ONNX file, {graph:.12}…; got another"
    elif trial.spec_sha256 != work:
        yield f"spec_sha256: demanded that of the model's spec, {work:.12}…; got another"


def _works(result: Result, project: _Project) -> tuple[str, str]:
    key = result.trial.model, result.trial.mode
    if key not in project.works:
        model = project.catalogue.models[result.trial.model]
        try:
            graph = graph_digests(project.catalogue, [model.id]).get(model.id, "none")
        except ModelError:
            graph = "none"
        project.works[key] = graph, work_sha256(model, result.trial.mode)
    return project.works[key]


def _submission(path: Path, result: Result, project: _Project) -> Submission:
    measurement = result.measurement
    summary = summary_of(measurement) if measurement.samples_seconds else None
    return Submission(displayed(path), result, summary, tuple(_remarks(result, project)))


def _remarks(result: Result, project: _Project) -> Iterator[str]:
    yield from remarkable(result)
    if project.machines.get(result.hardware) == 1:
        yield f"the first result of {result.hardware}"
    if not project.named:
        for words in _of_other_work(result, project):
            yield f"stale: {words}"


def remarks_of(submissions: Iterable[Submission]) -> Mapping[str, tuple[Path, ...]]:
    """The files by what is to be looked at, so that one reason is read once."""
    found: dict[str, tuple[Path, ...]] = {}
    for one in submissions:
        for remark in one.remarks:
            found[remark] = (*found.get(remark, ()), one.path)
    return found
