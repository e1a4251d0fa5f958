"""`epochcost replay` as a person runs it: a comparison, exact JSON, rates, a line for a mistake."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from epochcost.cli.app import main
from report_project import write_project

MADE = Path(__file__).parents[2] / "specs" / "replays" / "made-three-zones.csv"
STEADY = (
    "time,zone,price,available\n"
    "2026-01-01T00:00Z,dear,2,1\n"
    "2026-01-01T00:00Z,cheap,1,1\n"
    "2026-01-02T00:00Z,dear,2,1\n"
)
SPECS = {
    "hardware/box.toml": 'name = "box"\nprovider = "A"\nvcpus = 8\n',
    "prices/box-on-demand.toml": (
        'hardware = "box"\nplan = "on-demand"\nprovider = "A"\namount = 4\nas_of = 2026-01-01\n'
    ),
}


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """The command in a folder with a machine, its price on demand and a trace of steady prices."""
    for name, text in SPECS.items():
        path = tmp_path / "specs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'id = "{path.stem}"\nsource = "a test"\n{text}')
    (tmp_path / "steady.csv").write_text(STEADY)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "130")

    def command(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["epochcost", "replay", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        return printed.err if ended.value.code else printed.out

    return command


STEADY_JOB = ("--trace", "steady.csv", "--hours", "10", "--state-gb", "10", "--interval", "2h")


def test_steady_prices(run: Callable[..., str]) -> None:
    """Ten hours and four saves of 20 s at $1, wherever it may go, and at $4 on demand."""
    text = run(*STEADY_JOB, "--hardware", "box", "--deadline", "20h")
    assert "a job: 10 h of work (as given)" in text
    assert "10 GB saved in 20 s after every 2 h of work" in text
    for words in (
        "staying in cheap",
        "moving when interrupted",
        "moving when it pays, too",
        "falling",
    ):
        line = next(line for line in text.splitlines() if line.startswith(words))
        assert "$10.02" in line
    assert "Staying as the closed form expects it: $10.02" in text
    assert "On demand it costs $40.00: spot saves 75 % at best" in text


def test_exact_figures(run: Callable[..., str]) -> None:
    """JSON has what the text has, with the spread over the starts."""
    found = json.loads(run(*STEADY_JOB, "--zones", "dear", "--format", "json"))
    assert found["trace"]["zones"] == ["dear"]
    best, *others = found["comparison"]["results"]
    assert best["cost"]["worst"] == pytest.approx(2 * (10 + 80 / 3600))
    assert [one["policy"] for one in others] == ["cheapest", "gap"]
    assert found["job"]["save_seconds"] == 20
    assert found["comparison"]["on_demand"] is None


def test_the_made_trace(run: Callable[..., str]) -> None:
    """What the documentation says of it: moving where it pays beats the best single zone."""
    text = run("--trace", str(MADE), "--hours", "24", "--on-demand", "3", "--deadline", "36h")
    assert "996 starts, evenly over the trace; 4 more would end after the trace" in text
    assert "Moving when it pays, too costs 17 % less than the best single zone" in text
    one = run("--trace", str(MADE), "--hours", "24", "--policy", "gap", "--starts", "10")
    assert "moving when interrupted" not in one
    assert "On demand: price unknown; give --on-demand" in one


def test_rates_for_a_price(run: Callable[..., str]) -> None:
    """Lines for a price spec, with the trace and its window."""
    text = run("--trace", str(MADE), "--rate", "--zones", "made-a")
    assert "# made-a: 20 interruptions in 315 h of running," in text
    assert "# 2026-01-01T00:00Z to 2026-01-14T23:00Z, " in text
    assert "[interruptions]\nrate_per_hour = 0.0635" in text
    assert "low = 0.039, high = 0.098" in text
    [rate] = json.loads(run("--trace", str(MADE), "--rate", "--zones", "made-a", "--format=json"))
    assert (rate["interruptions"], rate["hours"]) == (20, 315)


def test_a_notice(run: Callable[..., str]) -> None:
    """Long enough to save in, it is set beside staying without one; too short, it says so."""
    job = ("--trace", str(MADE), "--hours", "24", "--state-gb", "10")
    text = run(*job, "--notice", "30s")
    assert "10 GB saved in 20 s within the notice of 30 s" in text
    with_notice = float(text.split("staying in made-a")[1].split("$")[1].split()[0])
    without = float(text.split("Staying, with no notice to save in: $")[1].split()[0])
    assert with_notice < without
    text = run(*job, "--notice", "10s")
    assert "A notice of 10 s saves nothing: a save takes 20 s" in text


def test_a_model_on_a_machine(
    run: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The work is the published time of all epochs, the price on demand the machine's."""
    project = write_project(tmp_path / "other")
    monkeypatch.chdir(project)
    job = ("--model", "net", "--hardware", "box", "--trace", str(tmp_path / "steady.csv"))
    text = run(*job, "--state-gb", "10")
    assert "net on box: 3.33 min of work (published)" in text
    assert "On demand it costs $0.044" in text
    text = run(*job)
    assert "expected a model with a graph" not in text
    text = run("--model", "silent", "--hardware", "box", "--trace", str(tmp_path / "steady.csv"))
    assert "silent: expected a time of its training on box, found none" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--trace", "steady.csv"), "replay: expected either --model or --hours, got neither"),
        (
            ("--trace", "steady.csv", "--model", "m"),
            "replay: expected --hardware with --model, the machine of its time",
        ),
        ((*STEADY_JOB, "--zones", "chep"), 'got "chep"; did you mean "cheap"?'),
        ((*STEADY_JOB, "--policy", "sty"), "got 'sty'; did you mean \"stay\"?"),
        ((*STEADY_JOB, "--policy", "deadline"), "expected a deadline and a price on demand"),
        ((*STEADY_JOB, "--on-demand", "-1"), "on-demand: expected an amount above 0, got -1"),
        ((*STEADY_JOB[:3], "30"), "trace: expected one longer than the work, 30 h, got 24 h"),
        ((*STEADY_JOB, "--bid", "0.5"), "expected one in which the job ends under every policy"),
    ],
)
def test_mistakes(run: Callable[..., str], arguments: tuple[str, ...], message: str) -> None:
    """Each is one line."""
    text = run(*arguments)
    assert message in text
    assert text.count("\n") == 1


def test_prices_alone_tell_no_rate(run: Callable[..., str]) -> None:
    """A history of prices says nothing of when there was no machine."""
    Path("prices.csv").write_text(STEADY.replace(",available", "").replace(",1\n", "\n"))
    text = run("--trace", "prices.csv", "--rate")
    assert "prices.csv: expected a trace that says when there was no machine, got prices" in text
    shown = run("--trace", "prices.csv", "--hours", "10")
    assert "The trace says no word of availability: only a --bid" in shown
