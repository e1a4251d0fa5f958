"""Signals end a run even where Python or a library swallows the exception."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from called_program import exit_code
from epochcost.cli.interruption import interrupted_by_signals
from epochcost.plan.trial import Trial
from epochcost.results.records import Result
from epochcost.results.store import ResultStore
from graph_text import model_of_text
from heeded_signals import heeded_signals
from sound_results import sound_results
from tiny_project import write_tiny_project

# Sends a signal to itself while it imports a module.
_SIGNALLED = """
import os, signal, sys
from importlib.abc import MetaPathFinder
class Finder(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.{number})
sys.meta_path.insert(0, Finder())
sys.argv = ["epochcost", "check", "nowhere"]
from epochcost.__main__ import main
main()
"""


@pytest.mark.parametrize(
    ("module", "number"),
    [("typer", "SIGINT"), ("pydantic", "SIGTERM"), ("epochcost.specs.loader", "SIGHUP")],
)
def test_a_signal_while_the_program_loads_ends_it(module: str, number: str) -> None:
    """A signal before the command begins, and one while the command imports packages."""
    with heeded_signals():
        process = subprocess.run(
            [sys.executable, "-c", _SIGNALLED.format(module=module, number=number)],
            capture_output=True,
            text=True,
            check=False,
        )
    assert process.returncode == 130, process.stderr
    assert process.stderr in ("", "interrupted\n")


def test_a_connection_may_be_lost_where_that_is_ignored() -> None:
    """Where `nohup` ignores SIGHUP, the command continues."""
    script = _SIGNALLED.format(module="typer", number="SIGHUP")
    ignored = f"import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n{script}"
    command = [sys.executable, "-c", ignored]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 1
    assert "expected a file or folder of specs" in process.stderr


# Passes an equation to onnx on which its inference never ends, without our check.
_ENDLESS = """
import os, sys
from onnxstep.graphs import inference
inference._CHECKED = {}
fork = os.fork
def begun():
    child = fork()
    if child:
        print(child, flush=True)
    return child
os.fork = begun
from pathlib import Path
from epochcost.cli.interruption import INTERRUPTED, interrupted_by_signals
from onnxstep import load_model, training_step
try:
    with interrupted_by_signals():
        training_step(load_model(Path("m.onnx")))
except KeyboardInterrupt:
    sys.exit(INTERRUPTED)
"""


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGINT,
        pytest.param(signal.SIGTERM, marks=pytest.mark.slow),
        pytest.param(signal.SIGHUP, marks=pytest.mark.slow),
    ],
)
def test_a_library_that_never_returns_is_ended(tmp_path: Path, number: signal.Signals) -> None:
    """Shape inference that never returns runs in a child process, which is ended too."""
    model = model_of_text(
        "g (float[2,3] x, float[3] w) => (float[2,3] y) "
        '{ y = Einsum <equation = "......ij,j->ij"> (x, w) }'
    )
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    command = [sys.executable, "-c", _ENDLESS]
    with (
        heeded_signals(),
        subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process,
    ):
        assert process.stdout is not None
        copy = int(process.stdout.readline())
        process.send_signal(number)
        process.communicate()
    assert process.returncode == 130
    with pytest.raises(ProcessLookupError):
        os.kill(copy, 0)


class Swallowing:
    """Sends a signal to this process in a destructor, where exceptions are lost."""

    def __del__(self) -> None:
        signal.raise_signal(signal.SIGTERM)


def test_a_lost_signal_is_raised_again(capfd: pytest.CaptureFixture[str]) -> None:
    """A lost signal is raised at the next check and at the end, without a traceback."""
    with pytest.raises(KeyboardInterrupt):
        _interrupted_twice()
    assert capfd.readouterr().err == ""


def _interrupted_twice() -> None:
    with interrupted_by_signals() as require_no_signal:
        require_no_signal()
        Swallowing()
        with pytest.raises(KeyboardInterrupt):
            require_no_signal()


def test_other_errors_of_destructors_are_shown(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Errors in destructors are printed; only the interruption is not."""
    monkeypatch.setattr(sys, "unraisablehook", sys.__unraisablehook__)
    monkeypatch.setattr(Swallowing, "__del__", lambda _: 1 / 0)
    with interrupted_by_signals():
        Swallowing()
    assert "ZeroDivisionError" in capfd.readouterr().err


def test_signals_do_what_they_did_before() -> None:
    """The earlier handlers are restored afterwards."""
    before = signal.getsignal(signal.SIGTERM), sys.unraisablehook
    with contextlib.suppress(KeyboardInterrupt), interrupted_by_signals():
        signal.raise_signal(signal.SIGTERM)
    assert (signal.getsignal(signal.SIGTERM), sys.unraisablehook) == before


@pytest.mark.slow
def test_a_signal_lost_while_a_result_is_read_costs_no_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A result that the signal made unreadable is not replaced, and the run ends."""
    project = write_tiny_project(tmp_path / "project")
    monkeypatch.chdir(project)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    read: list[Trial] = []
    real = ResultStore.find

    def find(self: ResultStore, trial: Trial, hardware: str, fingerprint: str) -> Result | None:
        read.append(trial)
        if len(read) == 5:  # in the second of two rounds of three trials
            with contextlib.suppress(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
            return None
        return real(self, trial, hardware, fingerprint)

    monkeypatch.setattr(ResultStore, "find", find)
    with heeded_signals():
        assert exit_code("run", "--no-ceilings", "--provider", "cpu", "--rounds", "2") == 130
    assert "1 of 3 trials are stored, 2 more in some" in capsys.readouterr().err
    stored = sound_results(Path("docs/data/results"))
    assert sorted(len(result.measurement.samples_by_round) for result in stored) == [1, 1, 2]


def test_a_sweep_says_of_how_many_trials_only_what_it_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An interrupted sweep reports no total of trials."""

    def interrupted(*_: object) -> None:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.chdir(write_tiny_project(tmp_path / "project"))
    monkeypatch.setattr("epochcost.cli.run.run_trials", interrupted)
    with heeded_signals():
        assert exit_code("run", "--no-ceilings", "--provider", "cpu", "--batch-size", "auto") == 130
    assert "interrupted: 0 trials are stored; add" in capsys.readouterr().err
