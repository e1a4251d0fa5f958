"""What two revisions make of predicted costs: ranges, sums in one line, and what gives way."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from epochcost.analysis.difference.changes import Difference
from epochcost.analysis.difference.revision import at_commit, read_revision
from epochcost.analysis.difference.words import (
    cells,
    predicted_anew,
    prediction_words,
    shown_costs,
    summary,
    winner_words,
)
from epochcost.cli.diff import as_json, comment_of
from epochcost.cli.terminal import print_json
from epochcost.errors import InputError
from report_project import REPOSITORY, make_result, store_results
from revisions import commit, compared, edit, git

Compare = Callable[[], Difference]
MACHINES = ("g5.xlarge", "g6.xlarge", "p4d.24xlarge", "p3.2xlarge")
PRICE = "prices/g5.xlarge-on-demand-2026-07"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with four GPU machines, ResNet-50 and one table of others' rates."""
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
    """The last commit against the working tree."""
    return lambda: compared(project)


def copy_spec(project: Path, name: str, other: str, *changes: tuple[str, str]) -> None:
    """Another spec like one, but for some texts."""
    text = (project / f"specs/{name}.toml").read_text("utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (project / f"specs/{other}.toml").write_text(text, "utf-8")


def test_another_price_changes_the_range_of_what_is_predicted(
    project: Path, compare: Compare
) -> None:
    """Both ends follow the rate, the figure is marked, and nothing is predicted anew."""
    edit(project, PRICE, "amount = 1.006", "amount = 0.503")
    found = compare()
    shown = [cells(cost) for cost in shown_costs(found.costs)]
    software = ("ONNX Runtime 1.31", "PyTorch (timm results)")
    assert {job.partition("predicted: ")[2] for job, *_ in shown} == set(software)
    assert {machine for _, machine, *_ in shown} == {"g5.xlarge, cuda"}
    assert all(" to " in before and " to " in after for *_, before, after, _, _ in shown)
    assert {change.rpartition(" ")[2] for *_, change, _ in shown} == {"(-50.0%)"}
    assert {why for *_, why in shown} == {"price: amount 1.006 → 0.503"}
    assert not prediction_words(found)


def test_what_is_cheapest_may_be_predicted(project: Path, compare: Compare) -> None:
    """A price that falls moves the cheapest machine, which stands with its range."""
    edit(project, PRICE, "amount = 1.006", "amount = 0.1")
    found = compare()
    assert [one.goal for one in found.winners] == ["full", "million"]
    words = winner_words(found.winners[0])
    assert "is g5.xlarge, batch" in words
    assert words.count(" to $") == words.count("predicted: PyTorch (timm results)") == 2


def test_a_row_of_a_table_moves_all_predictions_in_one_line(
    project: Path, compare: Compare
) -> None:
    """How many, the median and the largest are told; the costs stand in the JSON only."""
    path = project / "specs/observations/timm.csv"
    lines = path.read_text("utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[:500] + lines[520:]), "utf-8")
    found = compare()
    anew = predicted_anew(found.costs)
    assert anew is not None
    assert anew.jobs >= 6
    assert abs(anew.median) <= abs(anew.largest)
    assert not shown_costs(found.costs)
    assert {cost.causes[0].kind for cost in found.costs} == {"prediction"}
    (line,) = prediction_words(found)
    assert line.startswith(f"{anew.jobs} costs predicted anew: median ")
    assert f"{anew.jobs} costs predicted anew" in summary(found)
    assert line.partition(":")[0] in comment_of(found).parts["predictions"].rows[0][0]


def test_a_device_that_is_much_faster_shows_the_costs_that_change_most(
    project: Path, compare: Compare
) -> None:
    """Of what is predicted anew, costs that change by a twentieth are shown with their ranges."""
    edit(project, "devices/a10g", "memory_gb_per_second = 600", "memory_gb_per_second = 1800")
    found = compare()
    shown = [cells(cost) for cost in shown_costs(found.costs)]
    assert {machine for _, machine, *_ in shown} == {"g5.xlarge, cuda"}
    assert {why for *_, why in shown} == {"prediction: predicted anew"}
    assert all("one epoch" not in job for job, *_ in shown)


def test_a_new_machine_has_predictions(project: Path, compare: Compare) -> None:
    """They are counted; of what is predicted already nothing changes."""
    renamed = ("g5.xlarge", "g9.xlarge")
    copy_spec(project, "hardware/g5.xlarge", "hardware/g9.xlarge", renamed)
    copy_spec(project, PRICE, PRICE.replace(*renamed), renamed, ("1.006", "0.1"))
    found = compare()
    assert {job.hardware for job in found.added} == {"g9.xlarge"}
    assert prediction_words(found) == ("4 predictions added: 4 for g9.xlarge",)
    assert not found.costs
    assert "is g9.xlarge" in winner_words(found.winners[0])


def test_a_new_model_has_predictions(project: Path, compare: Compare) -> None:
    """What is predicted of others does not depend on what else is asked."""
    copy_spec(project, "models/resnet50", "models/other", ('id = "resnet50"', 'id = "other"'))
    found = compare()
    assert prediction_words(found) == ("16 predictions added: 16 for other",)
    assert {one.workload for one in found.winners} == {"other"}
    assert not found.costs


def test_a_prediction_gives_way_to_a_measurement(project: Path, compare: Compare) -> None:
    """The two are never compared: one gives way, the other is a result that was added."""
    result = make_result(model="resnet50", hardware="g5.xlarge", batch_size=32)
    store_results(project, [result])
    found = compare()
    assert {(job.hardware, job.mode) for job in found.removed} == {("g5.xlarge", "training")}
    assert not found.added
    assert not found.costs
    assert len(found.results.added) == 1
    assert prediction_words(found)[-1].endswith("removed: 1 for g5.xlarge")


def test_other_batch_sizes_are_other_jobs(project: Path, compare: Compare) -> None:
    """At a smaller largest batch the old prediction is gone and another is there."""
    edit(project, "models/resnet50", "batch_sizes = [1, 8, 32, 128]", "batch_sizes = [1, 8, 32]")
    found = compare()
    assert {job.batch_size for job in found.removed} == {128}
    assert {job.batch_size for job in found.added} == {32}


def test_what_predictions_do_not_follow_from_changes_none(project: Path, compare: Compare) -> None:
    """Another source of a device, and a grid, leave them as they are."""
    edit(project, "devices/a10g", 'source = "', 'source = "another; ')
    assert compare().is_empty


def test_equal_tables_are_read_in_the_project(project: Path, tmp_path: Path) -> None:
    """Kept predictions of the project are found again, unless its table is another."""
    before = at_commit(project, "HEAD")
    shared = read_revision(before, tmp_path / "a").catalogue.files["observations/timm"]
    assert shared == project / "specs/observations/timm.toml"
    path = project / "specs/observations/timm.csv"
    path.write_text(path.read_text("utf-8") + "\n", "utf-8")
    own = read_revision(before, tmp_path / "b").catalogue.files["observations/timm"]
    assert own == tmp_path / "b/specs/observations/timm.toml"


def test_a_table_that_cannot_be_read_is_named(project: Path, compare: Compare) -> None:
    """The fault stands in the project, whatever folder the revision was written to."""
    path = project / "specs/observations/timm.csv"
    path.write_text(path.read_text("utf-8") + "x\n", "utf-8")
    commit(project)
    edit(project, "models/resnet50", "epochs = 90", "epochs = 91")
    with pytest.raises(InputError, match=r"^\S+.*: specs/observations/timm.csv:"):
        compare()


def test_json_has_every_cost_and_what_happened_to_predictions(
    project: Path, compare: Compare, capsys: pytest.CaptureFixture[str]
) -> None:
    """Works stand there as jobs do."""
    edit(project, "devices/a10g", "memory_gb_per_second = 600", "memory_gb_per_second = 700")
    print_json(as_json(compare()))
    said = json.loads(capsys.readouterr().out)
    assert said["predictions"]["anew"]["job"]["hardware"] == "g5.xlarge"
    assert said["predictions"]["added"] == []
    assert len(said["costs"]) == 6
    assert {one["job"]["hardware"] for one in said["costs"]} == {"g5.xlarge"}
