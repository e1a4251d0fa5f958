"""`epochcost tokens` as a person runs it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from analysis.test_served_tokens import asked_project
from analysis.test_tokens import project
from epochcost.cli.app import main


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a timed decoder, which is the working folder."""
    project(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ask(capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str, str]:
    """The exit code, and what was said."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["epochcost", "tokens", *options])
        with pytest.raises(SystemExit) as ended:
            main()
    said = capsys.readouterr()
    return ended.value.code or 0, said.out, said.err  # type: ignore[return-value]


USUAL = ("--model", "tiny", "--prompt", "100", "--output", "50")


@pytest.mark.usefixtures("root")
def test_machines_and_apis_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """What was asked, the machine with its cost, the API with its, and from when on which."""
    code, out, err = ask(capsys, *USUAL, "--requests", "0.1/s")
    assert (code, err) == (0, "")
    assert out.startswith("tiny, 0.1 requests a second, each 100 tokens read and 50 written\n")
    assert "This machine" in out
    assert "$18.52" in out
    assert "API: They, tiny: $2.00 a million, $1.00 read and $4.00 written" in out
    words = " ".join(out.split())
    assert "cheaper than This machine: Some, 2 vCPUs at any rate that one of it does" in words


@pytest.mark.usefixtures("root")
def test_rates_have_units(capsys: pytest.CaptureFixture[str]) -> None:
    """Six a minute are a tenth a second, as JSON says exactly."""
    code, out, _ = ask(capsys, *USUAL, "--requests", "6/min", "--format", "json")
    answer = json.loads(out)
    assert code == 0
    assert answer["requests_per_second"] in ("0.1", 0.1)
    (machine,) = answer["machines"]
    assert machine["machines"] == 1
    assert machine["evidence"] == "measured"
    for idle in ("", "_never_idle"):
        read, written, both = (
            float(machine[f"per_million_{kind}tokens{idle}"]["mean"])
            for kind in ("input_", "output_", "")
        )
        assert read * 100 + written * 50 == pytest.approx(both * 150)
    assert float(answer["apis"][0]["output_per_million"]) == 4


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--requests", "fast"), "requests: expected a rate above 0, such as 0.5/s"),
        (("--requests", "0/s"), "requests: expected a rate above 0"),
        (("--requests", "1/s", "--prompt", "250"), "expected at most 256 tokens together"),
        (("--requests", "1/s", "--ttft", "soon"), "duration: expected a number of seconds"),
    ],
)
@pytest.mark.usefixtures("root")
def test_a_fault_is_one_line(
    capsys: pytest.CaptureFixture[str], options: tuple[str, ...], words: str
) -> None:
    """What was demanded and what was got; nothing else."""
    code, out, err = ask(capsys, *USUAL, *options)
    assert (code, out) == (1, "")
    assert words in err
    assert "Traceback" not in err


def test_what_an_engine_was_measured_to_do_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A table of the rates, and what to expect between them; JSON has every percentile."""
    asked_project(tmp_path, {2.0: 1.0, 4.0: 2.0})
    monkeypatch.chdir(tmp_path)
    code, out, err = ask(capsys, *USUAL, "--requests", "3/s", "--wide")
    assert (code, err) == (0, "")
    words = " ".join(out.split())
    assert "prompts of 30 tokens and answers of 20" in words
    assert (
        "keeps 90 % of first tokens within 80 ms and further ones within 200 ms up to 4/s" in words
    )
    assert "at 3/s 90 % of first tokens come within" in words
    assert "the engine takes requests 1.5 s after its start" in words
    assert out.count("measured for") == 1
    assert "25 s" in words
    _, out, _ = ask(capsys, *USUAL, "--requests", "3/s", "--format", "json")
    (served,) = json.loads(out)["behind_an_engine"]
    assert [rate["requests"] for rate in served["rates"]] == [100, 100]
    assert served["rates"][0]["first_token_seconds"]["p99"] is None
    assert served["start_seconds"] == 1.5
