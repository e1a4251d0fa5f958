"""What an editor says of a spec, through taplo: the committed ones pass, mistakes are found."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from crowding import crowded

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
    """A price with a mistake, in a project with the schemas."""
    shutil.copytree(ROOT / "docs/schemas", tmp_path / "docs/schemas")
    (tmp_path / "specs/prices").mkdir(parents=True)
    path = tmp_path / "specs/prices/p3-2026.toml"
    path.write_text(SPEC, "utf-8")
    return path


def _lint(path: Path, *files: Path) -> subprocess.CompletedProcess[str]:
    command = [TAPLO, "lint", "--no-auto-config", *files]
    return subprocess.run(command, cwd=path, capture_output=True, text=True, check=False)


def test_the_spec_without_a_mistake_passes(spec: Path) -> None:
    """So that each mistake below is the only one."""
    assert _lint(spec.parent, spec).returncode == 0


def test_all_specs_pass() -> None:
    """Taplo finds nothing wrong with any committed spec by the schema that it names."""
    done = _lint(ROOT, *sorted((ROOT / "specs").rglob("*.toml")))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("line", "wrong", "said"),
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
def test_a_mistake_is_found(spec: Path, line: str, wrong: str, said: str) -> None:
    """The command that a continuous integration would run names what is wrong."""
    spec.write_text(SPEC.replace(line, wrong), "utf-8")
    done = _lint(spec.parent, spec)
    assert done.returncode == 1
    assert said in done.stderr


def _has_language_server() -> bool:
    """Whether node finds taplo's language server, in NODE_PATH or beside the checkout."""
    if shutil.which("node") is None:
        return False
    command = ["node", "-e", "require.resolve('@taplo/lsp')"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not _has_language_server(), reason="node finds no package @taplo/lsp")
def test_hints_of_the_language_server(spec: Path) -> None:
    """The mistake is underlined, keys and tables are explained, keys and choices completed."""
    spec.write_text(SPEC.replace("on-demand", "on demand"), "utf-8")
    asked = {"hover": [[5, 2], [10, 2], [11, 2]], "completion": [[12, 0], [3, 10]]}
    script = Path(__file__).with_name("editor_hints.mjs")
    command = ["node", script, spec, json.dumps(asked)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=crowded(60))
    told = json.loads(done.stdout)
    (wrong,) = told["diagnostics"]
    assert wrong["range"]["start"]["line"] == 3
    assert '"committed-use"' in wrong["message"]
    amount, start, seconds = (hint["contents"]["value"] for hint in told["hover"])
    assert amount == "What an hour of use costs, in the plan's currency."
    assert start.startswith("What a start takes")
    assert seconds == "How long a start takes, in seconds."
    keys, plans = ({item["label"] for item in items} for items in told["completion"])
    assert keys == {"billed", "failure_probability", "failure_charge"}
    assert {'"spot"', '"savings-plan"'} <= plans


def test_the_documented_line_is_the_one_that_works(spec: Path) -> None:
    """The page of all keys shows the line that the spec of this test is found by."""
    page = (ROOT / "docs/specs.md").read_text("utf-8")
    assert re.search(rf"^{re.escape(spec.read_text().partition(chr(10))[0])}$", page, re.M)
