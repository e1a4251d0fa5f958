"""Counting the arithmetic of one graph, for ``arithmetic``, which knows what was counted before."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import onnx

from epochcost.errors import ModelError
from epochcost.graphs.profile import Arithmetic, Profile
from epochcost.graphs.profiling import profile_of_bound
from onnxstep.graphs.binding import bind_dimensions, symbolic_dimensions
from onnxstep.graphs.counting import Shapes, flops, static_shapes
from onnxstep.graphs.loading import load_model
from onnxstep.graphs.parameters import data_inputs, parameter_count, parameters


def _looked_up(graph: onnx.ModelProto) -> int:
    """The parameters that are nothing but the tables of Gather."""
    tables = {node.input[0] for node in graph.graph.node if node.op_type == "Gather"}
    others = {
        name
        for node in graph.graph.node
        for at, name in enumerate(node.input)
        if node.op_type != "Gather" or at > 0
    }
    only = tables - others
    return sum(math.prod(one.shape) for one in parameters(graph) if one.name in only)


def count(path: Path, dimensions: Mapping[str, int]) -> Arithmetic | None:
    """The arithmetic of a file; None where it cannot be counted."""
    try:
        graph = load_model(path)
        batch = dict.fromkeys(symbolic_dimensions(graph), 1)
        bound = bind_dimensions(graph, {**batch, **dimensions})
        examples = next((data.shape[0] for data in data_inputs(bound) if data.shape), 1)
        shapes = static_shapes(bound)
        forward = flops(bound, shapes) / int(examples)
        profile = _profile(bound, shapes)
        return Arithmetic(parameter_count(graph), forward, _looked_up(graph), profile)
    except ModelError:
        return None


def _profile(bound: onnx.ModelProto, shapes: Shapes) -> Profile | None:
    try:
        return profile_of_bound(bound, shapes)
    except ModelError:
        return None
