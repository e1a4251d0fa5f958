"""`epochcost check`: lines, JSON and exit codes, in a folder with specs only."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from called_program import ended_here, printed
from epochcost.predict.rates import COLUMNS
from tiny_project import write_tiny_project

SPECS = Path(__file__).parents[2] / "specs"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder that holds the project's specs and nothing else."""
    shutil.copytree(SPECS, tmp_path / "specs")
    return tmp_path


def check(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `epochcost check` in ``folder``."""
    return ended_here(folder, "check", *arguments)


def test_valid_specs(project: Path) -> None:
    """Valid specs give a summary and exit code 0."""
    result = check(project)
    count = len(list(SPECS.rglob("*.toml")))
    assert result.returncode == 0
    assert all(line.startswith("doubted: specs/api-tables/") for line in result.stdout.splitlines())
    assert result.stderr.startswith(f"{count} files checked, 0 faults")


def test_stale_errors_of_predictions_are_a_fault_of_sound_specs(project: Path) -> None:
    """Stale errors of predictions are named only without faults that `epochcost trust` refuses."""
    trust = project / "docs/data/prediction-trust.json"
    trust.parent.mkdir(parents=True)
    trust.write_text('{"digest": 1}', "utf-8")
    assert check(project).stdout.startswith("docs/data/prediction-trust.json:1:1: ")
    (project / "specs/observations/timm.csv").write_text("model;mode\n", "utf-8")
    result = check(project)
    assert result.stdout.startswith("specs/observations/timm.csv:1:1: expected commas")
    assert "prediction-trust" not in result.stdout


def test_an_unsound_trace_is_a_fault(project: Path) -> None:
    """A price of a replay's trace that is no number is a fault of the replay, with the row."""
    trace = project / "specs/replays/made-three-zones.csv"
    rows = trace.read_text("utf-8").splitlines(keepends=True)
    trace.write_text(
        "".join((*rows[:2], rows[2].replace("made-b,", "made-b,x"), *rows[3:])), "utf-8"
    )
    result = check(project, "specs/replays")
    assert result.returncode == 1
    place = (
        "specs/replays/made-three-zones.toml:4:1: trace: specs/replays/made-three-zones.csv:3:1:"
    )
    assert result.stdout.startswith(f"{place} expected a price per hour above 0")


def test_tables_in_subfolders_are_read_beside_faults_of_others(project: Path) -> None:
    """Subfolders and a fault of another file hide no fault of a trace or of a table."""
    moved = {"replays": "made-three-zones", "observations": "tensorflow-2017"}
    for kind, name in moved.items():
        folder = project / "specs" / kind / "ours"
        folder.mkdir()
        for path in (project / "specs" / kind).glob(f"{name}*"):
            path.rename(folder / path.name)
        table = folder / f"{name}.csv"
        rows = table.read_text("utf-8").splitlines(keepends=True)
        table.write_text(rows[0] + "x" * 9 + "\n" + "".join(rows[1:]), "utf-8")
    (project / "specs/replays/other.toml").write_text('id = "other"\n', "utf-8")
    faulty = {line.partition(":")[0] for line in check(project).stdout.splitlines()}
    assert faulty >= {
        "specs/replays/ours/made-three-zones.toml",
        "specs/observations/ours/tensorflow-2017.csv",
        "specs/replays/other.toml",
    }


def test_doubts_are_no_faults(project: Path) -> None:
    """A price at 1/100 and a repeated zone are doubts, and the exit code stays 0."""
    price = project / "specs/prices/p5.48xlarge-on-demand-2026-07.toml"
    price.write_text(price.read_text("utf-8").replace("amount = 55.04", "amount = 0.5504"), "utf-8")
    trace = project / "specs/replays/made-three-zones.csv"
    rows = trace.read_text("utf-8").splitlines(keepends=True)
    zone = rows[1].split(",")[rows[0].strip().split(",").index("zone")]
    again = [row.replace(zone, "made-x") for row in rows[1:] if zone in row]
    trace.write_text("".join((rows[0], *sorted((*rows[1:], *again)))), "utf-8")
    result = check(project, "specs/prices", "specs/replays")
    first, second = result.stdout.splitlines()
    assert result.returncode == 0
    assert first.startswith("doubted: specs/prices/p5.48xlarge-on-demand-2026-07.toml:9:")
    assert "amount: 0.0688 an hour per H100 SXM5 is 1/100 of the 6.88" in first
    assert second.endswith(f": zone made-x has the rows of zone {zone}")


@pytest.mark.parametrize(
    ("model", "old", "new", "message"),
    [
        (
            "mnist-mlp",
            '"image"',
            '"images"',
            ":17:1: inputs[0].name: should name the graph's inputs image, got 'images'",
        ),
        (
            "gpt2",
            "50_257",
            "50_258",
            "should be from 0 to below 50,257 in 'token_ids', by which Gather reads "
            "'token.weight', got 0 to below 50,258",
        ),
        ("mnist-mlp", "classes = 10", "classes = 11", "at most 10 classes for 'logits', got 11"),
        ("mnist-mlp", '"logits"', '"logit"', "should name an output, logits, got 'logit'"),
    ],
)
def test_a_graph_that_does_not_fit(
    project: Path, model: str, old: str, new: str, message: str
) -> None:
    """A spec whose inputs, vocabulary, classes or output contradict its ONNX file has a fault."""
    shutil.copytree(SPECS.parent / "models", project / "models")
    path = project / f"specs/models/{model}.toml"
    head, inputs, tables = path.read_text("utf-8").partition("[[inputs]]")
    assert old in tables
    path.write_text(head + inputs + tables.replace(old, new), "utf-8")
    result = check(project, "specs/models")
    assert result.returncode == 1
    assert message in result.stdout.splitlines()[0]


def test_a_dimension_that_the_graph_lacks(project: Path) -> None:
    """A wrong name in [dimensions] is a fault in its line, with the names of the ONNX file."""
    shutil.copytree(SPECS.parent / "models", project / "models")
    path = project / "specs/models/gpt2.toml"
    path.write_text(path.read_text("utf-8").replace("{ sequence =", "{ length ="), "utf-8")
    assert check(project, "specs/models").stdout == (
        "specs/models/gpt2.toml:8:16: dimensions.length: should name the graph's dimensions batch, "
        "sequence, got 'length'\n"
    )


def test_faults_as_lines(project: Path) -> None:
    """Each fault is a line on standard output; the exit code is 1."""
    price = project / "specs/prices/p2.xlarge-on-demand-2016-11.toml"
    text = price.read_text(encoding="utf-8")
    price.write_text(text.replace("amount", "amuont"), "utf-8")
    result = check(project, "specs/prices")
    line = text.count("\n", 0, text.index("\namount")) + 2
    place = f"specs/prices/p2.xlarge-on-demand-2016-11.toml:{line}:1"
    assert result.returncode == 1
    assert result.stdout == f'{place}: amuont: unknown key; did you mean "amount"?\n'
    assert result.stderr.endswith("files checked, 1 fault\n")


@pytest.mark.parametrize("subject", [(), ("--results",), ("--budgets",)])
def test_invalid_toml(project: Path, subject: tuple[str, ...]) -> None:
    """A check of specs names the fault, and a check of results or budgets is prevented by it."""
    (project / "specs/hardware/x.toml").write_text("id = ", encoding="utf-8")
    result = check(project, *subject)
    message = (
        "specs/hardware/x.toml:1:6: invalid TOML: expected a value such as 2.5, 2016-11-01, true "
        'or "text", got the end of the line\n'
    )
    assert result.returncode == 1
    assert message in (result.stderr if subject else result.stdout)


def test_no_specs_here(tmp_path: Path) -> None:
    """A folder without specs is a one-line error."""
    result = check(tmp_path)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("expected a project, a folder with specs/, got ")
    assert "make one with `epochcost init DIR`" in result.stderr
    assert result.stderr.count("\n") == 1


def test_name_that_is_not_utf8(project: Path) -> None:
    """A file name with a line break and invalid UTF-8 is shown on one line."""
    (project / "specs/prices" / "a\nb\udcff.toml").write_text("", encoding="utf-8")
    result = check(project, "specs/prices")
    assert result.returncode == 1
    line = "specs/prices/a\\nb\\udcff.toml:1:1: should contain a spec, got an empty file\n"
    assert result.stdout == line


def test_observations_are_read_to_the_last_row(project: Path) -> None:
    """A missing table has a line, and so has each unreadable row."""
    folder = project / "specs" / "observations"
    spec = folder / "others.toml"
    spec.write_text(
        'id = "others"\nname = "Others"\ntable = "others.csv"\nlicence = "MIT"\n'
        'retrieved = 2026-11-23\nsource = "a test"\n',
        encoding="utf-8",
    )
    ended = check(project, "specs/observations")
    assert ended.returncode == 1
    assert "specs/observations/others.toml:3:1: table: should be a file in" in ended.stdout
    too_long = spec.read_text("utf-8").replace("others.csv", "o" * 300)
    spec.write_text(too_long, encoding="utf-8")
    ended = check(project, "specs/observations")
    assert "specs/observations/others.toml:3:1: table: should be the name of" in ended.stdout
    assert ended.stderr.endswith(" files checked, 1 fault\n")
    spec.write_text(too_long.replace("o" * 300, "others.csv"), encoding="utf-8")
    header = ",".join(COLUMNS)
    row = "x,,m,,infer,fp32,,,plain,GPU,1,,,{},samples/s,,MIT"
    table = "\n".join([header, row.format("1"), row.format("fast"), row.format("-1")])
    (folder / "others.csv").write_text(table + "\n", encoding="utf-8")
    ended = check(project, "specs/observations")
    assert ended.stdout.splitlines() == [
        "specs/observations/others.csv:3:1: value: expected a number above 0, got 'fast'",
        "specs/observations/others.csv:4:1: value: expected a number above 0, got '-1'",
    ]


@pytest.mark.parametrize(
    "command",
    ["check", "diff HEAD", "cheapest --model tiny", "tokens --model tiny --requests 1/s"],
)
def test_a_subfolder_of_a_project_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
) -> None:
    """A command in a subfolder of a project names the project, and reads no bundled specs."""
    monkeypatch.chdir(write_tiny_project(tmp_path) / "specs/models")
    code, out, err = printed(capsys, *command.split())
    assert (code, out) == (1, "")
    assert err.endswith(f": run this command in {tmp_path}\n")
