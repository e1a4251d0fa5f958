"""Run a training once for each seed: connect graphs, data and sessions, and save the state."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import onnx

from epochcost.errors import InputError
from epochcost.execute.step import carried_values, loss_terms, step_options
from epochcost.measure.environment import detect_environment
from epochcost.measure.runtime import runtime_name
from epochcost.measure.training import TrainingGraphs, TrainingSession
from epochcost.plan.binding import bind_model
from epochcost.plan.trial import SessionSettings
from epochcost.results.environment import Environment
from epochcost.results.files import (
    exclusive_lock,
    remove_leftovers,
    require_writable,
    write_atomically,
)
from epochcost.results.plausibility import contradictions
from epochcost.results.store import ID_DIGITS, load_sidecars, write_sidecar
from epochcost.results.trainings import TRAININGS_VERSION, Point, Repeat, Trainings
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.hardware import Hardware
from epochcost.specs.model import Model, Training
from epochcost.specs.reference_data import Dataset
from epochcost.specs.study import Provider
from epochcost.train.batches import example_fields, step_targets
from epochcost.train.datasets import load_examples
from epochcost.train.loop import Arrays, Recipe, TrainingDiverged, Watch, train
from epochcost.train.pipeline import Examples, Feed, fitting_input, require_fitting
from epochcost.train.state import (
    Progress,
    SavedState,
    digest,
    read_state,
    refusal,
    with_values,
    write_state,
)
from onnxstep import TrainingStep, evaluation_graph, training_step
from onnxstep.graphs.exported import separated
from onnxstep.graphs.loading import load_model
from onnxstep.graphs.parameters import materialise

# A batch of an evaluation has this number of examples, or more if a step has more.
_EVALUATED_AT_ONCE = 128
_MOST_POINTS = 400
# Session settings of all trainings; the id of every stored training depends on them.
_ALWAYS = {"graph_optimization": "all", "spinning": True, "denormals_as_zero": False}
OnStep = Callable[[Progress, int, float], None]


@dataclass(frozen=True)
class TrainingRequest:
    """A training to run; ``evaluate_every`` is a number of steps, None for an epoch."""

    model: Model
    training: Training
    dataset: Dataset
    batch_size: int
    provider: Provider
    session: SessionSettings
    evaluate_every: int | None = None
    save_seconds: float = 60.0


@dataclass(frozen=True)
class PreparedTraining:
    """A training with loaded graph and examples; ``bound`` is ``graph`` with a fixed batch size."""

    request: TrainingRequest
    recipe: Recipe
    graph: onnx.ModelProto
    bound: onnx.ModelProto
    feed: Feed
    id: str


def prepare(
    request: TrainingRequest, recipe: Recipe, catalogue: Catalogue, data: Path
) -> PreparedTraining:
    """Load the model and the examples below folder ``data``, and check that they fit each other.

    Raises InputError or ModelError if they do not fit, CapabilityError if there are no examples.
    """
    model = request.model
    if model.carried:
        raise InputError(
            f"model {model.id}: expected a model without [[carried]] state: models whose state "
            "goes from one part of a text to the next are not trained on real data yet"
        )
    if request.training.schedule.name == "on-plateau":
        raise InputError(
            f"model {model.id}: expected a schedule by steps, got on-plateau: such models are not "
            "trained on real data"
        )
    graph = separated(load_model(catalogue.graph_path(model)))
    bound = bind_model(graph, model, request.batch_size)
    feed = _load_feed(request, bound, data)
    every = request.evaluate_every or feed.epoch_steps
    recipe = replace(recipe, evaluate_every=every)
    identity = _training_digest(request, recipe, graph, feed.examples)
    return PreparedTraining(request, recipe, graph, bound, feed, identity)


def _load_feed(request: TrainingRequest, bound: onnx.ModelProto, data_folder: Path) -> Feed:
    model, size = request.model, request.batch_size
    step = _step(bound, request, 0)
    inputs = fitting_input(model.id, example_fields(bound, model, size))
    targets = step_targets(step, bound, model, request.training, size)
    if len(targets) != 1:
        raise InputError(
            f"model {model.id}: expected one term of the loss with a target, got {len(targets)}"
        )
    length = inputs[0].shape[0] if inputs[0].shape else 1
    examples = load_examples(request.dataset, data_folder, length, targets[0].positions)
    require_fitting(examples, inputs[0], targets[0])
    training, held_out = len(examples.training.labels), len(examples.held_out.labels)
    if training < size:
        raise InputError(
            f"--batch-size: expected at most {training} examples in a step, got {size}"
        )
    return Feed(
        examples=examples,
        inputs=inputs,
        target=targets[0],
        learning_rate=step.learning_rate,
        batch_size=size,
        evaluated_at_once=min(max(size, _EVALUATED_AT_ONCE), held_out),
        seed=0,
        augmentation=request.training.augmentation,
    )


def run_repeat(
    prepared: PreparedTraining,
    seed: int,
    folder: Path,
    on_step: OnStep,
    stopped: Callable[[], bool],
) -> Repeat | None:
    """Run a training from its start or from the state in ``folder``, and export the weights.

    Returns None if ``stopped`` ends the training. Raises TrainingDiverged if it diverges, and
    CapabilityError if a file cannot be written. The last saved state is kept in these cases. Raises
    InputError if the saved state is damaged, or of another training, machine or runtime.
    """
    path, identity = state_path(folder), state_identity(prepared, seed)

    def save(progress: Progress, carried: Arrays) -> None:
        write_state(path, SavedState(identity, progress, carried))

    require_writable(folder, refusal)
    with exclusive_lock(folder, "name a folder on a local disk with --to"):
        remove_leftovers(folder)
        first = materialise(prepared.graph, seed)
        state = read_state(path, identity) or SavedState(identity, Progress(), {})
        progress = replace(state.progress, sessions=state.progress.sessions + 1)
        state = replace(state, progress=progress, values={**first, **state.values})
        if progress.ending is None:
            watch = Watch(save, on_step, stopped, prepared.request.save_seconds)
            state = _continue_training(prepared, seed, state, watch, folder)
        if state.progress.ending is None:
            return None
        weights = {name: state.values[name] for name in first}
        exported = with_values(prepared.graph, weights).SerializeToString(deterministic=True)
        write_atomically(folder / "model.onnx", exported, refusal)
    return _record(seed, state.progress, digest(weights))


def state_path(folder: Path) -> Path:
    """The path of the saved state in ``folder``, the folder of a training with one seed."""
    return folder / "state.zip"


def state_identity(prepared: PreparedTraining, seed: int) -> str:
    """Identify a training with a seed on this host: times of two hosts must not be added up."""
    return f"{prepared.id}-{seed}-{detect_environment().fingerprint}"


def _continue_training(
    prepared: PreparedTraining, seed: int, state: SavedState, watch: Watch, folder: Path
) -> SavedState:
    request, graphs, step = prepared.request, _graphs(prepared, seed), state.progress.step
    session = TrainingSession(graphs, request.provider, request.session, state.values, step, folder)
    feed = replace(prepared.feed, seed=seed)
    try:
        progress = train(prepared.recipe, feed, session, state.progress, watch)
    except TrainingDiverged as error:
        path = state_path(folder)
        note = f"; the last saved state is kept in {path}" if path.exists() else ""
        raise TrainingDiverged(f"{error}{note}") from None
    values = {**state.values, **session.carried_values()}
    return replace(state, progress=progress, values=values)


def _record(seed: int, progress: Progress, weights_sha256: str) -> Repeat:
    assert progress.ending is not None, "only a training with an end is stored"
    times = progress.times
    reached = progress.curve[-1].step if progress.ending == "reached" else None
    return Repeat(
        seed=seed,
        ending=progress.ending,
        steps=progress.step,
        step_seconds=times.steps,
        waiting_seconds=times.waiting,
        evaluation_seconds=times.evaluation,
        saving_seconds=times.saving,
        sessions=progress.sessions,
        reached_step=reached,
        curve=_thinned_curve(progress.curve),
        weights_sha256=weights_sha256,
    )


def _thinned_curve(curve: tuple[Point, ...]) -> tuple[Point, ...]:
    every = -(-len(curve) // _MOST_POINTS)
    # Counted from the end, so that the last point stays.
    return curve[::-every][::-1]


def _step(bound: onnx.ModelProto, request: TrainingRequest, seed: int) -> TrainingStep:
    options = step_options(request.model, request.training, request.provider, seed)
    return training_step(bound, replace(options, resumable=True))


def _graphs(prepared: PreparedTraining, seed: int) -> TrainingGraphs:
    request, feed = prepared.request, prepared.feed
    step = _step(prepared.bound, request, seed)
    held_out, size = len(feed.examples.held_out.labels), feed.evaluated_at_once
    sizes = {min(size, held_out), held_out % size} - {0}
    return TrainingGraphs(
        step=step.model,
        fed=(*(field.name for field in feed.inputs), feed.target.name, step.learning_rate),
        loss=step.loss,
        carried=carried_values(step, request.provider),
        evaluations={count: _evaluation(prepared, count) for count in sizes},
        scores=request.training.output,
    )


def _evaluation(prepared: PreparedTraining, size: int) -> onnx.ModelProto:
    request = prepared.request
    bound = bind_model(prepared.graph, request.model, size)
    return evaluation_graph(
        bound, loss=loss_terms(request.training), freeze=request.training.freeze
    )


def _training_digest(
    request: TrainingRequest, recipe: Recipe, graph: onnx.ModelProto, examples: Examples
) -> str:
    """Digest of the model, data, runtime and settings (without the seed) of a training."""
    parts = {
        "graph": hashlib.sha256(graph.SerializeToString(deterministic=True)).hexdigest(),
        "inputs": [declared.model_dump(mode="json") for declared in request.model.inputs],
        "training": request.training.model_dump(mode="json"),
        "data": examples.sha256,
        "batch": request.batch_size,
        "provider": request.provider,
        "runtime": runtime_name(),
        "session": request.session.model_dump(mode="json") | _ALWAYS,
        "aim": [type(recipe.aim).__name__, asdict(recipe.aim) if recipe.aim else None],
        "epochs": recipe.epochs,
        "evaluate_every": recipe.evaluate_every,
        "patience": None,
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Follower:
    """Callbacks: ``begun`` gets the seed, ``ended`` whether the repeat was stored before."""

    begun: Callable[[int], None]
    on_step: OnStep
    ended: Callable[[Repeat, bool], None]
    stopped: Callable[[], bool]


@dataclass(frozen=True)
class RepeatsRequest:
    """A request to run a training once for each of ``seeds``; each such run is a repeat.

    ``folder`` is for states and weights, ``results`` for records. ``aim`` is the target as text,
    such as "accuracy >= 0.98", or "all epochs". With ``anew``, stored repeats and states are
    replaced.
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
    work = f"{training.model.id}-{training.dataset.id}-b{training.batch_size}"
    return request.folder / f"{work}-{prepared.id[:ID_DIGITS]}" / f"seed-{seed}"


def run_repeats(request: RepeatsRequest, follower: Follower) -> Trainings | None:
    """Run the repeats that are not stored yet, and return the record of all repeats.

    Returns None if no repeat has ended so far. Each repeat is stored at its end. Raises the errors
    of ``run_repeat``.
    """
    environment = detect_environment()
    folder = request.results / request.hardware.id
    require_writable(folder / Trainings.folder)
    with exclusive_lock(folder):
        remove_leftovers(folder)
        stored = _find_stored_trainings(request, environment)
        repeats = {repeat.seed: repeat for repeat in stored.repeats} if stored else {}
        for seed in request.seeds:
            if seed in repeats and not request.anew:
                follower.ended(repeats[seed], True)
                continue
            follower.begun(seed)
            place = repeat_folder(request, seed)
            if request.anew:
                shutil.rmtree(place, ignore_errors=True)
            repeat = run_repeat(request.prepared, seed, place, follower.on_step, follower.stopped)
            if repeat is None:
                return stored
            repeats[seed] = repeat
            stored = _trainings(request, environment, [repeats[key] for key in sorted(repeats)])
            write_sidecar(request.results, stored)
            follower.ended(repeat, False)
    return stored


def _find_stored_trainings(request: RepeatsRequest, environment: Environment) -> Trainings | None:
    key = (request.hardware.id, request.prepared.id, environment.fingerprint)
    for record in load_sidecars(request.results, Trainings).records.values():
        if (record.hardware, record.id, record.environment.fingerprint) == key:
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
