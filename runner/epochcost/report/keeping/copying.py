"""Files of the report copied into the site by a process beside the build, which frames pages.

What that process kept of them it tells in a file at its end.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File

from epochcost.report.keeping.frame import KNOWN
from epochcost.report.keeping.processes import Beside, begun_beside
from epochcost.report.keeping.report import KeptReport
from epochcost.report.late_file import LateFile

# Starting a process takes as long as copying so many files.
_FEW_FILES = 40


@dataclass(frozen=True, slots=True)
class Copying:
    """Files that a process copies; ``folder`` takes its last word."""

    report: KeptReport
    files: tuple[LateFile, ...]
    folder: TemporaryDirectory[str]
    process: Beside

    def finish(self) -> None:
        """Wait for the process; where it failed the files are copied here, and meet the error."""
        self.process.wait()
        with self.folder:
            try:
                noticed = pickle.loads(_word(self.folder).read_bytes())  # noqa: S301  our own word
            except (OSError, EOFError, pickle.UnpicklingError):
                for file in self.files:
                    file.copy_here()
            else:
                self.report.join(*noticed)


def begun_copying(
    files: Iterable[File],
    report: KeptReport,
    config: MkDocsConfig,
    kept: Path,
    then: Callable[[], object] = lambda: None,
) -> Copying | None:
    """Begin to copy what MkDocs then passes over; None where it is to copy all by itself.

    That is where there are few files, or plugins that may look at them. ``kept`` is a folder that
    takes a file for a while. ``then`` is done in the same process with the time that is left.
    """
    late = tuple(file for file in files if isinstance(file, LateFile) and _is_copied(file))
    if len(late) < _FEW_FILES or config.hooks or not KNOWN.issuperset(config.plugins):
        return None
    kept.mkdir(parents=True, exist_ok=True)
    folder = TemporaryDirectory(dir=kept)

    def copy(files: Iterable[LateFile]) -> None:
        for file in files:
            file.copy_here()
        try:
            then()
        finally:
            _word(folder).write_bytes(pickle.dumps(report.noticed))

    process = begun_beside(copy, [late], 1)
    for file in late:
        file.elsewhere = True
    return Copying(report, late, folder, process)


def _is_copied(file: File) -> bool:
    included: bool = file.inclusion.is_included()  # type: ignore[no-untyped-call]
    return included and not file.is_documentation_page()


def _word(folder: TemporaryDirectory[str]) -> Path:
    return Path(folder.name) / "noticed"
