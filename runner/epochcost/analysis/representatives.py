"""Which stored result stands for a piece of work on a host, and what is doubtful about a result.

What a result says of time and money is left to `observations`, `serving` and `tokens`.
"""

from __future__ import annotations

from collections.abc import Sequence

from epochcost.analysis.inputs import StoredResult
from epochcost.plan.trial import Trial
from epochcost.plan.work import Steps
from epochcost.results.records import Result
from epochcost.results.stability import instabilities


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
    for one in sorted(stored, key=lambda one: one.result.measurement.started_at):
        trial = one.result.trial
        work = (trial.model, trial.mode, trial.provider, trial.variant, trial.batch_size)
        key = (*host_of(one.result), *work, trial.session.threads, trial.work)
        earlier = latest.get(key)
        if earlier is None or _gives_way(earlier.result, one.result):
            latest[key] = one
    return tuple(sorted(latest.values(), key=lambda one: one.uri))


def _gives_way(earlier: Result, later: Result) -> bool:
    """Whether a result is of another version than the later one, or was taken in no more rounds.

    Precision does not decide: of two intervals the narrower would hold the truth less often.
    """
    rounds, more = (len(one.measurement.samples_by_round) for one in (earlier, later))
    return _version(earlier) != _version(later) or rounds <= more


def _version(result: Result) -> tuple[str | bool | None, ...]:
    trial = result.trial
    of_trial = (trial.runtime, trial.producer, trial.graph_sha256, trial.spec_sha256)
    return *of_trial, trial.stored_weights, result.environment.revision


def doubts_about(result: Result) -> tuple[str, ...]:
    """In what the machine is not the declared one, and why the result may not repeat."""
    found = instabilities(result.measurement, result.environment)
    return (
        *(f"measured as is: {one}" for one in result.contradictions),
        *(f"unstable: {one.seen}" for one in found),
        *_fed(result.trial),
    )


def _fed(trial: Trial) -> tuple[str, ...]:
    """Why an older inference may be too slow; nothing where it held its weights."""
    if trial.mode == "training" or trial.stored_weights:
        return ()
    return ("its weights were inputs: a server, which holds them, takes up to a third less",)
