"""What a build of one test's project draws and counts, so that the next test's project has it.

It is kept by all that it follows from, so that a build that finds it is a build from nothing,
sooner (tests/integration/test_site_builds.py holds it to that). Each project has its own copy.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

# Where the project's mkdocs.yml lets builds keep it.
_CACHE = Path(".cache/epochcost/charts")


@dataclass(frozen=True)
class SharedBuilds:
    """A folder that all processes of one run of the tests share."""

    folder: Path

    def into(self, project: Path) -> Path:
        """The project, with what there is."""
        if self.folder.is_dir():
            shutil.copytree(
                self.folder,
                project / _CACHE,
                ignore=shutil.ignore_patterns("*.part"),
                dirs_exist_ok=True,
            )
        return project

    def add(self, project: Path) -> None:
        """Share what the project's build kept; of two processes either may be the last."""
        kept = project / _CACHE
        for path in kept.rglob("*"):
            if path.is_file():
                shared = self.folder / path.relative_to(kept)
                shared.parent.mkdir(parents=True, exist_ok=True)
                part = shared.with_name(f"{shared.name}.{os.getpid()}.part")
                shutil.copyfile(path, part)
                part.replace(shared)
