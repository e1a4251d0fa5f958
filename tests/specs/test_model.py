"""The rules of a model's spec: each broken rule is one line at its place."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from epochcost.specs.loader import load_catalogue
from epochcost.specs.model import Training
from epochcost.specs.training import Falling

if TYPE_CHECKING:
    from conftest import Project

MODEL = "specs/models/mlp.toml"
INPUT, TARGET, LOSS = 'name = "image"', "{ classes = 10 }", '"softmax_cross_entropy"'
SGD, SIZES = '{ name = "sgd", learning_rate = 0.1 }', "batch_sizes = [32, 128]"
# Bounds of single keys are those of the committed schemas, which test_schema.py compares.
BROKEN = [
    # inputs
    (INPUT, f"{INPUT}\nvocabulary = 5\nvalue = 1",
     "7:3: inputs[0]: should have either low and high, or vocabulary, or value"),
    (INPUT, f"{INPUT}\nvocabulary = 5\nlow = 1",
     "7:3: inputs[0]: should have either low and high, or vocabulary, or value"),
    (INPUT, f"{INPUT}\n[dimensions]\nsequence = 0",
     "10:1: dimensions.sequence: should be greater than 0, got 0"),
    (INPUT, f'{INPUT}\n[[carried]]\ninput = "h"\noutput = "a"\n[[carried]]\ninput = "h"\n'
     'output = "b"', '9:3: carried: should name each item once, got "h" twice'),
    # losses and their targets
    (LOSS, '"softmax_cross_entrop"', '10:1: training.loss: should be one of '
     '"softmax_cross_entropy", "sigmoid_cross_entropy", "nll", "mse", "l1", "huber", "own_output", '
     'got "softmax_cross_entrop"; did you mean "softmax_cross_entropy"?'),
    (f"target = {TARGET}\n", "",
     "9:2: training: should have a target, which softmax_cross_entropy needs"),
    (TARGET, "{ low = 0, high = 1 }",
     "9:2: training: should have a target with classes: softmax_cross_entropy needs indices"),
    (LOSS, '"sigmoid_cross_entropy"',
     "9:2: training: should have classes = 2: sigmoid_cross_entropy needs 0 or 1"),
    (LOSS, '"mse"',
     "9:2: training: should have a target with low and high: mse needs numbers"),
    (LOSS, '"own_output"',
     "9:2: training: should have no target: own_output compares with nothing"),
    (TARGET, "{ low = 0 }", "12:1: training.target: should have either classes, or low and high"),
    (TARGET, "{ low = 2, high = 1 }", "12:1: training.target: should have low below high"),
    (f'{LOSS}\noutput = "logits"\ntarget = {TARGET}',
     '"nll"\noutput = "logits"\ntarget = { classes = 10, ignored_share = 0.5 }',
     "9:2: training: should have no ignored_share: only softmax_cross_entropy has it"),
    (f'{LOSS}\noutput = "logits"\ntarget = {TARGET}',
     '"nll"\noutput = "logits"\ntarget = { classes = 10, label_smoothing = 0.1 }',
     "9:2: training: should have no label_smoothing: only softmax_cross_entropy has it"),
    (SIZES, f'{SIZES}\nauxiliary = [{{ loss = "mse", output = "side" }}]',
     "15:14: training.auxiliary[0]: should have a target, which mse needs"),
    # optimizers and exceptions
    (SGD, '{ name = "sgd", learning_rate = 0.1, nesterov = true }',
     "13:1: training.optimizer: should have a momentum above 0 with nesterov"),
    (SIZES, f'{SIZES}\nfreeze = ["a", "a"]',
     '15:1: training.freeze: should name each item once, got "a" twice'),
    (SIZES, f'{SIZES}\nno_weight_decay = [""]',
     '15:20: training.no_weight_decay[0]: should not be empty, got ""'),
    # schedules
    (SIZES, f'{SIZES}\nschedule = {{ name = "cosin" }}', '15:14: training.schedule.name: should be '
     'one of "constant", "step", "exponential", "cosine", "linear", "inverse-square-root", '
     '"inverse-time", "on-plateau", got "cosin"; did you mean "cosine"?'),
    (SIZES, f'{SIZES}\nschedule = {{ name = "step", epochs = [1, 2], factors = [0.1] }}',
     "15:1: training.schedule: should have as many factors as epochs"),
    (SIZES, f'{SIZES}\nschedule = {{ name = "step", epochs = [2, 1], factors = [0.1, 0.01] }}',
     "15:1: training.schedule: should have epochs in growing order"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "line"), BROKEN, ids=[row[2] for row in BROKEN])
def test_fault_line(project: Project, old: str, new: str, line: str) -> None:
    """A single mistake gives exactly one line."""
    project.edit(MODEL, old, new)
    assert project.faults() == [f"{MODEL}:{line}"]


def training_of(project: Project) -> Training:
    """The training of the project's only model."""
    training = load_catalogue(project.root).model("mlp").training
    assert training is not None
    return training


def test_all_that_can_be_declared(project: Project) -> None:
    """A training with every key has no fault and the written values."""
    project.edit(
        MODEL,
        SIZES,
        f'{SIZES}\nweight = 35\nclip_norm = 5\nfreeze = ["body.*"]\n'
        'no_weight_decay = ["*.bias"]\nschedule = { name = "linear", warm_up_steps = 100 }',
    )
    text = (project.root / MODEL).read_text(encoding="utf-8")
    auxiliary = '[[training.auxiliary]]\nloss = "own_output"\noutput = "penalty"\nweight = 0.01\n'
    project.write(MODEL, text + auxiliary)
    assert project.faults() == []
    training = training_of(project)
    assert training.schedule == Falling(name="linear", warm_up_steps=100)
    assert (training.freeze, training.no_weight_decay) == (("body.*",), ("*.bias",))
    assert [(term.loss, term.output, term.weight) for term in training.terms] == [
        ("softmax_cross_entropy", "logits", Decimal(35)),
        ("own_output", "penalty", Decimal("0.01")),
    ]
