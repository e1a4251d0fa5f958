"""Generate the reference of all commands, docs/reference/commands.md, from the program."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from epochcost.cli.app import COMMANDS, load_command

_INTRODUCTION = """\
# Commands

This page lists all commands of `epochcost` with their options. `make schemas` generates this page.
`epochcost COMMAND --help` prints the same text.

Exit codes: 0 done; 1 the input is invalid; 2 the options are invalid or contradict each other;
3 the machine lacks something, such as a GPU, memory or disk; 130 interrupted.
"""


def commands_page() -> str:
    """Render a Markdown page with purpose, arguments, options and an example of each command."""
    lines = (line for name in COMMANDS for line in _command_lines(name, load_command(name)))
    return "\n".join((_INTRODUCTION, *lines))


def _command_lines(name: str, command: Any) -> Iterator[str]:
    for subname, subcommand in sorted(getattr(command, "commands", {}).items()):
        yield from _command_lines(f"{name} {subname}", subcommand)
    if hasattr(command, "commands"):
        return
    yield f"## epochcost {name}\n\n{command.help}\n"
    context = command.context_class(command, info_name=name)
    records = (option.get_help_record(context) for option in command.params)
    yield "| option | meaning |\n|---|---|"
    yield from (_row(*record) for record in records if record)
    example = command.epilog.splitlines()[-1].strip()
    yield f"\n```console\n$ {example}\n```\n"


def _row(option: str, meaning: str) -> str:
    name, meaning = (text.replace("|", "\\|") for text in (option, meaning))
    return f"| `{name}` | {' '.join(meaning.split())} |"
