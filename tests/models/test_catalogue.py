"""The models of the catalogue have the sizes that their sources state."""

from __future__ import annotations

from pathlib import Path

import pytest

from epochcost.graphs.binding import bind_dimensions
from epochcost.graphs.counting import flops
from epochcost.graphs.loading import load_model
from epochcost.graphs.parameters import parameter_count
from epochcost.specs.loader import load_catalogue

ROOT = Path(__file__).parents[2]
# By id of a model: its trainable parameters, and where the count comes from.
PARAMETER_COUNTS = [
    ("cifar10-cnn", 1_250_858, "summed over the layers of Keras's cifar10_cnn.py"),
    ("cifar10-resnet44", 658_651, "summed over the layers of the source's script"),
    ("cifar10-resnet50", 755_867, "summed over the layers of the source's script"),
    ("efficientnet-b0", 5_288_548, "torchvision's documentation; 5.3 million in Tan and Le 2019"),
    ("elmo", 93_600_848 + 8_193 * 513, "93.6 million in Peters et al., and the candidates"),
    ("imdb-bidirectional-lstm", 2_658_945, "summed over the layers of the source's script"),
    ("imdb-fasttext", 60_000_051, "50 V + 51 for the vocabulary V that the spec assumes"),
    ("lstm-char-cnn", 19_367_965, "summed over the source's variables; 19 million in Kim et al."),
    ("lstm-char-cnn-small", 5_310_115, "summed over the layers; 5 million in Kim et al."),
    ("lstm-text-generation", 102_585, "summed over the layers of the source's script"),
    ("mnist-cnn", 1_199_882, "summed over the layers of Keras's mnist_cnn.py"),
    ("mnist-mlp", 669_706, "summed over the layers of Keras's mnist_mlp.py"),
    ("resnet50", 25_557_032, "torchvision's documentation of ResNet50_Weights"),
    ("resnet50-fine-tune-all", 23_583_845, "ResNet-50 with 37 in place of 1000 classes"),
    ("resnet50-fine-tune-head", 23_583_845, "ResNet-50 with 37 in place of 1000 classes"),
    ("text-generator-keras", 456_894, "summed over the layers of the source's script"),
    ("vit-s16", 22_050_664, "summed over the layers; 22 million in Touvron et al. 2020"),
]
# By id of a model: the multiplications of one example forward, and where they come from.
FORWARD_MULTIPLICATIONS = [
    ("cifar10-cnn", 20_741_120, "summed over the layers of Keras's cifar10_cnn.py"),
    ("cifar10-resnet44", 97_174_208, "summed over the layers of the source's script"),
    ("cifar10-resnet50", 111_329_984, "summed over the layers of the source's script"),
    ("efficientnet-b0", 385_814_752, "0.39 billion in torchvision's documentation"),
    ("elmo", 40 * 68_577_792, "summed over the layers, for each of 20 words in 2 directions"),
    ("imdb-bidirectional-lstm", 9_830_528, "summed over the layers of the source's script"),
    ("lstm-char-cnn", 35 * 20_548_000, "summed over the layers, for each of 35 words"),
    ("lstm-char-cnn-small", 35 * 5_846_625, "summed over the layers, for each of 35 words"),
    ("lstm-text-generation", 3_796_096, "summed over the layers of the source's script"),
    ("mnist-cnn", 11_992_448, "summed over the layers of Keras's mnist_cnn.py"),
    ("mnist-mlp", 668_672, "summed over the layers of Keras's mnist_mlp.py"),
    ("resnet50", 4_089_184_256, "4.09 billion in torchvision's documentation"),
    ("text-generator-keras", 8_983_936, "summed over the layers of the source's script"),
    ("vit-s16", 4_598_882_304, "summed over the layers, attention included"),
]


@pytest.mark.parametrize(("model_id", "expected", "source"), PARAMETER_COUNTS)
def test_parameter_count_is_that_of_the_source(model_id: str, expected: int, source: str) -> None:
    """The graph that a spec names trains as many numbers as its source says."""
    catalogue = load_catalogue(ROOT)
    graph = load_model(catalogue.graph_path(catalogue.model(model_id)))
    assert parameter_count(graph) == expected, source


@pytest.mark.parametrize(("model_id", "expected", "source"), FORWARD_MULTIPLICATIONS)
def test_forward_pass_multiplies_as_often_as_the_source(
    model_id: str, expected: int, source: str
) -> None:
    """A multiply and an add are two operations, so the graph of one example has twice as many."""
    catalogue = load_catalogue(ROOT)
    graph = load_model(catalogue.graph_path(catalogue.model(model_id)))
    assert flops(bind_dimensions(graph, {"batch": 1})) == 2 * expected, source
