"""`epochcost results import`: costs, files and errors."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from called_program import printed
from tool_exports import GUIDELLM, VLLM, rack_project, write_export

ASK = ("tokens", "--model", "tiny", "--requests", "1/s", "--prompt", "100", "--output", "50")
TERMS = ("--model", "tiny", "--hardware", "rack")


@pytest.fixture(name="root")
def root_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a decoder and the machine "rack", as the working folder."""
    rack_project(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


def test_a_run_is_priced_and_stored(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A published run on 16 GPUs is priced, and `tokens` lists it afterwards."""
    path = write_export(root, VLLM, "c32_gpus_16.json")
    code, out, err = printed(capsys, "results", "import", str(path), *TERMS, "--rate", "2.31")
    assert (code, err) == (0, "")
    assert "2 of A rack, 16 GPUs  32 at once           $1.7194  $3.4388  $3.4388" in out
    assert out.endswith("Reported by you, 1 run of tiny in docs/data/results/rack/reported\n")
    code, out, _ = printed(capsys, *ASK)
    assert code == 0
    assert "Reported by you:\n" in out
    assert "$1.7194" in out


def test_a_named_folder_of_reported_runs_is_checked(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`check --results` counts an imported run, and finds an edit or another root."""
    exported = write_export(root, VLLM)
    printed(capsys, "results", "import", str(exported), *TERMS, "--rate", "2.31")
    (path,) = root.glob("docs/data/results/rack/reported/*.json")
    checked = printed(capsys, "check", "--results", str(path.parent))
    assert checked == (0, "", "0 results and 1 other record checked, 0 faults\n")
    outside = shutil.copytree(root / "docs/data/results/rack", root / "outside/rack")
    code, out, _ = printed(capsys, "check", "--results", str(outside))
    assert (code, "got one outside: copy it there" in out) == (1, True)
    path.write_text(path.read_text("utf-8").replace('"tiny"', '"tinny"'), "utf-8")
    other = root / "docs/data/results/rack/ceilings/none.json"
    other.parent.mkdir()
    other.write_text("{}")
    for named in (path, path.parent):
        code, out, _ = printed(capsys, "check", "--results", str(named))
        assert (code, out.count("\n")) == (1, 1)
        assert "expected a model whose spec has [decoder], got 'tinny'" in out
    assert printed(capsys, "check", "--results", str(other.parent.parent))[1].count("\n") == 2


def test_json_has_exact_costs_and_withholds_tails(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The 99.9th percentile of 320 requests is null; the 99th has a value."""
    path = write_export(root, VLLM)
    code, _, _ = printed(
        capsys, "results", "import", str(path), *TERMS, "--gpus", "16", "--rate", "2.31"
    )
    assert code == 0
    code, out, _ = printed(capsys, *ASK, "--format", "json")
    (row,) = json.loads(out)["reported"]
    assert row["per_million"]["mean"].startswith("1.719386489730159989")
    record = row["record"]
    assert (record["terms"]["gpus"], record["terms"]["machines"]) == (16, 2)
    assert (record["run"]["first"]["p99"], record["run"]["first"]["p99_9"]) == (1.55391, None)


def test_doubts_are_said_below_the_table(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A doubt names the machine, the GPUs and the request rate of its run."""
    path = write_export(root, GUIDELLM)
    code, out, _ = printed(capsys, "results", "import", str(path), *TERMS)
    assert code == 0
    assert "doubt: A rack, 8 GPUs, 4 requests/s: 10 of 400 requests failed" in out
    assert out.endswith("Reported by you, 3 runs of tiny in docs/data/results/rack/reported\n")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--rate", "0"), "--rate 0: expected a price above 0, without --price"),
        (("--rate", "2", "--price", "rack-11-01"), "without --price"),
        (("--rate", "much"), "rate: "),
    ],
)
def test_a_fault_is_one_line(
    root: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], message: str
) -> None:
    """The exit code is 1, the error is one line, and nothing is stored."""
    path = write_export(root, VLLM)
    code, out, err = printed(capsys, "results", "import", str(path), *TERMS, *options)
    assert (code, out) == (1, "")
    assert message in err
    assert err.count("\n") == 1
    assert not list(root.glob("docs/data/results/*/reported/*"))


def test_a_file_that_is_cut_off_is_one_line(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The line names the file, the expected format, and the place where the file ends."""
    path = root / "half.json"
    path.write_text(json.dumps(VLLM)[:200])
    code, out, err = printed(capsys, "results", "import", str(path), *TERMS)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith(f"{path}: expected the JSON of vLLM's `bench serve --save-result`")
    assert "got a file that is cut off (line 1, column " in err


def test_a_duration_of_zero_is_doubted(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run of vLLM without a duration has rates that cannot be checked."""
    path = write_export(root, {**VLLM, "duration": 0})
    code, out, _ = printed(capsys, "results", "import", str(path), *TERMS)
    assert code == 0
    assert "32 at once: the file states no duration above 0 of the run" in out
