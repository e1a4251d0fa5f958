"""Trials to stored results: build, measure, store, one after the other, each by itself.

A failed trial does not stop the others. A disk that takes no more results stops the run, since no
later trial could be kept. What is finished, a round or a trial, is stored before the next begins.
"""

from __future__ import annotations

import contextlib
import hashlib
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from epochcost.errors import CapabilityError, EpochcostError, ResultError
from epochcost.execute.build import build_job
from epochcost.execute.events import (
    Advanced,
    Failed,
    Finished,
    OnEvent,
    Outcome,
    RoundKept,
    Scheduled,
    Skipped,
    Started,
)
from epochcost.execute.plausibility import contradictions
from epochcost.execute.scratch import scratch_folder
from epochcost.measure.environment import detect
from epochcost.measure.failures import TrialFailed
from epochcost.measure.job import Job
from epochcost.measure.trial import run_trial
from epochcost.measure.watch import Watch
from epochcost.plan.rounds import Visit, visits
from epochcost.plan.trial import Trial
from epochcost.results.atomic import remove_leftovers, require_writable
from epochcost.results.format import FORMAT_VERSION
from epochcost.results.lock import exclusive
from epochcost.results.records import Environment, Measurement, Result
from epochcost.results.rounds import rounds_in, with_round
from epochcost.results.store import ResultStore
from epochcost.specs.catalogue import Catalogue

_OURS = Path(__file__).parents[1]


@dataclass(frozen=True)
class Assignment:
    """What to run and where to keep it: trials of the catalogue's models, measured as ``hardware``.

    ``resume`` keeps what this very host has measured and does the rest. ``rounds`` says by trial's
    id in how many rounds, where not in one.
    """

    catalogue: Catalogue
    trials: Sequence[Trial]
    hardware: str
    store: ResultStore
    resume: bool = False
    rounds: Mapping[str, int] = field(default_factory=dict)


def run_trials(assignment: Assignment, on_event: OnEvent) -> tuple[Outcome, ...]:
    """Do every trial and return what became of each, in the order of the assignment.

    Raises CapabilityError before the first trial where results cannot be written or another run
    is writing them, and later where the disk is full; results stored by then are kept.
    """
    folder = assignment.store.folder / assignment.hardware
    require_writable(folder)
    with exclusive(folder):
        remove_leftovers(folder)
        outcomes = _outcomes(_Run(assignment, on_event, detect().fingerprint))
    return tuple(outcomes[trial.id] for trial in assignment.trials)


@dataclass(frozen=True)
class _Run:
    """An assignment on this host, which ``fingerprint`` names, and who listens."""

    assignment: Assignment
    on_event: OnEvent
    fingerprint: str

    def stored(self, trial: Trial) -> Result | None:
        """What is kept of a trial; raises ResultError where it is not ours to replace."""
        store, hardware = self.assignment.store, self.assignment.hardware
        return store.find(trial, hardware, self.fingerprint)

    def rounds_done(self, trial: Trial) -> int:
        """How many rounds need not be measured again; a file that is not ours is judged later."""
        if not self.assignment.resume:
            return 0
        with contextlib.suppress(ResultError):
            found = self.stored(trial)
            return 0 if found is None else rounds_in(found.measurement)
        return 0


def _outcomes(run: _Run) -> dict[str, Outcome]:
    """What became of each trial, by id; one that failed is not visited again."""
    trials, rounds = run.assignment.trials, run.assignment.rounds
    schedule = tuple(visits(trials, rounds, run.rounds_done))
    run.on_event(Scheduled(schedule))
    outcomes: dict[str, Outcome] = {}
    for number, visit in enumerate(schedule, start=1):
        if visit.trial.id in outcomes:
            continue
        run.on_event(Started(visit.trial, number, len(schedule), visit.number, visit.rounds))
        happened = _visited(run, visit)
        run.on_event(happened)
        if not isinstance(happened, RoundKept):
            outcomes[visit.trial.id] = happened
    return outcomes


def _visited(run: _Run, visit: Visit) -> RoundKept | Outcome:
    kept: Result | None = None
    try:
        kept = _kept(run, visit)
        if kept is not None and rounds_in(kept.measurement) >= visit.rounds:
            return Skipped(visit.trial, kept)
        result = _measured(run, visit, kept)
    except EpochcostError as error:
        return Failed(visit.trial, error, _rounds_in(kept))
    except Exception as error:  # a slip of ours in one trial must not cost the others
        return Failed(visit.trial, _unexpected(error), _rounds_in(kept))
    path = run.assignment.store.write(result)
    happened = Finished if visit.last else RoundKept
    return happened(visit.trial, result, path)


def _rounds_in(kept: Result | None) -> int:
    return 0 if kept is None else rounds_in(kept.measurement)


def _kept(run: _Run, visit: Visit) -> Result | None:
    """The earlier rounds to keep: those of this run and, when resuming, of the one before."""
    found = run.stored(visit.trial)
    return found if run.assignment.resume or visit.number > 1 else None


def _unexpected(error: Exception) -> TrialFailed:
    """The words for an error that nothing foresaw, with the last place of ours on its way."""
    frames = traceback.extract_tb(error.__traceback__)
    place = next(frame for frame in reversed(frames) if Path(frame.filename).is_relative_to(_OURS))
    return TrialFailed(
        f"{type(error).__name__} in {Path(place.filename).name}:{place.lineno}: {error}; if memory "
        "is not short, this is a fault of epochcost: please report it with this line"
    )


def _measured(run: _Run, visit: Visit, earlier: Result | None) -> Result:
    assignment, trial, environment = run.assignment, visit.trial, detect()
    with scratch_folder(assignment.store.folder / assignment.hardware) as folder:
        measurement = _timed(run, visit, folder)
    environment, measurement = _with_software(environment, measurement)
    if visit.rounds > 1:
        known = None if earlier is None else earlier.measurement
        measurement = with_round(known, measurement, float(trial.relative_half_width))
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
        spec_files=_spec_files(assignment, trial),
    )


def _with_software(
    environment: Environment, measurement: Measurement
) -> tuple[Environment, Measurement]:
    """What the worker ran with in the place of what this program does."""
    if measurement.software is None:
        return environment, measurement
    return (
        environment.model_copy(update=dict(measurement.software)),
        measurement.model_copy(update={"software": None}),
    )


def _spec_files(assignment: Assignment, trial: Trial) -> dict[str, str]:
    """SHA-256 of the files that declare the model and the machine; no entry: in no file."""
    files = assignment.catalogue.files
    named = (f"models/{trial.model}", f"hardware/{assignment.hardware}")
    return {
        name: hashlib.sha256(files[name].read_bytes()).hexdigest()
        for name in named
        if name in files
    }


def _timed(run: _Run, visit: Visit, folder: Path) -> Measurement:
    catalogue, trial = run.assignment.catalogue, visit.trial
    model = catalogue.model(trial.model)
    try:
        job = _for_one_visit(build_job(trial, model, catalogue.graph_path(model), folder), visit)
        with Watch(trial.provider, pinning=job.pinning, device=trial.device) as watch:
            heard = watch.follow(lambda progress: run.on_event(Advanced(trial, progress)))
            return watch.completed(run_trial(job, folder, heard))
    except OSError as error:
        raise CapabilityError(
            f"{folder}: demanded room for the trial's temporary files and memory for its worker; "
            f"got {error.strerror or error}: free some, or name another place with TMPDIR"
        ) from error


def _for_one_visit(job: Job, visit: Visit) -> Job:
    """The job with the part of the trial's budget and precision that one round has."""
    if visit.rounds == 1:
        return job
    share = {
        "relative_half_width": float(visit.relative_half_width),
        "minimum_samples": visit.minimum_samples,
        "budget_seconds": float(visit.expected_seconds),
    }
    return job.model_copy(update={"sampling": job.sampling.model_copy(update=share)})
