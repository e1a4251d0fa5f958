"""The page about adding a model shows what the code accepts."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from pathlib import Path

import onnx
import tomli

from epochcost.graphs.initial import DISTRIBUTIONS
from epochcost.graphs.loading import load_model
from epochcost.graphs.metadata import METADATA_KEY, listed_parameters
from epochcost.graphs.parameters import data_inputs
from epochcost.specs.model import Model

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "adding-a-model.md").read_text("utf-8")


def block(language: str) -> str:
    """The page's code block in a language."""
    (text,) = re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL)
    return str(text)


def test_spec_is_valid_and_fits_its_graph() -> None:
    """The example validates, and names inputs and outputs that its graph has."""
    spec = Model.model_validate(tomli.loads(block("toml"), parse_float=Decimal))
    graph = load_model(ROOT / "models" / spec.graph)
    assert [entry.name for entry in spec.inputs] == [fed.name for fed in data_inputs(graph)]
    assert spec.training is not None
    assert [value.name for value in graph.graph.output] == [spec.training.output]


def test_metadata_is_valid() -> None:
    """The example of a parameter list is read."""
    model = onnx.ModelProto()
    onnx.helper.set_model_props(model, {METADATA_KEY: block("json")})
    assert listed_parameters(model) is not None
    assert json.loads(block("json")).keys() == {"dense1.weight", "dense1.bias"}


def test_every_distribution_is_described() -> None:
    """The table has a row for each distribution and no other."""
    assert re.findall(r"^\| `(\w+)` \|", PAGE, flags=re.MULTILINE) == list(DISTRIBUTIONS)
