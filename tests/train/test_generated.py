"""Made-up data keep what their spec states: the entropy of a text, the share of wrong labels."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pytest

from epochcost.specs.data import Generated
from epochcost.train.generated import (
    MarkovChain,
    best_of_images,
    draw_images,
    markov_chain,
)

TEXT = Generated(generator="markov-text", characters=4)
SHAPES = Generated(generator="textured-shapes", side=32, wrong_labels=Decimal("0.25"))


def test_the_entropy_of_a_chain_is_known() -> None:
    """A fair coin has log 2 at each place; one that always repeats has none."""
    fair = MarkovChain(np.full((2, 2, 2), 0.5)).best()
    assert (fair.loss, fair.accuracy) == (pytest.approx(math.log(2)), pytest.approx(0.5))
    flips = np.zeros((2, 2, 2))
    flips[:, 0, 1] = flips[:, 1, 0] = 1
    assert MarkovChain(flips).best().loss == pytest.approx(0)


def test_a_text_has_the_entropy_of_its_chain() -> None:
    """The chain's own predictions cost what is stated, on a text that it drew."""
    chain = markov_chain(TEXT)
    text = chain.draw(60_000, np.random.default_rng(5))
    costs = -np.log(chain.probabilities[text[:-2], text[1:-1], text[2:]])
    assert np.mean(costs) == pytest.approx(chain.best().loss, rel=0.02)
    likeliest = chain.probabilities[text[:-2], text[1:-1]].argmax(axis=1)
    assert np.mean(likeliest == text[2:]) == pytest.approx(chain.best().accuracy, rel=0.02)


def test_a_share_of_labels_is_wrong() -> None:
    """Pictures are the same as without, and so many labels name another class."""
    images, labels = draw_images(SHAPES, 2000)
    same, right = draw_images(SHAPES.model_copy(update={"wrong_labels": Decimal(0)}), 2000)
    assert images.shape == (2000, 3, 32, 32)
    np.testing.assert_array_equal(images, same)
    assert np.mean(labels != right) == pytest.approx(0.25, abs=0.03)
    assert set(labels) == set(range(10))


def test_the_best_of_wrong_labels_is_to_know_the_true_ones() -> None:
    """The accuracy of the right labels, and the entropy of what a label then is."""
    best = best_of_images(SHAPES)
    assert best.accuracy == pytest.approx(0.75)
    assert best.loss == pytest.approx(-0.75 * math.log(0.75) - 0.25 * math.log(0.25 / 9))
    none = best_of_images(SHAPES.model_copy(update={"wrong_labels": Decimal(0)}))
    assert (none.loss, none.accuracy) == (0, 1)


def test_classes_differ_to_the_eye_of_a_plain_average() -> None:
    """Images of one class are closer to its mean picture than chance would have them."""
    images, labels = draw_images(SHAPES.model_copy(update={"wrong_labels": Decimal(0)}), 3000)
    grey = images.mean(axis=1).reshape(3000, -1)
    means = np.stack([grey[:2000][labels[:2000] == each].mean(axis=0) for each in range(10)])
    distances = ((grey[2000:, None] - means) ** 2).sum(axis=2)
    assert np.mean(distances.argmin(axis=1) == labels[2000:]) > 0.2
