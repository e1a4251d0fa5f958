"""Sound results that somebody edited: an edit that makes one untrue is refused for what it did."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

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
    """Every time that a result has of its samples is so many times shorter."""

    def change(document: Document) -> None:
        measured = document["measurement"]
        measured["samples_seconds"] = [one / factor for one in measured["samples_seconds"]]
        measured["conditions"]["seconds"] /= factor

    return change


_READING = {"meter": "RAPL", "of": "cpu", "joules": 9.0, "seconds": 0.6}


def _reading(joules: float, seconds: float) -> Callable[[Document], None]:
    reading = _READING | {"joules": joules, "seconds": seconds}
    return _set("measurement", "energy", to={"readings": [reading]})


def _pinned(cpus: list[int]) -> Callable[[Document], None]:
    return _set("measurement", "pinning", to={"cpus": cpus, "threads": 2})


def _nodes(operator: str, count: int) -> Callable[[Document], None]:
    nodes = {"CPUExecutionProvider": {operator: count}}
    return _set("measurement", "placement", "nodes_by_provider", to=nodes)


def _rounds(minutes: int = 0, **changed: Any) -> Callable[[Document], None]:
    """Two rounds so long apart, at once if not; ``changed`` are values of the second."""

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


TAMPERED: dict[str, tuple[Callable[[Document], None], str]] = {
    "trial's batch": (_set("trial", "batch_size", to=64), "expected trial_id"),
    "trial's id": (_set("trial_id", to="0" * 16), "expected trial_id"),
    "another model": (_set("trial", "model", to="other"), "expected trial_id"),
    "faster": (_samples(lambda one: [x / 1e5 for x in one]), "at least a microsecond a step"),
    "too fast for the CPU": (_all_clocks(5e3), "FLOP/s, what this"),
    "slower": (_samples(lambda one: [x * 10 for x in one]), "in all, got"),
    "one long step": (_samples(lambda one: [*one[:-1], 1e300]), "equal to 1000000000"),
    "no sample": (_samples(lambda _: []), "should have at least 2 samples"),
    "negative": (_samples(lambda one: [-1.0, *one]), "greater than or equal to 0.000000001"),
    "text for a number": (_set("measurement", "wall_seconds", to="fast"), "wall_seconds"),
    "fewer steps": (_set("measurement", "steps_taken", to=5), "steps_taken: expected at least"),
    "the future": (_set("measurement", "started_at", to="2031-01-01T00:00:00Z"), "in the past"),
    "the past": (_set("measurement", "started_at", to="1970-01-01T00:00:00Z"), "from 2026-11-01"),
    "no zone": (_set("measurement", "started_at", to="2026-11-21T00:00:00"), "timezone"),
    "the end of time": (
        _set("measurement", "wall_seconds", to=1e300),
        "equal to 1000000000",
    ),
    "the last day": (
        _set("measurement", "started_at", to="9999-12-31T23:59:59Z"),
        "less than 2200-01-01",
    ),
    "a date as a number": (_set("measurement", "started_at", to=1795000000), "valid datetime"),
    "scaled": (_samples(lambda one: [x / 2 for x in one]), "in all of a sampling phase"),
    "scaled far": (_samples(lambda one: [x * 1e290 for x in one]), "less than or equal to"),
    "stretched": (_samples(lambda one: [x * 1.3 for x in one]), "0.7 s of the sampling phase"),
    "nobody watched": (_set("measurement", "conditions", to=None), "conditions: expected how"),
    "a slow phase": (_set("measurement", "wall_seconds", to=1.12), "after 0.5 s of warm"),
    "a machine without memory": (_set("environment", "memory_bytes", to=None), "memory_bytes:"),
    "energy of a star": (_reading(1e300, 0.6), "less than or equal to"),
    "energy of a town": (_reading(1e9, 0.6), "joules: expected at most 100,000 W"),
    "energy of a day": (_reading(1e3, 86_400), "energy.seconds: expected at most the 1.5 s"),
    "format as text": (_set("format_version", to="2"), "format_version"),
    "format as a decimal": (_set("format_version", to=2.0), "format_version"),
    "a number as text": (_set("measurement", "wall_seconds", to="1.5"), "valid number"),
    "a truth as a number": (_set("trial", "stored_weights", to=1), "valid boolean"),
    "negative nodes": (_nodes("Gemm", -5), "greater than 0"),
    "operators of nobody": (_nodes("Teleport", 3), "placement: expected operators of ONNX"),
    "no operator": (_nodes("<b>", 3), "match pattern"),
    "a byte of memory": (_set("measurement", "peak_memory_bytes", to=1), "equal to 1048576"),
    "a revision of f": (_set("environment", "revision", to="f" * 40), "the id of a commit"),
    "a long decimal": (_set("trial", "budget_seconds", to="1e-999999999"), "40 digits"),
    "a hidden setting": (_set("trial", "session", to={"tf32": True}), "beside the rest"),
    "no warm-up": (_set("measurement", "warmup_seconds", to=[]), "a step at least"),
    "a CPU twice": (_pinned([0, 0]), "expected each CPU once"),
    "more CPUs than asked": (_pinned([0, 1]), "expected the None CPUs of the trial, got 2"),
    "rounds at once": (_rounds(), "rounds: expected one after the other"),
    "a short round": (_rounds(1, wall_seconds=0.2), "expected at least the 0.3 s of a round"),
    "a round of another sum": (_rounds(1, wall_seconds=0.9), "the 1.8 s of all rounds"),
    "a round of more steps": (_rounds(1, steps_taken=50), "the 90 of all rounds, got 80"),
    "a round of a long phase": (_rounds(1, conditions={"seconds": 0.7}), "in all of a sampling"),
    "provider": (_set("measurement", "placement", "provider", to="CUDA"), "should have run there"),
    "nothing ran": (_set("measurement", "placement", "nodes_by_provider", to={}), "placement"),
    "runtime": (_set("environment", "runtime", to="onnxruntime==9.9.9"), "should have run under"),
    "another CPU": (_set("environment", "cpu", to="A Better CPU"), "fingerprint: expected"),
    "more CPUs": (_set("environment", "logical_cpus", to=64), "fingerprint: expected"),
    "memory": (_set("measurement", "peak_memory_bytes", to=2**40), "peak_memory_bytes: expected"),
    "unknown key": (_set("note", to="trust me"), "note: Extra inputs"),
    "missing key": (lambda document: document.pop("environment"), "environment: Field required"),
    "another machine's": (_set("hardware", to="other"), "expected hardware 'local'"),
    "newer format": (_set("format_version", to=99), "a newer epochcost wrote this"),
    "no format": (_set("format_version", to=None), "expected format_version"),
    "control characters": (_set("environment", "python", to="\x1b[2J"), "control characters"),
    "a long text": (_set("environment", "python", to="x" * 30_000), "characters, got 30,000"),
    "deep": (_set("environment", "packages", to=json.loads("[" * 40 + "]" * 40)), "levels"),
    "huge number": (_set("trial", "seed", to=10**30), "below 2^63"),
}


@pytest.mark.parametrize("name", TAMPERED)
def test_a_tampered_result(project: Path, name: str) -> None:
    """Each edit that makes a result untrue is refused for what it did."""
    path = stored(project, sound(project))
    change, words = TAMPERED[name]
    document = json.loads(path.read_bytes())
    change(document)
    path.write_text(json.dumps(document), encoding="utf-8")
    assert words in the_fault(project, path)
