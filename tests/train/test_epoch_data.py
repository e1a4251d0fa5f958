"""An epoch's files hold as many examples as asked for, the same at each writing."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from epochcost.train.batches import examples_on_disk, write_epoch
from epochcost.train.examples import InputField, TargetField
from epochcost.train.teacher import Teacher

TEACHER = Teacher(
    fields=(InputField("x", (3, 2), np.dtype(np.float32), -1.0, 1.0),),
    targets=(
        TargetField("class", (), np.dtype(np.int64), classes=4),
        TargetField("each/of", (5, 2), np.dtype(np.float32), merged=True),
    ),
    seed=11,
)


def test_files_hold_one_row_for_each_example(tmp_path: Path) -> None:
    """Inputs and targets have their shape and type; a merged target is stored by example."""
    paths = write_epoch(TEACHER, 70, tmp_path)
    stored = {name: np.load(path) for name, path in paths.items()}
    assert {name: array.shape for name, array in stored.items()} == {
        "x": (70, 3, 2),
        "class": (70,),
        "each/of": (70, 5, 2),
    }
    assert stored["class"].dtype == np.int64
    assert set(np.unique(stored["class"])) <= set(range(4))
    assert np.abs(stored["x"]).max() <= 1
    assert np.unique(stored["x"][:, 0, 0]).size > 60


def test_the_seed_decides(tmp_path: Path) -> None:
    """Written twice, the files are the same; they are not the batches of a trial."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first, second = (
        write_epoch(TEACHER, 20, tmp_path / "a"),
        write_epoch(TEACHER, 20, tmp_path / "b"),
    )
    assert all(first[name].read_bytes() == second[name].read_bytes() for name in first)
    assert not np.array_equal(np.load(first["x"]), TEACHER.draw(0, 0, 20).inputs["x"])


def test_a_large_data_set_is_stored_in_part() -> None:
    """24 + 8 + 40 bytes an example: as many as fit, at least one, at most all."""
    assert examples_on_disk(TEACHER, 1000, most_bytes=7200) == 100
    assert examples_on_disk(TEACHER, 50, most_bytes=7200) == 50
    assert examples_on_disk(TEACHER, 50, most_bytes=10) == 1
