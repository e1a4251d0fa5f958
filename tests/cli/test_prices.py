"""`epochcost prices`: output, files and exit codes."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from called_program import ended_here

SPECS = Path(__file__).parents[2] / "specs"
OPTIONS = ("--provider", "aws", "--as-of", "2026-11-01", "--source", "a list of November 2026")
HEADER = "InstanceType,Price,Region\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with the project's machines and prices."""
    for kind in ("hardware", "prices"):
        shutil.copytree(SPECS / kind, tmp_path / "specs" / kind)
    return tmp_path


def run(project: Path, table: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Import a table with these rows."""
    (project / "table.csv").write_text(HEADER + table, encoding="utf-8")
    options = arguments or OPTIONS
    return ended_here(project, "prices", "import", "table.csv", "--wide", *options)


def prices(project: Path) -> set[str]:
    """The names of all price specs."""
    return {path.name for path in (project / "specs/prices").iterdir()}


def test_new_unchanged_and_unmatched(project: Path) -> None:
    """Each row has an outcome; new prices are written, unchanged prices get the new date."""
    before = {path: path.read_bytes() for path in (project / "specs").rglob("*.toml")}
    result = run(
        project, "p2.xlarge,0.80,us-east-1\np3.2xlarge,3.06,us-east-1\nz9.nano,1,us-east-1\n"
    )
    assert (result.returncode, result.stderr) == (0, "")
    lines = [line.split() for line in result.stdout.splitlines()]
    day = ["on-demand", "us-east-1", "2026-11-01"]
    new = "p2.xlarge-on-demand-2026-11.toml"
    assert ["p2.xlarge", *day, "$0.90", "$0.80", "new", new] in lines
    same = "p3.2xlarge-on-demand-2026-07"
    dated = [*day, "$3.06", "$3.06", "dated", "anew", f"{same}.toml"]
    assert ["p3.2xlarge", *dated] in lines
    assert "unmatched, 1: no machine in specs/hardware: z9.nano\n" in result.stdout
    changed = [path.stem for path, text in before.items() if path.read_bytes() != text]
    assert changed == [same]
    written = (project / "specs/prices" / new).read_text(encoding="utf-8")
    assert 'billing = "per-second" # since 2 October 2017, at least 60 s, Linux' in written


def test_a_doubted_price_needs_accept(project: Path) -> None:
    """A price at 1/100 of its previous amount is doubted, and written with --accept only."""
    before = prices(project)
    table = "p3.2xlarge,0.0306,us-east-1\np2.xlarge,0.80,us-east-1\n"
    result = run(project, table)
    reason = "p3.2xlarge-on-demand-2026-11: 0.0306 an hour per Tesla V100 SXM2 is 1/100 of the 3.06"
    assert result.returncode == 0
    assert f"\ndoubted: {reason}" in result.stdout
    assert "1 doubted and not written: --accept writes them.\n1 new: review" in result.stdout
    assert prices(project) - before == {"p2.xlarge-on-demand-2026-11.toml"}
    result = run(project, table, *OPTIONS, "--accept")
    assert f"\naccepted: {reason}" in result.stdout
    assert "p3.2xlarge-on-demand-2026-11.toml" in prices(project)


def test_dry_run(project: Path) -> None:
    """A dry run prints the outcomes and writes nothing."""
    before = prices(project)
    result = run(project, "p2.xlarge,0.80,us-east-1\n", *OPTIONS, "--dry-run")
    assert result.returncode == 0
    assert result.stdout.endswith("Dry run: 1 new, nothing written.\n")
    assert prices(project) == before


def test_an_unsound_row_stops_all(project: Path) -> None:
    """One invalid row prevents all writing; --skip-faulty lists it and imports the others."""
    before = prices(project)
    table = "p2.xlarge,0.80,us-east-1\np3.2xlarge,0.00,us-east-1\n"
    result = run(project, table)
    assert result.returncode == 1
    place, last = result.stderr.splitlines()
    assert place.startswith("table.csv:3:1: p3.2xlarge on-demand: expected a price per hour above")
    assert "1 invalid row: nothing was written" in last
    assert prices(project) == before
    skipped = run(project, table, *OPTIONS, "--skip-faulty")
    assert skipped.returncode == 0
    assert skipped.stderr.count("table.csv:3:1") == 1
    assert prices(project) - before == {"p2.xlarge-on-demand-2026-11.toml"}


def test_no_such_file(project: Path) -> None:
    """A missing table is a one-line error with exit code 1."""
    result = run(project, "", "none.csv", *OPTIONS)
    assert result.returncode == 1
    assert "Traceback" not in result.stderr


def test_token_prices_of_a_future_day_are_refused(tmp_path: Path) -> None:
    """`renew-apis --accept` would write rows that `check` refuses."""
    options = ("--commit", "0123456789", "--as-of", "2999-01-01", "--accept")
    result = ended_here(tmp_path, "prices", "renew-apis", ".", *options)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == "--as-of: expected a day in the past, got 2999-01-01\n"
