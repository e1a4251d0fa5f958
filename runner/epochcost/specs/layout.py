"""The layout of a spec's text, of one that is there and of a new one from a few values.

Keys in the order of its model, one spacing, every comment kept:

    lines before the first key                stay on top
    keys of a table                           in the model's order, inline tables too
    [tables] and [[items of arrays]]          in the model's order, after an empty line
    comments                                  stay above or behind what they stood at
    empty lines between keys                  stay with the key below them, one at most

Lines of an array over several lines, numbers, texts and keys are left as they are written.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import groupby
from pathlib import Path
from typing import Any

import tomli
import tomlkit
from tree_sitter import Node

from epochcost.errors import InputError, SpecError
from epochcost.specs.base import NamedSpec
from epochcost.specs.catalogue import KINDS, ordered_keys_of
from epochcost.specs.document import display_path, key_parts, syntax_tree
from epochcost.specs.findings import validate
from epochcost.specs.loader import FOLDER, check_paths
from epochcost.specs.schema import SINGULAR, Schema, schema_of

_HEADERS = ("table", "table_array_element")
_Path = tuple[str, ...]
# Where a project keeps the schemas that `epochcost schema` writes.
SCHEMAS = Path("docs/schemas")
# What every spec says in its own words, where an example would only be in the way.
_NO_HINT = ("id", "history", "valid_until")


@dataclass(eq=False)
class _Line:
    """A key with its value, the comments and empty lines above it, the comment behind it."""

    node: Node
    above: list[str]
    behind: str = ""


@dataclass(eq=False)
class _Section:
    """A header, none at the top of the file, with its keys and the comments after the last."""

    path: _Path = ()
    header: str = ""
    above: list[str] = field(default_factory=list)
    lines: list[_Line] = field(default_factory=list)
    below: list[str] = field(default_factory=list)


def format_spec(kind: type[NamedSpec], text: str) -> str:
    """The text in canonical layout; the values are those of ``text``, and so are the comments.

    Raises ValueError, with the demand, where the text is no TOML, or is written in a way in which
    keys cannot change places.
    """
    text = text.replace("\r\n", "\n")
    values = tomli.loads(text, parse_float=str)
    root = syntax_tree(text.encode())
    reader = _Reader()
    reader.read(root)
    blocks = [_block(kind, section) for section in _arranged(kind, reader.sections, 0)]
    whole = "\n\n".join(block for block in blocks if block)
    result = "".join(f"{line}\n" for line in reader.preamble) + whole + "\n"
    if root.has_error or tomli.loads(result, parse_float=str) != values:
        raise ValueError("should be written so that its keys can change places")
    return result


class _Reader:
    """Goes through a text once and gives every comment to the key or header that it is about."""

    def __init__(self) -> None:
        self.preamble: list[str] = []
        self.sections = [_Section()]
        self._above: list[str] = []
        # The first row that nothing has been read of.
        self._row = 0
        self._begun = False

    def read(self, root: Node) -> None:
        """Read a document: the lines above all else, then its sections in their order."""
        for node in _statements(root):
            if node.type == "comment" and node.start_point.row < self._row:
                self._put_behind(f" {_text(node).rstrip()}")
                continue
            if node.start_point.row > self._row and (self._row or self._above):
                self._above.append("")
            self._row = _last_row(node) + 1
            if node.type == "comment":
                self._above.append(_text(node).rstrip())
            else:
                self._take(node)
        self.sections[-1].below += self._above

    def _put_behind(self, comment: str) -> None:
        section = self.sections[-1]
        if section.lines:
            section.lines[-1].behind = comment
        else:
            section.header += comment

    def _take(self, node: Node) -> None:
        if not self._begun:
            self.preamble, self._above, self._begun = self._above, [], True
        above, self._above = self._above, []
        if node.type == "pair":
            self.sections[-1].lines.append(_Line(node, above))
            return
        last = max((number for number, line in enumerate(above) if not line), default=-1)
        self.sections[-1].below += above[: last + 1]
        self.sections.append(_Section(key_parts(node), _header(node), above[last + 1 :]))


def _statements(node: Node) -> Iterator[Node]:
    """Headers, pairs and comments of a whole text, in its order; a pair before its comment."""
    for child in node.named_children:
        if child.type in (*_HEADERS, "pair", "comment"):
            yield child
            yield from _statements(child)


def _last_row(node: Node) -> int:
    if node.type in _HEADERS:
        return node.start_point.row
    return node.end_point.row


def _text(node: Node) -> str:
    return (node.text or b"").decode()


def _header(node: Node) -> str:
    key = _text(next(child for child in node.named_children if child.type.endswith("_key")))
    return f"[{key}]" if node.type == "table" else f"[[{key}]]"


def _arranged(kind: type[NamedSpec], sections: Sequence[_Section], depth: int) -> list[_Section]:
    """Tables in the model's order, each with the tables below it; items of arrays as they come."""
    if len(sections) < 2:
        return [*sections]
    arranged: list[_Section] = []
    for own, below in _runs(sections, depth):
        arranged += own
        if below:
            order = _order(kind, below[0].path[:depth])
            ordered = sorted(below, key=lambda section: order(section.path[depth:]))
            for _, group in groupby(ordered, key=lambda section: section.path[depth]):
                arranged += _arranged(kind, [*group], depth + 1)
    return arranged


def _runs(
    sections: Sequence[_Section], depth: int
) -> Iterator[tuple[list[_Section], list[_Section]]]:
    """Each table of a depth with the deeper ones that belong to it.

    Of several, which are items of an array, those that follow; of one, all: a table may stand after
    the tables below it.
    """
    starts = [number for number, section in enumerate(sections) if len(section.path) == depth]
    if len(starts) < 2:
        own = [sections[start] for start in starts]
        yield own, [section for section in sections if section not in own]
        return
    for start, end in zip(starts, [*starts[1:], len(sections)], strict=True):
        yield [sections[start]], [*sections[start + 1 : end]]


def _block(kind: type[NamedSpec], section: _Section) -> str:
    """The lines of a table, from the comments above its header to those after its last key."""
    names = [_name(line.node) for line in section.lines if key_parts(line.node) == ("name",)]
    order = _order(kind, (*section.path, *names[:1]))
    lines = [*section.above, section.header] if section.header else []
    ordered = sorted(section.lines, key=lambda line: order(key_parts(line.node)))
    for number, line in enumerate(ordered):
        lines += line.above[1:] if number == 0 and line.above[:1] == [""] else line.above
        lines.append(_pair(kind, line.node, section.path) + line.behind)
    return "\n".join((*lines, *section.below)).rstrip("\n")


def _name(pair: Node) -> str:
    """The value of a key ``name``, which tells variants of a table apart."""
    return str(tomli.loads(_text(pair))["name"])


def _order(kind: type[NamedSpec], path: Sequence[str]) -> Callable[[Sequence[str]], int]:
    """Where a key stands in the table at a path; unknown ones, as in mappings, come last."""
    places = {key: place for place, key in enumerate(ordered_keys_of(kind, tuple(path)))}
    return lambda key: places.get(key[0], len(places))


def _pair(kind: type[NamedSpec], node: Node, path: Sequence[str]) -> str:
    key, value = node.named_children[:2]
    return f"{_text(key)} = {_value(kind, value, (*path, *key_parts(node)))}"


def _value(kind: type[NamedSpec], node: Node, path: Sequence[str]) -> str:
    """A value on one line with one spacing; one over several as it is, without loose ends."""
    if node.start_point.row != node.end_point.row:
        return _over_lines(node)
    if node.type == "array":
        return f"[{', '.join(_value(kind, item, path) for item in node.named_children)}]"
    if node.type != "inline_table":
        return _text(node)
    pairs = node.named_children
    names = [_name(pair) for pair in pairs if key_parts(pair) == ("name",)]
    order = _order(kind, (*path, *names[:1]))
    ordered = sorted(pairs, key=lambda pair: order(key_parts(pair)))
    return f"{{ {', '.join(_pair(kind, pair, path) for pair in ordered)} }}" if pairs else "{}"


def _over_lines(node: Node) -> str:
    text = _text(node)
    if node.type != "array" or any(quotes in text for quotes in ('"""', "'''")):
        return text
    return "\n".join(line.rstrip() for line in text.split("\n"))


def new_spec(root: Path, kind: str, values: Mapping[str, Any]) -> Path:
    """Write ``specs/<kind>/<id>.toml`` below a project's folder and return its path.

    ``values`` are TOML's, by key; None is left out. Raises InputError where the values make no
    valid spec or a file of that name is there, and SpecError where the spec does not go together
    with the others; nothing is left behind then.
    """
    given = {key: value for key, value in values.items() if value is not None}
    text = draft_spec(kind, given)
    if not (root / FOLDER).is_dir():
        raise InputError(
            f"{display_path(root.absolute() / FOLDER)}: expected a project's folder of specs, "
            "found none: run this in a project, or make one with epochcost init"
        )
    path = root / FOLDER / kind / f"{given['id']}.toml"
    path.parent.mkdir(exist_ok=True)
    try:
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except FileExistsError:
        raise InputError(
            f"{display_path(path)}: expected the name of a new file, got one that is there: "
            "choose another id, or edit the file"
        ) from None
    faults = check_paths([path]).faults
    if faults:
        path.unlink()
        raise SpecError(faults)
    return path


def draft_spec(kind: str, values: Mapping[str, Any]) -> str:
    """The text of a spec: its schema, its values, hints at keys that it leaves out.

    Raises InputError with everything that is wrong with the values by themselves.
    """
    judged = validate(KINDS[kind], values)
    if isinstance(judged, tuple):
        where = f"new {SINGULAR[kind]}"
        raise InputError("\n".join(f"{where}: {finding}" for finding in judged))
    schema = (Path(*[".."] * 2) / SCHEMAS / f"{SINGULAR[kind]}.json").as_posix()
    return format_spec(KINDS[kind], f"#:schema {schema}\n{_toml(kind, values)}")


def _toml(kind: str, values: Mapping[str, Any]) -> str:
    schema = schema_of(kind)
    tables = {key: value for key, value in values.items() if _is_table(schema, key)}
    lines = [f"{key} = {_drafted(value)}" for key, value in values.items() if key not in tables]
    lines = [*lines, "", *_hints(schema, values)]
    for key, value in tables.items():
        for item in [value] if isinstance(value, Mapping) else value:
            header = f"[{key}]" if isinstance(value, Mapping) else f"[[{key}]]"
            lines += ["", header, *(f"{name} = {_drafted(inner)}" for name, inner in item.items())]
    return "\n".join(lines) + "\n"


def _is_table(schema: Schema, key: str) -> bool:
    """Whether a key opens a table of its own, or an array of them."""
    inner = schema["properties"].get(key, {})
    return "properties" in inner.get("items", inner)


def _hints(schema: Schema, values: Mapping[str, Any]) -> Iterator[str]:
    """A comment for each key with one value that is left out: an example, and what it says."""
    hints = [
        f"# {key} = {_drafted(value['examples'][0])}  # {value['description']}"
        for key, value in schema["properties"].items()
        if key not in values and key not in _NO_HINT and value.get("examples")
    ]
    if hints:
        yield "# What else it may say:"
        yield from hints


def _drafted(value: Any) -> str:
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
            inner = ", ".join(f"{key} = {_drafted(item)}" for key, item in value.items())
            return f"{{ {inner} }}"
        case Sequence():
            return f"[{', '.join(map(_drafted, value))}]"
    raise TypeError(f"expected a value of TOML, got {type(value).__name__}")
