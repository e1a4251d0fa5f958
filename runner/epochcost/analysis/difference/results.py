"""Which result files two revisions have added, removed or measured again, and which went stale.

A result is stale once the ONNX file or the working part of the model's spec is another than the
one that it was measured from: its time is of work that nobody asks for any more. In which keys two
versions of a spec differ is told in words: ``amount 0.9 → 0.8``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from epochcost.analysis.difference.revision import Snapshot
from epochcost.analysis.difference.sides import Side
from epochcost.analysis.representatives import doubts_about
from epochcost.errors import ModelError
from epochcost.plan.digests import graph_digests, work_sha256
from epochcost.results.records import Result
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.study import Mode

_MODES: tuple[Mode, ...] = ("training", "inference")


@dataclass(frozen=True, slots=True)
class ResultFile:
    """A result by its file, what it timed where, and why its figure may not repeat."""

    path: str
    title: str
    hardware: str
    doubts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ResultChanges:
    """Result files by what happened to them; ``stale`` ones were not so before."""

    added: tuple[ResultFile, ...] = ()
    removed: tuple[ResultFile, ...] = ()
    measured_again: tuple[ResultFile, ...] = ()
    stale: tuple[ResultFile, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.measured_again or self.stale)

    def by_kind(self) -> Mapping[str, tuple[ResultFile, ...]]:
        """The lists under the words that readers are shown, empty ones left out."""
        lists = {
            "added": self.added,
            "removed": self.removed,
            "measured again": self.measured_again,
            "stale": self.stale,
        }
        return {words: files for words, files in lists.items() if files}


def result_changes(before: Snapshot, after: Snapshot, one: Side, other: Side) -> ResultChanges:
    """Compare what was measured in two snapshots, whose sides hold those results that were read."""
    old, new = before.measured, after.measured
    again = [path for path in new if path in old and old[path] != new[path]]
    return ResultChanges(
        added=_files(after, other, [path for path in new if path not in old]),
        removed=_files(before, one, [path for path in old if path not in new]),
        measured_again=_files(after, other, again),
        stale=_files(after, other, _stale(before, after, other)),
    )


def _files(snapshot: Snapshot, side: Side, paths: list[str]) -> tuple[ResultFile, ...]:
    return tuple(_file(snapshot, side, path) for path in sorted(paths))


def _file(snapshot: Snapshot, side: Side, path: str) -> ResultFile:
    """A file that is not or cannot be read is named by itself."""
    pure = PurePosixPath(path)
    if path not in snapshot.results:
        return ResultFile(path, f"{pure.parent.name} {pure.stem}", pure.parents[1].name, ())
    if path not in side.stored:
        return ResultFile(path, pure.stem, pure.parent.name, ("it cannot be read",))
    stored = side.stored[path]
    known, result = side.doubts.get(stored.uri), stored.result
    doubts = doubts_about(result) if known is None else known
    return ResultFile(path, result.trial.title, result.hardware, doubts)


def _stale(before: Snapshot, after: Snapshot, other: Side) -> list[str]:
    names = {*before.catalogue.models} & {*after.catalogue.models}
    models = {name for name in names if before.work_of(name) != after.work_of(name)}
    old, new = (_works(one.catalogue, models) for one in (before, after))
    return [path for path, one in other.stored.items() if _went_stale(one.result, old, new)]


_Key = tuple[str, Mode]
_Works = Mapping[_Key, tuple[str, str]]


def _works(catalogue: Catalogue, models: set[str]) -> _Works:
    """The digests that a trial of each model and mode has today."""
    works: dict[_Key, tuple[str, str]] = {}
    for name in sorted(models):
        with contextlib.suppress(ModelError):  # a model without its ONNX file makes nothing stale
            graph = graph_digests(catalogue, [name]).get(name, "")
            for mode in _MODES:
                works[name, mode] = graph, work_sha256(catalogue.models[name], mode)
    return works


def _went_stale(result: Result, old: _Works, new: _Works) -> bool:
    trial = result.trial
    key: _Key = (trial.model, trial.mode)
    work = trial.graph_sha256, trial.spec_sha256
    return key in new and new[key] != work and old.get(key) == work
