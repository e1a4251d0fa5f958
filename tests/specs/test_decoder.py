"""Decoders as specs: what follows from their form, and what cannot be."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from epochcost.errors import InputError, SpecError
from epochcost.specs.loader import load_catalogue
from tiny_decoders import DECODER_SPEC, tiny_decoder
from tiny_project import write_tiny_project


def with_spec(root: Path, text: str) -> Path:
    """A project whose only model is a decoder with this spec."""
    write_tiny_project(root)
    (root / "specs/models/tiny.toml").write_text(text)
    onnx.save(tiny_decoder(), root / "models" / "tiny.onnx")
    return root


def test_inputs_and_cache_follow_from_the_form(tmp_path: Path) -> None:
    """Inputs and caches of a decoder follow from the spec's form without a list."""
    model = load_catalogue(with_spec(tmp_path, DECODER_SPEC)).model("tiny")
    assert [one.name for one in model.fed] == ["input_ids", "attention_mask"]
    assert [(one.input, one.output) for one in model.states][:2] == [
        ("past_key_values.0.key", "present.0.key"),
        ("past_key_values.0.value", "present.0.value"),
    ]
    assert model.decoder is not None
    assert model.decoder.cached_numbers_per_token == 2 * 2 * 2 * 16


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("layers = 2", "layers = 2\nkey_value_rank = 8", "both key_value_rank and rope_size"),
        ("layers = 2", "layers = 2\nexperts = 8", "both experts and experts_per_token"),
        ("layers = 2", "layers = 2\nexperts = 2\nexperts_per_token = 4", "at most 2"),
        ("layers = 2", "layers = 2\nwindow = 8", "both window and windowed_layers"),
        ("layers = 2", "layers = 2\nwindow = 8\nwindowed_layers = 3", "at most 2"),
        (
            "layers = 2",
            "layers = 2\nparameters = 5\nactive_parameters = 6",
            "at most the parameters, 5",
        ),
        ("layers = 2", "layers = 2\nkey_value_rank = 8\nrope_size = 4", "should have no graph"),
        ("layers = 2", "layers = 2\nhidden = 64\nparameters = 9", "at least 30,784 parameters"),
        (
            "layers = 2",
            "layers = 2\nhidden = 64\nintermediate = 256\nparameters = 90_000",
            "should have at least 96,320 parameters by its sizes, got 90,000",
        ),
        (
            "layers = 2",
            "layers = 2\nhidden = 64\nintermediate = 256\nparameters = 1_000_000",
            "should have about 151,680 parameters by its sizes, got 1,000,000",
        ),
        ('graph = "tiny.onnx"', "", "a graph, or hidden and parameters"),
        ("key_value_heads = 2", "key_value_heads = 3", "should divide the number of heads, 4"),
        ("prompts = [8]", "prompts = [257]", "should have sequences within the context of 256"),
        ("contexts = [8, 24]", "contexts = [256]", "not of 257"),
        ("layers = 2", 'layers = 2\npublished_precision = "fp16"', '"int8", "int4", "fp4"'),
        ("[decoder]", '[[inputs]]\nname = "x"\n[decoder]', "no inputs or carried state"),
    ],
)
def test_a_form_that_cannot_be_is_refused(tmp_path: Path, old: str, new: str, words: str) -> None:
    """A contradictory form is refused with the key and what is expected."""
    with pytest.raises(SpecError, match=words):
        load_catalogue(with_spec(tmp_path, DECODER_SPEC.replace(old, new)))


def test_a_form_with_its_numbers_needs_no_graph(tmp_path: Path) -> None:
    """With its numbers a decoder needs no graph. Latent attention caches fewer numbers."""
    numbers = "[decoder]\nhidden = 64\nparameters = 1000\nkey_value_rank = 8\nrope_size = 4"
    text = DECODER_SPEC.replace('graph = "tiny.onnx"', "").replace("[decoder]", numbers)
    catalogue = load_catalogue(with_spec(tmp_path, text))
    model = catalogue.model("tiny")
    assert model.decoder is not None
    assert model.decoder.predictable
    assert model.decoder.active_parameters == 1000
    assert model.decoder.cached_numbers_per_token == 2 * (8 + 4)
    with pytest.raises(InputError, match="tiny: expected a model with a graph"):
        catalogue.graph_path(model)


def test_weights_are_published_in_bf16_unless_the_spec_says_otherwise(tmp_path: Path) -> None:
    """A spec states the precision of published weights that have fewer than 16 bits."""
    text = DECODER_SPEC.replace("[decoder]", '[decoder]\npublished_precision = "fp8"')
    for spec, expected in ((DECODER_SPEC, "bf16"), (text, "fp8")):
        decoder = load_catalogue(with_spec(tmp_path / expected, spec)).decoder("tiny")
        assert decoder.published_precision == expected
