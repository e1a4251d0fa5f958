"""Where a build of the report finds what it reads. Nothing is read here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import epochcost

# The templates of a project that has none of its own.
PACKAGED = Path(epochcost.__file__).parent / "site_templates"
# The page of measured ratios to other frameworks, below the docs folder.
RATIOS_FILE = "data/step-ratio.json"


@dataclass(frozen=True, slots=True)
class Sources:
    """``project`` holds ``specs/``, ``models/`` and perhaps a CHANGELOG.md.

    ``published`` is the revision that the page of changes compares with, empty where there is none;
    ``cache`` a folder for what is computed once for many builds.
    """

    project: Path
    results: tuple[Path, ...]
    docs: Path
    templates: Path
    published: str
    cache: Path
