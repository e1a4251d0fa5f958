"""Helpers of all commands: ``--batch-size``, tables, wrapped text and JSON."""

from __future__ import annotations

import datetime as dt
import errno
import io
import json
import sys
from decimal import Decimal
from pathlib import Path

import pytest

from epochcost.cli.plan import batch_size_of
from epochcost.cli.terminal import log, print_json, print_table, say
from epochcost.cost.estimate import Time
from epochcost.errors import Fault, InputError


@pytest.mark.parametrize("text", ["", "0", "-1", "x", "65537", "1e3", "\N{SUPERSCRIPT TWO}"])
def test_anything_else_is_refused_in_words(text: str) -> None:
    """An invalid batch size is refused with the valid ones."""
    with pytest.raises(InputError, match="expected auto, or a size from 1 to 65536, got"):
        batch_size_of(text)


class _Full(io.StringIO):
    """A stream on a full disk."""

    def write(self, _: str) -> int:
        """Fail as the system does."""
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_log_that_cannot_be_written_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk and a closed standard error are no errors for a log."""
    monkeypatch.setattr(sys, "stderr", _Full())
    log("measured")
    with pytest.raises(OSError, match="No space"):
        say("measured", err=True)
    monkeypatch.setattr(sys, "stderr", None)
    log("measured")


def test_json_has_every_digit_and_the_fields_of_values(capsys: pytest.CaptureFixture[str]) -> None:
    """Amounts of money stay exact decimals."""
    fault = Fault(Path("specs/a.toml"), 1, 2, "wrong")
    print_json({"amount": Decimal("0.10"), "day": dt.date(2026, 7, 1), "fault": fault})
    assert json.loads(capsys.readouterr().out) == {
        "amount": "0.1",
        "day": "2026-07-01",
        "fault": {"path": "specs/a.toml", "line": 1, "column": 2, "message": "wrong"},
    }


def test_a_low_end_that_is_no_bound_is_null(capsys: pytest.CaptureFixture[str]) -> None:
    """JSON has no placeholder for the unknown low end of a time."""
    print_json([Time.from_floats(0, 1, 2), Time.from_floats(0.5, 1, 2)])
    assert [time["low"] for time in json.loads(capsys.readouterr().out)] == [None, "0.5"]


TABLE = (
    ("machine", "plan", "note"),
    [("a machine with a long name", "spot", "a long note of many words"), ("b", "c", "d")],
)


@pytest.mark.parametrize(
    ("width", "drop", "left_out"),
    [
        ("200", ("note", "plan"), ()),
        ("50", ("note", "plan"), ("note",)),
        ("30", ("note", "plan"), ("note", "plan")),
        ("50", (), ()),
        ("12", (), ()),
    ],
)
def test_a_table_fits_its_terminal(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    width: str,
    drop: tuple[str, ...],
    left_out: tuple[str, ...],
) -> None:
    """Columns are dropped in the order of ``drop``; the remaining cells are complete."""
    monkeypatch.setenv("COLUMNS", width)
    assert print_table(*TABLE, drop=drop) == left_out
    output = capsys.readouterr().out
    assert max(map(len, output.splitlines())) <= int(width)
    columns = [cells for cells in zip(TABLE[0], *TABLE[1], strict=True) if cells[0] not in left_out]
    letters = sorted("".join(cell for cells in columns for cell in cells).replace(" ", ""))
    assert sorted("".join(output.split())) == letters


@pytest.mark.parametrize(("amount", "width"), [("$117,325.48", "30"), ("EUR 12,340.50", "40")])
def test_an_amount_is_not_wrapped(
    amount: str, width: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """If a table is too wide, cells without amounts of money are wrapped."""
    monkeypatch.setenv("COLUMNS", width)
    row = ("a machine with a long name", "on-demand", "13.5 days", amount, "predicted")
    print_table(("machine", "plan", "time", "cost", "how known"), [row])
    output = capsys.readouterr().out
    assert amount in output
    assert max(map(len, output.splitlines())) <= int(width)


@pytest.mark.parametrize("err", [False, True])
def test_sentences_fit_a_terminal(
    err: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """At a terminal lines are wrapped and indented; a pipe gets each line whole."""
    monkeypatch.setenv("COLUMNS", "20")
    text = "First: one two three four five\n\n  second six seven"
    say(text, err=err)
    assert "".join(capsys.readouterr()) == f"{text}\n"
    monkeypatch.setattr(sys.stderr if err else sys.stdout, "isatty", lambda: True)
    say(text, err=err)
    broken = "First: one two three\n  four five\n\n  second six seven\n"
    assert "".join(capsys.readouterr()) == broken
