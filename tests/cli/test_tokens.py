"""`epochcost tokens`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from analysis.test_served_tokens import asked_project
from analysis.test_tokens import project
from called_program import printed


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a timed decoder, as the working folder."""
    project(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ask(capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str, str]:
    """Run `epochcost tokens`; return its exit code, output and errors."""
    return printed(capsys, "tokens", *options)


USUAL = ("--model", "tiny", "--prompt", "100", "--output", "50")


@pytest.mark.usefixtures("root")
def test_machines_and_apis_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """The output is an answer in sentences, then a table of machines and APIs, by cost."""
    code, out, err = ask(capsys, *USUAL, "--requests", "0.1/s", "--wide")
    assert (code, err) == (0, "")
    first, answer, sure, machine, wins, *_ = out.splitlines()
    assert first == "tiny, 0.1 requests a second, each 100 tokens read and 50 written"
    assert answer == "Take an API: They, tiny, asks $2.00 a million tokens."
    assert sure == "It costs least of 2 machines and APIs in 100 of 100 scenarios."
    assert machine.startswith("The cheapest machine: This machine: Some, 2 vCPUs with ONNX Runtime")
    assert "$18.52 a million tokens, the same at any likely speed (measured; " in machine
    assert "(measured; one machine, 36 % busy, of at most 0.276 requests a" in machine
    assert wins == "At no load is a machine cheaper than that API."
    rows = out.partition("machine or API")[2].splitlines()[1:3]
    assert rows[0].startswith("They, tiny")
    assert "list price" in rows[0]
    assert "measured" in rows[1]


def test_the_published_precision_is_the_default(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first line and the JSON name it; the measured times in fp32 are no times in fp8."""
    spec = root / "specs/models/tiny.toml"
    text = spec.read_text().replace("[decoder]", '[decoder]\npublished_precision = "fp8"')
    spec.write_text(text)
    for options, first, machines in (
        ((), "tiny in fp8 (8 bits, as published), 0.1 requests", 0),
        (("--precision", "bf16"), "tiny, 0.1 requests", 1),
    ):
        asked = (*USUAL, "--requests", "0.1/s", *options)
        assert ask(capsys, *asked)[1].startswith(first)
        answer = json.loads(ask(capsys, *asked, "--format", "json")[1])
        assert answer["precision"] == (options or ("", "fp8"))[1]
        assert answer["published_precision"] == "fp8"
        assert len(answer["offers"]) == machines


@pytest.mark.usefixtures("root")
def test_a_dear_api_loses_from_some_rate(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A request costs 0.0051 USD there and an hour here 1 USD: from 0.0545 a second."""
    api = root / "specs/apis/theirs.toml"
    text = api.read_text().replace("input_per_million = 1", "input_per_million = 9")
    api.write_text(text.replace("output_per_million = 4", "output_per_million = 84"))
    _, out, _ = ask(capsys, *USUAL, "--requests", "0.1/s")
    lines = out.splitlines()
    assert lines[1].startswith("Self-host on This machine: Some, 2 vCPUs with ONNX Runtime")
    assert lines[3] == "The cheapest API: They, tiny, asks $34.00 a million tokens."
    assert lines[4].startswith("From 0.0545 requests a second for each machine, This machine: Some")
    assert "costs less than that API: $" in lines[4]
    assert lines[4].endswith("if 80 % busy.")
    _, out, _ = ask(capsys, *USUAL, "--requests", "0.1/s", "--batch")
    assert out.splitlines()[0].endswith("in batches (no API states a batch price)")
    _, out, _ = ask(capsys, *USUAL, "--requests", "0.1/s", "--format", "json")
    rate, _ = json.loads(out)["self_hosting_wins"]
    assert float(rate) == pytest.approx(1 / 3600 / 0.0051)


def test_an_assumed_price_has_a_break_even_load(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """If all prices of machines are assumed, the load is named at which they beat the API."""
    price = root / "specs/prices/list.toml"
    price.write_text(f"assumed = true\n{price.read_text()}")
    api = root / "specs/apis/theirs.toml"
    text = api.read_text().replace("input_per_million = 1", "input_per_million = 9")
    api.write_text(text.replace("output_per_million = 4", "output_per_million = 84"))
    _, out, _ = ask(capsys, *USUAL, "--requests", "0.1/s")
    assert "\nFrom 0.0545 requests a second for each machine, This machine: Some" in out


def test_the_number_of_hidden_rows_is_that_of_all(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The line below the table counts the second price plan of a machine, which `--all` shows."""
    plan = (root / "specs/prices/list.toml").read_text()
    spot = re.sub("id = .*", 'id = "spot"', plan.replace('"on-demand"', '"spot"'))
    (root / "specs/prices/spot.toml").write_text(spot)
    for options, rows in ((), 1), (("--all",), 2):
        _, out, _ = ask(capsys, *USUAL, "--requests", "0.1/s", "--wide", *options)
        assert out.count("\nThis machine: Some") == rows
        assert ("  … 1 more: --all" in out) == (rows == 1)


@pytest.mark.usefixtures("root")
def test_an_ended_offer_says_so(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An API that is no longer offered comes last, and is not called a list price."""
    api = root / "specs/apis/theirs.toml"
    api.write_text(api.read_text() + "valid_until = 2026-11-02\n")
    _, out, _ = ask(capsys, *USUAL, "--requests", "0.1/s", "--all", "--wide")
    (row,) = (line for line in out.splitlines() if line.startswith("They, tiny"))
    assert "no longer offered" in row
    assert "list price" not in row
    assert "\nNo API has a price for this model that is current" in out
    (root / "specs/prices/list.toml").unlink()
    _, out, _ = ask(capsys, *USUAL, "--requests", "0.1/s")
    assert "\nTake an API: They, tiny, asks $2.00 a million tokens (no longer offered).\n" in out


@pytest.mark.usefixtures("root")
def test_a_machine_that_misses_the_bounds_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    """A machine that is too slow is left out, with its latencies."""
    _, out, _ = ask(capsys, *USUAL, "--requests", "0.1/s", "--tpot", "50ms", "--ttft", "400ms")
    assert "Left out, too slow for the bounds: This machine: Some, 2 vCPUs in fp32" in out
    assert "(first token 500 ms, each further 125 ms)" in out
    for option in (("--precision", "int4"), ("--software", "vLLM")):
        _, out, _ = ask(capsys, *USUAL, "--requests", "0.1/s", *option, "--format", "json")
        assert json.loads(out)["offers"] == []


@pytest.mark.usefixtures("root")
def test_rates_have_units(capsys: pytest.CaptureFixture[str]) -> None:
    """In JSON, six requests a minute are exactly a tenth of a request a second."""
    code, out, _ = ask(capsys, *USUAL, "--requests", "6/min", "--format", "json")
    answer = json.loads(out)
    assert code == 0
    assert answer["requests"]["per_second"] == "0.1"
    (machine,) = answer["offers"]
    assert machine["machines"] == 1
    assert float(machine["busy"]) == pytest.approx(0.1 * 3.625)
    deployment = machine["deployment"]
    assert (deployment["software"], deployment["precision"]) == ("ONNX Runtime 1.31.1", "fp32")
    assert sum(answer["odds"]["shares"].values()) == pytest.approx(1)
    assert deployment["kind"] == "measured"
    assert [(api["api"], api["currency"]) for api in answer["apis"]] == [("theirs", "USD")]
    assert (machine["hour"], machine["currency"]) == ("1", "USD")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--requests", "fast"), "requests: expected a rate above 0, such as 0.5/s"),
        (("--requests", "0/s"), "requests: expected a rate above 0"),
        (("--requests", "1/s", "--prompt", "250"), "expected at most 256 tokens together"),
        (("--requests", "1/s", "--ttft", "soon"), "ttft: expected a number of seconds"),
        (("--requests", "1/s", "--tpot", "0s"), "tpot: expected more than 0"),
        (("--requests", "1/s", "--ttft", "1"), "ttft: expected a time with its unit"),
        (("--requests", "1/s", "--cached", "101%"), "cached: expected a percentage up to 100%"),
        (("--requests", "1/s", "--cached", "1"), "cached: expected a percentage up to 100%"),
        (("--requests", "1/s", "--cached", "60"), "cached: expected a percentage up to 100%"),
        (("--requests", "1/s", "--cached", "-1%"), "cached: expected a percentage up to 100%"),
        (("--requests", "1/s", "--cached", "most"), "cached: expected a decimal number"),
    ],
)
@pytest.mark.usefixtures("root")
def test_a_fault_is_one_line(
    capsys: pytest.CaptureFixture[str], options: tuple[str, ...], message: str
) -> None:
    """An invalid value is refused with the expected value, without a traceback."""
    code, out, err = ask(capsys, *USUAL, *options)
    assert (code, out) == (1, "")
    assert message in err
    assert "Traceback" not in err


def test_what_an_engine_was_measured_to_do_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The output has a table of the measured rates, and JSON has every rate."""
    asked_project(tmp_path, {2.0: 1.0, 4.0: 2.0})
    monkeypatch.chdir(tmp_path)
    code, out, err = ask(capsys, *USUAL, "--requests", "3/s", "--wide")
    assert (code, err) == (0, "")
    text = " ".join(out.split())
    assert "prompts of 30 tokens and answers of 20" in text
    assert (
        "keeps 90 % of first tokens within 80 ms and further ones within 200 ms up to 4/s" in text
    )
    assert "the engine accepts requests 1.5 s after its start" in text
    assert out.count("measured for") == 1
    assert "24.8 s" in text
    _, out, _ = ask(capsys, *USUAL, "--requests", "3/s", "--format", "json")
    (served,) = json.loads(out)["served"]
    assert [rate["requests"] for rate in served["rates"]] == [100, 100]
    assert served["rates"][0]["tokens"]["first"]["p90_nanoseconds"] > 0
    assert served["start_seconds"] == 1.5


def of_this_project(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *options: str
) -> tuple[int, str, str]:
    """Run `epochcost tokens` with this project's specs; return exit code, output and errors."""
    monkeypatch.chdir(Path(__file__).parents[2])
    return ask(capsys, "--requests", "2/s", "--prompt", "1000", "--output", "200", *options)


def test_machines_that_nobody_timed_are_predicted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Predicted machines have a precision, keep the bounds, and have an interval of costs."""
    options = ("--model", "llama-3.1-8b", "--ttft", "1s", "--tpot", "50ms", "--format", "json")
    code, out, err = of_this_project(monkeypatch, capsys, *options)
    assert (code, err) == (0, "")
    answer = json.loads(out)
    assert answer["apis"]
    deployments = [offer["deployment"] for offer in answer["offers"]]
    assert len({deployment["machine"]["hardware"] for deployment in deployments}) > 40
    for offer in answer["offers"]:
        assert offer["deployment"]["precision"] in {"bf16", "fp16"}
        assert offer["deployment"]["kind"] == "predicted"
        assert float(offer["capacity"]["first"]["mean"]) <= 1
        assert float(offer["capacity"]["token"]["mean"]) <= 0.05
        cost = offer["per_million"]
        assert float(cost["low"]) <= float(cost["mean"]) <= float(cost["high"])
    assert any(entry["reason"].startswith("does not fit") for entry in answer["refused"])


def test_one_gpu_holds_a_model_of_32_billion(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With `--devices 1`, Qwen3 32B in 16 bits is offered on devices of at least 80 GB only."""
    options = ("--model", "qwen3-32b", "--devices", "1", "--format", "json")
    code, out, err = of_this_project(monkeypatch, capsys, *options)
    assert (code, err) == (0, "")
    deployments = [offer["deployment"] for offer in json.loads(out)["offers"]]
    assert {deployment["tensor_parallel"] for deployment in deployments} == {1}
    hardware = {deployment["machine"]["hardware"] for deployment in deployments}
    assert {"lambda-1x-h100-sxm5", "nebius-1x-h200", "lambda-1x-gh200"} <= hardware
    assert not {"lambda-1x-a6000", "g6e.xlarge", "p4d.24xlarge"} & hardware


def test_a_model_that_fits_nowhere_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The error has the reason for which the software serves no machine."""
    options = ("--model", "mistral-large", "--software", "llama.cpp")
    code, out, err = of_this_project(monkeypatch, capsys, *options)
    assert (code, out) == (1, "")
    assert err.count("\n") == 1
    assert "not served by llama.cpp in bf16" in err
