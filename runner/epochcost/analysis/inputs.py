"""Read a project: its stored results, and the ratios of our times to other frameworks' times.

benchmarks/training_step.py and benchmarks/inference.py write the file of ratios.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from epochcost.analysis.machines import Machine, measured_machine
from epochcost.errors import ResultError
from epochcost.plan.trial import Trial
from epochcost.results.ceilings import Ceilings
from epochcost.results.checks import unknown_machine, unknown_model
from epochcost.results.fields import RecordT
from epochcost.results.records import Result
from epochcost.results.reported import ReportedRun, spec_faults
from epochcost.results.rounds import without_disturbed_rounds
from epochcost.results.sidecars import BatchLimit
from epochcost.results.store import Loaded, SidecarT, load_all, load_sidecars
from epochcost.results.trainings import Trainings
from epochcost.specs.catalogue import Catalogue

# By PyTorch's mode or by the other runtime.
_Ratios = dict[str, Decimal]
# A ratio holds for batches up to this many times larger or smaller than the compared one.
_NEAR = 2
# Another runtime is called faster if our inference takes more than this many times as long.
_SLOWER = Decimal("1.05")
# The page of measured ratios to other frameworks, below the docs folder.
RATIOS_FILE = "data/step-ratio.json"
RESULTS_URI = "data/results"
HostedT = TypeVar("HostedT", Result, BatchLimit, Ceilings, Trainings)
_TableT = TypeVar("_TableT", bound=Sized)


@dataclass(frozen=True, slots=True)
class StepRatio:
    """The time of our training step divided by the time of PyTorch's.

    ``where`` names the compared batch size or dimensions if they differ from the trial's. ``near``
    is False if the batch sizes differ by more than a factor of two.
    """

    value: Decimal
    where: str = ""
    near: bool = True


@dataclass(frozen=True, slots=True)
class SlowerInference:
    """Inference that takes ``value`` times as long in ONNX Runtime as in another ``runtime``."""

    value: Decimal
    runtime: str
    batch_size: int
    threads: int
    cpu: str


class StepRatios(BaseModel):
    """Our times divided by other frameworks' times, in nested mappings.

    ``models``, for training on a CPU, has the keys model, batch size, threads and PyTorch's mode
    ("eager" or "compile"). ``gpu``, for training on a GPU, has the keys model, precision, batch
    size and mode. ``inference``, on the CPU named ``cpu``, has the keys model, batch size, threads
    and runtime. ``dimensions`` has sizes of graph dimensions that differ from the spec's.
    """

    model_config = ConfigDict(frozen=True)

    models: dict[str, dict[int, dict[int, _Ratios]]]
    dimensions: dict[str, dict[str, int]] = {}
    inference: dict[str, dict[int, dict[int, _Ratios]]] = {}
    cpu: str = ""
    gpu: dict[str, dict[str, dict[int, _Ratios]]] = {}

    def of(self, trial: Trial) -> StepRatio | None:
        """The ratio to PyTorch's fastest mode for a trial; None if the model was never compared.

        Of the compared batch sizes, the nearest is used. If a CPU trial's number of threads (0
        means all) was not compared, the largest compared number is used. A GPU trial has a ratio
        only if it replayed CUDA graphs, as the compared steps did: without, steps are slower.
        """
        model, batch_size, threads = trial.model, trial.batch_size, trial.session.threads
        batches = _without_empty(self.gpu.get(model, {}).get(trial.precision, {}))
        if trial.provider == "cpu":
            by_threads = {
                size: _without_empty(counts) for size, counts in self.models.get(model, {}).items()
            }
            batches = {
                size: counts.get(threads, counts[max(counts)])
                for size, counts in _without_empty(by_threads).items()
            }
        if not batches or (trial.provider == "cuda" and not trial.session.cuda_graph):
            return None
        factors = {size: max(size / batch_size, batch_size / size) for size in batches}
        nearest = min(factors, key=factors.__getitem__)
        where = [f"at batch size {nearest}"] if nearest != batch_size else []
        sizes = self.dimensions.get(model, {}).items()
        text = ", ".join([*where, *(f"at {name} {size}" for name, size in sizes)])
        return StepRatio(max(batches[nearest].values()), text, factors[nearest] <= _NEAR)

    @cached_property
    def slower_inference(self) -> Mapping[str, SlowerInference]:
        """Models whose inference takes over 5 % longer in our runtime than in another."""
        worst: dict[str, SlowerInference] = {}
        for model, batches in self.inference.items():
            compared = [
                SlowerInference(value, runtime, size, count, self.cpu)
                for size, counts in batches.items()
                for count, runtimes in counts.items()
                for runtime, value in runtimes.items()
                if value > _SLOWER
            ]
            if compared:
                worst[model] = max(compared, key=lambda case: case.value)
        return worst


def _without_empty(tables: Mapping[int, _TableT]) -> dict[int, _TableT]:
    return {size: table for size, table in tables.items() if table}


def read_ratios(path: Path) -> StepRatios:
    """Read the file of ratios, none if it is missing; raises ResultError for an invalid file."""
    if not path.is_file():
        return StepRatios(models={})
    try:
        return StepRatios.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise ResultError(
            f"{path}: expected ratios as benchmarks/training_step.py writes them, got {error}"
        ) from None


@dataclass(frozen=True, slots=True)
class StoredResult:
    """A result without disturbed rounds (unless all are), its file and the address on the site."""

    result: Result
    path: Path
    uri: str


@dataclass(frozen=True)
class Inputs:
    """A project's specs, results and other records, from which all figures are computed.

    ``limits`` has the largest batch sizes that ran, ``ceilings`` peak rates of hosts, ``trainings``
    trainings on real data, ``reported`` runs measured with other tools; their keys are files.
    ``problems`` has sentences on faulty files. ``cache`` is a folder of computed values, or None
    for no cache. ``folders`` contain the results. ``docs`` contains the files of ratios and of
    prediction errors.
    """

    catalogue: Catalogue
    stored: tuple[StoredResult, ...]
    ratios: StepRatios
    problems: tuple[str, ...]
    limits: Mapping[Path, BatchLimit]
    cache: Path | None
    ceilings: Mapping[Path, Ceilings]
    folders: tuple[Path, ...]
    docs: Path
    trainings: Mapping[Path, Trainings]
    reported: Mapping[Path, ReportedRun] = field(default_factory=dict)

    @cached_property
    def _host_count_by_hardware(self) -> Counter[str]:
        results = [file.result for file in self.stored]
        hosts = {(result.hardware, result.environment.fingerprint) for result in results}
        return Counter(hardware for hardware, _ in hosts)

    def machine(self, result: Result) -> Machine:
        """The machine of a result; its name states the host if several hosts share its spec."""
        trial = result.trial
        return measured_machine(
            self.catalogue.hardware[result.hardware],
            result.environment,
            trial.provider,
            only_host=self._host_count_by_hardware[result.hardware] == 1,
            gpu=trial.session.device,
        )

    @property
    def files(self) -> frozenset[Path]:
        """Every file of the results folders that was read."""
        results = (file.path for file in self.stored)
        sidecars = (*self.ceilings, *self.limits, *self.trainings, *self.reported)
        return frozenset((*results, *sidecars))

    def uri_of(self, path: Path) -> str:
        """The address of a record's file on the site."""
        return _uri_of(path, self.folders)


def read_inputs(
    catalogue: Catalogue, results: Sequence[Path], docs: Path, cache: Path | None = None
) -> Inputs:
    """Read a project's records; faulty files are left out and listed in ``Inputs.problems``."""
    problems: list[str] = []

    def sidecars(
        kind: type[SidecarT], faults_of: Callable[[SidecarT], Iterator[str]] = lambda _: iter(())
    ) -> dict[Path, SidecarT]:
        loads = (load_sidecars(folder, kind) for folder in results)
        return _sound_records(loads, problems, faults_of)

    stored = _sound_records(
        map(load_all, results), problems, lambda result: missing_specs(result, catalogue)
    )
    ceilings = sidecars(Ceilings, lambda record: unknown_machine(catalogue, record.hardware))
    limits, trainings = sidecars(BatchLimit), sidecars(Trainings)
    reported = sidecars(ReportedRun, lambda run: spec_faults(catalogue, run))
    ratios = StepRatios(models={})
    try:
        ratios = read_ratios(docs / RATIOS_FILE)
    except ResultError as error:
        problems.append(str(error))
    declared = _declared_machines(catalogue, stored.values())

    def moved(records: Mapping[Path, HostedT]) -> dict[Path, HostedT]:
        return {path: _on_declared(record, declared) for path, record in records.items()}

    return Inputs(
        catalogue,
        tuple(
            StoredResult(without_disturbed_rounds(result), path, _uri_of(path, results))
            for path, result in moved(stored).items()
        ),
        ratios,
        tuple(problems),
        moved(limits),
        cache,
        moved(ceilings),
        tuple(results),
        docs,
        moved(trainings),
        reported,
    )


def _declared_machines(
    catalogue: Catalogue, results: Iterable[Result]
) -> Mapping[tuple[str, str], str]:
    """The declared machine of each host (a computer), by detected machine and fingerprint.

    The spec of a declared machine states CPU and memory. Results name it, unless they contradict
    the spec. A host whose results name several declared machines is left out.
    """
    detected = {name for name, spec in catalogue.hardware.items() if spec.detected}
    declared: dict[str, set[str]] = {}
    for result in results:
        if not result.contradictions and result.hardware not in detected:
            declared.setdefault(result.environment.fingerprint, set()).add(result.hardware)
    return {
        (local, host): machine
        for host, (machine, *others) in declared.items()
        for local in detected
        if not others
    }


def _on_declared(record: HostedT, declared: Mapping[tuple[str, str], str]) -> HostedT:
    machine = declared.get((record.hardware, record.environment.fingerprint))
    # Under two machines, the host would compete with itself.
    return record.model_copy(update={"hardware": machine}) if machine else record


def _sound_records(
    loads: Iterable[Loaded[RecordT]],
    problems: list[str],
    faults_of: Callable[[RecordT], Iterator[str]],
) -> dict[Path, RecordT]:
    """The records for which ``faults_of`` yields nothing; report others in ``problems``."""
    sound: dict[Path, RecordT] = {}
    for loaded in loads:
        problems += [f"{fault} (left out of the site)" for fault in loaded.faults]
        for path, record in loaded.records.items():
            if fault := next(faults_of(record), None):
                problems.append(f"{path}: {fault} (left out of the site)")
            else:
                sound[path] = record
    return sound


def _uri_of(path: Path, folders: Iterable[Path]) -> str:
    folder = next(folder for folder in folders if path.is_relative_to(folder))
    return f"{RESULTS_URI}/{path.relative_to(folder).as_posix()}"


def missing_specs(result: Result, catalogue: Catalogue) -> Iterator[str]:
    """Yield a message for each spec that the result names and the catalogue lacks."""
    yield from unknown_model(catalogue, result.trial.model, result.trial.mode)
    yield from unknown_machine(catalogue, result.hardware)
