"""Words for people are short and printable, with a suggestion if a choice is near."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcost.specs.wording import (
    closest,
    describe,
    printable,
    suggest_or_list,
)


@given(st.text() | st.integers() | st.decimals() | st.floats() | st.dates() | st.datetimes())
def test_shown_is_short_and_printable(value: Any) -> None:
    """A described value of a file never breaks a line or a terminal."""
    words = describe(value)
    assert words.isprintable()
    assert len(words) <= 400


def test_nearest() -> None:
    """A near choice is suggested, else the choices are listed, if there are any."""
    assert suggest_or_list("pirce", ["price", "plan"]) == '; did you mean "price"?'
    assert suggest_or_list("zzz", ["price", "plan"]) == '; known: "plan", "price"'
    assert suggest_or_list("zzz", []) == ""


def test_names_that_contain_the_word() -> None:
    """Names that contain the word are suggested before similar names, and listed first."""
    chips = ["h800", "h200", "h100-sxm5", "h100-pcie", "h100"]
    assert suggest_or_list("H100", chips[:4]) == '; did you mean "h100-pcie" or "h100-sxm5"?'
    assert suggest_or_list("H100", chips) == '; did you mean "h100"?'
    assert suggest_or_list("g6", ["a2", "g6.xlarge"]) == '; known: "g6.xlarge", "a2"'


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
    """A part of an id finds the id. A common end alone makes no two ids alike."""
    known = ["lambda-1x-h100", "lambda-4x-a100-on-demand-2026-09", "p3.2xlarge-on-demand-2026-07"]
    assert closest(word, known) == meant


@given(st.text(st.characters()))
def test_printable(text: str) -> None:
    """Any file name, even one that is not UTF-8, is printed as one line."""
    assert printable(text).isprintable()
    assert printable(text + "\udc80\n").encode()
