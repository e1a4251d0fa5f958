"""Processors on which language models run without an accelerator, from rows and from machines."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from epochcost.predict.rates import positive_number, read_table
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.hardware import Hardware

_PROCESSOR = re.compile(
    r"(xeon|epyc|graviton|neoverse|ampere-?(one|altra)|altra|cobalt|axion|kunpeng|yitian|ryzen"
    r"|threadripper|core-|intel-core)"
)
_COLUMNS = (
    "vendor", "machine", "chip", "gpu", "cpu", "vcpus", "threads_per_core",
    "cores_per_socket", "sockets", "instructions", "read_gb_per_second",
)  # fmt: skip


_THREADS_OF_A_CORE = 2
# Processors of families of machines whose specs name a clock alone, by their provider's pages of
# instance types (aws.amazon.com/ec2/instance-types).
_OF_FAMILIES = {"c5": "xeon-8124m", "c7i": "xeon-8488c", "c8g": "graviton4"}


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


def cpu_form_of(hardware: Hardware, processors: Mapping[str, CpuForm]) -> CpuForm | None:
    """The processor of a machine without accelerators: as its rows have it, else as its spec says.

    Of a machine without rows, those of its family tell the chip and its instructions. None for
    machines whose spec names no processor. ``processors`` are ``catalogue_processors``.
    """
    if hardware.accelerators or hardware.cpu is None:
        return None
    named = {machine.split(" ", 1)[-1]: form for machine, form in processors.items()}
    if hardware.id in named:
        return named[hardware.id]
    family = _family(hardware.id)
    relative = next((form for name, form in named.items() if _family(name) == family), None)
    # The id often names the generation that the text leaves out.
    text = f"{hardware.cpu} {hardware.id}".casefold()
    per_core = 1 if "arm" in text else _THREADS_OF_A_CORE
    cores = hardware.cores or (max(1, hardware.vcpus // per_core) if hardware.vcpus else None)
    return CpuForm(
        relative.chip if relative else _OF_FAMILIES.get(family, text),
        hardware.vcpus,
        cores,
        instructions=relative.instructions if relative else (),
    )


def _family(machine: str) -> str:
    """The part of a machine's name that machines of other sizes share."""
    return re.split(r"\.|-\d+$", machine)[0]
