"""The page on the user's own machines, followed step by step with a machine behind a real sshd."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from remote_homes import NEEDS_SSHD, Machines, make_machines, offline_environment
from tiny_project import OWNED_PRICE, write_tiny_project
from walkthrough import do, steps

PAGE = Path(__file__).parents[2] / "docs/how-to/measure-on-your-machines.md"


@pytest.fixture(name="machines")
def machines_fixture(tmp_path: Path) -> Iterator[Machines]:
    """The machine `gpu-box`, with all packages of the program."""
    machines = make_machines(tmp_path, ("gpu-box",))
    offline_environment(machines.home("gpu-box") / ".cache/epochcost/venv")
    machines.start()
    yield machines
    machines.stop()


def project_of(folder: Path) -> Path:
    """A project with the page's machine, its price and its study."""
    project = write_tiny_project(folder)
    specs = project / "specs"
    study = (specs / "studies/brief.toml").read_text().replace('id = "brief"', 'id = "starter"')
    (specs / "studies/starter.toml").write_text(study)
    box = (specs / "hardware/local.toml").read_text().replace('id = "local"', 'id = "gpu-box"')
    (specs / "hardware/gpu-box.toml").write_text(box)
    price = OWNED_PRICE.replace('"own"', '"gpu-box-owned-2026-11"')
    (specs / "prices").mkdir()
    (specs / "prices/gpu-box.toml").write_text(price.replace('"local"', '"gpu-box"', 1))
    return project


@pytest.mark.slow
@NEEDS_SSHD
def test_each_step_does_what_the_page_shows(
    machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The target is written, and the machine measures the study."""
    monkeypatch.setenv("PATH", f"{machines.folder}/bin:{os.environ['PATH']}")
    project = project_of(machines.folder / "project")
    for step in steps(PAGE, "Steps"):
        do(step, project)
    assert len(list((project / "docs/data/results/gpu-box").glob("*.json"))) == 3
