"""Stages of ``cuda_proof`` and the commands of their cases."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from steps.cases import SUBJECTS

from epochcost.specs.catalogue import Catalogue
from epochcost.specs.study import AT_HAND, Study

BENCHMARKS = Path(__file__).parent
_GRADIENT_BATCH = 2
_PRECISIONS = ("fp32", "tf32", "fp16", "bf16")
# The largest batches of the comparison on CPUs would leave most of a GPU idle.
_GPU_BATCHES = MappingProxyType({"resnet50": 64, "bert-base-128": 32, "gpt2": 8})
# Compiling takes a minute a case, so only the most informative models are compiled.
_COMPILED = ("resnet50", "bert-base-128", "gpt2", "mnist-cnn")


@dataclass(frozen=True)
class Asked:
    """Machine, models and folder of a proof; without models, the proof covers all models."""

    catalogue: Catalogue
    folder: Path
    provider: str
    hardware: str
    models: tuple[str, ...] = ()

    def wants(self, model: str) -> bool:
        """Whether a model is among the models to run."""
        return not self.models or model in self.models


@dataclass(frozen=True)
class Case:
    """A process: its name within the stage, and its command line."""

    key: str
    command: tuple[str, ...]


@dataclass(frozen=True)
class Stage:
    """A question, and the cases that answer it.

    ``header`` is the header of the table rows that the cases print, if any. ``cases`` is a function
    because it needs the catalogue.
    """

    asks: str
    cases: Callable[[Asked], Iterator[Case]]
    header: tuple[str, ...] = ()


def device_case(proof: Asked) -> Case:
    """The case that checks whether the device can be used."""
    return Case("device", _check(proof, "device"))


def _check(proof: Asked, *arguments: str) -> tuple[str, ...]:
    script = (sys.executable, str(BENCHMARKS / "cuda_checks.py"))
    return (*script, *arguments, "--provider", proof.provider)


def _placement(proof: Asked) -> Iterator[Case]:
    for model in _with_graph(proof):
        yield Case(model, _check(proof, "placement", model))


def _with_graph(proof: Asked) -> Iterator[str]:
    for model in sorted(proof.catalogue.models.values(), key=lambda model: model.id):
        if model.graph is not None and proof.wants(model.id):
            yield model.id


def _gradients(proof: Asked) -> Iterator[Case]:
    script = str(BENCHMARKS / "gradients_against_pytorch.py")
    for subject in _subjects(proof):
        size = ("--batch", str(_GRADIENT_BATCH), "--provider", proof.provider, "--worst")
        yield Case(subject, (sys.executable, script, "--models", subject, *size))


def _losses(proof: Asked) -> Iterator[Case]:
    for subject in _subjects(proof):
        yield Case(subject, _check(proof, "losses", subject))


def _subjects(proof: Asked) -> Iterable[str]:
    return (subject.model for subject in SUBJECTS if proof.wants(subject.model))


def _ceilings(proof: Asked) -> Iterator[Case]:
    yield Case("ceilings", _epochcost(proof, "ceilings", "--provider", proof.provider))


def _epochcost(proof: Asked, command: str, *options: str) -> tuple[str, ...]:
    destination = ("--results", str(proof.folder / "results"), "--hardware", proof.hardware)
    return (sys.executable, "-m", "epochcost", command, *options, *destination)


def _study(name: str, provider: str | None = None) -> Callable[[Asked], Iterator[Case]]:
    """Cases for the trials of a study, one for each model, on the device or on ``provider``."""

    def cases(proof: Asked) -> Iterator[Case]:
        study = _runnable(proof, proof.catalogue.studies[name])
        for model in study.models:
            if proof.wants(model):
                options = ("--study", study.id, "--model", model, "--resume", "--no-ceilings")
                where = ("--provider", provider or proof.provider)
                yield Case(f"{name}-{model}", _epochcost(proof, "run", *options, *where))

    return cases


def _runnable(proof: Asked, study: Study) -> Study:
    """The study; in a rehearsal the starter study if this one is not for a CPU at hand."""
    if proof.provider == "cuda" or ("cpu" in study.providers and AT_HAND in study.hardware):
        return study
    return proof.catalogue.studies["starter"]


def _steps(*contenders: str, models: tuple[str, ...] = ()) -> Callable[[Asked], Iterator[Case]]:
    def cases(proof: Asked) -> Iterator[Case]:
        for subject in SUBJECTS:
            if not proof.wants(subject.model) or (models and subject.model not in models):
                continue
            for precision in _PRECISIONS:
                key = f"{subject.model}-{precision}-{'-'.join(contenders)}"
                yield Case(key, _step_command(proof, subject.model, precision, contenders))

    return cases


def _step_command(
    proof: Asked, model: str, precision: str, contenders: tuple[str, ...]
) -> tuple[str, ...]:
    largest = max(subject.batch_sizes[-1] for subject in SUBJECTS if subject.model == model)
    batch = _GPU_BATCHES.get(model, largest) if proof.provider == "cuda" else largest
    script = (sys.executable, str(BENCHMARKS / "training_step.py"), "--models", model)
    sizes = ("--batches", str(batch), "--threads", "1", "--seconds", "5")
    # A case without an outcome is measured anew, whatever the records have of it.
    destination = ("--records", str(proof.folder / "steps.json"), "--again")
    options = ("--device", proof.provider, "--precisions", precision, "--contenders", *contenders)
    return (*script, *sizes, *destination, *options)


STAGES: Mapping[str, Stage] = MappingProxyType(
    {
        "placement": Stage(
            "Does every node of each graph run on the device?",
            _placement,
            ("model", "graph", "nodes on the device", "on the CPU", "most bytes there", "recorded"),
        ),
        "gradients": Stage(
            "Are gradients those of PyTorch in float64?",
            _gradients,
            ("model", "batch", "gradients", "largest error in norm", "of"),
        ),
        "losses": Stage(
            "Do 10 steps without dropout have the losses that they have on the CPU?",
            _losses,
            ("model", "batch", "first loss", "last", "last on the CPU", "most apart"),
        ),
        "ceilings": Stage("What does the device do at most?", _ceilings),
        "models": Stage("What does each model take, trained and served?", _study("one-gpu")),
        "precisions": Stage("What do fewer bits save?", _study("one-gpu-precisions")),
        "steps": Stage("How fast is a step beside PyTorch's eager mode?", _steps("eager")),
        "vcpus": Stage(
            "From how many CPUs of this host on is its GPU the dearer way?",
            _study("vcpus-beside-gpu", "cpu"),
        ),
        "batches": Stage("Where does memory end?", _study("one-gpu-batches")),
        "server": Stage("What does LoadGen's server reach?", _study("vision-server")),
        "tokens": Stage("What do language models take for a token?", _study("one-gpu-tokens")),
        "compiled": Stage("And beside torch.compile?", _steps("compile", models=_COMPILED)),
    }
)
