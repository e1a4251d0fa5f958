"""Find result files that a revision added, removed, measured again or made stale.

A result is stale if its model's ONNX file, or the part of the spec that defines a step, changed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from epochcost.analysis.difference.revision import Revision
from epochcost.analysis.inputs import RESULTS_URI
from epochcost.analysis.representatives import doubts_about, representatives
from epochcost.analysis.rows import GOAL_NAMES
from epochcost.errors import ModelError
from epochcost.plan.digests import graph_sha256, work_sha256
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.study import Mode
from epochcost.units import money, render_count, seconds

_MODES: tuple[Mode, ...] = ("training", "inference")


@dataclass(frozen=True, slots=True)
class ResultFile:
    """A result file: its path in the results folder, title and machine, and reasons to doubt it.

    ``cost`` is a text, empty without a cost. If ``replaced``, another result of the job is used.
    """

    path: str
    title: str
    hardware: str
    doubts: tuple[str, ...]
    cost: str = ""
    replaced: bool = False


@dataclass(frozen=True, slots=True)
class ResultChanges:
    """Result files by kind of change; files in ``measured_again`` have new contents."""

    added: tuple[ResultFile, ...] = ()
    removed: tuple[ResultFile, ...] = ()
    measured_again: tuple[ResultFile, ...] = ()
    stale: tuple[ResultFile, ...] = ()

    @property
    def learned_from(self) -> str:
        """Say how many results were added, removed and measured again; empty if none were."""
        return ", ".join(
            f"{render_count(len(files), 'result')} {kind.replace('_', ' ')}"
            for kind, files in self.by_kind().items()
            if kind != "stale"
        )

    def by_kind(self) -> Mapping[str, tuple[ResultFile, ...]]:
        """The result files of each kind of change that occurred, by field name."""
        return {kind: files for kind in self.__slots__ if (files := getattr(self, kind))}


def result_changes(before: Revision, after: Revision) -> ResultChanges:
    """Compare the files of results, peak rates, batch limits and trainings of two revisions."""
    old, new = (
        {side.inputs.uri_of(path): path for path in side.inputs.files} for side in (before, after)
    )
    again = (uri for uri in {*old} & {*new} if old[uri].read_bytes() != new[uri].read_bytes())
    return ResultChanges(
        added=_described(after, {*new} - {*old}),
        removed=_described(before, {*old} - {*new}),
        measured_again=_described(after, again),
        stale=_described(after, _stale(before, after)),
    )


def _described(revision: Revision, uris: Iterable[str]) -> tuple[ResultFile, ...]:
    used = {each.uri for each in representatives(revision.inputs.stored)}
    costs = _costs_by_uri(revision)
    files = []
    for uri in sorted(uris):
        path = uri.removeprefix(f"{RESULTS_URI}/")
        if uri in revision.stored:
            result = revision.stored[uri].result
            title, doubts, cost = result.trial.title, doubts_about(result), costs.get(uri, "")
            file = ResultFile(path, title, result.hardware, doubts, cost, replaced=uri not in used)
        else:
            hardware, kind, name = path.split("/")
            kind = "peak rates" if kind == "ceilings" else kind
            file = ResultFile(path, f"{kind} {Path(name).stem}", hardware, ())
        files.append(file)
    return tuple(files)


def _costs_by_uri(revision: Revision) -> Mapping[str, str]:
    """Describe each measured job's cost (at the cheapest current price) and time, by result URI."""
    words: dict[str, str] = {}
    for row in revision.rows:
        goal = row.observed.goals[-1]
        cost = row.estimate(goal) if row.current and row.observed.kind == "measured" else None
        if cost is not None and row.price is not None:
            ends = f" ({cost.between})" if cost.between else ""
            amount = f"{money(cost.mean, cost.currency)}{ends}"
            job = f"{GOAL_NAMES[goal]} in {seconds(float(row.observed.work(goal).time.mean))}"
            words.setdefault(row.observed.evidence.uri, f"{amount} for {job}, {row.price.id}")
    return words


def _stale(before: Revision, after: Revision) -> list[str]:
    old, new = (_work_digests(each.catalogue) for each in (before, after))
    stale = []
    for each in after.inputs.stored:
        trial = each.result.trial
        key, work = (trial.model, trial.mode), (trial.graph_sha256, trial.spec_sha256)
        if key in new and new[key] != work and old.get(key) == work:
            stale.append(each.uri)
    return stale


def _work_digests(catalogue: Catalogue) -> Mapping[tuple[str, Mode], tuple[str, str]]:
    """Digests of the graph and of the model spec's part that defines a step, by model and mode."""
    works: dict[tuple[str, Mode], tuple[str, str]] = {}
    for name, model in catalogue.models.items():
        with contextlib.suppress(ModelError):  # a model without its ONNX file makes nothing stale
            graph = graph_sha256(catalogue, name)
            works |= {(name, mode): (graph, work_sha256(model, mode)) for mode in _MODES}
    return works
