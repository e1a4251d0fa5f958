"""The revision that a site is built from, and the changes since the one published before it.

Whoever publishes names that one, else it is the last tag or the parent commit. The site names its
own in ``data/publication.json``, where the next publication reads it.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path

from epochcost.analysis.difference.changes import Difference, compare_revisions
from epochcost.analysis.difference.repository import commit_id
from epochcost.analysis.difference.revision import Revision, at_commit, read_revision
from epochcost.errors import EpochcostError

URI = "data/publication.json"


@dataclass(frozen=True)
class Publication:
    """``revision`` is the commit that the site is built from, None if that is not known.

    ``since`` is the revision to compare with, empty if there is none; ``reason`` says why.
    """

    project: Path = Path()
    revision: str | None = None
    since: str = ""
    reason: str = "the project has no tag and no commit before this one"

    def file(self) -> str:
        """The revision as JSON, for the next publication."""
        return json.dumps({"revision": self.revision}) + "\n"

    def changes(self, now: Revision) -> Difference | str:
        """The changes since the last publication, or the reason why they are not known.

        A site is not to fail for its past.
        """
        if not self.since or self.revision is None:
            return self.reason
        try:
            with tempfile.TemporaryDirectory(prefix="epochcost-") as folder:
                snapshot = at_commit(self.project, self.since)
                before = read_revision(snapshot, Path(folder), now.inputs.cache)
                return compare_revisions(before, now)
        except EpochcostError as error:
            return str(error)


def publication(project: Path, since: str) -> Publication:
    """The project's commit, and the revision that was published before it."""
    try:
        return Publication(project, commit_id(project, "HEAD"), since)
    except EpochcostError as error:
        return Publication(project, since=since, reason=str(error))
