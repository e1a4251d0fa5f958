"""A new spec from a few values: written in the layout, with hints at what else it may say.

What the values are is asked by the command line. A draft is judged before it is written, by itself
and beside the specs that are there.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import tomlkit

from epochcost.errors import InputError, SpecError
from epochcost.specs.document import displayed
from epochcost.specs.findings import judge
from epochcost.specs.kinds import KINDS
from epochcost.specs.layout import laid_out
from epochcost.specs.loader import check_paths
from epochcost.specs.schema import SINGULAR, Schema, schema_of
from epochcost.specs.tree import FOLDER

# Where a project keeps the schemas that `epochcost schema` writes.
SCHEMAS = Path("docs/schemas")
# What every spec says in its own words, where an example would only be in the way.
_NO_HINT = ("id", "history", "valid_until")


def new_spec(root: Path, kind: str, values: Mapping[str, Any]) -> Path:
    """Write ``specs/<kind>/<id>.toml`` below a project's folder and return its path.

    ``values`` are TOML's, by key; None is left out. Raises InputError where the values make no
    valid spec or a file of that name is there, and SpecError where the spec does not go together
    with the others; nothing is left behind then.
    """
    given = {key: value for key, value in values.items() if value is not None}
    text = draft(kind, given)
    if not (root / FOLDER).is_dir():
        raise InputError(
            f"{displayed(root.absolute() / FOLDER)}: demanded a project's folder of specs; got "
            "none: run this in a project, or make one with epochcost init"
        )
    path = root / FOLDER / kind / f"{given['id']}.toml"
    path.parent.mkdir(exist_ok=True)
    try:
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except FileExistsError:
        raise InputError(
            f"{displayed(path)}: demanded the name of a new file; got one that is there: "
            "choose another id, or edit the file"
        ) from None
    faults = check_paths([path]).faults
    if faults:
        path.unlink()
        raise SpecError(faults)
    return path


def draft(kind: str, values: Mapping[str, Any]) -> str:
    """The text of a spec: its schema, its values, hints at keys that it leaves out.

    Raises InputError with everything that is wrong with the values by themselves.
    """
    judged = judge(KINDS[kind], values)
    if isinstance(judged, tuple):
        where = f"new {SINGULAR[kind]}"
        raise InputError("\n".join(f"{where}: {finding}" for finding in judged))
    schema = (Path(*[".."] * 2) / SCHEMAS / f"{SINGULAR[kind]}.json").as_posix()
    return laid_out(KINDS[kind], f"#:schema {schema}\n{_toml(kind, values)}")


def _toml(kind: str, values: Mapping[str, Any]) -> str:
    schema = schema_of(kind)
    tables = {key: value for key, value in values.items() if _is_table(schema, key)}
    lines = [f"{key} = {_value(value)}" for key, value in values.items() if key not in tables]
    lines = [*lines, "", *_hints(schema, values)]
    for key, value in tables.items():
        for item in [value] if isinstance(value, Mapping) else value:
            header = f"[{key}]" if isinstance(value, Mapping) else f"[[{key}]]"
            lines += ["", header, *(f"{name} = {_value(inner)}" for name, inner in item.items())]
    return "\n".join(lines) + "\n"


def _is_table(schema: Schema, key: str) -> bool:
    """Whether a key opens a table of its own, or an array of them."""
    inner = schema["properties"].get(key, {})
    return "properties" in inner.get("items", inner)


def _hints(schema: Schema, values: Mapping[str, Any]) -> Iterator[str]:
    """A comment for each key with one value that is left out: an example, and what it says."""
    hints = [
        f"# {key} = {_value(value['examples'][0])}  # {value['description']}"
        for key, value in schema["properties"].items()
        if key not in values and key not in _NO_HINT and value.get("examples")
    ]
    if hints:
        yield "# What else it may say:"
        yield from hints


def _value(value: Any) -> str:
    """A value as TOML has it, on one line."""
    match value:
        case bool():
            return str(value).lower()
        case Decimal():
            return f"{value:f}"
        case int() | float() | dt.date():
            return str(value)
        case str():
            return tomlkit.item(value).as_string()
        case Mapping():
            inner = ", ".join(f"{key} = {_value(item)}" for key, item in value.items())
            return f"{{ {inner} }}"
        case Sequence():
            return f"[{', '.join(map(_value, value))}]"
    raise TypeError(f"demanded a value of TOML; got {type(value).__name__}")
