"""The contributors' pages walked through literally: files written and commands typed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from walkthrough import Command, do, steps

ROOT = Path(__file__).parents[2]
PAGES = {
    "add-a-price.md": "In two minutes",
    "add-a-machine.md": "In five minutes",
    "add-a-model.md": "In ten minutes",
    "add-a-result.md": "In fifteen minutes",
    "measure-a-machine.md": "Steps",
    "train-to-an-accuracy.md": "Steps",
    "replay-spot-machines.md": "Steps",
    "price-fine-tuning.md": "Steps",
}
# The pages whose steps take seconds.
_QUICK = ("add-a-machine.md", "replay-spot-machines.md")
_IDENTITY = "[user]\nname = t\nemail = t@example.org\n"


@pytest.fixture(name="clone")
def clone_fixture(tmp_path: Path) -> Path:
    """The project's specs, models, and some results, committed on main."""
    for folder in ("specs", "models"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    results = tmp_path / "docs/data/results/epyc-vm-2"
    results.mkdir(parents=True)
    for path in (ROOT / "docs/data/results/epyc-vm-2").glob("mnist-cnn-*-b128-*.json"):
        shutil.copy(path, results)
    (tmp_path / ".gitignore").write_text("docs/data/results/local/\n.cache/\n", "utf-8")
    for words in (("init", "--quiet", "--initial-branch=main"), ("add", "."),
                  ("commit", "--quiet", "--message", "Begin")):  # fmt: skip
        if words[0] == "add":
            with (tmp_path / ".git/config").open("a", encoding="utf-8") as config:
                config.write(_IDENTITY)
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    return tmp_path


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=pytest.mark.slow) if page not in _QUICK else page for page in PAGES],
)
def test_the_steps_work_as_the_page_says(page: str, clone: Path) -> None:
    """Each step does and prints what the page says, in its order, on a fresh clone."""
    found = steps(ROOT / "docs/how-to" / page, PAGES[page])
    assert len(found) >= 2
    assert any(isinstance(step, Command) for step in found)
    for step in found:
        do(step, clone)
