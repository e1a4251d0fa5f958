"""`epochcost train` on scikit-learn's digits: output, files, costs, and resuming."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from called_program import exit_code
from epochcost.errors import InputError
from epochcost.results.store import load_sidecars
from epochcost.results.trainings import Repeat, Trainings
from heeded_signals import heeded_signals
from real_trainings import place_digits

ROOT = Path(__file__).parents[2]


@pytest.fixture(name="paths", autouse=True)
def kept_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """Options that keep a training's files in the test's folder; the project is this one."""
    monkeypatch.chdir(ROOT)
    place_digits(tmp_path / "data")
    folders = [f"--{name}={tmp_path / name}" for name in ("to", "results", "data")]
    return (*folders, "--threads", "1")


def repeats(folder: Path) -> list[Repeat]:
    """The repeats of the only stored training."""
    (record,) = load_sidecars(folder / "results", Trainings).records.values()
    return list(record.repeats)


def test_repeats_to_a_target_are_priced_and_stored(
    tmp_path: Path,
    paths: tuple[str, ...],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Time and cost are printed; another call prints the same, and says if the weights are gone."""
    arguments = ("--model", "digits-mlp", "--target", "accuracy >= 0.9", "--repeats", "2", *paths)
    assert exit_code("train", *arguments) == 0
    output = capsys.readouterr()
    assert "accuracy >= 0.9: 2 of 2 reached it; time " in output.out
    assert "at assumed-local, an assumed price" in output.out
    assert re.search(r"so far, about \S+ \S+ to go to the last step", output.err)
    before = repeats(tmp_path)
    assert [repeat.seed for repeat in before] == [0, 1]
    assert exit_code("train", *arguments) == 0
    again = capsys.readouterr()
    assert again.err.count("stored before: seed") == 2
    assert again.out == output.out
    assert repeats(tmp_path) == before
    weights = next(tmp_path.glob("to/*/seed-0/model.onnx"))
    weights.unlink()
    assert exit_code("train", *arguments) == 0
    assert f"{weights}: not there any more, or trained with" in capsys.readouterr().out


def test_a_training_whose_price_is_not_applicable_is_shown_without_cost(
    tmp_path: Path,
    paths: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A training with CUDA at a price per vCPU has no cost; times and weights are shown."""

    def share(*_: object) -> None:
        raise InputError("assumed-local: this plan prices vCPUs and no accelerator")

    monkeypatch.setattr("epochcost.cost.estimate.share", share)
    arguments = ("--model", "digits-mlp", "--epochs", "1", *paths)
    assert exit_code("train", *arguments) == 0
    output = capsys.readouterr().out
    assert "no cost: assumed-local: this plan prices vCPUs and no accelerator\n" in output
    assert f"weights: {tmp_path / 'to'}" in output


@pytest.mark.slow
def test_ctrl_c_loses_nothing_and_says_how_to_go_on(tmp_path: Path, paths: tuple[str, ...]) -> None:
    """The continued training has the weights of an uninterrupted one."""
    command = [sys.executable, "-m", "epochcost", "train", "--model", "digits-cnn", "--epochs", "6"]
    with (
        heeded_signals(),
        subprocess.Popen([*command, *paths], stderr=subprocess.PIPE, text=True) as process,
    ):
        assert process.stderr is not None
        assert "step 1 of at most 264" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        messages = process.stderr.read()
    assert process.returncode == 130
    assert f"the state is saved in {tmp_path / 'to'}" in messages
    assert "the same command continues" in messages
    done = subprocess.run([*command, *paths], capture_output=True, text=True, check=True)
    assert "continues at step" in done.stderr
    stopped, *_ = repeats(tmp_path)
    assert stopped.sessions == 2
    whole = subprocess.run([*command, *paths, "--anew"], capture_output=True, text=True, check=True)
    assert "continues" not in whole.stderr
    assert repeats(tmp_path)[0].sessions == 1
    assert repeats(tmp_path)[0].weights_sha256 == stopped.weights_sha256


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--target", "98"), 1, "--target: expected accuracy >= SHARE"),
        (("--dataset", "wmt14-en-de"), 1, "expected a table [data] or [generated] in its spec"),
        (("--dataset", "textured-shapes"), 1, "expected [64] numbers in each for the input"),
        (("--dataset", "digit"), 1, 'did you mean "digits"?'),
        (("--batch-size", "2000"), 1, "--batch-size: expected at most 1437 examples"),
    ],
)
def test_what_cannot_be_trained_is_one_line(
    paths: tuple[str, ...],
    arguments: tuple[str, ...],
    code: int,
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Wrong targets, data sets and sizes are refused before the first step."""
    assert exit_code("train", "--model", "digits-mlp", *arguments, *paths) == code
    output = " ".join(capsys.readouterr().err.split())
    assert message in output
    assert "Traceback" not in output


def test_a_folder_that_takes_no_record_is_said_before_the_first_step(
    tmp_path: Path, paths: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """A long training does not end with a record that cannot be stored."""
    (tmp_path / "results/local").mkdir(parents=True)
    (tmp_path / "results/local/trainings").write_text("a file")
    assert exit_code("train", "--model", "digits-mlp", *paths) == 3
    errors = capsys.readouterr().err
    assert "(--results names another folder)" in errors
    assert "step 1" not in errors
