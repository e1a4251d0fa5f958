"""From a trial under LoadGen to a worker's job: a graph for each batch size, and the examples.

Nothing is executed here. Batches of training and of full inference are left to ``build``.
"""

from __future__ import annotations

from pathlib import Path

import onnx

from epochcost.execute.arrays import save_arrays, save_graph
from epochcost.execute.binding import bound, carried_state
from epochcost.execute.running import running
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
    files = {
        size: save_graph(each, folder / f"serving-{size}.onnx") for size, each in graphs.items()
    }
    return Job(
        mode="inference",
        **running(trial),
        graph=files[trial.batch_size],
        batches=save_arrays(examples, folder / "examples.npz"),
        carried=tuple(
            Carried(input=state.input, output=state.output)
            for state in carried_state(graphs[1], model)
        ),
        serving=Serving(load=load, graphs=files),
    )


def powers_of_two(largest: int) -> tuple[int, ...]:
    """The batch sizes to have graphs for: powers of two below ``largest``, and that itself."""
    return (*(2**power for power in range(largest.bit_length()) if 2**power < largest), largest)
