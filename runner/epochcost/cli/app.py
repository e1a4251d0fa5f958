"""The `epochcost` program: its commands, and how an error ends them.

Every expected failure is an EpochcostError: its message goes to standard error, its exit code to
the shell, and a traceback never to a person.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from typing import Annotated

import typer
from rich.console import Console

from epochcost import __version__
from epochcost.cli import (
    break_even,
    build,
    ceilings,
    cheapest,
    check,
    diff,
    estimate,
    fmt,
    init,
    new,
    plan,
    prices,
    quote,
    run,
    runtimes,
    schema,
    train_graph,
)
from epochcost.cli.examples import show_examples
from epochcost.cli.interruption import interrupted_by_signals
from epochcost.errors import CapabilityError, EpochcostError

app = typer.Typer(
    name="epochcost",
    help="What a model costs to train and to serve, on which machine, at which price.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
_INTERRUPTED = 130


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"epochcost {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show version.")
    ] = False,
) -> None:
    """What a model costs to train and to serve, on which machine, at which price."""


app.command("break-even")(break_even.break_even)
app.command("build")(build.build)
app.command("ceilings")(ceilings.ceilings)
app.command("cheapest")(cheapest.cheapest)
app.command("check")(check.check)
app.command("diff")(diff.diff)
app.command("estimate")(estimate.estimate)
app.command("fmt")(fmt.fmt)
app.command("init")(init.init)
app.add_typer(new.app, name="new")
app.command("plan")(plan.plan)
app.add_typer(prices.app, name="prices")
app.command("quote")(quote.quote)
app.command("run")(run.run)
app.add_typer(runtimes.app, name="runtimes")
app.command("schema")(schema.schema)
app.command("serve")(build.serve)
app.command("train-graph")(train_graph.train_graph)
show_examples(app)


def main() -> None:
    """Run the program; every expected failure becomes a message and an exit code."""
    _print_in_any_encoding()
    errors = Console(stderr=True, soft_wrap=True, markup=False, highlight=False)
    try:
        with interrupted_by_signals():
            app()
    except EpochcostError as error:
        errors.print(f"{error}")
        sys.exit(error.exit_code)
    except OSError as error:
        errors.print(f"{error.filename or 'output'}: {error.strerror or error}")
        _drop_output()
        sys.exit(CapabilityError.exit_code)
    except KeyboardInterrupt:
        errors.print("interrupted")
        sys.exit(_INTERRUPTED)


def _print_in_any_encoding() -> None:
    """Where a terminal knows no ± or µ, a question mark stands for it."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _drop_output() -> None:
    """Forget what a full disk did not take, which the interpreter would try again at its end."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
