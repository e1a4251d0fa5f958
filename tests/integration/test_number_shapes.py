"""No page, table or chart shows a number or a word in a form that only programs write."""

from __future__ import annotations

from pathlib import Path

import pytest

from number_shapes import faults_of_page, faults_of_site, faults_of_text


@pytest.mark.parametrize(
    "text",
    [
        "$7.8e-18", "4.381E+17", "1E+2", "1.0e+2 %", "12 ms ± 264.0 %", "costs 0.0106 times",
        "the longest took 3e+02 times the median", "7.28 g to 7.28 g", "((uncertain))",
        "cost at most 1 times as much", "1 machines", "one , two", "one,, two", "None", "nan s",
        "2026-01-31T12:00:05", "a" * 40,
    ],
)  # fmt: skip
def test_a_shape_is_a_fault(text: str) -> None:
    """Powers of ten, senseless intervals and factors, doubled marks and values of programs."""
    assert list(faults_of_text(text))
    assert faults_of_page(f"<p>Before <b>{text}</b> after</p>")
    assert faults_of_page(f'<svg aria-label="{text}"></svg>')


@pytest.mark.parametrize(
    "text",
    [
        "8.63e10 operations", "a rate of 1e-4", "± 12.5 %", "2.1 times", "7.2 g to 7.28 g",
        "None of them", "1.1 times", "2026-01-31 12:00", "11 machines", "a file, .onnx",
    ],
)  # fmt: skip
def test_usual_numbers_are_no_faults(text: str) -> None:
    """Counts of operations, intervals, dates and factors as people write them."""
    assert list(faults_of_text(text)) == []


def test_sentences_round_amounts() -> None:
    """Tables show exact prices, sentences at most four digits; code and scripts are left alone."""
    assert faults_of_page("<p>It costs $5.06879 an hour.</p>")
    page = (
        "<td><p>$5.06879</p></td><p>$12,571 at $98.32, <code>1e+03</code></p><script>NaN</script>"
    )
    assert faults_of_page(f"<table><tr>{page.replace('</td>', '</td></tr></table>')}") == []


def test_the_site_has_no_faults(folder: Path) -> None:
    """Every page, page to embed and chart of the small project, hostile names left out."""
    assert [fault for fault in faults_of_site(folder) if "hack" not in fault] == []
