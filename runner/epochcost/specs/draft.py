"""Write a new spec from its values, or make a new price's spec from that of another price."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import tomli
import tomlkit
from tomlkit.exceptions import ConvertError
from tomlkit.items import Item

from epochcost.errors import InputError, SpecError, UsageError
from epochcost.specs.catalogue import KINDS, SINGULAR
from epochcost.specs.document import display_path
from epochcost.specs.findings import validated
from epochcost.specs.loader import FOLDER, check_paths
from epochcost.specs.schema import schema_of
from epochcost.units import parse_share, plain

# The folder of a project in which `epochcost schema` writes the schemas.
SCHEMAS = Path("docs/schemas")
# A price is written with at least this number of decimals, as in price lists.
_PLACES = 2


def spec_values(kind: str, texts: Mapping[str, str | None]) -> dict[str, Any]:
    """Convert the ``texts`` of keys to the keys' types; UsageError if a required key is None."""
    schema = schema_of(kind)
    require({key: texts[key] for key in texts if key in schema["required"]})
    properties = schema["properties"]
    return {
        key: None if text is None else typed(text, properties[key]) for key, text in texts.items()
    }


def require(options: Mapping[str, object]) -> None:
    """Raise a UsageError that names every option without a value."""
    missing = [f"--{key.replace('_', '-')}" for key, value in options.items() if not value]
    if missing:
        raise UsageError(f"missing: {', '.join(missing)}")


def typed(text: str, property_: Mapping[str, Any]) -> Any:
    """Convert a text to the type of a spec's key; ``property_`` is the key's JSON Schema.

    Text in braces may be a TOML table. A text of another type stays unchanged for the validation.
    """
    try:
        match property_.get("type"):
            case "number":
                percent = text.endswith("%") and property_.get("maximum") == 1
                return parse_share(text, "share") if percent else Decimal(text)
            case "integer":
                return int(text)
        if text.startswith("{"):
            return tomli.loads(f"table = {text}", parse_float=Decimal)["table"]
        return dt.date.fromisoformat(text) if property_.get("format") == "date" else text
    except (InputError, InvalidOperation, ValueError):
        return text


def new_spec(root: Path, kind: str, values: Mapping[str, Any]) -> Path:
    """Write ``specs/<kind>/<id>.toml`` below a project's folder and return its path.

    Keys with the value None are left out, also in tables. Raises InputError if the values are
    invalid or the file exists, and SpecError if other specs contradict them. After an error there
    is no new file.
    """
    present = {key: value for key, value in values.items() if value is not None}
    text = draft_spec(kind, present)
    if not (root / FOLDER).is_dir():
        raise InputError(
            f"{display_path(root.absolute() / FOLDER)}: expected a project's folder of specs, "
            "found none: run this in a project, or make one with epochcost init"
        )
    path = root / FOLDER / kind / f"{present['id']}.toml"
    path.parent.mkdir(exist_ok=True)
    try:
        file = path.open("x", encoding="utf-8", newline="\n")
    except FileExistsError:
        raise InputError(
            f"{display_path(path)}: expected the name of a new file, but this file exists: "
            "choose another id, or edit the file"
        ) from None
    try:
        with file:
            file.write(text)
        if faults := check_paths([path]).faults:
            raise SpecError(faults)
    except BaseException:
        path.unlink()
        raise
    return path


def draft_spec(kind: str, values: Mapping[str, Any]) -> str:
    """The text of a new spec file, checked without other specs; InputError with all faults."""
    spec = validated(KINDS[kind], values, f"new {SINGULAR[kind]}")
    table = spec.model_dump(exclude_unset=True, exclude_none=True)
    # The keys of only this kind precede those of several kinds, such as `source`.
    order = dict.fromkeys(("id", *KINDS[kind].__annotations__, *table))
    ordered = {key: table[key] for key in order if key in table}
    schema = f"../../{SCHEMAS.as_posix()}/{SINGULAR[kind]}.json"
    return f"#:schema {schema}\n{tomlkit.dumps(ordered)}"


def _encoded(value: object) -> Item:
    if isinstance(value, Decimal):
        return tomlkit.value(f"{value:f}")
    raise ConvertError


tomlkit.register_encoder(_encoded)


def successor(text: str, changed: Mapping[str, str | int | Decimal | dt.date | None]) -> str:
    """A copy of a price's TOML text with the values ``changed``; a value None removes its key.

    A key of a table is written ``table.key``. Comments stay, except those of replaced values. The
    copy has no key ``valid_until``, and its ``unconfirmed`` has no names of changed keys.
    """
    document = tomlkit.parse(text)
    for path, value in changed.items():
        outer, _, key = path.rpartition(".")
        table: Any = document[outer] if outer else document
        if value is None:
            table.pop(key, None)
        elif key not in table or table[key].unwrap() != value:
            table[key] = _item(value)
            table[key].trivia.comment_ws = table[key].trivia.comment = ""
    document.pop("valid_until", None)
    doubts = document.get("unconfirmed", ())
    remaining = [name for name in doubts if not {name, name.partition(".")[0]} & changed.keys()]
    if remaining:
        document["unconfirmed"] = remaining
    else:
        document.pop("unconfirmed", None)
    return tomlkit.dumps(document)


def _item(value: str | int | Decimal | dt.date) -> Item:
    if not isinstance(value, Decimal):
        return tomlkit.item(value)
    digits = plain(value)
    places = len(digits.partition(".")[2])
    return tomlkit.value(digits if places >= _PLACES else f"{value:.{_PLACES}f}")
