"""The teacher: repeatable, in range, balanced, and with something to learn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcost.train.teacher import Field, Teacher

IMAGE = Field("image", (1, 8, 8), np.dtype(np.float32), -1.0, 3.0)
WORDS = Field("words", (12,), np.dtype(np.int64), 0.0, 50.0)


def test_the_same_seed_gives_the_same_data() -> None:
    """A batch depends on seed, stream and index, and on nothing else."""
    first, again = (Teacher((IMAGE, WORDS), 10, 7).draw(0, 3, 16) for _ in range(2))
    assert np.array_equal(first.labels, again.labels)
    assert all(np.array_equal(first.inputs[name], again.inputs[name]) for name in first.inputs)


@pytest.mark.parametrize(("seed", "stream", "index"), [(8, 0, 3), (7, 1, 3), (7, 0, 4)])
def test_other_seeds_streams_and_indices_give_other_data(
    seed: int, stream: int, index: int
) -> None:
    """Held-out batches are not training batches."""
    reference = Teacher((IMAGE,), 10, 7).draw(0, 3, 16)
    other = Teacher((IMAGE,), 10, seed).draw(stream, index, 16)
    assert not np.array_equal(reference.inputs["image"], other.inputs["image"])


@given(st.integers(2, 200), st.integers(0, 2**31 - 1), st.integers(1, 20))
def test_values_and_labels_are_in_range(classes: int, seed: int, size: int) -> None:
    """Floats lie in the declared range, integers below its end, labels below the classes."""
    batch = Teacher((IMAGE, WORDS), classes, seed).draw(0, 0, size)
    image, words = batch.inputs["image"], batch.inputs["words"]
    assert image.shape == (size, 1, 8, 8)
    assert image.dtype == np.float32
    assert image.min() >= -1
    assert image.max() <= 3
    assert words.dtype == np.int64
    assert words.min() >= 0
    assert words.max() <= 49
    assert batch.labels.shape == (size,)
    assert batch.labels.dtype == np.int64
    assert batch.labels.min() >= 0
    assert batch.labels.max() < classes


@pytest.mark.parametrize("classes", [2, 10, 64])
def test_classes_are_balanced(classes: int) -> None:
    """With orthonormal readouts each class is as likely as any other."""
    examples = 400 * classes
    labels = Teacher((IMAGE,), classes, 1).draw(0, 0, examples).labels
    counts = np.bincount(labels, minlength=classes)
    # Five standard deviations of a binomial count of mean 400.
    assert np.all(np.abs(counts - 400) < 5 * np.sqrt(400))


def test_the_range_is_used() -> None:
    """Inputs are neither saturated at the ends nor stuck in the middle."""
    image = Teacher((IMAGE,), 10, 1).draw(0, 0, 500).inputs["image"]
    shares = (image + 1) / 4
    assert 0.2 < shares.std() < 0.35
    assert np.mean((shares < 0.01) | (shares > 0.99)) < 0.05


@pytest.mark.parametrize("field", [IMAGE, WORDS])
def test_the_labels_can_be_learnt_from_the_inputs(field: Field) -> None:
    """A linear least-squares fit on one batch predicts another far better than chance."""
    teacher = Teacher((field,), 10, 5)
    learnt, asked = teacher.draw(0, 0, 4000), teacher.draw(1, 0, 1000)
    fit, *_ = np.linalg.lstsq(
        _features(learnt.inputs[field.name]), np.eye(10)[learnt.labels], rcond=None
    )
    guesses = np.argmax(_features(asked.inputs[field.name]) @ fit, axis=1)
    assert np.mean(guesses == asked.labels) > 0.3


def _features(values: np.ndarray) -> np.ndarray:
    flat = values.reshape(len(values), -1).astype(np.float64)
    return np.hstack([flat, np.ones((len(flat), 1))])
