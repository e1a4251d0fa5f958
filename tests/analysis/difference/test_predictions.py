"""Differences of two revisions in predicted costs: ranges, summaries, replaced predictions."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from epochcost.analysis.difference.changes import Difference
from epochcost.analysis.difference.rendering import (
    cells,
    render_prediction,
    render_winner,
    shown_costs,
    summary,
)
from epochcost.cli.diff import comment_of
from report_project import REPOSITORY, make_result, store_results
from revisions import commit, compared, edit, git

Compare = Callable[[], Difference]
MACHINES = ("g5.xlarge", "g6.xlarge", "p4d.24xlarge", "p3.2xlarge")
PRICE = "prices/g5.xlarge-on-demand-2026-07"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with four GPU machines, ResNet-50 and one table of published rates."""
    folder = tmp_path / "project"
    copied = ["models/resnet50", "grids/*", "observations/timm*", "devices/*"]
    copied += [f"hardware/{name}" for name in MACHINES]
    copied += [f"prices/{name}-on-demand-2026*" for name in MACHINES]
    for pattern in copied:
        for path in (REPOSITORY / "specs").glob(pattern if "*" in pattern else f"{pattern}.toml"):
            target = folder / path.relative_to(REPOSITORY)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
    edit(folder, "models/resnet50", 'dataset = "imagenet-1k"\n', "")
    (folder / "models").mkdir()
    shutil.copyfile(REPOSITORY / "models/resnet50.onnx", folder / "models/resnet50.onnx")
    git(folder, "init", "--quiet", "--initial-branch", "main")
    commit(folder)
    return folder


@pytest.fixture
def compare(project: Path) -> Compare:
    """Compare the last commit with the working tree."""
    return lambda: compared(project)


def copy_spec(project: Path, name: str, new_name: str, *changes: tuple[str, str]) -> None:
    """Copy a spec under a new name with some texts replaced."""
    text = (project / f"specs/{name}.toml").read_text("utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (project / f"specs/{new_name}.toml").write_text(text, "utf-8")


def test_another_price_changes_the_range_of_what_is_predicted(
    project: Path, compare: Compare
) -> None:
    """Both ends of a predicted cost follow the price, and the price is the only cause."""
    edit(project, PRICE, "amount = 1.006", "amount = 0.503")
    changes = compare()
    rows = [cells(cost) for cost in shown_costs(changes.costs)]
    software = ("ONNX Runtime 1.31", "PyTorch (timm results)")
    assert {job.partition("predicted: ")[2] for job, *_ in rows} == set(software)
    assert {machine for _, machine, *_ in rows} == {"g5.xlarge, cuda"}
    assert all(" to " in before and " to " in after for *_, before, after, _, _ in rows)
    assert {change.rpartition(" (")[2] for *_, change, _ in rows} == {"-50.0 %)"}
    assert {why for *_, why in rows} == {"price: amount 1.006 → 0.503"}
    assert not render_prediction(changes)


def test_a_row_of_a_table_moves_all_predictions_in_one_line(
    project: Path, compare: Compare
) -> None:
    """One line has the number of changed predictions, the median and the largest change."""
    path = project / "specs/observations/timm.csv"
    lines = path.read_text("utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[:500] + lines[520:]), "utf-8")
    changes = compare()
    assert not shown_costs(changes.costs)
    changed = f"observations timm: timm.csv changed, {len(lines) - 1:,} → {len(lines) - 21:,} rows"
    assert changes.prices == (changed,)
    assert {(cause.kind, cause.text) for cost in changes.costs for cause in cost.causes} == {
        ("prediction", changed)
    }
    (line,) = render_prediction(changes)
    parts = re.match(r"(\d+) predicted costs change: median ([+-].+)%, most ([+-].+?)% \(", line)
    assert parts is not None
    count, median, largest = map(float, parts.groups())
    jobs = {cost.figure.job for cost in changes.costs if cost.figure.job.goal != "epoch"}
    assert count == len(jobs) >= 6
    assert abs(median) <= abs(largest)
    assert f"{len(jobs)} predicted costs change" in summary(changes)
    assert line.partition(":")[0] in comment_of(changes).parts["predictions"].rows[0][0]


def test_a_device_is_the_cause_of_its_predictions(project: Path, compare: Compare) -> None:
    """A changed constant of a device is listed once, as the cause of each changed prediction."""
    edit(project, "devices/l4", "memory_gb_per_second = 300", "memory_gb_per_second = 400")
    (project / "specs/devices/apple-m1.toml").unlink()
    changes = compare()
    device = "device l4: memory_gb_per_second 300 → 400"
    assert changes.prices == ("device apple-m1 removed", device)
    assert {cost.causes[0].text for cost in changes.costs if cost.only_predicted} == {
        f"device apple-m1 removed, {device}"
    }


def test_a_new_machine_has_predictions(project: Path, compare: Compare) -> None:
    """Predictions for a new machine are counted; existing predictions do not change."""
    renamed = ("p4d.24xlarge", "p9d.24xlarge")
    copy_spec(project, "hardware/p4d.24xlarge", "hardware/p9d.24xlarge", renamed)
    price = PRICE.replace("g5.xlarge", "p4d.24xlarge")
    copy_spec(project, price, price.replace(*renamed), renamed, ("21.957642", "15"))
    changes = compare()
    assert {job.hardware for job in changes.added} == {"p9d.24xlarge"}
    assert render_prediction(changes) == ("4 predictions added: 4 for p9d.24xlarge",)
    assert not changes.costs
    assert "is p9d.24xlarge" in render_winner(changes.winners[0])


def test_a_prediction_gives_way_to_a_measurement(project: Path, compare: Compare) -> None:
    """A measurement removes the prediction and is an added result; the two are not compared."""
    result = make_result(model="resnet50", hardware="g5.xlarge", batch_size=32)
    store_results(project, [result])
    changes = compare()
    assert {(job.hardware, job.mode) for job in changes.removed} == {("g5.xlarge", "training")}
    assert not changes.added
    assert not changes.costs
    assert len(changes.results.added) == 1
    assert render_prediction(changes)[-1].endswith("removed: 1 for g5.xlarge")
