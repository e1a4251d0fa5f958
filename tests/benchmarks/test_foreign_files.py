"""Other projects' files: each has an answer, a crash ends no other file, and refusals help."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from foreign import pool
from foreign.answers import Answer
from foreign.examine import GRADIENT, RUNTIME, Report
from foreign.runtime import open_session, runs
from foreign.slopes import Question, compare

from graph_text import model_of_text

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
LIMITS = pool.Limits(seconds=2, megabytes=2048)
_DENSE = "g (float[N,3] x) => (float[N,2] y) <float[3,2] w = {1,2,3,4,5,6}> { y = MatMul(x, w) }"
# Fed places: two updates of one place would have no gradient.
_PLACED = (
    "g (float[4,4,4] x, int64[2,2,2] places, float[2,2,4] u) => (float[4,4,4] y) "
    "{ y = ScatterND (x, places, u) }"
)
_COUNTED = "g (float[2] x) => (int64[1] y) { y = Shape(x) }"


def save(folder: Path, name: str, text: str) -> Path:
    """Write an ONNX file from the text of its graph."""
    path = folder / name
    onnx.save(model_of_text(text), path)
    return path


def without_data(folder: Path) -> None:
    """A file whose external weights are missing."""
    model = model_of_text(_DENSE)
    [weights] = model.graph.initializer
    weights.ClearField("float_data")
    weights.data_location = onnx.TensorProto.EXTERNAL
    weights.external_data.add(key="location", value="gone.bin")
    onnx.save(model, folder / "gone.onnx")


def test_each_content_has_its_answer_once(tmp_path: Path) -> None:
    """Copies count once, and a second call continues where the limit ended the first."""
    folder, results = tmp_path / "files", tmp_path / "results.jsonl"
    (folder / "deep").mkdir(parents=True)
    dense = save(folder, "dense.onnx", _DENSE)
    (folder / "deep/copy.onnx").write_bytes(dense.read_bytes())
    save(folder, "counted.onnx", _COUNTED)
    save(folder, "placed.onnx", _PLACED)
    (folder / "pointer.onnx").write_text("version 1\n", "utf-8")
    without_data(folder)
    command = [sys.executable, ROOT / "benchmarks/foreign_files.py", folder, "--json", results]
    for more in (["--limit", "2"], ["--resume", "--messages"]):
        process = subprocess.run([*command, *more], capture_output=True, text=True, check=True)
    rows = [json.loads(line) for line in results.read_text("utf-8").splitlines()]
    assert {row["path"]: row["answer"] for row in rows} == {
        "counted.onnx": Answer.NOTHING,
        "deep/copy.onnx": Answer.RIGHT,
        "gone.onnx": Answer.NO_DATA,
        "placed.onnx": Answer.RIGHT,
        "pointer.onnx": Answer.AS_RUNTIME,
    }
    assert len(rows) == 5
    assert "| right | 2 |" in process.stdout
    assert "5 files; 0 refusals" in process.stdout
    assert "there is no file '…'\n  (gone.onnx)" in process.stdout


def endless(path: Path, report: Report, fatal: str = "") -> None:
    """Hang, crash or use all memory, by the name of the file."""
    report.stage(RUNTIME if path.stem == "runtime" and not fatal else GRADIENT)
    if path.stem == "hangs":
        while True:
            pass
    if path.stem == "crashes" or (path.stem == "runtime" and not fatal):
        os.kill(os.getpid(), signal.SIGTERM)
    if path.stem == "grows":
        np.ones(2**30)


def test_a_file_ends_no_process_but_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hang, a crash and exhausted memory are answers, and a crashed runtime is left out."""
    monkeypatch.setattr(pool, "examine", endless)
    paths = [Path(name) for name in ("hangs", "crashes", "grows", "runtime", "ends")]
    examined = {file.path.stem: file for file in pool.examine_all(paths, LIMITS, jobs=2)}
    assert {name: file.answer for name, file in examined.items()} == {
        "hangs": Answer.HANG,
        "crashes": Answer.MEMORY,
        "grows": Answer.MEMORY,
        "runtime": Answer.UNJUDGED,
        "ends": Answer.UNJUDGED,
    }
    [crash] = examined["crashes"].findings
    assert (crash.stage, crash.message) == (GRADIENT, "the process ended with signal 15")


@pytest.mark.parametrize(("factor", "answer"), [("two", Answer.RIGHT), ("one", Answer.WRONG)])
def test_a_wrong_gradient_is_wrong(factor: str, answer: Answer) -> None:
    """The gradient of a square without its factor of two is detected."""
    model = model_of_text("g (float[3] x) => (float[3] y) { y = Mul(x, x) }")
    backward = model_of_text(
        f"""g (float[3] x, float[3] y_cotangent) => (float[3] y, float[3] x_gradient)
        <float two = {{2}}, float one = {{1}}>
        {{ y = Mul(x, x) d = Mul(y, y_cotangent) r = Div(d, x) x_gradient = Mul(r, {factor}) }}"""
    )
    run = runs(open_session(backward.SerializeToString()))
    x = {"x": np.array([0.5, -1.0, 2.0])}
    assert compare(Question(model, backward, {}, x, ("y",), run)).answer is answer
