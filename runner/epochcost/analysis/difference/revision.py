"""A project's specs, models and results at a git revision, or as they stand in the working tree.

Everything is read through git's objects: neither the working tree nor the index is ever touched.
What the files mean is left to the loaders.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from epochcost.analysis.difference.repository import blob_contents, git
from epochcost.analysis.inputs import RATIOS_FILE, StepRatios, parse_ratios
from epochcost.errors import Fault, InputError, SpecError
from epochcost.results.ceilings import FOLDER as CEILINGS
from epochcost.results.limits import FOLDER as LIMITS
from epochcost.results.store import MAX_FILE_BYTES
from epochcost.results.trainings import FOLDER as TRAININGS
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.loader import load_catalogue
from epochcost.specs.model import Model

_SPECS, _MODELS, _RESULTS = "specs", "models", "docs/data/results"
_RATIOS = f"docs/{RATIOS_FILE}"
# What no time follows from.
_BESIDE_TIMES = ("specs/prices/", "specs/grids/", "specs/studies/", _RATIOS)
_READ = (_SPECS, _MODELS, _RESULTS, _RATIOS)
WORKING_TREE = "working tree"
_REGULAR = ("100644", "100755")
_SHORT = 10
# Parts of a path that would lead out of the folder that it is written below.
_OUTSIDE = ("", ".", "..")


@dataclass(frozen=True)
class Snapshot:
    """The files of a project by path, each with git's id of its content.

    ``label`` is what a reader calls the revision. ``blobs`` holds specs, ONNX files, results, what
    is kept beside them, and ratios; equal ids are equal contents. ``contents`` gives the bytes of
    some of the paths, ``load`` the catalogue; ``cache`` as in `Inputs`.
    """

    label: str
    blobs: Mapping[str, str]
    contents: Callable[[Iterable[str]], Iterator[tuple[str, bytes]]]
    load: Callable[[], Catalogue]
    cache: Path | None = None

    @cached_property
    def catalogue(self) -> Catalogue:
        """The specs; raises InputError where they have faults."""
        return self.load()

    @cached_property
    def declared(self) -> Mapping[str, str]:
        """Specs and models, from which the catalogue follows."""
        return {path: blob for path, blob in self.blobs.items() if _is_declared(path)}

    @cached_property
    def timed_by(self) -> Mapping[str, str]:
        """All that measured, published and predicted times follow from."""
        return {
            path: blob for path, blob in self.blobs.items() if not path.startswith(_BESIDE_TIMES)
        }

    @cached_property
    def results(self) -> Mapping[str, str]:
        """The result files: ``docs/data/results/<hardware>/<name>.json`` and their ids."""
        return {path: blob for path, blob in self.blobs.items() if _is_result(path)}

    @cached_property
    def measured(self) -> Mapping[str, str]:
        """The result files, and beside them the ceilings of hosts and the ends of sweeps."""
        return {
            path: blob for path, blob in self.blobs.items() if _is_result(path) or _is_beside(path)
        }

    @cached_property
    def ratios(self) -> StepRatios:
        """Our step's times over PyTorch's; raises ResultError on a file of another form."""
        if _RATIOS not in self.blobs:
            return StepRatios()
        [(_, data)] = self.contents([_RATIOS])
        return parse_ratios(data, Path(_RATIOS))

    def work_of(self, model: str) -> tuple[Model, str | None] | None:
        """What a model's work and bills follow from: its spec and its ONNX file's content."""
        spec = self.catalogue.models.get(model)
        return None if spec is None else (spec, self.graph_of(spec))

    def graph_of(self, model: Model) -> str | None:
        """The id of an ONNX file's content; None where there is no file of the model's."""
        return self.blobs.get(f"{_MODELS}/{model.graph}")


def at_commit(project: Path, revision: str, folder: Path) -> Snapshot:
    """The project at a commit.

    Once its catalogue is asked for, specs and models are written below ``folder``, which should be
    empty and remain. Raises InputError where the revision is none, and CapabilityError without git.
    """
    commit = _commit(project, revision)
    blobs = dict(_tree(project, commit))

    def contents(paths: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        return _contents(project, {path: blobs[path] for path in paths})

    def load() -> Catalogue:
        for path, data in contents(path for path in blobs if _is_declared(path)):
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        return _catalogue(folder, label)

    label = revision if revision.startswith(commit[:7]) else f"{revision} ({commit[:_SHORT]})"
    return Snapshot(label, blobs, contents, load)


def head_commit(project: Path) -> str:
    """The commit that is checked out; raises as `at_commit` does."""
    return _commit(project, "HEAD")


def in_working_tree(project: Path) -> Snapshot:
    """The project as it stands: tracked files and new ones that git does not ignore."""
    asked = ("--cached", "--others", "--exclude-standard")
    listed = os.fsdecode(git(project, "ls-files", "-z", *asked, "--", *_READ))
    paths = [path for path in sorted({*listed.split("\0")}) if _is_kept(path)]
    present = [path for path in paths if _is_plain(project / path)]
    # This command reads its paths from the repository's root.
    prefix = os.fsdecode(git(project, "rev-parse", "--show-prefix")).rstrip("\n")
    named = os.fsencode("".join(f"{prefix}{path}\n" for path in present))
    hashed = git(project, "hash-object", "--stdin-paths", given=named).decode().split()

    def contents(paths: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        return ((path, (project / path).read_bytes()) for path in paths)

    blobs = dict(zip(present, hashed, strict=True))
    return Snapshot(WORKING_TREE, blobs, contents, lambda: load_catalogue(project))


def _commit(project: Path, revision: str) -> str:
    try:
        found = git(
            project,
            "rev-parse",
            "--verify",
            "--quiet",
            "--end-of-options",
            f"{revision}^{{commit}}",
        )
    except InputError:
        git(project, "rev-parse", "--git-dir")  # names what is wrong where this is no checkout
        raise InputError(
            f"{revision!r:.80}: expected a commit, branch or tag of this repository, found none of "
            "that name: in a shallow clone, `git fetch` it first"
        ) from None
    return found.decode().strip()


def _tree(project: Path, commit: str) -> Iterator[tuple[str, str]]:
    listed = git(project, "ls-tree", "-r", "-l", "-z", commit, "--", *_READ)
    for line in os.fsdecode(listed).split("\0"):
        about, _, path = line.partition("\t")
        if not _is_kept(path):
            continue
        mode, _, blob, size = about.split()
        if mode in _REGULAR and int(size) <= MAX_FILE_BYTES:
            yield path, blob


def _is_kept(path: str) -> bool:
    """Whether a file is a spec, an ONNX file, the models' manifest, or measured."""
    if "\n" in path or any(part in _OUTSIDE for part in path.split("/")):
        return False
    return _is_declared(path) or _is_result(path) or _is_beside(path) or path == _RATIOS


def _is_declared(path: str) -> bool:
    parts = path.split("/")
    is_model = len(parts) == 2 and parts[0] == _MODELS and parts[1].endswith((".onnx", ".toml"))
    return parts[0] == _SPECS or is_model


def _is_result(path: str) -> bool:
    folder, _, name = path.rpartition("/")
    return folder.rpartition("/")[0] == _RESULTS and name.endswith(".json")


def _is_beside(path: str) -> bool:
    kept, _, name = path.rpartition("/")
    folder, _, kind = kept.rpartition("/")
    inside = folder.rpartition("/")[0] == _RESULTS
    return inside and kind in (CEILINGS, LIMITS, TRAININGS) and name.endswith(".json")


def _is_plain(path: Path) -> bool:
    return path.is_file() and not path.is_symlink() and path.stat().st_size <= MAX_FILE_BYTES


def _contents(project: Path, blobs: Mapping[str, str]) -> Iterator[tuple[str, bytes]]:
    for path, data in zip(blobs, blob_contents(project, [*blobs.values()]), strict=True):
        if data is None:
            raise InputError(f"{path}: expected its content; git has it not: `git fetch` it first")
        yield path, data


def _catalogue(folder: Path, label: str) -> Catalogue:
    """The catalogue; faults are named by the revision and the file's place in the project."""
    try:
        return load_catalogue(folder)
    except SpecError as error:
        moved = [
            Fault(_within(fault.path, folder), fault.line, fault.column, fault.message)
            for fault in error.faults
        ]
        words = "\n".join(f"{label}: {fault}" for fault in moved)
    except InputError:
        words = f"{label}: expected specs/ with at least one spec, found none"
    raise InputError(f"{words}\n{label}: costs can be compared once its specs have no faults")


def _within(path: Path, folder: Path) -> Path:
    return path.relative_to(folder) if path.is_relative_to(folder) else path
