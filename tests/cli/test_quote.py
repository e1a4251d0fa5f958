"""`epochcost quote`: exact JSON, a readable bill, and one line for each error."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from called_program import printed

HARDWARE = """
id = "box"
name = "A box"
provider = "here"
vcpus = 4
source = "a test"
[[accelerators]]
name = "GPU"
count = 2
power_watts = 500
"""
PRICE = """
id = "box-hourly"
hardware = "box"
plan = "on-demand"
provider = "Somebody"
region = "nowhere"
amount = 0.90
billing = "whole-hour"
source = "a test"
as_of = 2016-11-01
"""
OWNED = """
id = "box-bought"
hardware = "box"
plan = "owned"
provider = "here"
assumed = true
source = "a test"
as_of = 2016-11-01
[owned]
per_vcpu = true
purchase = 100
years = 4
utilisation = 0.5
power_watts = 10
electricity_per_kwh = 0.20
"""
TERMS = """
id = "box-terms"
hardware = "box"
plan = "managed"
provider = "Somebody"
amount = 0.90
source = "a test"
as_of = 2016-11-01
[start]
seconds = 600
failure_probability = 0.5
failure_charge = 1
[credit]
amount = 10
[[components]]
label = "GPU"
amount = 0.70
count = 2
[[components]]
label = "egress"
amount = 0.10
per = "gb"
"""


class Shell:
    """Runs `epochcost quote` in this process and returns its output."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def quote(self, *arguments: str) -> tuple[int, str, str]:
        """Run the command, and return exit code, output and errors."""
        return printed(self._capsys, "quote", *arguments)

    def json(self, *arguments: str) -> Any:
        """The parsed JSON of a successful quote."""
        code, out, err = self.quote(*arguments, "--format", "json")
        assert (code, err) == (0, "")
        return json.loads(out)


@pytest.fixture
def shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Shell:
    """A shell in a folder with one machine and three prices."""
    for name, text in (
        ("hardware/box.toml", HARDWARE),
        ("prices/box-hourly.toml", PRICE),
        ("prices/box-bought.toml", OWNED),
        ("prices/box-terms.toml", TERMS),
    ):
        path = tmp_path / "specs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.chdir(tmp_path)
    return Shell(capsys)


def test_json_of_a_bare_rate(shell: Shell) -> None:
    """The whole JSON document of a quote with --rate, exact to the digit."""
    got = shell.json("--rate", "0.90", "--billing", "prorated", "--duration", "428s")
    assert got == {
        "total": "0.107",
        "currency": "USD",
        "lines": [
            {
                "label": "compute, used",
                "quantity": "0.118888888888888889",
                "unit": "hour",
                "rate": "0.9",
                "amount": "0.107",
            }
        ],
        "price": None,
        "as_of": None,
        "assumed": False,
        "elapsed_seconds": "428",
        "expected_value": False,
        "nine_of_ten": [],
        "by_interruptions_per_hour": [],
        "before_credit": None,
        "credit_left": None,
    }


def test_a_price_of_the_catalogue(shell: Shell) -> None:
    """Three machines at a spec's price are billed for a whole hour each."""
    got = shell.json("--price", "box-hourly", "--duration", "428s", "--count", "3")
    assert got["total"] == "2.7"
    assert [line["amount"] for line in got["lines"]] == ["0.321", "2.379"]


def test_vcpus_come_from_the_machine(shell: Shell) -> None:
    """A price per vCPU uses the machine's vCPUs unless --vcpus is given."""
    four = shell.json("--price", "box-bought", "--duration", "1h")
    eight = shell.json("--price", "box-bought", "--duration", "1h", "--vcpus", "8")
    assert Decimal(eight["total"]) == 2 * Decimal(four["total"])
    assert four["lines"][0]["quantity"] == "4"


def test_a_detected_machine_has_the_vcpus_that_a_run_may_use(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bill on this computer counts the CPUs of this process, as a run does."""
    machine = tmp_path / "specs/hardware/box.toml"
    declared = HARDWARE.partition("[[")[0].replace("vcpus = 4", "detected = true")
    machine.write_text(declared)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 2, 5})
    bill = shell.json("--price", "box-bought", "--duration", "1h")
    assert bill["lines"][0]["quantity"] == "3"


def test_the_bill_for_people(shell: Shell) -> None:
    """The table has used and unused time and the total, below the plan and its date."""
    code, out, _ = shell.quote("--price", "box-hourly", "--duration", "428s")
    assert code == 0
    lines = [line.split() for line in out.splitlines()]
    heading, _, header, used, unused, total = lines
    assert {"box-hourly:", "Somebody,", "nowhere,", "2016-11-01,", "old"} <= set(heading)
    assert header == ["part", "quantity", "rate", "amount"]
    assert used[-1] == "$0.107"
    assert unused[-1] == "$0.793"
    assert total == ["total", "$0.900"]


def test_every_part_of_a_plan_is_a_line(shell: Shell) -> None:
    """Two runs of an hour, each started in 600 s, with egress, failed starts and credit."""
    arguments = ["--price", "box-terms", "--duration", "1h", "--runs", "2", "--egress-gb", "5"]
    got = shell.json(*arguments)
    amounts = {line["label"]: line["amount"] for line in got["lines"]}
    assert amounts == {
        "compute, used": "1.8",
        "GPU": "2.8",
        "compute, starting": amounts["compute, starting"],
        "egress": "0.5",
        "failed starts, expected": "2",
        "free credit": amounts["free credit"],
    }
    assert got["total"] == "0"
    assert (got["price"], got["as_of"], got["assumed"]) == ("box-terms", "2016-11-01", False)
    assert got["expected_value"]
    assert (got["before_credit"][:4], got["credit_left"][:4]) == ("7.86", "2.13")
    assert float(got["elapsed_seconds"]) == pytest.approx(2 * 3600 + 4 * 600)
    code, out, _ = shell.quote(*arguments)
    assert code == 0
    assert "3600 s on 1 machine, 2 runs in a row; box-terms:" in out
    assert "Elapsed: 2.67 h, with starts, checkpoints and repeated work." in out
    assert "Before the credit: $7.87. Left of the credit: $2.13." in out


def test_json_of_interruptions(shell: Shell, tmp_path: Path) -> None:
    """JSON has the bills of nine runs of ten, or the bill at each rate if the rate is unknown."""
    spot = PRICE.replace("box-hourly", "box-spot").replace("on-demand", "spot")
    path = tmp_path / "specs/prices/box-spot.toml"
    path.write_text(spot.replace("whole-hour", "prorated"))
    got = shell.json("--price", "box-spot", "--duration", "1h")
    rates = got["by_interruptions_per_hour"]
    assert [bill["rate"] for bill in rates] == ["0", "0.05", "0.2"]
    assert (rates[0]["total"], got["nine_of_ten"], got["expected_value"]) == ("0.9", [], False)
    known = "[interruptions]\nrate_per_hour = 0.2\ncheckpoint_seconds = 30\nrestart_seconds = 300\n"
    path.write_text(path.read_text() + known)
    got = shell.json("--price", "box-spot", "--duration", "10h")
    low, high = got["nine_of_ten"]
    assert got["expected_value"]
    assert float(low["total"]) < float(got["total"]) < float(high["total"])
    assert float(low["elapsed_seconds"]) < float(got["elapsed_seconds"])
    assert got["by_interruptions_per_hour"] == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "missing --price ID or --rate AMOUNT"),
        (["--price", "box-hourly", "--rate", "1"], "got both"),
        (["--rate", "1"], "missing --billing: prorated, per-second, whole-hour"),
        (["--rate", ""], "missing --billing: prorated, per-second, whole-hour"),
        (
            ["--rate", "1", "--billing", "prorated", "--vcpus", "2"],
            "--vcpus and --egress-gb belong",
        ),
        (
            ["--rate", "1", "--billing", "prorated", "--egress-gb", "2"],
            "--vcpus and --egress-gb belong",
        ),
        (["--price", "box-hourly", "--billing", "prorated"], "belong to --rate"),
        (["--price", "box-hourly", "--currency", "EUR"], "belong to --rate"),
        (["--price", "box-hourly", "--vcpus", "8"], "box-hourly is not a price per vCPU"),
    ],
)
def test_arguments_that_do_not_go_together(
    shell: Shell, arguments: list[str], message: str
) -> None:
    """The error is one line, and the exit code is 2."""
    code, out, err = shell.quote(*arguments, "--duration", "1h")
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--price", "box-hourli", "--duration", "1h"], '"box-hourly"'),
        (["--price", "box", "--duration", "1h"], "box is a machine, its prices: box-bought"),
        (["--rate", "nan", "--billing", "prorated", "--duration", "1h"], "finite"),
        (["--rate", "x", "--billing", "prorated", "--duration", "1h"], "decimal number"),
        (["--rate", "0", "--billing", "prorated", "--duration", "1h"], "above 0"),
        (["--rate", "-1", "--billing", "prorated", "--duration", "1h"], "above 0"),
        (["--rate", "1e99", "--billing", "prorated", "--duration", "1h"], "at most"),
        (["--rate", "1", "--billing", "prorated", "--duration", "-1h"], "got '-1h'"),
        (["--rate", "1", "--billing", "prorated", "--duration", "0s"], "more than 0"),
        (["--price", "box-hourly", "--duration", "1h", "--count", "0"], "count: expected"),
        (["--price", "box-hourly", "--duration", "1h", "--runs", "0"], "runs: expected"),
        (["--price", "box-hourly", "--duration", "1h", "--egress-gb", "1"], 'per = "gb"'),
        (["--price", "box-terms", "--duration", "1h", "--egress-gb", "-1"], "egress: expected"),
        (["--price", "box-terms", "--duration", "1h", "--egress-gb", "x"], "egress-gb: expected"),
        (
            ["--rate", "1", "--billing", "prorated", "--duration", "1h", "--currency", "USB"],
            "ISO 4217",
        ),
        (
            ["--rate", "1", "--billing", "prorated", "--duration", "1h", "--currency", "euro"],
            "ISO 4217",
        ),
    ],
)
def test_wrong_values(shell: Shell, arguments: list[str], message: str) -> None:
    """The error is one line, and the exit code is 1."""
    code, out, err = shell.quote(*arguments)
    assert (code, out) == (1, "")
    assert message in err
    assert err.count("\n") == 1
