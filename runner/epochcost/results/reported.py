"""Runs that a person measured with another tool, and imported from the tool's output.

Each run is stored as ``<hardware>/reported/<model>-<digest>-<position>.json``, with a digest of the
tool's output file and the run's place in it. A repeated import replaces the records.

History of ``reported_version``: 1 is the first form.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from epochcost.errors import InputError
from epochcost.results.checks import unknown_machine
from epochcost.results.fields import Count, HexDigits, NonNegativeInt, Record
from epochcost.results.store import ID_DIGITS, Sidecar
from epochcost.results.tool_files import read_tool_file
from epochcost.results.tool_runs import Text, ToolRun
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.hardware import Hardware


class Terms(Record):
    """Facts that the reporter of a run states: number of GPUs and machines, price, and software.

    ``gpu_hour`` is in dollars. Without it and ``price`` (a plan's id), the usual price applies.
    """

    gpus: Count | None = None
    machines: Count | None = None
    price: str | None = None
    gpu_hour: Annotated[Decimal, Field(gt=0, lt=10**9)] | None = None
    software: Text = ""
    precision: Text = ""

    @model_validator(mode="after")
    def _one_price(self) -> Terms:
        if self.gpu_hour is not None and self.price is not None:
            raise ValueError("gpu_hour and price should not both be there")
        return self


class ReportedRun(Sidecar):
    """A run from a tool's output file (``source_digest``), with the ``terms`` of its reporter."""

    folder: ClassVar[str] = "reported"
    described: ClassVar[str] = "a reported run of a model"
    reported_version: Literal[1] = 1
    model: str
    source_digest: HexDigits
    position: NonNegativeInt
    terms: Terms
    run: ToolRun

    @property
    def work(self) -> str:
        """The file's name without its suffix: model, digest of the output file, and position."""
        return f"{self.model}-{self.source_digest[:ID_DIGITS]}-{self.position}"


def reported_runs(
    catalogue: Catalogue, path: Path, model: str, hardware: str, terms: Terms
) -> tuple[ReportedRun, ...]:
    """The runs in the tool's output file ``path``, each with the reporter's ``terms``.

    Raises InputError if ``terms`` contradict the file or the catalogue, for example with a price of
    another machine. Raises ResultError if no supported tool wrote the file.
    """
    catalogue.decoder(model)
    machine = catalogue.machine(hardware)
    if terms.price is not None and catalogue.price(terms.price).hardware != machine.id:
        plans = ", ".join(price.id for price in catalogue.prices_of(machine.id)) or "it has none"
        raise InputError(f"--price {terms.price}: expected a price of {machine.id}: {plans}")
    runs = read_tool_file(path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    return tuple(
        ReportedRun(
            hardware=machine.id,
            model=model,
            source_digest=digest,
            position=position,
            terms=_with_device_counts(terms, run, machine, path.name),
            run=run,
        )
        for position, run in enumerate(runs)
    )


def _with_device_counts(terms: Terms, run: ToolRun, machine: Hardware, file_name: str) -> Terms:
    """Fill in the numbers of GPUs and machines that ``terms`` lacks.

    The number of GPUs is the file's, else that in its name (``…_gpus_16_…`` of InferenceX), else
    the spec's. Raises InputError if the reporter's numbers contradict the file or the spec.
    """
    each = sum(accelerator.count for accelerator in machine.accelerators)
    if not each:
        if terms.gpus or run.gpus or terms.gpu_hour:
            raise InputError(f"--hardware {machine.id}: expected a machine with GPUs, got none")
        return terms.model_copy(update={"machines": terms.machines or 1})
    if terms.gpus and run.gpus and terms.gpus != run.gpus:
        raise InputError(f"--gpus {terms.gpus}: expected the {run.gpus} that the file states")
    named = re.search(r"gpus[_-](\d{1,5})(?!\d)", file_name)
    in_file = run.gpus or (int(named[1]) if named else 0)
    gpus = terms.gpus or in_file or each * (terms.machines or 1)
    least = -(-gpus // each)
    if terms.machines is not None and terms.machines < least:
        raise InputError(
            f"--machines {terms.machines}: expected at least {least} of {machine.id}, which has "
            f"{each}, for {gpus} GPUs"
        )
    return terms.model_copy(update={"gpus": gpus, "machines": terms.machines or least})


def spec_faults(catalogue: Catalogue, record: ReportedRun) -> Iterator[str]:
    """Messages about models, machines and prices that a record names but the catalogue lacks."""
    model, plan = catalogue.models.get(record.model), record.terms.price
    if model is None or model.decoder is None:
        yield f"model: expected a model whose spec has [decoder], got {record.model!r:.80}"
    yield from unknown_machine(catalogue, record.hardware)
    plans = {price.id for price in catalogue.prices_of(record.hardware)}
    if plan is not None and plan not in plans:
        yield f"price: expected a price of {record.hardware}, got {plan!r:.80}"
