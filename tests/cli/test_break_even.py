"""`epochcost break-even`: text, exact JSON, and one line for each error."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from called_program import printed

HEAD = 'source = "a test"\nas_of = 2026-01-01\n'
GPU = '[[accelerators]]\nname = "H9"\n'
PRICES = {
    "mine": 'hardware = "desk"\nplan = "owned"\nprovider = "me"\nassumed = true\n'
    + HEAD
    + "[owned]\npurchase = 1200\nyears = 1\nutilisation = 0.5\npower_watts = 1000\n"
    "electricity_per_kwh = 0.2\n",
    "theirs": 'hardware = "cloud"\nplan = "on-demand"\nprovider = "A"\namount = 0.7\n' + HEAD,
    "other": 'hardware = "plain"\nplan = "on-demand"\nprovider = "A"\namount = 0.1\n' + HEAD,
}


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """The command, in a folder with an owned machine, a rented one of its kind and another kind."""
    for name, more in {"desk": GPU, "cloud": GPU, "plain": ""}.items():
        text = f'id = "{name}"\nname = "{name}"\nprovider = "A"\nvcpus = 8\nsource = "a test"\n'
        _write(tmp_path / f"specs/hardware/{name}.toml", text + more)
    for name, text in PRICES.items():
        _write(tmp_path / f"specs/prices/{name}.toml", f'id = "{name}"\n{text}')
    monkeypatch.chdir(tmp_path)

    def command(*arguments: str) -> str:
        code, output, errors = printed(capsys, "break-even", *arguments)
        return errors if code else output

    return command


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_an_answer_in_words(run: Callable[..., str]) -> None:
    """100 dollars a month owned and 0.50 an hour saved on rent cross at 200 hours a month."""
    text = run("--own", "mine")
    assert "mine (me, 2026-01-01, assumed): the whole machine costs $100.00 a month unused" in text
    assert "bills.md#owned-machines" in text
    assert (
        "Against theirs (2026-01-01; the same kind of machine), "
        "buying is cheaper above 200 hours a month." in text
    )
    assert "other" not in text


def test_exact_json(run: Callable[..., str]) -> None:
    """JSON has decimal strings, and the hours of use as given."""
    answer = json.loads(run("--own", "mine", "--hours-per-month", "400", "--format", "json"))
    assert answer["currency"] == "USD"
    assert (answer["owned"], answer["hours"], answer["month"]["fixed"]) == ("mine", "400", "100")
    (rented,) = answer["alternatives"]
    assert (rented["rent"]["price"], rented["month"]["per_hour"]) == ("theirs", "0.7")
    assert rented["crossing"] == {"outcome": "above", "hours": "200", "until": None}
    assert rented["payback"]["years"] == "0.5"


def test_json_has_18_decimals(run: Callable[..., str], tmp_path: Path) -> None:
    """A number that does not end is rounded to the 18 decimals of all amounts."""
    path = tmp_path / "specs/prices/mine.toml"
    text = path.read_text()
    path.write_text(re.sub("years = .*", "years = 7", text))
    answer = json.loads(run("--own", "mine", "--hours-per-month", "400", "--format", "json"))
    assert re.fullmatch(r"[0-9]+\.[0-9]{18}", answer["month"]["fixed"])


def test_plans_of_other_numbers_of_the_accelerators_are_named(
    run: Callable[..., str], tmp_path: Path
) -> None:
    """Without a rented machine of its kind, one with fewer GPUs needs --rent and --speed."""
    desk = tmp_path / "specs/hardware/desk.toml"
    desk.write_text(desk.read_text().replace('"H9"\n', '"H9"\ncount = 2\n'))
    assert run("--own", "mine").endswith(
        "found none: name one with --rent, and its --speed, such as --rent theirs --speed 0.5\n"
    )
    twice = run("--own", "mine", "--rent", "theirs", "--rent", "theirs", "--speed", "0.5")
    assert twice.count("Against theirs") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--own", "mine", "--rent", "other"),
            "other: expected a machine with the accelerators of mine",
        ),
        (("--own", "theirs"), "theirs: expected an owned plan, got plan 'on-demand'"),
        (("--own", "mime"), "unknown price"),
        (("--own", "mine", "--vcpus", "2"), "break-even: --vcpus has no effect: mine is not"),
        (("--own", "mine", "--speed", "2"), "break-even: --speed needs --rent"),
        (("--own", "mine", "--rent", "theirs", "--speed", "nan"), "speed: expected a finite"),
        (("--own", "mine", "--rent", "theirs", "--speed", "0"), "speed: expected a finite number"),
        (("--own", "mine", "--hours-per-month", "800"), "hours per month: expected at least 0"),
        (("--own", "mine", "--hours-per-month", "x"), "hours-per-month: expected a decimal"),
    ],
)
def test_a_mistake_is_one_line(
    run: Callable[..., str], arguments: tuple[str, ...], message: str
) -> None:
    """The line says what was expected, without a traceback."""
    printed = run(*arguments)
    assert printed.startswith(message)
    assert printed.count("\n") == 1
