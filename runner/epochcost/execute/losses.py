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
    weight = float(term.weight)
    if term.target is not None and term.target.ignored_share:
        return Term(SoftmaxCrossEntropy(ignore_index=IGNORED), term.output, weight)
    return Term(term.loss, term.output, weight)
