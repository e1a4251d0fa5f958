"""The comparison of LoRA steps, with made-up sides."""

from __future__ import annotations

import math
from typing import Any

from lora import compare


class Side:
    """A side whose steps have these losses."""

    def __init__(self, *losses: float) -> None:
        self._losses = iter(losses)

    def step(self) -> tuple[float, float]:
        """The next loss, and a second."""
        return next(self._losses), 1.0


def test_a_loss_that_is_no_number_is_the_largest_difference() -> None:
    """The built-in ``max`` would pass over NaN, and the sides would seem alike."""
    pair: Any = Side(2.0, math.nan), Side(2.0, 1.0)
    assert math.isnan(next(compare(pair, 2, 0)))
