"""Read CSV files of any length row by row; each fault has its line."""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from epochcost.errors import Fault
from epochcost.specs.document import CONFLICT_MARKERS, Position, display_path, file_error
from epochcost.specs.wording import describe, got

_OTHER_SEPARATORS = (";", "\t", "|")


class CsvRow(NamedTuple):
    """The number of a row's last line, and the row's cells by column, without outer spaces."""

    line: int
    cells: Mapping[str, str]


def csv_rows(
    path: Path, demanded: Collection[str] = (), allowed: Collection[str] | None = None
) -> Iterator[CsvRow | Fault]:
    """Read the rows of a CSV file below its header, without empty rows.

    Yields a fault for a row that does not fit the header. Raises SpecError if the file is not CSV
    in UTF-8, has no rows, lacks a ``demanded`` column, or has one not in ``allowed`` (None: any).
    """
    place = display_path(path)
    lines = _filled_lines(path, place)
    line, header = next(lines, (1, []))
    if message := _header_fault(header, demanded, allowed):
        raise file_error(place, message, Position(line, 1))
    empty = True
    for line, cells in lines:
        empty = False
        if len(cells) == len(header):
            yield CsvRow(line, dict(zip(header, cells, strict=True)))
        elif cells[0][:7] in CONFLICT_MARKERS:
            message = f"should be merged, got the conflict marker {cells[0][:7]}"
            raise file_error(place, message, Position(line, 1))
        else:
            message = f"expected {len(header)} cells, as in the header, got {len(cells)}"
            advice = ": put a cell with a comma in quotes" if len(cells) > len(header) else ""
            yield Fault(place, line, 1, f"{message}{advice}")
    if empty:
        raise file_error(place, "expected rows below the header, found none", Position(line, 1))


def _header_fault(
    header: Sequence[str], demanded: Collection[str], allowed: Collection[str] | None
) -> str | None:
    if not header:
        return "expected a header with the names of the columns, got an empty file"
    if len(header) == 1 and any(separator in header[0] for separator in _OTHER_SEPARATORS):
        return f"expected commas between cells, got {describe(header[0])}: save it with commas"
    twice = next((name for name in header if header.count(name) > 1), None)
    if twice is not None:
        return f"expected each column once in the header, got {describe(twice)} twice"
    unknown = next((name for name in header if allowed is not None and name not in allowed), None)
    if unknown is not None:
        return f"expected known columns, {got(unknown, allowed or ())}"
    missing = [name for name in demanded if name not in header]
    if missing:
        return f"expected the columns {', '.join(demanded)}, found no {', '.join(missing)}"
    return None


def _filled_lines(path: Path, place: Path) -> Iterator[tuple[int, list[str]]]:
    try:
        # Each byte that is not UTF-8 becomes a surrogate, so that its line is known.
        with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
            reader = csv.reader(file, strict=True)
            for row in reader:
                "".join(row).encode()
                cells = [cell.strip() for cell in row]
                if any(cells):
                    yield reader.line_num, cells
    except OSError as error:
        raise file_error(place, f"expected a CSV file, got: {error.strerror}") from error
    except UnicodeEncodeError as error:
        byte = ord(error.object[error.start]) & 0xFF
        message = f"expected UTF-8, got the byte 0x{byte:02x}: save it as UTF-8"
        raise file_error(place, message, Position(reader.line_num, 1)) from error
    except csv.Error as error:
        message = f"expected comma-separated values, got: {error}"
        raise file_error(place, message, Position(reader.line_num, 1)) from error
