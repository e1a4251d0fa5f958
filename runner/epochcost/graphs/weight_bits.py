"""Quantise a decoder's weights to 4-bit codes, with a scale for each block of 32 weights.

A weight is ``(code - 8) * scale``. A code is an integer from 1 to 15, and ``scale`` is a seventh of
the block's largest magnitude.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper

from epochcost.errors import ModelError
from onnxstep.graphs.contrib import DOMAIN, VERSION
from onnxstep.graphs.initial import METADATA_KEY, Initial, draw, on_all_cpus
from onnxstep.graphs.nodes import copied, is_standard, node_attributes
from onnxstep.graphs.parameters import Parameter, parameters

BLOCK = 32
_BITS = 4
_BYTES_A_BLOCK = BLOCK * _BITS // 8
_ZERO = 8
# The code of a weight, and its share of the block's fp32 scale.
BYTES_PER_WEIGHT = (_BYTES_A_BLOCK + 4) / BLOCK
# Number of weights that are rounded together: few enough for the CPU's cache.
_AT_ONCE = 2**16
_KEY = "epochcost.weight_bits"
# With this accuracy_level, MatMulNBits rounds activations to int8, which CPUs multiply fastest.
_INTEGER_ACTIVATIONS = 4


@dataclass(frozen=True)
class _WeightProduct:
    """A matrix product with a weight [inner, features]; [features, inner] if ``is_transposed``."""

    node: onnx.NodeProto
    weight: Parameter
    is_transposed: bool

    @property
    def inner(self) -> int:
        return self.weight.shape[int(self.is_transposed)]

    @property
    def features(self) -> int:
        return self.weight.shape[int(not self.is_transposed)]


def in_few_bits(model: onnx.ModelProto, *, integer_activations: bool) -> onnx.ModelProto:
    """Copy a model so that MatMulNBits nodes compute its matrix products with weights in 4 bits.

    In ``model``, each weight must be a graph input without a stored value; in the copy, its codes
    and scales are two inputs. A product stays in fp32 if the weight's inner axis is not a multiple
    of 32. ``integer_activations`` rounds activations to 8 bits. Raises ModelError for a model with
    experts, or if no matrix product can be quantised.
    """
    if any(node.op_type == "MoE" for node in model.graph.node):
        raise ModelError("int4: expected no experts in the graph: measure this model in fp32")
    quantised = copied(model)
    products = list(_products(quantised))
    if not products:
        raise ModelError(
            "int4: expected products with a listed parameter whose inner axis is a multiple "
            f"of {BLOCK}, found none: measure this model in fp32"
        )
    for product in products:
        _replace(product, _INTEGER_ACTIVATIONS if integer_activations else 0)
    weights = {product.weight.name: product for product in products}
    read = _remove_unread_weights(quantised.graph, weights)
    for name, product in weights.items():
        codes = [product.features, product.inner // BLOCK, _BYTES_A_BLOCK]
        fed = {"codes": (TensorProto.UINT8, codes), "scales": (TensorProto.FLOAT, codes[:2])}
        quantised.graph.input.extend(
            helper.make_tensor_value_info(f"{name}.{part}", *kind) for part, kind in fed.items()
        )
    _write_drawing_metadata(quantised, weights, read)
    if all(entry.domain != DOMAIN for entry in quantised.opset_import):
        quantised.opset_import.append(helper.make_opsetid(DOMAIN, VERSION))
    return quantised


def _remove_unread_weights(graph: onnx.GraphProto, weight_names: Collection[str]) -> set[str]:
    """Remove unused nodes, then unread weights; return the names of all tensors that nodes read."""
    read = {name for node in graph.node for name in node.input}
    used = read | {value.name for value in graph.output}
    for node in [node for node in graph.node if not used & {*node.output}]:
        graph.node.remove(node)
    read = {name for node in graph.node for name in node.input}
    for value in [value for value in graph.input if value.name in {*weight_names} - read]:
        graph.input.remove(value)
    return read


def stored_bits(model: onnx.ModelProto) -> frozenset[int]:
    """The bits per weight of a model's quantised weights; empty without quantised weights."""
    products = (node for node in model.graph.node if node.op_type == "MatMulNBits")
    return frozenset(node_attributes(node).get("bits", 4) for node in products)


def in_exact_products(model: onnx.ModelProto) -> onnx.ModelProto:
    """Copy a model so that its MatMulNBits nodes do not round activations."""
    exact = copied(model)
    for node in exact.graph.node:
        for entry in node.attribute:
            if node.op_type == "MatMulNBits" and entry.name == "accuracy_level":
                entry.i = 0
    return exact


def _products(model: onnx.ModelProto) -> Iterator[_WeightProduct]:
    by_name = {each.name: each for each in parameters(model) if each.initial is not None}
    turned = {
        node.output[0]: by_name[node.input[0]]
        for node in model.graph.node
        if is_standard(node, "Transpose") and node.input[0] in by_name
    }
    for node in model.graph.node:
        if not is_standard(node, "MatMul"):
            continue
        weight = by_name.get(node.input[1]) or turned.get(node.input[1])
        if weight is not None and len(weight.shape) == 2:
            product = _WeightProduct(node, weight, is_transposed=node.input[1] in turned)
            if product.inner % BLOCK == 0:
                yield product


def _replace(product: _WeightProduct, accuracy_level: int) -> None:
    node, name = product.node, product.weight.name
    node.op_type, node.domain = "MatMulNBits", DOMAIN
    node.input[1] = f"{name}.codes"
    node.input.append(f"{name}.scales")
    attributes = {"K": product.inner, "N": product.features, "bits": _BITS, "block_size": BLOCK}
    for key, value in (attributes | {"accuracy_level": accuracy_level}).items():
        node.attribute.append(helper.make_attribute(key, value))


def _write_drawing_metadata(
    model: onnx.ModelProto, weights: Mapping[str, _WeightProduct], read_names: set[str]
) -> None:
    listed = {entry.key: entry.value for entry in model.metadata_props}
    drawn = json.loads(listed[METADATA_KEY])
    codes = {
        name: drawn[name]
        | {"bits": _BITS, "shape": product.weight.shape, "turned": product.is_transposed}
        for name, product in weights.items()
    }
    floats = {name: entry for name, entry in drawn.items() if name in read_names}
    helper.set_model_props(
        model, listed | {METADATA_KEY: json.dumps(floats), _KEY: json.dumps(codes)}
    )


def scale_inputs(model: onnx.ModelProto) -> frozenset[str]:
    """Names of the graph inputs that hold the scales of weights quantised by ``in_few_bits``."""
    return frozenset(f"{name}.scales" for name in _listed_codes(model))


def _listed_codes(model: onnx.ModelProto) -> Mapping[str, Any]:
    texts = [entry.value for entry in model.metadata_props if entry.key == _KEY]
    listed: Mapping[str, Any] = json.loads(texts[-1]) if texts else {}
    return listed


def draw_codes(model: onnx.ModelProto, seed: int = 0) -> dict[str, NDArray[Any]]:
    """Draw random codes and scales for weights that ``in_few_bits`` quantised, by input name."""
    kinds = {value.name: value.type.tensor_type.elem_type for value in model.graph.input}
    arrays: dict[str, NDArray[Any]] = {}
    for name, entry in _listed_codes(model).items():
        first = Initial(entry["distribution"], entry["scale"], entry["seed"])
        weights = draw(first, tuple(entry["shape"]), np.dtype(np.float32), seed)
        codes, scales = quantise(weights if entry["turned"] else weights.T)
        kind = helper.tensor_dtype_to_np_dtype(kinds[f"{name}.scales"])
        arrays |= {f"{name}.codes": codes, f"{name}.scales": scales.astype(kind)}
    return arrays


def quantise(weights: NDArray[np.float32]) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """Quantise weights [features, inner] to 4 bits: codes [features, blocks, 16] and scales.

    The scales are [features, blocks]. A byte has two codes, the first code in its low half. The
    function uses all CPUs of this process.
    """
    features, inner = weights.shape
    codes = np.empty((features, inner // BLOCK, _BYTES_A_BLOCK), np.uint8)
    scales = np.empty((features, inner // BLOCK), np.float32)
    rows = max(1, _AT_ONCE // inner)

    def round_rows(begin: int) -> None:
        part = slice(begin, begin + rows)
        codes[part], scales[part] = _rounded(weights[part])

    on_all_cpus(round_rows, range(0, features, rows))
    return codes, scales


def _rounded(weights: NDArray[np.float32]) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    blocks = np.ascontiguousarray(weights).reshape(len(weights), -1, BLOCK)
    scales = np.asarray(np.abs(blocks).max(axis=2) / np.float32(_ZERO - 1), np.float32)
    steps = blocks / np.where(scales > 0, scales, 1)[:, :, None]
    codes = (np.rint(steps) + _ZERO).astype(np.uint8)
    return codes[:, :, 0::2] | codes[:, :, 1::2] << np.uint8(4), scales
