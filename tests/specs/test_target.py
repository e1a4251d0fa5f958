"""Targets: their engines, machines and prices; faults name the file, the line and the key."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from epochcost.specs.loader import load_catalogue
from epochcost.specs.target import IDLE_MINUTES, PINNED_RUNTIME, Target
from walkthrough import File, steps

if TYPE_CHECKING:
    from conftest import Project

HOW_TO = Path(__file__).parents[2] / "docs/how-to"
TARGET = "specs/targets/desk.toml"
TEXT = """\
id = "desk"
hardware = "box"
price = "box-2026"
[engine]
name = "ssh"
host = "alice@box"
"""
RUNTIME_FAULT = '1:1: runtime: should be a package and its version, such as "onnxruntime==1.31.1"'
OPTION_FAULT = '6:12: engine.options[0]: should be an option that begins with --, got "x"'


def test_target_has_the_time_that_an_attempt_may_be_paid_for(project: Project) -> None:
    """Set-up, the limit of a cell and the time to collect are paid; retries are not counted."""
    project.write(TARGET, f"limit_minutes = 10\nsetup_minutes = 3\n{TEXT}")
    target = load_catalogue(project.root).target("desk")
    assert target.attempt_seconds == 60 * (10 + 3 + IDLE_MINUTES)


def test_results_name_the_runtime_without_extras(project: Project) -> None:
    """A package with extras plans the same trials as the package alone."""
    project.write(TARGET, f'runtime = "onnxruntime-gpu[cuda,cudnn]==1.26.0"\n{TEXT}')
    target = load_catalogue(project.root).target("desk")
    assert target.measured_runtime == target.kind[-1] == "onnxruntime-gpu==1.26.0"


def test_a_target_may_name_the_default_runtime(project: Project) -> None:
    """Machines of both targets measure the same trials, and share them."""
    project.write(TARGET, TEXT)
    silent = load_catalogue(project.root).target("desk")
    project.write(TARGET, f'runtime = "{PINNED_RUNTIME}"\n{TEXT}')
    assert load_catalogue(project.root).target("desk").kind == silent.kind


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ('"ssh"', '"shh"', '5:1: engine.name: should be one of "ssh", "slurm", "sky"'),
        ('"box"\n', '"bix"\n', '2:1: hardware: should be the id of a spec in hardware/, got "bix"'),
        ('"box-2026"', '"free"', '3:1: price: should be the id of a spec in prices/, got "free"'),
        ('"alice@box"', '"a b; rm -rf"', "6:1: engine.host: should be a host for `ssh`, such as"),
        ('"alice@box"', '"-oProxyCommand=x"', "6:1: engine.host: should be a host for `ssh`, su"),
        ('id = "desk"', 'runtime = "onnxruntime>=1.31"\nid = "desk"', RUNTIME_FAULT),
        ('"alice@box"', '""', "6:1: engine.host: should not be empty"),
        ('"ssh"\nhost = "alice@box"', '"slurm"\noptions = ["x"]', OPTION_FAULT),
        ('host = "alice@box"\n', "", "4:2: engine.host: required key is missing"),
    ],
)
def test_faults_of_targets(project: Project, old: str, new: str, fault: str) -> None:
    """A wrong engine, machine or price is a fault at its line."""
    project.write(TARGET, TEXT.replace(old, new, 1))
    line, *_ = project.faults()
    assert line.startswith(f"{TARGET}:{fault}"), line


def test_price_of_a_target_is_of_its_hardware(project: Project) -> None:
    """A target that names another machine's price would pay that machine's bills."""
    cup = (project.root / "specs/hardware/box.toml").read_text("utf-8").replace('"box"', '"cup"')
    project.write("specs/hardware/cup.toml", cup)
    project.write(TARGET, TEXT.replace('hardware = "box"', 'hardware = "cup"'))
    demand = 'price: should be a price of "cup", got "box-2026", a price of "box"'
    assert project.faults() == [f"{TARGET}:3:1: {demand}"]


def test_an_unknown_machine_is_one_fault(project: Project) -> None:
    """If the machine is unknown, the price is not reported as another machine's price."""
    project.write(TARGET, TEXT.replace('hardware = "box"', 'hardware = "nox"'))
    (fault,) = project.faults()
    assert fault.startswith(f"{TARGET}:2:1: hardware: should be the id of a spec in hardware/")


@pytest.mark.parametrize("engine", ["clouds", "slurm", "your-machines"])
def test_targets_of_how_to_pages_are_valid(engine: str) -> None:
    """Each page shows a target whose file has the target's name."""
    (shown,) = (
        each for each in steps(HOW_TO / f"measure-on-{engine}.md") if isinstance(each, File)
    )
    target = Target.model_validate(tomllib.loads(shown.text))
    assert shown.path == f"specs/targets/{target.id}.toml"
