"""Models of the catalogue have the sizes in their sources."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import onnx
import pytest

from epochcost.graphs.counting import flops
from epochcost.specs.loader import load_catalogue
from onnxstep.graphs.binding import bind_dimensions
from onnxstep.graphs.loading import load_model
from onnxstep.graphs.parameters import parameter_count

CATALOGUE = load_catalogue(Path(__file__).parents[2])


def _blocks(layers: int, width: int, sequence: int, attentions: int = 1) -> int:
    """Parameters of Transformer blocks: attention with four matrices, and a net of 4 widths."""
    dense = (4 * attentions + 8) * width**2 * sequence
    return layers * (dense + 2 * attentions * width * sequence**2)


def _bert_heads(width: int, masked: int) -> int:
    """Multiplications of summary, next sentence and masked words with a decoder of 30,522 words."""
    return width**2 + 2 * width + masked * (width**2 + 30_522 * width)


def _translation(width: int) -> int:
    """Multiplications of encoder and decoder on 32 tokens each, with 37,000 words."""
    return _blocks(6, width, 32) + _blocks(6, width, 32, attentions=2) + 32 * width * 37_000


# Trainable parameters by model id, with the source of the count.
PARAMETER_COUNTS = [
    ("bert-1.5b", 1_530_379_324, "transformers' BertForPreTraining of 48 layers of 1600"),
    ("bert-base", 110_106_428, "transformers' BertForPreTraining; 110 million in Devlin et al."),
    ("bert-base-128", 110_106_428, "transformers' BertForPreTraining"),
    ("bert-base-fine-tune-all", 109_482_240 + 1_538, "BERT base and a classifier of two classes"),
    ("bert-base-fine-tune-head", 109_482_240 + 1_538, "BERT base and a classifier of two classes"),
    ("bert-large", 336_226_108, "transformers' BertForPreTraining; 340 million in Devlin et al."),
    ("bert-large-128", 336_226_108, "transformers' BertForPreTraining"),
    ("cifar10-cnn", 1_250_858, "summed over the layers of Keras's cifar10_cnn.py"),
    ("cifar10-resnet44", 658_651, "summed over the layers of the source's script"),
    ("cifar10-resnet50", 755_867, "summed over the layers of the source's script"),
    ("efficientnet-b0", 5_288_548, "torchvision's documentation; 5.3 million in Tan and Le 2019"),
    ("elmo", 93_600_848 + 8_193 * 513, "93.6 million in Peters et al., and the candidates"),
    ("gpt2", 124_439_808, "transformers' GPT2LMHeadModel"),
    ("gpt2-xl", 1_557_611_200, "transformers' GPT2LMHeadModel of 48 layers of 1600"),
    ("imdb-bidirectional-lstm", 2_658_945, "summed over the layers of the source's script"),
    ("imdb-fasttext", 60_000_051, "50 V + 51 for the vocabulary V that the spec assumes"),
    ("lstm-char-cnn", 19_367_965, "summed over the source's variables; 19 million in Kim et al."),
    ("lstm-char-cnn-small", 5_310_115, "summed over the layers; 5 million in Kim et al."),
    ("lstm-text-generation", 102_585, "summed over the layers of the source's script"),
    ("minilm-l6", 22_713_216, "transformers' BertModel of 6 layers of 384"),
    ("minilm-l6-pairs", 22_713_216 - 147_840, "the same without the summary, which it leaves"),
    ("mnist-cnn", 1_199_882, "summed over the layers of Keras's mnist_cnn.py"),
    ("mnist-mlp", 669_706, "summed over the layers of Keras's mnist_mlp.py"),
    ("mobilenet-v3-large", 5_483_032, "torchvision's documentation"),
    ("nanogpt-characters", 10_745_088, "10.65 million in the source, and its 98,304 positions"),
    ("resnet50", 25_557_032, "torchvision's documentation of ResNet50_Weights"),
    ("resnet50-fine-tune-all", 23_583_845, "ResNet-50 with 37 in place of 1000 classes"),
    ("resnet50-fine-tune-head", 23_583_845, "ResNet-50 with 37 in place of 1000 classes"),
    ("text-generator-keras", 456_894, "summed over the layers of the source's script"),
    ("transformer-base", 63_045_632, "summed over the layers; 65 million in Vaswani et al."),
    ("transformer-big", 214_171_648, "summed over the layers; 213 million in Vaswani et al."),
    ("vit-s16", 22_050_664, "summed over the layers; 22 million in Touvron et al. 2020"),
]
# Multiplications of one example's forward pass by model id, with the source.
FORWARD_MULTIPLICATIONS = [
    ("bert-1.5b", _blocks(48, 1600, 512) + _bert_heads(1600, 77), "section 3 of Vaswani et al."),
    ("bert-base", _blocks(12, 768, 512) + _bert_heads(768, 77), "section 3 of Vaswani et al."),
    ("bert-base-128", _blocks(12, 768, 128) + _bert_heads(768, 20), "section 3 of Vaswani et al."),
    ("bert-base-fine-tune-all", _blocks(12, 768, 128) + 768 * 770, "section 3 of Vaswani et al."),
    ("bert-large", _blocks(24, 1024, 512) + _bert_heads(1024, 77), "section 3 of Vaswani et al."),
    ("cifar10-cnn", 20_741_120, "summed over the layers of Keras's cifar10_cnn.py"),
    ("cifar10-resnet44", 97_174_208, "summed over the layers of the source's script"),
    ("cifar10-resnet50", 111_329_984, "summed over the layers of the source's script"),
    ("efficientnet-b0", 385_814_752, "0.39 billion in torchvision's documentation"),
    ("elmo", 40 * 68_577_792, "summed over the layers, for each of 20 words in 2 directions"),
    ("gpt2", _blocks(12, 768, 1024) + 1024 * 768 * 50_257, "section 3 of Vaswani et al."),
    ("gpt2-xl", _blocks(48, 1600, 1024) + 1024 * 1600 * 50_257, "section 3 of Vaswani et al."),
    ("imdb-bidirectional-lstm", 9_830_528, "summed over the layers of the source's script"),
    ("lstm-char-cnn", 35 * 20_548_000, "summed over the layers, for each of 35 words"),
    ("lstm-char-cnn-small", 35 * 5_846_625, "summed over the layers, for each of 35 words"),
    ("lstm-text-generation", 3_796_096, "summed over the layers of the source's script"),
    ("minilm-l6", _blocks(6, 384, 128) + 384 * 384, "section 3 of Vaswani et al."),
    ("minilm-l6-pairs", 2 * _blocks(6, 384, 128), "section 3 of Vaswani et al."),
    ("mnist-cnn", 11_992_448, "summed over the layers of Keras's mnist_cnn.py"),
    ("mnist-mlp", 668_672, "summed over the layers of Keras's mnist_mlp.py"),
    ("mobilenet-v3-large", 216_589_760, "0.22 billion in torchvision's documentation"),
    ("nanogpt-characters", _blocks(6, 384, 256) + 256 * 384 * 65, "section 3 of Vaswani et al."),
    ("resnet50", 4_089_184_256, "4.09 billion in torchvision's documentation"),
    ("text-generator-keras", 8_983_936, "summed over the layers of the source's script"),
    ("transformer-base", _translation(512), "section 3 of Vaswani et al."),
    ("transformer-big", _translation(1024), "section 3 of Vaswani et al."),
    ("vit-s16", 4_598_882_304, "summed over the layers, attention included"),
]


@cache
def graph_of(model_id: str) -> onnx.ModelProto:
    """The graph of a model."""
    return load_model(CATALOGUE.graph_path(CATALOGUE.model(model_id)))


@pytest.mark.parametrize(("model_id", "expected", "source"), PARAMETER_COUNTS)
def test_parameter_count_is_that_of_the_source(model_id: str, expected: int, source: str) -> None:
    """The graph trains as many numbers as its source states."""
    assert parameter_count(graph_of(model_id)) == expected, source


@pytest.mark.parametrize(("model_id", "expected", "source"), FORWARD_MULTIPLICATIONS)
def test_forward_pass_multiplies_as_often_as_the_source(
    model_id: str, expected: int, source: str
) -> None:
    """A multiply and an add are two operations, so the graph of one example has twice as many."""
    dimensions = {"batch": 1, **CATALOGUE.model(model_id).dimensions}
    bound = bind_dimensions(graph_of(model_id), dimensions)
    assert flops(bound) == 2 * expected, source
