"""A wrong command line is refused with all missing options and with suggestions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from typer.testing import CliRunner

from epochcost.cli.app import app


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("tokens", "missing: --model, --requests"),
        ("weightless", "missing: FILE, --out"),
        ("data import", "missing: NAME, PATH"),
        ("prices import x.csv", "missing: --provider, --as-of, --source"),
        ("finetune --examples 3", "Missing option '--model'"),
        ("cheapest --model m --mode serve", "unknown 'serve'; did you mean 'inference'?"),
        ("cheapest --model m --mode trainin", "unknown 'trainin'; did you mean 'training'?"),
        ("quote --rate 1 --billing hourly --duration 1h", "did you mean 'whole-hour'?"),
        ("run --provider gpu", "unknown 'gpu'; did you mean 'cuda'?"),
        ("run --provider tpux", "expected one of cpu, cuda, got 'tpux'"),
        ("run --rounds x", "'--rounds': expected a whole number, got 'x'"),
        ("run --rounds 0", "expected a number greater than or equal to 1, got '0'"),
        ("run --patience x", "expected a number, got 'x'"),
        (
            "prices import x.csv --provider p --source s --as-of 2026-02-30",
            "'--as-of': expected a day of the calendar, such as 2016-11-01, got '2026-02-30'",
        ),
    ],
)
def test_refused_in_plain_words(line: str, message: str) -> None:
    """All missing options are named; a wrong value has a suggestion or the choices."""
    result = CliRunner().invoke(app, line.split(), env={"COLUMNS": "200"})
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Value error" not in result.stderr


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("weightless README.md -o README.md", "expected a file name that ends in .onnx"),
        ("serve --dev-addr 127.0.0.1:99999", "--dev-addr: expected an address and a port, got 127"),
        ("cheapest --model resnet50 --results nowhere", "expected a folder of results, got nowher"),
        ("plan --provider cpu --device 0", "--device: cannot be combined with --provider cpu"),
        ("run --provider cpu --device 0", "--device: cannot be combined with --provider cpu"),
        ("ceilings --device 1", "--device: cannot be combined with --provider cpu"),
    ],
)
def test_refused_before_anything_is_read(line: str, message: str) -> None:
    """A value that no run can use is named."""
    assert message in str(CliRunner().invoke(app, line.split()).exception)


def test_the_place_of_a_file_without_weights(tmp_path: Path) -> None:
    """An existing file stays as it is, and a missing folder is named."""
    path = tmp_path / "model.onnx"
    values = np.arange(12, dtype=np.float32).reshape(4, 3)
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> '
        "g (float[2,4] x) => (float[2,3] y) { y = MatMul(x, w) }"
    )
    model.graph.initializer.append(onnx.numpy_helper.from_array(values, "w"))
    onnx.save(model, path)
    before = path.read_bytes()
    result = CliRunner().invoke(app, ["weightless", str(path), "-o", str(path)])
    assert "expected a new file" in str(result.exception)
    assert path.read_bytes() == before
    missing = tmp_path / "missing"
    result = CliRunner().invoke(app, ["weightless", str(path), "-o", str(missing / "new.onnx")])
    assert f"{missing}: expected a folder that takes a new file, got No" in str(result.exception)


def test_help_needs_no_options() -> None:
    """Help is printed although required options are missing."""
    assert CliRunner().invoke(app, ["finetune", "--help"]).exit_code == 0
