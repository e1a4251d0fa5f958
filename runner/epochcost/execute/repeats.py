"""Run a training once for each seed: start or continue each repeat, and store it at its end.

The module ``training`` runs a repeat. All repeats of a training on a host are in one record.
"""

from __future__ import annotations

import datetime as dt
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from epochcost.execute.training import OnStep, PreparedTraining, run_repeat
from epochcost.measure.environment import detect_environment
from epochcost.results.environment import Environment
from epochcost.results.files import exclusive_lock, require_writable
from epochcost.results.plausibility import contradictions
from epochcost.results.store import load_sidecars, write_sidecar
from epochcost.results.trainings import TRAININGS_VERSION, Repeat, Trainings
from epochcost.specs.hardware import Hardware


@dataclass(frozen=True)
class Follower:
    """Functions called at the start, at each step and at the end of each repeat.

    ``ended`` also receives whether the repeat was stored before. ``stopped`` returns whether the
    training should stop.
    """

    begun: Callable[[int], None]
    on_step: OnStep
    ended: Callable[[Repeat, bool], None]
    stopped: Callable[[], bool]


@dataclass(frozen=True)
class RepeatsRequest:
    """The seeds of a training's repeats, and the folders of their states and results.

    With ``anew``, seeds whose results or states are stored are trained again from the start.
    """

    prepared: PreparedTraining
    hardware: Hardware
    seeds: Sequence[int]
    aim: str
    folder: Path
    results: Path
    anew: bool = False


def repeat_folder(request: RepeatsRequest, seed: int) -> Path:
    """The folder for the state and the weights of a repeat."""
    prepared = request.prepared
    training = prepared.request
    name = f"{training.model.id}-{training.dataset.id}-b{training.batch_size}-{prepared.id[:8]}"
    return request.folder / name / f"seed-{seed}"


def run_repeats(request: RepeatsRequest, follower: Follower) -> Trainings | None:
    """Run the repeats that are not stored yet and return the record of all; None if none ended.

    Each repeat is stored at its end, and stays stored if a later repeat fails. Raises as
    ``run_repeat`` does, and CapabilityError if results cannot be written.
    """
    environment = detect_environment()
    folder = request.results / request.hardware.id
    require_writable(folder)
    with exclusive_lock(folder):
        stored = _stored(request, environment)
        repeats = {repeat.seed: repeat for repeat in stored.repeats} if stored else {}
        for seed in request.seeds:
            if seed in repeats and not request.anew:
                follower.ended(repeats[seed], True)
                continue
            follower.begun(seed)
            if request.anew:
                shutil.rmtree(repeat_folder(request, seed), ignore_errors=True)
            place = repeat_folder(request, seed)
            repeat = run_repeat(request.prepared, seed, place, follower.on_step, follower.stopped)
            if repeat is None:
                return stored
            repeats[seed] = repeat
            stored = _trainings(request, environment, [repeats[key] for key in sorted(repeats)])
            write_sidecar(request.results, stored)
            follower.ended(repeat, False)
    return stored


def _stored(request: RepeatsRequest, environment: Environment) -> Trainings | None:
    """The stored record of this training on this host under this runtime, if there is one."""
    key = (request.hardware.id, request.prepared.id, environment.fingerprint)
    for record in load_sidecars(request.results, Trainings).records.values():
        same = record.environment.runtime == environment.runtime
        if same and (record.hardware, record.id, record.environment.fingerprint) == key:
            return record
    return None


def _trainings(
    request: RepeatsRequest, environment: Environment, repeats: Sequence[Repeat]
) -> Trainings:
    prepared, training = request.prepared, request.prepared.request
    examples = prepared.feed.examples
    return Trainings(
        hardware=request.hardware.id,
        trainings_version=TRAININGS_VERSION,
        id=prepared.id,
        model=training.model.id,
        dataset=training.dataset.id,
        data_sha256=examples.sha256,
        provider=training.provider,
        batch_size=training.batch_size,
        training_examples=len(examples.training.labels),
        held_out_examples=len(examples.held_out.labels),
        epoch_steps=prepared.feed.epoch_steps,
        aim=request.aim,
        measured_at=dt.datetime.now(dt.UTC),
        repeats=tuple(repeats),
        environment=environment,
        contradictions=contradictions(request.hardware, environment),
    )
