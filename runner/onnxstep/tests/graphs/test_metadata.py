"""The list of parameters in a file's metadata is read completely or refused."""

from __future__ import annotations

import json
from typing import Any

import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onnxstep.errors import ModelError
from onnxstep.graphs.initial import METADATA_KEY, Initial, listed_parameters

GOOD = {"distribution": "normal", "scale": 0.02, "seed": 7}


def model_with(text: str) -> onnx.ModelProto:
    """A model without nodes; its metadata has ``text`` as the list of parameters."""
    model = onnx.ModelProto()
    onnx.helper.set_model_props(model, {METADATA_KEY: text})
    return model


def test_list_is_read() -> None:
    """Each listed parameter gets its distribution, scale and seed; the scale may be an integer."""
    text = json.dumps({"w": GOOD, "b": {"distribution": "constant", "scale": 1, "seed": 0}})
    assert listed_parameters(model_with(text)) == {
        "w": Initial("normal", 0.02, 7),
        "b": Initial("constant", 1.0, 0),
    }


def test_ordinary_file_has_no_list() -> None:
    """``listed_parameters`` gives None without a list, and an empty dict for an empty list."""
    assert listed_parameters(onnx.ModelProto()) is None
    assert listed_parameters(model_with("{}")) == {}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("distribution", "cauchy"),
        ("distribution", ["normal"]),
        ("scale", "0.1"),
        ("scale", True),
        ("scale", None),
        ("scale", float("nan")),
        ("scale", float("inf")),
        ("scale", 10**400),
        ("scale", 1e5),
        ("seed", -1),
        ("seed", 2**64),
        ("seed", 1.0),
        ("seed", True),
    ],
)
def test_wrong_value_is_named(key: str, value: Any) -> None:
    """The error for a wrong value names the parameter, the key and what is expected."""
    text = json.dumps({"w": GOOD | {key: value}})
    with pytest.raises(ModelError, match=rf"'w': {key}: expected"):
        listed_parameters(model_with(text))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "1",
        "{",
        '{"w": 1}',
        '{"w": {}}',
        json.dumps({"w": GOOD | {"mean": 0}}),
        '{"w": {}, "w": {}}',
        "[" * 100_000,
        "9" * 10_000,
    ],
)
def test_malformed_list_is_refused_in_one_line(text: str) -> None:
    """Text that is not a valid list is refused with a short line, even if deeply nested or long."""
    with pytest.raises(ModelError) as caught:
        listed_parameters(model_with(text))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None)
@given(st.fixed_dictionaries({"distribution": JSON, "scale": JSON, "seed": JSON}) | JSON)
def test_any_json_is_read_or_refused(entry: Any) -> None:
    """Every JSON value is read or raises ModelError with one line; no other exception occurs."""
    try:
        outcome: object = listed_parameters(model_with(json.dumps({"w": entry})))
    except ModelError as error:
        outcome = str(error)
    assert isinstance(outcome, dict) or "\n" not in str(outcome)
