"""Write the files of a trial under MLPerf's LoadGen: a graph for each batch size, and examples."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from epochcost.execute.job_files import (
    bound_state,
    fp32_reference,
    graph_in_precision,
    save_arrays,
    save_graph,
)
from epochcost.measure.job import JobFiles, ServingFiles
from epochcost.plan.binding import bind_model
from epochcost.plan.trial import Trial
from epochcost.plan.work import Load
from epochcost.specs.model import Model
from epochcost.train.batches import POOL_BYTES, TRAINING_STREAM, example_fields
from epochcost.train.teacher import Teacher
from onnxstep.passes.gelu import with_halving_last

# The number that MLPerf demands for ResNet-50 (loadgen/mlperf.conf); fewer if memory is too small.
_MOST_EXAMPLES = 1024
_FEWEST_EXAMPLES = 8


def load_files(
    trial: Trial, load: Load, model: Model, graph: onnx.ModelProto, folder: Path
) -> JobFiles:
    """Write graphs and examples into ``folder``; ``graph`` is the model without fixed shapes.

    Raises ModelError if the graph cannot get fixed shapes or does not fit the spec.
    """
    bound = {
        size: with_halving_last(bind_model(graph, model, size))
        for size in powers_of_two(trial.batch_size)
    }
    teacher = Teacher(example_fields(bound[1], model, 1), (), trial.seed)
    room = POOL_BYTES // max(1, teacher.example_bytes)
    count = max(_FEWEST_EXAMPLES, min(_MOST_EXAMPLES, room))
    examples = teacher.draw(TRAINING_STREAM, 0, count)
    files: dict[int, Path] = {}
    for size, fixed in bound.items():
        plain = save_graph(fixed, folder / f"serving-{size}.onnx")
        files[size] = graph_in_precision(trial, fixed, plain)
    # The sizes ascend, so the loop ends with the largest.
    first = _write_first_batch(examples, size, folder)
    return JobFiles(
        graph=files[trial.batch_size],
        reference=fp32_reference(trial, fixed, plain, first),
        batches=save_arrays(examples, folder / "examples.npz"),
        carried=bound_state(bound[1], model),
        serving=ServingFiles(load=load, graphs=files),
    )


def _write_first_batch(examples: Mapping[str, NDArray[Any]], batch_size: int, folder: Path) -> Path:
    # If there are fewer than ``batch_size`` examples, they are repeated.
    first = {
        name: np.resize(values, (1, batch_size, *values.shape[1:]))
        for name, values in examples.items()
    }
    return save_arrays(first, folder / f"first-{batch_size}.npz")


def powers_of_two(largest: int) -> tuple[int, ...]:
    """The batch sizes for which graphs are written: ``largest``, and all powers of two below it."""
    return (*(2**power for power in range(largest.bit_length()) if 2**power < largest), largest)
