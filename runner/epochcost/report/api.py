"""Write the site's answers as JSON with a schema; within a version, documents only gain keys."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator

from pydantic import AliasPath, BaseModel, ConfigDict, Field
from pydantic.json_schema import models_json_schema

from epochcost.report.pages.page import Job, Report, html, machine_uri, workload_uri
from epochcost.report.ranking import ContestGoal

FOLDER = "api/v1"


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", from_attributes=True)


class Interval(_Part):
    """A mean and its uncertainty interval; without an interval, both ends equal the mean."""

    low: float | None = Field(
        validation_alias="known_low", description="null if the samples are too few for a lower end"
    )
    mean: float
    high: float


class Choice(_Part):
    """A machine that can do a job, at its cheapest price plan.

    If `answers` is false, the price or the time has a drawback, which `remarks` states first. The
    site recommends such a machine only if every other machine has a drawback, too.
    """

    machine: str = Field(validation_alias="hardware", description="id in machines.json")
    name: str
    price: str = Field(
        validation_alias=AliasPath("price", "id"), description="id of the price plan"
    )
    price_as_of: dt.date = Field(validation_alias=AliasPath("price", "as_of"))
    currency: str = Field(
        validation_alias=AliasPath("cost", "currency"),
        description="currency of the cost, by its code in ISO 4217",
    )
    cost: Interval
    seconds: Interval = Field(validation_alias="time")
    batch_size: int | None = Field(description="null for estimates and for the job tokens")
    software: str = Field(description="software that runs the job; empty for estimates")
    precision: str = Field(description="such as fp32, mixed or bf16; empty if unknown")
    evidence: str = Field(
        validation_alias="mark",
        description="measured, published, predicted or estimated, and whether the price is assumed",
    )
    answers: bool = Field(
        description="false if one of the remarks is a reason to prefer other machines"
    )
    remarks: list[str]


class JobAnswer(_Part):
    """All machines that can do a job, cheapest first, and the three that the site recommends."""

    goal: ContestGoal = Field(
        description="one full training, one epoch, a million inferences, a million tokens of a "
        "machine that is never idle, or a fine-tuning by LoRA"
    )
    cheapest: Choice
    fastest: Choice
    balanced: Choice = Field(description="the machine with the lowest product of cost and time")
    machines: list[Choice]
    beside: list[JobAnswer] = Field(description="answers for the same job with other software")


class ModelAnswers(_Part):
    """`models/ID.json`: each job of a model, with the costs on all machines."""

    id: str
    name: str
    task: str
    page: str = Field(description="address of the page for people, from the site's root")
    jobs: dict[Job, JobAnswer]


class ModelEntry(_Part):
    """A model, and the address of its answers."""

    id: str
    name: str
    task: str
    answers: str = Field(description="address of its ModelAnswers, from this folder")
    jobs: list[Job] = Field(description="jobs with answers")


class Models(_Part):
    """`models.json`: the project's models, and models known only from published tables."""

    models: list[ModelEntry]


class MachineEntry(_Part):
    """A kind of machine: its size, its accelerators and the address of its page."""

    id: str
    name: str
    provider: str
    vcpus: int | None
    memory_gib: float | None
    accelerators: dict[str, int] = Field(description="number of accelerators by name")
    page: str = Field(description="address of the page for people, from the site's root")


class Machines(_Part):
    """`machines.json`: all kinds of machines."""

    machines: list[MachineEntry]


class Index(_Part):
    """`index.json`: the address of every document, relative to the folder of `index.json`."""

    version: int = 1
    data_schema: str = "schema.json"
    models: str = "models.json"
    machines: str = "machines.json"
    figures: str = "../../data/figures.json"


DOCUMENTS = (Index, Models, Machines, ModelAnswers)


def api_files(report: Report) -> Iterator[tuple[str, str]]:
    """Yield the address and the text of each document of the API, and of the documents' schema."""
    documents: dict[str, BaseModel] = {
        "index.json": Index(),
        "machines.json": Machines(machines=list(_machines(report))),
    }
    entries = []
    for workload in report.workloads:
        uri = workload_uri(workload)
        answers = uri.removesuffix("md") + "json"
        jobs = {
            job: JobAnswer.model_validate(contest)
            for job, contest in report.contests[workload].items()
        }
        about = {"id": workload.id, "name": workload.name, "task": workload.task}
        documents[answers] = ModelAnswers(**about, page=html(uri), jobs=jobs)
        entries.append(ModelEntry(**about, answers=answers, jobs=list(jobs)))
    documents["models.json"] = Models(models=entries)
    for uri, document in documents.items():
        yield f"{FOLDER}/{uri}", document.model_dump_json(indent=1) + "\n"
    yield f"{FOLDER}/schema.json", json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"


def schema() -> dict[str, object]:
    """The JSON Schema of all documents; `$defs` has each document's schema by name."""
    _, definitions = models_json_schema(
        [(document, "serialization") for document in DOCUMENTS], title="epochcost, version 1"
    )
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **definitions}


def _machines(report: Report) -> Iterator[MachineEntry]:
    for machine in report.catalogue.hardware.values():
        yield MachineEntry(
            id=machine.id,
            name=machine.name,
            provider=machine.provider,
            vcpus=machine.vcpus,
            memory_gib=None if machine.memory_gib is None else float(machine.memory_gib),
            accelerators={device.name: device.count for device in machine.accelerators},
            page=html(machine_uri(machine.id)),
        )
