"""CSV files: what people save by mistake, each with file, line and remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from epochcost.errors import Fault, SpecError
from epochcost.specs.csv_rows import CsvRow, csv_rows

_ROWS = "name,price\none,1\ntwo,2\n"


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The path of a table in the current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path / "table.csv"


@pytest.mark.parametrize(
    "text", [_ROWS, "\ufeff" + _ROWS, _ROWS.replace("\n", "\r\n"), _ROWS.replace(",", " , ")]
)
def test_forms_of_spreadsheets_are_read(table: Path, text: str) -> None:
    """A byte order mark, line ends of Windows, and spaces around cells are no part of a cell."""
    table.write_bytes(text.encode())
    one, two = csv_rows(table, ["price"])
    assert one == CsvRow(2, {"name": "one", "price": "1"})
    assert two == CsvRow(3, {"name": "two", "price": "2"})


def test_lines_count_empty_and_quoted_lines(table: Path) -> None:
    """Empty rows are left out and still count as lines, and so do line ends within quotes."""
    table.write_text('name,price\n\n,,\n,\n"o\nne",1\n1,234,5\n')
    kinds = [(type(row), row.line) for row in csv_rows(table)]
    assert kinds == [(CsvRow, 6), (Fault, 7)]


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        ("", "1:1: expected a header with the names of the columns, got an empty file"),
        ("name,price\n", "1:1: expected rows below the header, found none"),
        (_ROWS.replace(",", ";"), '1:1: expected commas between cells, got "name;price": save'),
        (_ROWS.replace(",", "\t"), '1:1: expected commas between cells, got "name\\tprice": save'),
        ("name,price,price\n", '1:1: expected each column once in the header, got "price" twice'),
        ("name\none\n", "1:1: expected the columns name, price, found no price"),
        ("name,prize\n", '1:1: expected known columns, got "prize"; did you mean "price"?'),
        (_ROWS.encode("utf-16"), "1:1: expected UTF-8, got the byte 0xff: save it as UTF-8"),
        (_ROWS.replace("two", "zwölf").encode("latin-1"), "3:1: expected UTF-8, got the byte 0xf6"),
        (_ROWS + "<<<<<<< HEAD\n", "4:1: should be merged, got the conflict marker <<<<<<<"),
        ('name,price\n"p2"x,0.9\n', "2:1: expected comma-separated values, got"),
        ('name,price\n"p2,0.9\n', "2:1: expected comma-separated values, got"),
    ],
)
def test_files_that_are_no_table(table: Path, contents: str | bytes, message: str) -> None:
    """Each mistake is refused in one line with the place, the reason and, if possible, a remedy."""
    table.write_bytes(contents if isinstance(contents, bytes) else contents.encode())
    with pytest.raises(SpecError) as refused:
        list(csv_rows(table, ["name", "price"], ["name", "price"]))
    assert str(refused.value).startswith(f"table.csv:{message}")
    assert "\n" not in str(refused.value)


def test_a_missing_file(table: Path) -> None:
    """A file that does not exist is named with the reason."""
    with pytest.raises(SpecError, match=r"^table\.csv:1:1: expected a CSV file, got: No such file"):
        list(csv_rows(table))


def test_a_row_of_another_length_is_a_fault(table: Path) -> None:
    """A row with too many or too few cells is a fault, and other rows are read."""
    table.write_text(_ROWS + "three\n1,234,5\n")
    *_, short, long = csv_rows(table)
    assert str(short) == "table.csv:4:1: expected 2 cells, as in the header, got 1"
    assert str(long).endswith("got 3: put a cell with a comma in quotes")
