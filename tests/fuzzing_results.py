"""Damaged and forged files of results through all that reads them: refused, or harmless.

    PYTHONPATH=tests python -m fuzzing_results FIRST COUNT

A file is harmless that publication accepts where the figures of all other results stay what they
are. Each accepted one is priced beside sound ones by itself; then many together are built into a
site by the command, in a process of its own, whose table of figures is held against that of the
sound ones alone.
"""

from __future__ import annotations

import collections
import datetime as dt
import faulthandler
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path

from epochcost.analysis.history import histories
from epochcost.analysis.inputs import Inputs, StoredResult, read_inputs
from epochcost.errors import Fault
from epochcost.report.dataset import dataset_table
from epochcost.report.pages.page import Report
from epochcost.report.tables import as_json
from epochcost.results.submissions import check_results
from epochcost.specs.loader import load_catalogue
from forged_results import Kept, corpus, damaged
from report_project import write_project

_SECONDS_A_FILE = 120
_MEMORY_BYTES = 6 * 2**30
_LONGEST_MESSAGE = 2_000
_MOST_IN_A_SITE = 500
# What the hostile text would be if anything on its way read it as HTML.
_LIVE = "<script>window.hacked"
_NOW = dt.datetime(2026, 11, 22, tzinfo=dt.UTC)
# The name of a machine tells its hosts apart as soon as there are several.
_NAME = "machine"
Figures = dict[tuple[str, str], dict[str, object]]


class Fuzzed:
    """A project with sound results, and the damaged files that its publication took so far."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._project = write_project(folder / "project", ())
        self._kept = self._project / "docs/data/results"
        self._one = folder / "one"
        self._catalogue = load_catalogue(self._project)
        self.files = corpus(self._catalogue)
        for file in self.files:
            _write(self._kept / file.name, file.data)
        self._sound = self._inputs(self._kept)
        assert not self._sound.problems
        assert not check_results(self._catalogue, self._kept, (), _NOW).faults
        self._figures = _figures(as_json(dataset_table(Report(self._sound).lines)))
        self._taken: list[Kept] = []

    def outcome(self, file: Kept) -> str:
        """What becomes of a file; an AssertionError where it is neither refused nor harmless."""
        shutil.rmtree(self._one, ignore_errors=True)
        path = self._one / file.name
        _write(path, file.data)
        faults = self._faults(path)
        # Under another name, which publication does not mind: no sound one is overwritten.
        path.rename(path.with_name("forged.json"))
        alone = self._inputs(self._one)
        for problem in alone.problems:
            _require_line(problem)
        if not (alone.stored or alone.limits or alone.ceilings):
            assert faults, "the check accepts what is not published"
            return "refused"
        self._require_harmless()
        self._taken.append(file)
        if len(self._taken) >= _MOST_IN_A_SITE:
            self.build()
        return "refused as a submission, and harmless" if faults else "accepted, and harmless"

    def _faults(self, path: Path) -> Sequence[Fault]:
        beside = len(path.relative_to(self._one).parts) > 2
        found = check_results(self._catalogue, self._one, () if beside else (path,), _NOW)
        for fault in found.faults:
            _require_line(str(fault))
        assert len(found.faults) <= 1, "more than one line"
        return found.faults

    def _inputs(self, *folders: Path) -> Inputs:
        return read_inputs(self._catalogue, folders, self._project / "docs")

    def _require_harmless(self) -> None:
        report = Report(both := self._inputs(self._kept, self._one))
        for series in histories(both):
            assert series.points
        found = _figures(as_json(dataset_table(report.lines)))
        # A file may say that a host is a declared machine: what was measured there is then shown
        # under that name, and at its price.
        if both.declared == self._sound.declared:
            self._require_same(found, {*map(work, both.stored)})

    def _require_same(self, found: Figures, works: Collection[tuple[object, ...]]) -> None:
        """Every figure of a sound result that nothing newer of the same work stands for."""
        for key, values in self._figures.items():
            assert found.get(key, values) == values, (key, values, found[key])
        gone = {uri for uri, _ in self._figures.keys() - found.keys()}
        for one in self._sound.stored:
            assert one.uri not in gone or work(one) in works, f"{one.uri} is gone"

    def build(self) -> None:
        """Build the site of all that was taken since the last time, and look at its figures."""
        if not self._taken:
            return
        project = self._folder / "site"
        shutil.copytree(self._project, project, symlinks=True)
        folder = project / "docs/data/results"
        for number, file in enumerate(self._taken):
            place = folder / file.name
            _write(place.with_name(f"f{number}.json"), file.data)
        environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
        # The engine that draws reserves far more addresses than it uses memory.
        limited, most = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        done = subprocess.run(
            [sys.executable, "-m", "epochcost", "build"],
            cwd=project,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        resource.setrlimit(resource.RLIMIT_AS, (limited, most))
        assert done.returncode == 0, done.stderr[-2_000:]
        assert "Traceback" not in done.stderr, done.stderr[-2_000:]
        both = self._inputs(folder)
        if both.declared == self._sound.declared:
            text = (project / "site/data/figures.json").read_text("utf-8")
            self._require_same(_figures(text), {*map(work, both.stored)})
        for page in (project / "site").rglob("*.html"):
            assert _LIVE not in page.read_text("utf-8"), f"a text is live in {page}"
        shutil.rmtree(project)
        self._taken.clear()


def work(stored: StoredResult) -> tuple[object, ...]:
    """What a result is of: of several of the same, the newest is shown."""
    result, trial = stored.result, stored.result.trial
    host = (result.hardware, result.environment.fingerprint)
    return (*host, trial.model, trial.mode, trial.provider, trial.variant, trial.batch_size)


def _figures(text: str) -> Figures:
    """The published lines of figures by their evidence and price, without the machine's name."""
    lines = json.loads(text)["rows"]
    return {
        (str(line["evidence"]), str(line.get("price"))): {
            name: value for name, value in line.items() if name != _NAME
        }
        for line in lines
    }


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def _require_line(words: str) -> None:
    assert "\n" not in words, f"more than one line: {words!r}"
    assert words.isprintable(), f"not to be printed: {words!r}"
    assert len(words) < _LONGEST_MESSAGE, f"too long: {words!r}"


def run(first: int, count: int) -> collections.Counter[str]:
    """The outcomes of so many damages; raises at the first that is neither refused nor harmless."""
    found: collections.Counter[str] = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        fuzzed = Fuzzed(Path(folder))
        for number in range(first, first + count):
            faulthandler.dump_traceback_later(_SECONDS_A_FILE, exit=True)
            try:
                found[fuzzed.outcome(damaged(fuzzed.files, number))] += 1
            except BaseException:
                sys.stderr.write(f"damage {number}\n")
                raise
            finally:
                faulthandler.cancel_dump_traceback_later()
        fuzzed.build()
    return found


def main() -> None:
    """Make the damages named on the command line and say what came of them."""
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, most))
    first, count = map(int, sys.argv[1:])
    for text, times in sorted(run(first, count).items()):
        sys.stdout.write(f"{times:7} {text}\n")


if __name__ == "__main__":
    main()
