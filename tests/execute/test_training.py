"""One repeat of a real training: resumed bit for bit, exported, ended by target or fault."""

from __future__ import annotations

import itertools
import random
import resource
import signal
import subprocess
import sys
import time
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest

from epochcost.errors import CapabilityError, InputError
from epochcost.execute.training import prepare, state_identity, state_path
from epochcost.measure.environment import detect_environment
from epochcost.specs.loader import load_catalogue
from epochcost.specs.training import OnPlateau
from epochcost.train.loop import TrainingDiverged, parse_target
from epochcost.train.state import Progress, read_state
from real_trainings import ROOT, prepared_digits, run

# A training in a process of its own, to be killed.
_KILLED = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from real_trainings import prepared_digits, run
print("begun", flush=True)
run(prepared_digits(Path(sys.argv[2]), save_seconds=0.0), Path(sys.argv[2]))
"""


def test_a_training_that_is_stopped_goes_on_to_the_same_weights(tmp_path: Path) -> None:
    """A training stopped twice within an epoch has the losses and weights of an unstopped one."""
    whole = run(prepared_digits(tmp_path), tmp_path / "whole")
    folder, steps = tmp_path / "parts", itertools.count()
    assert run(prepared_digits(tmp_path), folder, lambda: next(steps) > 17) is None
    assert run(prepared_digits(tmp_path), folder, lambda: next(steps) > 90) is None
    parts = run(prepared_digits(tmp_path), folder)
    assert whole is not None
    assert parts is not None
    assert parts.sessions == 3
    assert parts.weights_sha256 == whole.weights_sha256
    assert [p.loss for p in parts.curve] == [p.loss for p in whole.curve]
    assert [p.training_loss for p in parts.curve] == [p.training_loss for p in whole.curve]


def test_a_killed_training_goes_on_from_its_last_saved_state(tmp_path: Path) -> None:
    """After SIGKILL at random moments, the resumed training has the same final weights."""
    whole = run(prepared_digits(tmp_path), tmp_path / "whole")
    rng, killed = random.Random(0), 0
    for _ in range(3):
        command = [sys.executable, "-c", _KILLED, str(Path(__file__).parents[1]), str(tmp_path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(rng.uniform(0.1, 0.4))
            process.send_signal(signal.SIGKILL)
        killed += process.returncode == -signal.SIGKILL
    resumed = run(prepared_digits(tmp_path), tmp_path)
    assert killed
    assert whole is not None
    assert resumed is not None
    assert resumed.weights_sha256 == whole.weights_sha256


def test_the_exported_model_answers_as_the_training_did(tmp_path: Path) -> None:
    """A session of the exported file gives the accuracy of the last evaluation."""
    prepared = prepared_digits(tmp_path)
    repeat = run(prepared, tmp_path)
    assert repeat is not None
    session = ort.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    held_out = prepared.feed.examples.held_out
    images = np.asarray(held_out.examples.reshape(-1, 64) / 16, np.float32)
    (logits,) = session.run(["logits"], {"image": images})
    assert [each.name for each in session.get_inputs()] == ["image"]
    right = float(np.mean(np.argmax(logits, axis=1) == held_out.labels))
    assert right == repeat.curve[-1].accuracy


def test_a_target_ends_a_training_at_the_evaluation_that_meets_it(tmp_path: Path) -> None:
    """All earlier evaluations miss the target, and the record has the step that met it."""
    aim = parse_target("accuracy >= 85 %")
    repeat = run(prepared_digits(tmp_path, aim=aim), tmp_path)
    assert repeat is not None
    *before, last = repeat.curve
    assert repeat.ending == "reached"
    assert repeat.reached_step == repeat.steps == last.step
    assert all((point.accuracy or 0) < 0.85 for point in before)
    assert (last.accuracy or 0) >= 0.85


def test_a_rate_that_waits_for_a_plateau_is_refused(tmp_path: Path) -> None:
    """Rates of an on-plateau schedule depend on measured losses, not only on the step."""
    prepared = prepared_digits(tmp_path)
    asked = prepared.request
    schedule = OnPlateau(name="on-plateau")
    training = asked.training.model_copy(update={"schedule": schedule})
    with pytest.raises(InputError, match="expected a schedule by steps"):
        prepare(replace(asked, training=training), prepared.recipe, load_catalogue(ROOT), tmp_path)


@pytest.mark.parametrize(
    ("rate", "every", "words"),
    [
        ("1e15", 20, r"mean training loss before step 20: .* got \d"),
        ("1e18", 1000, r"got (nan|inf|others)"),
    ],
)
def test_a_divergence_keeps_the_state_before(
    tmp_path: Path, rate: str, every: int, words: str
) -> None:
    """A loss that explodes or is not finite ends the training, and its state is not saved."""
    prepared = prepared_digits(tmp_path, learning_rate=Decimal(rate), save_seconds=0.0)
    prepared = replace(prepared, recipe=replace(prepared.recipe, evaluate_every=every))
    with pytest.raises(TrainingDiverged, match=f"{words}.*lower the learning rate.*kept in"):
        run(prepared, tmp_path)
    saved = read_state(state_path(tmp_path), state_identity(prepared, 3))
    assert saved is not None
    assert all(np.isfinite(values).all() for values in saved.values.values())


def test_a_full_disk_keeps_the_state_before(tmp_path: Path) -> None:
    """A state that does not fit is dropped, and a rerun continues from the earlier state."""
    prepared = prepared_digits(tmp_path, save_seconds=0.0)
    limits, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.SIG_IGN
    before = signal.signal(signal.SIGXFSZ, handler)

    def fill(_progress: Progress, step: int, _loss: float) -> None:
        if step == 5:
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))

    try:
        with pytest.raises(CapabilityError, match="saved before is kept; make room and run the"):
            run(prepared, tmp_path, told=fill)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
    saved = read_state(state_path(tmp_path), state_identity(prepared, 3))
    assert saved is not None
    assert saved.progress.step == 4
    assert [each.name for each in tmp_path.iterdir()] == ["state.zip"]
    resumed, whole = run(prepared, tmp_path), run(prepared, tmp_path / "whole")
    assert resumed is not None
    assert whole is not None
    assert resumed.weights_sha256 == whole.weights_sha256


def test_another_training_does_not_go_on_from_a_state(tmp_path: Path) -> None:
    """A training of another recipe refuses the folder, and the message says to remove it."""
    run(prepared_digits(tmp_path), tmp_path)
    with pytest.raises(InputError, match="seed, recipe, machine or runtime: remove the file"):
        run(prepared_digits(tmp_path, epochs=4), tmp_path)


def test_another_runtime_makes_another_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A training under another runtime has its own id, which names its files and its state."""
    here = prepared_digits(tmp_path).id
    monkeypatch.setattr("epochcost.execute.training.runtime_name", lambda: "onnxruntime==1.30.0")
    assert prepared_digits(tmp_path).id != here


def test_a_training_does_not_go_on_with_the_times_of_another_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A state from another machine is refused, even if the training has ended there."""
    run(prepared_digits(tmp_path), tmp_path)
    other = detect_environment().model_copy(update={"fingerprint": "0" * 16})
    monkeypatch.setattr("epochcost.execute.training.detect_environment", lambda: other)
    with pytest.raises(InputError, match="machine or runtime: remove the file to begin again"):
        run(prepared_digits(tmp_path), tmp_path)
