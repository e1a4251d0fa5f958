"""Sound results after an edit: an edit that makes a result untrue is refused for its cause."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from epochcost.plan.trial import Trial
from epochcost.results.checks import CHECKS
from epochcost.results.records import DamagedResultError, parse_result
from epochcost.results.store import file_name
from submitted import sound, stored, the_fault

Document = dict[str, Any]


def _set(*keys: str, to: Any) -> Callable[[Document], None]:
    def change(document: Document) -> None:
        table = document
        for key in keys[:-1]:
            table = table[key]
        table[keys[-1]] = to

    return change


def _samples(change: Callable[[list[float]], list[float]]) -> Callable[[Document], None]:
    def changed(document: Document) -> None:
        measured = document["measurement"]
        measured["samples_seconds"] = change(measured["samples_seconds"])

    return changed


def _all_clocks(factor: float) -> Callable[[Document], None]:
    """Divide all times that a result has of its samples by a factor."""

    def change(document: Document) -> None:
        measured = document["measurement"]
        measured["samples_seconds"] = [one / factor for one in measured["samples_seconds"]]
        measured["conditions"]["seconds"] /= factor

    return change


def _retrained(**trial: Any) -> Callable[[Document], None]:
    """Change keys of the trial, and give it the id that follows."""

    def change(document: Document) -> None:
        document["trial"] |= trial
        document["trial_id"] = Trial.model_validate_json(json.dumps(document["trial"])).id

    return change


def _on_a_gpu(document: Document) -> None:
    """Turn a result of the CPU into one of CUDA, with everything that names the provider."""
    _retrained(provider="cuda")(document)
    nodes = {"CUDAExecutionProvider": {"Gemm": 3}}
    document["measurement"]["placement"] = {
        "provider": "CUDAExecutionProvider",
        "nodes_by_provider": nodes,
    }


def _pinned(cpus: list[int]) -> Callable[[Document], None]:
    return _set("measurement", "pinning", to={"cpus": cpus, "threads": 2})


def _rounds(minutes: int = 0, **changed: Any) -> Callable[[Document], None]:
    """Split a result into two rounds, ``minutes`` apart; ``changed`` are values of the second."""

    def change(document: Document) -> None:
        measured = document["measurement"]
        one = {"wall_seconds": 0.75, "warmup_steps": 0, "conditions": {"seconds": 0.35}}
        one |= {"samples": 30, "stop_reason": "precise", "steps_taken": 40}
        first = one | {"started_at": measured["started_at"], "warmup_steps": 1}
        first["wall_seconds"] = 0.9
        measured["wall_seconds"] = 1.65
        at = dt.datetime.fromisoformat(measured["started_at"]) + dt.timedelta(minutes=minutes)
        measured["rounds"] = [first, one | {"started_at": at.isoformat()} | changed]

    return change


# By the name of a check, edits that it catches.
CAUGHT: dict[str, tuple[Callable[[Document], None], str]] = {
    "model": (_retrained(model="nobody"), "expected a model whose spec has training, got 'nobody'"),
    "fingerprint": (_set("environment", "cpu", to="A Better CPU"), "fingerprint: expected"),
    "date": (_set("measurement", "started_at", to="2031-01-01T00:00:00Z"), "in the past"),
    "turns": (_rounds(), "rounds: expected no overlap"),
    "duration": (_samples(lambda one: [x * 1e3 for x in one]), "that were timed, got"),
    "phase": (_samples(lambda one: [x / 4 for x in one]), "as the sampling phase took"),
    "steps": (_set("measurement", "steps_taken", to=5), "steps_taken: expected at least"),
    "sums": (_rounds(1, steps_taken=50), "the 90 of all rounds, got 80"),
    "memory": (_set("measurement", "peak_memory_bytes", to=2**40), "peak_memory_bytes: expected"),
    "cpus": (_pinned([0, 1]), "pinning: expected all CPUs, as in the trial, got 2"),
    "gpu": (_on_a_gpu, "gpus: expected the GPU 0 that the trial used; got 0 GPUs"),
    "placement": (_set("measurement", "placement", "nodes_by_provider", to={}), "placement"),
    "peak": (_all_clocks(5e4), "FLOP/s, what this machine"),
}
# Those that have tests of their own: a machine's name and its folder are one.
OTHERS = {"hardware", "host"}


def test_every_check_has_an_edit_that_it_catches() -> None:
    """For every check there is an edit that it refuses."""
    names = [check.__name__.removeprefix("_") for check in CHECKS]
    assert [name for name in names if name not in OTHERS] == [*CAUGHT]


@pytest.mark.parametrize("name", CAUGHT)
def test_a_check_refuses_what_it_catches(project: Path, name: str) -> None:
    """Each edit is refused with its check's message."""
    change, words = CAUGHT[name]
    message = the_fault(project, _edited(project, change))
    assert words in message


# Edits that the form of a record refuses.
MALFORMED: dict[str, tuple[Callable[[Document], None], str]] = {
    "the trial's id": (_set("trial_id", to="0" * 16), "expected trial_id"),
    "no sample": (_samples(lambda _: []), "should have at least 2 samples"),
    "a text for a number": (_set("measurement", "wall_seconds", to="1.5"), "valid number"),
    "the last day": (
        _set("measurement", "started_at", to="9999-12-31T23:59:59Z"),
        "less than 2200-01-01",
    ),
    "the end of time": (_set("measurement", "wall_seconds", to=1e300), "equal to 1000000000"),
    "a long decimal": (_set("trial", "budget_seconds", to="1e-999999999"), "40 digits"),
    "another runtime": (
        _set("environment", "runtime", to="onnxruntime==9.9.9"),
        "should have run under",
    ),
    "an unknown key": (_set("note", to="trust me"), "note: Extra inputs"),
    "a missing key": (lambda document: document.pop("environment"), "environment: Field required"),
    "another folder": (_set("hardware", to="other"), "expected hardware 'local'"),
    "control characters": (_set("environment", "python", to="\x1b[2J"), "control characters"),
    "nobody watched": (
        _set("measurement", "conditions", to=None),
        "conditions: expected the duration",
    ),
    "a pinning left out": (_retrained(vcpus=1), "expected 1 CPUs, as in the trial, got all"),
    "no memory": (_set("environment", "memory_bytes", to=None), "fingerprint: expected"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_result_is_refused(project: Path, name: str) -> None:
    """Each malformed result is refused with the reason."""
    change, words = MALFORMED[name]
    assert words in the_fault(project, _edited(project, change))


def _edited(project: Path, change: Callable[[Document], None]) -> Path:
    """The file of a sound result after an edit, under the name that the edited result has."""
    path = stored(project, sound(project))
    document = json.loads(path.read_bytes())
    change(document)
    path.write_text(json.dumps(document), encoding="utf-8")
    try:
        result = parse_result(path.read_bytes(), path)
    except DamagedResultError:
        return path
    name = file_name(result.trial, result.environment.fingerprint)
    return path.rename(path.with_name(name))
