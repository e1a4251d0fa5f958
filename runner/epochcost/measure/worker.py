"""The process that runs a trial: ``python -m epochcost.measure.worker JOB MEASUREMENT``.

A byte on standard input says that the job is written, and the end of that input ends the worker.
Standard output has only lines of ``job.Message``. Other output goes to standard error.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import NoReturn

import onnxruntime as ort

from epochcost.errors import CapabilityError, EpochcostError
from epochcost.measure.agreement import agreement, held_out_loss, require_finite
from epochcost.measure.job import AskedDecoder, Job, Message, ServingFiles
from epochcost.measure.memory import limit_memory, peak_memory_bytes, prefer_oom_kill
from epochcost.measure.pinning import require_pinned
from epochcost.measure.placement import (
    Declared,
    declared_precision,
    executed_nodes,
    naming_missing_kernels,
    prove_arithmetic,
    prove_placement,
    require_capturable,
)
from epochcost.measure.runtime import engine_software, require_runtime, software
from epochcost.measure.sampling import Clock, Emit, TrialProgress, sample, to_nanoseconds, warm_up
from epochcost.measure.scenario import measure_load
from epochcost.measure.session import open_session
from epochcost.measure.stepping import (
    Array,
    Stepper,
    constant_weights,
    initial_parameters,
    job_stepper,
)
from epochcost.measure.token_scenario import measure_requests
from epochcost.results.files import is_full
from epochcost.results.records import Measurement, Placement


def measure(job: Job, folder: Path, emit: Emit, clock: Clock = time.perf_counter) -> Measurement:
    """Run a job, with scratch files in ``folder``; raises EpochcostError if it cannot be done."""
    progress = TrialProgress(job.sampling.budget_seconds, emit, clock)
    match job.serving:
        case ServingFiles() as files:
            return measure_load(job, files, progress, folder)
        case AskedDecoder() as decoder:
            return measure_requests(job, decoder, progress, folder)
        case None:
            return _measure_steps(job, progress, folder)


def _measure_steps(job: Job, progress: TrialProgress, folder: Path) -> Measurement:
    parameters = initial_parameters(job)
    loss_before = held_out_loss(job, parameters)
    step, placement, first = _prove_first_step(job, parameters, folder)
    budget_seconds, clock = job.sampling.budget_seconds, progress.clock
    deadline = clock() + budget_seconds
    progress.enter("warm-up")
    # Steps alternate between two CUDA graphs; the first step of each captures it.
    least = 2 if job.session.cuda_graph else 1
    warmup = warm_up(step, clock, job.warm_up, budget_seconds, progress.report, least)
    progress.enter("sampling")
    samples = sample(step, clock, job.sampling, deadline, progress.report)
    peak_bytes = peak_memory_bytes()
    progress.enter("finishing")
    require_finite(job, step.output)
    loss_after = held_out_loss(job, {**parameters, **step.carried_values()})
    return Measurement(
        started_at=progress.started_at,
        wall_seconds=progress.wall_seconds(),
        warmup_seconds=to_nanoseconds(warmup),
        samples_seconds=to_nanoseconds(samples.seconds),
        stop_reason=samples.stop_reason,
        placement=placement,
        steps_taken=step.steps_taken,
        held_out_loss_before=loss_before,
        held_out_loss_after=loss_after,
        peak_memory_bytes=peak_bytes,
        agreement=agreement(job, first),
    )


def _prove_first_step(
    job: Job, parameters: dict[str, Array], folder: Path
) -> tuple[Stepper, Placement, dict[str, Array]]:
    """Run the first step, and prove from a profile on which device and in which precision it ran.

    Returns a stepper for timed steps, the placement, and the outputs to compare with fp32.
    """
    # A replayed CUDA graph leaves no profile, so the first step runs without a CUDA graph.
    plain = job.session.model_copy(update={"cuda_graph": False})
    weights = constant_weights(job, parameters)
    with naming_missing_kernels(job.precision, job.provider):
        session = open_session(
            job.graph, job.provider, plain, profile=folder / "profile", weights=weights
        )
    stepper = job_stepper(job.model_copy(update={"session": plain}), session, parameters)
    stepper()
    nodes = executed_nodes(session)
    placement = prove_placement(nodes, job.provider)
    training = job.mode == "training"
    declared = declared_precision(job.graph, job.precision) if training else Declared()
    prove_arithmetic(nodes, job.precision, job.provider, declared)
    compared = job.outputs if job.reference else ()
    first = {name: stepper.output(name).copy() for name in compared}
    if not job.session.cuda_graph:
        return stepper, placement, first
    require_capturable(nodes)
    del stepper, session
    session = open_session(job.graph, job.provider, job.session, weights=weights)
    return job_stepper(job, session, parameters), placement, first


def main(job_file: str, measurement_file: str) -> int:
    """Run the job in ``job_file``, write ``measurement_file``, and return the exit status."""
    emit = _reserve_standard_output()
    if not os.read(0, 1):
        return 1  # the parent ended before it wrote the job
    threading.Thread(target=_end_with_standard_input, daemon=True).start()
    try:
        prefer_oom_kill()
        job = Job.model_validate_json(Path(job_file).read_bytes())
        if job.memory_limit_bytes is not None:
            limit_memory(job.memory_limit_bytes)
        target = Path(measurement_file)
        require_pinned(job.pinning)
        serves = isinstance(job.serving, AskedDecoder)
        environment = engine_software(ort) if serves else software(ort)
        require_runtime(job.runtime or environment.runtime, environment.runtime)
        measurement = measure(job, target.parent, emit)
        proved = {"pinning": job.pinning, "software": environment}
        measurement = measurement.model_copy(update=proved)
        target.write_bytes(measurement.model_dump_json().encode())
    except EpochcostError as error:
        emit(Message(failure=str(error)))
        return error.exit_code
    except Exception as error:  # the parent gets the reason of any failure as a text
        traceback.print_exc()
        emit(Message(failure=_unexpected(error, Path(measurement_file).parent)))
        return CapabilityError.exit_code
    return 0


def _unexpected(error: Exception, folder: Path) -> str:
    if not is_full(error):
        return f"{type(error).__name__}: {error}"
    return (
        f"{folder}: expected room for the trial's temporary files, got a full disk: free some, or "
        "name another place with TMPDIR"
    )


def _reserve_standard_output() -> Emit:
    messages = os.fdopen(os.dup(1), "w", encoding="utf-8", newline="\n")
    os.dup2(2, 1)

    def emit(message: Message) -> None:
        try:
            messages.write(message.model_dump_json(exclude_none=True) + "\n")
            messages.flush()
        except BrokenPipeError:
            os._exit(1)  # the parent has ended, which `_end_with_standard_input` has not seen yet

    return emit


def _end_with_standard_input() -> None:
    # Not sys.stdin: a thread that waits there holds a lock, and the interpreter could not end.
    while os.read(0, 1):
        pass
    os._exit(1)


def _end_process(status: int) -> NoReturn:
    # The measurement is in its file, and an orderly end of sessions, threads and libraries takes a
    # tenth of a second or more.
    if status == 0:
        sys.stderr.flush()
        os._exit(0)
    # The last lines of a library may still be in a buffer.
    sys.exit(status)


if __name__ == "__main__":
    _end_process(main(*sys.argv[1:]))
