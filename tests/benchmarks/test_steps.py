"""Ratios of training steps from recorded rounds, and their tables."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import inference
import pytest
from inference import TRAINING
from steps.cases import SUBJECTS, cases
from steps.figures import Spread, ratio, ratios, step_seconds
from steps.losses import Compared, judged
from steps.machine import session, stamp
from steps.prepared import _stamp
from steps.rounds import Timed
from steps.table import BEGIN, CUDA, DOCUMENT, END, INFERENCE, SITE, write
from tables import DATA

ROOT = Path(__file__).parents[2]


def _session(**seconds: list[float]) -> dict[str, Any]:
    figures = dict.fromkeys(seconds, 1.0)
    return {
        "as_of": "2026-11-22",
        "commit": "abc",
        "seconds": seconds,
        "start_seconds": figures,
        "peak_bytes": figures,
    }


def test_ratios_are_taken_round_by_round() -> None:
    """A slow round affects both sides of its ratio."""
    seconds = {"ours": [1.0, 10.0, 2.0], "eager": [2.0, 20.0, 4.0]}
    assert ratio(seconds, "eager") == Spread(0.5, 0.5, 0.5)


def test_each_session_has_our_step_of_its_own() -> None:
    """A contender is compared with epochcost's rounds of the same session."""
    record = {
        "sessions": [
            _session(ours=[1.0, 1.0], eager=[2.0, 2.0]),
            _session(ours=[3.0, 3.0], jax=[1.0, 1.0]),
        ]
    }
    spreads = ratios(record)
    assert (spreads["eager"].middle, spreads["jax"].middle) == (0.5, 3.0)
    assert step_seconds(record, "jax") == 1.0
    assert step_seconds(record, "compile") is None


@pytest.mark.parametrize(
    ("losses", "note", "same"),
    [
        ((2.0, 1.0), None, True),
        ((2.0, 1.1), None, False),
        ((2.0, 1.1), "AdamW instead of rmsprop", True),
        ((2.1, 1.0), "AdamW instead of rmsprop", False),
        ((float("nan"), 1.0), None, False),
    ],
    ids=["same", "update", "other optimizer", "forward", "nan"],
)
def test_other_losses_are_refused(losses: tuple[float, ...], note: str | None, same: bool) -> None:
    """Other losses are refused. Another optimizer excuses the second loss only."""
    assert (judged(Compared(losses, note=note), (2.0, 1.0)).reason is None) == same


def test_the_page_and_the_site_show_the_records(tmp_path: Path) -> None:
    """The committed records give the committed tables and ratios."""
    for name in ("specs", "models"):
        (tmp_path / name).symlink_to(ROOT / name, target_is_directory=True)
    page = (ROOT / DOCUMENT).read_text("utf-8")
    begin, rest = page.split(BEGIN)
    for path, text in ((DOCUMENT, f"{begin}{BEGIN}{END}{rest.partition(END)[2]}"), (SITE, "")):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, "utf-8")
    for path in (INFERENCE, CUDA):
        shutil.copy(ROOT / path, tmp_path / path)
    write(json.loads((ROOT / "docs/data/training-steps.json").read_text("utf-8")), tmp_path)
    assert (tmp_path / DOCUMENT).read_text("utf-8") == page
    assert (tmp_path / SITE).read_bytes() == (ROOT / SITE).read_bytes()


def test_the_table_of_inference_shows_the_records(tmp_path: Path) -> None:
    """The committed records give the committed table."""
    for name in ("specs", "models"):
        (tmp_path / name).symlink_to(ROOT / name, target_is_directory=True)
    for path in (TRAINING, SITE, DATA / "inference.json"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, tmp_path / path)
    for path in (INFERENCE, CUDA):
        shutil.copy(ROOT / path, tmp_path / path)
    inference.write(json.loads((ROOT / INFERENCE).read_text("utf-8")), tmp_path)
    for path in (SITE, DATA / "inference.json"):
        assert (tmp_path / path).read_bytes() == (ROOT / path).read_bytes()


def test_every_subject_is_in_the_catalogue_at_two_batch_sizes() -> None:
    """Each compared model has cases with one and with two threads at two batch sizes."""
    all_cases = list(cases([], [], [1, 2]))
    assert len({case.key for case in all_cases}) == len(all_cases) == 4 * len(SUBJECTS)
    assert all((ROOT / f"specs/models/{s.model}.toml").is_file() for s in SUBJECTS)


def test_a_session_names_the_programs_that_say_their_version() -> None:
    """Records of a GPU say which PyTorch they compare with, whatever interpreter ran it."""
    figures = {"ours": 1.0, "eager": 2.0}
    versions = {"ours": None, "eager": "torch==2.13.0"}
    timed = Timed({"ours": [1.0], "eager": [2.0]}, figures, dict.fromkeys(figures, 1), versions)
    assert session(ROOT, timed)["versions"] == {"eager": "torch==2.13.0"}


def test_a_changed_module_of_pytorch_makes_a_case_outdated(tmp_path: Path) -> None:
    """The losses that are stored beside a case come from the exporters' modules too."""
    (tmp_path / "specs").symlink_to(ROOT / "specs")
    models = tmp_path / "models"
    models.mkdir()
    for path in (ROOT / "models").iterdir():
        (models / path.name).symlink_to(path)
    before = _stamp(tmp_path, "mnist-mlp")
    (models / "export_mnist_mlp.py").unlink()
    (models / "export_mnist_mlp.py").write_text("changed")
    assert _stamp(tmp_path, "mnist-mlp") != before


def test_a_measurement_is_kept_without_git(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rented machine without git has the day, and no revision."""
    monkeypatch.setenv("PATH", "/nonexistent")
    assert stamp(ROOT)["commit"] is None
