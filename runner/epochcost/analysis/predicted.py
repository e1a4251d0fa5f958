"""Predict the times of workloads that were not measured, as objects of class `Observation`.

Predictions learn from published rates: examples a second of a model on a device. Times are for the
pinned ONNX Runtime, or for an older version on GPUs that it does not support.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from operator import attrgetter
from typing import Literal

import numpy as np

from epochcost.analysis.arithmetic import arithmetic_of_model, is_whole_pass, needed_bytes
from epochcost.analysis.inputs import Inputs
from epochcost.analysis.machines import published_machine
from epochcost.analysis.observations import (
    MOST_HIGH_OVER_LOW,
    Evidence,
    Observation,
    Workload,
    epoch_time,
)
from epochcost.analysis.rates import Place, cpu_rates, gpu_rates, models_with_rates, place_of
from epochcost.cost.estimate import Time
from epochcost.graphs.profile import Profile
from epochcost.predict.design import Devices, Precision, computes_in, usual_precision
from epochcost.predict.forecast import Forecast, Forecaster, Question, as_rate, has_kin
from epochcost.predict.learnt import learnt_rates
from epochcost.predict.process import OF_CPUS, Matrix, block_diagonal
from epochcost.predict.published import Program, nearest_program, software_of
from epochcost.predict.rates import Rate
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.model import Model
from epochcost.specs.study import Mode
from epochcost.specs.target import PINNED_RUNTIME
from epochcost.units import memory as render_memory

_PAGE = "explanation/predictions.md"
_KINDS = {"cuda": "GPUs", "cpu": "CPUs"}


@dataclass(frozen=True, slots=True)
class NoTime:
    """The reason why the model or the machine with this ``id`` has no predicted time.

    If ``machines``, ``device`` ("cuda" or "cpu") or ``mode`` is set, the reason is limited to it.
    """

    id: str
    reason: str
    machines: tuple[str, ...] = ()
    device: str = ""
    mode: Mode | Literal[""] = ""

    @property
    def words(self) -> str:
        """The reason; the text begins with the names of machines if it applies only to these."""
        return f"on {', '.join(self.machines)}: {self.reason}" if self.machines else self.reason


@dataclass(frozen=True, slots=True)
class Times:
    """Times, the models and machines without one, and sentences on faulty files (``problems``).

    A predicted time has the kind ``published`` if a source published its rate, else ``predicted``.
    """

    observations: tuple[Observation, ...]
    without: tuple[NoTime, ...]
    problems: tuple[str, ...] = ()


_work = attrgetter("workload.id", "machine.hardware", "mode", "stack")


def missing_from(
    timed: Iterable[Observation], predicted: Iterable[Observation]
) -> Iterator[Observation]:
    """Yield predictions whose workload, machine, mode and stack no ``timed`` observation has."""
    works = set(map(_work, timed))
    return (observed for observed in predicted if _work(observed) not in works)


@dataclass(frozen=True, slots=True)
class _PredictionTask:
    model: Model
    place: Place
    question: Question
    published_rate: Rate | None = None


# A prediction to make, and its result.
_Prediction = tuple[_PredictionTask, Forecast]


@dataclass(frozen=True, slots=True, eq=False)
class JointTimes:
    """Predicted times, each with its row in ``covariance`` [n, n] of the errors of log(time).

    Machines with the same devices share a row.
    """

    rows: Mapping[Observation, int]
    covariance: Matrix


def predict_times(
    inputs: Inputs, models: Iterable[Model], precision: Precision | None = None
) -> Times:
    """Predict training and inference of the models on every machine of the catalogue.

    Times are for ONNX Runtime and, on GPUs, also for the framework in which a source ran the
    published model with the most similar graph. If ``precision`` is None, each machine's usual
    precision is used: mixed on tensor cores, else fp32. The batch size is the largest in the spec
    that fits into memory. A training batch that does not fit is split into equal parts that fit. On
    CPUs, inference is also predicted for the smallest batch in the spec. Without published rates,
    nothing is predicted. Raises InputError for a table that cannot be read.
    """
    timed: list[Observation] = []
    without: list[NoTime] = []
    for predictions, _, missing in _predictions_by_device(inputs, models, precision):
        timed += (_observation(inputs.catalogue, *prediction) for prediction in predictions)
        without += missing
    return Times(tuple(timed), tuple(dict.fromkeys(without)))


def joint_times(inputs: Inputs, models: Iterable[Model]) -> JointTimes:
    """Predict times of models with ONNX Runtime on all machines, with the errors' covariance."""
    timed: dict[Observation, int] = {}
    covariance: Matrix = np.empty((0, 0))
    groups = _predictions_by_device(inputs, models, None, with_programs=False)
    for predictions, forecaster, _ in groups:
        questions = list(dict.fromkeys(task.question for task, _ in predictions))
        places = {question: len(covariance) + at for at, question in enumerate(questions)}
        if predictions:
            block = forecaster.errors_of([as_rate(question, 1.0) for question in questions])
            covariance = block_diagonal(covariance, block)
        for task, forecast in predictions:
            timed[_observation(inputs.catalogue, task, forecast)] = places[task.question]
    return JointTimes(timed, covariance)


def _predictions_by_device(
    inputs: Inputs,
    models: Iterable[Model],
    precision: Precision | None,
    *,
    with_programs: bool = True,
) -> Iterator[tuple[list[_Prediction], Forecaster, list[NoTime]]]:
    """Yield the predictions for GPUs, then for CPUs, and what has none.

    ``with_programs`` adds predictions for other frameworks.
    """
    catalogue = inputs.catalogue
    if not catalogue.tables_of("examples"):
        return
    chosen = tuple(models)
    profiles = profiles_of(inputs, (*models_with_rates(inputs), *(model.id for model in chosen)))
    gpus = Devices(catalogue.devices.values())
    cpu_known, cpus = cpu_rates(inputs, profiles)
    gpu_known = learnt_rates(catalogue, gpus, inputs.cache)
    forecasters = {
        "cuda": Forecaster(gpu_known, gpus, cache=inputs.cache),
        "cpu": Forecaster(cpu_known, cpus, scales=OF_CPUS, cache=inputs.cache),
    }
    hardware = catalogue.hardware
    machines = {name: place_of(spec, forecasters[spec.device]) for name, spec in hardware.items()}
    without = [NoTime(name, why) for name, why in machines.items() if isinstance(why, str)]
    places = [place for place in machines.values() if isinstance(place, Place)]
    for kind, forecaster in forecasters.items():
        here = [place for place in places if place.hardware.device == kind]
        tasks: list[_PredictionTask] = []
        for model in chosen:
            profile = profiles.get(model.id)
            if profile is None or not has_kin(profile, forecaster.published):
                reason = _reason_why_unpredicted(kind, profile)
                without.append(NoTime(model.id, reason, device=kind))
                continue
            published = forecaster.published if with_programs and kind == "cuda" else ()
            nearest = cache(partial(nearest_program, model.task, profile, published))
            questions, unasked = _tasks_and_missing_times(model, profile, here, nearest, precision)
            tasks += questions
            without += unasked
        devices = {task.place.hardware.id: task.place.device for task in tasks}
        measured = [*gpu_rates(inputs, devices, profiles, forecaster.published)]
        learnt = replace(forecaster, measured=measured)
        predictions, vague = _precise_predictions(learnt, tasks)
        yield predictions, learnt, [*without, *vague]
        without = []


def _reason_why_unpredicted(device_kind: str, profile: Profile | None) -> str:
    if profile is None:
        return "its graph is missing or cannot be counted"
    like = "recurrent model" if profile.recurrent_flops else "model of a similar size"
    return f"on {_KINDS[device_kind]}: too few published times of a {like} with a known graph"


def profiles_of(inputs: Inputs, names: Iterable[str]) -> dict[str, Profile]:
    """Profiles (operations and memory traffic) of the graphs of models, by model id.

    Models that are unknown, that cannot be counted or that have no matrix product are left out.
    """
    catalogue = inputs.catalogue
    models = [catalogue.models[name] for name in dict.fromkeys(names) if name in catalogue.models]
    counts = ((model.id, arithmetic_of_model(catalogue, model, inputs.cache)) for model in models)
    return {name: counted.profile for name, counted in counts if counted and counted.profile}


def _precise_predictions(
    forecaster: Forecaster, tasks: Sequence[_PredictionTask]
) -> tuple[list[_Prediction], list[NoTime]]:
    forecasts = forecaster.forecasts([task.question for task in tasks]) if tasks else ()
    precise, vague = [], defaultdict(list)
    for task, forecast in zip(tasks, forecasts, strict=True):
        if forecast.high > MOST_HIGH_OVER_LOW * forecast.low:
            reason = task.model.id, "uncertain by a factor of ten", task.question.mode
            vague[reason].append(task.place.hardware.name)
        else:
            precise.append((task, forecast))
    return precise, _missing_times(vague)


def _missing_times(
    machines_by_reason: Mapping[tuple[str, str, Mode], Iterable[str]],
) -> list[NoTime]:
    return [
        NoTime(model, reason, tuple(dict.fromkeys(machines)), mode=mode)
        for (model, reason, mode), machines in machines_by_reason.items()
    ]


def _tasks_and_missing_times(
    model: Model,
    profile: Profile,
    places: Sequence[Place],
    similar_program: Callable[[Mode, Precision], Program | None],
    precision: Precision | None,
) -> tuple[list[_PredictionTask], list[NoTime]]:
    tasks: list[_PredictionTask] = []
    reasons: dict[tuple[str, str, Mode], list[str]] = defaultdict(list)
    for place, (mode, stated) in itertools.product(places, _batch_sizes_by_mode(model).items()):
        used = precision or usual_precision(place.device)
        need = partial(needed_bytes, model, profile, mode, place.count, used)
        memory = float(place.memory_gib) * place.count * 2**30
        largest = max(stated)
        whole = mode != "training" or need(largest) < memory
        sizes = stated if whole else (*stated, *_parts_of_batch(largest, place.count))
        fitting = [size for size in sizes if need(size) < memory]
        program = similar_program(mode, used)
        reason = ""
        if not computes_in(place.device, used):
            reason = f"does not compute in {used}"
        elif not fitting:
            needed = render_memory(need(min(sizes)))
            reason = f"does not fit: needs {needed}, has {render_memory(memory)}"
        elif not (place.software or program):
            reason = f"{PINNED_RUNTIME} does not run on it, no published time in {used}"
        if reason:
            reasons[model.id, reason, mode].append(place.hardware.name)
        else:
            batch, device = max(fitting), place.device
            work = Question(model.id, profile, mode, used, batch, device, place.count)
            tasks += _tasks_by_software(model, place, work, min(fitting), program)
    without = _missing_times(reasons)
    if not is_whole_pass(model, "training"):
        without.append(NoTime(model.id, "no published time with frozen weights", mode="training"))
    return tasks, without


def _parts_of_batch(batch: int, devices: int) -> Iterable[int]:
    """Sizes of equal parts of a batch, the largest first, each at least the number of devices."""
    return (batch // parts for parts in range(2, batch // devices + 1) if batch % parts == 0)


def _tasks_by_software(
    model: Model, place: Place, work: Question, least_batch: int, program: Program | None
) -> Iterator[_PredictionTask]:
    """Yield the predictions to make for ONNX Runtime (if ``place`` runs it) and for ``program``.

    ``work`` has the largest batch size that fits into memory. Inference in ONNX Runtime on a CPU is
    also predicted at ``least_batch``, the smallest batch size in the model's spec.
    """
    if place.software:
        if work.mode == "inference" and place.hardware.device == "cpu" and least_batch < work.batch:
            yield _PredictionTask(model, place, replace(work, batch=least_batch))
        yield _PredictionTask(model, place, work)
    if program:
        rate = program.published_on(place.device, place.count, work.batch / place.count)
        run = rate or program.rate
        name = run.model if program.same else model.id
        yield _PredictionTask(model, place, replace(work, model=name, program=run), rate)


def _batch_sizes_by_mode(model: Model) -> Mapping[Mode, tuple[int, ...]]:
    """The spec's batch sizes by mode; training with frozen parameters is left out."""
    sizes: dict[Mode, tuple[int, ...]] = {}
    if model.training is not None and is_whole_pass(model, "training"):
        sizes["training"] = model.training.batch_sizes
    if model.inference is not None:
        sizes["inference"] = model.inference.batch_sizes
    return sizes


def _observation(catalogue: Catalogue, task: _PredictionTask, forecast: Forecast) -> Observation:
    work, published = task.question, task.published_rate
    batch, program = work.batch, work.program
    training = task.model.training if work.mode == "training" else None
    evidence = Evidence("prediction", _PAGE)
    if published is not None:
        evidence = Evidence(f"{published.source}: {published.file}", "sources/index.md")
    scale = published.per_second / forecast.per_second if published else 1.0
    rates = (scale * rate for rate in (forecast.high, forecast.per_second, forecast.low))
    # Further digits depend on the other questions of the call.
    step = Time.from_floats(*(float(f"{batch / rate:.6g}") for rate in rates))
    return Observation(
        workload=Workload.of_model(task.model),
        machine=published_machine(task.place.hardware),
        kind="published" if published else "predicted",
        mode=work.mode,
        batch_size=batch,
        software=software_of(program) if program else task.place.software,
        stack="published" if program else "onnxruntime",
        precision=work.precision,
        step=step,
        epoch=epoch_time(step, training, batch),
        epochs=training.epochs if training else None,
        date=max(table.retrieved for table in catalogue.tables_of("examples")),
        evidence=evidence,
        doubts=(task.place.doubt,) if task.place.doubt and program is None else (),
        draws=forecast.draws,
    )
