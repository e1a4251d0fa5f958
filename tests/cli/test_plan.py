"""`epochcost plan`: what a run would do, for people and for machines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from epochcost.cli.app import app
from epochcost.errors import CapabilityError, InputError
from epochcost.results.environment import Gpu
from tiny_project import write_tiny_project
from usable_providers import usable_providers


@pytest.fixture(autouse=True)
def in_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test here stands in a tiny project."""
    monkeypatch.chdir(write_tiny_project(tmp_path / "project"))


def plan(*arguments: str) -> str:
    """What `epochcost plan` prints."""
    done = CliRunner().invoke(app, ["plan", *arguments], catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


def test_the_trials_are_listed_in_order() -> None:
    """A line for each trial, with its id, cheapest first."""
    lines = plan("--provider", "cpu").splitlines()
    assert lines[0] == "3 trials on local, at most 1.5 s of timing"
    assert [line[:26].rstrip() for line in lines[2:]] == [
        "tiny inference cpu batch 1",
        "tiny training cpu batch 2",
        "tiny training cpu batch 4",
    ]


def test_the_rounds_of_each_trial_are_told(tmp_path: Path) -> None:
    """As the study asks, beside the budget of all of them together; a quick run has one."""
    study = next((tmp_path / "project/specs/studies").glob("*.toml"))
    study.write_text(study.read_text().replace("rounds = 1", "rounds = 3"))
    lines = plan("--provider", "cpu").splitlines()
    assert lines[1].split() == ["trial", "rounds", "budget", "id"]
    assert {line.split()[-4] for line in lines[2:]} == {"3"}
    for arguments, rounds in (((), 3), (("--quick",), 1), (("--rounds", "7"), 7)):
        document = json.loads(plan("--provider", "cpu", "--format", "json", *arguments))
        assert {trial["rounds"] for trial in document["trials"]} == {rounds}


def test_json_holds_everything_that_defines_a_trial() -> None:
    """A machine reads the same trials, with the digests of their work."""
    document = json.loads(plan("--provider", "cpu", "--format", "json"))
    assert document["hardware"] == "local"
    assert [trial["batch_size"] for trial in document["trials"]] == [1, 2, 4]
    assert all(len(trial["graph_sha256"]) == 64 for trial in document["trials"])
    assert len({trial["id"] for trial in document["trials"]}) == 3


def test_gpus_are_listed_as_cuda_counts_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """By number, name and memory, for --device."""
    gpus = (Gpu(name="Tesla T4", memory_bytes=16 * 2**30, driver="580"),)
    monkeypatch.setattr("epochcost.cli.plan.shown_gpus", lambda: gpus)
    assert plan("--provider", "cpu").splitlines()[1] == "GPU 0: Tesla T4, 16.0 GiB"
    document = json.loads(plan("--provider", "cpu", "--format", "json"))
    assert document["gpus"] == [{"device": 0, "name": "Tesla T4", "memory_bytes": 2**34}]


@pytest.mark.skipif("cuda" in usable_providers(), reason="CUDA is usable here")
def test_a_gpu_is_asked_for_by_number() -> None:
    """Where there is none, the command ends in one line and exit code 3."""
    with pytest.raises(CapabilityError, match="expected a usable GPU"):
        plan("--device", "1")


@pytest.mark.skipif("cuda" in usable_providers(), reason="CUDA is usable here")
def test_what_is_left_out_has_its_reason() -> None:
    """Without a GPU the CUDA trials are named, with what is missing."""
    text = plan()
    assert "left out, because provider cuda: expected a usable GPU" in text
    assert "\n  tiny training cuda\n" in text
    document = json.loads(plan("--format", "json"))
    assert [left["what"] for left in document["left_out"]] == [
        "tiny training cuda",
        "tiny inference cuda",
    ]


def test_verbose_shows_how_large_the_models_are() -> None:
    """Parameters and arithmetic of every model, then the memory of every batch size."""
    lines = plan("--provider", "cpu", "--verbose").splitlines()
    assert max(map(len, lines)) <= 100
    table = lines[lines.index("and as it runs here:") + 1 :]
    assert table[0].split() == [
        "model",
        "parameters",
        "trained",
        *["forward", "3", "x", "forward", "step", "here"],
    ]
    assert table[1].split() == ["tiny", "51", "all", "9.60e1", "2.88e2", "1.92e2"]
    assert any(line.startswith("tiny training cpu: 2: ") and "4: " in line for line in table)


def test_verbose_has_models_that_no_study_names() -> None:
    """A graph beside the studies is counted, and a declared model is priced from its tokens."""
    folder = Path("specs/models")
    spec = (folder / "tiny.toml").read_text()
    (folder / "alone.toml").write_text(spec.replace('"tiny"', '"alone"', 1))
    (folder / "giant.toml").write_text(
        'id = "giant"\nname = "Giant"\ntask = "tests"\nexample = "a token"\nsource = "made up"\n'
        "[declared]\nparameters = 1_000\ntraining_tokens = 5_000\n"
    )
    text = plan("--provider", "cpu", "--verbose")
    rows = {line.split()[0]: line.split()[1:] for line in text.splitlines() if line.strip()}
    assert rows["giant"][0] == "1,000"
    assert rows["alone"] == rows["tiny"]
    assert "\nalone training cpu: 2: " in text
    assert "\nalone inference cpu: 1: " in text
    assert "giant: no graph; 3.00e7 FLOPs train it, 6 for each parameter and token" in text


def test_verbose_says_why_a_model_is_not_counted() -> None:
    """A graph that is no graph has no figures, and the others have theirs."""
    spec = Path("specs/models/tiny.toml").read_text()
    Path("specs/models/broken.toml").write_text(
        spec.replace('"tiny"', '"broken"', 1).replace("tiny.onnx", "broken.onnx")
    )
    Path("models/broken.onnx").write_bytes(b"no graph at all")
    text = plan("--provider", "cpu", "--verbose")
    assert "\nbroken: not counted: models/broken.onnx" in text
    assert "\ntiny training cpu: " in text


def test_planning_twice_gives_the_same_ids() -> None:
    """A plan has no hidden input: neither time nor chance."""
    assert plan("--format", "json") == plan("--format", "json")


def test_another_machine_is_refused_unless_taken_as_is() -> None:
    """The refusal names the option, which then plans for the machine that was named."""
    refused = CliRunner().invoke(app, ["plan", "--provider", "cpu", "--hardware", "giant"])
    assert isinstance(refused.exception, InputError)
    assert "--as-is" in str(refused.exception)
    assert "on giant" in plan("--provider", "cpu", "--hardware", "giant", "--as-is")
