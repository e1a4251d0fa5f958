"""`epochcost data`: fetched, imported and listed files, and exit codes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from called_program import ended_here
from fake_publisher import Publisher, published

ROWS = b"".join(b"%d,%d\n" % (row, row % 2) for row in range(20_000))
SPEC = """id = "made"
name = "Made up"
example = "a number"
shape = "one number"
training_examples = 15_000
held_out_examples = 5_000
licence = "CC0"
source = "a test"

[data]
format = "csv"

[[data.files]]
name = "x.csv"
part = "both"
address = "{address}/x.csv"
"""
GENERATED = """id = "chain"
name = "A chain"
example = "a character"
shape = "of two"
training_examples = 10
held_out_examples = 2
source = "a test"

[generated]
generator = "markov-text"
characters = 2
"""


@pytest.fixture(name="publisher")
def publisher_fixture() -> Iterator[Publisher]:
    """A local server with the project's data file."""
    with published({"/x.csv": ROWS}) as publisher:
        yield publisher


@pytest.fixture(name="project")
def project_fixture(tmp_path: Path, publisher: Publisher) -> Path:
    """A project with two data sets, one on the server and one generated."""
    folder = tmp_path / "project/specs/datasets"
    folder.mkdir(parents=True)
    (folder / "made.toml").write_text(SPEC.format(address=publisher.address))
    (folder / "chain.toml").write_text(GENERATED)
    return tmp_path / "project"


def run(project: Path, *arguments: str, code: int = 0) -> tuple[str, str]:
    """The output and errors of `epochcost data`, which must end with ``code``."""
    process = ended_here(project, "data", *arguments)
    assert process.returncode == code, process.stderr
    assert "Traceback" not in process.stderr
    return process.stdout, process.stderr


def test_a_data_set_without_a_hash_gets_one(project: Path, publisher: Publisher) -> None:
    """The printed hash is added to the spec, and the next fetch checks it."""
    out, err = run(project, "fetch", "made")
    assert out.startswith("data/made/x.csv: fetched, 148,890 bytes; its spec has no SHA-256.")
    assert "Made up, licence: CC0" in err
    line = out.splitlines()[-1]
    spec = project / "specs/datasets/made.toml"
    spec.write_text(spec.read_text() + line + "\n")
    out, _ = run(project, "fetch", "made")
    assert out == "data/made/x.csv: is there, 148,890 bytes, SHA-256 as in the spec\n"
    assert len(publisher.requests) == 1


def test_the_list_says_what_is_here(project: Path, tmp_path: Path) -> None:
    """The list counts files before and after an import into another folder."""
    (tmp_path / "x.csv").write_bytes(ROWS)
    assert run(project, "list")[0].splitlines()[1:] == [
        "chain     generated from a seed                  ",
        "made               0 of 1 files  unknown      CC0",
    ]
    out, _ = run(project, "import", "made", str(tmp_path / "x.csv"), "--data", "elsewhere")
    assert out.startswith("elsewhere/made/x.csv: imported, 148,890 bytes")
    assert "1 of 1 files" in run(project, "list", "--data", "elsewhere")[0]
    assert "0 of 1 files" in run(project, "list")[0]


def test_a_list_without_data_sets_says_so(project: Path) -> None:
    """Data sets without files, which no command can fetch, are no rows of an empty table."""
    described = SPEC.partition("[data]")[0]
    for path in (project / "specs/datasets").iterdir():
        path.unlink()
    (project / "specs/datasets/made.toml").write_text(described)
    message = "specs/datasets has no data set with a table [data] or [generated]\n"
    assert run(project, "list")[0] == message


def test_what_cannot_be_fetched_is_one_line(project: Path, publisher: Publisher) -> None:
    """An unknown name has a suggestion; a wrong file is refused; generated data need no file."""
    assert run(project, "fetch", "maed", code=1)[1] == (
        'unknown data set "maed"; did you mean "made"?\n'
    )
    _, err = run(project, "import", "made", str(project / "specs/datasets/made.toml"), code=1)
    assert err.count("\n") == 1
    assert "expected files of made, named x.csv, got made.toml" in err
    assert run(project, "fetch", "chain")[0] == "chain: generated from a seed, nothing to fetch\n"
    assert publisher.requests == []
