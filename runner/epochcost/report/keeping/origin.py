"""A digest of all that the report is made from: where it is the same, so is the report.

That is the content of every file that a build reads, what git says of them, and the program with
all packages beside it. What is added to what a build reads is to be added here.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import epochcost
from epochcost.errors import EpochcostError
from epochcost.report.keeping.shelf import digest
from epochcost.report.repository import git, replaced
from epochcost.report.sources import RATIOS_FILE, Sources

_READ_BY_COMPARISONS = ("specs", "models", "docs/data/results")


def origin(sources: Sources) -> str:
    """The digest of what a build reads at this moment."""
    project = sources.project
    read = [project / "specs", project / "models", *sources.results, sources.templates]
    if sources.published:
        read.append(project / "docs/data/results")
    alone = (project / "CHANGELOG.md", sources.docs / RATIOS_FILE)
    return digest(
        program(),
        [[str(folder), folder.is_dir(), tree(folder)] for folder in read],
        [str(Path.cwd()), str(project), str(sources.docs), sources.published],
        [_file(path) for path in alone],
        [_revisions(project, sources.published), *map(_replaced, sources.results)],
    )


@cache
def program() -> str:
    """The code of this package, the interpreter, and the versions of all packages there are."""
    folder = Path(epochcost.__file__).parent
    code = [[str(path), _file(path)] for path in sorted(folder.rglob("*.py"))]
    return digest(code, sys.version, sys.platform, packages())


def packages() -> list[str]:
    """Names and versions, as the folders that describe packages have them."""
    folders = (Path(entry) for entry in sys.path)
    names = (path.name for folder in folders if folder.is_dir() for path in folder.iterdir())
    return sorted(name for name in names if name.endswith((".dist-info", ".egg-info")))


def tree(folder: Path) -> list[list[str]]:
    """Every folder and file below a folder, with the digest of a file's content."""
    begin = len(str(folder)) + 1
    return [[path[begin:], _file(Path(path))] for path in sorted(_paths(folder, ()))]


def _paths(folder: Path | str, above: tuple[str, ...]) -> Iterator[str]:
    """Also below linked folders, but for those that lead to one that is ``above``."""
    here = os.path.realpath(folder)
    if here in above or not Path(folder).is_dir():
        return
    with os.scandir(folder) as entries:
        for entry in entries:
            yield entry.path
            if entry.is_dir():
                yield from _paths(entry.path, (*above, here))


def _file(path: Path) -> str:
    """The digest of a file's content; of what is no readable file, what it is."""
    kind = f"{path.is_symlink():d}{path.is_dir():d}{path.is_file():d}"
    try:
        content = path.read_bytes() if path.is_file() else b""
    except OSError as error:
        return kind + type(error).__name__
    return kind + hashlib.sha256(content).hexdigest()


def _revisions(project: Path, published: str) -> list[str]:
    """What git says of the project as it stands, and of the revision that was published."""
    said = [_said(project, "rev-parse", "HEAD^{commit}"), _said(project, "rev-parse", "--git-dir")]
    if published:
        present = ("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--")
        said += [
            _said(project, "rev-parse", "--show-prefix"),
            _said(project, "rev-parse", "--end-of-options", f"{published}^{{commit}}"),
            _said(project, *present, *_READ_BY_COMPARISONS),
        ]
    return said


def _replaced(folder: Path) -> list[str]:
    """What git says of the results that were replaced in a folder, and which of them it has."""
    if not folder.is_dir():
        return []
    try:
        blobs = [*dict.fromkeys(replaced(folder))]
    except EpochcostError as error:
        return [str(error)]
    asked = "".join(f"{blob}\n" for blob in blobs).encode()
    return [
        *blobs,
        _said(folder, "rev-parse", "--is-shallow-repository"),
        _said(folder, "cat-file", "--batch-check", given=asked) if blobs else "",
    ]


def _said(folder: Path, *arguments: str, given: bytes | None = None) -> str:
    try:
        return git(folder, *arguments, given=given).decode(errors="replace")
    except EpochcostError as error:
        return str(error)
