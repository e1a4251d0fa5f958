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
import datetime as dt
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import tomli
import tomlkit
import tomlkit.exceptions

from crowding import crowded
from epochcost.analysis.inputs import missing_spec, read_inputs
from epochcost.cli.check import check_specs
from epochcost.cli.request_comment import markdown, read_comment
from epochcost.report.site import build
from epochcost.specs.base import ordered_keys_of
from epochcost.specs.catalogue import KINDS
from epochcost.specs.loader import load_catalogue
from epochcost.specs.study import Mode
from fault_words import is_ours
from live_text import live_in_site
from report_project import make_result, store_results, write_project
from revisions import git
from shown_comment import shown

ROOT = Path(__file__).parents[1]
# Specs of this project that together have every key that any has; what they name comes with them.
_REAL = {
    "datasets": "cifar-10 digits markov-text mnist shakespeare-characters textured-shapes",
    "devices": "geforce-gtx-1080-ti l4",
    "hardware": "c4.8xlarge cloud-ml-basic-gpu g6.12xlarge gcp-tpu-v2-8 gcp-v100 lambda-1x-gh200",
    "models": "bert-1.5b chinchilla cifar10-resnet44 elmo gpt2-decoder imdb-bidirectional-lstm "
    "lstm-char-cnn-small markov-gru minilm-l6-pairs resnet50-fine-tune-head transformer-base",
    "observations": "mlperf-inference tensorflow-2017",
    "prices": "a2-highgpu-1g-committed-use-1y-2024-06 assumed-server-8x-a100-80gb "
    "assumed-spot-a2-highgpu-1g cloud-ml-basic-gpu-managed-2018-01 n1-highcpu-16-spot-2017-07 "
    "p4d.24xlarge-on-demand-2022-10 rescale-worker-on-demand-2016-11",
    "published": "ai21-2020 kroutikov-2016 malta-2019 strubell-2019 strubell-2019-project",
    "replays": "made-three-zones",
    "studies": "one-gpu-precisions one-gpu-tokens starter token-requests-fp32 two-vcpus",
}
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
_MORE = {
    "grids/here": """
        id = "here"
        name = "Here"
        kg_co2e_per_kwh = 0.05
        year = 2023
        source = "a table"
    """,
    "datasets/digits": """
        id = "digits"
        name = "Digits"
        example = "an image"
        shape = "28 x 28"
        training_examples = 60_000
        held_out_examples = 10_000
        classes = 10
        source = "a count"
    """,
    "apis/somewhere": """
        id = "somewhere"
        name = "A model"
        provider = "Somewhere"
        input_per_million = 1.25
        cached_input_per_million = 0.25
        output_per_million = 10
        as_of = 2025-10-01
        source = "a list"
    """,
    "studies/brief": """
        id = "brief"
        name = "Brief"
        models = ["net"]
        hardware = ["local"]
        [budget]
        limits = [{ model = "net", goal = "epoch", at_most = 0.01 }]
    """,
}
# Each would do something, or stand out, wherever it were read as more than text.
_HOSTILE = (
    *("<hax>", "</title><script>hax()</script>", "<img src=x onerror=hax()>", "<svg onload=hax()>"),
    *("</template><script>hax()</script>", "<a href=javascript:hax()>hax</a>", "<base href=//hax>"),
    *(
        "<meta http-equiv=refresh content=0;//hax>",
        "<style>hax</style>",
        "<?php hax ?>",
        "</style>",
    ),
    *('" onmouseover=hax() x="', "' onmouseover=hax() x='", "]]>", "-->", "<!-- hax", "</script>"),
    *("{{ 6007*7001 }}", "{% raise %}", "{# hax #}", "${hax}", "datum.hax", "<javascript:hax()>"),
    *("**hax**", "_hax_", "`hax`", "~~hax~~", "^^hax^^", "^hax^", "==hax==", "++hax++", ":smile:"),
    *("[hax](javascript:hax())", "![hax](javascript:hax())", "[hax]: javascript:hax()", "[hax]"),
    *("{: onclick=hax() .hax }", "*[a]: hax", "[^1]: hax", "[^1]", '--8<-- "/etc/passwd"', "$hax$"),
    *("&lt;script&gt;hax()&lt;/script&gt;", "&#60;img src=x onerror=hax()&#62;", "&#64;hax", "\\`"),
    *("\n\n# hax\n\n- hax\n", "\n---\nhide: hax\n---\n", "| hax | hax |", "\\", "'''", '"""', "\t"),
    *("\u2028", "\u202ehax\u202c", "\u200b", "\ufeff", "\u05d0\u05d1", "\0", "\x1b[31mhax", "\r\n"),
    *('=HYPERLINK("hax")', " =hax", "\u00a0+hax", "@hax #1 GH-1 us/costs#1", "%0a%0dhax"),
    *("javascript:hax()", "java\nscript:hax()", "data:text/html,<script>hax()</script>"),
    *('https://hax.example/"onclick=hax()', "https://[hax", "//hax.example", "x" * 3000),
    *("x" * 250, "x" * 2000, "\u00e9" * 130, "\u963f\u91cc", "x/" * 100, "../x", ".", "-"),
    "http://hax@hax.example/<b>?a=1&b=2#<i>",
)
_NUMBERS = (
    0, 1, -1, 2, 7, 1e-12, 0.5, 1e15, 1e-300, 1e308, -0.0, float("inf"), float("nan"), 2**31, 2**53,
    2**63, 10**20, 365, 1000, 1_000_000,
)  # fmt: skip
_DATES = (dt.date.min, dt.date.max, dt.date(1970, 1, 1), dt.date(2016, 11, 1), dt.date(2026, 7, 1))
Place = tuple[Any, Any, tuple[str, ...]]


def corpus(folder: Path) -> list[tuple[str, str, str]]:
    """The specs of a project to damage, as kind, id and text; missing kinds are added."""
    for name, text in _MORE.items():
        path = folder / "specs" / f"{name}.toml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
    _copy_real(folder / "specs")
    paths = sorted((folder / "specs").rglob("*.toml"))
    return [(path.parent.name, path.stem, path.read_text("utf-8")) for path in paths]


def _copy_real(specs: Path) -> None:
    """Copy specs of this repository, the specs that they name, and the tables of their kinds."""
    real = ROOT / "specs"
    left = {real / kind / f"{name}.toml" for kind in _REAL for name in _REAL[kind].split()}
    copied: set[Path] = set()
    while left:
        file = left.pop()
        copied.add(file)
        copy = specs / file.relative_to(real)
        copy.parent.mkdir(exist_ok=True)
        shutil.copyfile(file, copy)
        named = set(re.findall(r'"([a-z0-9][a-z0-9._-]*)"', file.read_text("utf-8")))
        ids = {f"{kind}/{name}.toml" for kind in KINDS for name in named}
        left |= {path for name in ids if (path := real / name).is_file()} - copied
    for table in real.rglob("*.csv"):
        if (specs / table.parent.name).is_dir():
            shutil.copyfile(table, specs / table.relative_to(real))


def damaged(specs: Sequence[tuple[str, str, str]], number: int) -> tuple[str, bytes]:
    """The name and contents of the file with this number, equal at each call."""
    rng = random.Random(number)
    kind, identifier, text = rng.choice(specs)
    own = f"{identifier}-{number}"
    tree = tomli.loads(text)
    for _ in range(rng.choice((1, 1, 2, 3, 5))):
        places = list(_places(tree, ()))
        if places:
            rng.choice((_hostile, _hostile, _hostile, _number, _key, _other))(
                rng.choice(places), kind, rng
            )
    if "id" in tree and tree["id"] == identifier:
        tree["id"] = own
    try:
        contents = tomlkit.dumps(tree).encode()
    except (ValueError, TypeError, UnicodeError, tomlkit.exceptions.TOMLKitError):
        contents = text.encode()  # TOML has no such value
    if rng.random() < 0.05:
        at = rng.randrange(len(contents))
        contents = contents[:at] + rng.randbytes(rng.choice((0, 1, 4))) + contents[at + 1 :]
    return f"{kind}/{own}.toml", contents


def _places(value: Any, path: tuple[str, ...]) -> Any:
    """Every entry of tables and arrays: its holder, its key, and the path of keys to the holder."""
    entries = value.items() if isinstance(value, dict) else enumerate(value)
    for key, one in list(entries):
        yield value, key, path
        if isinstance(one, dict | list):
            yield from _places(one, (*path, key) if isinstance(key, str) else path)


def _words(rng: random.Random) -> str:
    parts = rng.choices(_HOSTILE, k=rng.choice((1, 1, 2, 3, 6)))
    return rng.choice(("", " ", "\n", "a ")).join(parts)


def _hostile(place: Place, _: str, rng: random.Random) -> None:
    """Replace or extend a text by hostile text."""
    holder, key, _ = place
    if isinstance(holder[key], str) or rng.random() < 0.1:
        holder[key] = _words(rng) if rng.random() < 0.8 else f"{holder[key]}{_words(rng)}"


def _number(place: Place, _: str, rng: random.Random) -> None:
    holder, key, _ = place
    if isinstance(holder[key], int | float) or rng.random() < 0.1:
        holder[key] = rng.choice(_NUMBERS)
    elif isinstance(holder[key], dt.date):
        holder[key] = rng.choice(_DATES)


def _key(place: Place, kind: str, rng: random.Random) -> None:
    """Add or remove a key that such a table may have, or an item of an array."""
    holder, key, path = place
    if isinstance(holder, list):
        holder.append(holder[key]) if rng.random() < 0.5 else holder.pop(key)
    elif rng.random() < 0.3:
        del holder[key]
    else:
        known = [*ordered_keys_of(KINDS[kind], path), "hax"]
        value = rng.choice((_words(rng), rng.choice(_NUMBERS), rng.choice(_DATES), True, [], {}))
        holder[rng.choice(known)] = value


def _other(place: Place, _: str, rng: random.Random) -> None:
    """Replace a value by one of another type."""
    holder, key, _ = place
    one = holder[key]
    holder[key] = rng.choice(
        ([one], {"hax": one}, str(one), [], {}, True, _words(rng), [_words(rng)])
    )


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
        assert refused <= set(paths.values()), f"faults of sound specs: {faults}"
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
        store_results(self.folder, [r for r in results if not missing_spec(r, catalogue)])

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
