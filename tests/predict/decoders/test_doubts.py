"""Impossible rows are doubted, and nearly all published rows are not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from epochcost.predict.decoders.doubts import (
    doubted_token_rows,
    doubted_training_rows,
    sound_rows,
)
from epochcost.predict.decoders.rows import (
    TokenRow,
    names_of,
    read_lines,
    token_rows,
    token_rows_of,
)
from epochcost.predict.decoders.training_rows import training_rows
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.hardware import Device

IMPLAUSIBLE = Path(__file__).with_name("implausible.csv")


@pytest.fixture(scope="module")
def rows(catalogue: Catalogue) -> tuple[TokenRow, ...]:
    """The project's serving rows."""
    return token_rows(catalogue)


def test_impossible_rows_are_doubted(catalogue: Catalogue, rows: tuple[TokenRow, ...]) -> None:
    """Rows faster than bandwidth or peak, known by hand, are among the doubted."""
    impossible = tuple(token_rows_of(read_lines(IMPLAUSIBLE, names_of(catalogue), {})))
    doubts = doubted_token_rows((*rows, *impossible))
    assert len(impossible) > 10
    assert all(at in doubts for at in range(len(rows), len(rows) + len(impossible)))
    assert {doubts[len(rows) + at].split(" the ")[1] for at in range(len(impossible))} == {
        "memory bandwidth of its devices",
        "peak of its devices",
    }


def test_sound_rows_are_learnt_from(rows: tuple[TokenRow, ...]) -> None:
    """At most one in a hundred of the project's rows is doubted."""
    assert len(sound_rows(rows)) >= 0.99 * len(rows)


def test_row_that_was_entered_twice_is_doubted_once(rows: tuple[TokenRow, ...]) -> None:
    """The second of two equal rows is doubted, and the reason names the first."""
    again = replace(rows[0], line=replace(rows[0].line, path=Path("own.csv"), number=7))
    doubts = doubted_token_rows((*rows[:50], again))
    assert doubts == {50: f"the same as {rows[0].line.where}"}


def test_milliseconds_entered_as_seconds_are_doubted(rows: tuple[TokenRow, ...]) -> None:
    """Times of large models that are a thousand times too short are doubted."""
    large = [
        row
        for row in rows
        if isinstance(row.question.device, Device) and row.seconds
        if row.question.form.parameters > 2e9
    ]
    wrong = [replace(row, seconds=(row.seconds or 0) / 1000) for row in large[::50]]
    doubts = doubted_token_rows(wrong)
    assert len(doubts) >= 0.9 * len(wrong)


@pytest.mark.parametrize(("start", "doubted"), [(0.0, set()), (18.0, {0, 1, 2})])
def test_runs_that_include_a_start_are_doubted(
    rows: tuple[TokenRow, ...], start: float, doubted: set[int]
) -> None:
    """A program start of 18 s dominates the three shorter runs, but not the longest."""
    sound = next(row for row in rows if row.question.interleaved and row.seconds)
    runs = [
        replace(
            sound,
            question=replace(sound.question, prompt=length, output=length),
            seconds=(start + 0.02 * length + 1e-6 * length**2) / length,
        )
        for length in (128, 256, 512, 4096)
    ]
    doubts = doubted_token_rows(runs)
    assert {at for at, doubt in doubts.items() if "program's start" in doubt} == doubted


def test_a_clean_run_is_not_doubted_for_another_with_a_start(rows: tuple[TokenRow, ...]) -> None:
    """Of two runs of one question on a Max 1550, only the slow one is doubted."""
    doubts = doubted_token_rows(rows)
    both = [
        at
        for at, row in enumerate(rows)
        if row.line.cells["chip"] == "intel-max-1550"
        and row.line.cells["model"] == "meta-llama/Llama-2-7b-hf"
        and (row.question.count, row.question.sequences, row.question.output) == (1, 1, 128)
    ]
    fast, slow = sorted(both, key=lambda at: rows[at].seconds or 0.0)
    assert slow in doubts
    assert fast not in doubts


def test_training_near_the_peak_is_doubted(catalogue: Catalogue) -> None:
    """Only rows on the RTX A6000, which need nine tenths of its peak, are doubted."""
    rows = training_rows(catalogue)
    doubts = doubted_training_rows(rows)
    assert {rows[at].line.cells["chip"] for at in doubts} == {"rtx-a6000"}
