"""Steps carry values on, read fresh batches, and copy outputs to the host."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from epochcost.measure import stepping
from epochcost.measure.job import CarriedValue, Job, JobError, PlacementError
from epochcost.measure.session import BFLOAT16, open_session
from epochcost.measure.stepping import (
    StepInputs,
    Stepper,
    graph_inputs,
    initial_parameters,
    load_arrays,
)
from epochcost.plan.trial import SessionSettings
from graph_text import model_of_text

POOL = np.arange(12, dtype=np.float32).reshape(3, 4) / 10
CARRIED = (CarriedValue(input="w", output="w_next"), CarriedValue(input="v", output="v_next"))


def stepper_of(job: Job) -> Stepper:
    """Bind a job to a stepper as the worker does."""
    session = open_session(job.graph, job.provider, job.session)
    inputs = graph_inputs(job, initial_parameters(job), session.get_inputs())
    return Stepper(session, job.provider, job.mode, inputs, job.carried, job.session)


def test_bfloat16_is_read_from_a_file(tmp_path: Path) -> None:
    """NumPy writes bfloat16 without its type, and reading restores the type."""
    numbers = np.array([0.1, 3], BFLOAT16)
    np.savez(tmp_path / "initial.npz", w=numbers)
    read = load_arrays(tmp_path / "initial.npz")["w"]
    assert read.dtype == BFLOAT16
    np.testing.assert_array_equal(read, numbers)


@pytest.mark.parametrize("steps", [0, 1, 2, 7, 50])
def test_values_are_carried_from_step_to_step(counting: Job, steps: int) -> None:
    """After n steps, w has moved by the sum of the batches and v has counted to n."""
    step = stepper_of(counting)
    for _ in range(steps):
        step()
    fed = sum((POOL[index % 3] for index in range(steps)), np.zeros(4, np.float32))
    values = step.carried_values()
    np.testing.assert_allclose(values["w"], 1 - 0.5 * fed, rtol=1e-4)
    np.testing.assert_array_equal(values["v"], [steps, steps])
    assert step.steps_taken == steps


def test_a_carried_value_starts_filled(counting: Job) -> None:
    """A value without initial numbers starts at the job's fill, others at their initial numbers."""
    carried = tuple(value.model_copy(update={"fill": 3.0}) for value in counting.carried)
    values = stepper_of(counting.model_copy(update={"carried": carried})).carried_values()
    np.testing.assert_array_equal(values["w"], np.ones(4))
    np.testing.assert_array_equal(values["v"], [3, 3])


def test_what_is_filled_takes_no_memory_beforehand(counting: Job) -> None:
    """A filled array stores one number only: moments would need twice the model's memory."""
    session = open_session(counting.graph, "cpu", counting.session)
    inputs = graph_inputs(counting, initial_parameters(counting), session.get_inputs())
    assert inputs.constants["v"].strides == (0,)
    assert inputs.constants["w"].strides == (4,)


def test_the_loss_of_the_last_step_can_be_read(counting: Job) -> None:
    """Outputs that are not carried are those of the last step."""
    step = stepper_of(counting)
    step()
    step()
    assert step.output("loss") == pytest.approx(4 - 0.5 * POOL[:2].sum(), rel=1e-5)


def test_the_arrays_given_are_left_alone(counter: onnx.ModelProto) -> None:
    """Steps do not write into the caller's arrays."""
    session = open_session(counter.SerializeToString(), "cpu")
    constants = {
        "w": np.ones(4, np.float32),
        "v": np.zeros(2, np.float32),
        "lr": np.full((), 0.5, np.float32),
    }
    step = Stepper(session, "cpu", "training", StepInputs({"g": POOL}, constants), CARRIED)
    for _ in range(4):
        step()
    np.testing.assert_array_equal(constants["w"], np.ones(4))
    np.testing.assert_array_equal(constants["v"], np.zeros(2))
    np.testing.assert_array_equal(POOL.ravel(), np.arange(12, dtype=np.float32) / 10)


def test_inference_serves_each_batch_in_turn(
    job_of: Callable[..., Job], product: onnx.ModelProto
) -> None:
    """Each step computes the outputs of the next batch."""
    rng = np.random.default_rng(3)
    x, w = rng.normal(size=(2, 2, 4)).astype("f4"), rng.normal(size=(4, 3)).astype("f4")
    step = stepper_of(job_of(product, {"x": x}, {"w": w}, mode="inference"))
    for batch in (x[0], x[1], x[0]):
        step()
        np.testing.assert_allclose(step.output("y"), np.maximum(batch @ w, 0), rtol=1e-5)


@pytest.mark.parametrize(
    ("batches", "initial", "words"),
    [
        ({"g": POOL[:, :3]}, {}, r"'g': expected float32 \[4\] for one step, got float32 \[3\]"),
        ({"g": POOL.astype("f8")}, {}, "expected float32"),
        ({"g": POOL, "h": POOL}, {}, "expected inputs of .*, got 'h'"),
        ({"g": POOL}, {"w": np.ones(5, "f4")}, r"'w': expected float32 \[4\]"),
        ({"g": POOL}, {}, "input 'lr' has no value"),
        ({"g": POOL[:0]}, {"lr": np.float32(1)}, "expected pools of equal sizes, at least 1"),
        ({"g": np.float32(1)}, {}, "'g': expected float32"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(
    job_of: Callable[..., Job],
    counter: onnx.ModelProto,
    batches: dict[str, object],
    initial: dict[str, object],
    words: str,
) -> None:
    """The message names the array, and the expected and the given shape or type."""
    with pytest.raises(JobError, match=words):
        stepper_of(job_of(counter, batches, initial, carried=CARRIED))


def test_a_symbolic_shape_is_refused(job_of: Callable[..., Job], product: onnx.ModelProto) -> None:
    """A graph with a symbolic shape is refused."""
    product.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    with pytest.raises(JobError, match=r"static shape.*'x'.*batch"):
        stepper_of(job_of(product, {"x": np.ones((1, 2, 4), "f4")}, {}, mode="inference"))


@pytest.mark.parametrize("kind", ["uint8", "uint16", "uint32", "uint64"])
def test_outputs_may_be_natural_numbers(kind: str) -> None:
    """A model may return classes or counts in any type of natural numbers."""
    number = onnx.TensorProto.DataType.Value(kind.upper())
    cast = f"g (float[2] x) => ({kind}[2] y) {{ y = Cast <to = {number}> (x) }}"
    session = open_session(model_of_text(cast).SerializeToString(), "cpu")
    batches = {"x": np.array([[3, 7]], np.float32)}
    step = Stepper(session, "cpu", "inference", StepInputs(batches, {}))
    step()
    assert step.output("y").dtype == kind
    assert step.output("y").tolist() == [3, 7]


def test_an_unreadable_archive_is_refused(counting: Job) -> None:
    """A file that is no .npz is refused by its name."""
    counting.batches.write_bytes(b"no archive")
    with pytest.raises(JobError, match=r"batches.npz: expected an .npz"):
        stepper_of(counting)


def test_a_series_is_fed_step_by_step_and_its_last_value_is_kept(
    job_of: Callable[..., Job], counter: onnx.ModelProto, tmp_path: Path
) -> None:
    """Step t has the t-th rate of the series. Later steps have the last rate."""
    rates = np.array([0.5, 0.25, 0.1], np.float32)
    np.savez(tmp_path / "series.npz", lr=rates)
    ones = np.ones(4, np.float32)
    job = job_of(
        counter,
        {"g": np.stack([ones, ones])},
        {"w": ones},
        series=tmp_path / "series.npz",
        carried=CARRIED,
    )
    step, expected = stepper_of(job), 1.0
    for index in range(6):
        step()
        expected -= rates[min(index, 2)]
        np.testing.assert_allclose(step.carried_values()["w"], expected * ones, rtol=1e-5)


@pytest.mark.parametrize(
    ("series", "words"),
    [
        ({"rate": np.ones(3, "f4")}, r"series.npz: expected inputs of .*, got 'rate'"),
        ({"lr": np.ones((3, 1), "f4")}, r"'lr': expected float32 \[\] for one step"),
        ({"lr": np.ones(0, "f4")}, r"series: expected equal lengths of at least 1, got \[0\]"),
        ({"lr": np.ones(2, "f4"), "g": np.ones((3, 4), "f4")}, r"equal lengths .*, got \[2, 3\]"),
    ],
)
def test_a_series_that_does_not_fit_is_refused(
    job_of: Callable[..., Job],
    counter: onnx.ModelProto,
    tmp_path: Path,
    series: dict[str, np.ndarray],
    words: str,
) -> None:
    """The message names the file and the input of the series."""
    np.savez(tmp_path / "series.npz", **series)
    batches = {} if "g" in series else {"g": POOL}
    job = job_of(counter, batches, {"w": np.ones(4, "f4")}, scalars={"lr": 1.0}, carried=CARRIED)
    with pytest.raises(JobError, match=words):
        stepper_of(job.model_copy(update={"series": tmp_path / "series.npz"}))


def test_inference_carries_state_from_call_to_call(
    job_of: Callable[..., Job], counter: onnx.ModelProto
) -> None:
    """A served model's state starts at zero and is carried on. The state is not an output."""
    job = job_of(counter, {"g": POOL}, {}, mode="inference", scalars={"lr": -1.0}, carried=CARRIED)
    step = stepper_of(job)
    for _ in range(3):
        step()
    np.testing.assert_allclose(step.carried_values()["w"], POOL.sum(axis=0), rtol=1e-5)
    with pytest.raises(JobError, match="expected an output 'w_next' that is not"):
        step.output("w_next")


class Recording:
    """A session that records which CUDA graph each run names."""

    def __init__(self, session: ort.InferenceSession) -> None:
        self._session = session
        self.graphs: list[tuple[int, str]] = []

    def __getattr__(self, name: str) -> object:
        """Delegate everything else to the session."""
        return getattr(self._session, name)

    def run_with_iobinding(self, binding: ort.IOBinding, options: ort.RunOptions) -> None:
        """Record the graph's name and run."""
        self.graphs.append((id(binding), options.get_run_config_entry("gpu_graph_id")))
        self._session.run_with_iobinding(binding, options)


def test_each_binding_has_a_cuda_graph_of_its_own(counter: onnx.ModelProto) -> None:
    """Even and odd steps have separate CUDA graphs, since a graph keeps its addresses."""
    session = Recording(open_session(counter.SerializeToString(), "cpu"))
    constants = {"w": np.ones(4, "f4"), "v": np.zeros(2, "f4"), "lr": np.full((), 0.5, "f4")}
    settings = SessionSettings(cuda_graph=True)
    inputs = StepInputs({"g": POOL}, constants)
    step = Stepper(session, "cpu", "training", inputs, CARRIED, settings)
    for _ in range(4):
        step()
    assert [graph for _, graph in session.graphs] == ["0", "1", "0", "1"]
    assert len(set(session.graphs)) == 2
    np.testing.assert_array_equal(step.carried_values()["v"], [4, 4])


def test_an_input_that_the_host_reads_is_no_part_of_a_cuda_graph(
    counting: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A changing input that the host reads is refused. A replay would miss the change."""
    homes = {"w": "cpu", "v": "cpu", "g": "cpu", "lr": "cpu"}
    job = counting.model_copy(update={"session": SessionSettings(cuda_graph=True)})
    monkeypatch.setattr(stepping, "input_devices", lambda *_: homes | {"g": "elsewhere"})
    with pytest.raises(PlacementError, match="got g read by the host"):
        stepper_of(job)
    monkeypatch.setattr(stepping, "input_devices", lambda *_: homes)
    stepper_of(job)()


def test_a_graph_that_serves_leaves_its_outputs_on_the_device(
    job_of: Callable[..., Job], product: onnx.ModelProto
) -> None:
    """With a CUDA graph, outputs are copied to the host after the replay."""
    x, w = np.ones((1, 2, 4), "f4"), np.ones((4, 3), "f4")
    settings = SessionSettings(cuda_graph=True)
    step = stepper_of(job_of(product, {"x": x}, {"w": w}, mode="inference", session=settings))
    step()
    np.testing.assert_array_equal(step.output("y"), np.full((2, 3), 4))
