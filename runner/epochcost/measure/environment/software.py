"""The revision of the code that measures; its packages are left to ``measure.runtime``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from epochcost.measure.environment.commands import output, raw_output

_CODE = Path(__file__).parents[2]


@dataclass(frozen=True)
class Revision:
    """The commit of a checkout, and whether files below the code's folder differ from it."""

    commit: str
    modified: bool


def code_revision(folder: Path = _CODE) -> Revision | None:
    """The revision of the code in a folder; None where no git tracks it, as for a wheel.

    An environment within somebody else's checkout is not taken for that checkout's code.
    """
    git = ("git", "--no-optional-locks", "-C", str(folder))
    if raw_output(*git, "ls-files", "--error-unmatch", "__init__.py") is None:
        return None
    commit = output(*git, "rev-parse", "HEAD")
    changes = raw_output(*git, "status", "--porcelain", "--", ".")
    return (
        Revision(commit, modified=bool(changes.strip())) if commit and changes is not None else None
    )
