"""Records of trainings are stored beside results, with their spread over repeats."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from epochcost.measure.environment import detect_environment
from epochcost.results.records import Result
from epochcost.results.sidecar_faults import sidecar_faults
from epochcost.results.store import Loaded, load_all, load_sidecars, write_sidecar
from epochcost.results.trainings import Point, Repeat, Trainings, spread
from epochcost.specs.loader import load_catalogue

POINTS = tuple(
    Point(
        step=step,
        seconds=step / 10,
        learning_rate=0.1,
        training_loss=None,
        loss=1.0,
        accuracy=step / 100,
    )
    for step in (0, 40, 80)
)


def repeat(seed: int = 0, **changes: Any) -> Repeat:
    """A repeat that reached its target at its last evaluation."""
    told = {
        "seed": seed,
        "ending": "reached",
        "steps": 80,
        "step_seconds": 8.0,
        "waiting_seconds": 0.5,
        "evaluation_seconds": 1.0,
        "saving_seconds": 0.25,
        "sessions": 1,
        "reached_step": 80,
        "curve": POINTS,
        "weights_sha256": "0" * 64,
    }
    return Repeat.model_validate(told | changes)


@pytest.fixture(name="make")
def make_fixture(make_result: Callable[..., Result]) -> Callable[..., Trainings]:
    """A function that makes a record of a made-up host, with other values as named."""
    environment = make_result().environment

    def make(**changes: Any) -> Trainings:
        told = {
            "hardware": "local",
            "trainings_version": 1,
            "id": "0123456789abcdef",
            "model": "tiny",
            "dataset": "digits",
            "data_sha256": "1" * 64,
            "provider": "cpu",
            "batch_size": 32,
            "training_examples": 1437,
            "held_out_examples": 360,
            "epoch_steps": 44,
            "aim": "accuracy >= 0.8",
            "measured_at": "2026-11-23T12:00:00Z",
            "repeats": (repeat(0), repeat(1)),
            "environment": environment,
        }
        return Trainings.model_validate(told | changes)

    return make


def test_trainings_are_kept_beside_results(tmp_path: Path, make: Callable[..., Trainings]) -> None:
    """A training on a host has a file, which is not read as a result."""
    kept = make()
    path = write_sidecar(tmp_path, kept)
    assert path == tmp_path / "local" / "trainings" / "tiny-digits-cpu-b32-01234567-f00d.json"
    assert load_all(tmp_path) == Loaded({}, ())
    assert load_sidecars(tmp_path, Trainings).records == {path: kept}


def test_a_damaged_file_is_told_by_name(tmp_path: Path, make: Callable[..., Trainings]) -> None:
    """A file of a newer version is a fault that names the file."""
    path = write_sidecar(tmp_path, make())
    stored = json.loads(path.read_text())
    path.write_text(json.dumps(stored | {"trainings_version": 2}))
    (fault,) = load_sidecars(tmp_path, Trainings).faults
    assert fault.path == path
    assert "trainings_version: Input should be 1" in fault.message


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"curve": POINTS[::-1]}, "ascending steps"),
        ({"steps": 79}, "none beyond the last"),
        ({"reached_step": 79}, "that of an evaluation"),
        ({"ending": "epochs"}, "where the aim was reached"),
        ({"reached_step": None}, "where the aim was reached"),
    ],
)
def test_a_repeat_that_contradicts_itself_is_refused(changes: dict[str, Any], words: str) -> None:
    """A curve beyond the training's end and a target that no point reached are refused."""
    with pytest.raises(ValidationError, match=words):
        repeat(**changes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model": "none"}, "model: expected a model whose spec has training, got 'none'"),
        ({"model": "chinchilla"}, "model: expected a model whose spec has training"),
        ({"dataset": "none"}, "dataset: expected a data set with a spec, got 'none'"),
        ({"hardware": "nowhere"}, "hardware: expected a machine with a spec, got 'nowhere'"),
        ({"provider": "cuda"}, "gpus: expected the GPU that was measured"),
        ({"measured_at": "2199-01-01T00:00:00Z"}, "measured_at"),
    ],
)
def test_what_cannot_be_true_is_a_fault(
    tmp_path: Path, make: Callable[..., Trainings], changes: dict[str, Any], words: str
) -> None:
    """Unknown specs and a future date are faults, and a sound record is none."""
    catalogue, now = load_catalogue(Path(__file__).parents[2]), dt.datetime.now(dt.UTC)
    sound: dict[str, Any] = {"model": "digits-mlp", "environment": detect_environment()}
    write_sidecar(tmp_path, make(**sound))
    assert list(sidecar_faults(catalogue, tmp_path, now)) == []
    path = write_sidecar(tmp_path, make(**(sound | changes)))
    assert {fault.path: fault.message for fault in sidecar_faults(catalogue, tmp_path, now)}[
        path
    ].startswith(words)


def test_a_file_of_an_earlier_version_loads_without_its_stability(
    make: Callable[..., Trainings], tmp_path: Path
) -> None:
    """The stable step of an earlier version is ignored, and not written again."""
    former = {"within": 0.005, "limit": 0.9, "step": 20.0, "low_step": 19.0, "high_step": 21.0}
    path = write_sidecar(tmp_path, make())
    text = json.loads(path.read_text("utf-8"))
    for stored in text["repeats"]:
        stored["stable"] = former
    path.write_text(json.dumps(text), "utf-8")
    (record,) = load_sidecars(tmp_path, Trainings).records.values()
    assert "stable" not in record.model_dump()["repeats"][0]


def test_a_spread_is_a_mean_and_its_interval() -> None:
    """The interval of repeats is Student's t. A single repeat has no interval."""
    found = spread([1.0, 2.0, 3.0])
    assert found.mean == 2
    assert found.half_width == pytest.approx(4.303 / 3**0.5, rel=1e-3)
    assert spread([5.0]).half_width is None
