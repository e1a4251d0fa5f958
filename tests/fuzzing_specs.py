"""Damaged and hostile specs give a fault in one line, or a site in which no text is active.

    PYTHONPATH=tests python -m fuzzing_specs FIRST COUNT

Each number is a damage to one spec of a small project. Texts become hostile and numbers extreme.
Keys are removed, added from other places or get another type, and bytes change. Accepted specs are
added to the sound specs, each with a new id and many in one project. The project is built by `build
--strict`, compared with its state before, and commented on. If that fails, the specs are halved
until the harmful spec is found. Every fortieth spec also replaces the original spec, on which other
specs depend. Then all pages and charts are made in this process, but no HTML.
"""

from __future__ import annotations

import collections
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import tomli

from crowding import crowded
from damaged_specs import corpus, damaged
from epochcost.analysis.inputs import missing_specs, read_inputs
from epochcost.cli.check import check_specs
from epochcost.cli.request_comment import markdown, read_comment
from epochcost.report.site import build
from epochcost.specs.loader import load_catalogue
from epochcost.specs.study import Mode
from fault_words import is_ours
from live_text import live_in_site
from report_project import make_result, store_results, write_project
from revisions import git
from shown_comment import shown

ROOT = Path(__file__).parents[1]
# More would make pages of megabytes; fewer would build the sound ones too often.
_TOGETHER = 400
_CHECKED_TOGETHER = 40
_ONE_IN_PLACE_OF = 40
_BUILD_SECONDS = 1800
_LONGEST_FAULT = 600
# Of each group so many models and machines; each makes charts, whose drawing takes time.
_MEASURED = 4
_FULL = range(_MEASURED)
_PRICE = """
id = "of-{0}"
hardware = "{0}"
plan = "on-demand"
provider = "Cloud"
amount = 0.90
source = "a list"
as_of = 2026-07-01
"""


class Project:
    """A project that keeps accepted specs until there are enough to build."""

    def __init__(self, folder: Path) -> None:
        self.folder = write_project(folder)
        self.specs = corpus(self.folder)
        self.contradicting: set[str] = set()
        (self.folder / ".gitignore").write_text("/site/\n/.cache/\n", "utf-8")
        git(self.folder, "init", "--quiet", "--initial-branch=main")
        git(self.folder, "add", "--all")
        git(self.folder, "commit", "--quiet", "--message", "Begin")

    def accepted(self, files: dict[int, tuple[str, bytes]]) -> frozenset[int]:
        """The numbers of the files without a fault, if all files are checked together."""
        paths = {number: self.folder / "specs" / name for number, (name, _) in files.items()}
        for number, path in paths.items():
            path.write_bytes(files[number][1])
        try:
            faults = check_specs([self.folder / "specs"]).faults
        finally:
            for path in paths.values():
                path.unlink()
        for fault in faults:
            words = str(fault)
            assert words.isprintable(), f"not one line: {words!r}"
            assert is_ours(fault.message.removeprefix("invalid TOML: ")), words
            assert len(fault.message) < _LONGEST_FAULT, f"too long: {words!r}"
        refused = {fault.path.absolute() for fault in faults}
        # Of two devices with one name, each is told of the other.
        sound = [
            fault
            for fault in faults
            if fault.path.absolute() not in paths.values()
            and not any(path.name in fault.message for path in paths.values())
        ]
        assert not sound, f"faults of sound specs: {sound}"
        return frozenset(number for number, path in paths.items() if path not in refused)

    def require_in_place(self, name: str, contents: bytes, number: int) -> bool:
        """Whether a spec is accepted in place of the original; an accepted one must make pages."""
        path = self.folder / "specs" / name.replace(f"-{number}.toml", ".toml")
        before = path.read_bytes()
        path.write_bytes(contents.replace(f"{path.stem}-{number}".encode(), path.stem.encode()))
        try:
            if check_specs([self.folder / "specs"]).faults:
                return False
            docs = self.folder / "docs"
            results, cache = [docs / "data/results"], self.folder / ".cache"
            inputs = read_inputs(load_catalogue(self.folder), results, docs, cache)
            site = build(inputs, self.folder / "site_templates")
            for figure in site.figures.values():
                figure.spec()
            # A check of results says the same of those that no spec describes any more.
            of_results = str(results[0])
            strange = [line for line in inputs.problems if not line.startswith(of_results)]
            assert not strange, strange
            return True
        finally:
            path.write_bytes(before)

    def try_all(self, files: dict[str, bytes]) -> str:
        """The fault of a site of the sound specs and these files; empty without a fault."""
        for name, contents in files.items():
            (self.folder / "specs" / name).write_bytes(contents)
        try:
            conflict = self._without_conflicts()
            self._measure(files)
            return conflict or self._site() or self._comment()
        finally:
            git(self.folder, "clean", "--quiet", "--force", "-d", "--", "specs", "docs")

    def _without_conflicts(self) -> str:
        """Remove specs that contradict others, such as two prices of one day."""
        while faults := check_specs([self.folder / "specs"]).faults:
            sound = [one for one in faults if not one.path.is_file()]
            if sound:
                return str(sound[0])
            for path in {one.path for one in faults}:
                self.contradicting.add(f"{path.parent.name}/{path.name}")
                path.unlink()
        return ""

    def _measure(self, files: dict[str, bytes]) -> None:
        """Give some models and machines results and prices, so that charts and tables name them."""
        known: dict[str, list[str]] = {"models": [], "hardware": []}
        for name, contents in files.items():
            kind, own = name.partition("/")[0], tomli.loads(contents.decode())["id"]
            if (self.folder / "specs" / name).is_file() and len(known.get(kind, _FULL)) < _MEASURED:
                known[kind].append(own)
        for identifier in known["hardware"]:
            path = self.folder / f"specs/prices/of-{identifier}.toml"
            path.write_text(_PRICE.format(identifier), "utf-8")
        modes: tuple[Mode, ...] = ("training", "inference")
        results = [make_result(mode=mode, model=one) for mode in modes for one in known["models"]]
        results += [make_result(hardware=one, fingerprint="beef" * 4) for one in known["hardware"]]
        # A mutant without [training] has no training to measure.
        catalogue = load_catalogue(self.folder)
        store_results(self.folder, [r for r in results if not any(missing_specs(r, catalogue))])

    def _site(self) -> str:
        site = self.folder / "site"
        shutil.rmtree(site, ignore_errors=True)
        done = self._run("build", "--strict")
        if done.returncode != 0 or "Traceback" in done.stderr:
            return f"build: {done.stderr[-3000:]}"
        return "\n".join(live_in_site(site)[:20])

    def _comment(self) -> str:
        for form in ("text", "json", "comment"):
            if (done := self._run("diff", "HEAD", "--format", form)).returncode != 0:
                return f"diff: {done.stderr[-3000:]}"
        live = shown(markdown(read_comment(done.stdout.encode()))).live
        return "\n".join(f"comment: {text}" for text in live[:20])

    def _run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "epochcost", *words],
            cwd=self.folder,
            env={
                **os.environ,
                "NO_MKDOCS_2_WARNING": "1",
                # Of this checkout, wherever it was called.
                "PYTHONPATH": f"{ROOT}/runner{os.pathsep}{ROOT}/runner/onnxstep",
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=crowded(_BUILD_SECONDS),
        )

    def require_harmless(self, files: dict[int, tuple[str, bytes]]) -> None:
        """Try all files together; raises AssertionError with a harmful number and its fault."""
        wrong = self.try_all(dict(files.values()))
        numbers = list(files)
        while wrong and len(numbers) > 1:
            half = numbers[: len(numbers) // 2]
            found = self.try_all(dict(files[number] for number in half))
            numbers = half if found else numbers[len(half) :]
            wrong = found or self.try_all(dict(files[number] for number in numbers)) or wrong
        if wrong:
            sys.stderr.write(f"mutation {numbers[0]}\n")
            raise AssertionError(f"{files[numbers[0]]}\n{wrong}")


def run(first: int, count: int) -> collections.Counter[str]:
    """The outcomes of ``count`` damages; raises if one is neither refused nor harmless."""
    found: collections.Counter[str] = collections.Counter()
    kept: dict[int, tuple[str, bytes]] = {}
    with tempfile.TemporaryDirectory() as folder:
        project = Project(Path(folder) / "project")
        for begin in range(first, first + count, _CHECKED_TOGETHER):
            end = min(begin + _CHECKED_TOGETHER, first + count)
            files = {number: damaged(project.specs, number) for number in range(begin, end)}
            accepted = _accepted(project, files)
            found["refused"] += len(files) - len(accepted)
            found["rendered in place of the sound one"] += _rendered(project, files, accepted)
            kept |= {number: files[number] for number in sorted(accepted)}
            if kept and (len(kept) >= _TOGETHER or end == first + count):
                project.require_harmless(kept)
                found["refused beside others"] += len(project.contradicting)
                found.update(
                    f"built of {name.partition('/')[0]}"
                    for name, _ in kept.values()
                    if name not in project.contradicting
                )
                project.contradicting.clear()
                kept = {}
    return found


def _accepted(project: Project, files: dict[int, tuple[str, bytes]]) -> frozenset[int]:
    """The accepted numbers; a number for which the check itself fails is printed."""
    try:
        return project.accepted(files)
    except BaseException:
        for number, file in files.items():
            with _named(number):
                project.accepted({number: file})
        raise


def _rendered(
    project: Project, files: dict[int, tuple[str, bytes]], accepted: frozenset[int]
) -> int:
    """Number of accepted specs, every fortieth, that also make pages in place of the original."""
    count = 0
    for number in accepted:
        if number % _ONE_IN_PLACE_OF == 0:
            with _named(number):
                count += project.require_in_place(*files[number], number)
    return count


@contextlib.contextmanager
def _named(number: int) -> Iterator[None]:
    """Print the number on standard error if the block fails."""
    try:
        yield
    except BaseException:
        sys.stderr.write(f"mutation {number}\n")
        raise


def main() -> None:
    """Run the damages of the command line, and print their outcomes."""
    first, count = map(int, sys.argv[1:])
    for text, times in sorted(run(first, count).items()):
        sys.stdout.write(f"{times:7} {text}\n")


if __name__ == "__main__":
    main()
