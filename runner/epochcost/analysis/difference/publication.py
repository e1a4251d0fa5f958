"""What changed since the site was last published: the project at hand beside an earlier revision.

Whoever publishes says which revision that was, else it is the last tag or the parent commit; the
site names its own in ``data/publication.json``, where the next publication finds it.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from epochcost.analysis.difference.changes import Difference, difference
from epochcost.analysis.difference.revision import at_commit, head_commit, in_working_tree
from epochcost.errors import EpochcostError

URI = "data/publication.json"


@dataclass(frozen=True)
class Publication:
    """``revision`` is the commit that the site is built from, None where that is not known.

    ``since`` is the revision compared with, empty where there is none. ``changes`` None:
    ``reason`` says why they are not known.
    """

    revision: str | None = None
    since: str = ""
    changes: Difference | None = None
    reason: str = "the project has no tag and no commit before this one"

    def file(self) -> str:
        """What the next publication reads: the revision, as JSON."""
        return json.dumps({"revision": self.revision}) + "\n"


def publication(project: Path, since: str, cache: Path | None = None) -> Publication:
    """The project as it stands, compared with ``since`` where that is given.

    ``cache`` keeps what is counted of graphs.

    A comparison that cannot be made is a reason, for a site is not to fail for its past.
    """
    try:
        revision = head_commit(project)
    except EpochcostError as error:
        return Publication(since=since, reason=str(error))
    if not since:
        return Publication(revision)
    try:
        with tempfile.TemporaryDirectory(prefix="epochcost-") as folder:
            before = replace(at_commit(project, since, Path(folder)), cache=cache)
            after = replace(in_working_tree(project), cache=cache)
            return Publication(revision, since, difference(before, after))
    except EpochcostError as error:
        return Publication(revision, since, reason=str(error))
