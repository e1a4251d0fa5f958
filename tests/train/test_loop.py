"""The training loop with fake steps: its evaluations, progress and saved states."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from epochcost.specs.training import Constant
from epochcost.train.loop import Recipe, Watch, train
from epochcost.train.pipeline import Feed
from epochcost.train.state import Progress
from train_feeds import FEED

CONSTANT = Recipe(Constant(name="constant"), Decimal("0.5"), epochs=4, evaluate_every=2)


class Steps:
    """Fake steps that record learning rates and give the losses of ``held_out``."""

    def __init__(self, held_out: list[float]) -> None:
        self.held_out, self.rates = iter(held_out), list[float]()

    def losses(
        self, batches: Iterator[Mapping[str, Any]], count: int
    ) -> Iterator[tuple[float, float]]:
        """Yield a loss of 1 for each step."""
        for batch in itertools.islice(batches, count):
            self.rates.append(float(batch["rate"]))
            yield 1.0, 0.0

    def evaluate(
        self, batches: Iterator[Mapping[str, Any]]
    ) -> Iterator[tuple[Mapping[str, Any], float, Any]]:
        """Yield scores that put every example in class 0."""
        loss = next(self.held_out)
        for batch in batches:
            yield batch, loss, np.eye(10)[np.zeros(len(batch["target"]), int)]

    def carried_values(self) -> dict[str, Any]:
        """Return a single weight."""
        return {"w": np.zeros(1, np.float32)}


def trained(recipe: Recipe, steps: Steps, feed: Feed = FEED) -> Progress:
    """Train ``steps`` to the end without an observer."""
    watch = Watch(lambda *_: None, lambda *_: None, lambda: False)
    return train(recipe, feed, steps, Progress(), watch)


def test_evaluations_come_every_so_many_steps_and_at_the_end() -> None:
    """Evaluations are before the first step, every 5 steps and at the end of training."""
    progress = trained(replace(CONSTANT, evaluate_every=5), Steps([1.0] * 9))
    assert [point.step for point in progress.curve] == [0, 5, 10, 12]
    assert [point.training_loss for point in progress.curve] == [None, 1, 1, 1]
    assert progress.ending == "epochs"
    assert progress.curve[0].accuracy == pytest.approx(0.1)


def test_whoever_watches_hears_of_every_step() -> None:
    """The observer is told of every step, and every state is saved."""
    heard, saved = list[int](), list[int]()
    watch = Watch(
        lambda progress, _: saved.append(progress.step),
        lambda _, step, _loss: heard.append(step),
        lambda: False,
        save_seconds=0.0,
    )
    train(CONSTANT, FEED, Steps([1.0] * 9), Progress(), watch)
    assert heard == list(range(1, 13))
    assert saved[-1] == 12
    assert set(saved) == set(range(13))
