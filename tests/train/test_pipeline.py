"""Batches of a real data set: each example once an epoch, repeatable, augmented, in range."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from epochcost.errors import InputError
from epochcost.specs.training import Augmentation
from epochcost.train.pipeline import Feed, Part, augmented, require_fitting, scaled
from epochcost.train.teacher import InputField
from train_feeds import DATA, FEED, FIELD, PART, TARGET


def labels(feed: Feed, epoch: int) -> list[int]:
    """The labels of ``epoch`` in the order of its steps."""
    batches = feed.batches(epoch * feed.epoch_steps, np.zeros(feed.epoch_steps, np.float32))
    return [int(x) for batch in batches for x in batch["target"]]


def test_an_epoch_has_whole_batches_of_different_examples() -> None:
    """Epochs and seeds differ in order, and an epoch drops the examples of a partial batch."""
    assert FEED.epoch_steps == 3
    assert len(set(labels(FEED, 0))) == 9
    assert labels(FEED, 0) == labels(FEED, 0)
    assert labels(FEED, 0) != labels(FEED, 1)
    assert labels(FEED, 0) != labels(replace(FEED, seed=1), 0)


def test_a_step_is_fed_the_same_wherever_its_epoch_is_entered() -> None:
    """Batches from the second step on equal those of the whole epoch."""
    rates = np.array([1, 2, 3], np.float32)
    varied = replace(FEED, augmentation=Augmentation(pad=1, flip=True))
    whole, later = [*varied.batches(3, rates)], [*varied.batches(4, rates[1:])]
    assert (len(whole), len(later)) == (3, 2)
    for whole_batch, later_batch in zip(whole[1:], later, strict=True):
        assert all(
            np.array_equal(whole_batch[name], later_batch[name])
            for name in ("image", "target", "rate")
        )


def test_held_out_examples_are_fed_in_order_to_the_last() -> None:
    """All held-out examples are fed in order, and the last batch may be smaller."""
    sizes = [len(batch["image"]) for batch in FEED.held_out_batches()]
    fed = np.concatenate([batch["target"] for batch in FEED.held_out_batches()])
    assert sizes == [4, 4, 2]
    np.testing.assert_array_equal(fed, np.arange(10))


def test_numbers_are_brought_into_the_inputs_range() -> None:
    """Numbers are scaled to the input's range, unless they already fit."""
    values = np.array([0, 51, 255], np.uint8)
    np.testing.assert_allclose(scaled(values, FIELD, 255), [0, 0.2, 1])
    centred = replace(FIELD, low=-1, high=1)
    np.testing.assert_allclose(scaled(values, centred, 255), [-1, -0.6, 1])
    whole = replace(FIELD, low=0, high=256)
    np.testing.assert_array_equal(scaled(values, whole, 255), values)


def test_images_are_moved_and_mirrored_within_bounds() -> None:
    """A single bright pixel moves by at most the padding, and is mirrored in some images."""
    images = np.zeros((200, 3, 9, 9), np.uint8)
    images[:, :, 4, 3] = 7
    rng = np.random.default_rng(0)
    moved = augmented(images, Augmentation(pad=2, flip=True), rng)
    example, _, down, right = np.nonzero(moved)
    assert moved.shape == images.shape
    assert np.array_equal(np.unique(example), np.arange(200))
    assert set(down) == set(range(2, 7))
    assert set(right) == set(range(1, 8))
    assert np.array_equal(augmented(images, Augmentation(), rng), images)


def test_rows_of_numbers_are_not_augmented() -> None:
    """Augmentation of examples without height and width is refused, with the missing key."""
    flat = replace(DATA, training=replace(PART, examples=PART.examples.reshape(10, 4)))
    with pytest.raises(InputError, match=r"^data made: expected .* got \[4\]: state `shape` in"):
        replace(FEED, examples=flat, augmentation=Augmentation(flip=True))


def test_targets_have_the_shape_that_the_graph_takes() -> None:
    """One label an example, one for each position, or positions merged with the batch."""
    tokens = Part(PART.examples, np.arange(20).reshape(10, 2) % 10)
    positions = replace(TARGET, shape=(2,))
    for target, part, shape in (
        (TARGET, PART, (3,)),
        (positions, tokens, (3, 2)),
        (replace(positions, merged=True), tokens, (6,)),
    ):
        feed = replace(FEED, target=target, examples=replace(DATA, training=part))
        batch = next(feed.batches(0, np.zeros(1, np.float32)))
        assert batch["target"].shape == shape


def test_right_answers_are_counted_by_position() -> None:
    """The largest score of each position is compared, and ignored positions are skipped."""
    scores = np.eye(10)[[[1, 2], [3, 4]]]
    batch = {"target": np.array([[1, 9], [-100, 4]])}
    np.testing.assert_array_equal(FEED.right_answers(batch, scores), [True, False, True])


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (Part(PART.examples, np.arange(10) + 1), "labels: expected .* 0 to 9, got 10 at example 9"),
        (Part(PART.examples, np.arange(10) - 1), "got -1 at example 0 .1 such in all."),
        (Part(PART.examples, np.full(10, 0.5)), "expected whole numbers .* got 0.5 at example 0"),
        (Part(PART.examples, np.full(10, np.nan)), "expected whole numbers .* got nan at"),
        (Part(PART.examples[:0], np.arange(0)), "expected at least one, got none"),
        (Part(PART.examples.reshape(10, 4)[:, :3], np.arange(10)), r"expected \[4\] numbers in"),
        (Part(PART.examples * np.nan, np.arange(10)), "expected numbers from 0 to 39"),
        (Part(PART.examples - 1.0, np.arange(10)), "expected numbers from 0 to 39"),
        (Part(PART.examples, np.zeros((10, 2), int)), "expected 1 labels each .* got 2"),
    ],
)
def test_examples_that_do_not_fit_are_one_line(part: Part, message: str) -> None:
    """Labels that are no class, wrong shapes and NaN are refused in one line."""
    with pytest.raises(InputError, match=f"data made: held-out examples.*{message}"):
        require_fitting(replace(DATA, held_out=part), FIELD, TARGET)


def test_images_with_their_channels_last_are_refused() -> None:
    """Axes in another order would be scrambled; flat examples and axes of length 1 fit."""
    image = replace(FIELD, shape=(2, 5, 4, 1))
    examples = np.arange(40, dtype=np.uint8)
    for shape in ((2, 5, 4), (40,), (10, 4)):
        part = Part(examples.reshape(1, *shape), np.zeros(1, int))
        require_fitting(replace(DATA, training=part, held_out=part), image, TARGET)
    last = Part(examples.reshape(1, 5, 4, 2), np.zeros(1, int))
    with pytest.raises(InputError, match=r"got \[5, 4, 2\], the axes in another order"):
        require_fitting(replace(DATA, training=last), image, TARGET)


def test_tokens_are_held_to_the_vocabulary() -> None:
    """A text with a token outside the model's vocabulary is refused."""
    tokens = InputField("text", (4,), np.dtype(np.int64), 0, 39, "tokens")
    with pytest.raises(InputError, match="tokens: expected whole numbers from 0 to 38, got 39"):
        require_fitting(DATA, tokens, TARGET)
