"""The revision of the code that measures: its git commit, or the one that a launch noted in it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from epochcost.measure.cpu import raw_tool_output, tool_output

CODE = Path(__file__).parents[1]
# A launch writes this file into the package that it installs on a target.
NOTE = "revision.txt"


@dataclass(frozen=True)
class Revision:
    """The commit of a checkout, and whether files of the package or of onnxstep were modified."""

    commit: str
    modified: bool

    def note(self) -> str:
        """The text of the file that states the revision in an installed package."""
        return f"{self.commit} {'modified' if self.modified else 'unmodified'}\n"


def code_revision(folder: Path = CODE) -> Revision | None:
    """The revision of the code in a folder.

    None if git does not track the code and no launch installed it: after pip install, or in a
    virtual environment below the checkout of another project.
    """
    if (folder / NOTE).is_file():
        commit, state = (folder / NOTE).read_text("utf-8").split()
        return Revision(commit, modified=state == "modified")
    git = ("git", "--no-optional-locks", "-C", str(folder))
    if raw_tool_output(*git, "ls-files", "--error-unmatch", "__init__.py") is None:
        return None
    commit_id = tool_output(*git, "rev-parse", "HEAD")
    changes = raw_tool_output(*git, "status", "--porcelain", "--", ".", "../onnxstep")
    if commit_id is None or changes is None:
        return None
    return Revision(commit_id, modified=bool(changes.strip()))
