"""Prepare the inputs of a step: shuffle, augment, scale and reshape the examples.

Seed and step number decide all inputs, so that a resumed training sees the same inputs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epochcost.errors import InputError
from epochcost.specs.training import Augmentation
from epochcost.train.teacher import IGNORED, InputField, TargetField

Array = NDArray[Any]
_SHUFFLE_KEY, _AUGMENT_KEY = 5, 6


@dataclass(frozen=True)
class Part:
    """Examples along axis 0, and a label for each example or for each position of an example."""

    examples: Array
    labels: Array


@dataclass(frozen=True)
class Examples:
    """A data set in memory, whose numbers lie between 0 and ``largest_value``."""

    name: str
    training: Part
    held_out: Part
    sha256: str
    largest_value: float = 255.0


@dataclass(frozen=True)
class Feed:
    """Makes the inputs of a model's training steps and evaluations from a data set.

    ``learning_rate`` is the name of a graph input. ``evaluated_at_once`` is the batch size of
    evaluations. Raises InputError if augmentation gets examples without height and width.
    """

    examples: Examples
    inputs: tuple[InputField, ...]
    target: TargetField
    learning_rate: str
    batch_size: int
    evaluated_at_once: int
    seed: int
    augmentation: Augmentation | None = None

    def __post_init__(self) -> None:
        shape = self.examples.training.examples.shape[1:]
        if self.augmentation is not None and len(shape) < 2:
            raise InputError(
                f"data {self.examples.name}: expected examples with a height and a width, because "
                f"the model's spec augments images, got {list(shape)}: state `shape` in [data]"
            )

    @property
    def epoch_steps(self) -> int:
        """Number of whole batches in an epoch; the examples that are left over differ by epoch."""
        return len(self.examples.training.labels) // self.batch_size

    def batches(self, first_step: int, rates: NDArray[np.float32]) -> Iterator[Mapping[str, Array]]:
        """A batch for each of ``rates``, in one epoch, from step ``first_step`` of the training.

        The batch includes the learning rate.
        """
        epoch, place = divmod(first_step, self.epoch_steps)
        rng = np.random.default_rng([self.seed, _SHUFFLE_KEY, epoch])
        order = rng.permutation(len(self.examples.training.labels))
        start, end = place * self.batch_size, (place + len(rates)) * self.batch_size
        rows_by_step = enumerate(order[start:end].reshape(len(rates), -1))
        part, name = self.examples.training, self.learning_rate
        return (
            {**self.gathered(part, rows, first_step + number), name: np.asarray(rates[number])}
            for number, rows in rows_by_step
        )

    def held_out_batches(self) -> Iterator[Mapping[str, Array]]:
        """Yield all held-out examples in order; the last batch may be smaller."""
        part, size = self.examples.held_out, self.evaluated_at_once
        for start in range(0, len(part.labels), size):
            rows = np.arange(start, min(start + size, len(part.labels)))
            yield self.gathered(part, rows)

    def gathered(
        self, part: Part, rows: NDArray[np.int64], step: int | None = None
    ) -> dict[str, Array]:
        """Graph inputs for the examples ``rows``, augmented at random unless ``step`` is None."""
        data = self.inputs[0]
        values = np.take(part.examples, rows, axis=0)
        if step is not None and self.augmentation is not None:
            rng = np.random.default_rng([self.seed, _AUGMENT_KEY, step])
            values = augmented(values, self.augmentation, rng)
        if data.kind == "numbers":
            values = scaled(values, data, self.examples.largest_value)
        fed = {data.name: values.reshape(len(rows), *data.shape).astype(data.dtype, copy=False)}
        for field in self.inputs[1:]:
            fed[field.name] = np.full((len(rows), *field.shape), field.low, field.dtype)
        labels = np.take(part.labels, rows, axis=0).astype(self.target.dtype)
        shape = self.target.shape[1:] if self.target.merged else self.target.shape
        return {**fed, self.target.name: labels.reshape(-1, *shape)}

    def right_answers(self, batch: Mapping[str, Array], scores: Array) -> NDArray[np.bool_]:
        """Whether the model's answer is right, for each label except those equal to ``IGNORED``.

        The answer is the class with the highest score, or 1 for a float target above a score of 0.
        """
        labels = batch[self.target.name].reshape(-1)
        binary = self.target.dtype.kind == "f"
        answers: Array = scores > 0 if binary else np.argmax(scores, axis=-1)
        return np.asarray((answers.reshape(-1) == labels)[labels != IGNORED])


def scaled(values: Array, field: InputField, largest_value: float) -> NDArray[np.float32]:
    """Shift values from 0 to ``largest_value`` into the field's range, scaled down if needed."""
    room = field.high - field.low
    scale = 1.0 if room > largest_value else room / largest_value
    return values.astype(np.float32) * np.float32(scale) + np.float32(field.low)


def augmented(images: Array, how: Augmentation, rng: np.random.Generator) -> Array:
    """Shift and mirror ``images`` [examples, ..., height, width] at random, as ``how`` says."""
    height, width = images.shape[-2:]
    planes = images.reshape(len(images), -1, height, width)
    if how.pad:
        edge = (how.pad, how.pad)
        padded = np.pad(planes, ((0, 0), (0, 0), edge, edge))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (height, width), (2, 3))
        down, right = rng.integers(0, 2 * how.pad + 1, (2, len(images)))
        planes = windows[np.arange(len(images)), :, down, right]
    if how.flip:
        flipped = rng.random(len(images)) < 0.5
        planes = np.where(flipped[:, None, None, None], planes[..., ::-1], planes)
    return planes.reshape(images.shape)


def fitting_input(model: str, fields: Sequence[InputField]) -> tuple[InputField, ...]:
    """The only data input, then the constant inputs; raises InputError unless there is just one."""
    data = [field for field in fields if field.kind != "constant"]
    if len(data) != 1:
        raise InputError(
            f"model {model}: expected one input for data, got "
            f"{', '.join(field.name for field in data) or 'none'}: only models with one are "
            "trained on real data yet"
        )
    return (*data, *(field for field in fields if field.kind == "constant"))


def require_fitting(examples: Examples, field: InputField, target: TargetField) -> None:
    """Raise InputError if the examples or labels do not fit the model."""
    for part, part_name in ((examples.training, "training"), (examples.held_out, "held-out")):
        where = f"data {examples.name}: {part_name} examples"
        if not len(part.labels):
            raise InputError(f"{where}: expected at least one, got none")
        _require_shape(where, part.examples.shape[1:], field)
        if field.kind == "tokens":
            _require_below(f"{where}: tokens", part.examples, int(field.high))
        elif not ((part.examples >= 0) & (part.examples <= examples.largest_value)).all():
            raise InputError(
                f"{where}: expected numbers from 0 to {examples.largest_value:g}, got others"
            )
        if target.classes is None:
            raise InputError(f"data {examples.name}: expected a model that answers by classes")
        positions = math.prod(part.labels.shape[1:])
        if positions != target.positions:
            raise InputError(
                f"{where}: expected {target.positions} labels each for the model, got {positions}"
            )
        _require_below(f"{where}: labels", part.labels, target.classes)


def _require_shape(where: str, got: tuple[int, ...], field: InputField) -> None:
    shape, demanded = ([size for size in each if size != 1] for each in (got, field.shape))
    transposed = shape != demanded and sorted(shape) == sorted(demanded)
    if transposed or math.prod(shape) != math.prod(demanded):
        raise InputError(
            f"{where}: expected {list(field.shape)} numbers in each for the input "
            f"{field.name!r}, got {list(got)}{', the axes in another order' * transposed}"
        )


def _require_below(where: str, values: Array, count: int) -> None:
    wrong = np.argwhere(~((values >= 0) & (values < count) & (values % 1 == 0)))
    if len(wrong):
        place = tuple(wrong[0])
        raise InputError(
            f"{where}: expected whole numbers from 0 to {count - 1}, got {values[place]} at "
            f"example {place[0]} ({len(wrong)} such in all)"
        )
