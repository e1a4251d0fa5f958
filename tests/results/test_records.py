"""What whole epochs say about the extrapolated one."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from epochcost.results.records import Epoch, WholeEpochs

TWO = WholeEpochs(
    steps=100,
    examples_on_disk=6400,
    epochs=(
        Epoch(seconds=9.0, waiting_seconds=0.5),
        Epoch(seconds=11.0, waiting_seconds=1.5),
    ),
)


def test_the_error_is_relative_to_what_really_happened() -> None:
    """100 steps of 0.11 s foretell 11 s; the epochs took 10 s on average."""
    assert TWO.mean_seconds == pytest.approx(10.0)
    assert TWO.prediction_error(0.11) == pytest.approx(0.1)
    assert TWO.prediction_error(0.09) == pytest.approx(-0.1)


def test_the_epochs_own_process_foretells_them() -> None:
    """By its own steps; how far these are from the trial's is told apart."""
    own = TWO.model_copy(update={"sampled_steps": 9, "step_seconds": 0.12})
    assert own.predicted_seconds(0.1) == pytest.approx(12.0)
    assert own.prediction_error(0.1) == pytest.approx(0.2)
    assert own.process_difference(0.1) == pytest.approx(0.2)
    assert TWO.process_difference(0.1) is None


def test_the_waiting_share_is_of_all_epochs() -> None:
    """Two of twenty seconds."""
    assert TWO.waiting_share == pytest.approx(0.1)


def test_no_epoch_needs_a_reason() -> None:
    """Neither epochs nor a reason is refused; a reason alone is not."""
    with pytest.raises(ValidationError, match="or the reason why"):
        WholeEpochs(steps=3)
    assert WholeEpochs(steps=3, left_out="too long").epochs == ()
