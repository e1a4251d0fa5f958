"""Processors on which language models run without an accelerator, from rows and from machines."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from epochcost.predict.rates import positive_number, read_table
from epochcost.specs.catalogue import Catalogue

_PROCESSOR = re.compile(
    r"(xeon|epyc|graviton|neoverse|ampere-?(one|altra)|altra|cobalt|axion|kunpeng|yitian|ryzen"
    r"|threadripper|core-|intel-core)"
)
_COLUMNS = (
    "vendor", "machine", "chip", "gpu", "cpu", "vcpus", "threads_per_core",
    "cores_per_socket", "sockets", "instructions", "read_gb_per_second",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class CpuForm:
    """A processor as a machine has it; numbers are of all its sockets, None where nobody says."""

    chip: str
    threads: int | None = None
    cores: int | None = None
    sockets: int | None = None
    instructions: tuple[str, ...] = ()
    read_gb_per_second: float | None = None


def is_processor(chip: str) -> bool:
    """Whether a chip is a processor, by its name."""
    return _PROCESSOR.match(chip) is not None


def catalogue_processors(catalogue: Catalogue) -> Mapping[str, CpuForm]:
    """Processors of machines without an accelerator, by what rows call the machine."""
    forms: dict[str, CpuForm] = {}
    for table in catalogue.tables_of("tokens"):
        if table.machines:
            folder = catalogue.files[f"observations/{table.id}"].parent
            forms |= read_processors(folder / table.machines)
    return forms


def read_processors(path: Path) -> Mapping[str, CpuForm]:
    """Processors of a table, by provider and machine; raises SpecError as ``read_rates`` does."""
    rows = read_table(path, _COLUMNS, lambda _, row: (row, _processor(row)))
    return {f"{row['vendor']} {row['machine']}": form for row, form in rows if not row["gpu"]}


def _processor(row: Mapping[str, str]) -> CpuForm:
    threads = int(positive_number("vcpus", row["vcpus"]))
    rate, sockets = row["read_gb_per_second"], row["sockets"]
    # Some virtual machines show each core as a socket of its own.
    several = sockets != "" and row["cores_per_socket"] not in {"", "1"}
    return CpuForm(
        row["chip"],
        threads,
        max(1, threads // int(positive_number("threads_per_core", row["threads_per_core"] or "1"))),
        int(positive_number("sockets", sockets)) if several else 1,
        tuple(row["instructions"].split()),
        positive_number("read_gb_per_second", rate) if rate else None,
    )
