"""Saved states of a training are read as written, and damaged ones are refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from epochcost.errors import InputError
from epochcost.measure.session import BFLOAT16
from epochcost.results.trainings import Point
from epochcost.train.state import Progress, SavedState, Times, digest, read_state, write_state

POINT = Point(step=7, seconds=0.1, learning_rate=0.1, training_loss=1 / 3, loss=2 / 3, accuracy=0.1)
PROGRESS = Progress(7, (POINT,), (0.1 + 0.2, 3), Times(1 / 7), 2)
VALUES = {
    "a/b:0": np.array([0.1, -0.0], np.float32),
    "count": np.array(3, np.int64),
    "half": np.array([0.1, 3], BFLOAT16),
}
STATE = SavedState("me", PROGRESS, VALUES)


def test_a_state_comes_back_to_the_last_bit(tmp_path: Path) -> None:
    """Arrays and progress are read back bit for bit."""
    path = tmp_path / "state.zip"
    assert read_state(path, "me") is None
    write_state(path, STATE)
    state = read_state(path, "me")
    assert state is not None
    assert state.progress == PROGRESS
    assert digest(state.values) == digest(VALUES)
    assert digest({**VALUES, "count": np.array(4)}) != digest(VALUES)


@pytest.mark.parametrize("length", [0, 10, 200, -1])
def test_a_damaged_state_is_one_line(tmp_path: Path, length: int) -> None:
    """A truncated file is refused in one line."""
    path = tmp_path / "state.zip"
    write_state(path, STATE)
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(InputError, match="expected the saved state of this training"):
        read_state(path, "me")


def test_a_flipped_bit_is_found(tmp_path: Path) -> None:
    """The checksums of the archive detect a flipped bit."""
    path = tmp_path / "state.zip"
    write_state(path, STATE)
    damaged = bytearray(path.read_bytes())
    damaged[damaged.index(VALUES["a/b:0"].tobytes())] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(InputError, match="Bad CRC-32"):
        read_state(path, "me")


def test_an_unknown_form_of_zip_is_one_line(tmp_path: Path) -> None:
    """A changed byte may name a compression that no program knows."""
    path = tmp_path / "state.zip"
    write_state(path, STATE)
    damaged = bytearray(path.read_bytes())
    damaged[damaged.index(b"PK\x01\x02") + 10] = 77
    path.write_bytes(damaged)
    with pytest.raises(InputError, match="compression method is not supported"):
        read_state(path, "me")
