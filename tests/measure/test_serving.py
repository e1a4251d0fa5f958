"""A served model answers exactly what it is asked, whatever the size of the batch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from epochcost.measure.job import CarriedValue, Job, JobError
from epochcost.measure.serving import ServedModel
from serving_jobs import EXAMPLES, WEIGHT, MakeServingJob, product_of


def test_every_batch_size_answers_its_own_examples(
    serving_job: MakeServingJob, tmp_path: Path
) -> None:
    """One, a padded three and a full four: row by row the product of the example and the weight."""
    job = serving_job()
    assert job.serving is not None
    model = ServedModel(job, job.serving.graphs, tmp_path)
    for indices in ([2], [0, 1, 4], [4, 3, 2, 1]):
        model(indices)
        rows = model.output("y")[: len(indices)]
        np.testing.assert_allclose(rows, np.maximum(EXAMPLES[indices] @ WEIGHT, 0), rtol=1e-6)
    assert model.sizes == (1, 2, 4)
    assert model.runs == 3 + len(model.sizes), "each size was run once for its proof"
    assert "MatMul" in str(model.placement.nodes_by_provider)
    assert not list(tmp_path.glob("profile*"))


def test_carried_state_starts_anew_at_every_request(
    serving_job: MakeServingJob, tmp_path: Path
) -> None:
    """What one request leaves behind is nothing to the next."""
    graphs = {size: counting_of(size) for size in (1, 2)}
    carried = (CarriedValue(input="state", output="next"),)
    job = serving_job(graphs=graphs, carried=carried)
    assert job.serving is not None
    model = ServedModel(job, job.serving.graphs, tmp_path)
    for _ in range(3):
        model([0])
        np.testing.assert_array_equal(model.output("next"), EXAMPLES[[0]])


def counting_of(size: int) -> onnx.ModelProto:
    """A graph that adds its input to its state."""
    model = product_of(size)
    del model.graph.node[:]
    del model.graph.output[:]
    model.graph.node.append(onnx.helper.make_node("Add", ["x", "state"], ["next"]))
    kind = onnx.TensorProto.FLOAT
    model.graph.input[1].CopyFrom(onnx.helper.make_tensor_value_info("state", kind, [size, 4]))
    model.graph.output.append(onnx.helper.make_tensor_value_info("next", kind, [size, 4]))
    return model


def test_an_input_without_a_value_is_named(serving_job: MakeServingJob, tmp_path: Path) -> None:
    """A parameter that nobody gives is a fault of the job."""
    job: Job = serving_job(initial=None)
    assert job.serving is not None
    with pytest.raises(JobError, match="input 'w' has no value"):
        ServedModel(job, job.serving.graphs, tmp_path)
