"""Help, shell completion and documents agree with the commands."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from epochcost.cli.app import COMMANDS, app, load_command
from epochcost.cli.commands_page import commands_page

ROOT = Path(__file__).parents[2]
LOADED: dict[str, Any] = {name: load_command(name) for name in COMMANDS}
DOCUMENTS = (
    ROOT / "README.md",
    ROOT / "runner/epochcost/template/README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs/how-to").glob("*.md")),
    *sorted((ROOT / "docs/explanation").glob("*.md")),
)
_CONSOLE = re.compile(r"^```(?:console|sh|bash)[^\n]*\n(.*?)^```$", re.M | re.S)
_INLINE = re.compile(r"`(epochcost [a-z][^`\n]*)`")


def _names() -> Iterator[str]:
    for name, command in LOADED.items():
        yield from (f"{name} {inner}" for inner in getattr(command, "commands", ()))
        if not hasattr(command, "commands"):
            yield name


NAMES = tuple(_names())


def _parse(line: str) -> None:
    """Parse a command line without converting values; an unknown option raises."""
    arguments = shlex.split(line, comments=True)
    arguments = arguments[
        arguments.index(next(word for word in arguments if Path(word).name == "epochcost")) + 1 :
    ]
    command, commands = None, LOADED
    while commands and arguments and not arguments[0].startswith("-"):
        assert arguments[0] in commands, f"{line}: no command {arguments[0]}"
        command, arguments = commands[arguments[0]], arguments[1:]
        commands = getattr(command, "commands", {})
    if arguments != ["--help"]:
        _parse_options(line, command, arguments)


def _parse_options(line: str, command: Any, arguments: Sequence[str]) -> None:
    context = command.context_class(command, info_name=line)
    _, rest, _ = command.make_parser(context).parse_args([*arguments])
    takes_more = any(p.param_type_name == "argument" and p.nargs == -1 for p in command.params)
    assert takes_more or not rest, f"{line}: {rest} left over"


def _lines(path: Path) -> list[str]:
    text = path.read_text("utf-8")
    typed = [
        line.removeprefix("$ ")
        for block in _CONSOLE.findall(text)
        for line in block.replace("\\\n", " ").splitlines()
        if re.match(r"\$ (\S*/)?epochcost ", line)
    ]
    return typed + _INLINE.findall(text)


def test_the_list_of_commands_quotes_their_help() -> None:
    """The list has the first line of each command's help."""
    assert {name: command.help.splitlines()[0] for name, command in LOADED.items()} == COMMANDS


def test_a_wrong_name_has_a_suggestion() -> None:
    """A misspelt command is answered with the command that it resembles."""
    result = CliRunner().invoke(app, ["plam"])
    assert result.stderr.endswith("No such command 'plam'. Did you mean 'plan'?\n")


@pytest.mark.parametrize("name", NAMES)
def test_help_ends_with_an_example(name: str) -> None:
    """The last line of each command's help is an example that parses."""
    result = CliRunner().invoke(app, [*name.split(), "--help"], env={"COLUMNS": "79"})
    assert result.exit_code == 0
    example = result.stdout.partition("Example:\n")[2].strip()
    assert example.startswith(f"epochcost {name}")
    assert "\n" not in example
    _parse(example)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_documents_use_commands_that_exist(path: Path) -> None:
    """Each command line in a document has existing commands and options."""
    for line in _lines(path):
        _parse(line)


@pytest.mark.parametrize(
    "line",
    [
        "epochcost plan --modle x",
        "epochcost plam",
        "epochcost schema docs",
        "epochcost quote --price",
    ],
)
def test_a_wrong_line_would_be_found(line: str) -> None:
    """An unknown option or command, an extra word and a missing value are errors."""
    with pytest.raises(Exception, match=r"modle|plam|left over|requires an argument"):
        _parse(line)


@pytest.mark.parametrize(
    ("shell", "arguments", "expected"),
    [
        ("bash", "plan --study st", "starter"),
        ("bash", "quote --price p3.2xlarge-on-demand-2022", "p3.2xlarge-on-demand-2022-10"),
        ("bash", "new price --hardware p3.2", "p3.2xlarge"),
        ("bash", "sch", "schema"),
        ("zsh", "run --model mnist-c", "mnist-cnn"),
        ("fish", "break-even --own assumed-w", "assumed-workstation-1x-a6000"),
    ],
)
def test_shells_complete(shell: str, arguments: str, expected: str) -> None:
    """Each shell offers commands and ids of specs."""
    line = f"epochcost {arguments}"
    environment = {
        "_EPOCHCOST_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(line.split()) - 1),
        "_TYPER_COMPLETE_ARGS": line,
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    command = [Path(sys.executable).with_name("epochcost")]
    process = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert expected in re.split(r"[\s\"()\t:]+", process.stdout)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_are_given_their_script(shell: str) -> None:
    """`_EPOCHCOST_COMPLETE=source_SHELL epochcost` prints the shell's start script."""
    environment = {**os.environ, "_EPOCHCOST_COMPLETE": f"source_{shell}"}
    command = [Path(sys.executable).with_name("epochcost")]
    process = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert f"complete_{shell}" in process.stdout


def test_the_reference_of_commands_is_current() -> None:
    """The committed page equals the page that the program generates."""
    committed = (ROOT / "docs/reference/commands.md").read_text("utf-8")
    assert committed == commands_page(), "run: make schemas"
