"""Trials to stored results: build, measure, store, one after the other, each by itself.

A failed trial does not stop the others. A disk that takes no more results stops the run, since no
later trial could be kept. What is finished is stored before the next trial begins.
"""

from __future__ import annotations

import hashlib
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from epochcost.errors import CapabilityError, EpochcostError
from epochcost.execute.build import build_job
from epochcost.execute.events import (
    Advanced,
    Failed,
    Finished,
    OnEvent,
    Outcome,
    Skipped,
    Started,
)
from epochcost.execute.plausibility import contradictions
from epochcost.execute.scratch import scratch_folder
from epochcost.measure.environment import detect
from epochcost.measure.failures import TrialFailed
from epochcost.measure.trial import run_trial
from epochcost.measure.watch import Watch
from epochcost.plan.trial import Trial
from epochcost.results.atomic import remove_leftovers, require_writable
from epochcost.results.format import FORMAT_VERSION
from epochcost.results.lock import exclusive
from epochcost.results.records import Measurement, Result
from epochcost.results.store import ResultStore
from epochcost.specs.catalogue import Catalogue

_OURS = Path(__file__).parents[1]


@dataclass(frozen=True)
class Assignment:
    """What to run and where to keep it: trials of the catalogue's models, measured as ``hardware``.

    ``resume`` skips the trials whose result of this very host is stored.
    """

    catalogue: Catalogue
    trials: Sequence[Trial]
    hardware: str
    store: ResultStore
    resume: bool = False


def run_trials(assignment: Assignment, on_event: OnEvent) -> tuple[Outcome, ...]:
    """Do every trial in order and return what became of each.

    Raises CapabilityError before the first trial where results cannot be written or another run
    is writing them, and later where the disk is full; results stored by then are kept.
    """
    folder = assignment.store.folder / assignment.hardware
    require_writable(folder)
    with exclusive(folder):
        remove_leftovers(folder)
        return tuple(_outcomes(assignment, on_event))


def _outcomes(assignment: Assignment, on_event: OnEvent) -> Iterator[Outcome]:
    fingerprint = detect().fingerprint
    for number, trial in enumerate(assignment.trials, start=1):
        on_event(Started(trial, number, len(assignment.trials)))
        outcome = _skipped(assignment, trial, fingerprint)
        outcome = outcome or _attempted(assignment, trial, on_event)
        on_event(outcome)
        yield outcome


def _skipped(assignment: Assignment, trial: Trial, fingerprint: str) -> Outcome | None:
    if not assignment.resume:
        return None
    found = assignment.store.find(trial, assignment.hardware, fingerprint)
    return None if found is None else Skipped(trial, found)


def _attempted(assignment: Assignment, trial: Trial, on_event: OnEvent) -> Outcome:
    try:
        result = _measured(assignment, trial, on_event)
    except EpochcostError as error:
        return Failed(trial, error)
    except Exception as error:  # a slip of ours in one trial must not cost the others
        return Failed(trial, _unexpected(error))
    return Finished(trial, result, assignment.store.write(result))


def _unexpected(error: Exception) -> TrialFailed:
    """The words for an error that nothing foresaw, with the last place of ours on its way."""
    frames = traceback.extract_tb(error.__traceback__)
    place = next(frame for frame in reversed(frames) if Path(frame.filename).is_relative_to(_OURS))
    return TrialFailed(
        f"{type(error).__name__} in {Path(place.filename).name}:{place.lineno}: {error}; if memory "
        "is not short, this is a fault of epochcost: please report it with this line"
    )


def _measured(assignment: Assignment, trial: Trial, on_event: OnEvent) -> Result:
    environment = detect()
    with scratch_folder(assignment.store.folder / assignment.hardware) as folder:
        measurement = _timed(assignment.catalogue, trial, folder, on_event)
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


def _spec_files(assignment: Assignment, trial: Trial) -> dict[str, str]:
    """SHA-256 of the files that declare the model and the machine; no entry: in no file."""
    files = assignment.catalogue.files
    named = (f"models/{trial.model}", f"hardware/{assignment.hardware}")
    return {
        name: hashlib.sha256(files[name].read_bytes()).hexdigest()
        for name in named
        if name in files
    }


def _timed(catalogue: Catalogue, trial: Trial, folder: Path, on_event: OnEvent) -> Measurement:
    model = catalogue.model(trial.model)
    try:
        job = build_job(trial, model, catalogue.graph_path(model), folder)
        with Watch(trial.provider) as watch:
            heard = watch.follow(lambda progress: on_event(Advanced(trial, progress)))
            return watch.completed(run_trial(job, folder, heard))
    except OSError as error:
        raise CapabilityError(
            f"{folder}: demanded room for the trial's temporary files and memory for its worker; "
            f"got {error.strerror or error}: free some, or name another place with TMPDIR"
        ) from error
