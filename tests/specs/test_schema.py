"""The editors' schemas agree with the models and describe every key."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from epochcost.specs.catalogue import KINDS
from epochcost.specs.schema import Schema, reference_page, schema_files, schema_of

ROOT = Path(__file__).parents[2]
REMEDY = "run: make schemas"


def _keys(path: str, table: Schema) -> Iterator[tuple[str, Schema]]:
    for key, value in table.get("properties", {}).items():
        yield f"{path}.{key}", value
        for branch in value.get("oneOf", [value]):
            yield from _keys(f"{path}.{key}", branch.get("items", branch))


@pytest.mark.parametrize("name", schema_files())
def test_committed_schemas_are_in_step(name: str) -> None:
    """The published schemas equal those of the current models."""
    committed = ROOT / "docs/schemas" / name
    assert committed.read_text("utf-8") == schema_files()[name], REMEDY


def test_committed_reference_is_in_step() -> None:
    """The committed page of all keys equals that of the models."""
    assert (ROOT / "docs/reference/specs.md").read_text("utf-8") == reference_page(), REMEDY


def test_empty_texts_and_arrays_are_refused() -> None:
    """The schemas have the lower bounds of texts and arrays that the models have."""
    study = schema_of("studies")["properties"]
    assert study["hardware"]["minItems"] == 1
    assert study["name"]["pattern"] == r"\S"
    arrays = [value for _, value in _keys("", schema_of("studies")) if value.get("type") == "array"]
    assert arrays
    assert not any("minLength" in value for value in arrays)


@pytest.mark.parametrize("kind", KINDS)
def test_every_key_is_described(kind: str) -> None:
    """Every key and every kind of table has a sentence as description."""
    for path, value in _keys(kind, schema_of(kind)):
        assert value["description"].rstrip().endswith("."), path
        for branch in value.get("oneOf", ()):
            assert "properties" not in branch or branch["description"], path


def test_ranges_and_choices_are_the_models() -> None:
    """The schema has the models' bounds of numbers, choices and patterns."""
    price = schema_of("prices")["properties"]
    assert price["amount"]["exclusiveMinimum"] == 0
    assert price["owned"]["properties"]["pue"]["minimum"] == 1
    assert "whole-hour" in price["billing"]["oneOf"][0]["enum"]
    share = price["owned"]["properties"]["utilisation"]
    assert share["exclusiveMinimum"] == 0
    assert share["maximum"] == 1
    assert "minimum" not in share
    assert price["currency"]["default"] == "USD"
    assert price["as_of"]["format"] == "date"
    assert price["id"]["pattern"].startswith("^(")


@pytest.mark.parametrize("kind", KINDS)
def test_examples_are_valid_by_the_schema(kind: str) -> None:
    """No example is outside its key's own range or choices."""
    for path, value in _keys(kind, schema_of(kind)):
        for example in value.get("examples", ()):
            numbers = example if isinstance(example, list) else [example]
            bounds = value.get("items", value)
            for number in (n for n in numbers if isinstance(n, int | float)):
                assert bounds.get("minimum", number) <= number, path
                assert number <= bounds.get("maximum", number), path
                assert bounds.get("exclusiveMinimum", number - 1) < number, path
                assert number < bounds.get("exclusiveMaximum", number + 1), path
            for text in (n for n in numbers if isinstance(n, str)):
                assert text in bounds.get("enum", [text]), path
