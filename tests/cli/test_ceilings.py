"""`epochcost ceilings`, and the ceilings that a run measures at its end."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from called_program import exit_code
from epochcost.errors import CapabilityError
from epochcost.measure.ceilings import CeilingWork
from epochcost.results.ceilings import Ceiling, Ceilings
from epochcost.results.environment import Conditions
from epochcost.results.store import load_sidecars, write_sidecar
from kept_ceilings import ceiling
from tiny_project import write_tiny_project

RESULTS = Path("docs/data/results")
CALM = Conditions(seconds=1.0, others_cpus=0.0, steal_share=0.0)
BUSY = Conditions(seconds=1.0, others_cpus=1e9, steal_share=0.0)


@pytest.fixture(name="measured_threads", autouse=True)
def asked_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A tiny project with fake ceilings; the list has the thread counts of each measurement."""
    monkeypatch.chdir(write_tiny_project(tmp_path / "project"))
    measured_threads: list[int] = []

    def measured(work: CeilingWork) -> tuple[Ceiling, ...]:
        measured_threads.append(len(work.threads))
        return tuple(ceiling(count, 1e11 * count, 1e10) for count in work.threads)

    monkeypatch.setattr("epochcost.measure.ceilings.measure_apart", measured)
    monkeypatch.setattr("epochcost.cli.run.run_trials", lambda *_: ())
    monkeypatch.setattr("epochcost.cli.ceilings.look_at_host", lambda: CALM)
    return measured_threads


def test_a_run_takes_them_once(
    capsys: pytest.CaptureFixture[str], measured_threads: list[int]
) -> None:
    """The first run measures the ceilings of this host; later runs do not."""
    command = ("run", "--provider", "cpu", "--resume")
    assert exit_code(*command, "--no-ceilings") == 0
    assert not measured_threads
    assert exit_code(*command) == 0
    messages = capsys.readouterr().err
    assert re.search(r"ceilings of cpu: .* FLOP/s, .* bytes/s copied", messages)
    assert exit_code(*command) == 0
    assert "ceilings" not in capsys.readouterr().err
    assert len(measured_threads) == 1
    assert len(load_sidecars(RESULTS, Ceilings).records) == 1


@pytest.mark.parametrize("command", ["run", "ceilings"])
def test_a_busy_machine_is_told(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """If other programs are busy, the rates may be too low; a command measures them again."""
    assert exit_code(command, "--provider", "cpu") == 0
    assert "too low" not in capsys.readouterr().err
    for path in RESULTS.rglob("*.json"):
        path.unlink()
    monkeypatch.setattr("epochcost.cli.ceilings.look_at_host", lambda: BUSY)
    assert exit_code(command, "--provider", "cpu") == 0
    message = capsys.readouterr().err
    assert "the ceilings may be too low, because other programs keep" in message
    assert "`epochcost ceilings --hardware local --provider cpu` measures them again" in message


def test_the_advice_names_the_gpu(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command that measures again measures the same GPU."""
    monkeypatch.setattr("epochcost.cli.ceilings.require_cuda", lambda _: None)
    monkeypatch.setattr("epochcost.cli.ceilings.look_at_host", lambda: BUSY)
    assert exit_code("ceilings", "--provider", "cuda", "--device", "1") == 0
    assert "--hardware local --provider cuda --device 1` measures" in capsys.readouterr().err


def test_ceilings_of_an_older_form_are_measured_once_more(measured_threads: list[int]) -> None:
    """A run replaces the stored ceilings of an older version."""
    assert exit_code("run", "--provider", "cpu") == 0
    ((path, record),) = load_sidecars(RESULTS, Ceilings).records.items()
    write_sidecar(RESULTS, record.model_copy(update={"ceilings_version": 1}))
    assert exit_code("run", "--provider", "cpu") == 0
    assert (
        load_sidecars(RESULTS, Ceilings).records[path].ceilings_version == record.ceilings_version
    )
    assert len(measured_threads) == 2


def test_a_run_whose_ceilings_fail_keeps_its_results(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A failed measurement of ceilings is reported, and the run succeeds."""

    def refuse(*_: object) -> None:
        raise CapabilityError("expected the ceilings of this machine, found no memory")

    monkeypatch.setattr("epochcost.measure.ceilings.measure_apart", refuse)
    assert exit_code("run", "--provider", "cpu") == 0
    output = capsys.readouterr()
    assert "0 of 0 results are in" in output.out
    assert "ceilings: expected the ceilings of this machine, found no memory" in output.err


def test_ceilings_of_a_missing_gpu_name_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a usable GPU, the command says what the machine lacks, as a run does."""
    missing = ("an NVIDIA driver",)
    monkeypatch.setattr("epochcost.measure.runtime._missing_for_cuda", lambda: missing)
    assert exit_code("ceilings", "--provider", "cuda") == CapabilityError.exit_code
    assert "this machine lacks an NVIDIA driver: " in capsys.readouterr().err


def test_the_command_measures_again_and_shows(
    capsys: pytest.CaptureFixture[str], measured_threads: list[int]
) -> None:
    """The table shows the spread, and each call measures again."""
    assert exit_code("ceilings") == 0
    output = capsys.readouterr().out
    assert "100 (95.24 to 102)" in output
    assert exit_code("ceilings") == 0
    assert len(measured_threads) == 2
