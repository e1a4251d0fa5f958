"""A model's graph in the form that onnxruntime-training 1.19.2 can differentiate.

The graph has weights, is in training mode, and has the loss as its first output. Operators without
a gradient in onnxruntime-training are replaced by equivalent operators.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from steps.work import Array, Term, Work

LOSS = "loss"


def trainable(work: Work, weights: dict[str, Array]) -> onnx.ModelProto:
    """The forward graph in training mode with weights; its first output is the loss."""
    model = onnx.load(work.forward)
    graph = model.graph
    shapes = {value.name: value for value in graph.output}
    graph.initializer.extend(numpy_helper.from_array(v, name) for name, v in weights.items())
    fed = [value for value in graph.input if value.name not in weights]
    del graph.input[:], graph.output[:]
    graph.input.extend(fed)
    nodes = _needed(graph, [*work.carried.values(), *(term.output for term in work.terms)])
    del graph.node[:]
    graph.node.extend(nodes)
    for node in graph.node:
        _train(node)
    _join_constants(graph)
    _complete_lstms(graph, work.batch_size)
    graph.initializer.append(numpy_helper.from_array(np.array(True), "in_training"))
    terms = [
        _with_loss(graph, term, shapes[term.output], number)
        for number, term in enumerate(work.terms)
    ]
    graph.node.extend(_added(terms))
    graph.output.append(helper.make_tensor_value_info(LOSS, TensorProto.FLOAT, ()))
    graph.output.extend(shapes[name] for name in work.carried.values())
    return model


def _needed(graph: onnx.GraphProto, outputs: Sequence[str]) -> list[onnx.NodeProto]:
    """The nodes that the outputs need; all other nodes would need gradients too."""
    names, needed = set(outputs), []
    for node in reversed(graph.node):
        if names & set(node.output):
            names |= set(node.input)
            needed.append(node)
    return needed[::-1]


def _added(terms: list[str]) -> Iterator[onnx.NodeProto]:
    """The sum of the terms by Add, since Sum has no gradient in onnxruntime-training."""
    total = terms[0]
    for number, term in enumerate(terms[1:], 1):
        yield helper.make_node("Add", [total, term], [f"{LOSS}.upto.{number}"])
        total = f"{LOSS}.upto.{number}"
    yield helper.make_node("Identity", [total], [LOSS])


def _join_constants(graph: onnx.GraphProto) -> None:
    """Replace repeated inputs of Concat, whose gradients would all have one name."""
    constants = {
        node.output[0]: numpy_helper.to_array(node.attribute[0].t)
        for node in graph.node
        if node.op_type == "Constant" and node.attribute[0].name == "value"
    }
    for node in graph.node:
        if node.op_type == "Concat" and len(set(node.input)) < len(node.input):
            first = next(i for i, name in enumerate(node.input) if name in constants)
            rest = list(node.input[first:])
            assert constants.keys() >= set(rest), f"{node.name}: a constant stands before a value"
            axis = helper.get_attribute_value(node.attribute[0])
            joined = np.concatenate([constants[name] for name in rest], axis)
            name = f"{node.output[0]}.constant"
            graph.initializer.append(numpy_helper.from_array(joined, name))
            del node.input[first:]
            node.input.append(name)


def _complete_lstms(graph: onnx.GraphProto, batch_size: int) -> None:
    """Give LSTMs all states as inputs, and all outputs, which the gradient requires."""
    for node in graph.node:
        if node.op_type != "LSTM":
            continue
        named = [*node.output, "", "", ""][:3]
        node.output[:] = [output or f"{node.name}.{index}" for index, output in enumerate(named)]
        if len(node.input) == 4:
            settings = {a.name: helper.get_attribute_value(a) for a in node.attribute}
            directions = 2 if settings["direction"] == b"bidirectional" else 1
            zeros = np.zeros((directions, batch_size, settings["hidden_size"]), np.float32)
            names = [f"{node.name}.{state}" for state in ("h", "c")]
            graph.initializer.extend(numpy_helper.from_array(zeros, name) for name in names)
            node.input.extend(["", *names])


def _train(node: onnx.NodeProto) -> None:
    """The node in training mode, in a form with a gradient in onnxruntime-training.

    Gradients read outputs that inference omits. CastLike has no gradient; in these graphs it casts
    a constant to float32.
    """
    name = node.output[0]
    if node.op_type == "Dropout":
        node.input.append("in_training")
        node.output.append(f"{name}.mask")
    if node.op_type == "LayerNormalization":
        node.output.extend([f"{name}.mean", f"{name}.inverse"])
    if node.op_type == "BatchNormalization":
        node.attribute.append(helper.make_attribute("training_mode", 1))
        node.output.extend([f"{name}.mean", f"{name}.variance"])
    if node.op_type == "CastLike":
        del node.input[1:]
        node.op_type = "Cast"
        node.attribute.append(helper.make_attribute("to", TensorProto.FLOAT))


def _with_loss(graph: onnx.GraphProto, term: Term, scores: onnx.ValueInfoProto, number: int) -> str:
    """Append a loss term; returns the name of its weighted value."""
    shape = [dim.dim_value for dim in scores.type.tensor_type.shape.dim]
    softmax = term.loss == "softmax_cross_entropy"
    kind = TensorProto.INT64 if softmax else TensorProto.FLOAT
    graph.input.append(
        helper.make_tensor_value_info(term.target, kind, shape[:-1] if softmax else shape)
    )
    prefix = f"{LOSS}.{number}"
    weight = numpy_helper.from_array(np.array(term.weight, np.float32), f"{prefix}.weight")
    graph.initializer.append(weight)
    make = _softmax_nodes if softmax else _sigmoid_nodes
    graph.initializer.extend(_constants(prefix, shape))
    graph.node.extend(make(prefix, term))
    graph.node.append(helper.make_node("Mul", [f"{prefix}.value", weight.name], [f"{prefix}.out"]))
    return f"{prefix}.out"


def _constants(prefix: str, shape: list[int]) -> Iterator[TensorProto]:
    yield numpy_helper.from_array(np.array([-1, shape[-1]]), f"{prefix}.rows")
    yield numpy_helper.from_array(np.array([-1]), f"{prefix}.flat")
    yield numpy_helper.from_array(np.array(1, np.float32), f"{prefix}.one")


def _softmax_nodes(prefix: str, term: Term) -> list[onnx.NodeProto]:
    return [
        helper.make_node("Reshape", [term.output, f"{prefix}.rows"], [f"{prefix}.scores"]),
        helper.make_node("Reshape", [term.target, f"{prefix}.flat"], [f"{prefix}.labels"]),
        helper.make_node(
            "SoftmaxCrossEntropyLoss",
            [f"{prefix}.scores", f"{prefix}.labels"],
            [f"{prefix}.value", f"{prefix}.log_p"],
            reduction="mean",
        ),
    ]


def _sigmoid_nodes(prefix: str, term: Term) -> list[onnx.NodeProto]:
    """Nodes of -mean(y log s + (1 - y) log(1 - s)) with s the sigmoid of the scores."""
    assert term.loss == "sigmoid_cross_entropy", f"no loss here is called {term.loss}"
    lines = (
        ("Sigmoid", [term.output], ".s"),
        ("Log", [".s"], ".log_s"),
        ("Mul", [term.target, ".log_s"], ".hit"),
        ("Sub", [".one", ".s"], ".rest"),
        ("Log", [".rest"], ".log_rest"),
        ("Sub", [".one", term.target], ".no"),
        ("Mul", [".no", ".log_rest"], ".miss"),
        ("Add", [".hit", ".miss"], ".both"),
        ("ReduceMean", [".both"], ".mean"),
        ("Neg", [".mean"], ".value"),
    )

    def full(name: str) -> str:
        return prefix + name if name.startswith(".") else name

    return [
        helper.make_node(
            kind,
            [full(name) for name in output],
            [full(outputs)],
            **({"keepdims": 0} if kind == "ReduceMean" else {}),
        )
        for kind, output, outputs in lines
    ]
