"""Write the files of a job: graphs in the trial's precision, and arrays as .npz archives.

``graphs.precision`` rewrites a graph in half precision; ``graphs.weight_bits`` quantises the
weights of a decoder.
"""

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
from epochcost.plan.work import Phase
from epochcost.specs.model import Model
from epochcost.specs.study import Precision
from onnxstep.graphs.binding import bind_dimensions
from onnxstep.graphs.initial import listed_parameters
from onnxstep.graphs.parameters import materialise, parameters, state
from onnxstep.graphs.precision import in_half_precision
from onnxstep.graphs.sequences import MAKERS


def bound_state(graph: onnx.ModelProto, model: Model) -> tuple[CarriedValue, ...]:
    """The carried values of ``graph``: inputs that take the previous step's outputs.

    All shapes of ``graph`` must be fixed.
    """
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
    """Write the values of a graph's stored parameters to a file, and return the file's path.

    None if the graph stores no values; the worker then initialises the parameters at random.
    """
    tensors = (*parameters(graph), *state(graph))
    stored = {tensor.name for tensor in tensors if tensor.initial is None}
    if not stored:
        return None
    values = materialise(graph)
    return save_arrays({name: values[name] for name in sorted(stored)}, path)


def save_arrays(arrays: Mapping[str, NDArray[Any]], path: Path) -> Path:
    """Write arrays to an .npz file and return its path; the names may be any texts.

    ``numpy.savez`` is not used, since it cannot write an array with the name ``file``.
    """
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

    ``plain`` is the file of ``graph``, which is in fp32 and has fixed shapes. If the graph needs no
    change, ``plain`` is returned. Otherwise, the new file is in the same folder. ``cache`` maps
    each cache input of a decoder to its cache output, by name. Raises ModelError if the graph
    cannot be rewritten.
    """
    rewritten = in_precision(trial, graph, cache)
    if rewritten is graph:
        return plain
    return save_graph(rewritten, plain.with_name(f"{plain.stem}-{trial.precision}.onnx"))


def in_precision(
    trial: Trial, graph: onnx.ModelProto, cache: Mapping[str, str] = MappingProxyType({})
) -> onnx.ModelProto:
    """An inference graph in the trial's precision; the same graph if nothing changes.

    ``graph`` has fixed shapes and is in fp32. ``cache`` maps each cache input of a decoder to its
    cache output. CUDA cannot make sequences of tensors, so in a graph for CUDA, nodes that read a
    sequence read its tensors instead. Raises ModelError if the graph cannot be rewritten.
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
    """The graph, in which nodes read tensors directly, not through a sequence of tensors.

    A node stays unchanged if the tensors of its sequence are unknown.
    """
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

    The file ``plain`` has the fp32 graph, which is the reference except for decoders in int4. For
    these, a new file next to ``plain`` is made from ``graph``. The new file has the quantised
    weights, but computes in fp32 and does not round activations. A decoder's reference runs on the
    CPU.
    """
    if trial.precision == "fp32":
        return None
    if trial.work.decodes and trial.precision == "int4":
        stored = bool(stored_bits(graph))
        exact = (
            in_exact_products(graph) if stored else in_few_bits(graph, integer_activations=False)
        )
        path = save_graph(exact, plain.with_name("reference.onnx"))
        # The CUDA provider has no fp32 kernel for attention with a cache.
        return Reference(graph=path, batches=batches, examples=trial.batch_size, provider="cpu")
    return Reference(
        graph=plain,
        batches=batches,
        examples=trial.batch_size,
        provider="cpu" if isinstance(trial.work, Phase) else None,
    )
