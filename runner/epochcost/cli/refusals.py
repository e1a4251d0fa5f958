"""Reword typer's errors about options: name all missing options and the expected values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import typer
from typer.core import TyperCommand

from epochcost.specs.wording import closest

A_DAY = "a day of the calendar, such as 2016-11-01"
_NOUNS = {"integer": "a whole number", "number": "a number"}


class PlainCommand(TyperCommand):
    """A command whose errors name all missing options together, and the valid form of values."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse arguments as typer does, but raise typer's UsageError with a plainer message."""
        values, _, _ = self.make_parser(ctx).parse_args(list(args))
        asks_for_help = ctx.resilient_parsing or values.get("help")
        required = [param for param in self.get_params(ctx) if param.required]
        missing = [param for param in required if values.get(param.name) is None]
        if len(missing) > 1 and not asks_for_help:
            ctx.fail(f"missing: {', '.join(map(_name_of, missing))}")
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            error.message = _plain_message(error, values)
            raise


def _name_of(param: Any) -> str:
    """The name of an argument or option in the help, such as FILE or ``--out``."""
    return str(param.metavar if param.param_type_name == "argument" else max(param.opts, key=len))


def _plain_message(error: typer.BadParameter, values: Mapping[str, Any]) -> str:
    param: Any = error.param
    got = values.get(param.name)
    choices = [str(choice) for choice in param.type_descriptor.choices or ()]
    if choices and isinstance(got, str):
        near = closest(got, choices)
        if near is not None:
            return f"unknown {got!r}; did you mean {near!r}?"
        return f"expected one of {', '.join(choices)}, got {got!r}"
    if " does not match the format" in error.message:
        return f"expected {A_DAY}, got {got!r}"
    demand = re.fullmatch(r"Input should be (a valid )?(.+?)(, unable to .*)?", error.message)
    if demand:
        return f"expected {_NOUNS.get(demand[2], f'a number {demand[2]}')}, got {got!r}"
    return error.message.removeprefix("Value error, ")
