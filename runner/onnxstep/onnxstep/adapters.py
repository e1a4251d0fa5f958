"""Low-rank adapters (LoRA) for matrix products with weights (Hu et al. 2021, arXiv 2106.09685).

An adapter changes y = x W into y = x W + (x A) B · alpha / rank. A [inner, rank] starts as in
PyTorch's ``peft``, B [rank, features] at zero. The option ``wrt=ADAPTERS`` trains only A and B.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from onnxstep.errors import ModelError
from onnxstep.graphs.choices import match_names
from onnxstep.graphs.constants import as_parameters
from onnxstep.graphs.functions import inline_functions
from onnxstep.graphs.initial import METADATA_KEY, Initial, draw, listed_parameters
from onnxstep.graphs.nodes import constant_node, copied, is_standard, node_attributes, set_nodes
from onnxstep.graphs.tensors import FLOAT_TYPES

ADAPTERS = ("*.lora_A", "*.lora_B")
_VIEWS = ("Identity", "Transpose", "Cast", "DequantizeLinear")
_MATRIX, _SCALES = 2, 2


@dataclass(frozen=True)
class _WeightProduct:
    """A node that multiplies by a weight [inner, features], stored transposed if ``turned``."""

    node: onnx.NodeProto
    weight: str
    inner: int
    features: int
    elem_type: int
    turned: bool = False


def with_adapters(
    model: onnx.ModelProto,
    rank: int,
    alpha: float | None = None,
    patterns: Collection[str] = ("*",),
    seed: int = 0,
) -> onnx.ModelProto:
    """Return a copy of the model with an adapter at each product whose weight matches a pattern.

    Products are MatMul, Gemm and MatMulNBits nodes. ``patterns`` are names or shell patterns.
    ``alpha`` defaults to ``rank``. New parameters are ``<weight>.lora_A`` and ``.lora_B``. Raises
    ModelError for a ``rank`` below 1, an ``alpha`` that is not finite, a pattern that matches no
    weight, or a weight that has an adapter or is multiplied both as it is and transposed.
    """
    if rank < 1:
        raise ModelError(f"lora rank: expected a positive integer, got {rank}")
    if alpha is not None and not math.isfinite(alpha):
        raise ModelError(f"lora alpha: expected a number, got {alpha}")
    adapted = inline_functions(model) if model.functions else copied(model)
    products = list(_products(adapted))
    weights = dict.fromkeys(product.weight for product in products)
    chosen = match_names("lora target", patterns, weights)
    products = [product for product in products if product.weight in chosen]
    by_weight = {product.weight: product for product in products}
    _require_no_adapters(adapted.graph, by_weight)
    for product in products:
        if product.turned != by_weight[product.weight].turned:
            raise ModelError(
                f"lora target: {product.weight!r} is multiplied both as it is and transposed, and "
                "an adapter fits only one of the two: choose other weights"
            )
    adapted_products = {product.node.output[0]: product for product in products}
    scale = (rank if alpha is None else alpha) / rank
    nodes: list[onnx.NodeProto] = []
    for node in adapted.graph.node:
        nodes.append(node)
        if node.output and node.output[0] in adapted_products:
            nodes += _adapter_nodes(node, adapted_products[node.output[0]], scale)
    set_nodes(adapted.graph, nodes)
    return _add_adapter_parameters(adapted, by_weight, rank, seed)


def _require_no_adapters(graph: onnx.GraphProto, weights: Iterable[str]) -> None:
    taken = {value.name for value in (*graph.input, *graph.initializer)}
    for weight in weights:
        if f"{weight}.lora_A" in taken:
            raise ModelError(
                f"lora target: {weight!r} already has the adapter {weight}.lora_A: choose other "
                "weights, or the model without adapters"
            )


def _products(model: onnx.ModelProto) -> Iterator[_WeightProduct]:
    graph = model.graph
    tensors = {tensor.name: (tuple(tensor.dims), tensor.data_type) for tensor in graph.initializer}
    weights = tensors.keys() | (listed_parameters(model) or {})
    for value in graph.input:
        kind = value.type.tensor_type
        shape = tuple(dim.dim_value for dim in kind.shape.dim)
        tensors.setdefault(value.name, (shape, kind.elem_type))
    makers = {name: node for node in graph.node for name in node.output}
    for node in graph.node:
        if node.op_type == "MatMulNBits":
            sizes = node_attributes(node)
            kind = tensors.get(node.input[_SCALES], ((), TensorProto.FLOAT))[1]
            yield _WeightProduct(node, node.input[1], sizes["K"], sizes["N"], kind)
        elif is_standard(node, "MatMul", "Gemm") and not node_attributes(node).get("transA"):
            for product in _floats(node, makers, tensors):
                # A matrix of floats that is neither stored nor listed is data. Codes may be fed.
                if product.weight in weights or tensors[product.weight][1] not in FLOAT_TYPES:
                    yield product


def _floats(
    node: onnx.NodeProto,
    makers: Mapping[str, onnx.NodeProto],
    tensors: Mapping[str, tuple[tuple[int, ...], int]],
) -> Iterator[_WeightProduct]:
    name, turned = node.input[1], bool(node_attributes(node).get("transB"))
    kind = 0
    while name in makers and is_standard(makers[name], *_VIEWS):
        maker = makers[name]
        if maker.op_type == "DequantizeLinear" and maker.input[1] in tensors:
            kind = kind or tensors[maker.input[1]][1]
        attributes = node_attributes(maker)
        kind = kind or attributes.get("to", 0)
        turned ^= maker.op_type == "Transpose" and attributes.get("perm") != [0, 1]
        name = maker.input[0]
    shape, stored = tensors.get(name, ((), 0))
    if len(shape) == _MATRIX and all(shape):
        inner, features = shape[::-1] if turned else shape
        yield _WeightProduct(node, name, inner, features, kind or stored, turned)


def _adapter_nodes(
    node: onnx.NodeProto, product: _WeightProduct, scale: float
) -> Iterator[onnx.NodeProto]:
    """Yield the adapter's nodes; the last node takes over the name of the product's output."""
    y, name = node.output[0], f"{node.output[0]}/lora"
    node.output[0] = f"{y}/base"
    scale *= node_attributes(node).get("alpha", 1.0)  # of Gemm
    yield helper.make_node("MatMul", [node.input[0], f"{product.weight}.lora_A"], [f"{name}_x"])
    narrow = f"{name}_x"
    if scale != 1:
        yield constant_node(f"{name}_scale", np.array(scale, _dtype(product.elem_type)))
        yield helper.make_node("Mul", [narrow, f"{name}_scale"], [f"{name}_scaled"])
        narrow = f"{name}_scaled"
    yield helper.make_node("MatMul", [narrow, f"{product.weight}.lora_B"], [f"{name}_y"])
    yield helper.make_node("Add", [f"{y}/base", f"{name}_y"], [y])


def _add_adapter_parameters(
    model: onnx.ModelProto, products: Mapping[str, _WeightProduct], rank: int, seed: int
) -> onnx.ModelProto:
    """Add A and B of each adapter as initializers; as inputs if the metadata lists parameters."""
    added: dict[str, tuple[tuple[int, int], int, Initial]] = {}
    for name, product in products.items():
        kind, own_seed = product.elem_type, zlib.crc32(name.encode())
        uniform = Initial("uniform", 1 / math.sqrt(product.inner), own_seed)
        added[f"{name}.lora_A"] = (product.inner, rank), kind, uniform
        added[f"{name}.lora_B"] = (rank, product.features), kind, Initial("constant", 0.0, 0)
    if listed_parameters(model) is None:
        model.graph.initializer.extend(
            numpy_helper.from_array(draw(initial, shape, _dtype(kind), seed), name)
            for name, (shape, kind, initial) in added.items()
        )
        return as_parameters(model, added)
    model.graph.input.extend(
        helper.make_tensor_value_info(name, kind, shape) for name, (shape, kind, _) in added.items()
    )
    metadata = {entry.key: entry.value for entry in model.metadata_props}
    listed = json.loads(metadata[METADATA_KEY])
    listed |= {name: vars(initial) for name, (*_, initial) in added.items()}
    helper.set_model_props(model, metadata | {METADATA_KEY: json.dumps(listed)})
    return model


def _dtype(elem_type: int) -> np.dtype[Any]:
    return np.dtype(helper.tensor_dtype_to_np_dtype(elem_type))
