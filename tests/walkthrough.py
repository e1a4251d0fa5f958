"""Carry out the steps of a documentation page: write its files and run its commands.

A fenced block with a title is a file with that name. Lines of a console block that begin with `$ `
are commands, and the lines below a command are its expected output, in this order. `…` matches any
text. A Python block without a title is run. No step of a page is left out, except steps that the
page's `skip` names.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
_BLOCK = re.compile(r"^```(?P<language>\w+)(?P<options>[^\n]*)\n(?P<text>.*?)^```$", re.M | re.S)


@dataclass(frozen=True)
class Command:
    """A command line and its expected output."""

    words: str
    printed: tuple[str, ...]


@dataclass(frozen=True)
class File:
    """A file to write. A Python block without a title has an empty path and is run."""

    path: str
    text: str


def steps(page: Path, heading: str = "") -> list[Command | File]:
    """The steps of a page in order; with ``heading`` only the steps under that heading.

    Raises ValueError if the page has no such heading.
    """
    text = page.read_text("utf-8")
    if heading:
        _, title, rest = text.partition(f"\n## {heading}\n")
        if not title:
            raise ValueError(f"{page} has no heading '{heading}'")
        text = rest.partition("\n## ")[0]
    return [step for block in _BLOCK.finditer(text) for step in _of_block(block)]


def _of_block(block: re.Match[str]) -> list[Command | File]:
    title = re.search(r'title="([^"]+)"', block["options"])
    if title:
        return [File(title[1], block["text"])]
    if block["language"] == "python":
        return [File("", block["text"])]
    return list(_commands(block["text"])) if block["language"] == "console" else []


def _commands(text: str) -> list[Command]:
    found: list[Command] = []
    for line in text.replace("\\\n", "").splitlines():
        if line.startswith("$ "):
            found.append(Command(line[2:].partition("  #")[0], ()))
        elif found and line.strip():
            found[-1] = Command(found[-1].words, (*found[-1].printed, line))
    return found


def do(step: Command | File, folder: Path) -> str:
    """Carry out one step in a folder and return the printed text.

    Raises AssertionError if a command fails or does not print what the page shows.
    """
    if isinstance(step, File) and step.path:
        (folder / step.path).parent.mkdir(parents=True, exist_ok=True)
        (folder / step.path).write_text(step.text, "utf-8")
        return ""
    words = (
        [sys.executable, "-c", step.text] if isinstance(step, File) else ["sh", "-c", step.words]
    )
    done = subprocess.run(
        words, cwd=folder, env=_environment(folder), capture_output=True, text=True, check=False
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, f"{step}\n{said}"
    if isinstance(step, Command):
        _shown(step, said)
    return said


def _environment(folder: Path) -> dict[str, str]:
    """Variables: this environment's programs first, wide output, and caches in the folder."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    caches = str(folder / ".cache")
    return {**os.environ, "PATH": path, "COLUMNS": "200", "XDG_CACHE_HOME": caches}


def _shown(command: Command, said: str) -> None:
    """Require that the printed text contains the page's lines in order."""
    pattern = r"[\s\S]*?".join(_pattern(line) for line in command.printed)
    assert re.search(pattern, _spaced(said)), (
        f"`{command.words}` printed\n{said}\nand the page shows\n" + "\n".join(command.printed)
    )


def _pattern(line: str) -> str:
    return "[^\n]*?".join(re.escape(part) for part in _spaced(line).split("…"))


def _spaced(text: str) -> str:
    """The text with single spaces in each line, so that widths of columns do not matter."""
    return "\n".join(re.sub(r"[ \t]+", " ", line).strip() for line in text.splitlines())
