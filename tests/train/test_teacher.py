"""The teacher's data are repeatable, in range, balanced and learnable."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcost.train.teacher import IGNORED, InputField, TargetField, Teacher

Batch = dict[str, np.ndarray]
FLOAT, INT = np.dtype(np.float32), np.dtype(np.int64)
IMAGE = InputField("image", (1, 8, 8), FLOAT, -1.0, 3.0)
LEVELS = InputField("levels", (12,), INT, 0.0, 50.0)
WORDS = InputField("words", (60,), INT, 0.0, 500.0, "tokens")
MASK = InputField("mask", (12,), INT, 1.0, 2.0, "constant")


def classes(count: int, shape: tuple[int, ...] = ()) -> TargetField:
    """A target of class indices."""
    return TargetField("target", shape, INT, classes=count)


BINARY = TargetField("target", (1,), FLOAT, classes=2)
NUMBERS = TargetField("target", (3, 2), FLOAT, low=-5.0, high=5.0)


def test_the_same_seed_gives_the_same_data() -> None:
    """A batch depends only on seed, stream and index."""
    fields, target = (IMAGE, LEVELS, WORDS, MASK), classes(9, (60,))
    first, again = (Teacher(fields, (target,), 7).draw(0, 3, 16) for _ in range(2))
    assert all(np.array_equal(first[name], again[name]) for name in first)


@pytest.mark.parametrize("name", ["image", "words"])
@pytest.mark.parametrize(("seed", "stream", "index"), [(8, 0, 3), (7, 1, 3), (7, 0, 4)])
def test_other_seeds_streams_and_indices_give_other_data(
    name: str, seed: int, stream: int, index: int
) -> None:
    """Another seed, stream or index gives another batch, so held-out data differ."""
    reference = Teacher((IMAGE, WORDS), (classes(10),), 7).draw(0, 3, 16)
    other_batch = Teacher((IMAGE, WORDS), (classes(10),), seed).draw(stream, index, 16)
    assert not np.array_equal(reference[name], other_batch[name])


@given(st.integers(2, 200), st.integers(0, 2**31 - 1), st.integers(1, 20))
def test_values_and_labels_are_in_range(count: int, seed: int, size: int) -> None:
    """Floats and integers are in the declared range, labels below the number of classes."""
    batch = Teacher((IMAGE, LEVELS, WORDS, MASK), (classes(count),), seed).draw(0, 0, size)
    image, levels, tokens = (batch[name] for name in ("image", "levels", "words"))
    labels = batch["target"]
    assert image.shape == (size, 1, 8, 8)
    assert image.dtype == np.float32
    assert image.min() >= -1
    assert image.max() <= 3
    assert levels.dtype == tokens.dtype == labels.dtype == np.int64
    assert levels.min() >= 0
    assert levels.max() <= 49
    assert tokens.min() >= 0
    assert tokens.max() <= 499
    assert np.all(batch["mask"] == 1)
    assert labels.shape == (size,)
    assert labels.min() >= 0
    assert labels.max() < count


@given(
    st.sampled_from([2, 3, 31, 57, 50_000]),
    st.sampled_from([2, 10, 50_000]),
    st.integers(0, 2**31 - 1),
)
def test_tokens_and_their_classes_are_in_range(vocabulary: int, count: int, seed: int) -> None:
    """The vocabulary may be smaller or larger than the number of classes."""
    field = replace(WORDS, high=float(vocabulary))
    batch = Teacher((field,), (classes(count, (60,)),), seed).draw(0, 0, 3)
    tokens, labels = batch["words"], batch["target"]
    assert tokens.min() >= 0
    assert tokens.max() < vocabulary
    assert labels.shape == (3, 60)
    assert labels.min() >= 0
    assert labels.max() < count
    assert len(np.unique(labels)) > 1


@pytest.mark.parametrize("count", [2, 10, 64])
def test_classes_are_balanced(count: int) -> None:
    """All classes are about equally frequent."""
    labels = Teacher((IMAGE,), (classes(count),), 1).draw(0, 0, 400 * count)["target"]
    counts = np.bincount(labels, minlength=count)
    # Five standard deviations of a binomial count of mean 400.
    assert np.all(np.abs(counts - 400) < 5 * np.sqrt(400))


def test_some_tokens_are_frequent_and_most_are_rare() -> None:
    """A tenth of the vocabulary makes up over 40 % of the text, and all tokens occur."""
    tokens = Teacher((WORDS,), (), 1).draw(0, 0, 1000)["words"]
    counts = np.bincount(tokens.ravel(), minlength=500)
    assert np.sort(counts)[::-1][:50].sum() > 0.4 * counts.sum()
    assert np.all(counts > 0)


@pytest.mark.parametrize("field", [IMAGE, LEVELS, WORDS])
def test_the_labels_can_be_learnt_from_the_inputs(field: InputField) -> None:
    """A linear fit on one batch predicts the labels of another far better than chance."""
    teacher = Teacher((field,), (classes(10),), 5)
    learnt, held_out = teacher.draw(0, 0, 4000), teacher.draw(1, 0, 1000)
    guesses = np.argmax(_fitted(field, learnt, held_out, np.eye(10)[learnt["target"]]), axis=1)
    assert np.mean(guesses == held_out["target"]) > 0.3


@pytest.mark.parametrize("field", [IMAGE, WORDS])
def test_binary_targets_can_be_learnt(field: InputField) -> None:
    """Binary targets are floats of 0 or 1, about half each, and a linear fit predicts them."""
    teacher = Teacher((field,), (BINARY,), 5)
    learnt, held_out = teacher.draw(0, 0, 4000), teacher.draw(1, 0, 1000)
    answers = held_out["target"]
    assert answers.shape == (1000, 1)
    assert answers.dtype == np.float32
    assert set(np.unique(answers)) == {0.0, 1.0}
    assert 0.4 < answers.mean() < 0.6
    guesses = _fitted(field, learnt, held_out, learnt["target"] - 0.5) > 0
    assert np.mean(guesses == answers) > 0.7


def test_numbers_can_be_learnt() -> None:
    """Number targets are in range, and a linear fit explains half of their variance."""
    teacher = Teacher((IMAGE,), (NUMBERS,), 5)
    learnt, held_out = teacher.draw(0, 0, 4000), teacher.draw(1, 0, 1000)
    answers = held_out["target"]
    assert answers.shape == (1000, 3, 2)
    assert answers.min() >= -5
    assert answers.max() < 5
    guesses = _fitted(IMAGE, learnt, held_out, learnt["target"].reshape(4000, 6))
    errors = guesses.reshape(1000, 3, 2) - answers
    assert errors.var() < 0.5 * answers.var()


@pytest.mark.parametrize(
    ("fields", "key"),
    [
        ((WORDS,), "words"),
        # Constants and small vocabularies have no language statistics.
        ((WORDS, replace(MASK, shape=(60,)), replace(WORDS, name="kind", high=2.0)), "words"),
        # A decoder's tokens follow its encoder's.
        ((WORDS, replace(WORDS, name="written")), "written"),
    ],
)
def test_each_position_has_the_class_of_its_token(fields: tuple[InputField, ...], key: str) -> None:
    """The token of a position gives its class in nine of ten positions."""
    teacher = Teacher(fields, (classes(300, (60,)),), 5)
    learnt, held_out = teacher.draw(0, 0, 400), teacher.draw(1, 0, 100)
    guess = _majority(learnt[key], learnt["target"], 300)
    right = guess[held_out[key]] == held_out["target"]
    assert 0.85 < right.mean() < 0.95


def test_one_of_many_classes_of_a_text_follows_from_its_last_token() -> None:
    """With 57 classes the label follows from the last token, like the next letter of a text."""
    teacher = Teacher((WORDS,), (classes(57),), 5)
    learnt, held_out = teacher.draw(0, 0, 20_000), teacher.draw(1, 0, 2000)
    guess = _majority(learnt["words"][:, -1], learnt["target"], 57)
    right = guess[held_out["words"][:, -1]] == held_out["target"]
    assert 0.85 < right.mean() < 0.95


def test_ignored_positions_do_not_count() -> None:
    """The declared share of positions is ignored, but never all positions of a batch."""
    masked = replace(classes(300, (60,)), ignored_share=0.85)
    labels = Teacher((WORDS,), (masked,), 5).draw(0, 0, 200)["target"]
    assert 0.83 < np.mean(labels == IGNORED) < 0.87
    rare = replace(classes(300, (60,)), ignored_share=0.9999999)
    labels = Teacher((WORDS,), (rare,), 5).draw(0, 0, 1)["target"]
    assert np.sum(labels != IGNORED) == 1


def _majority(keys: np.ndarray, labels: np.ndarray, count: int) -> np.ndarray:
    counts = np.zeros((int(keys.max()) + 500, count))
    np.add.at(counts, (keys.ravel(), labels.ravel()), 1)
    return counts.argmax(axis=1)


def _fitted(field: InputField, learnt: Batch, held_out: Batch, answers: np.ndarray) -> np.ndarray:
    fit, *_ = np.linalg.lstsq(_features(field, learnt), answers, rcond=None)
    return _features(field, held_out) @ fit


def _features(field: InputField, batch: Batch) -> np.ndarray:
    """The field's values with a constant; for tokens, the counts of the 200 first tokens."""
    values = batch[field.name].reshape(len(batch[field.name]), -1)
    if field.kind == "tokens":
        values = np.stack([np.bincount(row, minlength=500)[:200] for row in values])
    return np.hstack([values.astype(np.float64), np.ones((len(values), 1))])
