"""What each stage of the proof on a GPU runs; how it is run and kept is left to ``cuda_proof``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from steps.cases import SUBJECTS

from epochcost.specs.catalogue import Catalogue

BENCHMARKS = Path(__file__).parent
_GRADIENT_BATCH = 2
_PRECISIONS = ("fp32", "tf32", "bf16")
# Compiling takes a minute a case: where the ratio says most.
_COMPILED = ("resnet50", "bert-base-128", "gpt2", "mnist-cnn")


@dataclass(frozen=True)
class Asked:
    """On which machine, for which models (none: all), and where everything is kept."""

    catalogue: Catalogue
    folder: Path
    provider: str
    hardware: str
    models: tuple[str, ...] = ()

    def wants(self, model: str) -> bool:
        """Whether a model is asked for."""
        return not self.models or model in self.models


@dataclass(frozen=True)
class Case:
    """A process: its name within the stage, and its command line."""

    key: str
    command: tuple[str, ...]


@dataclass(frozen=True)
class Stage:
    """``header`` is that of the table that its cases print rows of; none: they print as they like.

    ``cases`` are told only when they are asked for: the catalogue is read by then.
    """

    asks: str
    cases: Callable[[Asked], Iterator[Case]]
    header: tuple[str, ...] = ()


def device_case(asked: Asked) -> Case:
    """Whether the device can be used at all."""
    return Case("device", _check(asked, "device"))


def _check(asked: Asked, *arguments: str) -> tuple[str, ...]:
    script = (sys.executable, str(BENCHMARKS / "cuda_checks.py"))
    return (*script, *arguments, "--provider", asked.provider)


def _placement(asked: Asked) -> Iterator[Case]:
    for model in _with_graph(asked):
        yield Case(model, _check(asked, "placement", model))


def _with_graph(asked: Asked) -> Iterator[str]:
    for model in sorted(asked.catalogue.models.values(), key=lambda one: one.id):
        if model.graph is not None and asked.wants(model.id):
            yield model.id


def _gradients(asked: Asked) -> Iterator[Case]:
    script = str(BENCHMARKS / "gradients_against_pytorch.py")
    for subject in _subjects(asked):
        size = ("--batch", str(_GRADIENT_BATCH), "--provider", asked.provider, "--worst")
        yield Case(subject, (sys.executable, script, "--models", subject, *size))


def _losses(asked: Asked) -> Iterator[Case]:
    for subject in _subjects(asked):
        yield Case(subject, _check(asked, "losses", subject))


def _subjects(asked: Asked) -> Iterable[str]:
    return (one.model for one in SUBJECTS if asked.wants(one.model))


def _ceilings(asked: Asked) -> Iterator[Case]:
    yield Case("ceilings", _epochcost(asked, "ceilings", "--provider", asked.provider))


def _epochcost(asked: Asked, command: str, *options: str) -> tuple[str, ...]:
    kept = ("--results", str(asked.folder / "results"), "--hardware", asked.hardware)
    return (sys.executable, "-m", "epochcost", command, *options, *kept)


def _study(name: str, provider: str | None = None) -> Callable[[Asked], Iterator[Case]]:
    """The trials of a study, a case for each model, on the device or on a ``provider``."""

    def cases(asked: Asked) -> Iterator[Case]:
        study = asked.catalogue.studies[name]
        for model in study.models:
            if asked.wants(model):
                options = ("--study", name, "--model", model, "--resume", "--no-ceilings")
                where = ("--provider", provider or asked.provider)
                yield Case(f"{name}-{model}", _epochcost(asked, "run", *options, *where))

    return cases


def _steps(*contenders: str, models: tuple[str, ...] = ()) -> Callable[[Asked], Iterator[Case]]:
    def cases(asked: Asked) -> Iterator[Case]:
        for subject in SUBJECTS:
            if not asked.wants(subject.model) or (models and subject.model not in models):
                continue
            for precision in _PRECISIONS:
                key = f"{subject.model}-{precision}-{'-'.join(contenders)}"
                yield Case(key, _step_command(asked, subject.model, precision, contenders))

    return cases


def _step_command(
    asked: Asked, model: str, precision: str, contenders: tuple[str, ...]
) -> tuple[str, ...]:
    batch = max(one.batch_sizes[-1] for one in SUBJECTS if one.model == model)
    script = (sys.executable, str(BENCHMARKS / "training_step.py"), "--models", model)
    sizes = ("--batches", str(batch), "--threads", "1", "--seconds", "5")
    kept = ("--records", str(asked.folder / "steps.json"))
    what = ("--device", asked.provider, "--precisions", precision, "--contenders", *contenders)
    return (*script, *sizes, *kept, *what)


STAGES: Mapping[str, Stage] = MappingProxyType(
    {
        "placement": Stage(
            "Does every node of each graph run on the device?",
            _placement,
            ("model", "graph", "nodes on the device", "on the CPU", "most bytes there", "alone"),
        ),
        "gradients": Stage(
            "Are gradients those of PyTorch in float64?",
            _gradients,
            ("model", "batch", "gradients", "largest error in norm", "of"),
        ),
        "losses": Stage(
            "Do 50 steps without dropout learn what they learn on the CPU?",
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
        "graphs": Stage("What do CUDA graphs save?", _study("one-gpu-graphs")),
        "server": Stage("What does LoadGen's server reach?", _study("vision-server")),
        "tokens": Stage("What do language models take for a token?", _study("one-gpu-tokens")),
        "compiled": Stage("And beside torch.compile?", _steps("compile", models=_COMPILED)),
    }
)
