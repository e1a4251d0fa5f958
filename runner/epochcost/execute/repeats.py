"""A training's repeats, by seeds: each gone on with or begun, and stored with the others when done.

What a repeat does is left to ``training``; the record is one for a training on a host.
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
from epochcost.results.trainings import (
    TRAININGS_VERSION,
    Repeat,
    Trainings,
    load_trainings,
    write_trainings,
)
from epochcost.specs.hardware import Hardware


@dataclass(frozen=True)
class Follower:
    """Who follows repeats: told when one begins, of its steps, and of its end; and what stops it.

    ``ended`` also hears whether the repeat was stored before.
    """

    begun: Callable[[int], None]
    told: OnStep
    ended: Callable[[Repeat, bool], None]
    stopped: Callable[[], bool]


@dataclass(frozen=True)
class RepeatsRequest:
    """Which repeats of a training: their seeds, and where states and results go.

    ``anew``: leave out neither what is stored nor what was begun.
    """

    prepared: PreparedTraining
    hardware: Hardware
    seeds: Sequence[int]
    aim: str
    folder: Path
    results: Path
    anew: bool = False


def repeat_folder(request: RepeatsRequest, seed: int) -> Path:
    """Where a repeat keeps its state and leaves its weights."""
    prepared = request.prepared
    asked = prepared.request
    name = f"{asked.model.id}-{asked.dataset.id}-b{asked.batch_size}-{prepared.id[:8]}"
    return request.folder / name / f"seed-{seed}"


def run_repeats(request: RepeatsRequest, follower: Follower) -> Trainings | None:
    """Do what is not stored yet, storing each when it is done; None where none is by the end.

    Raises as ``run_repeat`` does, and CapabilityError where results cannot be written; what is
    stored by then stays.
    """
    environment = detect_environment()
    folder = request.results / request.hardware.id
    require_writable(folder)
    with exclusive_lock(folder):
        known = _stored(request, environment)
        found = {repeat.seed: repeat for repeat in known.repeats} if known else {}
        for seed in request.seeds:
            if seed in found and not request.anew:
                follower.ended(found[seed], True)
                continue
            follower.begun(seed)
            if request.anew:
                shutil.rmtree(repeat_folder(request, seed), ignore_errors=True)
            place = repeat_folder(request, seed)
            repeat = run_repeat(request.prepared, seed, place, follower.told, follower.stopped)
            if repeat is None:
                return known
            found[seed] = repeat
            known = _trainings(request, environment, [found[key] for key in sorted(found)])
            write_trainings(request.results, known)
            follower.ended(repeat, False)
    return known


def _stored(request: RepeatsRequest, environment: Environment) -> Trainings | None:
    """The record of this training on this host under this runtime."""
    wanted = (request.hardware.id, request.prepared.id, environment.fingerprint)
    for one in load_trainings(request.results).records.values():
        same = one.environment.runtime == environment.runtime
        if same and (one.hardware, one.id, one.environment.fingerprint) == wanted:
            return one
    return None


def _trainings(
    request: RepeatsRequest, environment: Environment, repeats: Sequence[Repeat]
) -> Trainings:
    prepared, asked = request.prepared, request.prepared.request
    examples = prepared.feed.examples
    return Trainings(
        hardware=request.hardware.id,
        trainings_version=TRAININGS_VERSION,
        id=prepared.id,
        model=asked.model.id,
        dataset=asked.dataset.id,
        data_sha256=examples.sha256,
        provider=asked.provider,
        batch_size=asked.batch_size,
        training_examples=len(examples.training.labels),
        held_out_examples=len(examples.held_out.labels),
        epoch_steps=prepared.feed.epoch_steps,
        aim=request.aim,
        measured_at=dt.datetime.now(dt.UTC),
        repeats=tuple(repeats),
        environment=environment,
        contradictions=contradictions(request.hardware, environment),
    )
