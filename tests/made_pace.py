"""Readings of a machine's pace that nobody took."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from epochcost.results.conditions import Pace
from epochcost.results.records import Result


def made_pace(after_samples: Sequence[int], **changes: Any) -> Pace:
    """Readings after so many samples each: of a calm machine, but for the changes."""
    count = len(after_samples)
    return Pace.model_validate(
        {
            "threads": 0,
            "matrix_side": 384,
            "products": 6,
            "copied_bytes": 2**25,
            "copies": 8,
            "after_samples": tuple(after_samples),
            "product_seconds": (0.002,) * count,
            "copy_seconds": (0.003,) * count,
            "waited_seconds": (0.0,) * count,
            "waited_within_seconds": (0.0,) * count,
            **changes,
        }
    )


def kept_waiting(result: Result) -> Result:
    """The result as if its threads had waited for a third of the time."""
    samples = result.measurement.samples_seconds
    waited = (0.0, *(one / 3 for one in samples[:-1]))
    pace = made_pace(range(len(samples)), waited_seconds=waited)
    measurement = result.measurement.model_copy(update={"pace": pace})
    return result.model_copy(update={"measurement": measurement})


def in_states(result: Result, slow_copies: Sequence[bool]) -> Result:
    """The result as if copies had been slow in those of its rounds, with a reading a sample."""
    counts = zip(slow_copies, result.measurement.samples_by_round, strict=True)
    copies = [0.0051 if slow else 0.003 for slow, count in counts for _ in range(count)]
    pace = made_pace(range(len(copies)), copy_seconds=tuple(copies))
    measurement = result.measurement.model_copy(update={"pace": pace})
    return result.model_copy(update={"measurement": measurement})
