"""Generated data have their declared entropy and share of wrong labels."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest

from epochcost.specs.reference_data import Generated
from epochcost.train.datasets import draw_images, draw_text, markov_chain

TEXT = Generated(generator="markov-text", characters=4)
SHAPES = Generated(generator="textured-shapes", side=32, wrong_labels=Decimal("0.25"))


def test_a_text_has_the_entropy_of_its_chain() -> None:
    """The loss of the Markov chain's own predictions is the entropy of the chain."""
    chain = markov_chain(TEXT)
    text = draw_text(chain, 60_000, np.random.default_rng(5))
    predicted = chain[text[:-2], text[1:-1]]
    costs = -np.log(predicted[np.arange(len(predicted)), text[2:]])
    logs = np.log(np.where(predicted > 0, predicted, 1.0))
    assert np.mean(costs) == pytest.approx(-np.mean((predicted * logs).sum(axis=1)), rel=0.02)
    right = np.mean(predicted.argmax(axis=1) == text[2:])
    assert right == pytest.approx(predicted.max(axis=1).mean(), rel=0.02)


def test_a_share_of_labels_is_wrong() -> None:
    """A quarter of the labels is changed, and the images are the same."""
    images, labels = draw_images(SHAPES, 2000)
    same, right = draw_images(SHAPES.model_copy(update={"wrong_labels": Decimal(0)}), 2000)
    assert images.shape == (2000, 3, 32, 32)
    np.testing.assert_array_equal(images, same)
    assert np.mean(labels != right) == pytest.approx(0.25, abs=0.03)
    assert set(labels) == set(range(10))


def test_classes_differ_to_the_eye_of_a_plain_average() -> None:
    """The nearest class mean finds the label of an image better than chance."""
    images, labels = draw_images(SHAPES.model_copy(update={"wrong_labels": Decimal(0)}), 3000)
    grey = images.mean(axis=1).reshape(3000, -1)
    means = np.stack([grey[:2000][labels[:2000] == each].mean(axis=0) for each in range(10)])
    distances = ((grey[2000:, None] - means) ** 2).sum(axis=2)
    assert np.mean(distances.argmin(axis=1) == labels[2000:]) > 0.2
