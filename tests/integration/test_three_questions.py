"""Three questions of new users, from the first page to the answer, with the catalogue's specs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Page

from browsed_site import Site, Windows, chromium, served
from report_project import REPOSITORY

_MACHINES = ("p3.2xlarge", "g5.xlarge", "g5.12xlarge", "g4dn.xlarge", "g6.xlarge")
_MODELS = ("resnet50", "bert-base-fine-tune-all")


@pytest.fixture(scope="module", name="built_site")
def asked_fixture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of two models and five machines, with times predicted from all observations."""
    folder = tmp_path_factory.mktemp("questions")
    for name in ("datasets", "devices", "observations"):
        shutil.copytree(REPOSITORY / "specs" / name, folder / "specs" / name)
    names = [f"hardware/{name}" for name in _MACHINES] + [f"models/{name}" for name in _MODELS]
    prices = [
        path for name in _MACHINES for path in (REPOSITORY / "specs/prices").glob(f"{name}-*")
    ]
    for path in [*(REPOSITORY / f"specs/{name}.toml" for name in names), *prices]:
        target = folder / path.relative_to(REPOSITORY)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    for name in ("models", "site_templates"):
        shutil.copytree(REPOSITORY / name, folder / name)
    shutil.copytree(REPOSITORY / "docs/explanation", folder / "docs/explanation")
    shutil.copyfile(REPOSITORY / "mkdocs.yml", folder / "mkdocs.yml")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet"]
    subprocess.run(command, cwd=folder, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, check=True)
    return folder / "site"


def answer(page: Page, question: str) -> str:
    """The site's answer to a question, two clicks from its first page."""
    clicks = [
        page.locator("nav a:visible", has_text="Calculator"),
        page.locator("main a", has_text=question),
    ]
    for click in clicks:
        click.first.click()
    page.wait_for_url("**model=**")
    page.locator(".ec-verdict").wait_for()
    return " ".join(page.locator(".ec-calculated").inner_text().split())


@pytest.mark.slow
def test_three_questions_are_answered_in_two_clicks(built_site: Path) -> None:
    """Machine and cost a month; which of two, in which software; load and cost."""
    with served(built_site) as address, chromium() as browser:
        site = Site(built_site, Windows(browser, address))
        answers = []
        for question in ("BERT fine-tuned", "p3 or g5", "ResNet-50 served"):
            page = site.tab()
            page.goto(f"{address}index.html")
            answers.append(answer(page, question))
    bert, either, serving = answers
    assert re.search(r"a month \([^)]* in 9 of 10 cases\) on EC2 g", bert)
    assert "a training, in " in bert
    assert "predicted" in bert
    assert "Fastest: " in bert
    assert "EC2 g5.xlarge (A10G) is" in either
    assert " times cheaper: $" in either
    assert "PyTorch (NVIDIA DeepLearningExamples), mixed precision" in either
    assert "of 100 scenarios" in either
    assert re.search(r"a month (\([^)]*\) )?for 1 . EC2 g", serving)
    assert "% busy" in serving
    assert "times as much as on a machine that is always busy" in serving
    assert site.complaints == []
