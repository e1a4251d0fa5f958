"""Digests of ONNX files and of work: equal for equal content; a missing file is an error."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from epochcost.errors import ModelError
from epochcost.plan.digests import graph_sha256, work_sha256
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.model import Input, Model, Training
from epochcost.specs.study import Mode


def catalogue(root: Path) -> Catalogue:
    """A catalogue with one model, whose graph is ``net.onnx``."""
    net = Model(
        id="net",
        name="Net",
        task="digits",
        example="image",
        graph="net.onnx",
        inputs=(Input(name="pixels"),),
        source="a paper",
    )
    return Catalogue(root, {}, {}, {"net": net}, {}, {})


def test_a_missing_file_says_who_wants_it(tmp_path: Path) -> None:
    """The message names the missing file, the model that needs it, and what to do."""
    with pytest.raises(ModelError, match=r"net\.onnx: expected .* model net names, .*export it"):
        graph_sha256(catalogue(tmp_path), "net")


TRAINED: dict[str, Any] = {
    "loss": "softmax_cross_entropy",
    "output": "logits",
    "target": {"classes": 10},
    "optimizer": {"name": "sgd", "learning_rate": Decimal("0.1")},
    "batch_sizes": [32],
    "examples_per_epoch": 1000,
    "epochs": 3,
}


def trained(training: dict[str, Any] | None = None, **changes: Any) -> Model:
    """The model with a training, and with changes to both."""
    (net,) = catalogue(Path()).models.values()
    document = net.model_dump() | {"training": TRAINED | (training or {})} | changes
    return Model.model_validate(document)


AUXILIARY = {"loss": "mse", "output": "side", "target": {"low": 0, "high": 1}}
CHANGED: dict[str, dict[str, Any]] = {
    "loss": {"loss": "nll"},
    "output": {"output": "scores"},
    "target": {"target": {"classes": 11}},
    "weight": {"weight": 35},
    "auxiliary": {"auxiliary": [AUXILIARY]},
    "optimizer": {"optimizer": {"name": "sgd", "learning_rate": Decimal("0.2")}},
    "schedule": {"schedule": {"name": "constant", "warm_up_steps": 5}},
    "no_weight_decay": {"no_weight_decay": ["*.bias"]},
    "freeze": {"freeze": ["body.*"]},
    "clip_norm": {"clip_norm": 5},
    "batch_sizes": {"batch_sizes": [64]},
    "examples_per_epoch": {"examples_per_epoch": 2000},
    "epochs": {"epochs": 4},
    "augmentation": {"augmentation": {"flip": True}},
}
# And what only real data see.
LENGTHS = {"batch_sizes", "examples_per_epoch", "epochs", "augmentation"}


def test_every_key_of_a_training_is_tried_here() -> None:
    """The changes of these tests cover every key of a training in the schema."""
    assert set(CHANGED) == set(Training.model_fields)


@pytest.mark.parametrize("key", CHANGED)
def test_what_changes_a_training_changes_its_work(key: str) -> None:
    """Every key of a training changes its work, except lengths and augmentation."""
    before, after = trained(), trained(CHANGED[key])
    assert (work_sha256(before, "training") == work_sha256(after, "training")) == (key in LENGTHS)
    assert work_sha256(before, "inference") == work_sha256(after, "inference")


@pytest.mark.parametrize(
    "change",
    [
        {"inputs": [{"name": "pixels", "vocabulary": 7}]},
        {"inputs": [{"name": "pixels", "value": 1}]},
        {"inputs": [{"name": "pixels"}, {"name": "mask"}]},
        {"dimensions": {"sequence": 35}},
        {"carried": [{"input": "h0", "output": "hn"}]},
    ],
)
@pytest.mark.parametrize("mode", ["training", "inference"])
def test_what_goes_in_is_work(change: dict[str, Any], mode: Mode) -> None:
    """Inputs, dimensions and carried state change the work of training and of inference."""
    assert work_sha256(trained(), mode) != work_sha256(trained(**change), mode)


@pytest.mark.parametrize(
    "change",
    [
        {"name": "A net"},
        {"source": "another paper"},
        {"notes": "of note"},
        {"accuracy_percent": 99},
        {"tokens_per_example": 35},
        {"dataset": "mnist"},
        {"inference": {"batch_sizes": [1, 2, 4]}},
    ],
)
def test_what_is_said_about_the_work_is_not_work(change: dict[str, Any]) -> None:
    """Names, sources, notes and batch sizes do not change the work."""
    assert work_sha256(trained(), "training") == work_sha256(trained(**change), "training")
