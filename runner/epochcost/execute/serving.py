"""From a trial under LoadGen to a worker's job: a graph for each batch size, and the examples.

Nothing is executed here. Batches of training and of full inference are left to ``build``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from epochcost.execute.arrays import save_arrays, save_graph
from epochcost.execute.binding import bound, carried_state
from epochcost.execute.precision import graph_in_precision, reference_of
from epochcost.execute.running import Built, job_of
from epochcost.measure.job import Carried, Job, Serving
from epochcost.plan.load import Load
from epochcost.plan.trial import Trial
from epochcost.specs.model import Model
from epochcost.train.batches import POOL_BYTES, TRAINING_STREAM, example_fields
from epochcost.train.teacher import Teacher

# As many as MLPerf keeps of ImageNet for ResNet-50 (loadgen/mlperf.conf), or what fits in the pool.
_MOST_EXAMPLES = 1024
_FEWEST_EXAMPLES = 8


def serving_job(
    trial: Trial, load: Load, model: Model, graph: onnx.ModelProto, folder: Path
) -> Job:
    """Write graphs and examples into ``folder``; ``graph`` is the model's, not yet bound.

    Raises ModelError where the graph cannot be bound or does not fit the spec.
    """
    sizes = powers_of_two(trial.batch_size)
    graphs = {size: bound(graph, model, size) for size in sizes}
    fields = example_fields(graphs[1], model, 1)
    teacher = Teacher(fields, (), trial.seed)
    room = POOL_BYTES // max(1, sum(field.example_bytes for field in fields))
    count = max(_FEWEST_EXAMPLES, min(_MOST_EXAMPLES, room))
    examples = teacher.draw(TRAINING_STREAM, 0, count).inputs
    plain = {
        size: save_graph(each, folder / f"serving-{size}.onnx") for size, each in graphs.items()
    }
    firsts = {size: _first_batch(examples, size, folder) for size in sizes}
    files = {
        size: graph_in_precision(trial, graphs[size], plain[size], firsts[size]) for size in sizes
    }
    largest = trial.batch_size
    built = Built(
        graph=files[largest],
        reference=reference_of(trial, graphs[largest], plain[largest], firsts[largest]),
        batches=save_arrays(examples, folder / "examples.npz"),
        carried=tuple(
            Carried(input=state.input, output=state.output)
            for state in carried_state(graphs[1], model)
        ),
        serving=Serving(load=load, graphs=files),
    )
    return job_of(trial, built)


def _first_batch(examples: Mapping[str, NDArray[Any]], size: int, folder: Path) -> Path:
    """A pool ``[1, size, ...]`` of the first examples, over again where they are too few."""
    first = {
        name: np.resize(values, (1, size, *values.shape[1:])) for name, values in examples.items()
    }
    return save_arrays(first, folder / f"first-{size}.npz")


def powers_of_two(largest: int) -> tuple[int, ...]:
    """The batch sizes to have graphs for: powers of two below ``largest``, and that itself."""
    return (*(2**power for power in range(largest.bit_length()) if 2**power < largest), largest)
