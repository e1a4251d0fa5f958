"""Run an assignment: build, measure and store one trial after the other.

Each round is stored before the next begins. A failed trial does not stop the run, a full disk does.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import epochcost
from epochcost.errors import CapabilityError, EpochcostError
from epochcost.execute.assignment import (
    Advanced,
    Assignment,
    Exhausted,
    Failed,
    Finished,
    OnEvent,
    Outcome,
    RoundStored,
    RunContext,
    Scheduled,
    Skipped,
    Started,
    Swept,
    Waiting,
)
from epochcost.execute.build import build_job, trial_pinning
from epochcost.execute.engines import interpreter
from epochcost.execute.folders import remove_scratch, scratch_folder
from epochcost.execute.patience import Patience
from epochcost.execute.planning import room_bytes
from epochcost.measure.environment import detect_environment
from epochcost.measure.job import Job, OutOfMemory, Progress, TrialFailed
from epochcost.measure.memory import available_memory_bytes, tells_out_of_memory
from epochcost.measure.trial import start_worker
from epochcost.measure.watch import Watch
from epochcost.plan.make import Plan
from epochcost.plan.rounds import Visit, visits
from epochcost.plan.sweep import FailedSize, MeasuredSize, Point, Sweep, SweepEnd, next_size
from epochcost.plan.trial import Trial
from epochcost.results.environment import Environment
from epochcost.results.files import exclusive_lock, remove_leftovers, require_writable
from epochcost.results.kept import LIBRARY
from epochcost.results.plausibility import contradictions
from epochcost.results.records import FORMAT_VERSION, Measurement, Result
from epochcost.results.rounds import add_round, round_count, summary_of
from epochcost.results.sidecars import LIMIT_VERSION, BatchLimit
from epochcost.results.store import write_sidecar
from epochcost.specs.study import MOST_SAMPLES
from epochcost.units import memory

_OURS = (Path(epochcost.__path__[0]), Path(LIBRARY))


def run_trials(assignment: Assignment, on_event: OnEvent) -> tuple[Outcome, ...]:
    """Run every trial; returns outcomes in the plan's order, then those of sweeps.

    Batch sizes that ran out of memory have no outcome. Raises CapabilityError if results cannot be
    written, the disk is full, or another run writes to the folder.
    """
    folder = assignment.store.folder / assignment.hardware
    require_writable(folder)
    with exclusive_lock(folder):
        remove_leftovers(folder)
        remove_scratch(folder)
        host = detect_environment()
        patience = Patience(assignment.patience_seconds, host.logical_cpus)
        spec_files = _spec_file_digests(assignment)
        run = RunContext(assignment, on_event, host.fingerprint, patience, spec_files)
        outcomes = _measure_all_trials(run)
    return tuple(outcomes.values())


def _measure_all_trials(run: RunContext) -> dict[str, Outcome]:
    """Measure the sweeps, then all other trials; return the outcomes by trial id."""
    outcomes: dict[str, Outcome] = {}
    swept: dict[str, Trial] = {}
    plan = run.assignment.plan
    rounds = dict(plan.rounds)
    for sweep in plan.sweeps:
        ran = run_sweep(run, sweep, outcomes)
        swept |= {trial.id: trial for trial in ran}
        rounds |= {trial.id: _rounds_of(plan, sweep, trial) for trial in ran}
    listed = {trial.id: trial for trial in plan.trials} | swept
    trials = [trial for trial in listed.values() if trial.id not in outcomes]

    def rounds_done(trial: Trial) -> int:
        return max(run.rounds_done(trial), int(trial.id in swept))

    planned = tuple(visits(trials, rounds, rounds_done))
    _visit_all(run, Scheduled(planned), outcomes)

    def measured() -> Iterator[Result]:
        return (outcome.result for outcome in outcomes.values() if not isinstance(outcome, Failed))

    complete: dict[str, Outcome] = {}
    for visit in run.patience.more_rounds(rounds, measured):
        earlier = outcomes[visit.trial.id]
        _visit_all(run, Scheduled((visit,), run.patience.left_seconds), outcomes)
        if isinstance(outcomes[visit.trial.id], Failed):
            # The trial gets no more rounds; its planned rounds are stored.
            complete[visit.trial.id] = earlier
    outcomes |= complete
    order = dict.fromkeys(listed) | dict.fromkeys(outcomes)
    return {identifier: outcomes[identifier] for identifier in order}


def _visit_all(run: RunContext, schedule: Scheduled, outcomes: dict[str, Outcome]) -> None:
    run.on_event(schedule)
    for number, visit in enumerate(schedule.visits, start=1):
        if visit.trial.id in outcomes and not visit.extra:
            continue
        total = len(schedule.visits)
        run.on_event(Started(visit.trial, number, total, visit.number, visit.rounds))
        happened = run_round(run, visit)
        run.on_event(happened)
        if not isinstance(happened, RoundStored):
            outcomes[visit.trial.id] = happened


def run_sweep(run: RunContext, sweep: Sweep, outcomes: dict[str, Outcome]) -> tuple[Trial, ...]:
    """Measure each batch size of a sweep in one round, and return the trials that have a result.

    Adds the outcomes of finished, skipped and failed trials to ``outcomes``. The reason why the
    sweep ended is stored.
    """
    assignment = run.assignment
    room = trial_room_bytes(sweep.trial)
    host_bytes = room if sweep.trial.provider == "cpu" else available_memory_bytes()
    bounded = replace(run, memory_bytes=host_bytes)
    points: list[Point] = []
    results: list[Result] = []
    while not isinstance(size := next_size(sweep, points), SweepEnd):
        trial, number = sweep.at(size), len(points) + 1
        visit = Visit(trial, 1, _rounds_of(assignment.plan, sweep, trial))
        run.on_event(Scheduled((visit,)))
        run.on_event(Started(visit.trial, number, number, 1, visit.rounds))
        happened = _measure_first_round(bounded, visit)
        run.on_event(happened)
        if isinstance(happened, Finished | Skipped | Failed):
            outcomes[visit.trial.id] = happened
        if isinstance(happened, Failed | Exhausted):
            reason = str(happened.error).splitlines()[0]
            of_memory = is_out_of_memory(happened.error)
            points.append(FailedSize(batch_size=size, words=reason, of_memory=of_memory))
        else:
            points.append(measured_point(happened.result))
            results.append(happened.result)
    results.sort(key=lambda result: result.trial.batch_size)
    limit = sweep_limit(sweep, assignment.hardware, room, points, results, size)
    write_sidecar(assignment.store.folder, limit)
    run.on_event(Swept(limit))
    return tuple(result.trial for result in results)


def _rounds_of(plan: Plan, sweep: Sweep, trial: Trial) -> int:
    """The rounds of a sweep's trial, which a study may also list for itself with more rounds."""
    return max(sweep.rounds, plan.rounds.get(trial.id, 1))


def _measure_first_round(run: RunContext, visit: Visit) -> RoundStored | Exhausted | Outcome:
    earlier = run.stored(visit.trial) if run.rounds_done(visit.trial) else None
    if earlier is not None and round_count(earlier.measurement) < visit.rounds:
        # A resumed run measured this round before.
        return RoundStored(visit.trial, earlier)
    happened = run_round(run, visit)
    if isinstance(happened, Failed) and is_out_of_memory(happened.error):
        return Exhausted(visit.trial, happened.error)
    return happened


def run_round(run: RunContext, visit: Visit) -> RoundStored | Outcome:
    """Measure and store a round; an error gives Failed, but a full disk raises CapabilityError."""
    kept = 0
    try:
        # Earlier rounds of this run count; so do rounds of an earlier run that is resumed.
        earlier = run.stored(visit.trial)
        if visit.number == 1:
            earlier = run.resumed(visit.trial) if run.assignment.resume else None
        if earlier is not None:
            kept = round_count(earlier.measurement)
            if kept >= visit.rounds:
                return Skipped(visit.trial, earlier)
        result = _measure_round(run, visit, earlier)
    except EpochcostError as error:
        return Failed(visit.trial, error, kept)
    except MemoryError as error:  # while making batches; a worker raises OutOfMemory
        message = f"the trial's graph and batches: expected memory, got MemoryError: {error}"
        return Failed(visit.trial, OutOfMemory(message), kept)
    except Exception as error:  # a bug in one trial must not cost the others
        return Failed(visit.trial, _failure_from_bug(error), kept)
    run.assignment.store.write(result)
    return Finished(visit.trial, result) if visit.last else RoundStored(visit.trial, result)


def _failure_from_bug(error: Exception) -> TrialFailed:
    frames = traceback.extract_tb(error.__traceback__)
    own_frame = next(
        frame
        for frame in reversed(frames)
        if any(Path(frame.filename).is_relative_to(folder) for folder in _OURS)
    )
    return TrialFailed(
        f"{type(error).__name__} in {Path(own_frame.filename).name}:{own_frame.lineno}: {error}; "
        "if memory is not short, this is a fault of epochcost: please report it with this line"
    )


def _measure_round(run: RunContext, visit: Visit, earlier: Result | None) -> Result:
    assignment, trial = run.assignment, visit.trial
    run.patience.wait_for_calm(lambda *why: run.on_event(Waiting(*why)))
    environment = detect_environment()
    with scratch_folder(assignment.store.folder / assignment.hardware) as folder:
        measurement = _measure_in_worker(run, visit, folder, earlier)
    environment, measurement = _move_software_to_environment(environment, measurement)
    if visit.rounds > 1:
        before = None if earlier is None else earlier.measurement
        measurement = add_round(before, measurement, float(trial.relative_half_width))
    return Result(
        format_version=FORMAT_VERSION,
        trial_id=trial.id,
        trial=trial,
        hardware=assignment.hardware,
        measurement=measurement,
        environment=environment,
        contradictions=contradictions(
            assignment.catalogue.machine(assignment.hardware), environment
        ),
        spec_files={
            name: run.spec_files[name]
            for name in (f"models/{trial.model}", f"hardware/{assignment.hardware}")
            if name in run.spec_files
        },
    )


def _measure_in_worker(
    run: RunContext, visit: Visit, folder: Path, earlier: Result | None
) -> Measurement:
    catalogue, trial = run.assignment.catalogue, visit.trial
    model = catalogue.model(trial.model)
    try:
        # The worker loads its libraries while this process builds the job.
        with start_worker(folder, interpreter(trial), trial_pinning(trial)) as worker:
            host_bytes = run.memory_bytes
            job = build_job(trial, model, catalogue.graph_path(model), folder, host_bytes)
            bound = host_bytes if trial.provider == "cpu" else None
            job = _job_for_round(job, visit, bound, earlier)
            with Watch(trial.provider, pinning=job.pinning, device=trial.session.device) as watch:

                def on_progress(progress: Progress) -> None:
                    watch.follow(progress)
                    run.on_event(Advanced(trial, progress))

                return watch.completed(worker.measure(job, on_progress))
    except OSError as error:
        raise CapabilityError(
            f"{folder}: expected room for the trial's temporary files and memory for its worker, "
            f"got {error.strerror or error}: free some, or name another place with TMPDIR"
        ) from error


def _job_for_round(
    job: Job, visit: Visit, memory_limit_bytes: int | None, earlier: Result | None
) -> Job:
    bounded = job.model_copy(update={"memory_limit_bytes": memory_limit_bytes})
    if visit.rounds == 1:
        return bounded
    share = {
        "relative_half_width": float(visit.relative_half_width),
        "minimum_samples": visit.minimum_samples,
        "most_samples": max(visit.minimum_samples, MOST_SAMPLES // visit.rounds),
        "budget_seconds": float(visit.expected_seconds),
    }
    # The first round has already compared outputs with fp32.
    compared = earlier is not None and earlier.measurement.agreement is not None
    return bounded.model_copy(
        update={
            "sampling": job.sampling.model_copy(update=share),
            "reference": None if compared else job.reference,
        }
    )


def _move_software_to_environment(
    environment: Environment, measurement: Measurement
) -> tuple[Environment, Measurement]:
    if measurement.software is None:
        return environment, measurement
    return (
        environment.model_copy(update=dict(measurement.software)),
        measurement.model_copy(update={"software": None}),
    )


def _spec_file_digests(assignment: Assignment) -> dict[str, str]:
    """SHA-256 of the specs of the machine and of the plan's models, by kind and id."""
    models = {f"models/{trial.model}" for trial in assignment.plan.every_trial}
    names = {f"hardware/{assignment.hardware}", *models}
    return {
        name: hashlib.sha256(path.read_bytes()).hexdigest()
        for name, path in assignment.catalogue.files.items()
        if name in names
    }


# An interval of two or three samples may reach zero, which would give an infinite rate.
_LOWEST_SHARE = 1e-3


def is_out_of_memory(error: EpochcostError) -> bool:
    """Whether an error says that this process or its worker ran out of memory."""
    return isinstance(error, OutOfMemory) or tells_out_of_memory(str(error))


def measured_point(result: Result) -> MeasuredSize:
    """Batch size of a sweep's result, and the mean step time with its confidence interval."""
    summary = summary_of(result)
    low = max(summary.interval.low, _LOWEST_SHARE * summary.mean)
    return MeasuredSize(result.trial.batch_size, low, summary.mean, summary.interval.high)


def trial_room_bytes(trial: Trial) -> int | None:
    """Bytes of memory that a trial may now allocate on its host or GPU; None if unknown."""
    if trial.provider == "cpu":
        return available_memory_bytes()
    session = trial.session
    limits = (room_bytes([session.device]).get("cuda"), session.device_memory_limit_bytes)
    return min((size for size in limits if size is not None), default=None)


def sweep_limit(
    sweep: Sweep,
    hardware: str,
    room_bytes: int | None,
    points: Sequence[Point],
    results: Sequence[Result],
    end: SweepEnd,
) -> BatchLimit:
    """Make the record of a sweep's end: why it ended, and which batch sizes ran or failed.

    ``results`` ascend by batch size. ``room_bytes`` is the memory for a trial, None if unknown.
    """
    failed = sorted((p for p in points if isinstance(p, FailedSize)), key=lambda p: p.batch_size)
    of_memory = end.cause == "memory"
    return BatchLimit(
        limit_version=LIMIT_VERSION,
        sweep_id=sweep.id,
        trial=sweep.trial,
        hardware=hardware,
        ended_at=dt.datetime.now(dt.UTC),
        cause=end.cause,
        reason=end.reason + (_render_room(room_bytes, results) if of_memory else ""),
        sizes=tuple(result.trial.batch_size for result in results),
        failed=tuple(failed),
        environment=detect_environment(),
    )


def _render_room(room_bytes: int | None, results: Sequence[Result]) -> str:
    there = "" if room_bytes is None else f" of {memory(room_bytes)}"
    peak = results[-1].peak_bytes if results else None
    last = "" if peak is None else f"; batch {results[-1].trial.batch_size:,} held {memory(peak)}"
    return there + last
