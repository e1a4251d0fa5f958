"""Memory of a decoder for weights and cache, against sums by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from epochcost.execute.sizing import PROCESS_BYTES, decoder_bytes, decoder_weights
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.loader import load_catalogue
from onnxstep.graphs.loading import load_model

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    """The committed specs."""
    return load_catalogue(ROOT)


def test_a_decoder_holds_its_weights_twice(catalogue: Catalogue) -> None:
    """Weights count twice, as drawn and as packed for kernels; each token adds its cache."""
    model = catalogue.model("smollm2-135m")
    bytes_of = decoder_bytes(model, load_model(catalogue.graph_path(model)))
    block = 576 * (576 + 2 * 192) + 576 * 576 + 3 * 576 * 1536
    table = 576 * 49152
    weights = 4 * (2 * (30 * block + table) + table)
    assert bytes_of(0, 0) - PROCESS_BYTES == pytest.approx(weights, rel=0.01)
    assert bytes_of(4, 100) - bytes_of(0, 0) == 400 * 4 * 2 * 30 * 3 * 64


def test_the_largest_are_counted_without_their_weights(catalogue: Catalogue) -> None:
    """Llama 3.1 70B and all experts of Mixtral 8x7B are counted without allocating them."""
    for name, billions in (("llama-3.1-70b", 69.5), ("mixtral-8x7b", 46.5)):
        model = catalogue.model(name)
        weights, _ = decoder_weights(load_model(catalogue.graph_path(model)))
        assert weights == pytest.approx(billions * 1e9, rel=0.01)
