"""A project at one revision: its inputs, and every figure priced by this version of epochcost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from epochcost.analysis.difference.repository import (
    DOCS,
    RESULTS,
    Files,
    commit_id,
    committed_files,
    working_files,
)
from epochcost.analysis.estimates import EstimatedRow, estimated_rows
from epochcost.analysis.inputs import Inputs, StoredResult, read_inputs
from epochcost.analysis.observations import observe, observe_variants
from epochcost.analysis.predicted import predict_times
from epochcost.analysis.rows import Row, price_rows
from epochcost.analysis.serving import serving_rows
from epochcost.analysis.table.lines import Line, published_lines
from epochcost.errors import InputError
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.loader import load_catalogue

WORKING_TREE = "working tree"
_SHORT = 10


@dataclass(frozen=True)
class Revision:
    """A project's inputs and the lines of its published table.

    ``label`` is what a reader calls the revision. ``rows`` are those of plain trials, cheapest
    first, and ``estimated`` those of models that nobody timed, by id.
    """

    label: str
    inputs: Inputs
    rows: tuple[Row, ...]
    estimated: Mapping[str, tuple[EstimatedRow, ...]]
    lines: tuple[Line, ...]

    @property
    def catalogue(self) -> Catalogue:
        """The specs."""
        return self.inputs.catalogue

    @property
    def problems(self) -> tuple[str, ...]:
        """Sentences on files that were left out, with paths below the project."""
        root = f"{self.catalogue.root.absolute()}/"
        return tuple(problem.replace(root, "") for problem in self.inputs.problems)

    @property
    def stored(self) -> Mapping[str, StoredResult]:
        """Every result by its address, which is a measured line's evidence."""
        return {result.uri: result for result in self.inputs.stored}


@dataclass(frozen=True)
class Snapshot:
    """The files of a project at a revision, by path; ``label`` as in `Revision`."""

    label: str
    files: Files


def at_commit(project: Path, revision: str) -> Snapshot:
    """The project at a commit.

    Raises InputError if the revision is none, and CapabilityError without git.
    """
    commit = commit_id(project, revision)
    label = revision if revision.startswith(commit[:7]) else f"{revision} ({commit[:_SHORT]})"
    return Snapshot(label, committed_files(project, commit))


def in_working_tree(project: Path) -> Snapshot:
    """The project as it stands: tracked files and new ones that git does not ignore."""
    return Snapshot(WORKING_TREE, working_files(project))


def read_revision(snapshot: Snapshot, folder: Path, cache: Path | None = None) -> Revision:
    """Write a snapshot below an empty folder, read it as a project and price its figures.

    ``cache`` as in `Inputs`. Raises InputError, naming the revision, if the specs have faults.
    """
    for path, data in snapshot.files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    try:
        inputs = read_inputs(load_catalogue(folder), [folder / RESULTS], folder / DOCS, cache)
        return priced_revision(snapshot.label, inputs)
    except InputError as error:
        lines = str(error).replace(f"{folder}/", "").splitlines()
        raise InputError("\n".join(f"{snapshot.label}: {line}" for line in lines)) from None


def priced_revision(label: str, inputs: Inputs) -> Revision:
    """Time and price everything; raises InputError if a table of observations is unreadable."""
    catalogue, timed = inputs.catalogue, observe(inputs)
    predicted = predict_times(inputs, catalogue.models.values()).beyond(timed)
    rows = price_rows(catalogue, (*timed, *predicted))
    estimated = estimated_rows(inputs, rows)
    lines = published_lines(
        catalogue, rows, observe_variants(inputs), serving_rows(inputs), estimated
    )
    return Revision(label, inputs, rows, estimated, lines)
