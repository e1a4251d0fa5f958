"""Learning rates of each schedule against values by hand."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from epochcost.specs.training import Schedule
from epochcost.train.schedule import learning_rates

SCHEDULE: TypeAdapter[Schedule] = TypeAdapter(Schedule)
NAMES = st.sampled_from(
    ["constant", "step", "exponential", "cosine", "linear", "inverse-square-root"]
)


def schedule(**settings: Any) -> Schedule:
    """A schedule with these settings."""
    return SCHEDULE.validate_python({key: _exact(value) for key, value in settings.items()})


def _exact(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_exact, value))
    return Decimal(str(value)) if isinstance(value, float) else value


def rates(
    declared: Schedule, count: int = 30, epoch_steps: int = 10, total_steps: int = 21
) -> np.ndarray:
    """The learning rates of the first ``count`` steps for a base rate of 2."""
    return learning_rates(declared, Decimal(2), np.arange(count), epoch_steps, total_steps)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"name": "constant"}, {0: 2, 20: 2, 29: 2}),
        ({"name": "constant", "warm_up_steps": 4}, {0: 0.5, 1: 1, 2: 1.5, 3: 2, 4: 2}),
        (
            {"name": "step", "epochs": (1, 2), "factors": (0.1, 0.01)},
            {0: 2, 9: 2, 10: 0.2, 19: 0.2, 20: 0.02, 29: 0.02},
        ),
        # An epoch and a quarter are twelve steps and a half: the next step is the first beyond.
        ({"name": "step", "epochs": (1.25,), "factors": (0.5,)}, {12: 2, 13: 1}),
        (
            {"name": "step", "epochs": (1,), "factors": (0.5,), "warm_up_steps": 2},
            {0: 1, 1: 2, 10: 1},
        ),
        ({"name": "exponential", "factor": 0.5}, {0: 2, 9: 2, 10: 1, 19: 1, 20: 0.5, 29: 0.5}),
        # Seven tenths of an epoch are seven steps.
        (
            {"name": "exponential", "factor": 0.1, "epochs": 0.7, "warm_up_steps": 2},
            {0: 1, 1: 2, 6: 2, 7: 0.2, 13: 0.2, 14: 0.02, 20: 0.02},
        ),
        # An epoch and a quarter are twelve steps and a half: the next step is the first beyond.
        ({"name": "exponential", "factor": 0.5, "epochs": 1.25}, {12: 2, 13: 1}),
        ({"name": "cosine"}, {0: 2, 10: 1, 20: 0, 29: 0}),
        ({"name": "cosine", "final_factor": 0.1}, {0: 2, 10: 1.1, 20: 0.2}),
        # Warm-up in steps 0 to 4; then sixteen intervals, half of them at step 12.
        ({"name": "cosine", "warm_up_steps": 5}, {0: 0.4, 4: 2, 12: 1, 20: 0}),
        ({"name": "linear"}, {0: 2, 5: 1.5, 10: 1, 20: 0, 29: 0}),
        (
            {"name": "linear", "warm_up_steps": 5, "final_factor": 0.5},
            {1: 0.8, 4: 2, 12: 1.5, 20: 1, 29: 1},
        ),
        # min(n / 4, sqrt(4 / n)) at n = step + 1.
        (
            {"name": "inverse-square-root", "warm_up_steps": 4},
            {0: 0.5, 3: 2, 8: 2 * 2 / 3, 15: 1},
        ),
        ({"name": "inverse-time", "decay": 0.5}, {0: 2, 2: 1, 6: 0.5}),
        ({"name": "on-plateau"}, {0: 2, 29: 2}),
    ],
)
def test_hand_computed_rates(settings: dict[str, Any], expected: dict[int, float]) -> None:
    """Each schedule has the expected rates; after the last step the rate stays."""
    got = rates(schedule(**settings))
    assert got.dtype == np.float32
    assert {step: float(got[step]) for step in expected} == pytest.approx(expected, abs=1e-6)


@given(st.integers(1, 5000), st.integers(3, 40).map(lambda tenths: Decimal(tenths) / 10))
def test_a_rate_decays_at_the_steps_at_which_a_list_would(
    epoch_steps: int, interval: Decimal
) -> None:
    """An exponential schedule equals a step schedule with the listed powers of its factor."""
    total = 12 * epoch_steps
    powers = range(1, int(12 / interval) + 1)
    listed = schedule(
        name="step",
        epochs=tuple(interval * power for power in powers),
        factors=tuple(Decimal("0.5") ** power for power in powers),
    )
    declared = schedule(name="exponential", factor=0.5, epochs=interval)
    np.testing.assert_array_equal(
        rates(declared, total, epoch_steps, total), rates(listed, total, epoch_steps, total)
    )
