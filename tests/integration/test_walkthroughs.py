"""The contributors' pages, executed literally: files written and commands run."""

from __future__ import annotations

import html
import re
import shutil
import subprocess
import sys
from pathlib import Path

import onnx
import pytest

from epochcost.results.checks import CHECKS
from real_trainings import place_digits
from revisions import commit, git
from walkthrough import Command, do, steps

ROOT = Path(__file__).parents[2]
PAGES = (
    "add-a-price.md",
    "add-a-machine.md",
    "add-a-model.md",
    "add-a-result.md",
    "measure-a-machine.md",
    "train-to-an-accuracy.md",
    "replay-spot-machines.md",
    "price-fine-tuning.md",
)
# Pages whose steps take seconds.
_QUICK = ("add-a-machine.md",)
_IDENTITY = "[user]\nname = t\nemail = t@example.org\n"


@pytest.fixture(name="checkout")
def checkout_fixture(tmp_path: Path) -> Path:
    """The whole project, with an environment that is installed already."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv/bin").symlink_to(Path(sys.executable).parent)
    (tmp_path / ".venv/report.installed").touch()
    return tmp_path


@pytest.fixture(name="clone")
def clone_fixture(tmp_path: Path) -> Path:
    """The project's specs, models, and some results, committed on main."""
    for folder in ("specs", "models"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    results = tmp_path / "docs/data/results/epyc-vm-2"
    results.mkdir(parents=True)
    for path in (ROOT / "docs/data/results/epyc-vm-2").glob("mnist-cnn-*-b128-*.json"):
        shutil.copy(path, results)
    (tmp_path / ".gitignore").write_text("docs/data/results/local/\n.cache/\n/data/\n", "utf-8")
    place_digits(tmp_path / "data")
    git(tmp_path, "init", "--quiet", "--initial-branch", "main")
    with (tmp_path / ".git/config").open("a", encoding="utf-8") as config:
        config.write(_IDENTITY)
    commit(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=pytest.mark.slow) if page not in _QUICK else page for page in PAGES],
)
def test_the_steps_work_as_the_page_says(page: str, clone: Path) -> None:
    """Each step of the page has the printed result, in order, on a fresh clone."""
    page_steps = steps(ROOT / "docs/how-to" / page, "Steps")
    assert len(page_steps) >= 2
    assert any(isinstance(step, Command) for step in page_steps)
    for step in page_steps:
        do(step, clone)


def test_an_exported_model_is_looked_at_and_made_weightless(clone: Path) -> None:
    """The commands of the page on exports, with the graph that the page on models makes."""
    do(steps(ROOT / "docs/how-to/add-a-model.md", "Steps")[0], clone)
    page = ROOT / "docs/how-to/export-a-model.md"
    commands = [*steps(page, "Steps"), *steps(page, "A graph without weights")]
    for command in commands:
        do(command, clone)
    assert len(commands) == 2
    assert (clone / "models/tagger.onnx").stat().st_size < (clone / "tagger.onnx").stat().st_size


@pytest.mark.slow
def test_an_exported_model_is_declared_and_measured(clone: Path) -> None:
    """The example's steps after the export, with a smaller graph of the same inputs and outputs."""
    text = """<ir_version: 10, opset_import: ["" : 18]>
    cnn (float[batch, 3, 224, 224] images) => (float[batch, 10] logits)
    <float[3, 10] weight = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0,
                            1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9, 2.0,
                            2.1, 2.2, 2.3, 2.4, 2.5, 2.6, 2.7, 2.8, 2.9, 3.0}>
    {
        pooled = GlobalAveragePool (images)
        features = Flatten (pooled)
        logits = MatMul (features, weight)
    }"""
    onnx.save(onnx.parser.parse_model(text), str(clone / "cnn.onnx"))
    page_steps = steps(ROOT / "docs/how-to/export-a-model.md", "Example: your own CNN in PyTorch")
    assert sum(isinstance(step, Command) for step in page_steps) == 4
    for step in page_steps:
        do(step, clone)


def test_the_operator_of_the_page_is_the_one_in_the_code() -> None:
    """The rule and the case that the page shows stand in the library as shown."""
    page = (ROOT / "docs/how-to/add-an-operator.md").read_text("utf-8")
    rule, case = re.findall(r"```py\n(.*?)```", page, re.S)
    library = ROOT / "runner/onnxstep"
    assert rule in (library / "onnxstep/rules/activation.py").read_text("utf-8")
    assert case.replace('"Tanh"', "op").strip(",\n") in (
        library / "tests/gradient_cases/activation.py"
    ).read_text("utf-8")


def test_the_page_on_reviews_lists_every_check() -> None:
    """Names and mistakes of the page's table are those of the code, in its order."""
    page = (ROOT / "docs/how-to/review-a-result.md").read_text("utf-8")
    rows = re.findall(r"^\| ([a-z]+) \| (.+) \|$", page, re.M)[1:]
    shown = [(f"_{name}", f"{catches[0].upper()}{catches[1:]}.") for name, catches in rows]
    assert shown == [(check.__name__, check.__doc__) for check in CHECKS]


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_the_tutorial_ends_on_the_page_of_its_model_at_its_price(checkout: Path) -> None:
    """The tutorial from its first command to its last; the page has the machine and its price."""
    for step in steps(ROOT / "docs/start.md"):
        do(step, checkout)
    page = html.unescape((checkout / "site/models/churn.html").read_text("utf-8"))
    training = page.partition('id="machines-for-training"')[2].partition("</table>")[0]
    row = next(row for row in training.split("<tr") if "My machine" in row)
    cells = re.sub(r"<[^>]+>", " ", row)
    assert "my desk, on-demand" in cells
    assert "$0.10" in cells
    assert "measured" in cells
