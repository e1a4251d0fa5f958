"""The models of the catalogue have the sizes that their sources state."""

from __future__ import annotations

from pathlib import Path

import pytest

from epochcost.graphs.loading import load_model
from epochcost.graphs.parameters import parameter_count
from epochcost.specs.loader import load_catalogue

ROOT = Path(__file__).parents[2]
# By id of a model: its trainable parameters, and where the count comes from.
PARAMETER_COUNTS = [
    ("imdb-bidirectional-lstm", 2_658_945, "summed over the layers of the source's script"),
    ("imdb-fasttext", 60_000_051, "50 V + 51 for the vocabulary V that the spec assumes"),
    ("lstm-char-cnn", 19_367_965, "summed over the source's variables; 19 million in Kim et al."),
    ("lstm-char-cnn-small", 5_310_115, "summed over the layers; 5 million in Kim et al."),
    ("lstm-text-generation", 102_585, "summed over the layers of the source's script"),
    ("mnist-cnn", 1_199_882, "summed over the layers of Keras's mnist_cnn.py"),
    ("mnist-mlp", 669_706, "summed over the layers of Keras's mnist_mlp.py"),
    ("text-generator-keras", 456_894, "summed over the layers of the source's script"),
]


@pytest.mark.parametrize(("model_id", "expected", "source"), PARAMETER_COUNTS)
def test_parameter_count_is_that_of_the_source(model_id: str, expected: int, source: str) -> None:
    """The graph that a spec names trains as many numbers as its source says."""
    catalogue = load_catalogue(ROOT)
    graph = load_model(catalogue.graph_path(catalogue.model(model_id)))
    assert parameter_count(graph) == expected, source
