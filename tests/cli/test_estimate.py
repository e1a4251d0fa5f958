"""`epochcost estimate` as a person runs it: a range, its grounds, one line for each mistake."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from epochcost.cli.app import main
from report_project import write_project

SPECS = {
    "hardware/node": 'name = "Node"\nprovider = "A"\nvcpus = 8\nsource = "a test"\n'
    '[[accelerators]]\nname = "GPU"\ncount = 10\npeak_fp16_tflops = 100\n',
    "hardware/host": 'name = "Host"\nprovider = "A"\nvcpus = 8\npeak_fp32_tflops = 1\n'
    'source = "a test"\n',
    "models/big": 'name = "Big"\ntask = "language"\nexample = "a token"\n'
    "declared = { parameters = 1_000_000_000, training_tokens = 1_000_000_000 }\n"
    'source = "a test"\n',
    **{
        f"prices/{name}-hourly": f'hardware = "{name}"\nplan = "on-demand"\nprovider = "A"\n'
        'amount = 3.6\nbilling = "prorated"\nsource = "a test"\nas_of = 2026-01-01\n'
        for name in ("node", "host")
    },
}
NODE = ("--model", "big", "--price", "node-hourly")
HOST = ("--model", "net", "--price", "host-hourly")
Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """The command in a folder with a declared model and two machines."""
    write_project(tmp_path)
    for name, text in SPECS.items():
        path = tmp_path / f"specs/{name}.toml"
        path.write_text(f'id = "{path.stem}"\n{text}')
    monkeypatch.chdir(tmp_path)

    def command(*arguments: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["epochcost", "estimate", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        return int(ended.value.code or 0), printed.err or printed.out

    return command


def _json(run: Run, *arguments: str) -> dict[str, Any]:
    code, text = run(*arguments, "--format", "json")
    assert code == 0, text
    found: dict[str, Any] = json.loads(text)
    return found


def test_a_declared_model_is_priced_as_a_range(run: Run) -> None:
    """6e18 operations at 1e15 a second, half or a quarter of it used: 12000 s or twice that."""
    found = _json(run, *NODE, "--utilisation", "0.25-0.5")
    assert (found["kind"], found["training_flops"]) == ("estimated", "6" + 18 * "0")
    assert (found["seconds"]["low"], found["seconds"]["high"]) == ("12000", "24000")
    assert (found["total"]["low"], found["total"]["high"]) == ("12", "24")


def test_the_text_says_that_nothing_was_measured(run: Run) -> None:
    """With the source of the utilisation, which nobody gave."""
    code, text = run(*NODE)
    assert code == 0
    assert "estimated from FLOPs and not measured. Utilisation: 0.2 to 0.5 of the peak" in text
    assert "Chowdhery et al. 2022" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((*NODE, "--utilisation", "much"), "utilisation: expected a share or a range"),
        ((*NODE, "--utilisation", "0-0.5"), "utilisation: expected shares of the peak"),
        ((*NODE, "--utilisation", "nan"), "utilisation: expected a share or a range"),
        ((*NODE, "--precision", "fp32"), "node: expected a machine whose spec says its fp32 peak"),
        (HOST, "host: expected a machine whose spec says its fp16 peak, found none"),
        ((*NODE, "--machines", "0"), "machines: expected"),
        (("--model", "silent", "--price", "node-hourly"), "silent: expected a declared model"),
        (("--model", "bug", "--price", "node-hourly"), "unknown model"),
    ],
)
def test_a_mistake_is_one_line(run: Run, arguments: tuple[str, ...], message: str) -> None:
    """What was expected and what was got, without a traceback."""
    code, text = run(*arguments)
    assert code in {1, 2}
    assert text.startswith(message)
    assert text.count("\n") == 1
