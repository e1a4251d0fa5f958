"""Write the files of a job: graphs in the trial's precision, and arrays as .npz archives."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from epochcost.errors import ModelError
from epochcost.graphs.weight_bits import in_exact_products, in_few_bits, scale_inputs, stored_bits
from epochcost.measure.job import CarriedValue, Reference
from epochcost.measure.placement import HALF_TYPES
from epochcost.plan.binding import carried_state
from epochcost.plan.trial import Trial
from epochcost.specs.model import Model
from epochcost.specs.study import Precision
from onnxstep.graphs.binding import bind_dimensions
from onnxstep.graphs.initial import listed_parameters
from onnxstep.graphs.parameters import materialise, parameters, state
from onnxstep.graphs.precision import in_half_precision
from onnxstep.graphs.sequences import MAKERS


def bound_state(graph: onnx.ModelProto, model: Model) -> tuple[CarriedValue, ...]:
    """Inputs of a graph with fixed shapes that take the previous step's outputs."""
    in_place = model.decoder is not None
    return tuple(
        CarriedValue(input=state.input, output=state.output, in_place=in_place)
        for state in carried_state(graph, model)
    )


def save_graph(graph: onnx.ModelProto, path: Path) -> Path:
    """Write a graph to a file and return the path."""
    path.write_bytes(graph.SerializeToString())
    return path


def save_stored_weights(graph: onnx.ModelProto, path: Path) -> Path | None:
    """Write the parameters that a graph stores to a file; None if the graph stores no values."""
    tensors = (*parameters(graph), *state(graph))
    stored = {tensor.name for tensor in tensors if tensor.initial is None}
    if not stored:
        return None
    values = materialise(graph)
    return save_arrays({name: values[name] for name in sorted(stored)}, path)


def save_arrays(arrays: Mapping[str, NDArray[Any]], path: Path) -> Path:
    """Write an .npz file; unlike with ``numpy.savez``, an array may have the name ``file``."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, values in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, values, allow_pickle=False)
    return path


def cache_names(graph: onnx.ModelProto, model: Model) -> dict[str, str]:
    """Map each cache input of a decoder to its cache output, by name; empty for other models."""
    carried = bound_state(graph, model)
    return {state.input: state.output for state in carried if state.in_place}


def graph_in_precision(
    trial: Trial,
    graph: onnx.ModelProto,
    plain: Path,
    cache: Mapping[str, str] = MappingProxyType({}),
) -> Path:
    """Write an inference graph in the trial's precision and return the path of its file.

    The result is ``plain``, the file of ``graph``, if nothing changes. See also ``in_precision``.
    """
    rewritten = in_precision(trial, graph, cache)
    if rewritten is graph:
        return plain
    return save_graph(rewritten, plain.with_name(f"{plain.stem}-{trial.precision}.onnx"))


def in_precision(
    trial: Trial, graph: onnx.ModelProto, cache: Mapping[str, str] = MappingProxyType({})
) -> onnx.ModelProto:
    """An inference graph in the trial's precision; the same graph if nothing changes.

    ``graph`` is in fp32 with fixed shapes, ``cache`` from ``cache_names``. For CUDA, which cannot
    make sequences, nodes read tensors instead. Raises ModelError if the graph cannot be rewritten.
    """
    if trial.provider == "cuda":
        graph = without_sequences(graph)
    if trial.work.decodes and (reason := why_unmeasured(graph, trial.precision)):
        raise ModelError(f"model {trial.model}: {reason}")
    if trial.precision in HALF_TYPES:
        return in_half_precision(graph, HALF_TYPES[trial.precision], cache)
    if trial.work.decodes and trial.precision == "int4" and not stored_bits(graph):
        # CPUs multiply integers fastest; the kernels of a GPU read half precision.
        on_cpu = trial.provider == "cpu"
        codes = in_few_bits(graph, integer_activations=on_cpu)
        if on_cpu:
            return codes
        return in_half_precision(codes, HALF_TYPES["fp16"], cache, scale_inputs(codes))
    return graph


def without_sequences(graph: onnx.ModelProto) -> onnx.ModelProto:
    """The graph, in which nodes read tensors directly instead of sequences of known tensors."""
    if not any(node.op_type in MAKERS for node in graph.graph.node):
        return graph
    return bind_dimensions(graph, {}, plain_sequences=True)


def why_unmeasured(graph: onnx.ModelProto, precision: Precision) -> str | None:
    """The reason why a decoder's file cannot run in a precision; None if it can."""
    if stored_bits(graph) and precision != "int4":
        return (
            f"its file stores weights of 4 bits, not in {precision}: choose int4 in the study's "
            "precisions, or build it with -p fp32 for others"
        )
    drawn = precision == "int4" and not stored_bits(graph)
    if drawn and listed_parameters(graph) is None:
        return (
            f"its file stores weights in fp32, but {precision} needs weights drawn at random: make "
            "the file weightless by `epochcost weightless`, or build it with -p int4"
        )
    return None


def fp32_reference(
    trial: Trial, graph: onnx.ModelProto, plain: Path, batches: Path
) -> Reference | None:
    """The trial's graph and data in fp32, to compare outputs; None if the trial is in fp32.

    The graph is the file ``plain``. For decoders in int4, it is a new file with quantised weights
    that computes in fp32 and does not round activations. A decoder's reference runs on the CPU.
    """
    if trial.precision == "fp32":
        return None
    path = plain
    if trial.work.decodes and trial.precision == "int4":
        stored = bool(stored_bits(graph))
        exact = (
            in_exact_products(graph) if stored else in_few_bits(graph, integer_activations=False)
        )
        path = save_graph(exact, plain.with_name("reference.onnx"))
    return Reference(
        graph=path,
        batches=batches,
        examples=trial.batch_size,
        # The CUDA provider has no fp32 kernel for attention with a cache.
        provider="cpu" if trial.work.decodes else None,
    )
