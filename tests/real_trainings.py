"""Real trainings of about a second: the catalogue's perceptron for scikit-learn's digits."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from epochcost.execute.training import PreparedTraining, TrainingRequest, prepare, run_repeat
from epochcost.plan.trial import SessionSettings
from epochcost.results.trainings import Repeat
from epochcost.specs.loader import load_catalogue
from epochcost.train.loop import Recipe
from epochcost.train.state import Progress

ROOT = Path(__file__).parents[1]


def place_digits(folder: Path) -> Path:
    """Copy the file of the digits from scikit-learn into a folder of data sets; its path there."""
    package = find_spec("sklearn")
    assert package is not None, "an extra of development"
    assert package.origin is not None
    place = folder / "digits/digits.csv.gz"
    place.parent.mkdir(parents=True, exist_ok=True)
    return shutil.copyfile(Path(package.origin).parent / "datasets/data" / place.name, place)


def prepared_digits(folder: Path, save_seconds: float = 60.0, **recipe: Any) -> PreparedTraining:
    """A training of three epochs of the catalogue's model, changed by ``recipe``."""
    catalogue = load_catalogue(ROOT)
    model = catalogue.model("digits-mlp")
    training = model.training
    assert training is not None
    request = TrainingRequest(
        model,
        training,
        catalogue.datasets["digits"],
        32,
        "cpu",
        SessionSettings(threads=1),
        evaluate_every=20,
        save_seconds=save_seconds,
    )
    rate = training.optimizer.learning_rate
    plain = Recipe(training.schedule, rate, epochs=3, evaluate_every=20)
    data = folder.with_name(f"{folder.name}-data")
    place_digits(data)
    return prepare(request, replace(plain, **recipe), catalogue, data)


def run(
    prepared: PreparedTraining,
    folder: Path,
    stopped: Callable[[], bool] = lambda: False,
    told: Callable[[Progress, int, float], None] = lambda *_: None,
) -> Repeat | None:
    """Run the repeat with seed 3."""
    return run_repeat(prepared, 3, folder, told, stopped)
