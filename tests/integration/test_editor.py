"""Editor checks of specs through taplo: committed ones pass, errors are found."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TAPLO = Path(sys.executable).with_name("taplo")
SPEC = """\
#:schema ../../docs/schemas/price.json
id = "p3-2026"
hardware = "p3.2xlarge"
plan = "on-demand"
provider = "AWS EC2"
amount = 3.06

source = "a price list"
as_of = 2026-11-01

[start]
seconds = 90

"""


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    """A price with an error, in a project with the schemas."""
    shutil.copytree(ROOT / "docs/schemas", tmp_path / "docs/schemas")
    (tmp_path / "specs/prices").mkdir(parents=True)
    path = tmp_path / "specs/prices/p3-2026.toml"
    path.write_text(SPEC, "utf-8")
    return path


def _lint(path: Path, *files: Path) -> subprocess.CompletedProcess[str]:
    command = [TAPLO, "lint", "--no-auto-config", *files]
    return subprocess.run(command, cwd=path, capture_output=True, text=True, check=False)


def test_all_specs_pass() -> None:
    """Taplo finds no error in any committed spec by its schema."""
    process = _lint(ROOT, *sorted((ROOT / "specs").rglob("*.toml")))
    assert process.returncode == 0, process.stderr


@pytest.mark.parametrize(
    ("line", "wrong", "message"),
    [
        ('plan = "on-demand"', 'plan = "on demand"', '"on demand" is not one of'),
        ("amount = 3.06", "amuont = 3.06", "'amuont' was unexpected"),
        ("amount = 3.06", "amount = 0", "0 is less than or equal to the minimum"),
        ("amount = 3.06", 'amount = "3.06"', 'is not of type "number"'),
        ('source = "a price list"', "", '"source" is a required property'),
        ("seconds = 90", "seconds = -1", "less than the minimum of 0"),
        ("as_of = 2026-11-01", "as_of = 2026", 'is not of type "string"'),
    ],
)
def test_a_mistake_is_found(spec: Path, line: str, wrong: str, message: str) -> None:
    """Taplo's command for continuous integration names the error."""
    spec.write_text(SPEC.replace(line, wrong), "utf-8")
    process = _lint(spec.parent, spec)
    assert process.returncode == 1
    assert message in process.stderr
