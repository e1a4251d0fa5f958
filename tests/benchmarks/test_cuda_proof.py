"""The GPU proof, rehearsed on the CPU: stages begin, fail in one line, and resume."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from cuda_proof import FAILED, NO_DEVICE
from cuda_stages import STAGES, Asked

from epochcost.specs.loader import load_catalogue
from usable_providers import usable_providers

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]


def proof(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the script with these arguments."""
    script = ROOT / "benchmarks/cuda_proof.py"
    return subprocess.run(
        [sys.executable, script, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )


def rehearsed(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the script on the CPU with the smallest model."""
    return proof(folder, *arguments, "--provider", "cpu", "--models", "mnist-mlp")


def test_what_is_kept_is_not_run_again(tmp_path: Path) -> None:
    """Two checks print a row each. A second call reuses both, and the report has them."""
    first = rehearsed(tmp_path, "placement", "losses")
    assert first.returncode == 0, first.stderr
    outcomes = sorted(tmp_path.glob("*/mnist-mlp.json"))
    before = [path.stat().st_mtime_ns for path in outcomes]
    assert len(before) == 2
    assert rehearsed(tmp_path, "placement", "losses").returncode == 0
    assert [path.stat().st_mtime_ns for path in outcomes] == before
    report = rehearsed(tmp_path, "placement", "losses", "--report").stdout
    assert "| mnist-mlp | training | " in report
    assert "| mnist-mlp | inference | " in report
    assert "| mnist-mlp | 32 | 2." in report
    assert "0.0e+00 |" in report


def test_a_case_that_failed_is_told_and_can_be_run_again(tmp_path: Path) -> None:
    """A failed case is stored with its exit status and last output. Only --again repeats it."""
    assert rehearsed(tmp_path, "placement").returncode == 0
    (path,) = tmp_path.glob("placement/*.json")
    stored = json.loads(path.read_text()) | {"exit_code": 7, "said": "first\nno kernel for Conv"}
    path.write_text(json.dumps(stored))
    failed = rehearsed(tmp_path, "placement")
    assert failed.returncode == FAILED
    assert "mnist-mlp: failed with 7: no kernel for Conv" in failed.stdout
    assert "no kernel for Conv" in rehearsed(tmp_path, "placement", "--report").stdout
    assert rehearsed(tmp_path, "placement", "--again").returncode == 0


@pytest.mark.skipif("cuda" in usable_providers(), reason="there is a GPU")
def test_without_a_gpu_one_line_says_so(tmp_path: Path) -> None:
    """Without a GPU the script prints one line and has the status of a missing capability."""
    process = proof(tmp_path)
    assert (process.returncode, process.stdout) == (NO_DEVICE, "")
    assert len(process.stderr.splitlines()) == 1
    assert "expected a usable GPU" in process.stderr


def test_every_case_of_every_stage_can_be_named(tmp_path: Path) -> None:
    """The studies and models of all cases exist, and no two cases share a file."""
    settings = Asked(load_catalogue(ROOT), tmp_path, "cuda", "h200-sxm-share")
    for name, stage in STAGES.items():
        keys = [case.key for case in stage.cases(settings)]
        assert keys, name
        assert len({*keys}) == len(keys), name
