"""Read a project at one revision of its git repository, and compute all its figures.

Files are read from git's objects, so neither the working tree nor the index is touched. The
installed version of epochcost computes the figures of every revision.
"""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path

from epochcost.analysis.comparisons import VariantRow, cheapest_plan, job_cost
from epochcost.analysis.estimates import EstimatedRow, estimated_rows
from epochcost.analysis.inputs import RATIOS_FILE, RESULTS_URI, Inputs, StoredResult, read_inputs
from epochcost.analysis.observations import Observation, observe, observe_variants
from epochcost.analysis.predicted import Times, missing_from, predict_times
from epochcost.analysis.rows import Row, price_rows
from epochcost.analysis.serving import ServingRow, serving_rows
from epochcost.analysis.table.lines import Line
from epochcost.errors import CapabilityError, EpochcostError, InputError
from epochcost.results.store import MAX_FILE_BYTES
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.loader import load_catalogue

WORKING_TREE = "working tree"
_SHORT = 10
_DOCS = "docs"
_RESULTS = f"{_DOCS}/{RESULTS_URI}"
_READ = ("specs", "models", _RESULTS, f"{_DOCS}/{RATIOS_FILE}")
_REGULAR = ("100644", "100755")
# Parts of a path that would leave the target folder.
_OUTSIDE = ("", ".", "..")


@dataclass(frozen=True)
class Revision:
    """A project's inputs at a revision, and the figures that follow; each is computed once.

    ``label`` names the revision for readers.
    """

    inputs: Inputs
    label: str = field(default=WORKING_TREE, kw_only=True)

    @property
    def catalogue(self) -> Catalogue:
        """The specs of the project."""
        return self.inputs.catalogue

    @property
    def problems(self) -> tuple[str, ...]:
        """Sentences about files that could not be used, with paths relative to the project."""
        root = f"{self.catalogue.root.absolute()}/"
        return tuple(problem.replace(root, "") for problem in self.inputs.problems)

    @cached_property
    def stored(self) -> Mapping[str, StoredResult]:
        """All stored results, by URI on the site (the value of the table's column ``evidence``)."""
        return {result.uri: result for result in self.inputs.stored}

    @cached_property
    def predictions(self) -> Times:
        """Every predicted time, and the reasons for missing predictions."""
        return predict_times(self.inputs, self.catalogue.models.values())

    @cached_property
    def observations(self) -> tuple[Observation, ...]:
        """All measured and published times, and predicted times for the cases that lack both.

        A case is a workload on a machine in one mode and kind of software.
        """
        timed = observe(self.inputs)
        return (*timed, *missing_from(timed, self.predictions.observations))

    @cached_property
    def variants(self) -> tuple[Observation, ...]:
        """Every measured trial whose settings differ from the defaults."""
        return observe_variants(self.inputs)

    @cached_property
    def loads(self) -> tuple[ServingRow, ...]:
        """Every measured LoadGen scenario, with its cost."""
        return serving_rows(self.inputs)

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """Every observation under each price plan; sorted by cost within a workload and mode."""
        return price_rows(self.catalogue, self.observations)

    @cached_property
    def estimated(self) -> Mapping[str, tuple[EstimatedRow, ...]]:
        """Costs of trainings without a known time, estimated from operation counts, by model id."""
        return estimated_rows(self.inputs, self.rows)

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        """The lines of the table of all figures; variants get their machine's cheapest plan."""
        variants = (
            VariantRow(variant, job_cost(variant, cheapest_plan(self.catalogue, variant)))
            for variant in self.variants
        )
        estimates = chain.from_iterable(self.estimated.values())
        return (*self.rows, *variants, *self.loads, *estimates)


@dataclass(frozen=True)
class Snapshot:
    """The files of a project at a revision, by path; ``label`` names the revision for readers."""

    project: Path
    label: str
    files: Mapping[str, bytes]


def at_commit(project: Path, revision: str) -> Snapshot:
    """Read the files at a commit; InputError if it is unknown, CapabilityError without git."""
    commit = commit_id(project, revision)
    label = revision if revision.startswith(commit[:7]) else f"{revision} ({commit[:_SHORT]})"
    blobs = dict(_blob_ids_by_path(project, commit))
    return Snapshot(project, label, dict(zip(blobs, _blob_contents(project, blobs), strict=True)))


def in_working_tree(project: Path) -> Snapshot:
    """Read the files of the working tree: tracked files, and new files that git does not ignore."""
    options = ("--cached", "--others", "--exclude-standard")
    listed = os.fsdecode(_git_output(project, "ls-files", "-z", *options, "--", *_READ))
    paths = sorted({path for path in listed.split("\0") if path and _is_plain(project / path)})
    files = {path: (project / path).read_bytes() for path in paths}
    return Snapshot(project, WORKING_TREE, files)


def read_revision(snapshot: Snapshot, folder: Path, cache: Path | None = None) -> Revision:
    """Write a snapshot to the empty ``folder`` and price it; raises InputError for faulty specs."""
    for path, data in snapshot.files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    project = snapshot.project.absolute()
    try:
        inputs = read_inputs(load_catalogue(folder), [folder / _RESULTS], folder / _DOCS, cache)
        revision = Revision(inputs, label=snapshot.label)
        # Faults of published rates are found when all lines are computed.
        _ = revision.lines
        return revision
    except InputError as error:
        message = str(error).replace(f"{folder}/", "").replace(f"{project}/", "")
        lines = message.splitlines()
        raise InputError("\n".join(f"{snapshot.label}: {line}" for line in lines)) from None


def _git_output(folder: Path, *arguments: str, input_bytes: bytes | None = None) -> bytes:
    """Run git; raises CapabilityError without git, and InputError if the command fails."""
    # Nothing is locked, refreshed or fetched, whatever else runs in the repository.
    quiet = {"GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1", "LC_ALL": "C"}
    command = ["git", "-c", "core.quotePath=false", *arguments]
    try:
        process = subprocess.run(
            command, cwd=folder, env=os.environ | quiet, input=input_bytes, capture_output=True,
            check=False,
        )  # fmt: skip
    except FileNotFoundError:
        raise CapabilityError("expected git to read revisions, found no such program") from None
    if process.returncode != 0:
        reason = process.stderr.decode(errors="replace").strip().removeprefix("fatal: ")
        raise InputError(f"{folder.resolve().name}: expected a git repository, got: {reason:.300}")
    return process.stdout


def earlier_revision(folder: Path) -> str:
    """The last tag on an ancestor of HEAD, or else the parent of HEAD, or else an empty text."""
    for command in (("describe", "--tags", "--abbrev=0"), ("rev-parse", "--verify", "--quiet")):
        with contextlib.suppress(EpochcostError):
            return _git_output(folder, *command, "HEAD^").decode(errors="replace").strip()
    return ""


def commit_id(project: Path, revision: str) -> str:
    """Full id of the commit that ``revision`` names; raises InputError if it names none."""
    named = ("--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    try:
        return _git_output(project, "rev-parse", *named).decode().strip()
    except InputError:
        # Names the fault of a folder without a checkout.
        _git_output(project, "rev-parse", "--git-dir")
        raise InputError(
            f"{revision!r:.80}: expected a commit, branch or tag of this repository, found none of "
            "that name: in a shallow clone, `git fetch` it first"
        ) from None


def commit_day(project: Path, revision: str) -> str:
    """The day of the commit that a revision names; raises InputError if it names none."""
    named = commit_id(project, revision)
    return _git_output(project, "log", "-1", "--format=%cs", named).decode().strip()


def _blob_ids_by_path(project: Path, commit: str) -> Iterator[tuple[str, str]]:
    """Yield each file's path and blob id; omit links, huge files and paths outside the project."""
    listed = _git_output(project, "ls-tree", "-r", "-l", "-z", commit, "--", *_READ)
    for line in filter(None, os.fsdecode(listed).split("\0")):
        about, _, path = line.partition("\t")
        mode, _, blob, size = about.split()
        inside = not any(part in _OUTSIDE for part in path.split("/"))
        if inside and mode in _REGULAR and int(size) <= MAX_FILE_BYTES:
            yield path, blob


def _is_plain(path: Path) -> bool:
    return path.is_file() and not path.is_symlink() and path.stat().st_size <= MAX_FILE_BYTES


def _blob_contents(project: Path, blob_ids: Mapping[str, str]) -> Iterator[bytes]:
    request = "".join(f"{blob}\n" for blob in blob_ids.values()).encode()
    stream = io.BytesIO(_git_output(project, "cat-file", "--batch", input_bytes=request))
    for path in blob_ids:
        *_, size = stream.readline().split()
        if size == b"missing":
            raise InputError(f"{path}: expected its content, which git lacks: `git fetch` it first")
        yield stream.read(int(size))
        stream.readline()
