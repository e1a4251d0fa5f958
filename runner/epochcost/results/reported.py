"""Runs that a person measured with another tool and reports: the record, and its file.

``<hardware>/reported/<model>-<digest>-<position>.json``, a file for each run, under the digest of
the tool's file: importing it again, with another price, replaces them.

History of REPORTED_VERSION:
1  first form.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field, model_validator

from epochcost.errors import InputError
from epochcost.results.fields import Count, NonNegativeInt
from epochcost.results.store import Sidecar
from epochcost.results.tool_files import read_tool_file
from epochcost.results.tool_runs import LONGEST_TEXT, Text, ToolRun
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.hardware import Hardware
from epochcost.specs.wording import printable

REPORTED_VERSION = 1
_DIGITS = 8
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class ReportedRun(Sidecar):
    """A run on so many machines, ``gpus`` of theirs in all, at the price that its reporter pays.

    ``price`` is the id of a plan of the machine, ``gpu_hour`` a price of one GPU for an hour; with
    neither the machine's usual price holds. ``source_file`` is the name of the tool's file.
    """

    folder: ClassVar[str] = "reported"
    described: ClassVar[str] = "a reported run of a model"
    reported_version: int = REPORTED_VERSION
    model: str
    source_file: Text
    source_sha256: Sha256
    position: NonNegativeInt
    machines: Count
    gpus: Count | None = None
    price: str | None = None
    gpu_hour: Annotated[Decimal, Field(gt=0, lt=10**9)] | None = None
    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")] = "USD"
    run: ToolRun

    @property
    def work(self) -> str:
        """The model and the first digits of the tool's file, with the run's position in it."""
        return f"{self.model}-{self.source_sha256[:_DIGITS]}-{self.position}"

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> ReportedRun:
        if self.reported_version != REPORTED_VERSION:
            got = f"{REPORTED_VERSION}, not {self.reported_version}"
            raise ValueError(f"reported_version should be {got}")
        if self.gpu_hour is not None and (self.gpus is None or self.price is not None):
            raise ValueError("gpu_hour should be there with gpus and without price only")
        return self


@dataclass(frozen=True, slots=True)
class Terms:
    """A reporter's words on a tool's file: the model, the machines and what they cost."""

    model: str
    hardware: str
    gpus: int | None = None
    machines: int | None = None
    price: str | None = None
    gpu_hour: Decimal | None = None
    currency: str = "USD"
    software: str = ""
    precision: str = ""


def reported_runs(catalogue: Catalogue, path: Path, terms: Terms) -> tuple[ReportedRun, ...]:
    """The runs of a tool's file on a reporter's terms.

    Raises InputError for terms that fit neither the catalogue nor the file, ResultError for a file
    of another kind.
    """
    catalogue.decoder(terms.model)
    machine = catalogue.machine(terms.hardware)
    if terms.price is not None and catalogue.price(terms.price).hardware != machine.id:
        plans = ", ".join(price.id for price in catalogue.prices_of(machine.id)) or "it has none"
        raise InputError(f"--price {terms.price}: expected a price of {machine.id}: {plans}")
    if terms.gpu_hour is not None and (terms.price is not None or not machine.accelerators):
        raise InputError(
            "--rate: expected the price of a GPU-hour, of a machine with GPUs and without --price"
        )
    runs = read_tool_file(path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return tuple(
        _on_terms(run, machine, terms, path.name, digest, position)
        for position, run in enumerate(runs)
    )


def spec_faults(catalogue: Catalogue, record: ReportedRun) -> Iterator[str]:
    """Messages on specs that a record names and the catalogue lacks."""
    model, price = catalogue.models.get(record.model), catalogue.prices.get(record.price or "")
    if model is None or model.decoder is None:
        yield f"model: expected one whose spec has [decoder], got {record.model!r:.80}"
    if record.hardware not in catalogue.hardware:
        yield f"hardware: expected a machine with a spec, got {record.hardware!r:.80}"
    if record.price is not None and (price is None or price.hardware != record.hardware):
        yield f"price: expected a price of {record.hardware}, got {record.price!r:.80}"


def _on_terms(
    run: ToolRun, machine: Hardware, terms: Terms, name: str, digest: str, position: int
) -> ReportedRun:
    gpus, machines = _devices(run, machine, terms, name)
    stated = {"software": terms.software, "precision": terms.precision}
    return ReportedRun(
        hardware=machine.id,
        model=terms.model,
        source_file=printable(name)[-LONGEST_TEXT:],
        source_sha256=digest,
        position=position,
        machines=machines,
        gpus=gpus,
        price=terms.price,
        gpu_hour=terms.gpu_hour,
        currency=terms.currency,
        run=run.model_copy(update={key: text for key, text in stated.items() if text}),
    )


def _devices(run: ToolRun, machine: Hardware, terms: Terms, name: str) -> tuple[int | None, int]:
    """The GPUs of a run and the machines that hold them; InputError where both cannot be.

    The reporter counts the GPUs, else the file, else its name (InferenceX: ``…_gpus_16_…``); else
    all of the machines served.
    """
    each = sum(accelerator.count for accelerator in machine.accelerators)
    if not each:
        if terms.gpus or run.gpus:
            raise InputError(f"--hardware {machine.id}: expected a machine with GPUs, got none")
        return None, terms.machines or 1
    if terms.gpus and run.gpus and terms.gpus != run.gpus:
        raise InputError(f"--gpus {terms.gpus}: expected the {run.gpus} that the file states")
    in_name = re.search(r"gpus[_-](\d{1,5})(?!\d)", name)
    named = int(in_name[1]) if in_name else 0
    gpus = terms.gpus or run.gpus or named or each * (terms.machines or 1)
    machines = terms.machines or -(-gpus // each)
    if gpus > machines * each:
        raise InputError(
            f"--machines {machines}: expected at least {-(-gpus // each)} of {machine.id}, "
            f"which has {each}, for {gpus} GPUs"
        )
    return gpus, machines
