"""Kill -9 of real commands at random moments: no file is half-written, no process remains.

    python benchmarks/kills.py {run,build,train} [--count 250] [--folder .cache/kills]

Each command works on a tiny project. It is killed at a random moment, every third time shortly
after a file's writing began, and started again until it ends normally; then it begins from scratch.
After each kill all files must be complete, nothing that existed or was announced may be lost, and
all processes must be gone. At the end no temporary file may remain. The first fault ends the
campaign with its number. The folder stores the progress, so that an interrupted campaign continues.

run    three rounds of three trials; no stored round is lost.
build  a site whose price changes each time; the site is always one of the two, complete.
train  three repeats; no saved step is lost, and the weights are those of an uninterrupted training.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import time
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from epochcost.results.store import load_all, load_sidecars
from epochcost.results.trainings import Trainings
from real_trainings import place_digits
from tiny_project import price_text, write_tiny_project

ROOT = Path(__file__).parents[1]
# On a busy machine; an idle one takes hundredths of a second.
_ENDING_SECONDS = 30
_WRITE_SECONDS = 300
_ANNOUNCED = " a step, "


class Campaign:
    """A tiny project, its temporary folder, and the command that is killed there."""

    command: tuple[str, ...]
    longest_life_seconds = 5.0
    # Longest delay between the start of a write and the kill, in seconds.
    near_a_write_seconds = 0.004

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.project, self.scratch = folder / "project", folder / "tmp"
        self.log = folder / "command.log"
        if not self.project.exists():
            self.scratch.mkdir(parents=True, exist_ok=True)
            self.prepare(write_tiny_project(self.project))

    def prepare(self, project: Path) -> None:
        """Add to the tiny project what the command needs."""

    def partial(self) -> Iterator[Path]:
        """Yield files that are being written."""
        raise NotImplementedError

    def saved(self) -> Any:
        """The stored state, every file of which must be complete."""
        raise NotImplementedError

    def require_kept(self, before: Any, after: Any) -> None:
        """Raise AssertionError if something that was stored before is gone."""
        raise NotImplementedError

    def begin_anew(self) -> None:
        """Check the results of a command that ended normally, and remove them."""
        raise NotImplementedError

    def life(self, number: int) -> tuple[str, float]:
        """Run one command until it is killed or ends; returns its fate and seconds until its end.

        Raises AssertionError if anything is half-written, lost or left over.
        """
        draw, before, end = random.Random(number), self.saved(), "killed"
        with self.log.open("wb") as log:
            process = self.begin(log)
            try:
                end = self._until_the_moment(process, number, draw)
            finally:
                process.kill()
                status = process.wait()
        ending = self._ended()
        if status != -signal.SIGKILL:
            end = "ended before"
            assert status == 0, self.log.read_text("utf-8")
        self.require_kept(before, self.saved())
        return end, ending

    def begin(self, log: Any) -> subprocess.Popen[bytes]:
        """Start the command in a process."""
        return subprocess.Popen(
            [sys.executable, "-m", "epochcost", *self.command],
            cwd=self.project,
            env=os.environ | {"TMPDIR": str(self.scratch), "NO_MKDOCS_2_WARNING": "1"},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )

    def undisturbed(self) -> None:
        """Run the command to its end."""
        with self.log.open("wb") as log:
            assert self.begin(log).wait() == 0, self.log.read_text("utf-8")

    def _until_the_moment(
        self, process: subprocess.Popen[bytes], number: int, draw: random.Random
    ) -> str:
        """Wait for the moment to kill; returns whether a file's writing came before."""
        if number % 3:
            wait = draw.uniform(0, self.longest_life_seconds)
            deadline = time.monotonic() + wait
            while process.poll() is None and time.monotonic() < deadline:
                time.sleep(min(0.02, max(0.0, deadline - time.monotonic())))
            return "killed"
        deadline = time.monotonic() + _WRITE_SECONDS
        while process.poll() is None and not any(self.partial()):
            assert time.monotonic() < deadline, self.log.read_text("utf-8")
        time.sleep(draw.uniform(0, self.near_a_write_seconds))
        return "killed at a write"

    def _ended(self) -> float:
        """Seconds until the last of the command's processes is gone."""
        begun = time.monotonic()
        running = list(self._processes())
        while running and time.monotonic() - begun < _ENDING_SECONDS:
            psutil.wait_procs(running, timeout=0.05)
            running = list(self._processes())
        assert not running, f"processes are left: {[process.cmdline() for process in running]}"
        return time.monotonic() - begun

    def _processes(self) -> Iterator[psutil.Process]:
        """All processes that the command started: each inherits its temporary folder."""
        for process in psutil.process_iter():
            try:
                if process.environ().get("TMPDIR") == str(self.scratch):
                    yield process
            except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
                continue


class Run(Campaign):
    """Three trials of three rounds."""

    command = ("run", "--no-ceilings", "--provider", "cpu", "--rounds", "3", "--resume")
    visits = 9

    @property
    def results(self) -> Path:
        """The folder with the results."""
        return self.project / "docs/data/results"

    def prepare(self, project: Path) -> None:
        """Make the trials short."""
        study = project / "specs/studies/brief.toml"
        text = study.read_text("utf-8")
        study.write_text(text.replace("budget_seconds = 0.5", "budget_seconds = 0.05"), "utf-8")

    def partial(self) -> Iterator[Path]:
        """A result that is being written."""
        return self.results.glob("*/.tiny-*.partial")

    def saved(self) -> dict[str, tuple[int, ...]]:
        """Number of samples of each round of each result."""
        stored = load_all(self.results)
        assert not stored.faults, stored.faults
        return {
            each.trial_id: each.measurement.samples_by_round for each in stored.records.values()
        }

    def require_kept(self, before: Any, after: Any) -> None:
        """Require every earlier round, and each round that was announced since."""
        for trial, rounds in before.items():
            assert after.get(trial, ())[: len(rounds)] == rounds, f"rounds of {trial} are lost"
        gained = sum(map(len, after.values())) - sum(map(len, before.values()))
        lines = self.log.read_text("utf-8", "replace").splitlines()
        announced = sum(_ANNOUNCED in line and "stored before" not in line for line in lines)
        announced = announced if not any("results are in" in line for line in lines) else gained
        assert announced <= gained <= announced + 1, f"{announced} announced, {gained} kept"

    def begin_anew(self) -> None:
        """Remove all results; no temporary file may remain."""
        assert sum(map(len, self.saved().values())) == self.visits
        assert list(self.results.glob("*/.*.partial")) == []
        assert list(self.scratch.glob("epochcost-*")) == []
        shutil.rmtree(self.results)


class Build(Campaign):
    """A site of a project; the price changes with each run."""

    command = ("build",)
    longest_life_seconds = 15.0
    near_a_write_seconds = 1.0
    _prices = ("0.5", "0.75")

    def prepare(self, project: Path) -> None:
        """Build both sites once from scratch."""
        template = ROOT / "runner/epochcost/template"
        shutil.copyfile(template / "mkdocs.yml", project / "mkdocs.yml")
        (project / "docs").mkdir()
        (project / "docs/about.md").write_text("# About\n\nA tiny project.\n", "utf-8")
        sites = {}
        for price in self._prices:
            self._set_price(price)
            self.undisturbed()
            sites[self._digest()] = price
        (self.folder / "sites.json").write_text(json.dumps(sites), "utf-8")

    @property
    def _sites(self) -> Mapping[str, str]:
        """The price of each of the two sites, by the digest of all its files."""
        return dict(json.loads((self.folder / "sites.json").read_text("utf-8")))

    def _set_price(self, price: str) -> None:
        path = self.project / "specs/prices/giant-11-01.toml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(price_text("giant", price), "utf-8")

    def _digest(self) -> str:
        site = self.project / "site"
        names = sorted(path for path in site.rglob("*") if path.is_file())
        digests = (hashlib.sha256(path.read_bytes()).hexdigest() for path in names)
        listed = [
            (path.relative_to(site).as_posix(), digest)
            for path, digest in zip(names, digests, strict=True)
            # contains the time of the build
            if path.name not in {"sitemap.xml", "sitemap.xml.gz"}
        ]
        return hashlib.sha256(json.dumps(listed).encode()).hexdigest()

    def life(self, number: int) -> tuple[str, float]:
        """Run one command, as every campaign does, after a change of the price."""
        self._set_price(self._prices[number % 2])
        return super().life(number)

    def partial(self) -> Iterator[Path]:
        """A page of the new site."""
        return self.project.glob(".site.building-*/new/*.html")

    def saved(self) -> str | None:
        """The price of the site; None between the two renames, when there is no site."""
        if not (self.project / "site").exists():
            return None
        digest = self._digest()
        assert digest in self._sites, "half a site, or another"
        return self._sites[digest]

    def require_kept(self, before: Any, after: Any) -> None:
        """Report a missing site. `saved` checks that an existing site is complete."""
        if after is None and before is not None:
            print("killed between the two renames: no site until the next build", flush=True)

    def begin_anew(self) -> None:
        """The site has the current price, and no temporary file remains."""
        price = (self.project / "specs/prices/giant-11-01.toml").read_text("utf-8")
        assert f"amount = {self.saved()}\n" in price
        assert list(self.project.glob(".site.*")) == []


class Train(Campaign):
    """Three trainings of a perceptron, whose state is saved after each evaluation."""

    command = (
        *("train", "--model", "digits-mlp", "--epochs", "6", "--evaluate-every", "20"),
        *("--repeats", "3", "--save-seconds", "0", "--threads", "1", "--to", "to"),
    )
    longest_life_seconds = 8.0

    def prepare(self, project: Path) -> None:
        """Train without interruption, and store the digests of the weights."""
        for name in ("specs/models/digits-mlp.toml", "specs/datasets/digits.toml"):
            (project / name).parent.mkdir(exist_ok=True)
            shutil.copyfile(ROOT / name, project / name)
        shutil.copyfile(ROOT / "models/digits_mlp.onnx", project / "models/digits_mlp.onnx")
        place_digits(project / "data")
        self.undisturbed()
        (self.folder / "weights.json").write_text(json.dumps(self._weights()), "utf-8")
        self._remove()

    def _weights(self) -> dict[str, str]:
        files = sorted((self.project / "to").rglob("*.onnx"))
        return {
            path.relative_to(self.project).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in files
        }

    def partial(self) -> Iterator[Path]:
        """States, weights or records that are being written."""
        yield from (self.project / "to").rglob("*.partial")
        yield from (self.project / "docs/data/results").rglob("*.partial")

    def saved(self) -> tuple[dict[str, int], list[str]]:
        """The step of each saved state, and the stored repeats."""
        steps = {}
        for path in (self.project / "to").rglob("state.zip"):
            with zipfile.ZipFile(path) as archive:
                assert archive.testzip() is None, f"{path}: half a state"
                document = json.loads(archive.read(archive.namelist()[0]))
            steps[str(path)] = document["progress"]["step"]
        loaded = load_sidecars(self.project / "docs/data/results", Trainings)
        assert not loaded.faults, loaded.faults
        repeats = [each for record in loaded.records.values() for each in record.repeats]
        return steps, [repeat.model_dump_json() for repeat in repeats]

    def require_kept(self, before: Any, after: Any) -> None:
        """Require that no state is older than before, and that no repeat is lost."""
        for path, step in before[0].items():
            assert after[0].get(path, step) >= step, f"{path}: steps are lost"
        assert set(before[1]) <= set(after[1]), "a repeat is lost"

    def begin_anew(self) -> None:
        """The weights equal those of uninterrupted trainings; no temporary file remains."""
        assert self._weights() == json.loads((self.folder / "weights.json").read_text("utf-8"))
        assert not any(self.partial())
        self._remove()

    def _remove(self) -> None:
        shutil.rmtree(self.project / "to")
        shutil.rmtree(self.project / "docs/data/results")


_CAMPAIGNS: Mapping[str, type[Campaign]] = {
    "run": Run,
    "build": Build,
    "train": Train,
}


def main() -> None:
    """Run the remaining kills, and print a summary."""
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("command", choices=_CAMPAIGNS)
    arguments.add_argument("--count", type=int, default=250)
    arguments.add_argument("--folder", type=Path, default=ROOT / ".cache/kills")
    options = arguments.parse_args()
    campaign = _CAMPAIGNS[options.command](options.folder.resolve() / options.command)
    lines = _all_lives(campaign, options.count)
    for end, times in Counter(line.partition(" ")[2] for line in lines).most_common():
        print(f"{times:6} {end}")
    seconds = [float(line.partition(" ")[0]) for line in lines if "killed" in line]
    print(f"the last process was gone after {statistics.median(seconds):.2f} s, ", end="")
    print(f"at most {max(seconds):.2f} s; no half file, nothing lost, nobody left")


def _all_lives(campaign: Campaign, count: int) -> list[str]:
    """Outcome and seconds until the end of each run, read from the folder or run now."""
    progress = campaign.folder / "done.txt"
    lines = progress.read_text("utf-8").splitlines() if progress.exists() else []
    kills = sum("killed" in line for line in lines)
    while kills < count:
        try:
            end, ending = campaign.life(len(lines))
            if end == "ended before":
                campaign.begin_anew()
        except BaseException:
            print(f"life {len(lines)} of {campaign.folder}", file=sys.stderr)
            raise
        lines.append(f"{ending:.3f} {end}")
        with progress.open("a", encoding="utf-8") as file:
            file.write(f"{lines[-1]}\n")
        kills += "killed" in end
        if kills % 50 == 0:
            print(f"{kills} kills", flush=True)
    return lines


if __name__ == "__main__":
    main()
