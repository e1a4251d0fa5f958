"""A trial returns its measurement or says how its worker ended; no process is left."""

from __future__ import annotations

import contextlib
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx
import psutil
import pytest
from onnx import helper

from crowding import crowded
from epochcost.measure import trial
from epochcost.measure.job import (
    Job,
    OutOfMemory,
    Progress,
    SamplingRule,
    TrialFailed,
    TrialRefused,
)
from epochcost.measure.trial import run_trial, start_worker

POOL = np.arange(12, dtype=np.float32).reshape(3, 4) / 10
ENDLESS = SamplingRule(relative_half_width=1e-9, minimum_samples=10**6, budget_seconds=600)
CPU = "CPUExecutionProvider"


def ignore(_: Progress) -> None:
    """Do nothing with the progress."""


def worker_of(process: psutil.Process) -> psutil.Process:
    """Wait for the one worker that a process starts."""
    deadline = time.monotonic() + crowded(20)
    while time.monotonic() < deadline:
        for child in process.children():
            with contextlib.suppress(psutil.Error):
                if "epochcost.measure.worker" in child.cmdline():
                    return child
        time.sleep(0.01)
    pytest.fail("expected a worker, found none")


def kill_worker_with(number: signal.Signals) -> Callable[[Progress], None]:
    """Make a watcher that sends the worker a signal while it samples."""

    def watch(progress: Progress) -> None:
        if progress.phase == "sampling" and progress.samples == 0:
            worker_of(psutil.Process()).send_signal(number)

    return watch


def test_a_training_trial_comes_home(counting: Job, tmp_path: Path) -> None:
    """Samples, warm-up, losses, placement and memory describe the steps that were taken."""
    seen: list[Progress] = []
    measurement = run_trial(counting, tmp_path, seen.append)
    samples, warmup = measurement.samples_seconds, measurement.warmup_seconds
    assert measurement.stop_reason == "precise"
    assert len(samples) >= 5
    assert len(warmup) >= 3
    steps = 1 + len(warmup) + len(samples)
    assert measurement.steps_taken == steps
    fed = sum(POOL[index % 3].sum() for index in range(steps))
    assert measurement.held_out_loss_before == pytest.approx(4.0)
    assert measurement.held_out_loss_after == pytest.approx(4 - 0.5 * fed, rel=1e-4)
    assert measurement.placement.nodes_by_provider.keys() == {CPU}
    assert {"Mul", "Sub", "Add"} <= measurement.placement.nodes_by_provider[CPU].keys()
    assert measurement.peak_memory_bytes is not None
    assert measurement.peak_memory_bytes > 10**7
    assert sum(samples) < measurement.wall_seconds
    assert [p.phase for p in seen if p.samples == 0] == [
        "starting", "warm-up", "sampling", "finishing"
    ]  # fmt: skip


def test_an_inference_trial_comes_home(
    job_of: Callable[..., Job], product: onnx.ModelProto, tmp_path: Path
) -> None:
    """Inference has samples and no losses, and its profile is removed."""
    job = job_of(
        product, {"x": np.ones((2, 2, 4), "f4")}, {"w": np.ones((4, 3), "f4")}, mode="inference"
    )
    measurement = run_trial(job, tmp_path, ignore)
    assert measurement.held_out_loss_before is None
    assert measurement.placement.nodes_by_provider == {CPU: {"MatMul": 1, "Relu": 1}}
    assert not list(tmp_path.glob("profile*"))


def left_behind() -> list[psutil.Process]:
    """Workers that this process has started and that still run."""
    return [
        child
        for child in psutil.Process().children()
        if "epochcost.measure.worker" in child.cmdline()
    ]


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (signal.SIGKILL, "killed by SIGKILL, by another"),
        (signal.SIGSEGV, "killed by SIGSEGV"),
        (signal.SIGTERM, "killed by SIGTERM"),
    ],
)
def test_a_killed_worker_is_a_failed_trial(
    counting: Job, tmp_path: Path, number: signal.Signals, words: str
) -> None:
    """The caller continues, and the error names the signal."""
    job = counting.model_copy(update={"sampling": ENDLESS})
    with pytest.raises(TrialFailed, match=words) as caught:
        run_trial(job, tmp_path, kill_worker_with(number))
    assert caught.value.exit_code == 3
    assert not left_behind()


@pytest.mark.parametrize(
    ("counts", "error", "words"),
    [
        ((3, 4), OutOfMemory, "by the system because memory ran out"),
        ((3, 3), TrialFailed, "by another program: the system counted no kill for memory"),
        ((None, None), OutOfMemory, "by another program, or by the system because memory ran out"),
    ],
)
def test_the_kernels_count_tells_who_killed_a_worker(
    counting: Job,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    counts: tuple[int | None, ...],
    error: type[TrialFailed],
    words: str,
) -> None:
    """The kernel's count says whether memory ran out. Without a count, a lack is assumed."""
    told = iter(counts)
    monkeypatch.setattr(trial, "oom_kill_count", lambda: next(told))
    job = counting.model_copy(update={"sampling": ENDLESS})
    with pytest.raises(TrialFailed, match=words) as caught:
        run_trial(job, tmp_path, kill_worker_with(signal.SIGKILL))
    assert type(caught.value) is error


def test_a_refused_job_fails_in_the_workers_words(counting: Job, tmp_path: Path) -> None:
    """The worker's own error is reported in one line, without a traceback."""
    job = counting.model_copy(update={"scalars": {}})
    with pytest.raises(TrialRefused, match=r"^worker: .*input 'lr' has no value.*$") as caught:
        run_trial(job, tmp_path, ignore)
    assert "Traceback" not in str(caught.value)
    assert caught.value.exit_code == 1


def test_an_output_that_the_graph_lacks_is_refused(counting: Job, tmp_path: Path) -> None:
    """A job that requests an output that the graph lacks is refused by its name."""
    job = counting.model_copy(update={"outputs": ("los",)})
    with pytest.raises(TrialRefused, match=r"expected an output 'los' .*, got loss"):
        run_trial(job, tmp_path, ignore)


def test_a_training_that_diverges_is_refused(counting: Job, tmp_path: Path) -> None:
    """A learning rate that overflows is refused with a message about the rate."""
    job = counting.model_copy(update={"scalars": {"lr": 3e38}, "evaluation": None})
    with pytest.raises(TrialRefused, match="lower the learning rate"):
        run_trial(job, tmp_path, ignore)


def test_the_users_folder_does_not_shadow_the_worker(
    counting: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file onnx.py in the current folder is not imported by the worker."""
    (tmp_path / "onnx.py").write_text("raise SystemExit('shadowed')")
    monkeypatch.chdir(tmp_path)
    assert run_trial(counting, tmp_path, ignore).samples_seconds


@pytest.fixture
def bounded_memory() -> Iterator[None]:
    """Limit this process and its workers to a tebibyte, since some kernels promise any amount."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (2**40, hard))
    yield
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@pytest.mark.usefixtures("bounded_memory")
def test_exhausted_memory_is_a_failed_trial(
    job_of: Callable[..., Job], product: onnx.ModelProto, tmp_path: Path
) -> None:
    """An output of four terabytes fails the trial and not the caller."""
    shape = helper.make_tensor("shape", onnx.TensorProto.INT64, [2], [2**20, 2**20])
    product.graph.node.append(helper.make_node("Constant", [], ["shape"], value=shape))
    product.graph.node.append(helper.make_node("ConstantOfShape", ["shape"], ["huge"]))
    product.graph.output.append(
        helper.make_tensor_value_info("huge", onnx.TensorProto.FLOAT, [2**20, 2**20])
    )
    job = job_of(
        product, {"x": np.ones((1, 2, 4), "f4")}, {"w": np.ones((4, 3), "f4")}, mode="inference"
    )
    with pytest.raises(TrialFailed, match=r"(?i)worker: .*(memory|alloc)"):
        run_trial(job, tmp_path, ignore)


def test_a_stale_measurement_is_not_taken_for_a_new_one(counting: Job, tmp_path: Path) -> None:
    """A measurement left by an earlier worker is removed before a trial."""
    run_trial(counting, tmp_path, ignore)
    with pytest.raises(TrialFailed):
        run_trial(counting.model_copy(update={"scalars": {}}), tmp_path, ignore)
    assert not (tmp_path / "measurement.json").exists()


def misbehave(monkeypatch: pytest.MonkeyPatch, folder: Path, code: str) -> None:
    """Replace the worker by this program."""
    (folder / "misbehaving.py").write_text(code)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.setattr(trial, "_WORKER", "misbehaving")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("print('garbage'); print('{'); print('{\"progress\": 1}')", "ended without a measure"),
        ("import sys; sys.stdout.buffer.write(bytes(range(256)) * 999)", "ended without a meas"),
        ("import sys; sys.exit('no such thing')", r"exit status 1\n  its last lines:\n  no such"),
        ("import sys; open(sys.argv[2], 'w').write('{')", "ended without a measurement"),
        ("import os; os._exit(7)", "exit status 7; it wrote no lines"),
    ],
)
def test_a_worker_that_talks_nonsense_is_a_failed_trial(
    counting: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, words: str
) -> None:
    """Wrong output, half a measurement and no measurement each fail with a message."""
    misbehave(monkeypatch, tmp_path, code)
    with pytest.raises(TrialFailed, match=words):
        run_trial(counting, tmp_path, ignore)


def test_a_hanging_worker_is_ended(
    counting: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker without a message for too long is ended, and the error says so."""
    misbehave(monkeypatch, tmp_path, "import time; time.sleep(600)")
    monkeypatch.setattr(trial, "_SILENCE_SECONDS", 0.5)
    monkeypatch.setattr(trial, "_SILENCE_BUDGETS", 0)
    with pytest.raises(TrialFailed, match="no output"):
        run_trial(counting, tmp_path, ignore)
    assert not left_behind()


def test_a_stopped_worker_is_ended(
    counting: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker stopped among its samples (SIGSTOP) is ended after the limit."""
    monkeypatch.setattr(trial, "_SILENCE_SECONDS", 3)
    monkeypatch.setattr(trial, "_SILENCE_BUDGETS", 0)
    with pytest.raises(TrialFailed, match="no output for 3 s: killed as hanging"):
        run_trial(
            counting.model_copy(update={"sampling": ENDLESS}),
            tmp_path,
            kill_worker_with(signal.SIGSTOP),
        )
    assert not left_behind()


def test_a_failing_watcher_leaves_no_worker(counting: Job, tmp_path: Path) -> None:
    """An error of the caller's watcher ends the worker and reaches the caller."""

    def fail(_: Progress) -> None:
        raise RuntimeError("display")

    with pytest.raises(RuntimeError, match="display"):
        run_trial(counting.model_copy(update={"sampling": ENDLESS}), tmp_path, fail)
    assert not left_behind()


PARENT = """
import sys
from pathlib import Path
from epochcost.measure.job import Job
from epochcost.measure.trial import run_trial, start_worker
job = Job.model_validate_json(Path(sys.argv[1]).read_bytes())
run_trial(job, Path(sys.argv[2]), lambda progress: print(progress.phase, flush=True))
"""


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGKILL,
        *(pytest.param(each, marks=pytest.mark.slow) for each in (signal.SIGTERM, signal.SIGINT)),
    ],
)
def test_a_worker_never_outlives_its_parent(
    counting: Job, tmp_path: Path, number: signal.Signals
) -> None:
    """The worker ends with its parent, whatever signal ends the parent."""
    job = counting.model_copy(update={"sampling": ENDLESS})
    job_file = tmp_path / "endless.json"
    job_file.write_text(job.model_dump_json())
    command = [sys.executable, "-c", PARENT, str(job_file), str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        while parent.stdout.readline() != b"sampling\n":
            assert parent.poll() is None
        worker = worker_of(psutil.Process(parent.pid))
        parent.send_signal(number)
        _, alive = psutil.wait_procs([worker], timeout=crowded(20))
        assert not alive
    assert (tmp_path / "worker.log").read_text() == ""


def test_a_worker_whose_job_cannot_be_made_ends_at_once(tmp_path: Path) -> None:
    """A worker without a job is killed at once, since it may still load its libraries."""
    with start_worker(tmp_path) as worker:
        assert worker.process.poll() is None
    assert worker.process.returncode == -signal.SIGKILL
    assert not left_behind()


def test_a_worker_that_died_before_its_job_is_a_failed_trial(counting: Job, tmp_path: Path) -> None:
    """A worker that ended before it got its job is reported as killed."""
    with start_worker(tmp_path) as worker:
        worker.process.kill()
        worker.process.wait()
        with pytest.raises(TrialFailed, match="killed"):
            worker.measure(counting, ignore)


BUILDING = """
import sys, time
from pathlib import Path
from epochcost.measure.trial import start_worker
with start_worker(Path(sys.argv[1])):
    print("building", flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize(
    "number", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]
)
def test_a_worker_without_a_job_never_outlives_its_parent(
    tmp_path: Path, number: signal.Signals
) -> None:
    """The worker ends with its parent while the parent still makes the job."""
    command = [sys.executable, "-c", BUILDING, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"building\n"
        worker = worker_of(psutil.Process(parent.pid))
        parent.send_signal(number)
        _, alive = psutil.wait_procs([worker], timeout=crowded(20))
        assert not alive
    assert (tmp_path / "worker.log").read_text() == ""


IMPATIENT = """
from epochcost.measure import trial
trial._SILENCE_SECONDS, trial._SILENCE_BUDGETS = 3, 0
"""


@pytest.mark.slow
def test_a_pause_of_the_parent_is_no_hang_of_the_worker(counting: Job, tmp_path: Path) -> None:
    """A parent that was stopped (Ctrl-Z) beyond the limit still gets the measurement."""
    sampling = SamplingRule(relative_half_width=1e-9, minimum_samples=10**6, budget_seconds=4)
    job_file = tmp_path / "patient.json"
    job_file.write_text(counting.model_copy(update={"sampling": sampling}).model_dump_json())
    command = [sys.executable, "-c", IMPATIENT + PARENT, str(job_file), str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        while parent.stdout.readline() != b"sampling\n":
            assert parent.poll() is None
        parent.send_signal(signal.SIGSTOP)
        time.sleep(6)
        parent.send_signal(signal.SIGCONT)
        assert parent.stdout.read().endswith(b"finishing\n")
    assert parent.returncode == 0
    assert (tmp_path / "measurement.json").exists()
