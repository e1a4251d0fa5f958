"""Specs' losses become the differentiator's terms."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from epochcost.execute.step import loss_terms
from epochcost.specs.model import Training
from onnxstep import Term
from onnxstep.losses import SoftmaxCrossEntropy


def training(**changes: Any) -> Training:
    """A way to train, changed."""
    document: dict[str, Any] = {
        "loss": "softmax_cross_entropy",
        "output": "logits",
        "target": {"classes": 10},
        "optimizer": {"name": "adam"},
        "batch_sizes": [1],
        "examples_per_epoch": 10,
        "epochs": 1,
    }
    return Training.model_validate(document | changes)


def test_each_term_has_its_output_and_weight() -> None:
    """The main term comes first, the auxiliary ones in their order."""
    side = {"loss": "own_output", "output": "penalty"}
    declared = training(weight=35, auxiliary=[side])
    assert loss_terms(declared) == [
        Term("softmax_cross_entropy", "logits", 35.0),
        Term("own_output", "penalty", 1.0),
    ]


def test_ignored_positions_are_left_out_of_the_loss() -> None:
    """A share without a class asks for a loss that passes over the mark of the teacher."""
    declared = training(target={"classes": 10, "ignored_share": Decimal("0.85")})
    assert loss_terms(declared) == [Term(SoftmaxCrossEntropy(ignore_index=-100), "logits", 1.0)]


def test_labels_are_smoothed_by_what_the_target_says() -> None:
    """Of each term by itself, and beside positions that are passed over."""
    smooth = {"classes": 10, "label_smoothing": Decimal("0.1")}
    both = {**smooth, "ignored_share": Decimal("0.5")}
    side = {"loss": "softmax_cross_entropy", "output": "tags", "target": both}
    assert loss_terms(training(target=smooth, auxiliary=[side])) == [
        Term(SoftmaxCrossEntropy(label_smoothing=0.1), "logits", 1.0),
        Term(SoftmaxCrossEntropy(ignore_index=-100, label_smoothing=0.1), "tags", 1.0),
    ]
