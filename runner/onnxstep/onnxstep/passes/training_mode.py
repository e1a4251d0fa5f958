"""Convert Dropout and BatchNormalization to training or inference mode.

BatchNormalization in training uses the batch's statistics and updates the running statistics.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from onnxstep.builder import Builder, Value
from onnxstep.channels import Normalized, normal_input, normalized, per_channel
from onnxstep.errors import ModelError
from onnxstep.forward import Forward
from onnxstep.graphs.nodes import copied, is_standard, live_nodes, node_label
from onnxstep.graphs.parameters import STATISTICS, origins
from onnxstep.graphs.tensors import HALF_TYPES
from onnxstep.registry import Node
from onnxstep.update import First, Transition

_TRUE = "epochcost/training_mode"


def in_training_mode(model: onnx.ModelProto, seed: int | None = None) -> onnx.ModelProto:
    """Copy of a model with active Dropout, which draws a new mask in each run.

    ``seed`` makes the masks repeatable. ``train_on_batches`` converts BatchNormalization later.
    """
    trained = copied(model)
    dropouts = [node for node in trained.graph.node if is_standard(node, "Dropout")]
    for index, node in enumerate(dropouts):
        _drop(node, None if seed is None else seed + index)
    _normalize_by_running_statistics(trained.graph)
    if dropouts:
        trained.graph.initializer.append(numpy_helper.from_array(np.array(True), _TRUE))
    return trained


def in_inference_mode(model: onnx.ModelProto) -> onnx.ModelProto:
    """Copy of a model without active Dropout; BatchNormalization uses the running statistics."""
    plain = copied(model)
    for node in plain.graph.node:
        if is_standard(node, "Dropout"):
            del node.input[2:]
    _normalize_by_running_statistics(plain.graph)
    return plain


def _normalize_by_running_statistics(graph: onnx.GraphProto) -> None:
    updated_statistics: set[str] = set()
    for node in graph.node:
        if is_standard(node, "BatchNormalization"):
            updated_statistics.update(node.output[1:])
            del node.output[1:]
            _set(node, "training_mode", None)
    for value in [value for value in graph.output if value.name in updated_statistics]:
        graph.output.remove(value)


def _drop(node: onnx.NodeProto, seed: int | None) -> None:
    ratio = node.input[1] if len(node.input) > 1 else ""
    del node.input[1:]
    node.input.extend([ratio, _TRUE])
    if seed is not None:
        _set(node, "seed", seed)


def _set(node: onnx.NodeProto, name: str, value: int | None) -> None:
    attributes = [attribute for attribute in node.attribute if attribute.name != name]
    del node.attribute[:]
    node.attribute.extend(attributes)
    if value is not None:
        node.attribute.append(onnx.helper.make_attribute(name, value))


# PyTorch's exporters write this for momentum=None: a cumulative average over all batches.
_CUMULATIVE = 1.0


def train_on_batches(
    forward: Forward, carried: Collection[str], frozen: Collection[str]
) -> Forward:
    """Convert BatchNormalization nodes from inference form to training form.

    A node keeps its inference form if ``frozen`` names one of its statistics, or if other nodes
    compute the statistics from the node's input. ``carried`` names the running statistics that a
    step passes to the next step. Raises ModelError for a statistic that is neither in ``carried``
    nor a node's output, and for a channel with a single value.
    """
    op = forward.op
    nodes, op.nodes = op.nodes, []
    origin = origins(nodes)
    outputs = {name for node in nodes for name in node.output}
    latest: dict[str, Value] = {}
    differentiated: list[onnx.NodeProto] = []
    for proto in nodes:
        names = _statistics(proto, origin)
        is_free = names and set(names).isdisjoint(frozen)
        if is_free and not _are_statistics_of_input(proto, names, differentiated):
            _require_carried(proto, names, {*carried, *outputs})
            differentiated.append(_append_in_training_form(op, proto, names, latest))
        else:
            _append_in_inference_form(op, proto)
            differentiated.append(proto)
    moves = []
    for name in [name for name in latest if name not in outputs]:
        first: First = "model" if name in carried else 0.0
        after = op.rename(latest[name], f"{name}.next")
        moves.append(Transition(op.values[name], after, "state", first))
    return replace(forward, nodes=tuple(differentiated), moves=tuple(moves))


def _append_in_inference_form(op: Builder, proto: onnx.NodeProto) -> None:
    if is_standard(proto, "BatchNormalization"):
        node = Node(op, proto, frozenset())
        # ONNX Runtime has no kernel for 16-bit values that also accepts float32 statistics.
        if node.x.elem_type in HALF_TYPES:
            _emit_normalization(node, node.input(3), node.input(4))
            return
    op.nodes.append(proto)


def _statistics(proto: onnx.NodeProto, origin: Mapping[str, str]) -> list[str]:
    if not is_standard(proto, "BatchNormalization"):
        return []
    names = [proto.input[index] for index in STATISTICS]
    return [origin.get(name, name) for name in names]


def _append_in_training_form(
    op: Builder, proto: onnx.NodeProto, names: list[str], latest: dict[str, Value]
) -> onnx.NodeProto:
    """Append nodes that compute the BatchNormalization ``proto`` by the statistics of the batch.

    Returns a single node with the same result, which only serves to derive the gradient. Writes the
    next running mean and variance into ``latest`` under their ``names``.
    """
    node = Node(op, proto, frozenset())
    count = node.x.size // node.x.shape[1]
    if count < 2:
        raise ModelError(
            f"{node.label}: expected two or more values in each channel to train on, got {count}; "
            "take a larger batch"
        )
    batch = _emit_normalization(node)
    momentum: Value | float = node.attribute("momentum")
    if momentum == _CUMULATIVE:
        momentum = _weight_of_past_batches(op, f"{names[0]}.batches", latest)
    unbiased = batch.variance * (count / (count - 1))
    for name, statistic in zip(names, (batch.mean, unbiased), strict=True):
        old = latest.get(name) or op.values[name]
        share = momentum.cast(old.elem_type) if isinstance(momentum, Value) else momentum
        latest[name] = old * share + statistic.cast(old.elem_type) * (1 - share)
    return _copy_with_batch_statistics(proto, batch)


def _are_statistics_of_input(
    proto: onnx.NodeProto, statistics: list[str], earlier_nodes: Sequence[onnx.NodeProto]
) -> bool:
    outputs = {name for node in earlier_nodes for name in node.output}
    return outputs.issuperset(statistics) and all(
        any(proto.input[0] in node.input for node in live_nodes(earlier_nodes, [name]))
        for name in statistics
    )


def _weight_of_past_batches(op: Builder, counter: str, latest: dict[str, Value]) -> Value:
    # PyTorch's exporters do not write the number of past batches, so the count starts at 0.
    count = latest.get(counter) or op.input(counter, (), TensorProto.FLOAT)
    latest[counter] = count + 1.0
    return count / latest[counter]


# ONNX Runtime's CUDA provider has no kernel for the training form, so plain operators compute it.
def _emit_normalization(
    node: Node, mean: Value | None = None, variance: Value | None = None
) -> Normalized:
    """Emit Y = (X - mean) / √(variance + epsilon) · scale + B; None means a batch statistic."""
    x, op = normal_input(node.x), node.op
    batch = normalized(x, node.attribute("epsilon"), mean, variance)
    gain = per_channel(x, node.input(1)) * batch.inverse
    y = batch.scaled(gain, per_channel(x, node.input(2)))
    cast = helper.make_node("Cast", [y.name], [node.y.name], to=node.y.elem_type)
    same = helper.make_node("Identity", [y.name], [node.y.name])
    op.append(cast if y.elem_type != node.y.elem_type else same)
    return batch


def _copy_with_batch_statistics(proto: onnx.NodeProto, batch: Normalized) -> onnx.NodeProto:
    node = helper.make_node(
        proto.op_type,
        proto.input,
        [proto.output[0], batch.mean.name, batch.variance.name],
        name=proto.name,
        momentum=0.0,  # so that the node outputs the statistics of the batch
    )
    node.attribute.extend(a for a in proto.attribute if a.name != "momentum")
    return node


def _require_carried(proto: onnx.NodeProto, names: list[str], carried: Collection[str]) -> None:
    for name in names:
        if name not in carried:
            raise ModelError(
                f"{node_label(proto)}: expected running statistics that only this node uses, or "
                f"computed ones; {name!r} is fed as data, or other nodes use it too. "
                "Export without folding or merging tensors; a weightless file lists them in its "
                "metadata under epochcost.state"
            )
