"""Find the changes between two revisions: costs with causes, cheapest choices and results.

A site shows its changes since the last publication. The configuration may name that revision; the
default is the last tag, or else the parent commit.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from epochcost.analysis.difference.causes import ChangedCost, data_changes, explain, spec_changes
from epochcost.analysis.difference.results import ResultChanges, result_changes
from epochcost.analysis.difference.revision import (
    Revision,
    Snapshot,
    at_commit,
    commit_day,
    commit_id,
    in_working_tree,
    read_revision,
)
from epochcost.analysis.difference.table_diff import Figure, Job, compare_tables, continues
from epochcost.analysis.machines import Machine
from epochcost.analysis.observations import Goal
from epochcost.analysis.odds import Odds
from epochcost.analysis.rows import Row, contenders, odds_of
from epochcost.analysis.table.lines import values_of
from epochcost.errors import EpochcostError
from epochcost.statistics import group_by

# The cause of a changed prediction names this number of changed devices and tables at most.
_MOST_DATA = 2
PUBLICATION_URI = "data/publication.json"


@dataclass(frozen=True, slots=True)
class Winner:
    """The changed cheapest machine and plan for a full training or a million inferences of a model.

    ``before`` and ``after`` are None without a known cost. ``wins`` is the probability that the
    machine of ``after`` truly costs least. It is None if ``after`` is None or an estimate, or if no
    other machine has a cost. ``measured`` has the cheapest measured figure and the probability that
    its machine costs least. It is None if ``after`` is measured, if nothing is measured, or if
    ``wins`` is None. ``removed`` says whether the model was removed.
    """

    workload: str
    goal: Goal
    before: Figure | None
    after: Figure | None
    wins: float | None
    measured: tuple[Figure, float] | None = None
    removed: bool = False


@dataclass(frozen=True, slots=True)
class Difference:
    """Changes between the revisions ``before`` and ``after``.

    ``unsure`` counts jobs that were measured again without a significant change. ``prices`` has
    sentences on changed specs and tables, and on machine prices that no entry of ``costs`` uses.
    ``added`` and ``removed`` have jobs that are predicted in one revision only, without full
    trainings. ``problems`` has sentences about unusable files.
    """

    before: str
    after: str
    costs: tuple[ChangedCost, ...] = ()
    winners: tuple[Winner, ...] = ()
    results: ResultChanges = field(default_factory=ResultChanges)
    unsure: int = 0
    problems: tuple[str, ...] = ()
    prices: tuple[str, ...] = ()
    added: tuple[Job, ...] = ()
    removed: tuple[Job, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing changed and every file of both revisions could be compared."""
        return self == Difference(self.before, self.after)


def compare_snapshots(before: Snapshot, after: Snapshot, cache: Path | None = None) -> Difference:
    """Compare the costs, cheapest choices and results of two revisions.

    Without ``cache``, no computed values are kept. Raises InputError for invalid files.
    """
    if before.files == after.files:
        return Difference(before.label, after.label)
    with tempfile.TemporaryDirectory(prefix="epochcost-") as scratch:
        cache = cache or Path(scratch, "cache")
        sides = [
            read_revision(snapshot, Path(scratch, name), cache)
            for snapshot, name in ((before, "before"), (after, "after"))
        ]
        return compare_revisions(*sides)


def compare_revisions(before: Revision, after: Revision) -> Difference:
    """Compare two revisions: the costs of each job in both, cheapest choices, results and specs."""
    pairs, added, removed = compare_tables(before, after)
    results = result_changes(before, after)
    data = data_changes(before.catalogue, after.catalogue)
    learned = _learned_from(results, data)
    compared = [explain(pair, before, after, learned) for pair in pairs]
    costs = tuple(sorted((each for each in compared if each.causes), key=_order))
    unsure = {each.figure.job.work for each in compared if not each.causes}
    problems = [f"{side.label}: {problem}" for side in (before, after) for problem in side.problems]
    return Difference(
        before=before.label,
        after=after.label,
        costs=costs,
        winners=tuple(_changed_winners(before, after)),
        results=results,
        unsure=len(unsure),
        problems=tuple(dict.fromkeys(problems)),
        prices=(*data, *spec_changes(before.catalogue, after.catalogue, compared)),
        added=added,
        removed=removed,
    )


def _learned_from(results: ResultChanges, data: Sequence[str]) -> str:
    """The changed data from which predictions learn, in words; empty if there are none."""
    more = len(data) - _MOST_DATA
    rest = f"and {more} more" if more > 0 else ""
    return ", ".join(filter(None, (results.learned_from, *data[:_MOST_DATA], rest)))


def _order(change: ChangedCost) -> tuple[str, ...]:
    job = change.figure.job
    size = f"{job.batch_size or 0:09}"
    place = (job.hardware, job.host or "", size, str(job))
    return (job.workload, job.goal, *place, change.figure.price or "")


def _changed_winners(before: Revision, after: Revision) -> Iterator[Winner]:
    goals: tuple[Goal, ...] = ("full", "million")
    old, new = (
        group_by(side.rows, lambda row: row.observed.workload.id) for side in (before, after)
    )
    removed = before.catalogue.models.keys() - after.catalogue.models.keys()
    for workload in sorted({*old, *new, *before.estimated, *after.estimated}):
        for goal in goals:
            was, _ = _cheapest_with_odds(before, old.get(workload, ()), workload, goal)
            now, odds = _cheapest_with_odds(after, new.get(workload, ()), workload, goal)
            if _has_choice_changed(was, now, before, after):
                wins = odds.wins if odds else None
                measured = _cheapest_measured(new.get(workload, ()), goal, odds)
                yield Winner(workload, goal, was, now, wins, measured, removed=workload in removed)


def _cheapest_with_odds(
    revision: Revision, rows: Sequence[Row], workload: str, goal: Goal
) -> tuple[Figure | None, Odds[Machine] | None]:
    """The cost of the cheapest machine, and each machine's probability of being the cheapest.

    If no row has a usable cost, that of a full training is estimated if possible; otherwise it is
    None. The probabilities are None for an estimate, or if only one machine competes.
    """
    if ranked := contenders(rows, goal):
        odds = odds_of(ranked[0], ranked, goal)
        return Figure.of(values_of(ranked[0]), goal), odds if len(odds.shares) > 1 else None
    for row in revision.estimated.get(workload, ()) if goal == "full" else ():
        return Figure.of(values_of(row), goal), None
    return None, None


def _cheapest_measured(
    rows: Sequence[Row], goal: Goal, odds: Odds[Machine] | None
) -> tuple[Figure, float] | None:
    """The lowest measured cost, and its machine's odds of being the cheapest; see `Winner`."""
    ranked = [row for row in contenders(rows, goal) if row.observed.kind == "measured"]
    if odds is None or not ranked or ranked[0].observed.machine == odds.choice:
        return None
    return Figure.of(values_of(ranked[0]), goal), odds.shares[ranked[0].observed.machine]


def _has_choice_changed(
    old: Figure | None, new: Figure | None, before: Revision, after: Revision
) -> bool:
    """Whether another machine or plan is chosen; a newer price of the same plan is no change."""
    if old is None or new is None:
        return old is not new
    if _place(old.job) != _place(new.job):
        return True
    if old.price is None or new.price is None or old.price == new.price:
        return old.price != new.price
    prices = after.catalogue.prices
    return not continues(prices[new.price], before.catalogue.prices[old.price], prices)


def _place(job: Job) -> tuple[object, ...]:
    return job.hardware, job.host, job.device


@dataclass(frozen=True)
class Publication:
    """A site's commit (``revision``) and the revision that was published before (``since``).

    ``revision`` is None if unknown. ``day`` is the day of the commit ``since``. If ``since`` is
    empty or ``revision`` is None, ``reason`` says why no changes can be found.
    """

    project: Path = Path()
    revision: str | None = None
    since: str = ""
    day: str = ""
    reason: str = "the project has no tag and no commit before this one"

    def file(self) -> str:
        """A JSON text with the id of the site's commit, for the next publication to read."""
        return json.dumps({"revision": self.revision}) + "\n"

    def changes(self, now: Revision) -> Difference | str:
        """The changes since the last publication, or why they are unknown (a fault, say)."""
        if not self.since or self.revision is None:
            return self.reason
        try:
            snapshot = at_commit(self.project, self.since)
            if self._has_only_files_of(snapshot, now):
                return Difference(snapshot.label, now.label)
            with tempfile.TemporaryDirectory(prefix="epochcost-") as folder:
                before = read_revision(snapshot, Path(folder), now.inputs.cache)
                return compare_revisions(before, now)
        except EpochcostError as error:
            return str(error)

    def _has_only_files_of(self, snapshot: Snapshot, now: Revision) -> bool:
        """Whether ``now`` was read from the snapshot's files alone, and not from ignored ones."""
        files = in_working_tree(self.project).files
        known = {self.project.absolute() / path for path in files}
        return files == snapshot.files and known.issuperset(
            path.absolute() for path in now.inputs.files
        )


def publication(project: Path, since: str) -> Publication:
    """Find the current commit's id, and the day of ``since``, the revision published before."""
    try:
        head = commit_id(project, "HEAD")
    except EpochcostError as error:
        return Publication(project, since=since, reason=str(error))
    day = ""
    with suppress(EpochcostError):  # `Publication.changes` names the fault
        day = commit_day(project, since)
    return Publication(project, head, since, day)
