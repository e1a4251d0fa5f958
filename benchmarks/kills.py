"""A thousand kill -9 of a real run at random moments: what was kept stays whole, nobody is left.

    python benchmarks/kills.py [--count 1000] [--folder .cache/kills]

A tiny project is measured in nine visits, three rounds of three trials. The program is killed at a
moment drawn for its number, every third time within a few milliseconds of a file's writing, and
begun again with --resume, until all is measured; then all results are removed and it begins anew.
After each kill every result is whole, no round that was there or was announced is lost, and all
processes are gone; where all is measured, no temporary file is left. The first fault ends it with
its number. What was done stands in the folder, so that it goes on where it was ended.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from epochcost.results.store import load_all
from tiny_project import write_tiny_project

ROOT = Path(__file__).parents[1]
_ROUNDS, _VISITS = 3, 9
_LONGEST_LIFE_SECONDS = 5.0
_NEAR_A_WRITE_SECONDS = 0.004
# On a busy machine; an idle one takes hundredths of a second.
_ENDING_SECONDS = 30
_WRITE_SECONDS = 120
_RUN = ("run", "--no-ceilings", "--provider", "cpu", "--rounds", str(_ROUNDS), "--resume")
Rounds = dict[str, tuple[tuple[float, ...], ...]]


class Campaign:
    """A tiny project, its temporary folder, and what is known of its results."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.project, self.scratch = folder / "project", folder / "tmp"
        self.results = self.project / "docs/data/results"
        self._log = folder / "run.log"
        if not self.project.exists():
            self.scratch.mkdir(parents=True, exist_ok=True)
            study = write_tiny_project(self.project) / "specs/studies/brief.toml"
            text = study.read_text("utf-8")
            study.write_text(text.replace("budget_seconds = 0.5", "budget_seconds = 0.05"), "utf-8")

    def life(self, number: int) -> tuple[str, float]:
        """One run that is killed, or ended before; what became of it, and how long ending took.

        Raises AssertionError for anything half, lost or left.
        """
        draw = random.Random(number)
        before, end = self.rounds(), "killed"
        with self._log.open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "epochcost", *_RUN],
                cwd=self.project,
                env=os.environ | {"TMPDIR": str(self.scratch)},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            try:
                end = self._until_the_moment(process, number, draw)
            finally:
                process.kill()
                status = process.wait()
        ending = self._ended()
        if status != -signal.SIGKILL:
            end = "ended before"
            assert status == 0, self._log.read_text("utf-8")
        self._require_kept(before, self.rounds())
        return end, ending

    def _until_the_moment(
        self, process: subprocess.Popen[bytes], number: int, draw: random.Random
    ) -> str:
        """Wait for the number's moment; ``writing`` where that is beside a file's writing."""
        if number % 3:
            wait = draw.uniform(0, _LONGEST_LIFE_SECONDS)
            deadline = time.monotonic() + wait
            while process.poll() is None and time.monotonic() < deadline:
                time.sleep(min(0.02, max(0.0, deadline - time.monotonic())))
            return "killed"
        deadline = time.monotonic() + _WRITE_SECONDS
        while process.poll() is None and not any(self._partial()):
            assert time.monotonic() < deadline, self._log.read_text("utf-8")
        time.sleep(draw.uniform(0, _NEAR_A_WRITE_SECONDS))
        return "killed at a write"

    def _partial(self) -> Iterator[Path]:
        return self.results.glob("*/.tiny-*.partial")

    def rounds(self) -> Rounds:
        """The samples of each round of each result; every file has to be whole."""
        stored = load_all(self.results).results
        return {one.trial_id: one.measurement.samples_by_round for one in stored}

    def _require_kept(self, before: Rounds, after: Rounds) -> None:
        for trial, rounds in before.items():
            assert after.get(trial, ())[: len(rounds)] == rounds, f"rounds of {trial} are lost"
        gained = sum(map(len, after.values())) - sum(map(len, before.values()))
        said = self._log.read_text("utf-8", "replace").splitlines()
        announced = sum(" a step, " in line and "stored before" not in line for line in said)
        announced = announced if not any("results are in" in line for line in said) else gained
        assert announced <= gained <= announced + 1, f"{announced} announced, {gained} kept"

    def _ended(self) -> float:
        """Seconds until the last of the processes is gone."""
        begun = time.monotonic()
        left = list(self._processes())
        while left and time.monotonic() - begun < _ENDING_SECONDS:
            psutil.wait_procs(left, timeout=0.05)
            left = list(self._processes())
        assert not left, f"processes are left: {[one.cmdline() for one in left]}"
        return time.monotonic() - begun

    def _processes(self) -> Iterator[psutil.Process]:
        """All that a run started: each inherits its temporary folder."""
        for process in psutil.process_iter():
            try:
                if process.environ().get("TMPDIR") == str(self.scratch):
                    yield process
            except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
                continue

    def begin_anew(self) -> None:
        """Remove all results after a run that found its end; nothing temporary may be left."""
        assert sum(map(len, self.rounds().values())) == _VISITS
        assert list(self.results.glob("*/.*.partial")) == []
        assert list(self.scratch.glob("epochcost-*")) == []
        shutil.rmtree(self.results)


def main() -> None:
    """Kill as often as asked, less what was done before, and say what came of it."""
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--count", type=int, default=1000)
    arguments.add_argument("--folder", type=Path, default=ROOT / ".cache/kills")
    asked = arguments.parse_args()
    campaign = Campaign(asked.folder.resolve())
    done = campaign.folder / "done.txt"
    lines = done.read_text("utf-8").splitlines() if done.exists() else []
    kills = sum("killed" in line for line in lines)
    while kills < asked.count:
        number = len(lines)
        try:
            end, ending = campaign.life(number)
            if end == "ended before":
                campaign.begin_anew()
        except BaseException:
            print(f"run {number} of {campaign.folder}", file=sys.stderr)
            raise
        lines.append(f"{ending:.3f} {end}")
        with done.open("a", encoding="utf-8") as file:
            file.write(f"{lines[-1]}\n")
        kills += "killed" in end
        if kills % 50 == 0:
            print(f"{kills} kills", flush=True)
    for end, times in Counter(line.partition(" ")[2] for line in lines).most_common():
        print(f"{times:6} {end}")
    seconds = [float(line.partition(" ")[0]) for line in lines if "killed" in line]
    print(f"the last process was gone after {statistics.median(seconds):.2f} s, ", end="")
    print(f"at most {max(seconds):.2f} s; no half file, no lost round, nobody left")


if __name__ == "__main__":
    main()
