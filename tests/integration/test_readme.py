"""The README's commands answer, its links lead to files, and it is short."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
# Measuring and building take minutes; other tests cover them.
SLOW_COMMANDS = {"run", "build"}


def blocks(language: str) -> list[str]:
    """The fenced blocks of one language."""
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def epochcost_commands() -> list[list[str]]:
    """The arguments of every `epochcost` line of the console blocks, comments dropped."""
    lines = [line.partition("#")[0] for block in blocks("console") for line in block.splitlines()]
    commands = [shlex.split(line.removeprefix("$ ")) for line in lines if line.startswith("$ ")]
    return [line[1:] for line in commands if line and Path(line[0]).name == "epochcost"]


def make_targets() -> list[str]:
    """The make targets in the README."""
    return sorted(set(re.findall(r"(?:\$ |`)make ([a-z-]+)", README)))


@pytest.mark.parametrize("arguments", epochcost_commands(), ids=" ".join)
def test_the_commands_answer(arguments: list[str], tmp_path: Path) -> None:
    """Each command runs, or, if it takes minutes, has these options."""
    if arguments[0] in SLOW_COMMANDS:
        arguments = [arguments[0], "--help"]
    if arguments == ["plan"]:  # takes a minute for the whole catalogue
        arguments = ["plan", "--study", "starter"]
    if arguments[0] == "train":  # its files must not be added to this project's results
        arguments = [*arguments, "--to", str(tmp_path), "--results", str(tmp_path / "results")]
    command = [sys.executable, "-m", "epochcost", *arguments]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    assert process.stdout.strip() or process.stderr.strip()


def test_the_make_targets_exist() -> None:
    """Every target that the README names is in the Makefile."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert make_targets()
    for target in make_targets():
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_the_linked_files_exist() -> None:
    """Every relative link and picture of the README exists."""
    for link in re.findall(r"\]\(([^)#]+)[^)]*\)", README):
        if "://" not in link:
            assert (ROOT / link).exists(), link


def test_it_is_short_and_begins_with_the_two_commands() -> None:
    """At most 700 words, and the first console block is `make report` and `make test`."""
    assert len(README.split()) <= 700
    commands = [line.partition("#")[0].strip() for line in blocks("console")[0].splitlines()]
    assert commands == ["$ make report", "$ make test"]
