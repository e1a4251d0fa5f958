"""The GPU proof, rehearsed on the CPU: stages begin, fail in one line, and resume."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import cuda_checks
import cuda_proof
import pytest
from cuda_proof import FAILED, LEFT, NO_DEVICE, Outcome
from cuda_stages import STAGES, Asked, Case

from crowding import crowded
from epochcost.specs.loader import load_catalogue
from usable_providers import usable_providers

ROOT = Path(__file__).parents[2]
# A process that starts another and waits for it. Both hold the pipes of their output.
_WITH_CHILD = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
open(sys.argv[1], "w").write(str(child.pid))
child.wait()
"""


def proof(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the script with these arguments."""
    script = ROOT / "benchmarks/cuda_proof.py"
    return subprocess.run(
        [sys.executable, script, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )


def rehearsed(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the script on the CPU with the smallest model."""
    return proof(folder, *arguments, "--provider", "cpu", "--models", "mnist-mlp")


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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


def answers(monkeypatch: pytest.MonkeyPatch, device: str) -> list[str]:
    """Let every case answer at once on ``device``; returns the keys of the cases that ran."""
    keys: list[str] = []

    def run(case: Case, _most_seconds: float) -> Outcome:
        keys.append(case.key)
        said = device if case.key == "device" else "| a row |"
        return Outcome(case.command, 0, 1, said)

    monkeypatch.setattr(cuda_proof, "run", run)
    return keys


def main(monkeypatch: pytest.MonkeyPatch, *arguments: str | Path) -> int:
    """Run the script in this process."""
    monkeypatch.setattr(sys, "argv", ["cuda_proof.py", *map(str, arguments)])
    return cuda_proof.main()


def test_a_folder_can_move_and_tells_its_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The report needs no options, and nothing runs again when the folder has another path."""
    keys = answers(monkeypatch, "GPU 0: H200")
    stages = ("ceilings", "losses", "--models", "mnist-mlp", "--hardware", "h200-sxm-share")
    assert main(monkeypatch, tmp_path / "there", *stages) == 0
    assert keys == ["device", "ceilings", "mnist-mlp"]
    (tmp_path / "there").rename(tmp_path / "here")
    assert main(monkeypatch, tmp_path / "here", *stages) == 0
    assert keys[3:] == ["device"]
    capsys.readouterr()
    assert main(monkeypatch, tmp_path / "here", "ceilings", "losses", "--report") == 0
    report = capsys.readouterr().out
    assert report.startswith("Device: GPU 0: H200\n")
    assert "1 of 1 cases" in report
    assert "1 of 10 cases" in report


@pytest.mark.parametrize("provider", ["cuda", "cpu"])
def test_a_folder_keeps_the_outcomes_of_one_device(
    provider: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Another GPU, or a rehearsal on the CPU, adds nothing to the folder of a GPU."""
    answers(monkeypatch, "GPU 0: H200")
    assert main(monkeypatch, tmp_path, "ceilings") == 0
    keys = answers(monkeypatch, "GPU 0: H100")
    assert main(monkeypatch, tmp_path, "vcpus", "--provider", provider) == NO_DEVICE
    assert keys == ["device"]
    assert "name another folder" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--models", "--hardware"])
def test_an_unknown_name_is_told_before_anything_runs(
    option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A misspelt model would otherwise leave stages without cases, which looks like success."""
    keys = answers(monkeypatch, "GPU 0: H200")
    with pytest.raises(SystemExit) as stopped:
        main(monkeypatch, tmp_path, option, "mnist-mlpp")
    assert (stopped.value.code, keys) == (2, [])


def test_a_report_of_an_empty_folder_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line instead of an empty report."""
    with pytest.raises(SystemExit, match="expected outcomes of a run, found none"):
        main(monkeypatch, tmp_path, "--report")


def has_ended(process: int) -> bool:
    """Whether a process is gone, or only its status is left."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_all_processes_of_a_case_end_at_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A case's child that holds the pipes neither delays the end nor occupies the GPU after it."""
    monkeypatch.setattr(cuda_proof, "_STOP_SECONDS", 0.2)
    begun, file = time.monotonic(), tmp_path / "child"
    case = Case("sleeps", (sys.executable, "-c", _WITH_CHILD, str(file)))
    assert cuda_proof.run(case, 2) is None
    assert time.monotonic() - begun < 30
    child, ends = int(file.read_text()), time.monotonic() + crowded(20)
    while not has_ended(child):  # a killed process takes a moment to end
        assert time.monotonic() < ends
        time.sleep(0.01)


def test_a_signal_stops_the_running_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SIGTERM, as a rented machine's end sends it, ends the case and leaves it for another run."""
    monkeypatch.setattr(cuda_proof, "_STOP_SECONDS", 0.2)
    command = f"import os, time; os.kill({os.getpid()}, {signal.SIGTERM}); time.sleep(60)"
    case = Case("device", (sys.executable, "-c", command))
    monkeypatch.setattr(cuda_proof, "device_case", lambda _proof: case)
    begun = time.monotonic()
    assert main(monkeypatch, tmp_path) == LEFT
    assert time.monotonic() - begun < 30


def test_output_that_is_no_text_is_kept() -> None:
    """Bytes that are not UTF-8, as of a crash in C, do not end the proof."""
    script = "import os; os.write(1, b'\\xff')"
    outcome = cuda_proof.run(Case("bytes", (sys.executable, "-c", script)), 60)
    assert outcome is not None
    assert outcome.said == "\ufffd"


def test_a_loss_that_is_no_number_is_the_largest_difference(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The built-in ``max`` would pass over NaN."""
    monkeypatch.setattr(cuda_checks, "_first", lambda _case: [2, float("nan"), 2])
    (row,) = cuda_checks._losses(argparse.Namespace(model="mnist-mlp", provider="cuda"))
    assert row.endswith("| nan |")


@pytest.mark.slow
def test_a_step_without_its_contender_has_failed(tmp_path: Path) -> None:
    """A comparison for which PyTorch does not start is a failed case, and says why."""
    script = (sys.executable, ROOT / "benchmarks/training_step.py", "--models", "mnist-mlp")
    options = ("--contenders", "eager", "--batches", "32", "--threads", "1", "--again")
    process = subprocess.run(
        [*script, *options, "--records", tmp_path / "steps.json"],
        cwd=ROOT,
        env=os.environ | {"EPOCHCOST_STEPS_TORCH": "/bin/false"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 1
    assert "eager: did not run: nothing was said (exit 1)" in process.stderr


def test_a_rehearsal_runs_studies_for_the_cpu(tmp_path: Path) -> None:
    """A study for GPUs would fail on the CPU, and nothing of its stage be rehearsed."""
    catalogue = load_catalogue(ROOT)
    settings = Asked(catalogue, tmp_path, "cpu", "local")
    for name in ("models", "precisions", "vcpus", "batches", "server", "tokens"):
        for case in STAGES[name].cases(settings):
            study = catalogue.studies[case.command[case.command.index("--study") + 1]]
            assert "cpu" in study.providers, case.key
            assert "local" in study.hardware, case.key


@pytest.mark.parametrize("named", ["", "/opt/python"])
def test_steps_use_the_pytorch_of_this_interpreter(
    named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rented machine does not build an environment, unless another interpreter is named."""
    monkeypatch.delenv("EPOCHCOST_STEPS_TORCH", raising=False)
    if named:
        monkeypatch.setenv("EPOCHCOST_STEPS_TORCH", named)
    script = "import os; print(os.environ['EPOCHCOST_STEPS_TORCH'])"
    outcome = cuda_proof.run(Case("torch", (sys.executable, "-c", script)), 60)
    assert outcome is not None
    assert outcome.said == (named or sys.executable)
