"""Which stored result stands for a piece of work on a host, and what is doubtful about a result.

Times and costs of results belong to `observations`, `serving` and `tokens`.
"""

from __future__ import annotations

from collections.abc import Sequence

from epochcost.analysis.inputs import StoredResult
from epochcost.plan.work import Steps
from epochcost.results.records import Result
from epochcost.results.stability import instabilities

_FED = "its weights were inputs: a server, which holds them, takes up to a third less"


def is_of_steps(result: Result) -> bool:
    """Whether it is neither of LoadGen's scenarios nor of a decoder's phases."""
    return isinstance(result.trial.work, Steps)


def host_of(result: Result) -> tuple[str, str]:
    """The machine and the host of its kind."""
    return result.hardware, result.environment.fingerprint


def representatives(stored: Sequence[StoredResult]) -> tuple[StoredResult, ...]:
    """The result that stands for each configuration on each host: the latest.

    A trial's id changes with the runtime, the spec and this package, so an older version's result
    of the same model, mode, provider, batch size, threads, load and variant gives way to the newer
    one. Studies may ask the same of one version with other samples: then that of more rounds does.
    """
    latest: dict[tuple[object, ...], StoredResult] = {}
    for result_file in sorted(
        stored, key=lambda result_file: result_file.result.measurement.started_at
    ):
        trial = result_file.result.trial
        work = (trial.model, trial.mode, trial.provider, trial.variant, trial.batch_size)
        key = (*host_of(result_file.result), *work, trial.session.threads, trial.work)
        earlier = latest.get(key)
        if earlier is None or _gives_way(earlier.result, result_file.result):
            latest[key] = result_file
    return tuple(sorted(latest.values(), key=lambda result_file: result_file.uri))


def _gives_way(earlier: Result, later: Result) -> bool:
    """Whether a result is of another version than the later one, or was taken in no more rounds.

    Precision does not decide: of two intervals the narrower would hold the truth less often.
    """
    rounds, more = (len(result.measurement.samples_by_round) for result in (earlier, later))
    return _version(earlier) != _version(later) or rounds <= more


def _version(result: Result) -> tuple[str | bool | None, ...]:
    trial = result.trial
    of_trial = (trial.runtime, trial.producer, trial.graph_sha256, trial.spec_sha256)
    return *of_trial, trial.stored_weights, result.environment.revision


def doubts_about(result: Result) -> tuple[str, ...]:
    """How the machine differs from the declared one, and why the result may not repeat."""
    trial, symptoms = result.trial, instabilities(result.measurement, result.environment)
    return (
        *(f"measured as is: {contradiction}" for contradiction in result.contradictions),
        *(f"unstable: {symptom.phrase}" for symptom in symptoms),
        *([_FED] if trial.mode == "inference" and not trial.stored_weights else ()),
    )
