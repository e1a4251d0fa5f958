"""`epochcost cheapest`: the choice and its reasons, and one line if there is no choice."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from called_program import printed
from cheapest_answers import read_answer
from report_project import make_result, store_results
from tiny_project import OWNED_PRICE, price_text, write_tiny_project

BOX = """
id = "{name}"
name = "The {name}"
provider = "Cloud"
vcpus = {vcpus}
source = "a test"
"""
PAPER = """
id = "paper"
title = "A paper"
authors = "An Author"
year = 2026
workload = "Tiny"
model = "tiny"
source = "a test"
as_of = 2026-11-01
{rows}
"""
ROW = """
[[timings]]
id = "{machine}-{batch}"
hardware = "{machine}"
batch_size = {batch}
seconds = {seconds}
epochs = 1
accuracy_percent = {accuracy}
"""


class Shell:
    """Runs `epochcost cheapest` in this process and project, and returns its output."""

    def __init__(
        self, root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.root, self._monkeypatch, self._capsys = root, monkeypatch, capsys
        self._rows = ""

    def spec(self, kind: str, name: str, text: str) -> None:
        """Write a spec file."""
        path = self.root / "specs" / kind / f"{name}.toml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    def machine(self, name: str, amount: str | None = None) -> None:
        """Write a machine and, with ``amount``, its hourly price; every vCPU costs the same."""
        vcpus = max(1, int(8 * Decimal(amount or "1")))
        self.spec("hardware", name, BOX.format(name=name, vcpus=vcpus))
        if amount is not None:
            self.spec("prices", f"{name}-11-01", price_text(name, amount))

    def timing(self, machine: str, seconds: int, batch: int = 4, accuracy: str = "90") -> None:
        """Add a published full training on ``machine``."""
        self._rows += ROW.format(machine=machine, seconds=seconds, batch=batch, accuracy=accuracy)
        self.spec("published", "paper", PAPER.format(rows=self._rows))

    def columns(self, width: str) -> None:
        """Set the terminal's width."""
        self._monkeypatch.setenv("COLUMNS", width)

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """Run the command, and return exit code, output and errors."""
        return printed(self._capsys, "cheapest", *arguments)

    def json(self, *arguments: str) -> Any:
        """The parsed JSON of a successful command."""
        code, out, err = self.run("--model", "tiny", *arguments, "--format", "json")
        assert (code, err) == (0, "")
        return read_answer(out)

    def chosen(self, *arguments: str) -> str:
        """The id of the chosen hardware."""
        got = self.json(*arguments)
        hardware = got["choice"]["hardware"]
        assert isinstance(hardware, str)
        return hardware

    def refusal(self, *arguments: str) -> str:
        """The error message of a command without a choice."""
        code, out, err = self.run("--model", "tiny", *arguments)
        assert (code, out) == (1, "")
        return err


@pytest.fixture(name="shell")
def shell_fixture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Shell:
    """A tiny project without prices or results."""
    root = write_tiny_project(tmp_path)
    monkeypatch.chdir(root)
    return Shell(root, monkeypatch, capsys)


@pytest.fixture(name="priced")
def priced_fixture(shell: Shell) -> Shell:
    """Machines that cost 10, 12 and 20 dollars for a training, and a machine without a price."""
    for name, amount, hours in (("slow", "1", 10), ("quick", "6", 2), ("rapid", "20", 1)):
        shell.machine(name, amount)
        shell.timing(name, hours * 3600)
    shell.machine("bare")
    shell.timing("bare", 60)
    return shell


def test_the_cheapest_of_all(priced: Shell) -> None:
    """The costs are 10, 12 and 20 dollars; the machine without a price has a reason."""
    got = priced.json()
    assert [candidate["cost"] for candidate in got["candidates"]] == ["10", "12", "20"]
    assert got["choice"] == got["candidates"][0]
    assert got["choice"]["hardware"] == "slow"
    ((row, reason),) = got["offers"]["unpriced"]
    assert (row["observed"]["machine"]["hardware"], reason) == ("bare", "no price is known")


def test_a_free_machine(priced: Shell) -> None:
    """The answer says at which price of electricity a free machine is no longer the cheapest."""
    price = OWNED_PRICE.replace("= 8766", "= 0").replace("kwh = 0.2", "kwh = 0")
    price = re.sub("assumed = true|ranges = .*", "", price.replace('"local"', '"slow"'))
    priced.spec("prices", "own", price)
    _, out, _ = priced.run("--model", "tiny")
    assert "Cheapest: The slow, batch 4, slow owned, 2026-11-01: $0.00 in 10 h" in out
    assert "It stays cheapest unless its price of electricity rises from 0 to " in out


@pytest.mark.parametrize(
    ("arguments", "hardware"),
    [
        (("--deadline", "10h"), "slow"),
        (("--deadline", "9h"), "quick"),
        (("--deadline", "1h30m"), "rapid"),
        (("--budget", "10USD"), "slow"),
        (("--budget", "15"), "quick"),
        (("--budget", "20USD"), "rapid"),
        (("--deadline", "9h", "--budget", "15USD"), "quick"),
    ],
)
def test_deadlines_and_budgets(priced: Shell, arguments: tuple[str, ...], hardware: str) -> None:
    """A deadline selects the cheapest machine in time; a budget alone the fastest within it."""
    assert priced.chosen(*arguments) == hardware


def test_choices_beyond_the_limits_are_a_table_of_their_own(priced: Shell) -> None:
    """With --all, machines that miss the deadline follow the others under a heading."""
    _, out, _ = priced.run("--model", "tiny", "--deadline", "9h", "--all", "--wide")
    within, _, beyond = out.partition("\nBeyond the limits:\n")
    assert "> The quick" in within
    assert "The slow" in beyond
    assert "The slow" not in within.partition("\n\n")[2].partition("\n\n")[0]
    assert "Beyond" not in priced.run("--model", "tiny", "--all")[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--deadline", "30m"), "within 30 min, found none: nearest is The rapid, batch 4"),
        (("--budget", "9USD"), "for at most $9.00, found none: nearest is The slow"),
        (("--budget", "0.0000001USD"), "for at most $0.0000001, found none: nearest is The slow"),
        (
            ("--deadline", "9h", "--budget", "11"),
            "for at most $11.00, found none: nearest is The qu",
        ),
        (("--budget", "9EUR"), "budget: expected USD like the prices, got EUR"),
        (("--budget", "much"), "budget: expected an amount above 0, such as 5USD, got 'much'"),
        (("--budget", "0USD"), "budget: expected an amount above 0"),
        (("--budget", "1.2.3"), "budget: expected a decimal number, got '1.2.3'"),
        (("--deadline", "soon"), "deadline: expected a number of seconds"),
        (
            ("--mode", "inference"),
            "found none in the results and none in specs/published: mea",
        ),
        (("--count", "many"), "count: expected a decimal number, got 'many'"),
        (("--count", "0"), "count: expected a whole number above 0 and at most 1e+30, such as 10M"),
        (("--count", "1M", "--mode", "epoch"), "--mode epoch: expected inference with --count"),
    ],
)
def test_one_line_where_there_is_no_answer(
    priced: Shell, arguments: tuple[str, ...], message: str
) -> None:
    """The line says what was expected and, for a limit, names the nearest machine."""
    said = priced.refusal(*arguments)
    assert message in said
    assert said.count("\n") == 1


def test_no_price_at_all(shell: Shell) -> None:
    """Timings without a price give an error with the reason for each machine."""
    shell.machine("bare")
    shell.timing("bare", 60)
    assert shell.refusal() == (
        "tiny: expected a time that a price can bill, found none:\n"
        "  The bare, no price: no price is known\n"
    )


def test_many_reasons_are_counted(shell: Shell) -> None:
    """The error lists five machines, and the number of further machines."""
    for number in range(7):
        shell.machine(f"bare{number}")
        shell.timing(f"bare{number}", 60)
    said = shell.refusal()
    assert said.count(": no price is known\n") == 5
    assert said.endswith("\n  … and 2 more\n")


def test_nothing_was_timed(shell: Shell) -> None:
    """The error names the command that measures; an unknown model has a suggestion."""
    assert "measure it with `epochcost run --model tiny`" in shell.refusal()
    code, _, err = shell.run("--model", "tny")
    assert (code, 'did you mean "tiny"' in err) == (1, True)


def test_the_ten_best(shell: Shell) -> None:
    """Ten of 24 candidates are shown, in tables that fit 60, 80 and 200 columns."""
    for number in range(12):
        shell.machine(f"box{number:02}", "1")
        shell.timing(f"box{number:02}", 3600 + number)
        shell.timing(f"box{number:02}", 7200 + number, batch=8)
    for width in ("60", "80", "200"):
        shell.columns(width)
        _, out, _ = shell.run("--model", "tiny")
        table = out.partition("\n\n")[2].partition("\n\n")[0].splitlines()
        assert len(table) == 12
        assert max(map(len, table)) <= int(width)
        assert table[-1].startswith("  … 14 more: --all")
        assert ("software" in table[0], "--wide" in table[-1]) == (width == "200", width != "200")
    shell.columns("60")
    _, out, _ = shell.run("--model", "tiny", "--all", "--wide")
    assert out.count("The box") > 24
    assert "software" in out.splitlines()[2]


def test_measured_and_assumed(shell: Shell) -> None:
    """A stored result at an assumed price has an interval, mostly from its utilisation."""
    shell.spec("prices", "own", OWNED_PRICE)
    store_results(shell.root, [make_result(model="tiny", batch_size=4)])
    (got,) = shell.json("--mode", "epoch")["candidates"]
    assert (got["kind"], got["least_sure"]) == ("measured", "owned.utilisation")
    assert Decimal(got["low"]) < Decimal(got["cost"]) < Decimal(got["high"])
    _, out, _ = shell.run("--model", "tiny", "--mode", "epoch")
    assert "mostly because of its utilisation; " in out
    assert "its price is assumed, not a market price." in out
    assert "There is nothing to compare it with." in out


def test_a_machine_that_differs_from_its_spec_is_named(shell: Shell) -> None:
    """If the measured machine differs from the spec, the answer says how."""
    shell.machine("slow", "1")
    result = make_result(model="tiny", batch_size=4, hardware="slow")
    store_results(shell.root, [result])
    assert "differs" not in shell.run("--model", "tiny", "--mode", "epoch")[1]
    update = {"contradictions": ("2 logical CPUs, not 8",)}
    store_results(shell.root, [result.model_copy(update=update)])
    _, out, _ = shell.run("--model", "tiny", "--mode", "epoch")
    assert "; the measured machine differs from the spec: 2 logical CPUs, not 8" in out


def test_limits_are_kept_as_often_as_the_draws_say(shell: Shell) -> None:
    """Limits at the mean hold in half of the scenarios, and loose limits in all."""
    shell.machine("slow", "1")
    shell.timing("slow", 60, batch=8)
    samples = (0.0105, 0.011, 0.0115, 0.011) * 4
    result = make_result(model="tiny", batch_size=4, hardware="slow", samples=samples)
    store_results(shell.root, [result])
    answer = shell.json()
    assert answer["within"] == {}
    measured = next(candidate for candidate in answer["candidates"] if candidate["least_sure"])
    limits = ("--deadline", f"{measured['seconds']}s", "--budget", f"{measured['cost']}USD")
    within = shell.json(*limits)["within"]
    assert within["deadline"] == pytest.approx(0.5, abs=0.15)
    assert within["both"] <= min(within["deadline"], within["budget"]) < 0.65
    _, out, _ = shell.run("--model", "tiny", *limits)
    assert f" in {100 * within['deadline']:.0f} of 100 scenarios; within $" in out
    assert "machines within the limits in 100 of 100 scenarios" not in out
    _, out, _ = shell.run("--model", "tiny", "--deadline", "9000h")
    assert "Within 375 days in 100 of 100 scenarios." in out


def test_the_odds_of_the_fastest_include_starts(shell: Shell) -> None:
    """A machine that starts for an hour is slower than one that trains longer."""
    for name, duration in (("quick", 600), ("rapid", 60)):
        shell.machine(name, "1")
        shell.timing(name, duration)
    starting = f"{price_text('rapid', '1')}[start]\nseconds = 3600\n"
    shell.spec("prices", "rapid-11-01", starting)
    code, out, _ = shell.run("--model", "tiny", "--budget", "50USD")
    assert code == 0
    assert "Fastest for at most $50.00: The quick" in out
    assert "the fastest of 2 machines within the limits in 100 of 100 scenarios.\n" in out
    assert "The closest rival" not in out


def test_spot_prices_without_interruptions_are_list_prices(priced: Shell) -> None:
    """A spot price without an interruption rate is no candidate; with a rate it is uncertain."""
    cheap = price_text("slow", "0.5", "11-20").replace("on-demand", "spot")
    priced.spec("prices", "slow-11-20", cheap)
    assert "slow-11-20" not in {candidate["price"] for candidate in priced.json()["candidates"]}
    reasons = [reason for _, reason in priced.json()["offers"]["unpriced"]]
    assert "not known how often it is interrupted: $5.00 in 10 h" in reasons
    terms = "[interruptions]\nrate_per_hour = 0.1\ncheckpoint_seconds = 30\n"
    priced.spec("prices", "slow-11-20", cheap + terms)
    first = priced.json()["candidates"][0]
    assert (first["hardware"], first["least_sure"]) == ("slow", "interruptions")
    assert Decimal(first["seconds"]) > 36_000
    assert Decimal(first["low"]) < Decimal(first["cost"]) < Decimal(first["high"])
    assert "interruptions.rate_per_hour" in {
        point["switch"]["name"] for point in priced.json()["switch_points"]
    }


def test_inference(shell: Shell) -> None:
    """The cost of inferences is proportional to their number."""
    shell.spec("prices", "own", OWNED_PRICE)
    store_results(shell.root, [make_result(model="tiny", mode="inference", batch_size=1)])
    (got,) = shell.json("--mode", "inference")["candidates"]
    assert Decimal(got["seconds"]) == pytest.approx(Decimal(11_000))
    (many,) = shell.json("--count", "10M")["candidates"]
    for name in ("seconds", "cost", "low", "high"):
        assert Decimal(many[name]) == pytest.approx(10 * Decimal(got[name]))
    assert "--tokens 200: expected a model whose examples are texts" in shell.refusal(
        "--tokens", "200"
    )


def test_fewer_inferences_than_a_batch(shell: Shell) -> None:
    """Five inferences take a whole step at batch 32, and read as plain numbers."""
    shell.spec("prices", "own", OWNED_PRICE)
    store_results(shell.root, [make_result(model="tiny", mode="inference", batch_size=32)])
    (got,) = shell.json("--count", "5")["candidates"]
    assert Decimal(got["seconds"]) == pytest.approx(Decimal("0.011"))
    _, out, _ = shell.run("--model", "tiny", "--count", "5")
    assert out.startswith("Choices for 5 inferences of tiny, cheapest first\n")
    assert "under $" not in out
    assert "Choices for 50,000 inferences of" in shell.run("--model", "tiny", "--count", "50k")[1]


def test_batch_sizes_that_are_as_accurate(shell: Shell) -> None:
    """The cheapest batch size misses the accuracy, so the next cheapest is named."""
    shell.machine("slow", "1")
    for batch, seconds, accuracy in ((32, 3600, "91.4"), (64, 3000, "91.6"), (512, 2000, "89.7")):
        shell.timing("slow", seconds, batch, accuracy)
    _, out, _ = shell.run("--model", "tiny")
    assert "Of batch sizes known to reach 91.6 %, the cheapest is 64" in out
    assert "The accuracy misses it for batch sizes 32, 512." in out
    assert shell.json()["batch"]["batch_size"] == 64
    _, out, _ = shell.run("--model", "tiny", "--deadline", "40m")
    (sentence,) = (line for line in out.splitlines() if line.startswith("Of batch sizes known"))
    assert sentence.endswith(", beyond the limits.")


def test_a_price_that_nobody_confirms_never_stands_alone(shell: Shell) -> None:
    """The output adds the cheapest price that a source confirms."""
    for name, amount in (("quick", "1"), ("other", "1.01")):
        shell.machine(name, amount)
        shell.timing(name, 3600)
    doubtful = price_text("quick", "1") + '\nunconfirmed = ["as_of", "billing"]\n'
    shell.spec("prices", "quick-11-01", doubtful)
    _, printed, _ = shell.run("--model", "tiny")
    assert "no source confirms the date and billing of its price" in printed
    assert "At a confirmed price: $1.01" in printed
