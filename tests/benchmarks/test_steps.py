"""What the comparison of training steps makes of its rounds; nothing is timed here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from steps.cases import SUBJECTS, cases
from steps.figures import Spread, ratio, ratios, step_seconds
from steps.losses import Compared, judged
from steps.records import Records
from steps.table import BEGIN, END, ratio_cell, write

_KEY = "mnist-mlp/32/1"


def _session(**seconds: list[float]) -> dict[str, Any]:
    figures = dict.fromkeys(seconds, 1.0)
    return {
        "as_of": "2026-11-22",
        "commit": "abc",
        "seconds": seconds,
        "start_seconds": figures,
        "peak_bytes": figures,
    }


def _filled(path: Path) -> Records:
    records = Records(path)
    records.all["machine"] = {"cpu": "a CPU", "logical_cpus": 2, "runtime": "onnxruntime==1"}
    records.all["ceilings"] = {"1": {"flops": 1e11, "copy_bytes": 1e10}}
    case = records.case(_KEY)
    case["sessions"].append(_session(ours=[2.0, 2.0, 2.0], eager=[1.0, 2.0, 4.0]))
    case["failed"]["jax"] = "no rule for Loop"
    records.save()
    return records


def test_ratios_are_taken_round_by_round() -> None:
    """A machine that is slow for one round is slow for both sides of it."""
    seconds = {"ours": [1.0, 10.0, 2.0], "eager": [2.0, 20.0, 4.0]}
    assert ratio(seconds, "eager") == Spread(0.5, 0.5, 0.5)


def test_each_session_has_our_step_of_its_own() -> None:
    """A contender is compared with the rounds of ours that it took turns with."""
    record = {
        "sessions": [
            _session(ours=[1.0, 1.0], eager=[2.0, 2.0]),
            _session(ours=[3.0, 3.0], jax=[1.0, 1.0]),
        ]
    }
    found = ratios(record)
    assert (found["eager"].middle, found["jax"].middle) == (0.5, 3.0)
    assert step_seconds(record, "jax") == 1.0
    assert step_seconds(record, "compile") is None


@pytest.mark.parametrize(
    ("found", "failed", "cell"),
    [
        (Spread(0.8, 0.9, 1.0), False, "0.90 (0.80 to 1.00)"),
        (Spread(1.1, 1.2, 1.3), False, "**1.20** (1.10 to 1.30)"),
        (None, True, "cannot"),
        (None, False, ""),
    ],
    ids=["faster", "slower", "failed", "missing"],
)
def test_a_cell_says_what_is_known(found: Spread | None, failed: bool, cell: str) -> None:
    """What is slower stands out, and what cannot run differs from what was not run."""
    assert ratio_cell(found, failed=failed) == cell


@pytest.mark.parametrize(
    ("losses", "note", "same"),
    [
        ((2.0, 1.0), None, True),
        ((2.0, 1.1), None, False),
        ((2.0, 1.1), "AdamW in place of rmsprop", True),
        ((2.1, 1.0), "AdamW in place of rmsprop", False),
        ((float("nan"), 1.0), None, False),
    ],
    ids=["same", "update", "other optimizer", "forward", "nan"],
)
def test_other_losses_are_refused(losses: tuple[float, ...], note: str | None, same: bool) -> None:
    """Another optimizer excuses the loss after its update, not the one before."""
    assert (judged(Compared(losses, note=note), (2.0, 1.0)).reason is None) == same


def test_finished_contenders_are_not_missing(tmp_path: Path) -> None:
    """Neither is one that cannot; forgetting drops both, and the file keeps it all."""
    _filled(tmp_path / "steps.json")
    records = Records(tmp_path / "steps.json")
    assert records.missing(_KEY, ["eager", "compile", "jax"]) == ["compile"]
    records.forget(_KEY, ["eager", "jax"])
    assert records.missing(_KEY, ["eager", "compile", "jax"]) == ["eager", "compile", "jax"]


def test_records_of_another_file_fill_gaps_only(tmp_path: Path) -> None:
    """What both have stays ours; a ceiling is the highest that was ever reached."""
    _filled(tmp_path / "other.json")
    records = Records(tmp_path / "steps.json")
    records.all["ceilings"] = {"1": {"flops": 2e11, "copy_bytes": 1e9}}
    mine = _session(ours=[1.0, 1.0], eager=[5.0, 5.0])
    records.case(_KEY)["sessions"].append(mine)
    records.take(tmp_path / "other.json")
    assert records.case(_KEY)["sessions"] == [mine]
    assert records.case(_KEY)["failed"] == {"jax": "no rule for Loop"}
    assert records.all["ceilings"] == {"1": {"flops": 2e11, "copy_bytes": 1e10}}


def test_the_tables_replace_what_is_between_the_marks(project: Path) -> None:
    """The rest of the document stays, the site's file is written, and slower cases are named."""
    records = _filled(project / "steps.json")
    slower = write(records.all, project)
    document = (project / "docs/performance.md").read_text("utf-8")
    assert document.startswith(f"before\n{BEGIN}\n")
    assert document.endswith(f"{END}\nafter\n")
    assert "| mnist-mlp | 32 | 1 | 2 s | 1.00 (0.75 to 1.50) |  | cannot |  |" in document
    assert "no rule for Loop" in document
    site = json.loads((project / "docs/data/step-ratio.json").read_text("utf-8"))
    assert site["models"] == {"mnist-mlp": {"32": {"1": {"eager": 1.0}}}}
    assert slower == []


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with our specs and models, and a document to write to."""
    root = Path(__file__).parents[2]
    for name in ("specs", "models"):
        (tmp_path / name).symlink_to(root / name, target_is_directory=True)
    (tmp_path / "docs/data").mkdir(parents=True)
    (tmp_path / "docs/performance.md").write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n", "utf-8")
    return tmp_path


def test_a_peak_that_was_taken_later_takes_the_older_ones_place(project: Path) -> None:
    """Memory is measured again without the times."""
    records = _filled(project / "steps.json")
    records.case(_KEY)["our_peak"] = {"peak_bytes": 7_000_000, "as_of": "2026-11-23"}
    write(records.all, project)
    assert "| 7 MB | 0 MB |" in (project / "docs" / "performance.md").read_text()


def test_every_subject_is_in_the_catalogue_at_two_batch_sizes() -> None:
    """Each with one and with two threads."""
    found = list(cases([], [], [1, 2]))
    assert len({case.key for case in found}) == len(found) == 4 * len(SUBJECTS)
    assert all(
        (Path(__file__).parents[2] / f"specs/models/{s.model}.toml").is_file() for s in SUBJECTS
    )
