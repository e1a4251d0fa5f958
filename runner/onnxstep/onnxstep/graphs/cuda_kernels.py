"""Find the nodes of a graph for which ONNX Runtime's CUDA provider has no kernel.

``benchmarks/cuda_stand_in.py`` lists the kernels of the released package onnxruntime-gpu in
``cuda_kernels.csv``. This module does not check whether a kernel is correct or fast.
"""

from __future__ import annotations

import contextlib
import csv
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import onnx
from onnx import TensorProto, defs, helper, inliner

from onnxstep.graphs import contrib
from onnxstep.graphs.inference import infer_shapes
from onnxstep.graphs.nodes import DEFAULT_DOMAINS, RANDOM, is_standard, node_attributes
from onnxstep.graphs.tensors import graphs, static_shape, value_types

_TABLE = Path(__file__).with_name("cuda_kernels.csv")
# ONNX Runtime deliberately computes shapes, which are a few integers, on the CPU.
_SHAPE_BYTES = 1024
_SHAPE_TYPES = frozenset({TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL})
_UNKNOWN = "unknown"
# First version of ScatterND that can add. Its kernel is registered for bf16, but fails when it adds
# bf16 numbers (seen on an H100 with onnxruntime-gpu 1.31.1).
_ADDS_SINCE = 16
# Allowed types for each type constraint of an operator.
_Types = Mapping[str, frozenset[str]]
_ValueTypes = Mapping[str, onnx.TypeProto]


@dataclass(frozen=True, slots=True)
class _Kernel:
    """A CUDA kernel of an operator, with the versions and value types for which it works.

    ``constraint_names``, of inputs and outputs, serve operators without a schema in onnx.
    """

    first_version: int
    last_version: int | None
    allowed_types: _Types
    constraint_names: tuple[tuple[str, ...], tuple[str, ...]]

    def serves(self, version: int) -> bool:
        # ONNX Runtime does not assume that a kernel without a last version fits later versions.
        return self.first_version <= version <= (self.last_version or self.first_version)


@dataclass(frozen=True, slots=True)
class HostNode:
    """A node without a CUDA kernel; ``types`` are those of its inputs.

    ``size_bytes`` counts inputs and outputs, copied between GPU and CPU; None if a size is unknown.
    """

    name: str
    operator: str
    types: tuple[str, ...]
    size_bytes: int | None

    def __str__(self) -> str:
        return f"{self.operator}({', '.join(self.types)})"


@dataclass(frozen=True, slots=True)
class KernelCheck:
    """Number of nodes that ``check_kernels`` looked up, and the nodes without a CUDA kernel."""

    nodes: int
    on_host: tuple[HostNode, ...]

    def __str__(self) -> str:
        if not self.on_host:
            return f"all {self.nodes:,} nodes have a CUDA kernel"
        counts = Counter(str(node) for node in self.on_host)
        operators = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
        largest = max((node.size_bytes or 0 for node in self.on_host), default=0)
        return (
            f"{len(self.on_host):,} of {self.nodes:,} nodes have no CUDA kernel and would run on "
            f"the CPU, with copies of at most {largest:,} bytes each: {operators}"
        )


def check_kernels(model: onnx.ModelProto) -> KernelCheck:
    """Find the nodes without a CUDA kernel, in a graph whose values have types.

    If an operator with a function body has no kernel, the nodes of the body are looked up instead,
    because ONNX Runtime runs these. Nodes that depend only on constants are skipped, as are nodes
    on integers and booleans of at most one dimension and 1,024 bytes.
    """
    versions = {entry.domain: entry.version for entry in model.opset_import}
    looked_up = list(_looked_up_nodes(model, versions))
    missing = [node for node, fits, _ in looked_up if not fits]
    functions = {_key(node) for node in missing if has_body(schema_of(node, versions))}
    if functions:
        # onnx cannot inline every function; a node that it cannot inline counts as without a
        # kernel.
        with contextlib.suppress(RuntimeError):
            plain = inliner.inline_selected_functions(
                model, [*functions], inline_schema_functions=True
            )
            return check_kernels(infer_shapes(plain))
    hosts = (_host_node(node, values) for node, fits, values in looked_up if not fits)
    return KernelCheck(len(looked_up), tuple(hosts))


def computes_in(schema: defs.OpSchema, elem_type: int) -> bool:
    """Whether an operator's CUDA kernels allow ``elem_type``; True if ``schema`` forbids the type.

    Also True without any kernel: Constant needs none, and function bodies replace other operators.
    """
    word = type_word(elem_type)
    types = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}
    formals = [f.type_str for f in (*schema.inputs, *schema.outputs)]
    names = [name for name in formals if f"tensor({word})" in types.get(name, ())]
    kernels = _kernels("" if schema.domain in DEFAULT_DOMAINS else schema.domain, schema.name)
    return not (kernels and names) or any(
        word in kernel.allowed_types.get(names[0], {word})
        for kernel in kernels
        if kernel.serves(schema.since_version)
    )


def _looked_up_nodes(
    model: onnx.ModelProto, versions: Mapping[str, int]
) -> Iterator[tuple[onnx.NodeProto, bool, _ValueTypes]]:
    """Yield each node that needs a kernel, whether it has one, and the types of values by name."""
    values: dict[str, onnx.TypeProto] = {}
    constant = {""} | {tensor.name for tensor in model.graph.initializer}
    constant -= {value.name for value in model.graph.input}
    for graph in graphs(model):
        values |= value_types(graph)
        for node in graph.node:
            if constant.issuperset(node.input) and node.op_type not in RANDOM:
                constant.update(node.output)
            elif not all(_is_shape(values.get(n)) for n in (*node.input, *node.output) if n):
                yield node, _fits(node, versions, values), values


def _fits(node: onnx.NodeProto, versions: Mapping[str, int], values: _ValueTypes) -> bool:
    kernels = _kernels(*_key(node))
    schema = schema_of(node, versions)
    version = contrib.VERSION if schema is None else schema.since_version
    types = dict(_constraint_types(node, schema, kernels, values))
    return not _is_rejected_by_provider(node) and any(
        all(
            types.get(name, next(iter(allowed))) in allowed
            for name, allowed in k.allowed_types.items()
        )
        for k in kernels
        if k.serves(version)
    )


def _constraint_types(
    node: onnx.NodeProto,
    schema: defs.OpSchema | None,
    kernels: Sequence[_Kernel],
    values: _ValueTypes,
) -> Iterator[tuple[str, str]]:
    """Yield each type constraint, such as "T", with the type of a value that it constrains."""
    if schema is not None:
        formals = [[(f.type_str, f.name) for f in side] for side in (schema.inputs, schema.outputs)]
    else:
        named = kernels[0].constraint_names if kernels else ((), ())
        formals = [[(name, name) for name in side] for side in named]
    for names, side in zip((node.input, node.output), formals, strict=True):
        for place, name in enumerate(names):
            for constraint in side[min(place, len(side) - 1)] if name and side else ():
                yield constraint, _type_word(values.get(name))


def _type_word(kind: onnx.TypeProto | None) -> str:
    if kind is None:
        return _UNKNOWN
    if kind.HasField("sequence_type"):
        return f"seq({_type_word(kind.sequence_type.elem_type)})"
    return type_word(kind.tensor_type.elem_type)


def type_word(elem_type: int) -> str:
    """ONNX's word for an element type, such as "float16"."""
    return str(TensorProto.DataType.Name(elem_type)).lower()


def _is_shape(kind: onnx.TypeProto | None) -> bool:
    shape, size = static_shape(kind), _size_bytes(kind)
    if kind is None or shape is None or size is None:
        return False
    is_vector = len(shape) <= 1 and size <= _SHAPE_BYTES
    return is_vector and kind.tensor_type.elem_type in _SHAPE_TYPES


def _size_bytes(kind: onnx.TypeProto | None) -> int | None:
    shape = static_shape(kind)
    if kind is None or shape is None:
        return None
    width = helper.tensor_dtype_to_np_dtype(kind.tensor_type.elem_type).itemsize
    return math.prod(shape) * width


def _host_node(node: onnx.NodeProto, values: _ValueTypes) -> HostNode:
    sizes = [_size_bytes(values.get(name)) for name in (*node.input, *node.output) if name]
    return HostNode(
        name=node.name or next(iter(node.output), ""),
        operator=".".join(filter(None, _key(node))),
        types=tuple(_type_word(values.get(name)) for name in node.input if name),
        size_bytes=None if None in sizes else sum(filter(None, sizes)),
    )


def _key(node: onnx.NodeProto) -> tuple[str, str]:
    return "" if node.domain in DEFAULT_DOMAINS else node.domain, node.op_type


def schema_of(node: onnx.NodeProto, versions: Mapping[str, int]) -> defs.OpSchema | None:
    """Schema of a node's operator, if onnx has one; ``versions`` has the opset of each domain."""
    domain, operator = _key(node)
    version = versions.get(domain) or versions.get("ai.onnx") or 1
    return defs.get_schema(operator, version, domain) if defs.has(operator, domain) else None


def has_body(schema: Any) -> bool:  # onnx's type stub lacks these attributes
    """Whether ONNX defines the operator by other operators; False without a schema."""
    return bool(schema and (schema.has_function or schema.has_context_dependent_function))


# Activations that cuDNN's recurrent layers support, for both directions.
_ACTIVATIONS: Mapping[str, Sequence[bytes]] = {
    "LSTM": [b"sigmoid", b"tanh", b"tanh"] * 2,
    "GRU": [b"sigmoid", b"tanh"] * 2,
    "RNN": [b"tanh"] * 2,
}
_PEEPHOLES = 7
_SAME = (b"SAME_UPPER", b"SAME_LOWER")


def _is_rejected_by_provider(node: onnx.NodeProto) -> bool:
    # cuDNN pads transposed convolutions equally on both sides, and its recurrent layers support
    # only some activations and options (ONNX Runtime's cuda_execution_provider.cc).
    settings = node_attributes(node) if is_standard(node, "ConvTranspose", *_ACTIVATIONS) else {}
    if node.op_type == "ConvTranspose":
        pads = settings.get("pads", [])
        half = len(pads) // 2
        padded_unequally: bool = pads[:half] != pads[half:]
        return padded_unequally or settings.get("auto_pad", b"NOTSET") in _SAME
    return node.op_type in _ACTIVATIONS and _is_special_layer(node, settings)


def _is_special_layer(node: onnx.NodeProto, settings: Mapping[str, Any]) -> bool:
    activations = [name.lower() for name in settings.get("activations", [])]
    return (
        not settings.keys().isdisjoint({"activation_alpha", "activation_beta", "clip"})
        or activations != list(_ACTIVATIONS[node.op_type][: len(activations)])
        or bool(settings.get("input_forget"))
        or (node.op_type == "GRU" and settings.get("linear_before_reset", 0) != 1)
        or (node.op_type == "LSTM" and any(node.input[_PEEPHOLES:]))
    )


def _kernels(domain: str, operator: str) -> Sequence[_Kernel]:
    return _table().get((domain, operator), ())


@cache
def _table() -> Mapping[tuple[str, str], Sequence[_Kernel]]:
    table: dict[tuple[str, str], list[_Kernel]] = {}
    with _TABLE.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            since = int(row["since"])
            entries = (entry.partition("=") for entry in row["types"].split())
            types = {name: frozenset(words.split("|")) for name, _, words in entries}
            if row["operator"] == "ScatterND" and since >= _ADDS_SINCE:
                types["T"] -= {"bfloat16"}
            until = int(row["until"]) if row["until"] else None
            inputs, _, outputs = row["formals"].partition(":")
            names = tuple(inputs.split()), tuple(outputs.split())
            kernel = _Kernel(since, until, types, names)
            table.setdefault((row["domain"], row["operator"]), []).append(kernel)
    return table
