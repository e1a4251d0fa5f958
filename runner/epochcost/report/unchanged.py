"""One digest of all that a site follows from: where it is the same, a build has nothing to do.

That is the content of every file that a build reads, what git says of them, the configuration, and
the program with all packages beside it. What is added to what a build reads is to be added here: a
wrong skip is worse than a slow build. A build that warned of anything is done again each time, so
that it warns again.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig

import epochcost
from epochcost.analysis.inputs import Sources
from epochcost.analysis.repository import git, replaced_blobs
from epochcost.errors import EpochcostError
from epochcost.units import today

# Plugins and extensions that read nothing but what is digested here; with others none is skipped.
_PLUGINS = frozenset({"search", "material/search", "epochcost"})
_EXTENSIONS = frozenset(
    [
        *("abbr", "admonition", "attr_list", "def_list", "fenced_code", "footnotes"),
        *("md_in_html", "tables", "toc"),
        *(f"pymdownx.{name}" for name in ("details", "highlight", "inlinehilite")),
        *("pymdownx.superfences", "pymdownx.tabbed"),
    ]
)
_READ_BY_COMPARISONS = ("specs", "models", "docs/data/results")


@dataclass(frozen=True, slots=True)
class BuildStamp:
    """What a finished build leaves in the cache: its digest, and how its files then were."""

    path: Path
    site: Path

    @classmethod
    def of(cls, cache: Path, site: Path) -> BuildStamp:
        """The stamp of one site's folder."""
        return cls(cache / f"site-{_digest(str(site))[:16]}.json", site)

    def matches(self, digest: str) -> bool:
        """Whether the site is what a build of the same digest left."""
        try:
            stamped = json.loads(self.path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return False
        return bool(stamped == [digest, _file_states(self.site)])

    def write(self, digest: str) -> None:
        """Stamp the site that was built; where that cannot be written, the next build builds."""
        with suppress(OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_text(json.dumps([digest, _file_states(self.site)]), encoding="utf-8")


def configuration(config: MkDocsConfig) -> str | None:
    """All options in words; None where what a part of them reads is not known here.

    One whose words name a place in memory is another in each build. To be asked before the
    navigation is set.
    """
    if config.hooks or not _PLUGINS.issuperset(config.plugins):
        return None
    if not _EXTENSIONS.issuperset(config.markdown_extensions):
        return None
    plugins = {name: plugin.config for name, plugin in config.plugins.items()}
    rest = {key: value for key, value in config.items() if key not in {"plugins", "theme"}}
    return json.dumps([rest, config.theme.name, config.theme, plugins], default=_plain)


def _plain(value: object) -> Any:
    return dict(value) if isinstance(value, Mapping) else repr(value)


def inputs_digest(sources: Sources, themes: Iterable[str], options: str) -> str:
    """The digest of what a build with these options reads at this moment.

    ``themes`` are the folders of the theme's templates and files.
    """
    project = sources.project
    read = [project / "specs", project / "models", sources.docs, sources.templates]
    read += [*sources.results, *_outside_packages(themes)]
    if sources.published:
        read.append(project / "docs/data/results")
    return _digest(
        _program(),
        today().isoformat(),  # pages say how old prices are
        options,
        logging.getLogger("mkdocs").getEffectiveLevel(),
        [str(Path.cwd()), str(project), str(sources.docs), sources.published],
        [str(folder) for folder in sources.results],
        [[str(folder), _tree(folder)] for folder in _outermost(read)],
        _file(project / "CHANGELOG.md"),
        [_revisions(project, sources.published), *map(_replaced_results, sources.results)],
    )


def _digest(*parts: Any) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _file_states(folder: Path) -> str:
    """Names, sizes and times of all files: who changes or removes one changes this."""
    states = []
    for path in _paths(folder, ()):
        about = Path(path).lstat()
        states.append((path, about.st_size, about.st_mtime_ns))
    return _digest(sorted(states))


def _outermost(folders: Sequence[Path]) -> list[Path]:
    """The folders that stand in no other, each once."""
    each = dict.fromkeys(folder.resolve() for folder in folders)
    return [one for one in each if not any(other in one.parents for other in each)]


def _outside_packages(themes: Iterable[str]) -> list[Path]:
    """The folders that belong to no package, whose version would say what is in them."""
    packages = tuple(Path(entry).resolve() for entry in sys.path if entry.endswith("-packages"))
    folders = (Path(folder) for folder in themes)
    return [one for one in folders if not any(one.resolve().is_relative_to(p) for p in packages)]


def _program() -> str:
    """The code of this package, the interpreter, and the versions of all packages there are."""
    folder = Path(epochcost.__file__).parent
    code = [[str(path), _file(path)] for path in sorted(folder.rglob("*.py"))]
    return _digest(code, sys.version, sys.platform, _packages())


def _packages() -> list[str]:
    """Names and versions, as the folders that describe packages have them."""
    folders = (Path(entry) for entry in sys.path)
    names = (path.name for folder in folders if folder.is_dir() for path in folder.iterdir())
    return sorted(name for name in names if name.endswith((".dist-info", ".egg-info")))


def _tree(folder: Path) -> list[list[str]]:
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
    head, folder = "HEAD^{commit}", "--git-dir"
    answers = [_ask_git(project, "rev-parse", asked) for asked in (head, folder)]
    if published:
        present = ("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--")
        answers += [
            _ask_git(project, "rev-parse", "--show-prefix"),
            _ask_git(project, "rev-parse", "--end-of-options", f"{published}^{{commit}}"),
            _ask_git(project, *present, *_READ_BY_COMPARISONS),
        ]
    return answers


def _replaced_results(folder: Path) -> list[str]:
    """What git says of the results that were replaced in a folder, and which of them it has."""
    if not folder.is_dir():
        return []
    try:
        blobs = [*dict.fromkeys(replaced_blobs(folder))]
    except EpochcostError as error:
        return [str(error)]
    asked = "".join(f"{blob}\n" for blob in blobs).encode()
    return [
        *blobs,
        _ask_git(folder, "rev-parse", "--is-shallow-repository"),
        _ask_git(folder, "cat-file", "--batch-check", given=asked) if blobs else "",
    ]


def _ask_git(folder: Path, *arguments: str, given: bytes | None = None) -> str:
    try:
        return git(folder, *arguments, given=given).decode(errors="replace")
    except EpochcostError as error:
        return str(error)
