"""Tests that need a GPU; `pytest -m cuda` runs them on a machine with a GPU.

The same logic is tested without a GPU in test_stepping, test_session, test_worker, test_placement
and test_gpus. These tests use the real library, driver and device.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from epochcost.errors import CapabilityError
from epochcost.execute.build import build_job
from epochcost.execute.planning import plan_run, require_device
from epochcost.measure import worker
from epochcost.measure.gpus import shown_gpus
from epochcost.measure.job import Job, OutOfMemory, PlacementError, SamplingRule
from epochcost.measure.memory import tells_out_of_memory
from epochcost.measure.session import open_session
from epochcost.measure.stepping import Array, Stepper, graph_inputs, initial_parameters
from epochcost.measure.trial import run_trial
from epochcost.measure.watch import Watch
from epochcost.plan.make import RunRequest
from epochcost.plan.trial import SessionSettings
from epochcost.specs.loader import load_catalogue
from usable_providers import usable_providers

ROOT = Path(__file__).parents[2]
CUDA = "CUDAExecutionProvider"
BRIEF = SamplingRule(
    relative_half_width=0.5, minimum_samples=5, minimum_seconds=0.1, budget_seconds=3
)
CAPTURED = SessionSettings(cuda_graph=True)
with_gpu = pytest.mark.skipif("cuda" not in usable_providers(), reason="no usable GPU")


def digits_job(folder: Path, **fields: object) -> Job:
    """A training step of the convolutional MNIST model at batch 8, with Dropout inactive."""
    catalogue = load_catalogue(ROOT)
    plan = plan_run(catalogue, RunRequest(models=("mnist-cnn",), providers=("cpu",), quick=True))
    drawn = next(trial for trial in plan.trials if trial.mode == "training")
    trial = drawn.model_copy(update={"batch_size": 8, "provider": "cuda"})
    model = catalogue.model("mnist-cnn")
    job = build_job(trial, model, catalogue.graph_path(model), folder)
    step = onnx.load(job.graph)
    for node in step.graph.node:
        if node.op_type == "Dropout":
            del node.input[2:]
    onnx.save(step, job.graph)
    return job.model_copy(update={"sampling": BRIEF, "evaluation": None, **fields})


def stepped(job: Job, steps: int) -> dict[str, Array]:
    """The carried values after a number of steps."""
    session = open_session(job.graph, job.provider, job.session)
    inputs = graph_inputs(job, initial_parameters(job), session.get_inputs())
    step = Stepper(session, job.provider, job.mode, inputs, job.carried, job.session)
    for _ in range(steps):
        step()
    return step.carried_values()


@pytest.mark.cuda
@with_gpu
def test_a_training_step_runs_on_the_gpu(tmp_path: Path) -> None:
    """Only shape arithmetic runs on the CPU, and the watch names the GPU in use."""
    job = digits_job(tmp_path)
    with Watch("cuda") as watch:
        measured = watch.completed(run_trial(job, tmp_path, watch.follow))
    assert sum(measured.placement.nodes_by_provider[CUDA].values()) > 20
    assert measured.conditions is not None
    assert measured.conditions.device_memory_bytes
    assert measured.conditions.devices == (shown_gpus()[0].pci_address,)


@pytest.mark.cuda
@with_gpu
def test_gradients_agree_with_those_of_the_cpu(tmp_path: Path) -> None:
    """One step of the same graph agrees on GPU and CPU but for rounding."""
    job = digits_job(tmp_path)
    ours = stepped(job, 1)
    cpu = job.model_copy(update={"provider": "cpu", "session": SessionSettings()})
    for name, value in stepped(cpu, 1).items():
        np.testing.assert_allclose(ours[name], value, rtol=1e-3, atol=1e-5, err_msg=name)


@pytest.mark.cuda
@with_gpu
def test_a_replayed_graph_computes_what_single_kernels_do(tmp_path: Path) -> None:
    """Ten steps with two captures and eight replays give the values of plain steps."""
    job = digits_job(tmp_path)
    captured = stepped(job.model_copy(update={"session": CAPTURED}), 10)
    for name, value in stepped(job, 10).items():
        np.testing.assert_allclose(captured[name], value, rtol=1e-3, atol=1e-4, err_msg=name)


@pytest.mark.cuda
@with_gpu
def test_a_graph_that_serves_brings_its_outputs_home(
    job_of: Callable[..., Job], product: onnx.ModelProto
) -> None:
    """Each replay returns the outputs of its own batch, not those of the capture."""
    x = np.arange(24, dtype="f4").reshape(3, 2, 4)
    job = job_of(product, {"x": x}, {"w": np.ones((4, 3), "f4")}, mode="inference")
    job = job.model_copy(update={"provider": "cuda", "session": CAPTURED})
    session = open_session(job.graph, "cuda", CAPTURED)
    inputs = graph_inputs(job, initial_parameters(job), session.get_inputs())
    step = Stepper(session, "cuda", "inference", inputs, (), CAPTURED)
    for batch in (*x, *x):
        step()
        np.testing.assert_allclose(step.output("y"), batch @ np.ones((4, 3), "f4"), rtol=1e-5)


@pytest.mark.cuda
@with_gpu
def test_control_flow_is_no_cuda_graph(tmp_path: Path, job_of: Callable[..., Job]) -> None:
    """A graph with control flow is refused in one line before ONNX Runtime captures it."""
    info = helper.make_tensor_value_info
    nodes = [helper.make_node("Add", ["sum", "row"], ["total"])]
    nodes += [helper.make_node("Identity", ["total"], ["kept"])]
    ends = [info("sum", 1, [64]), info("row", 1, [64])], [info("total", 1, [64])]
    body = helper.make_graph(nodes, "body", ends[0], [*ends[1], info("kept", 1, [64])])
    scan = helper.make_node("Scan", ["zero", "x"], ["last", "y"], num_scan_inputs=1, body=body)
    graph = helper.make_graph(
        [helper.make_node("ReduceMin", ["x"], ["zero"], keepdims=0, axes=[0]), scan],
        "scan",
        [info("x", 1, [4, 64])],
        [info("y", 1, [4, 64])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    fields = {"mode": "inference", "provider": "cuda", "session": CAPTURED}
    job = job_of(model, {"x": np.ones((1, 4, 64), "f4")}, {}, **fields)
    with pytest.raises(PlacementError, match=r"CUDA graph: .* Scan"):
        worker.measure(job, tmp_path, lambda _: None)


@pytest.mark.cuda
@with_gpu
def test_a_limit_that_cannot_be_kept_is_a_failure_with_bytes(tmp_path: Path) -> None:
    """Exceeding the memory limit is an OutOfMemory error that names bytes."""
    settings = SessionSettings(device_memory_limit_bytes=2**20)
    with pytest.raises(OutOfMemory, match=r"\d+") as caught:
        run_trial(digits_job(tmp_path, session=settings), tmp_path, lambda _: None)
    assert tells_out_of_memory(str(caught.value))


@pytest.mark.cuda
@with_gpu
def test_the_last_gpu_can_be_chosen_and_the_next_is_refused(tmp_path: Path) -> None:
    """A trial runs on the last GPU and is watched there. A higher number is refused."""
    last = len(shown_gpus()) - 1
    require_device(last)
    with pytest.raises(CapabilityError, match="--device"):
        require_device(last + 1)
    job = digits_job(tmp_path, session=SessionSettings(device=last))
    with Watch("cuda", device=last) as watch:
        measured = watch.completed(run_trial(job, tmp_path, watch.follow))
    assert measured.conditions is not None
    assert measured.conditions.devices == (shown_gpus()[last].pci_address,)
