"""The package as a wheel, used in an empty folder."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
# Most of it are our step times and published ones.
MOST_BYTES = 11_000_000


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that a clone of this commit builds."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    subprocess.run(["git", "clone", "--quiet", ROOT, source], check=True)
    options = ("--no-deps", "--no-build-isolation", "--wheel-dir", folder)
    subprocess.run([*PIP, "wheel", *options, source], check=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path) -> dict[str, str]:
    """Environment of a process that imports the wheel's package, not the checkout's."""
    folder = wheel.parent / "installed"
    subprocess.run([*PIP, "install", "--no-deps", "--target", folder, wheel], check=True)
    return {**os.environ, "PYTHONPATH": str(folder)}


def epochcost(environment: dict[str, str], folder: Path, *arguments: str) -> str:
    """Output of the installed program in a folder."""
    process = subprocess.run(
        [sys.executable, "-m", "epochcost", *arguments],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    return process.stdout


@pytest.mark.slow
def test_it_carries_what_commands_read_and_no_more(wheel: Path) -> None:
    """All linked files, except exporters, pictures and results of this machine."""
    carried = set(zipfile.ZipFile(wheel).namelist())
    tracked = subprocess.run(
        ["git", "ls-files", "-z", "specs", "site_templates", "models/*.onnx", "docs/data/results"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split("\0")[:-1]  # fmt: skip
    assert {f"epochcost/bundled/{name}" for name in tracked} <= carried
    library = (ROOT / "runner/onnxstep/onnxstep").rglob("*.py")
    assert {path.relative_to(ROOT / "runner/onnxstep").as_posix() for path in library} <= carried
    template = ROOT / "runner/epochcost/template"
    walked = ((Path(top), names) for top, _, names in os.walk(template, followlinks=True))
    begun = {
        (top / name).relative_to(ROOT / "runner")
        for top, names in walked
        for name in names
        if top.name != "__pycache__"
    }
    assert {path.as_posix() for path in begun} <= carried
    assert not [
        path for path in carried if path.endswith((".png", "/local")) or "/models/exp" in path
    ]
    assert wheel.stat().st_size < MOST_BYTES


@pytest.mark.slow
def test_a_question_is_answered_in_an_empty_folder(
    installed: dict[str, str], tmp_path: Path
) -> None:
    """Our specs are read, and nothing is written."""
    arguments = ("quote", "--price", "g6.xlarge-on-demand-2026-07", "--duration", "428s")
    assert "AWS EC2, us-east-1" in epochcost(installed, tmp_path, *arguments)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_project_begins_from_it(installed: dict[str, str], tmp_path: Path) -> None:
    """`init` needs no checkout, and its files are valid."""
    epochcost(installed, tmp_path, "init", "costs")
    epochcost(installed, tmp_path / "costs", "check")


@pytest.mark.slow
def test_an_empty_folder_has_answers_and_a_site(installed: dict[str, str], tmp_path: Path) -> None:
    """Built strictly in the current folder, with nothing written into the package."""
    assert "resnet50" in epochcost(installed, tmp_path, "cheapest", "--model", "resnet50")
    before = sorted(Path(installed["PYTHONPATH"]).rglob("*[!c]"))
    epochcost(installed, tmp_path, "build", "--strict")
    assert (tmp_path / "site/models/resnet50.html").is_file()
    assert sorted(path.name for path in tmp_path.iterdir()) == [".cache", "site"]
    after = sorted(Path(installed["PYTHONPATH"]).rglob("*[!c]"))
    assert [path for path in after if path not in before and path.name != "__pycache__"] == []
