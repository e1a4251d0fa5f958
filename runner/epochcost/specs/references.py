"""Check specs against each other: unique ids, references to existing specs, consistent figures.

The checks work on parsed tables, so that all faults of a file are reported together.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from epochcost.specs.base import ordered_keys_of
from epochcost.specs.catalogue import KINDS
from epochcost.specs.document import Document, display_path
from epochcost.specs.findings import Finding
from epochcost.specs.price import Range, figure_at, key_path
from epochcost.specs.wording import KeyPath, describe, got, suggest_or_list
from epochcost.statistics import group_by

# In a pattern of keys, this part matches every item of an array.
_EACH = "*"
_EACH_CLAIM = ("timings", _EACH, "claims", _EACH)
_EACH_LIMIT = ("budget", "limits", _EACH)
# Tables that may name a machine and its price.
_PRICED: Mapping[str, tuple[str, ...]] = {
    "studies": _EACH_LIMIT,
    "targets": (),
    "published": ("timings", _EACH),
}


# Keys that refer to specs, by the kind of spec that has them, each with the kind of its specs.
_REFERENCES: Mapping[str, Mapping[tuple[str, ...], str]] = {
    "prices": {("hardware",): "hardware"},
    "models": {("dataset",): "datasets"},
    "studies": {
        ("models", _EACH): "models",
        ("hardware", _EACH): "hardware",
        (*_EACH_LIMIT, "hardware"): "hardware",
        (*_EACH_LIMIT, "price"): "prices",
    },
    "targets": {("hardware",): "hardware", ("price",): "prices"},
    "published": {
        ("model",): "models",
        ("timings", _EACH, "hardware"): "hardware",
        ("timings", _EACH, "price"): "prices",
        (*_EACH_CLAIM, "price"): "prices",
        ("remarks", _EACH, "price"): "prices",
        ("remarks", _EACH, "hardware"): "hardware",
        ("remarks", _EACH, "model"): "models",
    },
    "replays": {("hardware",): "hardware", ("model",): "models"},
    "apis": {("model",): "models"},
}
# Keys that name a CSV file in the spec's folder. Only folders of these kinds may have CSV files.
FILE_KEYS: Mapping[str, tuple[str, ...]] = {
    "api-tables": ("table",),
    "observations": ("table", "profiles", "decoders", "machines"),
    "replays": ("trace",),
}
# Checks an ONNX file, and the model's table that names it if there is one; None if it is sound.
JudgeGraph = Callable[[Path, Mapping[str, Any]], Finding | None]


class Neighbours(NamedTuple):
    """The parsed files to which a spec may refer, by kind and id.

    ``graphs`` is the folder of ONNX files, or None. ``unseen`` are the kinds with unreadable files.
    """

    documents: Mapping[str, Mapping[str, Sequence[Document]]]
    graphs: Path | None
    unseen: Collection[str]
    judge: JudgeGraph | None

    def table(self, kind: str, identifier: Any) -> Mapping[str, Any]:
        """The parsed table of the spec with the id ``identifier``; empty if the id is unknown."""
        documents = self.documents[kind].get(identifier) if isinstance(identifier, str) else None
        return documents[0].table if documents else {}


def by_kind_and_id(documents: Iterable[Document]) -> Mapping[str, Mapping[str, Sequence[Document]]]:
    """Group parsed specs by their kind, and the specs of a kind by their id."""
    of_kind = group_by(documents, lambda document: document.kind)
    return {kind: group_by(of_kind.get(kind, ()), lambda document: document.id) for kind in KINDS}


def cross_check(document: Document, context: Neighbours) -> Iterator[Finding]:
    """Find the faults of a spec that only a comparison with other specs can show."""
    yield from _duplicates(document, context)
    yield from _unknown_unconfirmed(document)
    for pattern, kind in _REFERENCES.get(document.kind, {}).items():
        if kind not in context.unseen:
            yield from _dangling(document, pattern, kind, context)
    for key in FILE_KEYS.get(document.kind, ()):
        yield from _missing_file(document, key, document.path.parent, "*.csv")
    match document.kind:
        case "models":
            yield from _wrong_graph(document, context)
        case "prices":
            yield from _uncounted_vcpus(document, context)
            yield from _ranges_of_no_figure(document)
    if document.kind in _PRICED:
        yield from _faults_of_foreign_prices(document, _PRICED[document.kind], context)


def _duplicates(document: Document, context: Neighbours) -> Iterator[Finding]:
    twins = context.documents[document.kind][document.id]
    duplicate = next((twin for twin in twins if twin is not document), None)
    if duplicate is not None:
        more = f" and {len(twins) - 2} more" if len(twins) > 2 else ""
        twin = f"got {describe(document.id)}, as in {duplicate.place(('id',))}{more}"
        yield Finding(("id",), f"should differ from every other id, {twin}")


def _dangling(
    document: Document, pattern: Sequence[str], kind: str, context: Neighbours
) -> Iterator[Finding]:
    ids = context.documents[kind].keys()
    for key, value in _values_at_key_paths(document.table, pattern):
        if isinstance(value, str) and value not in ids:
            yield Finding(key, f"should be the id of a spec in {kind}/, {got(value, ids)}")


def _unknown_unconfirmed(document: Document) -> Iterator[Finding]:
    for key, value in _values_at_key_paths(document.table, ("unconfirmed", _EACH)):
        if not isinstance(value, str):
            continue
        parts = tuple(value.split("."))
        for at, part in enumerate(parts):
            choices = ordered_keys_of(KINDS[document.kind], parts[:at])
            if part not in choices:
                advice = f"got {describe(value)}{suggest_or_list(part, choices)}"
                demand = "should be a key of this spec, such as source or training.epochs"
                yield Finding(key, f"{demand}, {advice}")
                break


def _wrong_graph(document: Document, context: Neighbours) -> Iterator[Finding]:
    name, graphs = document.table.get("graph"), context.graphs
    if graphs is None or not isinstance(name, str):
        return
    missing = [*_missing_file(document, "graph", graphs, "*.onnx")]
    yield from missing
    if not missing and context.judge and (wrong := context.judge(graphs / name, document.table)):
        yield wrong


def _uncounted_vcpus(document: Document, context: Neighbours) -> Iterator[Finding]:
    owned = document.table.get("owned")
    if not isinstance(owned, dict) or owned.get("per_vcpu") is not True:
        return
    identifier = document.table.get("hardware")
    machine = context.table("hardware", identifier)
    if machine and "vcpus" not in machine and machine.get("detected") is not True:
        demand = "should be for hardware with vcpus, or detected"
        yield Finding(("owned", "per_vcpu"), f"{demand}, got {describe(identifier)}")


def _ranges_of_no_figure(document: Document) -> Iterator[Finding]:
    ranges = document.table.get("ranges")
    for key, ends in ranges.items() if isinstance(ranges, dict) else ():
        try:
            figure = figure_at(document.table, key_path(key))
        except ValueError as error:
            yield Finding(("ranges", key), str(error))
            continue
        with suppress(ValidationError):
            declared = Range.model_validate(ends)
            if figure.is_finite() and not declared.low <= figure <= declared.high:
                demand = f"should include the declared value, {figure}"
                yield Finding(("ranges", key), f"{demand}, got {declared.low} to {declared.high}")


def _missing_file(document: Document, key: str, folder: Path, pattern: str) -> Iterator[Finding]:
    name, files = document.table.get(key), {path.name for path in folder.glob(pattern)}
    if isinstance(name, str) and name not in files:
        demand = f"should be a file in {display_path(folder)}/"
        yield Finding((key,), f"{demand}, {got(name, files)}")


def _faults_of_foreign_prices(
    document: Document, table_pattern: Sequence[str], context: Neighbours
) -> Iterator[Finding]:
    """Yield a fault for each price of another machine that a table or its claims name.

    ``table_pattern`` is the key path of tables, "*" for every item of an array; () for the spec.
    """
    for key, table in _values_at_key_paths(document.table, table_pattern):
        machine = table.get("hardware") if isinstance(table, dict) else None
        if not isinstance(machine, str):
            continue
        of_claims = _values_at_key_paths(table, (*_EACH_CLAIM[2:], "price"))
        for path, price in (*_values_at_key_paths(table, ("price",)), *of_claims):
            priced = context.table("prices", price).get("hardware")
            known = context.table("hardware", priced) and context.table("hardware", machine)
            if known and machine != priced:
                other = f"got {describe(price)}, a price of {describe(priced)}"
                yield Finding((*key, *path), f"should be a price of {describe(machine)}, {other}")


def _values_at_key_paths(value: Any, pattern: Sequence[str]) -> Iterator[tuple[KeyPath, Any]]:
    if not pattern:
        yield (), value
        return
    first, *rest = pattern
    items: Iterable[tuple[str | int, Any]] = ()
    if first == _EACH:
        items = enumerate(value) if isinstance(value, list) else ()
    elif isinstance(value, Mapping) and first in value:
        items = ((first, value[first]),)
    for part, item in items:
        yield from (((part, *path), leaf) for path, leaf in _values_at_key_paths(item, rest))
