"""The `epochcost` program: import and run the requested command, and turn errors into messages."""

from __future__ import annotations

import contextlib
import gc
import inspect
import io
import os
import sys
import warnings
from collections.abc import Mapping
from importlib import import_module
from typing import Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperCommand, TyperGroup

from epochcost import __version__
from epochcost.cli.interruption import INTERRUPTED, ended_by_signals, interrupted_by_signals
from epochcost.errors import CapabilityError, EpochcostError, ModelWarning

# Each command and the first line of its help: the list of commands imports no command.
COMMANDS: Mapping[str, str] = {
    "break-even": "Show the hours of use a month above which buying is cheaper than renting.",
    "build": "Build the site from the specs and results.",
    "ceilings": "Measure this machine's highest rates of arithmetic and of memory traffic.",
    "cheapest": "Show where a model costs least, and what would change this choice.",
    "check": "Validate specs, results or budgets, and list their faults.",
    "data": "Fetch or import the files of data sets, and list them.",
    "diff": "Show which costs change between two git revisions, and why.",
    "engine": "Fetch the engine that serves language models.",
    "finetune": "Show what fine-tuning or pre-training a language model costs.",
    "init": "Create a project for your own models and prices.",
    "launch": "Measure studies on other machines: by SSH, on a Slurm cluster, in a cloud.",
    "plan": "Show the trials that `run` would measure here.",
    "quote": "Show the bill for a duration of use, line by line.",
    "results": "Import results of other benchmarking tools.",
    "run": "Measure the models of the studies on this machine.",
    "schema": "Write JSON Schemas of the specs, for hints in an editor.",
    "serve": "Preview the site, rebuilt at every change.",
    "tokens": "Show what a million tokens cost at your traffic.",
    "train": "Train a model on real data to an accuracy, and show the cost.",
    "trust": "Compute the errors of predictions that the site quotes.",
    "weightless": "Write a copy of an ONNX file without the weights.",
    "new": "Write a new spec from options, a machine or a graph.",
    "prices": "Import published price tables as specs.",
}
# The modules of commands whose module has another name.
_MODULES = {"init": "project", "schema": "project", "serve": "build"}
# NumPy's BLAS loads with a command; on matrices of a thousand rows, its threads wait longer than
# they compute.
_PREDICTING = frozenset({"build", "cheapest", "diff", "finetune", "serve", "trust"})
# Objects before Python's garbage collector searches for cycles: our records form none.
_MANY_OBJECTS = 100_000


def load_command(name: str) -> Any:
    """Import the module of a command, or of a group of commands, and return the command."""
    # Imported here: the list of commands does not need it.
    from epochcost.cli.refusals import PlainCommand  # noqa: PLC0415

    if name in _PREDICTING:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    identifier = name.replace("-", "_")
    # Objects of modules live to the end; searches for cycles need not visit them.
    gc.disable()
    with ended_by_signals():
        module = import_module(f"epochcost.cli.{_MODULES.get(name, identifier)}")
    gc.freeze()
    gc.enable()
    gc.set_threshold(_MANY_OBJECTS)
    program = typer.Typer(rich_markup_mode=None)
    # A group of commands is the ``app`` of its module.
    if hasattr(module, "app"):
        program.add_typer(module.app, name=name)
    else:
        program.command(name)(getattr(module, identifier))
    _set_class_and_example(program, PlainCommand)
    return typer.main.get_group(program).commands[name]


def _set_class_and_example(app: typer.Typer, command_class: type[TyperCommand]) -> None:
    """Set the class of each command of ``app``, and show its docstring's example below its help."""
    for command in app.registered_commands:
        text = inspect.getdoc(command.callback) or ""
        command.help, _, example = text.partition("\n\nExample: ")
        command.cls = command_class
        # The mark \b keeps the line breaks.
        command.epilog = f"\b\nExample:\n  {' '.join(example.split())}"
    for group in app.registered_groups:
        if group.typer_instance is not None:
            _set_class_and_example(group.typer_instance, command_class)


class _LazyCommandGroup(TyperGroup):
    """Lists all commands, but imports only the command that runs."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for name, line in COMMANDS.items():
            self.add_command(TyperCommand(name, help=line))

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, listed, rest = super().resolve_command(ctx, args)
        return name, listed and load_command(str(name)), rest

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            # Click would end the program without a word.
            typer.echo("interrupted", err=True)
            raise typer.Exit(INTERRUPTED) from None


app = typer.Typer(
    cls=_LazyCommandGroup,
    name="epochcost",
    help="Show what a model costs to train and to serve, on which machine, at which price.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _show_version(requested: bool) -> None:
    if requested:
        typer.echo(f"epochcost {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show version.")
    ] = False,
) -> None:
    """Show what a model costs to train and to serve, on which machine, at which price."""


def main() -> None:
    """Run the program; turn every expected failure into a message and an exit code."""
    _replace_unprintable_characters()
    warnings.formatwarning = _format_warning
    errors = Console(stderr=True, soft_wrap=True, markup=False, highlight=False)
    try:
        with interrupted_by_signals():
            app()
    except EpochcostError as error:
        errors.print(f"{error}")
        sys.exit(error.exit_code)
    except ModuleNotFoundError as error:
        errors.print(_missing_package_message(error))
        sys.exit(CapabilityError.exit_code)
    except OSError as error:
        errors.print(f"{error.filename or 'output'}: {error.strerror or error}")
        _discard_unwritten_output()
        sys.exit(CapabilityError.exit_code)
    except KeyboardInterrupt:
        errors.print("interrupted")
        sys.exit(INTERRUPTED)


_standard_warning = warnings.formatwarning


def _format_warning(
    message: Warning | str, category: type[Warning], *place: Any, **line: Any
) -> str:
    if issubclass(category, ModelWarning):
        return f"warning: {message}\n"
    return _standard_warning(message, category, *place, **line)


def _missing_package_message(error: ModuleNotFoundError) -> str:
    """How to install the missing package; raises ``error`` again if the package is our own."""
    if (error.name or "").startswith(("epochcost", "onnxstep")):
        raise error
    return (
        f"expected the packages that measure; {error.name} is not installed: "
        "`pip install -r requirements/run.txt`, or the extra `epochcost[run]`"
    )


def _replace_unprintable_characters() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _discard_unwritten_output() -> None:
    # Python would try to write the output again at exit.
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
