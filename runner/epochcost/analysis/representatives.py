"""Choose the result that represents a workload on a host, and list reasons to doubt a result."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter

from epochcost.analysis.inputs import StoredResult
from epochcost.plan.work import Phase, Requests, Steps
from epochcost.results.records import Result
from epochcost.results.stability import disturbances_of, instabilities

# The first word of doubts that a repeated measurement gives the same time.
UNSTABLE = "unstable"
DIFFERS = "differs from the spec"
_FED = (
    "weights were passed as inputs: a server that keeps them loaded needs up to a third less time"
)


def is_of_steps(result: Result) -> bool:
    """Whether a result has times of steps, instead of LoadGen's scenarios or a decoder's phases."""
    return isinstance(result.trial.work, Steps)


def representatives(stored: Sequence[StoredResult]) -> tuple[StoredResult, ...]:
    """Choose one result, usually the latest, of each configuration on each host.

    A configuration is a model, mode, provider, batch size, threads, kind of work and variant. A
    later result with another runtime, graph or spec replaces the earlier one. If these are equal,
    the later result must have at least as many rounds; 0 count if other programs disturbed it.
    """
    latest: dict[tuple[object, ...], StoredResult] = {}
    for result_file in sorted(stored, key=attrgetter("result.measurement.started_at")):
        result, trial = result_file.result, result_file.result.trial
        host = result.hardware, result.environment.fingerprint
        work = (trial.model, trial.mode, trial.provider, trial.variant, trial.batch_size)
        # A trial's id changes with the runtime, the spec and this package, so the key has no id.
        key = (*host, *work, trial.session.threads, trial.work)
        earlier = latest.get(key)
        if earlier is None or _is_replaced_by(earlier.result, result):
            latest[key] = result_file
    return tuple(sorted(latest.values(), key=attrgetter("uri")))


def of_whole_machines(
    stored: Iterable[StoredResult], work: type[Phase] | type[Requests]
) -> tuple[StoredResult, ...]:
    """Choose one result, usually the latest, of each of a decoder's trials on a whole machine.

    The trials have default settings, but any precision. ``work`` selects phases or requests.
    """
    files = ((file, file.result.trial) for file in stored)
    alike = [file for file, trial in files if trial.variant in ("", trial.precision)]
    return representatives([file for file in alike if isinstance(file.result.trial.work, work)])


def _is_replaced_by(earlier: Result, later: Result) -> bool:
    """Whether ``later`` has another runtime, graph or spec, or no fewer undisturbed rounds."""
    # Chosen by width, confidence intervals would contain the true mean less often than claimed.
    rounds, more = _calm_rounds(earlier), _calm_rounds(later)
    return _version(earlier) != _version(later) or rounds <= more


def _calm_rounds(result: Result) -> int:
    return 0 if "others" in disturbances_of(result) else len(result.measurement.samples_by_round)


def _version(result: Result) -> tuple[str | bool | None, ...]:
    trial = result.trial
    of_trial = (trial.runtime, trial.producer, trial.graph_sha256, trial.spec_sha256)
    return *of_trial, trial.stored_weights, result.environment.revision


def doubts_about(result: Result) -> tuple[str, ...]:
    """State why to doubt a result: contradictions, instability, or weights passed as inputs."""
    trial, symptoms = result.trial, instabilities(result)
    phrases = ", ".join(symptom.phrase for symptom in symptoms)
    return (
        *(f"{DIFFERS}: {contradiction}" for contradiction in result.contradictions),
        *([f"{UNSTABLE}: {phrases}"] if phrases else ()),
        *([_FED] if trial.mode == "inference" and not trial.stored_weights else ()),
    )
