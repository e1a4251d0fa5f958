"""Find the processors of machines without accelerators, in tables and in machine names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
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
_THREADS = re.compile(r"(\d+) threads\b")
# Arm's processors.
_ONE_THREAD = re.compile(r"graviton|neoverse|ampere|altra|cobalt|axion|kunpeng|yitian")
# How AWS and Alibaba Cloud, Azure, UpCloud and Google name sizes, with the threads of a unit, not
# of Azure's D1_v2 to D5_v2, which count differently.
_SIZES = (
    (r"(\d*)-?xl(?:arge)?$", 4),
    (r"Standard_(?!D\d+_v2)[A-Z]+(\d+)", 1),
    (r"(\d+)xCPU", 1),
    (r"-(\d+)(?:-lssd)?$", 1),
)
# Assumed for families of machines whose specs state only a clock: their usual processor.
_OF_FAMILIES = {"c5": "xeon-8124m", "c7i": "xeon-8488c", "c8g": "graviton4"}


@dataclass(frozen=True, slots=True)
class CpuForm:
    """The processors of a machine; numbers are totals over its sockets, None if unknown."""

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
    """The processor of each machine without an accelerator, by provider and machine's name."""
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
    # Some virtual machines present each core as a socket.
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
    """The processor of a machine without accelerators; None if its spec names no processor.

    If ``processors`` (see ``catalogue_processors``) has the machine, its entry is returned.
    Otherwise the numbers come from the spec, and chip and instructions from another machine of the
    same family.
    """
    if hardware.accelerators or hardware.cpu is None:
        return None
    named = {machine.split(" ", 1)[-1]: form for machine, form in processors.items()}
    if hardware.id in named:
        return named[hardware.id]
    family = _family(hardware.id)
    relative = next((form for name, form in named.items() if _family(name) == family), None)
    # The id often names the generation that the text omits.
    text = f"{hardware.cpu} {hardware.id}".casefold()
    chip = relative.chip if relative else _OF_FAMILIES.get(family, text)
    form = _like_its_kin(chip, hardware.vcpus, processors)
    return replace(form, cores=hardware.cores or form.cores)


def processor_of(chip: str, machine: str, note: str, processors: Mapping[str, CpuForm]) -> CpuForm:
    """The processor of the machine in a published row, or the best guess from the row's names.

    A note such as "8 threads" comes from llama.cpp, which runs one thread on each core.
    """
    if machine in processors:
        return processors[machine]
    form = _like_its_kin(chip, _threads_of(machine), processors)
    threads = _THREADS.match(note)
    return replace(form, cores=int(threads[1])) if threads else form


def _like_its_kin(chip: str, threads: int | None, processors: Mapping[str, CpuForm]) -> CpuForm:
    """Copy instructions and threads per core to a processor from other machines with this chip."""
    kin = next((form for form in processors.values() if form.chip == chip), None)
    if kin is not None and kin.threads and kin.cores:
        of_a_core = kin.threads // kin.cores
    else:
        of_a_core = 1 if _ONE_THREAD.match(chip) else _THREADS_OF_A_CORE
    cores = max(1, threads // of_a_core) if threads else None
    return CpuForm(chip, threads, cores, instructions=kin.instructions if kin else ())


def _threads_of(machine: str) -> int | None:
    """Number of threads that a machine's name contains by its provider's convention, or None."""
    for pattern, threads in _SIZES:
        size = re.search(pattern, machine)
        if size:
            return threads * int(size[1] or 1)
    return None


def _family(machine: str) -> str:
    """The part of a machine's name that all sizes of its family share."""
    return re.split(r"\.|-\d+$", machine)[0]
