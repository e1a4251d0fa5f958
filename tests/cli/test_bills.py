"""Bills in the forms of real providers, through the commands."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from analysis.test_tokens import project
from called_program import printed
from tiny_decoders import DECODER_SPEC

HEAD = 'provider = "A"\nsource = "a test"\nas_of = 2026-01-01\n'
PRICES = {
    "n1": 'plan = "on-demand"\namount = 0.5672\nsustained_use = "gce-n1"\n',
    "spot": 'plan = "spot"\namount = 1\nbilling = "prorated"\nfree_if_taken_back_seconds = 3600\n'
    "[interruptions]\nrate_per_hour = 1\ncheckpoint_interval_seconds = 7200\n",
    "plan": 'plan = "savings-plan"\n[commitment]\nterm_months = 12\npayment = "all-upfront"\n'
    "upfront = 211992\non_demand_hourly = 36.30\n",
    "worker": 'plan = "on-demand"\namount = 4.176\nbilling = { increment_seconds = 1 }\n'
    '[[components]]\nlabel = "disk"\nper = "gb-month"\ncount = 20\namount = 0.10138824\n'
    "billing = { increment_seconds = 300 }\n",
}
# With the long prices from 200,000 tokens on, as the row of the issue has them.
API = """
id = "theirs"
name = "tiny"
provider = "They"
model = "tiny"
input_per_million = 2
cached_input_per_million = 0.30
cache_write_per_million = 2.5
output_per_million = 6
batch_percent = 50
as_of = 2026-01-01
source = "a test"
[long]
above_tokens = 199999
input_per_million = 4
cached_input_per_million = 0.60
cache_write_per_million = 5
output_per_million = 12
"""


@pytest.fixture
def ask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Any]:
    """A command's JSON in a project with a machine and ``PRICES``."""
    write(
        tmp_path / "specs/hardware/box.toml",
        'id = "box"\nname = "Box"\nprovider = "A"\nsource = "a test"\n',
    )
    for name, text in PRICES.items():
        write(
            tmp_path / f"specs/prices/{name}.toml", f'id = "{name}"\nhardware = "box"\n{HEAD}{text}'
        )
    monkeypatch.chdir(tmp_path)

    def command(*arguments: str) -> Any:
        code, output, errors = printed(capsys, *arguments, "--format", "json")
        return errors if code else json.loads(output, parse_float=Decimal)

    return command


def write(path: Path, text: str) -> None:
    """Write a file and its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def total(answer: Any) -> Decimal:
    """The total of a quote's JSON."""
    return Decimal(answer["total"])


@pytest.mark.parametrize(("hours", "cost"), [(365, "186.33"), (400, "198.24"), (730, "289.84")])
def test_sustained_use(ask: Callable[..., Any], hours: int, cost: str) -> None:
    """Google's sustained-use discount of an n1-highcpu-16 for hours of a month."""
    assert round(total(ask("quote", "--price", "n1", "--duration", f"{hours}h")), 2) == Decimal(
        cost
    )


def test_a_spot_machine_that_is_taken_back_in_its_first_hour_is_free(
    ask: Callable[..., Any],
) -> None:
    """At one interruption an hour, two hours without a checkpoint cost 4.4366 of 6.3891 dollars."""
    assert round(total(ask("quote", "--price", "spot", "--duration", "2h")), 4) == Decimal("4.4366")


def test_usage_above_a_commitment_costs_the_price_on_demand(ask: Callable[..., Any]) -> None:
    """Of two machines for a day one costs the committed 24.20 an hour, the other 36.30."""
    bill = ask("quote", "--price", "plan", "--duration", "24h", "--count", "2")
    amounts = {line["label"]: Decimal(line["amount"]) for line in bill["lines"]}
    assert amounts == {
        "upfront, by the hour": Decimal("580.80"),
        "on demand, above the commitment": Decimal("871.20"),
    }


def test_a_part_has_an_increment_of_its_own(ask: Callable[..., Any]) -> None:
    """2.3 s are billed as three seconds of an H100 and five minutes of a 20 GB disk.

    The prices are RunPod's for serverless workers (docs.runpod.io, Serverless, Pricing).
    """
    assert total(ask("quote", "--price", "worker", "--duration", "2300ms")) == Decimal("0.00371148")


@pytest.mark.parametrize(
    ("options", "cost"),
    [
        ((), "1.024"),
        (("--cached", "96%"), "0.208"),
        (("--cached", "90%", "--cache-write", "10%"), "0.284"),
        (("--batch",), "0.512"),
        (("--prompt", "199999"), "0.411998"),
    ],
)
def test_a_price_by_context_with_cached_input_and_batches(
    tmp_path: Path, ask: Callable[..., Any], options: tuple[str, ...], cost: str
) -> None:
    """Prices per million tokens double for prompts of 200,000 tokens and more."""
    project(tmp_path)
    write(tmp_path / "specs/models/tiny.toml", DECODER_SPEC.replace("= 256", "= 300000"))
    write(tmp_path / "specs/apis/theirs.toml", API)
    usual = ("--model", "tiny", "--requests", "1/s", "--prompt", "250000", "--output", "2000")
    answer = ask("tokens", *usual, *options)
    tokens = Decimal(answer["requests"]["prompt"] + answer["requests"]["output"])
    million = Decimal(answer["apis"][0]["per_million"])
    assert round(million * tokens / 1_000_000, 9) == Decimal(cost)


def test_rent_or_buy_counts_sustained_use(tmp_path: Path, ask: Callable[..., Any]) -> None:
    """At 150 dollars a month buying wins above 285 hours, or 264 without the rent's discount."""
    owned = "purchase = 1800\nyears = 1\nutilisation = 0.5\npower_watts = 1\n"
    text = f'id = "own"\nhardware = "box"\nplan = "owned"\n{HEAD}[owned]\n{owned}'
    write(tmp_path / "specs/prices/own.toml", f"{text}electricity_per_kwh = 0\n")
    listed = PRICES["n1"].replace('sustained_use = "gce-n1"\n', "")
    write(tmp_path / "specs/prices/list.toml", f'id = "list"\nhardware = "box"\n{HEAD}{listed}')
    answer = ask("break-even", "--own", "own", "--rent", "n1", "--rent", "list")
    hours = {
        rented["rent"]["price"]: round(Decimal(rented["crossing"]["hours"]), 1)
        for rented in answer["alternatives"]
    }
    assert hours == {"n1": Decimal("284.9"), "list": Decimal("264.5")}
