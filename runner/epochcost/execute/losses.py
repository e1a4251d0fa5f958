"""The terms of the loss that a model's spec names, as the differentiator knows them."""

from __future__ import annotations

from epochcost.autodiff import Term
from epochcost.autodiff.losses import SoftmaxCrossEntropy
from epochcost.specs.loss import LossTerm
from epochcost.specs.model import Training
from epochcost.train.targets import IGNORED


def loss_terms(training: Training) -> list[Term]:
    """One term for each of the spec's, the main one first."""
    return [_term(term) for term in training.terms]


def _term(term: LossTerm) -> Term:
    weight, target = float(term.weight), term.target
    if target is None or not (target.ignored_share or target.label_smoothing):
        return Term(term.loss, term.output, weight)
    loss = SoftmaxCrossEntropy(
        ignore_index=IGNORED if target.ignored_share else None,
        label_smoothing=float(target.label_smoothing),
    )
    return Term(loss, term.output, weight)
