"""Words for people: short, printable, and with a suggestion where one is near."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcost.specs.wording import (
    closest,
    describe,
    format_key_path,
    join_choices,
    printable,
    suggest_or_list,
)

SHOWN = [
    ("text", '"text"'),
    ("é", '"é"'),
    ("\x1b[31m", '"\\u001b[31m"'),
    (True, "true"),
    (-3, "-3"),
    (10**30, "a huge whole number"),
    (Decimal("0.90"), "0.90"),
    (dt.date(2016, 11, 1), "2016-11-01"),
    (dt.time(10, 30), "10:30:00"),
    ('a "b"', "'a \"b\"'"),
    ("""a "b" 'c'""", '"a \\"b\\" \'c\'"'),
    ({}, "a table"),
    ([], "an empty array"),
    ([1, 2], "an array of 2"),
]


@pytest.mark.parametrize(("value", "words"), SHOWN, ids=[row[1] for row in SHOWN])
def test_shown(value: Any, words: str) -> None:
    """A value is shown as TOML writes it, or by what it is."""
    assert describe(value) == words


@given(st.text() | st.integers() | st.decimals() | st.floats() | st.dates() | st.datetimes())
def test_shown_is_short_and_printable(value: Any) -> None:
    """No value of a file can break a line or a terminal."""
    words = describe(value)
    assert words.isprintable()
    assert len(words) <= 400


def test_dotted() -> None:
    """Paths read like TOML: dots between keys, quotes where a key needs them, items in brackets."""
    assert format_key_path(("timings", 2, "price")) == "timings[2].price"
    assert format_key_path((0,)) == "[0]"
    assert format_key_path(("a b", "c")) == '"a b".c'


def test_nearest() -> None:
    """A near choice is suggested; else the choices are listed; else there is nothing to say."""
    assert suggest_or_list("pirce", ["price", "plan"]) == '; did you mean "price"?'
    assert suggest_or_list("zzz", ["price", "plan"]) == '; known: "plan", "price"'
    assert suggest_or_list("zzz", []) == ""


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("H100", "lambda-1x-h100"),
        ("p3.2xlarge", "p3.2xlarge-on-demand-2026-07"),
        ("p3-2xlarge-on-demand", "p3.2xlarge-on-demand-2026-07"),
        ("my-4090-owned-2026-11", None),
        ("p3-2xlarge", "p3.2xlarge-on-demand-2026-07"),
        ("h", None),
        ("-.-", None),
    ],
)
def test_ids_of_many_parts(word: str, meant: str | None) -> None:
    """A part of an id finds it, and a common end makes no two ids alike."""
    known = ["lambda-1x-h100", "lambda-4x-a100-on-demand-2026-11", "p3.2xlarge-on-demand-2026-07"]
    assert closest(word, known) == meant


def test_long_lists_end() -> None:
    """A list of many choices says how many it leaves out."""
    assert join_choices(map(str, range(14))).endswith('"11" and 2 more')


@given(st.text(st.characters()))
def test_printable(text: str) -> None:
    """Any file name, even one that is no UTF-8, can be written to a terminal as one line."""
    assert printable(text).isprintable()
    assert printable(text + "\udc80\n").encode()
