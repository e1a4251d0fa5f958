"""Small decoders in the form of files by onnxruntime-genai's model builder.

These files have weights as external data, a dimension of the cache with a name, scores of every
token, tables of angles, and Constant nodes whose declared shape is wrong. In four bits the table of
embeddings has codes too.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from epochcost.graphs.weight_bits import draw_codes, in_few_bits, quantise
from onnxstep.graphs.parameters import materialise
from tiny_decoders import CONTEXT, HEADS, VOCABULARY, WIDTH, tiny_decoder

_CONTRIBUTED = "com.microsoft"


def built_decoder(*, four_bits: bool = False, rotary: bool = True) -> onnx.ModelProto:
    """A decoder that stores its weights; without ``rotary`` positions are an input."""
    drawn = tiny_decoder(rotary=rotary, deviation=0.05)
    model = in_few_bits(drawn, integer_activations=True) if four_bits else drawn
    _store(model, {**materialise(model), **draw_codes(model)})
    graph = model.graph
    _score_every_token(graph)
    _declare_constants(graph)
    if rotary:
        _store_angles(graph)
    else:
        _feed_positions(graph)
    if four_bits:
        _look_up_codes(graph)
    for value in [*graph.input, *graph.output]:
        if "key_values" in value.name or value.name.startswith("present"):
            value.type.tensor_type.shape.dim[3].dim_param = "kv_cache_dim"
    return model


def save_built(model: onnx.ModelProto, path: Path) -> None:
    """Write the model's file, and a file of its data beside it."""
    data = f"{path.name}.data"
    onnx.save(model, path, save_as_external_data=True, location=data, size_threshold=0)


def _store(model: onnx.ModelProto, values: dict[str, np.ndarray]) -> None:
    for value in [value for value in model.graph.input if value.name in values]:
        model.graph.input.remove(value)
        model.graph.initializer.append(numpy_helper.from_array(values[value.name], value.name))
    del model.metadata_props[:]


def _replace(graph: onnx.GraphProto, name: str, *nodes: onnx.NodeProto) -> None:
    """Replace the node that computes a value by these nodes."""
    at = next(at for at, node in enumerate(graph.node) if name in node.output)
    others = [*graph.node]
    del graph.node[:]
    graph.node.extend([*others[:at], *nodes, *others[at + 1 :]])


def _score_every_token(graph: onnx.GraphProto) -> None:
    for node in graph.node:
        node.input[:] = ["norm" if name == "last_hidden" else name for name in node.input]
    _replace(graph, "last_hidden")
    (logits,) = (value for value in graph.output if value.name == "logits")
    logits.type.tensor_type.shape.dim[1].dim_param = "sequence_length"


def _declare_constants(graph: onnx.GraphProto) -> None:
    for tensor in [tensor for tensor in graph.initializer if tensor.name == "second"]:
        graph.initializer.remove(tensor)
        graph.node.insert(0, helper.make_node("Constant", [], ["second"], value=tensor))
        graph.value_info.append(helper.make_tensor_value_info("second", TensorProto.INT64, []))


def _store_angles(graph: onnx.GraphProto) -> None:
    half = WIDTH // HEADS // 2
    angles = np.outer(np.arange(CONTEXT), 10_000.0 ** (-np.arange(half) / half))
    for name, values in (("cosines", np.cos(angles)), ("sines", np.sin(angles))):
        _replace(graph, name)
        graph.initializer.append(numpy_helper.from_array(values.astype(np.float32), name))


def _feed_positions(graph: onnx.GraphProto) -> None:
    places = helper.make_node("Gather", ["position.weight", "position_ids"], ["placed"])
    _replace(graph, "placed", places)
    shape = ["batch_size", "sequence_length"]
    graph.input.insert(2, helper.make_tensor_value_info("position_ids", TensorProto.INT64, shape))


def _look_up_codes(graph: onnx.GraphProto) -> None:
    (table,) = (tensor for tensor in graph.initializer if tensor.name == "embed.weight")
    codes, scales = quantise(numpy_helper.to_array(table))
    graph.initializer.remove(table)
    shape = np.array([VOCABULARY, WIDTH // 2])
    for name, values in (("codes", codes), ("scales", scales), ("flat", shape)):
        graph.initializer.append(numpy_helper.from_array(values, f"embed.{name}"))
    gather = helper.make_node(
        "GatherBlockQuantized",
        ["embed.flattened", "input_ids", "embed.scales"],
        ["embedded"],
        domain=_CONTRIBUTED,
        bits=4,
        block_size=32,
        gather_axis=0,
        quantize_axis=1,
    )
    flat = helper.make_node("Reshape", ["embed.codes", "embed.flat"], ["embed.flattened"])
    _replace(graph, "embedded", flat, gather)
