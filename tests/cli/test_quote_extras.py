"""What `epochcost quote` shows beside a bill: projects, energy, another currency."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from epochcost.cli.app import main
from epochcost.results.conditions import Energy
from report_project import make_result, store_results, write_project

SOURCE = 'source = "a test"\n'
SPECS = {
    "hardware/box": 'name = "Box"\nprovider = "here"\nvcpus = 4\n'
    + SOURCE
    + '[[accelerators]]\nname = "GPU"\ncount = 2\npower_watts = 500\n',
    "hardware/mute": 'name = "Mute"\nprovider = "here"\nvcpus = 4\n' + SOURCE,
    "prices/rented": 'hardware = "box"\nplan = "on-demand"\nprovider = "A"\namount = 0.9\n'
    "as_of = 2026-01-01\n" + SOURCE,
    "prices/unknown": 'hardware = "mute"\nplan = "on-demand"\nprovider = "A"\namount = 0.9\n'
    "as_of = 2026-01-01\n" + SOURCE,
    "prices/bought": 'hardware = "mute"\nplan = "owned"\nprovider = "me"\nassumed = true\n'
    "as_of = 2026-01-01\n"
    + SOURCE
    + "[owned]\npurchase = 100\nyears = 4\nutilisation = 1\npower_watts = 1000\npue = 1.25\n"
    "electricity_per_kwh = 0.2\n",
    "grids/here": 'name = "Here"\nkg_co2e_per_kwh = 0.5\npue = 1.5\nyear = 2023\n' + SOURCE,
    "currencies/usd-eur": 'base = "USD"\nquote = "EUR"\nrate = 0.8\nas_of = 2026-06-01\n' + SOURCE,
}
Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """The command for an hour of use: its exit code, and what it printed."""
    for name, text in SPECS.items():
        path = tmp_path / "specs" / f"{name}.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'id = "{path.stem}"\n{text}')
    monkeypatch.chdir(tmp_path)

    def command(*arguments: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["epochcost", "quote", "--duration", "1h", *arguments])
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


def test_a_known_project_on_four_machines(run: Run) -> None:
    """Twenty runs at 0.90, five in a row on each of four machines."""
    found = _json(run, "--price", "rented", "--project", "ai21", "--machines", "4")
    assert found["total"] == "18"
    assert found["project"]["runs"] == 20
    assert found["project"]["in_sequence_seconds"] == "72000"
    assert found["project"]["at_once_seconds"] == "18000"


def test_failed_runs_in_words(run: Run) -> None:
    """The share, the line, and both times."""
    options = ("--configurations", "2", "--repeats", "4", "--failed-share", "0.2")
    _, text = run("--price", "rented", *options, "--machines", "2")
    assert "failed runs, expected" in text
    assert "2 configurations of 4 runs each, 0.2 of all that are started fail" in text
    assert "One after the other: 10 h." in text
    assert "2 runs at once: 5 h, for the same money." in text


def test_energy_stands_beside_the_money(run: Run) -> None:
    """Two accelerators of 500 W at half their power, PUE 1.5 and half a kilogram per kWh."""
    found = _json(run, "--price", "rented", "--grid", "here", "--load", "0.5")
    energy = found["energy"]
    assert found["total"] == "0.9"
    assert (energy["machines_kwh"], energy["building_kwh"]) == ("0.5", "0.75")
    assert (energy["kg_co2e"], energy["grid_year"], energy["measured"]) == ("0.375", 2023, False)
    assert "the accelerators of box alone at a load of 0.5" in energy["source"]


def test_energy_of_a_project_counts_failed_runs(run: Run) -> None:
    """Eight runs and the two that fail, of a kilowatt each."""
    project = ("--repeats", "8", "--failed-share", "0.2")
    found = _json(run, "--price", "rented", *project, "--grid", "here", "--pue", "1")
    assert abs(float(found["energy"]["building_kwh"]) - 10) < 1e-12


def test_energy_of_an_owned_machine_and_of_a_rate(run: Run) -> None:
    """By the plan's power and PUE; a bare rate has a machine only where --watts says so."""
    owned = _json(run, "--price", "bought", "--grid", "here")["energy"]
    assert (owned["machines_kwh"], owned["pue"]) == ("1", "1.25")
    rate = ("--rate", "1", "--billing", "prorated", "--grid", "here")
    assert _json(run, *rate, "--watts", "200")["energy"]["machines_kwh"] == "0.2"
    assert run(*rate)[0] == 2


def test_unknown_power_is_said_and_is_no_zero(run: Run) -> None:
    """The bill stands; of the energy there is a reason."""
    assert "unknown" in _json(run, "--price", "unknown", "--grid", "here")["energy"]
    text = run("--price", "unknown", "--grid", "here")[1]
    assert "Energy: not known. mute: its power is not known; say it with --watts." in text


def test_the_total_in_another_currency(run: Run) -> None:
    """By the rate of its day, which is named."""
    found = _json(run, "--price", "rented", "--currency", "EUR", "--rate-day", "2026-06-30")
    assert found["total"] == "0.9"
    assert found["converted"]["total"] == "0.72"
    assert found["converted"]["rate_as_of"] == "2026-06-01"
    text = run("--price", "rented", "--currency", "EUR")[1]
    assert "In EUR: €0.72, by 1 USD = 0.8 EUR on 2026-06-01 (usd-eur)." in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--currency", "EUR", "--rate-day", "2016-01-01"), "the oldest is of 2026-06-01"),
        (("--currency", "CHF"), "found none: add one to specs/currencies/"),
        (("--currency", "XXY"), "currency: expected a code of ISO 4217"),
        (("--currency", "EUR", "--rate-day", "soon"), "day: expected a date such as 2026-06-01"),
        (("--rate-day", "2026-06-01"), "quote: --rate-day demands"),
        (("--grid", "her"), "unknown grid"),
        (("--watts", "100"), "quote: --watts, --load, --pue and --power-of demand"),
        (("--grid", "here", "--watts", "nan"), "watts: expected a finite number"),
        (("--grid", "here", "--watts", "0"), "power: expected watts above 0"),
        (("--grid", "here", "--power-of", "net"), "unknown model"),
        (("--grid", "here", "--power-of", "net", "--load", "1"), "quote: --power-of is measured"),
        (("--grid", "here", "--load", "1.5"), "load: expected a share above 0 and at most 1"),
        (("--grid", "here", "--pue", "0.9"), "PUE: expected at least 1"),
        (("--failed-share", "1"), "failed share: expected a share of at least 0 and below 1"),
        (("--repeats", "0"), "repeats: expected a whole number of at least 1"),
        (("--repeats", "2", "--runs", "2"), "quote: --runs demands no project"),
        (("--project", "ai22"), "project: expected one of ai21, got 'ai22'"),
        (("--project", "ai21", "--repeats", "2"), "quote: --project has its own"),
    ],
)
def test_a_mistake_is_one_line(run: Run, arguments: tuple[str, ...], message: str) -> None:
    """What was expected and what was got, without a traceback."""
    code, text = run("--price", "rented", *arguments)
    assert code in {1, 2}
    assert message in text
    assert text.count("\n") == 1


def test_power_that_was_metered(run: Run, tmp_path: Path) -> None:
    """150 W read while a model was timed, for ten hours; of one CPU alone it is not known."""
    write_project(tmp_path)
    plain_result = make_result(hardware="box")
    readings = {"readings": [{"meter": "NVML", "of": "gpu", "joules": 1500.0, "seconds": 10.0}]}
    metered = {"energy": Energy.model_validate(readings)}
    measurement = plain_result.measurement.model_copy(update=metered)
    options = ("--price", "rented", "--grid", "here", "--power-of", "net")
    store_results(tmp_path, [plain_result])
    assert "no meter was read" in _json(run, *options)["energy"]["unknown"]
    pinned = make_result(hardware="box", vcpus=1)
    store_results(tmp_path, [pinned.model_copy(update={"measurement": measurement})])
    assert "no meter was read" in _json(run, *options)["energy"]["unknown"]
    store_results(tmp_path, [plain_result.model_copy(update={"measurement": measurement})])
    energy = _json(run, *options, "--repeats", "10")["energy"]
    assert (energy["measured"], energy["machines_kwh"]) == (True, "1.5")
    assert energy["source"] == "measured by NVML, of gpu alone"
