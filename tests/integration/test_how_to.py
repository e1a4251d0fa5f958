"""How-to pages on prices, requests and data, followed step by step in a project of real specs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from epochcost.analysis.tokens import MOST_BUSY
from epochcost.units import share
from revisions import commit, git
from tool_exports import VLLM, write_export
from walkthrough import Command, do, steps

ROOT = Path(__file__).parents[2]
HOW_TO = ROOT / "docs/how-to"
PAGES = (
    "add-a-decoder.md",
    "price-a-language-model.md",
    "read-a-pull-request-comment.md",
    "use-in-another-repository.md",
)


@pytest.fixture(name="clone", scope="module")
def clone_fixture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The specs and models, results of one model, and the files that the pages start from.

    A study is left out whose budgets need results that are not copied.
    """
    folder = tmp_path_factory.mktemp("clone")
    for name in ("specs", "models"):
        ignored = shutil.ignore_patterns("two-vcpus.toml")
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    results = folder / "docs/data/results/epyc-vm-2"
    results.mkdir(parents=True)
    for path in (ROOT / "docs/data/results/epyc-vm-2").glob("mnist-cnn-*-b128-*.json"):
        shutil.copy(path, results)
    shutil.copy(ROOT / "models/smollm2_135m.onnx", folder / "models/mine.onnx")
    write_export(folder, VLLM, "serve.json")
    (folder / ".gitignore").write_text("serve.json\n.cache/\n", "utf-8")
    git(folder, "init", "--quiet", "--initial-branch", "main")
    commit(folder)
    return folder


def test_the_page_on_language_models_states_the_largest_load() -> None:
    """The same share of busy time as in the answers."""
    page = (HOW_TO / "price-a-language-model.md").read_text("utf-8")
    assert f"busy for at most {share(MOST_BUSY)} of the time" in page


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_each_step_does_what_the_page_shows(page: str, clone: Path) -> None:
    """Every file is written, every command runs, and prints the lines below it."""
    page_steps = steps(HOW_TO / page)
    assert any(isinstance(step, Command) for step in page_steps)
    for step in page_steps:
        do(step, clone)
