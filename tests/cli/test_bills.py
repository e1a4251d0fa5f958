"""Bills as providers write them, by the commands that a person types."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from epochcost.cli.app import main

HEAD = 'provider = "A"\nsource = "a test"\nas_of = 2026-01-01\n'
PRICES = {
    "n1": 'plan = "on-demand"\namount = 0.5672\nsustained_use = "gce-n1"\n',
    "spot": 'plan = "spot"\namount = 1\nbilling = "prorated"\nfree_if_taken_back_seconds = 3600\n'
    "[interruptions]\nrate_per_hour = 1\ncheckpoint_interval_seconds = 7200\n",
}


@pytest.fixture
def ask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Any]:
    """A command's JSON in a project with a machine and the plans above."""
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
        monkeypatch.setattr(sys, "argv", ["epochcost", *arguments, "--format", "json"])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        return printed.err if ended.value.code else json.loads(printed.out, parse_float=Decimal)

    return command


def write(path: Path, text: str) -> None:
    """A file of the project."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def total(answer: Any) -> Decimal:
    """The total of a quote."""
    return Decimal(answer["total"])


@pytest.mark.parametrize(("hours", "cost"), [(365, "186.33"), (400, "198.24"), (730, "289.84")])
def test_sustained_use(ask: Callable[..., Any], hours: int, cost: str) -> None:
    """Google's discount of an n1-highcpu-16 for the hours of a month."""
    assert round(total(ask("quote", "--price", "n1", "--duration", f"{hours}h")), 2) == Decimal(
        cost
    )


def test_a_spot_machine_that_is_taken_back_in_its_first_hour_is_free(
    ask: Callable[..., Any],
) -> None:
    """One interruption an hour, two hours of work without a save: 4.4366 of 6.3891 are paid."""
    assert round(total(ask("quote", "--price", "spot", "--duration", "2h")), 4) == Decimal("4.4366")
