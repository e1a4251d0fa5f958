"""Times that nobody measured, predicted from what others published, as observations of their kind.

For every machine whose GPUs or CPUs are known; for all others the reason is said. Where the runtime
of today has no kernels, the time is that of other software, which is named. How a rate follows from
rates of others is left to ``predict``.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from epochcost.analysis.arithmetic import (
    BYTES_PER_NUMBER,
    arithmetic_of_models,
    is_whole_pass,
    optimizer_states,
)
from epochcost.analysis.cpus import cpu_of, cpu_rates, models_on_cpus
from epochcost.analysis.inputs import Inputs
from epochcost.analysis.machines import published_machine
from epochcost.analysis.measured_rates import measured_rates
from epochcost.analysis.observations import Evidence, Observation, Workload, epoch_time
from epochcost.cost import Time
from epochcost.graphs.profile import Profile
from epochcost.plan.variant import CUDA_12_RUNTIME, missing_kernels
from epochcost.predict.design import Devices, Placed
from epochcost.predict.forecast import Forecast, Forecaster, Question, has_kin
from epochcost.predict.learnt import learnt_rates
from epochcost.predict.process import OF_CPUS, POOLED, Scales
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.device import Device
from epochcost.specs.hardware import Hardware
from epochcost.specs.model import Model
from epochcost.specs.study import Mode

# What the prediction is of: the package that `make lock` pins for GPUs today.
RUNTIME = "onnxruntime-gpu==1.31.0"
_PAGE = "method/predictions.md"
# A rate known to a factor of ten either way ranks nothing.
_VAGUEST = 100
_KINDS = {"cuda": "GPUs", "cpu": "CPUs"}


@dataclass(frozen=True, slots=True)
class NoTime:
    """Why nothing is predicted of a model, or for a machine: ``id`` is that of either."""

    id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Predictions:
    """Observations of kind ``predicted``, and the models and machines that have none."""

    observations: tuple[Observation, ...]
    without: tuple[NoTime, ...]

    def beyond(self, observed: Iterable[Observation]) -> Iterator[Observation]:
        """Those of work that has no other time on that kind of machine."""
        known = {_work(one) for one in observed}
        return (one for one in self.observations if _work(one) not in known)


def _work(observed: Observation) -> tuple[str, str, Mode]:
    return observed.workload.id, observed.machine.hardware, observed.mode


@dataclass(frozen=True, slots=True)
class _Place:
    """A machine with its devices, what would run there, and why that is not today's runtime."""

    hardware: Hardware
    device: Device
    count: int
    memory_gib: Decimal
    software: str
    unserved: str = ""


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of GPUs or of CPUs, and how far such rates depart from each other."""

    rates: tuple[Placed, ...]
    devices: Devices
    scales: Scales


@dataclass(frozen=True, slots=True)
class _Asked:
    model: Model
    place: _Place
    mode: Mode
    question: Question


def predict_times(inputs: Inputs, models: Iterable[Model]) -> Predictions:
    """Training and inference of the models on every machine of the catalogue.

    At the largest batch size that the model's spec names and that fits the memory; on CPUs
    inference also at the smallest, for requests one by one: nearly all that others published of
    GPUs is of large batches. Where there are no observations, nothing is said. Raises InputError
    for a table of observations that cannot be read.
    """
    catalogue = inputs.catalogue
    if not catalogue.observations:
        return Predictions((), ())
    chosen = tuple(models)
    profiles = _profiles(inputs, (*models_on_cpus(inputs), *(model.id for model in chosen)))
    gpus = Devices(catalogue.devices.values())
    cpu_known, cpus = cpu_rates(inputs, profiles, _words(RUNTIME))
    known = {
        "cuda": _Known(learnt_rates(catalogue, gpus, inputs.cache), gpus, POOLED),
        "cpu": _Known(cpu_known, cpus, OF_CPUS),
    }
    places = {one.id: _place(one, known[one.device]) for one in catalogue.hardware.values()}
    without = [NoTime(name, why) for name, why in places.items() if isinstance(why, str)]
    timed: list[Observation] = []
    for kind, one in known.items():
        kin = [model for model in chosen if _has_kin(model, profiles, one)]
        without += _refusals(kind, (model for model in chosen if model not in kin), profiles)
        asked = [
            question
            for model in kin
            for place in places.values()
            if isinstance(place, _Place) and place.hardware.device == kind
            for question in _questions(model, profiles[model.id], place)
        ]
        told, vague = _told(inputs, one, asked)
        timed += (_observation(catalogue, *answer) for answer in told)
        without += vague
    return Predictions(tuple(timed), tuple(dict.fromkeys(without)))


def known_of_cpus(inputs: Inputs) -> tuple[tuple[Placed, ...], Devices]:
    """The rates that times on CPUs are predicted from; raises as ``predict_times`` does."""
    return cpu_rates(inputs, _profiles(inputs, models_on_cpus(inputs)), _words(RUNTIME))


def _profiles(inputs: Inputs, names: Iterable[str]) -> dict[str, Profile]:
    """What the graphs of these models ask for, by model id, where that can be counted."""
    models = [inputs.catalogue.models[name] for name in dict.fromkeys(names)]
    counted = arithmetic_of_models(inputs.catalogue, models, inputs.cache)
    return {name: one.profile for name, one in counted.items() if one and one.profile}


def _has_kin(model: Model, profiles: Mapping[str, Profile], known: _Known) -> bool:
    profile = profiles.get(model.id)
    return profile is not None and has_kin(profile, known.rates)


def _refusals(
    kind: str, models: Iterable[Model], profiles: Mapping[str, Profile]
) -> Iterator[NoTime]:
    """Why nothing is predicted of models without kin."""
    for model in models:
        profile = profiles.get(model.id)
        if profile is None:
            yield NoTime(model.id, "no graph that can be counted")
        else:
            like = "recurrent model" if profile.recurrent_flops else "model of nearly its size"
            why = f"no kin: too few published times of a {like} whose graph is known"
            yield NoTime(model.id, f"on {_KINDS[kind]}, {why}")


def _told(
    inputs: Inputs, known: _Known, asked: Sequence[_Asked]
) -> tuple[list[tuple[_Asked, Forecast]], list[NoTime]]:
    """What can be told, and of which models an interval on some machines is too wide for it."""
    if not asked:
        return [], []
    measured = [
        rate
        for one in {one.place.hardware.id: one.place for one in asked}.values()
        for rate in measured_rates(inputs, one.hardware, one.device, one.software, known.rates)
    ]
    forecaster = Forecaster(known.rates, known.devices, measured, known.scales, inputs.cache)
    found = zip(asked, forecaster.forecasts([one.question for one in asked]), strict=True)
    told, vague = [], defaultdict(list)
    for one, forecast in found:
        if forecast.high > _VAGUEST * forecast.low:
            vague[one.model.id].append(one.place.hardware.name)
        else:
            told.append((one, forecast))
    return told, [
        NoTime(model, f"on {', '.join(dict.fromkeys(names))}: not known to a factor of ten")
        for model, names in vague.items()
    ]


def _place(hardware: Hardware, known: _Known) -> _Place | str:
    """A machine as predictions need it, or why nothing is predicted for it."""
    if hardware.accelerators:
        return _accelerated(hardware, known)
    device = cpu_of(hardware)
    if isinstance(device, str):
        return device
    if not known.rates:
        return "too few CPUs with published times"
    if hardware.memory_gib is None:
        return "its memory is not known"
    return _Place(hardware, device, 1, hardware.memory_gib, _words(RUNTIME))


def _accelerated(hardware: Hardware, known: _Known) -> _Place | str:
    if len(hardware.accelerators) > 1:
        return "accelerators of several kinds"
    (accelerator,) = hardware.accelerators
    device = known.devices.named(accelerator.name)
    if device is None:
        return f"no published time of a {accelerator.name}"
    capability, unserved = accelerator.compute_capability, ""
    software: str | None = RUNTIME
    if missing_kernels(RUNTIME, capability) is not None:
        older = missing_kernels(CUDA_12_RUNTIME, capability) is None
        software = CUDA_12_RUNTIME if older else _framework(device, known.rates)
        unserved = f"{RUNTIME} has no kernels for compute capability {capability}"
    if software is None:
        return f"{unserved}, and no published time of a {device.generation} GPU"
    memory, words = device.memory_gib, _words(software)
    return _Place(hardware, device, accelerator.count, memory, words, unserved)


def _framework(device: Device, known: Sequence[Placed]) -> str | None:
    """What ran most of the published times of a device's generation; None where there is none."""
    sources = Counter(
        one.rate.source for one in known if one.device.generation == device.generation
    )
    return max(sources, key=sources.__getitem__, default=None)


def _words(software: str) -> str:
    """The package as people call it; of a source, that it is its software."""
    if "==" not in software:
        return f"software of {software}"
    release = software.partition("==")[2].rpartition(".")[0]
    return f"ONNX Runtime {release}"


def _questions(model: Model, profile: Profile, place: _Place) -> Iterator[_Asked]:
    """Training and inference, each where the model's spec names a batch that fits."""
    sizes: dict[Mode, tuple[int, ...]] = {}
    if model.training is not None and is_whole_pass(model, "training"):
        sizes["training"] = model.training.batch_sizes
    if model.inference is not None:
        sizes["inference"] = model.inference.batch_sizes
    for mode, batches in sizes.items():
        fitting = [size for size in batches if _fits(model, profile, mode, size, place)]
        for size in _asked_sizes(place, mode, fitting):
            question = Question(
                model=model.id,
                profile=profile,
                mode=mode,
                precision="fp32",
                batch=size,
                software=place.software,
                device=place.device,
                count=place.count,
            )
            yield _Asked(model, place, mode, question)


def _asked_sizes(place: _Place, mode: Mode, fitting: Sequence[int]) -> Iterable[int]:
    if not fitting:
        return ()
    both = mode == "inference" and place.hardware.device == "cpu"
    return sorted({min(fitting), max(fitting)}) if both else (max(fitting),)


def _fits(model: Model, profile: Profile, mode: Mode, batch: int, place: _Place) -> bool:
    """Whether a device's share of a batch and what is trained fit its memory, in fp32.

    A training step keeps what the forward pass writes, about half of what it moves, and for each
    parameter its gradient and the optimizer's states.
    """
    written = (profile.moved + profile.moved_by_others) / 2
    numbers = float(profile.parameters)
    if mode == "training" and model.training is not None:
        numbers = numbers * (2 + optimizer_states(model.training.optimizer))
        numbers += written * batch / place.count
    return numbers * BYTES_PER_NUMBER < float(place.memory_gib) * 2**30


def _observation(catalogue: Catalogue, asked: _Asked, forecast: Forecast) -> Observation:
    batch, training = asked.question.batch, asked.model.training
    rates = forecast.high, forecast.per_second, forecast.low
    # Digits beyond these depend on what else was asked at once.
    step = Time.from_floats(*(float(f"{batch / rate:.6g}") for rate in rates))
    trains = training is not None and asked.mode == "training"
    return Observation(
        workload=Workload.of_model(asked.model),
        machine=published_machine(asked.place.hardware),
        kind="predicted",
        mode=asked.mode,
        batch_size=batch,
        software=asked.place.software,
        step=step,
        epoch=epoch_time(step, training if trains else None, batch),
        epochs=training.epochs if trains and training is not None else None,
        date=max(one.retrieved for one in catalogue.observations.values()),
        evidence=Evidence("prediction", _PAGE),
        doubts=(asked.place.unserved,) if asked.place.unserved else (),
        unserved=asked.place.unserved,
        draws=-forecast.draws,
    )
