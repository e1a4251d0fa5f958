"""A cache of drawn charts that the builds of all tests share.

Each entry has a key of everything that it depends on. So a build with the cache gives the same site
as a build from nothing, but sooner (tests/integration/test_site_builds.py checks this). Each
project has a copy of the cache.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path

# Where the project's mkdocs.yml lets builds keep it.
_CACHE = Path(".cache/epochcost/charts")


@dataclass(frozen=True)
class SharedBuilds:
    """The folder of the cache, which all processes of a test run share."""

    folder: Path
    _projects: list[Path] = field(default_factory=list)

    def into(self, project: Path) -> Path:
        """Copy the cache into a project, with what earlier projects drew; returns the project."""
        while self._projects:
            self.add(self._projects.pop())
        self._projects.append(project)
        if self.folder.is_dir():
            shutil.copytree(
                self.folder,
                project / _CACHE,
                ignore=shutil.ignore_patterns("*.part"),
                dirs_exist_ok=True,
            )
        return project

    def add(self, project: Path) -> None:
        """Add a project's cache to the shared cache; of equal files any copy may remain."""
        kept = project / _CACHE
        for path in kept.rglob("*"):
            if path.is_file():
                shared = self.folder / path.relative_to(kept)
                shared.parent.mkdir(parents=True, exist_ok=True)
                part = shared.with_name(f"{shared.name}.{os.getpid()}.part")
                shutil.copyfile(path, part)
                part.replace(shared)
