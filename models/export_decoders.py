# /// script
# requires-python = ">=3.11"
# dependencies = ["onnx==1.23.2"]
# ///
"""Writes decoders with a cache of keys and values: GPT-2, SmolLM2, Qwen2.5, Llama 3 and Mixtral.

The graphs have the operators, inputs and outputs that onnxruntime-genai's model builder gives its
own (GroupQueryAttention over a cache that a step writes in place), so that a file of that builder
and one of these are measured alike. They are written by hand, node by node: no framework has to
hold the weights, and the largest is as quickly made as the smallest. The head sees the last token
of each sequence alone, which is what a server asks of a prompt.

Shapes are those of the configurations that the authors publish with their weights.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import manifest
import numpy as np
import onnx
import weightless
from onnx import TensorProto, helper, numpy_helper

FOLDER = Path(__file__).parent
OPSET, CONTRIBUTED = 18, "com.microsoft"
_FLOAT = TensorProto.FLOAT
_NEWEST_IR_OF_OPSET = 10


@dataclass(frozen=True)
class Shape:
    """A decoder's configuration; ``theta`` None: learned positions and GPT-2's blocks.

    Of ``experts`` each token takes the ``chosen`` ones in place of one feed-forward network.
    """

    layers: int
    width: int
    heads: int
    key_value_heads: int
    inner: int
    vocabulary: int
    context: int
    theta: float | None
    epsilon: float
    deviation: float = 0.02
    projection_bias: bool = False
    tied: bool = True
    experts: int = 0
    chosen: int = 2

    @property
    def head_size(self) -> int:
        """Numbers of a head's query, key or value."""
        return self.width // self.heads


SHAPES = {
    "gpt2_decoder": Shape(12, 768, 12, 12, 3072, 50257, 1024, None, 1e-5, projection_bias=True),
    "smollm2_135m": Shape(30, 576, 9, 3, 1536, 49152, 8192, 100_000, 1e-5, 1 / math.sqrt(576)),
    "qwen2_5_0_5b": Shape(
        24, 896, 14, 2, 4864, 151_936, 32_768, 1_000_000, 1e-6, projection_bias=True
    ),
    "llama3_2_1b": Shape(16, 2048, 32, 8, 8192, 128_256, 131_072, 500_000, 1e-5),
    "llama3_1_8b": Shape(32, 4096, 32, 8, 14_336, 128_256, 131_072, 500_000, 1e-5, tied=False),
    "llama3_1_70b": Shape(80, 8192, 64, 8, 28_672, 128_256, 131_072, 500_000, 1e-5, tied=False),
    "mixtral_8x7b": Shape(
        32, 4096, 32, 8, 14_336, 32_000, 32_768, 1_000_000, 1e-5, tied=False, experts=8
    ),
}


class Graph:
    """Nodes, parameters and constants as they are added; each method returns a value's name."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.parameters: list[tuple[str, tuple[int, ...], dict[str, str | float]]] = []

    def add(
        self,
        operator: str,
        inputs: Sequence[str],
        name: str,
        *more: str,
        domain: str = "",
        **attributes: object,
    ) -> str:
        """A node that yields ``name`` first."""
        node = helper.make_node(
            operator, inputs, [name, *more], name=name, domain=domain, **attributes
        )
        node.attribute.sort(key=lambda attribute: attribute.name)
        self.nodes.append(node)
        return name

    def constant(self, name: str, values: object, dtype: type[np.generic]) -> str:
        """A small constant, each once."""
        if all(tensor.name != name for tensor in self.constants):
            self.constants.append(numpy_helper.from_array(np.array(values, dtype), name))
        return name

    def weight(self, name: str, shape: tuple[int, ...], deviation: float) -> str:
        """A parameter of this deviation: uniform, which is drawn in a third of the time."""
        scale = deviation * math.sqrt(3)
        return self._parameter(name, shape, {"distribution": "uniform", "scale": scale})

    def filled(self, name: str, size: int, value: float) -> str:
        """A parameter that starts from one value: a gain, or a bias."""
        return self._parameter(name, (size,), {"distribution": "constant", "scale": value})

    def _parameter(self, name: str, shape: tuple[int, ...], first: dict[str, str | float]) -> str:
        self.parameters.append((name, shape, first))
        return name


class Decoder:
    """Builds the graph of one shape."""

    def __init__(self, shape: Shape) -> None:
        self.shape, self.graph = shape, Graph()

    def build(self, name: str) -> onnx.ModelProto:
        """The whole weightless model, checked."""
        hidden = self._embedded()
        lengths = self._lengths()
        residual, normed = hidden, self._first_norm(hidden, "layers.0.attention_norm")
        for layer in range(self.shape.layers):
            attended = self._attention(normed, f"layers.{layer}", layer, lengths)
            residual, normed = self._norm(residual, attended, f"layers.{layer}.mlp_norm")
            output = self._feed_forward(normed, f"layers.{layer}.mlp")
            following = f"layers.{layer + 1}.attention_norm"
            last = layer + 1 == self.shape.layers
            residual, normed = self._norm(residual, output, "norm" if last else following)
        self._head(normed)
        return self._model(name)

    def _embedded(self) -> str:
        shape, graph = self.shape, self.graph
        table = graph.weight("embed.weight", (shape.vocabulary, shape.width), shape.deviation)
        tokens = graph.add("Gather", [table, "input_ids"], "embedded")
        if shape.theta is not None:
            return tokens
        positions = graph.weight("position.weight", (shape.context, shape.width), shape.deviation)
        begin = graph.add("Sub", [self._size("attention_mask"), self._size("input_ids")], "begin")
        places = self._range(begin, self._size("attention_mask"), "places")
        placed = graph.add("Gather", [positions, places], "placed")
        return graph.add("Add", [tokens, placed], "embedded_at_places")

    def _size(self, name: str) -> str:
        graph, found = self.graph, f"{name}_length"
        if all(found not in node.output for node in graph.nodes):
            sizes = graph.add("Shape", [name], f"{name}_shape")
            graph.add("Gather", [sizes, graph.constant("one", 1, np.int64)], found)
        return found

    def _range(self, begin: str, end: str, name: str) -> str:
        return self.graph.add("Range", [begin, end, self.graph.constant("one", 1, np.int64)], name)

    def _lengths(self) -> list[str]:
        """Inputs of attention: the last position of each sequence, all positions, rotations."""
        graph, shape = self.graph, self.shape
        seen = graph.add(
            "ReduceSum",
            ["attention_mask", graph.constant("second", [1], np.int64)],
            "seen",
            keepdims=0,
        )
        last = graph.add("Sub", [seen, graph.constant("one", 1, np.int64)], "last")
        lengths = [
            graph.add("Cast", [last], "last_positions", to=TensorProto.INT32),
            graph.add(
                "Cast", [self._size("attention_mask")], "all_positions", to=TensorProto.INT32
            ),
        ]
        return lengths if shape.theta is None else [*lengths, *self._rotations(shape.theta)]

    def _rotations(self, theta: float) -> list[str]:
        """Cosines and sines by position and pair of numbers (Su et al., arXiv 2104.09864)."""
        graph, size = self.graph, self.shape.head_size
        rates = theta ** (-np.arange(0, size, 2, dtype=np.float64) / size)
        zero = graph.constant("zero", 0, np.int64)
        places = self._range(zero, self._size("attention_mask"), "all_places")
        numbers = graph.add("Cast", [places], "all_places_float", to=_FLOAT)
        column = graph.add(
            "Unsqueeze", [numbers, graph.constant("second", [1], np.int64)], "all_places_column"
        )
        angles = graph.add("Mul", [column, graph.constant("rates", rates, np.float32)], "angles")
        return [graph.add("Cos", [angles], "cosines"), graph.add("Sin", [angles], "sines")]

    def _first_norm(self, hidden: str, name: str) -> str:
        """Norm of the embeddings, without addition; ONNX Runtime fuses the second form."""
        graph, shape = self.graph, self.shape
        gain = graph.filled(f"{name}.weight", shape.width, 1.0)
        if shape.theta is None:
            bias = graph.filled(f"{name}.bias", shape.width, 0.0)
            return graph.add(
                "LayerNormalization", [hidden, gain, bias], name, epsilon=shape.epsilon
            )
        squares = graph.add("Pow", [hidden, graph.constant("two", 2, np.float32)], f"{name}.pow")
        mean = graph.add(
            "ReduceMean", [squares, graph.constant("last_axis", [-1], np.int64)], f"{name}.mean"
        )
        epsilon = graph.constant("epsilon", shape.epsilon, np.float32)
        root = graph.add("Sqrt", [graph.add("Add", [mean, epsilon], f"{name}.sum")], f"{name}.root")
        return graph.add("Mul", [graph.add("Div", [hidden, root], f"{name}.div"), gain], name)

    def _norm(self, residual: str, added: str, name: str) -> tuple[str, str]:
        graph, shape, total = self.graph, self.shape, f"{name}.residual"
        gain = graph.filled(f"{name}.weight", shape.width, 1.0)
        operator, inputs = "SkipSimplifiedLayerNormalization", [residual, added, gain]
        if shape.theta is None:
            operator = "SkipLayerNormalization"
            inputs.append(graph.filled(f"{name}.bias", shape.width, 0.0))
        normed = graph.add(
            operator, inputs, name, "", "", total, domain=CONTRIBUTED, epsilon=shape.epsilon
        )
        return total, normed

    def _attention(self, hidden: str, name: str, layer: int, lengths: list[str]) -> str:
        shape, graph = self.shape, self.graph
        packed = (shape.heads + 2 * shape.key_value_heads) * shape.head_size
        bias = shape.projection_bias
        projected = self._linear(hidden, f"{name}.qkv", shape.width, packed, bias=bias)
        past = [f"past_key_values.{layer}.{part}" for part in ("key", "value")]
        present = [f"present.{layer}.{part}" for part in ("key", "value")]
        attended = graph.add(
            "GroupQueryAttention",
            [projected, "", "", *past, *lengths],
            f"{name}.attended",
            *present,
            domain=CONTRIBUTED,
            num_heads=shape.heads,
            kv_num_heads=shape.key_value_heads,
            do_rotary=int(shape.theta is not None),
            rotary_interleaved=0,
            scale=1 / math.sqrt(shape.head_size),
        )
        return self._linear(
            attended, f"{name}.out", shape.width, shape.width, bias=shape.theta is None
        )

    def _feed_forward(self, hidden: str, name: str) -> str:
        shape, graph = self.shape, self.graph
        if shape.experts:
            return self._experts(hidden, name)
        wide, narrow = (shape.width, shape.inner), (shape.inner, shape.width)
        if shape.theta is None:
            up = self._linear(hidden, f"{name}.up", *wide, bias=True)
            bent = graph.add("FastGelu", [up], f"{name}.gelu", domain=CONTRIBUTED)
            return self._linear(bent, f"{name}.down", *narrow, bias=True)
        gate = self._linear(hidden, f"{name}.gate", *wide, bias=False)
        up = self._linear(hidden, f"{name}.up", *wide, bias=False)
        opened = graph.add(
            "Mul", [gate, graph.add("Sigmoid", [gate], f"{name}.sigmoid")], f"{name}.silu"
        )
        return self._linear(
            graph.add("Mul", [opened, up], f"{name}.gated"), f"{name}.down", *narrow, bias=False
        )

    def _experts(self, hidden: str, name: str) -> str:
        """The chosen experts of each token by a router's scores, as one operator."""
        shape, graph = self.shape, self.graph
        scores = self._linear(hidden, f"{name}.router", shape.width, shape.experts, bias=False)
        rows = graph.constant("rows_of_scores", [-1, shape.experts], np.int64)
        routed = graph.add("Reshape", [scores, rows], f"{name}.routed")
        up, down = (shape.inner, shape.width), (shape.width, shape.inner)
        gate, back, open_ = (
            graph.weight(f"{name}.{part}.weight", (shape.experts, *form), shape.deviation)
            for part, form in (("gate", up), ("down", down), ("up", up))
        )
        return graph.add(
            "MoE",
            [hidden, routed, gate, "", back, "", open_],
            f"{name}.mixed",
            domain=CONTRIBUTED,
            k=shape.chosen,
            activation_type="silu",
            normalize_routing_weights=1,
        )

    def _linear(self, x: str, name: str, width: int, features: int, *, bias: bool) -> str:
        graph = self.graph
        weight = graph.weight(f"{name}.weight", (width, features), self.shape.deviation)
        product = graph.add("MatMul", [x, weight], f"{name}.product")
        if not bias:
            return product
        return graph.add("Add", [product, graph.filled(f"{name}.bias", features, 0.0)], name)

    def _head(self, hidden: str) -> None:
        """The scores of the next token after the last one."""
        graph, shape = self.graph, self.shape
        end = graph.constant("beyond", [2**31 - 1], np.int64)
        begin = graph.constant("last_one", [-1], np.int64)
        second = graph.constant("second", [1], np.int64)
        last = graph.add("Slice", [hidden, begin, end, second], "last_hidden")
        if shape.tied:
            table = graph.add("Transpose", ["embed.weight"], "head.weight", perm=[1, 0])
        else:
            table = graph.weight("head.weight", (shape.width, shape.vocabulary), shape.deviation)
        graph.add("MatMul", [last, table], "logits")

    def _model(self, name: str) -> onnx.ModelProto:
        shape, graph = self.shape, self.graph
        cache = ["batch_size", shape.key_value_heads, "past_sequence_length", shape.head_size]
        after = [*cache[:2], "total_sequence_length", cache[3]]
        parts = [f"{layer}.{part}" for layer in range(shape.layers) for part in ("key", "value")]
        tokens = [("input_ids", "sequence_length"), ("attention_mask", "total_sequence_length")]
        value = helper.make_tensor_value_info
        inputs = [value(key, TensorProto.INT64, ["batch_size", size]) for key, size in tokens]
        inputs += [value(f"past_key_values.{part}", _FLOAT, cache) for part in parts]
        inputs += [value(key, _FLOAT, dims) for key, dims, _ in graph.parameters]
        outputs = [value("logits", _FLOAT, ["batch_size", 1, shape.vocabulary])]
        outputs += [value(f"present.{part}", _FLOAT, after) for part in parts]
        proto = helper.make_graph(graph.nodes, name, inputs, outputs, graph.constants)
        model = helper.make_model(
            proto,
            opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid(CONTRIBUTED, 1)],
            ir_version=_NEWEST_IR_OF_OPSET,
        )
        listed = {
            key: {**first, "seed": seed} for seed, (key, _, first) in enumerate(graph.parameters)
        }
        helper.set_model_props(model, {weightless.METADATA_KEY: manifest.as_json(listed)})
        onnx.checker.check_model(model, full_check=True)
        return model


def main() -> None:
    """Write every file beside this one."""
    for name, shape in SHAPES.items():
        model = Decoder(shape).build(name)
        path = FOLDER / f"{name}.onnx"
        weightless.save(model, path)
        manifest.record(path, model, Path(__file__).name, ("onnx",))


if __name__ == "__main__":
    main()
