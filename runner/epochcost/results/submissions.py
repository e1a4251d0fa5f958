"""Check other people's result files against the project's specs and models; no model runs."""

from __future__ import annotations

import contextlib
import datetime as dt
import hashlib
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from epochcost.errors import Fault, InputError, ModelError
from epochcost.plan.digests import graph_sha256, work_sha256
from epochcost.results.checks import Claim, first_fault, review_remarks, unwatched_rounds
from epochcost.results.plausibility import FlopsByModel
from epochcost.results.records import DamagedResultError, Result, damaged
from epochcost.results.rounds import summary_of, without_disturbed_rounds
from epochcost.results.sidecar_faults import KINDS, ceiling_remarks, sidecar_faults
from epochcost.results.store import file_name, read_result, require_name, require_plain
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.document import display_path
from epochcost.statistics.summary import Summary

# A machine and the fingerprint of a host; ``_Identity`` also has the trial that ran there.
_Host = tuple[str, str]
_Identity = tuple[str, str, str]
# With a coarse timer, fewer times than these may be equal by chance.
_FEWEST_TO_COPY = 3


@dataclass(frozen=True, slots=True)
class Submission:
    """A result that passed all checks; ``summary`` is None for LoadGen, or if no path is given."""

    path: Path
    title: str
    hardware: str
    summary: Summary | None
    remarks: tuple[str, ...]


@dataclass(frozen=True)
class ResultsCheck:
    """The outcome of a check: valid results (``submissions``), and a fault for each invalid file.

    ``files`` is the number of result files, ``records`` that of others, such as reported runs.
    """

    files: int
    submissions: tuple[Submission, ...]
    faults: tuple[Fault, ...]
    sidecar_remarks: tuple[tuple[str, Path], ...] = ()
    records: int = 0

    def files_by_remark(self) -> Mapping[str, Sequence[Path]]:
        """The files for each remark; a remark is no fault, but a reviewer should judge it."""
        files: dict[str, list[Path]] = {}
        of_results = ((remark, each.path) for each in self.submissions for remark in each.remarks)
        for remark, path in (*of_results, *self.sidecar_remarks):
            files.setdefault(remark, []).append(path)
        return files


@dataclass(frozen=True)
class _CheckContext:
    """The specs and options of a check, and counts and digests of the results checked so far."""

    # Results are not stored, so that a check of a hundred thousand results fits in memory.
    catalogue: Catalogue
    now: dt.datetime
    # Whether the user named each file.
    paths_given: bool
    # Digests of a model's ONNX file and spec, by model and mode.
    model_digests: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    flops_by_model: FlopsByModel = field(default_factory=dict)
    # The first result with the same samples, and its title, by the samples' digest.
    first_with_samples: dict[bytes, tuple[_Identity, str]] = field(default_factory=dict)
    # Numbers of results by host, and by machine id.
    result_counts: Counter[_Host | str] = field(default_factory=Counter)

    def record(self, result: Result) -> str | None:
        """Count a result, and name an earlier one of another trial or host with the same times.

        Returns None without such a result, and for few times, which may be equal by chance.
        """
        self.result_counts.update((_host(result), result.hardware))
        samples = result.measurement.samples_seconds
        if len(samples) < _FEWEST_TO_COPY:
            return None
        identity = (*_host(result), result.trial_id)
        digest = hashlib.blake2b(array("d", samples), digest_size=16).digest()
        mine = identity, f"{result.trial.title} on {result.hardware}"
        twin, twin_title = self.first_with_samples.setdefault(digest, mine)
        return None if twin == identity else twin_title


def check_results(
    catalogue: Catalogue, root: Path, paths: Sequence[Path] = (), now: dt.datetime | None = None
) -> ResultsCheck:
    """Check the result files in ``paths``, or without paths all result files below ``root``.

    Other records there, such as reported runs, are checked too. If the ONNX file or spec of a
    result's model has changed since, this is a fault with ``paths``, else a remark. Valid results
    get a summary if ``paths`` are given. Raises InputError for a path that is missing or has no
    JSON file.
    """
    files = _files(root, paths)
    context = _CheckContext(catalogue, now or dt.datetime.now(dt.UTC), bool(paths))
    if paths:
        _record_other_results(context, root, files)
    before = Counter(context.result_counts)
    judged = [_judged(path, root, context) for path in files]
    faults = [each for each in judged if isinstance(each, Fault)]
    # Without paths, the counts include the result itself.
    others = before if paths else context.result_counts - Counter(context.result_counts.keys())
    submissions = [
        _with_new_host_remark(*each, others) for each in judged if not isinstance(each, Fault)
    ]
    remarks = () if paths else tuple(ceiling_remarks(root, context.result_counts))
    sidecars = (path for kind in KINDS for path in root.glob(f"*/{kind.folder}/*.json"))
    records = sum(not paths or _is_in(path, paths) for path in sidecars)
    faults += [
        _displayed(fault)
        for fault in sidecar_faults(context.catalogue, root, context.now)
        if not paths or _is_in(fault.path, paths)
    ]
    return ResultsCheck(len(files), tuple(submissions), tuple(sorted(faults)), remarks, records)


def _is_in(file: Path, paths: Iterable[Path]) -> bool:
    return any(_absolute(file).is_relative_to(_absolute(path)) for path in paths)


def _absolute(path: Path) -> Path:
    """The path without ``..`` and without linked folders; a link to a file stays."""
    return path.resolve() if path.is_dir() else path.parent.resolve() / path.name


def _record_other_results(
    context: _CheckContext, root: Path, submitted_files: Iterable[Path]
) -> None:
    submitted = {path.resolve() for path in submitted_files}
    for path in sorted(root.glob("*/*.json")):
        if path.resolve() not in submitted:
            with contextlib.suppress(DamagedResultError):
                context.record(read_result(path, root))


def _judged(path: Path, root: Path, context: _CheckContext) -> tuple[Submission, _Host] | Fault:
    try:
        require_plain(path, root)
        result = read_result(path, root)
        require_name(path, file_name(result.trial, result.environment.fingerprint))
        copied = context.record(result)
        if message := next(_faults(result, context, copied), None):
            raise damaged(path, message)
    except DamagedResultError as error:
        return _displayed(error.fault)
    return _submission(path, result, context), _host(result)


def _with_new_host_remark(
    submission: Submission, host: _Host, others: Mapping[_Host | str, int]
) -> Submission:
    """Add a remark if the host, or even its machine, has no other result."""
    machine, fingerprint = host
    if others[host]:
        return submission
    remark = f"the first result of {machine}"
    if others[machine]:
        remark += f" on the host {fingerprint[:4]}"
    return replace(submission, remarks=(*submission.remarks, remark))


def _files(root: Path, paths: Sequence[Path]) -> tuple[Path, ...]:
    if not paths:
        return tuple(sorted(root.glob("*/*.json")))
    files: list[Path] = []
    folders = {kind.folder for kind in KINDS}
    for path in paths:
        inside = sorted(path.rglob("*.json")) if path.is_dir() and not path.is_symlink() else [path]
        if not inside or not (path.exists() or path.is_symlink()):
            expected = f"expected a result file or a folder of them below {root}"
            problem = "found no .json file there" if path.is_dir() else "there is no such file"
            raise InputError(f"{display_path(path)}: {expected}; {problem}")
        # A record outside ``root`` gets a fault like a result there.
        files += (
            file
            for file in inside
            if file.parent.name not in folders
            or root.resolve() not in file.parent.resolve().parents
        )
    return tuple(dict.fromkeys(files))


def _displayed(fault: Fault) -> Fault:
    return replace(fault, path=display_path(fault.path))


def _host(result: Result) -> _Host:
    return result.hardware, result.environment.fingerprint


def _faults(result: Result, context: _CheckContext, copied: str | None) -> Iterator[str]:
    claim = Claim(result, context.catalogue, context.now, context.flops_by_model)
    if fault := first_fault(claim):
        yield fault
        return
    if copied is not None:
        yield f"samples_seconds: expected new times, got those of {copied}"
    if context.paths_given:
        yield from unwatched_rounds(result)
        yield from _changed_model_messages(result, context)


def _changed_model_messages(result: Result, context: _CheckContext) -> Iterator[str]:
    trial = result.trial
    graph, work = _current_model_digests(result, context)
    if trial.graph_sha256 != graph:
        yield f"graph_sha256: expected {graph:.12}… of the model's ONNX file, got another"
    elif trial.spec_sha256 != work:
        yield f"spec_sha256: expected {work:.12}… of the model's spec, got another"


def _current_model_digests(result: Result, context: _CheckContext) -> tuple[str, str]:
    key = result.trial.model, result.trial.mode
    if key not in context.model_digests:
        model = context.catalogue.models[result.trial.model]
        try:
            graph = graph_sha256(context.catalogue, model.id) or "none"
        except ModelError:
            graph = "none"
        context.model_digests[key] = graph, work_sha256(model, result.trial.mode)
    return context.model_digests[key]


def _submission(path: Path, result: Result, context: _CheckContext) -> Submission:
    measured = result.measurement
    summarised = context.paths_given and measured.samples_seconds
    summary = summary_of(without_disturbed_rounds(result)) if summarised else None
    remarks = tuple(_remarks(result, context))
    return Submission(path, result.trial.title, result.hardware, summary, remarks)


def _remarks(result: Result, context: _CheckContext) -> Iterator[str]:
    yield from review_remarks(result)
    if not context.paths_given:
        yield from unwatched_rounds(result)
        for message in _changed_model_messages(result, context):
            yield f"stale: {message}"
