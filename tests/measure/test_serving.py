"""A served model answers the requested examples, whatever the size of the batch."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcost.measure.job import CarriedValue, Job, JobError, ServingFiles
from epochcost.measure.scenario import BatchQueue, ServedModel
from serving_jobs import EXAMPLES, WEIGHT, MakeServingJob, product_of


def test_every_batch_size_answers_its_own_examples(
    serving_job: MakeServingJob, tmp_path: Path
) -> None:
    """A single example, a padded batch of three and a batch of four get their own results."""
    job = serving_job()
    assert isinstance(job.serving, ServingFiles)
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
    """A request's state does not reach the next request."""
    graphs = {size: counting_of(size) for size in (1, 2)}
    carried = (CarriedValue(input="state", output="next"),)
    job = serving_job(graphs=graphs, carried=carried)
    assert isinstance(job.serving, ServingFiles)
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
    """A job without a value for a parameter is refused by the parameter's name."""
    job: Job = serving_job(initial=None)
    assert isinstance(job.serving, ServingFiles)
    with pytest.raises(JobError, match="input 'w' has no value"):
        ServedModel(job, job.serving.graphs, tmp_path)


def drained(queue: BatchQueue[int]) -> list[list[int]]:
    """All batches that remain in a queue when it is closed."""
    queue.close()
    return list(iter(queue.take, []))


@given(arrivals=st.lists(st.integers(1, 5), max_size=20), most=st.integers(1, 8))
def test_nothing_is_lost_or_reordered(arrivals: list[int], most: int) -> None:
    """All items leave the queue once, in order and in full batches but the last."""
    queue: BatchQueue[int] = BatchQueue(most, delay_seconds=0)
    number = 0
    for count in arrivals:
        queue.put(range(number, number + count))
        number += count
    batches = drained(queue)
    assert [item for batch in batches for item in batch] == list(range(number))
    assert all(len(batch) == most for batch in batches[:-1])


def test_without_a_delay_what_waits_goes_at_once() -> None:
    """Without a delay, waiting items leave at once in a batch that is not full."""
    queue: BatchQueue[int] = BatchQueue(4, delay_seconds=0)
    queue.put([1, 2])
    assert queue.take() == [1, 2]


def test_the_delay_lets_later_arrivals_join() -> None:
    """An item that arrives within the delay joins the batch."""
    queue: BatchQueue[int] = BatchQueue(2, delay_seconds=1, clock=lambda: 0.0)
    queue.put([1])
    later = threading.Timer(0.05, queue.put, [[2]])
    later.start()
    assert queue.take() == [1, 2]
    later.join()


def test_the_oldest_waits_no_longer_than_the_delay() -> None:
    """After the delay a single item is a batch."""
    times = iter([0.0])
    queue: BatchQueue[int] = BatchQueue(2, delay_seconds=1, clock=lambda: next(times, 1.5))
    queue.put([1])
    assert queue.take() == [1]
